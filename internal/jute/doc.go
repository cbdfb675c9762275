// Package jute is ZooKeeper's wire format: primitives, frames, the records of the client protocol, its operation codes and its error codes.
//
// It is shared by the client (package zk) and the embedded server (internal/embed/zkserver), so that the two can never disagree quietly.
//
// Invariants:
//   - No reflection and no I/O beyond ReadFrame. Every record knows how to append itself to a [Writer] and how to take itself from a [Reader].
//   - A length or a count is checked against what is left of the frame before anything is allocated for it. The memory a decoder takes is at most a
//     small multiple of the frame it was given, and a frame is at most what the caller of ReadFrame allows.
//   - Decoders never panic, whatever the bytes. A [Reader] remembers its first error; after it, every read yields zero values.
//   - Bytes after a known record are legal (the protocol grows that way) and are ignored.
//
// Slices handed out by a Reader alias the frame; whoever keeps them longer than the frame copies them.
package jute
