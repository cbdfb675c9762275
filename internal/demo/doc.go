// Package demo is Holdfast's main job in one minute: a table under load while
// regions move and split, a table changes its rsgroup and a server dies, with
// an account of every single operation at the end.
//
//	workload.go  writers, counters, readers and a scanner through the client
//	script.go    what happens to the cluster, and when
//	record.go    who completed what, when, and how long it took
//	verdict.go   acknowledged against stored: lost, doubled, failed
//	live.go      the picture in a terminal, or plain lines
//	report.go    the verdict as text, JSON and one self-contained HTML page
//
// The load uses the public client only, so the same code runs against real
// HBase; what differs is the Cluster it is handed, which knows how to move a
// region and whether it may kill a server.
package demo
