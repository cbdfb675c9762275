package hfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// WriterOptions say how a file is written. The zero value writes what HBase
// does for a family with default settings.
type WriterOptions struct {
	Encoding Encoding
	// Compression; 0, which would be LZO, means NONE.
	Compression Compression
	// BlockBytes is the size from which a data block is ended, before
	// encoding; 0 means 64 KiB.
	BlockBytes int
	// IndexBytes and BloomBytes are those of index blocks and bloom chunks; 0
	// means 128 KiB.
	IndexBytes, BloomBytes int
	// NoBloom leaves out the ROW bloom filter.
	NoBloom bool
	// Checksum; 0 means CRC32C.
	Checksum Checksum
	// BytesPerChecksum; 0 means 16 KiB.
	BytesPerChecksum int
	// PlainTags leaves tags as they are inside encoded blocks, too.
	PlainTags bool
	// Created is the file's time in ms; 0 leaves it out.
	Created int64
	// Info is added to the file info.
	Info map[string][]byte
}

// Writer writes an HFile. Not for concurrent use.
type Writer struct {
	out  io.Writer
	opts WriterOptions
	at   int64
	err  error

	enc   encoder
	n     int // cells of the open block
	start []byte
	buf   []byte
	raw   []byte
	prev  map[string]int64

	leaf, root []indexEntry
	leafBytes  int
	levels     int
	indexBytes int64

	bloom     Bloom
	hashes    [][2]int32
	bloomKey  []byte
	bloomMax  int
	lastBloom []byte

	t      Trailer
	stats  writerStats
	family []byte
	last   []byte
	closed bool
}

type writerStats struct {
	keys, values       int64
	maxTags            int
	maxSeq             uint64
	minTime, maxTime   int64
	earliestPut        int64
	deleteFamilyMarker int64
}

const (
	bloomHashCount = 7
	// bloomBitsPerKey gives one wrong answer in a hundred.
	bloomBitsPerKey = 9.6
)

// comparatorName is what every HBase since 1.0 takes for its usual order.
const comparatorName = "org.apache.hadoop.hbase.KeyValue$KVComparator"

// NewWriter begins a file. Nothing but Close writes the last part; w is not
// closed.
func NewWriter(w io.Writer, o WriterOptions) (*Writer, error) {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.BlockBytes, 64<<10)
	def(&o.IndexBytes, 128<<10)
	def(&o.BloomBytes, 128<<10)
	def(&o.BytesPerChecksum, 16<<10)
	if o.Compression == CompressionLZO {
		o.Compression = CompressionNone
	}
	if o.Checksum == ChecksumNull {
		o.Checksum = ChecksumCRC32C
	}
	if !o.Compression.readable() {
		return nil, fmt.Errorf("unsupported: compression %v", o.Compression)
	}
	if _, known := encodingNames[o.Encoding]; !known {
		return nil, fmt.Errorf("unsupported: data block encoding %v", o.Encoding)
	}
	x := &Writer{out: w, opts: o, prev: make(map[string]int64), levels: 1}
	x.enc.enc, x.enc.packedTags = o.Encoding, !o.PlainTags
	x.bloomMax = int(float64(o.BloomBytes*8) / bloomBitsPerKey)
	x.stats.minTime, x.stats.earliestPut = math.MaxInt64, math.MaxInt64
	x.t = Trailer{Major: majorVersion, Minor: minorVersion, FirstDataOffset: -1, LastDataOffset: -1, Comparator: comparatorName, Compression: o.Compression}
	return x, nil
}

// Cells is how many were appended.
func (w *Writer) Cells() int64 { return w.t.Cells }

// Append adds a cell; they come in HBase's order and are all of one family.
// Nothing of c is kept.
func (w *Writer) Append(c *cells.Cell) error {
	if w.err != nil {
		return w.err
	}
	switch {
	case w.closed:
		return errors.New("hfile: writer is closed")
	case len(c.Row) == 0 || len(c.Row) > cells.MaxRowLength || len(c.Family) > cells.MaxFamilyLength || len(c.Tags) > cells.MaxTagsLength:
		return fmt.Errorf("hfile: %v has a row, family or tags of a length that does not fit", c)
	case len(c.Value) > maxBlockBytes/2 || len(c.Qualifier) > maxKeyLen/2:
		return fmt.Errorf("hfile: %v is too large", c)
	}
	for tags := c.Tags; len(tags) > 0; {
		_, _, rest, ok := cells.NextTag(tags)
		if !ok {
			return fmt.Errorf("hfile: %v has malformed tags", c)
		}
		tags = rest
	}
	first := w.t.Cells == 0
	newRow := true
	if first {
		w.family = bytes.Clone(c.Family)
	} else {
		var last cells.Cell
		if err := parseKey(w.last, &last); err != nil {
			return err
		}
		if !bytes.Equal(w.family, c.Family) {
			return fmt.Errorf("hfile: %v in a file of family %s", c, cells.Quote(w.family))
		}
		last.Seq = c.Seq
		if cells.Compare(&last, c) > 0 {
			return fmt.Errorf("hfile: %v comes behind %v", c, &last)
		}
		newRow = !bytes.Equal(last.Row, c.Row)
	}
	if w.n == 0 {
		w.enc.start(w.buf)
	}
	w.enc.add(c)
	w.last = appendKey(w.last[:0], c)
	if w.n++; w.n == 1 {
		w.start = append(w.start[:0], w.last...)
	}
	w.t.Cells++
	w.count(c)
	if newRow && !w.opts.NoBloom {
		if w.err = w.addBloom(c.Row); w.err != nil {
			return w.err
		}
	}
	if w.enc.plain >= w.opts.BlockBytes {
		w.err = w.endBlock()
	}
	return w.err
}

func (w *Writer) count(c *cells.Cell) {
	s := &w.stats
	s.keys += int64(len(w.last))
	s.values += int64(len(c.Value))
	s.maxTags = max(s.maxTags, len(c.Tags))
	s.maxSeq = max(s.maxSeq, c.Seq)
	s.minTime, s.maxTime = min(s.minTime, c.Timestamp), max(s.maxTime, c.Timestamp)
	if c.Type == cells.Put {
		s.earliestPut = min(s.earliestPut, c.Timestamp)
	}
	if c.Type.IsDelete() {
		// A marker reaches back to the beginning of time.
		s.minTime = 0
		if c.Type == cells.DeleteFamily || c.Type == cells.DeleteFamilyVersion {
			s.deleteFamilyMarker++
		}
	}
}

// emit writes a block and gives its place and size on disk.
func (w *Writer) emit(magic string, payload []byte) (offset int64, size int, err error) {
	prev, ok := w.prev[magic]
	if !ok {
		prev = -1
	}
	w.raw, err = appendBlock(w.raw[:0], magic, payload, prev, w.opts.Compression, w.opts.Checksum, w.opts.BytesPerChecksum)
	if err != nil {
		return 0, 0, err
	}
	offset = w.at
	w.prev[magic] = offset
	n, err := w.out.Write(w.raw)
	w.at += int64(n)
	w.t.UnpackedBytes += int64(headerLen + len(payload))
	return offset, len(w.raw), err
}

func (w *Writer) endBlock() error {
	if w.n == 0 {
		return nil
	}
	w.n = 0
	magic := magicData
	if w.opts.Encoding != EncodingNone {
		magic = magicEncoded
	}
	payload := w.enc.finish()
	w.buf = payload
	offset, size, err := w.emit(magic, payload)
	if err != nil {
		return err
	}
	if w.t.FirstDataOffset < 0 {
		w.t.FirstDataOffset = offset
	}
	w.t.LastDataOffset = offset
	w.leaf = append(w.leaf, indexEntry{offset: offset, size: size, key: bytes.Clone(w.start), below: 1})
	if w.leafBytes += 16 + len(w.start); w.leafBytes >= w.opts.IndexBytes {
		return w.endLeaf()
	}
	return nil
}

// endLeaf writes a leaf index between the data blocks.
func (w *Writer) endLeaf() error {
	if len(w.leaf) == 0 {
		return nil
	}
	e, err := w.indexBlock(magicLeaf, w.leaf)
	if err != nil {
		return err
	}
	w.root = append(w.root, e)
	w.leaf, w.leafBytes = w.leaf[:0], 0
	return nil
}

func (w *Writer) indexBlock(magic string, list []indexEntry) (indexEntry, error) {
	payload := appendLeaf(nil, list)
	w.indexBytes += int64(len(payload))
	e := indexEntry{key: list[0].key}
	for i := range list {
		e.below += list[i].below
	}
	var err error
	e.offset, e.size, err = w.emit(magic, payload)
	return e, err
}

func (w *Writer) addBloom(row []byte) error {
	if len(w.hashes) == 0 {
		w.bloomKey = bytes.Clone(row)
	}
	a, b := bloomHashes(row)
	w.hashes = append(w.hashes, [2]int32{a, b})
	w.lastBloom = append(w.lastBloom[:0], row...)
	if len(w.hashes) >= w.bloomMax {
		return w.endBloom()
	}
	return nil
}

func (w *Writer) endBloom() error {
	n := len(w.hashes)
	if n == 0 {
		return nil
	}
	chunk := make([]byte, min(w.opts.BloomBytes, int(float64(n)*bloomBitsPerKey/8)+8))
	for _, h := range w.hashes {
		for i := range bloomHashCount {
			at := bloomBit(h[0], h[1], i, len(chunk)*8)
			chunk[at>>3] |= 1 << (at & 7)
		}
	}
	w.hashes = w.hashes[:0]
	offset, size, err := w.emit(magicBloomChunk, chunk)
	if err != nil {
		return err
	}
	b := &w.bloom
	b.Hashes, b.Hash = bloomHashCount, hashMurmur
	b.Bytes += int64(len(chunk))
	b.Keys += int64(n)
	b.MaxKeys += int64(max(n, int(float64(len(chunk)*8)/bloomBitsPerKey)))
	b.chunks = append(b.chunks, indexEntry{offset: offset, size: size, key: w.bloomKey})
	return nil
}

// Close writes index, file info and trailer. A file without cells is a valid
// one.
func (w *Writer) Close() error {
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	w.err = w.finish()
	return w.err
}

func (w *Writer) finish() error {
	if err := errors.Join(w.endBlock(), w.endBloom()); err != nil {
		return err
	}
	var mid []byte
	list := w.leaf
	if len(w.root) > 0 {
		if err := w.endLeaf(); err != nil {
			return err
		}
		w.levels = 2
		list = w.root
		var err error
		if mid, err = w.middle(list); err != nil {
			return err
		}
		for rootBytes(list) > w.opts.IndexBytes && len(list) > 2 {
			if list, err = w.intermediate(list); err != nil {
				return err
			}
			w.levels++
		}
	}
	w.t.LoadOnOpenOffset = w.at
	var payload []byte
	for i := range list {
		payload = list[i].append(payload)
	}
	payload = append(payload, mid...)
	if _, _, err := w.emit(magicRoot, payload); err != nil {
		return err
	}
	w.t.IndexBytes = w.indexBytes + int64(len(payload))
	w.t.IndexEntries, w.t.IndexLevels = len(list), w.levels
	if _, _, err := w.emit(magicRoot, nil); err != nil { // of meta blocks
		return err
	}
	var err error
	if w.t.FileInfoOffset, _, err = w.emit(magicFileInfo, appendInfo(nil, w.info())); err != nil {
		return err
	}
	if len(w.bloom.chunks) > 0 {
		if _, _, err := w.emit(magicBloomMeta, w.bloom.append(nil)); err != nil {
			return err
		}
	}
	_, err = w.out.Write(w.t.append(nil))
	return err
}

func rootBytes(list []indexEntry) int {
	n := 0
	for i := range list {
		n += 16 + len(list[i].key)
	}
	return n
}

// intermediate puts a level between the leaves and the root.
func (w *Writer) intermediate(list []indexEntry) ([]indexEntry, error) {
	var up []indexEntry
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && (n < 2 || size < w.opts.IndexBytes) {
			size += 16 + len(list[n].key)
			n++
		}
		e, err := w.indexBlock(magicIntermediate, list[:n])
		if err != nil {
			return nil, err
		}
		up = append(up, e)
		list = list[n:]
	}
	return up, nil
}

// middle says which leaf entry is the middle one, for HBase to find the row at
// which to split: place and size of its leaf block, and its number there.
func (w *Writer) middle(leaves []indexEntry) ([]byte, error) {
	total := 0
	for i := range leaves {
		total += leaves[i].below
	}
	at := (total - 1) / 2
	for i := range leaves {
		e := &leaves[i]
		if at < e.below {
			mid := binary.BigEndian.AppendUint64(nil, uint64(e.offset))
			mid = binary.BigEndian.AppendUint32(mid, uint32(e.size))
			return binary.BigEndian.AppendUint32(mid, uint32(at)), nil
		}
		at -= e.below
	}
	return nil, errors.New("hfile: index without a middle")
}

func (w *Writer) info() map[string][]byte {
	s := &w.stats
	u32 := func(v int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(min(v, math.MaxInt32))) }
	u64 := func(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }
	packed := byte(0)
	if w.opts.Encoding != EncodingNone && !w.opts.PlainTags {
		packed = 0xff
	}
	n := max(w.t.Cells, 1)
	info := map[string][]byte{
		InfoAvgKeyLen:   u32(s.keys / n),
		InfoAvgValueLen: u32(s.values / n),
		InfoMaxTagsLen:  u32(int64(s.maxTags)),
		InfoTagsPacked:  {packed},
		InfoKeyValueVer: u32(1),
		InfoMaxSeq:      u64(int64(s.maxSeq)),
	}
	if w.opts.Created != 0 {
		info[InfoCreateTime] = u64(w.opts.Created)
	}
	if w.t.Cells > 0 {
		info[InfoLastKey] = w.last
		info[InfoEarliestPut] = u64(s.earliestPut)
		info[InfoTimeRange] = appendTimeRange(s.minTime, s.maxTime)
		info[InfoDeleteCount] = u64(s.deleteFamilyMarker)
	}
	if w.opts.Encoding != EncodingNone {
		info[InfoEncoding] = []byte(w.opts.Encoding.String())
	}
	if len(w.bloom.chunks) > 0 {
		info[InfoBloomType] = []byte("ROW")
		info[InfoLastBloom] = w.lastBloom
	}
	for k, v := range w.opts.Info {
		info[k] = v
	}
	return info
}

// appendTimeRange is a TimeRangeTracker as HBase 2 writes it: both ends.
func appendTimeRange(from, to int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(from)), uint64(to))
}
