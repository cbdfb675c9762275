package hfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	trailerLen   = 4096
	majorVersion = 3
	// minorVersion has checksums and protobuf; older ones of version 3 do not
	// exist.
	minorVersion = 3
)

// pbMagic stands before protobuf messages in HBase's files.
const pbMagic = "PBUF"

// Trailer is the end of a file: where its parts are and how many.
type Trailer struct {
	Major, Minor     int
	FileInfoOffset   int64
	LoadOnOpenOffset int64
	IndexBytes       int64 // unpacked
	UnpackedBytes    int64 // of the whole file
	IndexEntries     int   // in the root
	MetaEntries      int
	Cells            int64
	IndexLevels      int
	FirstDataOffset  int64 // -1 without data
	LastDataOffset   int64
	Comparator       string
	Compression      Compression
	EncryptionKey    []byte
}

// Field numbers of FileTrailerProto.
const (
	tFileInfo = iota + 1
	tLoadOnOpen
	tIndexBytes
	tUnpacked
	tIndexCount
	tMetaCount
	tEntries
	tLevels
	tFirst
	tLast
	tComparator
	tCompression
	tKey
)

func (t *Trailer) parse(b []byte) error {
	if len(b) != trailerLen || string(b[:8]) != magicTrailer {
		return fmt.Errorf("no trailer")
	}
	body := b[8 : trailerLen-4]
	n, used := binary.Uvarint(body)
	if used <= 0 || n > uint64(len(body)-used) {
		return fmt.Errorf("trailer %w", errShort)
	}
	t.Compression = CompressionNone
	t.IndexLevels = 1
	return fields(body[used:used+int(n)], func(num protowire.Number, v uint64, raw []byte) {
		switch num {
		case tFileInfo:
			t.FileInfoOffset = int64(v)
		case tLoadOnOpen:
			t.LoadOnOpenOffset = int64(v)
		case tIndexBytes:
			t.IndexBytes = int64(v)
		case tUnpacked:
			t.UnpackedBytes = int64(v)
		case tIndexCount:
			t.IndexEntries = int(min(v, math.MaxInt32))
		case tMetaCount:
			t.MetaEntries = int(min(v, math.MaxInt32))
		case tEntries:
			t.Cells = int64(v)
		case tLevels:
			t.IndexLevels = int(min(v, math.MaxInt32))
		case tFirst:
			t.FirstDataOffset = int64(v)
		case tLast:
			t.LastDataOffset = int64(v)
		case tComparator:
			t.Comparator = string(raw)
		case tCompression:
			t.Compression = Compression(min(v, math.MaxUint32))
		case tKey:
			t.EncryptionKey = bytes.Clone(raw)
		}
	})
}

// fields visits the fields of a message; groups and fixed widths are passed.
func fields(b []byte, visit func(num protowire.Number, v uint64, raw []byte)) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		switch typ {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			visit(num, v, nil)
			b = b[n:]
		case protowire.BytesType:
			raw, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			visit(num, 0, raw)
			b = b[n:]
		default:
			n := protowire.ConsumeFieldValue(num, typ, b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
		}
	}
	return nil
}

func (t *Trailer) append(dst []byte) []byte {
	var m []byte
	number := func(num protowire.Number, v int64) {
		m = protowire.AppendTag(m, num, protowire.VarintType)
		m = protowire.AppendVarint(m, uint64(v))
	}
	number(tFileInfo, t.FileInfoOffset)
	number(tLoadOnOpen, t.LoadOnOpenOffset)
	number(tIndexBytes, t.IndexBytes)
	number(tUnpacked, t.UnpackedBytes)
	number(tIndexCount, int64(t.IndexEntries))
	number(tMetaCount, int64(t.MetaEntries))
	number(tEntries, t.Cells)
	number(tLevels, int64(t.IndexLevels))
	number(tFirst, t.FirstDataOffset)
	number(tLast, t.LastDataOffset)
	m = protowire.AppendTag(m, tComparator, protowire.BytesType)
	m = protowire.AppendString(m, t.Comparator)
	number(tCompression, int64(t.Compression))

	at := len(dst)
	dst = append(dst, magicTrailer...)
	dst = protowire.AppendBytes(dst, m)
	dst = append(dst, make([]byte, trailerLen-4-(len(dst)-at))...)
	return binary.BigEndian.AppendUint32(dst, uint32(t.Minor)<<24|uint32(t.Major))
}

// Keys of the file info.
const (
	InfoLastKey     = "hfile.LASTKEY"
	InfoAvgKeyLen   = "hfile.AVG_KEY_LEN"
	InfoAvgValueLen = "hfile.AVG_VALUE_LEN"
	InfoCreateTime  = "hfile.CREATE_TIME_TS"
	InfoMaxTagsLen  = "hfile.MAX_TAGS_LEN"
	InfoTagsPacked  = "hfile.TAGS_COMPRESSED"
	InfoKeyValueVer = "KEY_VALUE_VERSION"
	InfoMaxSeq      = "MAX_MEMSTORE_TS_KEY"
	InfoMaxSeqID    = "MAX_SEQ_ID_KEY"
	InfoEncoding    = "DATA_BLOCK_ENCODING"
	InfoBloomType   = "BLOOM_FILTER_TYPE"
	InfoLastBloom   = "LAST_BLOOM_KEY"
	InfoTimeRange   = "TIMERANGE"
	InfoEarliestPut = "EARLIEST_PUT_TS"
	InfoMajor       = "MAJOR_COMPACTION_KEY"
	InfoDeleteCount = "DELETE_FAMILY_COUNT"
	InfoBulkTime    = "BULKLOAD_TIMESTAMP"
	InfoBulkSource  = "BULKLOAD_TASK"
)

func parseInfo(b []byte) (map[string][]byte, error) {
	if !bytes.HasPrefix(b, []byte(pbMagic)) {
		return nil, fmt.Errorf("file info without its magic")
	}
	b = b[len(pbMagic):]
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return nil, fmt.Errorf("file info %w", errShort)
	}
	info := make(map[string][]byte)
	var bad error
	err := fields(b[used:used+int(n)], func(num protowire.Number, _ uint64, raw []byte) {
		if num != 1 {
			return
		}
		var key string
		var value []byte
		if err := fields(raw, func(num protowire.Number, _ uint64, raw []byte) {
			switch num {
			case 1:
				key = string(raw)
			case 2:
				value = bytes.Clone(raw)
			}
		}); err != nil {
			bad = err
		}
		info[key] = value
	})
	if err == nil {
		err = bad
	}
	return info, err
}

func appendInfo(dst []byte, info map[string][]byte) []byte {
	var m []byte
	for _, key := range slices.Sorted(maps.Keys(info)) {
		var e []byte
		e = protowire.AppendTag(e, 1, protowire.BytesType)
		e = protowire.AppendString(e, key)
		e = protowire.AppendTag(e, 2, protowire.BytesType)
		e = protowire.AppendBytes(e, info[key])
		m = protowire.AppendTag(m, 1, protowire.BytesType)
		m = protowire.AppendBytes(m, e)
	}
	return protowire.AppendBytes(append(dst, pbMagic...), m)
}
