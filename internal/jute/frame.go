package jute

import (
	"encoding/binary"
	"fmt"
	"io"
)

// DefaultMaxFrame is ZooKeeper's jute.maxbuffer: the largest frame body either side accepts unless told otherwise.
const DefaultMaxFrame = 0xfffff

// FrameSlack is what a receiver adds to its limit, because the limit is meant for a node's data and the frame also
// carries a header, a path and a Stat. A server that allows 1 MiB of data sends replies slightly larger than that.
const FrameSlack = 1024

// FrameError reports a length prefix outside 0..max; the stream cannot be followed any further.
type FrameError struct {
	Length int32
	Max    int
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("jute: frame length %d outside 0..%d", e.Length, e.Max)
}

// firstChunk bounds what a length prefix alone can make us allocate: a peer that announces a megabyte and sends
// nothing costs 16 KiB, not a megabyte.
const firstChunk = 16 << 10

// ReadFrame reads one length-prefixed frame of at most max bytes and returns its body in a buffer of its own.
// It returns io.EOF if the stream ends before the first byte, io.ErrUnexpectedEOF if it ends inside the frame, a
// *FrameError for a length outside 0..max, or the reader's error.
func ReadFrame(r io.Reader, max int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	return ReadFrameBody(r, head, max)
}

// ReadFrameBody reads the frame whose length prefix was already read; see ReadFrame.
func ReadFrameBody(r io.Reader, head [4]byte, max int) ([]byte, error) {
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || int64(n) > int64(max) {
		return nil, &FrameError{Length: n, Max: max}
	}
	size := int(n)
	body := make([]byte, min(size, firstChunk))
	got := 0
	for {
		m, err := io.ReadFull(r, body[got:])
		got += m
		if err != nil {
			if err == io.EOF && size > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if got == size {
			return body, nil
		}
		// The peer proved it means it: grow by what was proven, so that memory stays within twice the bytes received.
		grown := make([]byte, min(size, 2*got))
		copy(grown, body)
		body = grown
	}
}
