// Package wire is HBase's RPC format, without connections: the preamble and
// connection header, request and response frames, cell blocks and their
// compression, and the exceptions servers answer with.
//
//	connection := preamble (6 bytes), [SASL], i32 n, ConnectionHeader, frame*
//	frame      := i32 total, varint, header, varint, message, cell block
//
// Both directions are here, since the client and the embedded server speak the
// same bytes. Everything is a function of bytes: no goroutines, no clock, no
// state shared between calls.
//
// Invariants:
//
//   - a length read from a peer is checked against a limit before anything of
//     that size is allocated, and large bodies are read in growing steps, so a
//     peer costs us no more memory than the bytes it really sends;
//   - decoders give slices of the buffer they were handed (documented where
//     they do) and never write to it;
//   - malformed input is a *FormatError, too much of it a *TooLargeError, an
//     exception of the peer a *RemoteError; nothing panics;
//   - text that comes from servers is parsed in errors.go and nowhere else.
//
// Anyone above may import wire; it imports internal/pb and internal/cells.
package wire
