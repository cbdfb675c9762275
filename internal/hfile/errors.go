package hfile

import (
	"errors"
	"fmt"
)

// CorruptError says that a file contradicts itself.
type CorruptError struct {
	File   string
	Offset int64 // of the block, or whatever was being read
	What   string
	Err    error // of a decompressor, say; may be nil
}

func (e *CorruptError) Error() string {
	s := fmt.Sprintf("hfile %s: corrupted at offset %d: %s", e.File, e.Offset, e.What)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// UnsupportedError says that a file uses something this package lacks.
type UnsupportedError struct {
	File string
	What string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("hfile %s: unsupported: %s", e.File, e.What)
}

// errShort is what decoders answer when bytes end too early.
var errShort = errors.New("ends too early")
