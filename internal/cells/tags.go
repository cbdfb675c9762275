package cells

import (
	"encoding/binary"
	"math"
)

// Tag types of HBase that we know by name.
const (
	TagACL        byte = 1
	TagVisibility byte = 2
	TagTTL        byte = 8
)

// NextTag splits the first tag off a cell's tags. Broken tags end the
// iteration: ok is false.
func NextTag(tags []byte) (typ byte, value, rest []byte, ok bool) {
	if len(tags) < 3 {
		return 0, nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(tags)) // type byte and value
	if n < 1 || len(tags) < 2+n {
		return 0, nil, nil, false
	}
	return tags[2], tags[3 : 2+n], tags[2+n:], true
}

// AppendTag appends a tag in wire form. Values over 65,534 bytes don't fit and
// are not appended.
func AppendTag(tags []byte, typ byte, value []byte) []byte {
	if len(value) >= math.MaxUint16 {
		return tags
	}
	tags = binary.BigEndian.AppendUint16(tags, uint16(len(value)+1))
	tags = append(tags, typ)
	return append(tags, value...)
}

// TTLTag is the tag (in wire form) that lets a cell live for ttl milliseconds
// from its timestamp.
func TTLTag(ttl int64) []byte {
	return AppendTag(nil, TagTTL, binary.BigEndian.AppendUint64(nil, uint64(ttl)))
}

// WithTTL returns tags with their TTL tags replaced by one of ttl
// milliseconds. The result is fresh; the other tags are copied.
func WithTTL(tags []byte, ttl int64) []byte {
	out := make([]byte, 0, len(tags)+11)
	for {
		typ, value, rest, ok := NextTag(tags)
		if !ok {
			break
		}
		if typ != TagTTL {
			out = AppendTag(out, typ, value)
		}
		tags = rest
	}
	return append(out, TTLTag(ttl)...)
}

// TTLOf finds the first TTL tag, in milliseconds.
func TTLOf(tags []byte) (ttl int64, ok bool) {
	for len(tags) > 0 {
		typ, value, rest, good := NextTag(tags)
		if !good {
			return 0, false
		}
		if typ == TagTTL && len(value) == 8 {
			return int64(binary.BigEndian.Uint64(value)), true
		}
		tags = rest
	}
	return 0, false
}

// tagExpired says whether a cell's own TTL has passed.
func tagExpired(c *Cell, now int64) bool {
	if len(c.Tags) == 0 {
		return false
	}
	ttl, ok := TTLOf(c.Tags)
	return ok && ttl <= math.MaxInt64-c.Timestamp && c.Timestamp+ttl < now
}
