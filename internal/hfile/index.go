package hfile

import (
	"encoding/binary"
	"fmt"
)

// indexEntry points to a block: its place, its size on disk with header, and a
// key at or below its first.
type indexEntry struct {
	offset int64
	size   int
	key    []byte
	below  int // leaf entries under it, for the middle key
}

// append writes an entry of a root index.
func (e *indexEntry) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.offset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.size))
	return appendBytes(dst, e.key)
}

// minRootEntry is the least a root entry takes: offset, size, empty key.
const minRootEntry = 8 + 4 + 1

// rootEntries reads n entries as they stand in a root index.
func rootEntries(l *lead, n int) ([]indexEntry, error) {
	if n < 0 || n > len(l.b)/minRootEntry {
		return nil, fmt.Errorf("index of %d entries in %d bytes", n, len(l.b))
	}
	list := make([]indexEntry, n)
	for i := range list {
		list[i] = indexEntry{offset: l.i64(), size: l.i32(), key: l.bytes()}
	}
	if l.bad {
		return nil, errShort
	}
	return list, nil
}

// leafEntries reads a leaf or intermediate index: n, n+1 places of entries
// relative to the first, entries without the length of their keys.
func leafEntries(payload []byte) ([]indexEntry, error) {
	l := lead{b: payload}
	n := l.i32()
	if l.bad || n < 0 || n > len(l.b)/16 {
		return nil, fmt.Errorf("index of %d entries in %d bytes", n, len(payload))
	}
	places := l.take(4 * (n + 1))
	if l.bad {
		return nil, errShort
	}
	at := func(i int) int { return int(int32(binary.BigEndian.Uint32(places[4*i:]))) }
	list := make([]indexEntry, n)
	for i := range list {
		from, to := at(i), at(i+1)
		if from < 0 || to < from+12 || to > len(l.b) {
			return nil, fmt.Errorf("index entry %d lies at %d..%d of %d", i, from, to, len(l.b))
		}
		e := lead{b: l.b[from:to:to]}
		list[i] = indexEntry{offset: e.i64(), size: e.i32(), key: e.b}
	}
	return list, nil
}

func appendLeaf(dst []byte, list []indexEntry) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(list)))
	at := 0
	for i := range list {
		dst = binary.BigEndian.AppendUint32(dst, uint32(at))
		at += 12 + len(list[i].key)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(at))
	for i := range list {
		dst = binary.BigEndian.AppendUint64(dst, uint64(list[i].offset))
		dst = binary.BigEndian.AppendUint32(dst, uint32(list[i].size))
		dst = append(dst, list[i].key...)
	}
	return dst
}
