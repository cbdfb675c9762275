//go:build !unix

package rpc

import "net"

// nonblocking: nothing here writes without waiting; the flusher goroutine does
// all writing.
func nonblocking(net.Conn) func([]byte) (int, error) { return nil }
