// Package control is a client of the control port of an embedded cluster: the
// faults and moves of package minihbase over loopback HTTP, for `holdfast ctl`
// and for tests in other processes or languages. The requests are described in
// docs/control-api.md.
//
// A Client holds no state but its address; all methods are safe for concurrent
// use.
package control
