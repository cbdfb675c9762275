package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrCorrupted says that a file of the store is damaged.
var ErrCorrupted = errors.New("store is corrupted")

// The engine's log: blocks of 32 KiB, in them chunks behind headers of 19
// bytes: u32 checksum, u16 length, u8 kind, u32 number of the log, u64 offset
// up to which the log was on disk when the chunk was made. All little-endian.
const (
	logBlock      = 32 << 10
	logHeader     = 19
	logKindFirst  = 9 // kinds of chunks with such a header
	logKindLast   = 12
	logCRCDelta   = 0xa282ead8
	logCRCRotated = 15
)

// checkLog looks for damage in the newest log that the engine would take for
// its end. A log may end in the middle of a chunk, where the machine stopped;
// so the engine takes a chunk that makes no sense for the end, unless a later
// block says that the log was on disk beyond it. It does not look at the rest
// of the same block. We do: what was acknowledged must not be lost silently.
func checkLog(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return dirError(dir, err)
	}
	newest, name := uint64(0), ""
	for _, n := range names {
		if number, ok := strings.CutSuffix(n, ".log"); ok {
			if v, err := strconv.ParseUint(number, 10, 32); err == nil && v >= newest {
				newest, name = v, n
			}
		}
	}
	if name == "" {
		return nil
	}
	f, err := fsys.Open(fsys.PathJoin(dir, name))
	if err != nil {
		return dirError(dir, err)
	}
	at, err := damagedAt(f, uint32(newest))
	if err = errors.Join(err, f.Close()); err != nil {
		return dirError(dir, err)
	}
	if at >= 0 {
		return fmt.Errorf("store %s: %w: log %s at offset %d: bytes that were on disk are not what was written (writes since would be lost; restore the file, or remove it and lose them)", dir, ErrCorrupted, name, at)
	}
	return nil
}

// damagedAt is the offset of a chunk that is broken although it was on disk;
// -1 if there is none that the engine would overlook.
func damagedAt(in io.Reader, number uint32) (int64, error) {
	block := make([]byte, logBlock)
	for base := int64(0); ; base += logBlock {
		n, err := io.ReadFull(in, block)
		if errors.Is(err, io.EOF) {
			return -1, nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return -1, err
		}
		b := block[:n]
		at := 0
		for at+logHeader <= len(b) {
			size, _, ok := logChunk(b[at:], number)
			if !ok {
				break
			}
			at += size
		}
		if at+logHeader > len(b) {
			continue
		}
		// The end, or damage: then a later chunk knows of more on disk.
		for later := at + 1; later+logHeader <= len(b); later++ {
			if _, synced, ok := logChunk(b[later:], number); ok && synced > uint64(base)+uint64(at) {
				return base + int64(at), nil
			}
		}
		return -1, nil
	}
}

// logChunk reads the chunk b begins with; false if it is none of this log.
func logChunk(b []byte, number uint32) (size int, synced uint64, ok bool) {
	kind := b[6]
	if kind < logKindFirst || kind > logKindLast || binary.LittleEndian.Uint32(b[7:]) != number {
		return 0, 0, false
	}
	size = logHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return 0, 0, false
	}
	if !chunkSum(b[:size]) {
		return 0, 0, false
	}
	return size, binary.LittleEndian.Uint64(b[11:]), true
}

// chunkSum says whether a chunk has the checksum it begins with.
func chunkSum(chunk []byte) bool {
	c := crc32.Checksum(chunk[6:], castagnoli())
	return (c>>logCRCRotated|c<<(32-logCRCRotated))+logCRCDelta == binary.LittleEndian.Uint32(chunk)
}

// castagnoli makes the same table each time: package crc32 keeps it.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
