// Package chaos decides which calls of the embedded cluster go wrong, and how.
// A rule matches calls by server, service, method, table, region, rows and
// user, picks among the matching ones (skip, every n-th, probability with a
// seed, at most so many times), and does one thing to the picked: delay, hold,
// drop the request, apply it and drop the answer, answer an exception, cut the
// answer short, spoil its cells, let it trickle, close the connection. Rules
// whose action is a lie about hbase:meta choose regions instead of calls, and
// change the rows that readers of hbase:meta are shown.
//
// Invariants: with no rule set a call costs one atomic load, and so does a row
// of hbase:meta. Rules are tried
// in the order they were added; delays add up, the first rule that does
// something else ends the search. A held or delayed call blocks nobody else.
// Given the same rules, seeds and order of calls, the same calls are picked.
//
// rpcserver applies the verdicts around every handler, so calls to the master
// can be hit like any other; the controls add and remove rules. All methods of
// Engine are safe for concurrent use, and work on a nil *Engine, which does
// nothing.
package chaos
