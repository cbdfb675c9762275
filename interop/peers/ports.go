//go:build linux || darwin

package peers

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The ports of peers lie below the range from which systems take the local ends
// of outgoing connections, in blocks of which each belongs to one user at a
// time.
const (
	firstPort = 20000
	lastPort  = 31999
	blockSize = 20
)

// Ports is a row of ports that no other user of this package has, in whatever
// process, until Release or the end of this process.
type Ports struct {
	First int
	lock  *os.File
}

// ReservePorts finds n consecutive ports on which nobody listens, at most 20.
// Looking alone would not do: servers take seconds before they listen, and
// another package's test might find the same ports free meanwhile.
func ReservePorts(n int) (*Ports, error) {
	if n > blockSize {
		return nil, fmt.Errorf("%d ports at once, at most %d", n, blockSize)
	}
	dir := filepath.Join(os.TempDir(), "holdfast-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	const blocks = (lastPort - firstPort + 1) / blockSize
	for i := range blocks {
		// Processes begin at different places, for the sake of ports that the
		// system has not quite given up after the last user.
		first := firstPort + (os.Getpid()*7+i)%blocks*blockSize
		lock, err := lockFile(filepath.Join(dir, strconv.Itoa(first)))
		if err != nil {
			return nil, err
		}
		if lock == nil {
			continue
		}
		if allFree(first, n) {
			return &Ports{First: first, lock: lock}, nil
		}
		lock.Close()
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d", n, firstPort, lastPort)
}

// Release gives the ports back.
func (p *Ports) Release() { p.lock.Close() }

// lockFile locks a file for as long as it is open; nil if somebody else has it.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, nil
	}
	return f, nil
}

// allFree says whether n ports from first can be listened to.
func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
