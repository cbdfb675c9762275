// Package rpc is one connection to one HBase server, for one service and one
// user, shared by any number of calls.
//
// A call goes like this:
//
//  1. Do encodes the request straight into the connection's send buffer, under
//     its lock, and registers the call under a fresh id.
//  2. If nobody is writing, Do writes the buffer itself, without blocking: a
//     lone call costs one system call and no goroutine switch. If the socket is
//     full, or more keeps coming in, a goroutine takes the writing over and
//     ends when the buffer is empty. Whatever was queued meanwhile goes out in
//     one write. Streams that cannot be written without blocking (TLS, SASL
//     wrapping, in-memory pipes) are always written by that goroutine.
//  3. Answers are read in whatever order they come; each is handed to its call,
//     and those nobody waits for any more are dropped. While calls come one at
//     a time the caller reads its answer itself, else the reader goroutine
//     reads for all (see lead.go).
//  4. Do decodes the result on its own goroutine.
//
// Invariants:
//
//   - Do returns when its context ends, whatever the peer or the network does,
//     and without touching other calls: a request that was not yet written is
//     withdrawn, one that was written has its late answer dropped.
//   - Every call ends exactly once: by the answer, its context, or the failure
//     of the connection. Whoever takes it out of the calls ends it.
//   - Call.Sent is false only if the server cannot have got the whole request.
//   - The send buffer is bounded; who finds it full waits, on its context.
//   - A connection fails once, for good, with one cause; it never reconnects.
//     Whoever owns it dials again.
//   - After Close no goroutine of the connection is left.
//
// Locks: token.mu, writer.mu, calls.mu, in this order; none is held while
// reading, writing or waiting.
//
// Called by internal/session and internal/registry; calls internal/wire.
package rpc
