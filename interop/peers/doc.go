// Package peers runs real Apache HBase clusters for interop tests, by the
// script beside it. Tests that use it carry the build tag interop; make interop
// fetches what they need and sets HOLDFAST_PEERS.
package peers
