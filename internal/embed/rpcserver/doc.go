// Package rpcserver serves HBase's RPC protocol on a listener: preamble,
// connection header, frames, exceptions. Master and region server hang their
// services into it; it knows nothing of tables.
//
// # A call's way
//
// One goroutine per connection reads frames. A call that is alone (nothing
// else has arrived behind it) and whose method is marked Inline runs on that
// very goroutine, and its answer is written from there: a lone Get costs no
// goroutine switch. Should such a call take longer than a tick of the watchdog
// (1-2 ms), another goroutine takes over reading, so no call ever blocks the
// connection's reader for long. Every other call gets a goroutine of its own.
// Answers go out in the order they are ready: whoever has one writes it, and
// with it the answers that came up meanwhile (see writer).
//
// Around every handler, chaos rules are applied and the event log is fed.
//
// # Bounds
//
// Connections are limited in number, and must say who they are within some
// time. Frames are limited in size and in time, and memory for one grows with
// the bytes that arrive. Calls in flight are limited per connection and per
// server, by number and by bytes (frames that are still arriving and blocks
// that were decompressed count); beyond that they are answered
// CallQueueTooBigException. A client that does not read its answers is not read
// from any more, and of its calls that were read those that have not begun
// wait; so with all clients together (Config.MaxUnreadAll).
//
// # Ownership
//
// A call's Param and cells are valid until the handler returns. What a handler
// returns is written before anything of the request is reused, so an answer
// may alias the request.
//
// # Invariants
//
//   - every call read is answered exactly once, or dropped for a reason that
//     the event log tells;
//   - no goroutine of the server is left once Stop or Wait returned;
//   - after Kill nothing more is written.
//
// Locks: Server.mu (connections) before conn.out.mu; neither is held while a
// handler runs or bytes are written.
package rpcserver
