//go:build unix

package rpc

import (
	"net"
	"syscall"
)

// nonblocking gives a function that writes as much as the socket takes at
// once, without ever waiting, or nil if conn cannot do that. The function must
// not be called from two goroutines at once.
//
// Only the types of package net qualify, not whatever embeds them: a wrapper
// that counts or delays bytes must not be bypassed.
func nonblocking(conn net.Conn) func(p []byte) (int, error) {
	var sc syscall.Conn
	switch c := conn.(type) {
	case *net.TCPConn:
		sc = c
	case *net.UnixConn:
		sc = c
	default:
		return nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	var (
		buf  []byte
		n    int
		werr error
	)
	// One closure for all writes, so that a write allocates nothing.
	once := func(fd uintptr) bool {
		for {
			n, werr = syscall.Write(int(fd), buf)
			if werr != syscall.EINTR {
				return true // done, whether or not anything was taken
			}
		}
	}
	return func(p []byte) (int, error) {
		buf, n, werr = p, 0, nil
		err := rc.Write(once)
		buf = nil
		switch {
		case err != nil:
			return 0, err
		case werr == syscall.EAGAIN:
			return 0, nil
		case werr != nil:
			return max(n, 0), &net.OpError{Op: "write", Net: conn.RemoteAddr().Network(), Source: conn.LocalAddr(), Addr: conn.RemoteAddr(), Err: werr}
		}
		return n, nil
	}
}
