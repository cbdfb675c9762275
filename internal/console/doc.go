// Package console is the page on the control port of the embedded cluster: what
// the cluster looks like now, and buttons to break it.
//
// The page (folder web) is plain HTML, CSS and ES modules, built into the
// binary: nothing is fetched from elsewhere, nothing has to be built, and the
// Content-Security-Policy forbids the rest. What it does to the cluster it does
// by the requests of docs/control-api.md; this package answers what those do
// not tell, each in a bounded answer that costs little however busy the cluster
// is:
//
//	/console/map      who holds what: region by region up to a bound, counts beyond
//	/console/rates    calls and latencies of the last minutes, second by second
//	/console/events   the newest events, and how many were passed over
//	/console/regions  some regions of a table, from a key on
//	/console/rows     some rows of a table, from a key on
//
// The page asks again and again instead of holding requests open: a browser has
// six connections to a host for all its tabs.
//
// Invariants: nothing here changes the cluster; answers are bounded; the sampler
// of rates starts with the first request and ends with Close, after which no
// goroutine is left. Who may ask is the caller's business: minihbase refuses
// what comes from other pages before it comes here.
package console
