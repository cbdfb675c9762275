// Package upproc runs the holdfast binary's embedded cluster as a process of
// its own, for tests and benchmarks that must not share a Go runtime with the
// server, or want to kill it.
package upproc
