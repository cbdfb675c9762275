package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// The engine's manifest, the list of its files, has the form of a log with
// shorter headers: checksum, length, kind.
const (
	manifestHeader   = 7
	manifestKindLast = 4
)

// checkManifest looks for damage in the manifest that the engine would take for
// its end. It would then know nothing of the files that later changes name, and
// remove them. A manifest ends in the middle of a chunk where the machine
// stopped; but it is never written on behind that, so a later chunk that makes
// sense proves damage. strict finds damage in the last chunk, too: one that is
// as long as it says, and not what was written. After the machine has stopped,
// that can be a write that was never finished.
func checkManifest(fsys vfs.FS, dir string, strict bool) error {
	name, err := atomicfs.ReadMarker(fsys, dir, "manifest")
	if err != nil || name == "" {
		return dirError(dir, err)
	}
	f, err := fsys.Open(fsys.PathJoin(dir, name))
	if err != nil {
		return dirError(dir, err)
	}
	at, err := manifestDamagedAt(f, strict)
	if err = errors.Join(err, f.Close()); err != nil {
		return dirError(dir, err)
	}
	if at >= 0 {
		return fmt.Errorf("store %s: %w: %s at offset %d: bytes are not what was written (files that are listed behind it would be lost; restore the file)", dir, ErrCorrupted, name, at)
	}
	return nil
}

// manifestDamagedAt is the offset of the damage; -1 if there is none.
func manifestDamagedAt(in io.Reader, strict bool) (int64, error) {
	block := make([]byte, logBlock)
	bad := int64(-1)
	whole := false // the bad chunk is as long as it says
	for base := int64(0); ; base += logBlock {
		n, err := io.ReadFull(in, block)
		if errors.Is(err, io.EOF) {
			if strict && whole {
				return bad, nil
			}
			return -1, nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return -1, err
		}
		b := block[:n]
		at := 0
		for bad < 0 && at+manifestHeader <= len(b) {
			size, ok := manifestChunk(b[at:])
			if ok {
				at += size
				continue
			}
			bad = base + int64(at)
			// What was not written of a chunk is zeros at its end.
			whole = size > manifestHeader && slices.ContainsFunc(b[at+max(manifestHeader, size-8):at+size], func(c byte) bool { return c != 0 })
			at++
		}
		for ; bad >= 0 && at+manifestHeader <= len(b); at++ {
			if _, ok := manifestChunk(b[at:]); ok {
				return bad, nil
			}
		}
	}
}

// manifestChunk reads the chunk b begins with. Its size is 0 if it is none, or
// does not fit.
func manifestChunk(b []byte) (size int, ok bool) {
	if kind := b[6]; kind == 0 || kind > manifestKindLast {
		return 0, false
	}
	size = manifestHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return 0, false
	}
	return size, chunkSum(b[:size])
}
