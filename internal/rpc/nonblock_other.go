//go:build !unix

package rpc

import "net"

// nonblocking: nothing here reads or writes without waiting; the flusher
// goroutine does all writing.
func nonblocking(net.Conn) (write func([]byte) (int, error), peek func() (int, error)) {
	return nil, nil
}
