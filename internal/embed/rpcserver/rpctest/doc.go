// Package rpctest is a hand-made HBase RPC client for the embedded servers'
// tests: one blocking socket, frames built by package wire, nothing retried,
// every byte in reach. Only tests import it.
package rpctest
