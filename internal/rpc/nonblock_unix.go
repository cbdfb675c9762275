//go:build unix

package rpc

import (
	"io"
	"net"
	"syscall"
)

// nonblocking gives a function that writes as much as the socket takes at
// once, without ever waiting, and one that tells whether something has come,
// without taking it: an error if nothing will come any more. They are nil if
// conn cannot do that. Neither may be called from two goroutines at once.
//
// Only the types of package net qualify, not whatever embeds them: a wrapper
// that counts or delays bytes must not be bypassed.
func nonblocking(conn net.Conn) (write func(p []byte) (int, error), peek func() (int, error)) {
	var sc syscall.Conn
	switch c := conn.(type) {
	case *net.TCPConn:
		sc = c
	case *net.UnixConn:
		sc = c
	default:
		return nil, nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil, nil
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
	write = func(p []byte) (int, error) {
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
	peek = func() (n int, err error) {
		var rerr error
		err = rc.Read(func(fd uintptr) bool {
			var b [1]byte
			n, _, rerr = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
			return true
		})
		switch {
		case err != nil:
			return 0, err
		case rerr == syscall.EAGAIN || rerr == syscall.EINTR:
			return 0, nil
		case rerr != nil:
			return 0, &net.OpError{Op: "read", Net: conn.RemoteAddr().Network(), Source: conn.LocalAddr(), Addr: conn.RemoteAddr(), Err: rerr}
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
	return write, peek
}
