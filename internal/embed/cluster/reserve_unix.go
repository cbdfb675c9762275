//go:build unix

package cluster

import (
	"net"
	"syscall"
)

// reservation keeps a port for a server while the server is down. It is a
// socket bound to the port that does not listen: connecting to it is refused,
// as to a dead server, but the kernel hands the port to nobody else. Without
// it, the port of a killed server would now and then be taken by an outgoing
// connection, and the restart would fail.
type reservation struct {
	fd   int
	port int
}

// reserve binds the port (0: any free one) at an IPv4 address; "" means all. It
// gives nil where that cannot be done: the port is then simply not kept.
func reserve(address string, port int) *reservation {
	ip := net.IPv4zero.To4()
	if address != "" {
		if ip = net.ParseIP(address).To4(); ip == nil {
			return nil
		}
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil
	}
	sa := &syscall.SockaddrInet4{Port: port}
	copy(sa.Addr[:], ip)
	if syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) == nil && syscall.Bind(fd, sa) == nil {
		if bound, err := syscall.Getsockname(fd); err == nil {
			if in, ok := bound.(*syscall.SockaddrInet4); ok {
				return &reservation{fd: fd, port: in.Port}
			}
		}
	}
	syscall.Close(fd)
	return nil
}

func (r *reservation) release() {
	if r != nil {
		syscall.Close(r.fd)
	}
}
