package rpcserver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Config describes a server. Only Services is required.
type Config struct {
	// Name is the server as the cluster knows it, for rules, events and texts.
	Name meta.ServerName
	// Services by the names connection headers ask for.
	Services []*Service
	// ClusterID answers the Regist preamble; nil refuses it as HBase before 2.6
	// does.
	ClusterID func() string

	// MaxFrame bounds a request in bytes; 0 means wire.DefaultMaxFrame.
	MaxFrame int
	// MaxCalls bounds the calls in flight of the server, MaxConnCalls those of
	// one connection; 0 means 32768 and 16384. A call in flight costs a
	// goroutine, some 10 KiB.
	MaxCalls, MaxConnCalls int
	// MaxBytes bounds the requests in flight in bytes
	// (hbase.ipc.server.max.callqueue.size); 0 means 1 GiB.
	MaxBytes int64
	// MaxUnread is how many bytes of answers may wait for a client that does
	// not read before it is not read from any more; 0 means 64 MiB.
	MaxUnread int
	// MaxUnreadAll is how many bytes of answers may wait for all clients
	// together before those with more than 64 KiB of them are not read from any
	// more; 0 means 512 MiB.
	MaxUnreadAll int64
	// MaxConns bounds the connections; more are closed at once. 0 means 16384.
	MaxConns int
	// HandshakeTimeout is how long a connection may take until its connection
	// header is there; 0 means 30 s.
	HandshakeTimeout time.Duration
	// FrameTimeout is how long the rest of a frame may take, and one second more
	// per MiB of it; 0 means 60 s. Between frames a connection may be silent for
	// ever.
	FrameTimeout time.Duration

	// Outliers is told of slow and large calls; nil for none.
	Outliers *Outliers

	Chaos  *chaos.Engine
	Events *eventlog.Log
	// Logger for connection troubles; nil discards.
	Logger *slog.Logger
}

// mode is what the controls ask of the server.
type mode struct {
	// paused: read nothing, write nothing. hung: write nothing.
	paused, hung bool
	slow         time.Duration
	// resumed is closed when the mode ends.
	resumed chan struct{}
}

func (m *mode) normal() bool { return m == nil || !m.paused && !m.hung && m.slow == 0 }
func (m *mode) silent() bool { return m != nil && (m.paused || m.hung) }

// Server serves one listener. Make one with New, run Serve, end it with Stop or
// Kill.
type Server struct {
	cfg      Config
	address  string // for events and rules
	fullName string
	log      *slog.Logger

	mode     atomic.Pointer[mode] // nil = normal
	frames   frames
	workers  workers
	calls    atomic.Int64
	bytes    atomic.Int64
	unread   atomic.Int64 // bytes that wait to be written
	watching atomic.Bool
	inlines  atomic.Uint64 // calls begun inline
	// draining is set by Stop, which waits until early, the number of calls in
	// flight that began before, is 0.
	draining atomic.Bool
	early    atomic.Int64

	ctx    context.Context // ends when the server is killed or stopped
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	closed   bool // no new connections
	services map[string]*Service
	listener net.Listener
	conns    map[*Conn]struct{}
	nextConn uint64
	// unpacking has a place for each cell block being decompressed.
	unpacking chan struct{}
	// drained is closed when the last call begun before Stop ends.
	drained chan struct{}
}

// New makes a server.
func New(cfg Config) *Server {
	cfg.MaxFrame = cmp.Or(cfg.MaxFrame, wire.DefaultMaxFrame)
	cfg.MaxCalls = cmp.Or(cfg.MaxCalls, 32768)
	cfg.MaxConnCalls = cmp.Or(cfg.MaxConnCalls, 16384)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 1<<30)
	cfg.MaxUnread = cmp.Or(cfg.MaxUnread, 64<<20)
	cfg.MaxUnreadAll = cmp.Or(cfg.MaxUnreadAll, 512<<20)
	cfg.MaxConns = cmp.Or(cfg.MaxConns, 16384)
	cfg.HandshakeTimeout = cmp.Or(cfg.HandshakeTimeout, 30*time.Second)
	cfg.FrameTimeout = cmp.Or(cfg.FrameTimeout, 60*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	//holdfast:allow context a server's life is not bounded by its maker's call
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		cfg: cfg, log: cfg.Logger,
		address: cfg.Name.Address(), fullName: cfg.Name.String(),
		ctx: ctx, cancel: cancel,
		services:  make(map[string]*Service, len(cfg.Services)),
		conns:     make(map[*Conn]struct{}),
		unpacking: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	s.workers.s = s
	for _, svc := range cfg.Services {
		s.services[svc.name] = svc
	}
	return s
}

// Serve accepts connections until the server ends, and returns ErrStopped
// then, or the listener's error. It may be called once.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		l.Close()
		return ErrStopped
	}
	s.listener = l
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	delay := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err != nil {
			if s.isClosed() {
				return ErrStopped
			}
			// Out of file descriptors, most likely: try again, ever slower.
			if ne, ok := errors.AsType[net.Error](err); !ok || ne.Timeout() || delay > time.Second {
				return err
			}
			delay = max(2*delay, 5*time.Millisecond)
			if chaos.Sleep(s.ctx, delay) != nil {
				return ErrStopped
			}
			continue
		}
		delay = 0
		s.ServeConn(nc)
	}
}

// ServeConn serves one connection in the background.
func (s *Server) ServeConn(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	if s.closed || len(s.conns) >= s.cfg.MaxConns {
		s.mu.Unlock()
		c.reset()
		return
	}
	s.nextConn++
	c.id = s.nextConn
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		c.start()
	}()
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// forget takes a closed connection off the list.
func (s *Server) forget(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

func (s *Server) connections() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Conn) int { return cmp.Compare(a.id, b.id) })
	return list
}

// ConnInfo describes a connection.
type ConnInfo struct {
	ID      uint64 `json:"id"`
	Remote  string `json:"remote"`
	Service string `json:"service"`
	User    string `json:"user"`
	Calls   int    `json:"calls"` // in flight
}

// Conns lists the connections, oldest first.
func (s *Server) Conns() []ConnInfo {
	var list []ConnInfo
	for _, c := range s.connections() {
		info := ConnInfo{ID: c.id, Remote: c.remote, Calls: int(c.calls.Load())}
		if h := c.header.Load(); h != nil {
			info.Service, info.User = h.service.name, h.user
		}
		list = append(list, info)
	}
	return list
}

// Unread is how many bytes of answers wait to be written, over all connections.
func (s *Server) Unread() int64 { return s.unread.Load() }

// ResetConns resets every connection (the server goes on).
func (s *Server) ResetConns() {
	for _, c := range s.connections() {
		c.reset()
	}
}

// close ends accepting; it says whether this call did.
func (s *Server) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	if s.listener != nil {
		s.listener.Close()
	}
	return true
}

// StopAccepting closes the listener; connections go on.
func (s *Server) StopAccepting() { s.close() }

// Stop closes the listener, waits until the calls that were in flight are
// answered or ctx ends, then closes the connections and waits for the server's
// goroutines. Calls that come meanwhile are served; what they are answered is
// the services' business. The context's error tells that calls were cut off;
// their handlers may still run then, and nobody waits for them (see Wait).
func (s *Server) Stop(ctx context.Context) error {
	s.close()
	s.Resume()
	err := s.drain(ctx)
	for _, c := range s.connections() {
		if err == nil {
			err = c.out.flushed(ctx)
		}
	}
	s.end(false)
	if err == nil {
		s.wg.Wait()
	}
	return err
}

// drain waits until no call from before is in flight.
func (s *Server) drain(ctx context.Context) error {
	s.mu.Lock()
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	c := s.drained
	s.mu.Unlock()
	s.draining.Store(true)
	if s.early.Load() == 0 {
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill ends the server as kill -9 would: listener closed, every connection
// reset, nothing written any more. Handlers that run are told by their context.
func (s *Server) Kill() {
	s.close()
	s.end(true)
}

func (s *Server) end(reset bool) {
	if reset {
		// Before the handlers hear of it: what they answer on being cancelled
		// must not get out of a killed server.
		for _, c := range s.connections() {
			c.reset()
		}
	}
	s.cancel()
	for _, c := range s.connections() {
		if reset {
			c.reset()
		} else {
			c.close()
		}
	}
}

// Wait returns when no goroutine of a server that was stopped or killed is
// left.
func (s *Server) Wait() { s.wg.Wait() }

// Pause stops reading and writing on every connection, as SIGSTOP does;
// handlers already running run on. The kernel still accepts connections and
// bytes.
func (s *Server) Pause() { s.setMode(func(m *mode) { m.paused = true }) }

// Hang goes on reading and working but writes no answers.
func (s *Server) Hang() { s.setMode(func(m *mode) { m.hung = true }) }

// Slow delays every answer by d; 0 ends that.
func (s *Server) Slow(d time.Duration) { s.setMode(func(m *mode) { m.slow = max(d, 0) }) }

// Resume undoes Pause and Hang; answers held back go out.
func (s *Server) Resume() { s.setMode(func(m *mode) { m.paused, m.hung = false, false }) }

func (s *Server) setMode(change func(*mode)) {
	s.mu.Lock()
	old := s.mode.Load()
	var m mode
	if old != nil {
		m = *old
	}
	m.resumed = make(chan struct{})
	change(&m)
	if m.normal() {
		s.mode.Store(nil)
	} else {
		s.mode.Store(&m)
	}
	s.mu.Unlock()
	if old != nil {
		close(old.resumed)
	}
	if !s.mode.Load().silent() {
		for _, c := range s.connections() {
			c.out.kick()
		}
	}
}

// gate waits while the server is paused; false means it ended meanwhile.
func (s *Server) gate(c *Conn) bool {
	for {
		m := s.mode.Load()
		if m == nil || !m.paused {
			return true
		}
		select {
		case <-m.resumed:
		case <-c.ctx.Done():
			return false
		}
	}
}

// callBegins counts a call in flight.
func (s *Server) callBegins(c *Call) (calls, bytes int64) {
	// Counted first and asked afterwards, so that Stop, which sets draining
	// first and looks at the count afterwards, misses no call.
	s.early.Add(1)
	if c.early = !s.draining.Load(); !c.early {
		s.early.Add(-1)
	}
	return s.calls.Add(1), s.bytes.Add(int64(c.size))
}

// callEnds is called for each call that began once.
func (s *Server) callEnds(c *Call) {
	s.bytes.Add(-int64(c.size))
	s.calls.Add(-1)
	if !c.early || s.early.Add(-1) > 0 || !s.draining.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.early.Load() == 0 && s.drained != nil {
		close(s.drained)
		s.drained = nil
	}
}
