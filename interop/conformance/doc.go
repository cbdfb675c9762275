// Package conformance runs the client's suite (internal/conformance) on real
// HBase 2.4.17 and 2.6.4, with moves, splits, merges and a kill -9 under load.
// Its tests carry the build tag interop.
package conformance
