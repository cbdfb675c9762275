package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Fault is how connecting to a host fails, or what is wrong with its cable.
type Fault int

// Faults of an address.
const (
	None        Fault = iota
	BlackHole         // dialing hangs until its context ends; bytes and closes of established connections arrive only once it is over, as TCP's retransmissions do
	Unreachable       // dialing fails with EHOSTUNREACH after three seconds, as when ARP has no answer
)

// bufferSize is what one direction of a connection holds before the writer blocks, like a socket buffer.
const bufferSize = 256 << 10

// Network is a set of addresses. The zero value is not usable; see New.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	faults    map[string]Fault
	hosts     map[string][]string
	latency   time.Duration
	dials     map[string]int
	nextPort  int
	changed   chan struct{} // closed and replaced when a fault changes
}

// New returns an empty network on which every name resolves to nothing but literal addresses and those of SetHost.
func New() *Network {
	return &Network{listeners: map[string]*listener{}, faults: map[string]Fault{}, hosts: map[string][]string{}, dials: map[string]int{}, nextPort: 40000, changed: make(chan struct{})}
}

// SetFault breaks (or with None heals) the way to an address host:port.
func (n *Network) SetFault(addr string, f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[addr] = f
	close(n.changed)
	n.changed = make(chan struct{})
}

// SetLatency delays every byte by d in each direction, for connections dialed from now on.
func (n *Network) SetLatency(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latency = d
}

// SetHost makes LookupHost answer name with addrs.
func (n *Network) SetHost(name string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[name] = addrs
}

// LookupHost resolves literal addresses and what SetHost knows; anything else is not found.
func (n *Network) LookupHost(_ context.Context, name string) ([]string, error) {
	if net.ParseIP(name) != nil {
		return []string{name}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.hosts[name]; len(a) > 0 {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// Dials returns how often addr was dialed.
func (n *Network) Dials(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[addr]
}

func (n *Network) fault(addr string) (Fault, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults[addr], n.changed
}

// Listen opens addr, which must be free.
func (n *Network) Listen(_, addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE}
	}
	l := &listener{n: n, addr: memAddr(addr), queue: make(chan *conn, 128), done: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// DialContext connects to addr the way the network's faults allow.
func (n *Network) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials[addr]++
	f, l, latency := n.faults[addr], n.listeners[addr], n.latency
	n.nextPort++
	local := memAddr(net.JoinHostPort("10.9.9.9", itoa(n.nextPort)))
	n.mu.Unlock()
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: memAddr(addr), Err: err}
	}
	wait := func(d time.Duration) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch f {
	case BlackHole:
		<-ctx.Done()
		return fail(ctx.Err())
	case Unreachable:
		if err := wait(3 * time.Second); err != nil {
			return fail(err)
		}
		return fail(syscall.EHOSTUNREACH)
	}
	if err := wait(2 * latency); err != nil {
		return fail(err)
	}
	if l == nil {
		return fail(syscall.ECONNREFUSED)
	}
	up, down := newPipe(n, addr, latency), newPipe(n, addr, latency)
	client := &conn{r: down, w: up, local: local, remote: memAddr(addr)}
	server := &conn{r: up, w: down, local: memAddr(addr), remote: local}
	select {
	case l.queue <- server:
		return client, nil
	case <-l.done:
		return fail(syscall.ECONNREFUSED)
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}

func itoa(v int) string {
	var b [8]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + v%10)
		if v /= 10; v == 0 {
			return string(b[i:])
		}
	}
}

type memAddr string

func (memAddr) Network() string  { return "tcp" }
func (a memAddr) String() string { return string(a) }

type listener struct {
	n     *Network
	addr  memAddr
	queue chan *conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		delete(l.n.listeners, string(l.addr))
		l.n.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				c.Close()
				continue
			default:
			}
			return
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

// chunk is a write on its way.
type chunk struct {
	b  []byte
	at time.Time
}

// pipe is one direction of a connection.
type pipe struct {
	n       *Network
	addr    string // whose cable it runs through
	latency time.Duration

	mu      sync.Mutex
	chunks  []chunk
	size    int
	closedW bool          // the writer closed: EOF after what is buffered
	closedR bool          // the reader closed: writes fail
	changed chan struct{} // closed and replaced on every change
}

func newPipe(n *Network, addr string, latency time.Duration) *pipe {
	return &pipe{n: n, addr: addr, latency: latency, changed: make(chan struct{})}
}

func (p *pipe) signal() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// deadline is a settable deadline that wakes waiters.
type deadline struct {
	mu      sync.Mutex
	at      time.Time
	changed chan struct{}
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

func (d *deadline) get() (time.Time, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.at, d.changed
}

// sleep waits for a change of the pipe or the deadline, or until at (if not zero).
func sleep(changed, healed <-chan struct{}, d *deadline, at time.Time) error {
	limit, moved := d.get()
	if !limit.IsZero() && !time.Now().Before(limit) {
		return os.ErrDeadlineExceeded
	}
	if !limit.IsZero() && (at.IsZero() || limit.Before(at)) {
		at = limit
	}
	var timer <-chan time.Time
	if !at.IsZero() {
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-changed:
	case <-healed:
	case <-moved:
	case <-timer:
	}
	return nil
}

func (p *pipe) read(b []byte, d *deadline) (int, error) {
	for {
		f, healed := p.n.fault(p.addr)
		p.mu.Lock()
		if p.closedR {
			p.mu.Unlock()
			return 0, net.ErrClosed
		}
		var at time.Time
		if f == BlackHole {
			changed := p.changed
			p.mu.Unlock()
			if err := sleep(changed, healed, d, at); err != nil {
				return 0, err
			}
			continue
		}
		if len(p.chunks) > 0 {
			c := &p.chunks[0]
			if !time.Now().Before(c.at) {
				m := copy(b, c.b)
				c.b = c.b[m:]
				p.size -= m
				if len(c.b) == 0 {
					p.chunks = p.chunks[1:]
				}
				p.signal()
				p.mu.Unlock()
				return m, nil
			}
			at = c.at
		} else if p.closedW {
			p.mu.Unlock()
			return 0, io.EOF
		}
		changed := p.changed
		p.mu.Unlock()
		if err := sleep(changed, nil, d, at); err != nil {
			return 0, err
		}
	}
}

func (p *pipe) write(b []byte, d *deadline) (int, error) {
	total := 0
	for {
		p.mu.Lock()
		switch {
		case p.closedW:
			p.mu.Unlock()
			return total, net.ErrClosed
		case p.closedR:
			p.mu.Unlock()
			return total, syscall.EPIPE
		}
		if room := bufferSize - p.size; room > 0 {
			m := min(room, len(b))
			p.chunks = append(p.chunks, chunk{append([]byte(nil), b[:m]...), time.Now().Add(p.latency)})
			p.size += m
			p.signal()
			total += m
			b = b[m:]
		}
		changed := p.changed
		p.mu.Unlock()
		if len(b) == 0 {
			return total, nil
		}
		if err := sleep(changed, nil, d, time.Time{}); err != nil {
			return total, err
		}
	}
}

type conn struct {
	r, w          *pipe
	local, remote memAddr
	rd, wd        deadline
	once          sync.Once
}

func (c *conn) Read(b []byte) (int, error)  { return c.wrap("read")(c.r.read(b, &c.rd)) }
func (c *conn) Write(b []byte) (int, error) { return c.wrap("write")(c.w.write(b, &c.wd)) }

func (c *conn) wrap(op string) func(int, error) (int, error) {
	return func(n int, err error) (int, error) {
		if err != nil && !errors.Is(err, io.EOF) {
			err = &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
		}
		return n, err
	}
}

// Close lets the other side read what was written, then EOF.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.w.mu.Lock()
		c.w.closedW = true
		c.w.signal()
		c.w.mu.Unlock()
		c.r.mu.Lock()
		c.r.closedR = true
		c.r.chunks, c.r.size = nil, 0
		c.r.signal()
		c.r.mu.Unlock()
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.rd.set(t)
	c.wd.set(t)
	return nil
}
func (c *conn) SetReadDeadline(t time.Time) error  { c.rd.set(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.wd.set(t); return nil }
