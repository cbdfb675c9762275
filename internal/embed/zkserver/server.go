package zkserver

import (
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Server is a running ZooKeeper endpoint. All methods are safe for concurrent use.
type Server struct {
	cfg     Config
	log     *slog.Logger
	started time.Time
	members []*member
	faultMu sync.Mutex // serialises setFault; taken before mu
	stallMu sync.Mutex // serialises the steps of StallLeader and Resume; taken before faultMu
	stalled int        // calls of StallLeader and Resume so far; guarded by stallMu

	mu           sync.Mutex // see the package comment
	nodes        map[string]*node
	bytes        int64 // paths and data
	weight       int64 // about what the tree takes in memory
	zxid         int64
	watches      *watchTable
	sessions     map[int64]*session
	buckets      map[int64]map[*session]struct{}
	nextSession  int64
	conns        map[*conn]struct{}
	leader       int
	expiryPaused bool
	minSession   time.Duration
	maxSession   time.Duration
	closed       bool
	stats        stats
	scripts      []*time.Timer // running StallLeader steps

	incoming budget
	outgoing atomic.Int64 // bytes that wait to be written

	expiryWake chan struct{} // size one
	done       chan struct{}
	wg         sync.WaitGroup
}

// stats are the counters the four-letter words print. Guarded by Server.mu.
type stats struct {
	received, sent int64
	// authFailed, rejected connections and expired sessions, since the start or the last srst.
	authFailed, rejected, expired int64
	latencyMin, latencyMax        time.Duration
	latencySum                    time.Duration
	latencyCount                  int64
}

// Start opens the listeners and serves. The error says which part of the configuration or which address was at fault;
// nothing is left open then.
func Start(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, started: cfg.Now(),
		nodes: map[string]*node{}, watches: newWatchTable(cfg.SeparateWatchModes, cfg.MaxWatches), sessions: map[int64]*session{}, buckets: map[int64]map[*session]struct{}{},
		conns: map[*conn]struct{}{}, leader: cfg.Leader, minSession: cfg.MinSessionTimeout, maxSession: cfg.MaxSessionTimeout,
		expiryWake: make(chan struct{}, 1), done: make(chan struct{}), zxid: int64(cfg.Epoch) << 32, incoming: budget{free: cfg.MaxIncoming},
	}
	open := jute.OpenACL()
	// Their data is empty, not absent, which clients can tell apart.
	s.nodes["/"] = &node{data: []byte{}, acl: open, children: map[string]struct{}{"zookeeper": {}}}
	s.nodes["/zookeeper"] = &node{data: []byte{}, acl: open, children: map[string]struct{}{"config": {}, "quota": {}}}
	s.nodes["/zookeeper/config"] = &node{data: []byte{}, aversion: -1, acl: []jute.ACL{{Perms: jute.PermRead, Scheme: "world", ID: "anyone"}}}
	s.nodes["/zookeeper/quota"] = &node{data: []byte{}, acl: open}
	for path, n := range s.nodes {
		s.bytes += int64(len(path))
		s.weight += n.weight(path)
	}
	s.restore(cfg.Restore)

	listeners := cfg.Listeners
	if len(listeners) == 0 {
		for _, a := range cfg.Addrs {
			ln, err := cfg.Listen("tcp", a)
			if err != nil {
				for _, l := range listeners {
					l.Close()
				}
				return nil, fmt.Errorf("zkserver: listen on %s: %w", a, err)
			}
			listeners = append(listeners, ln)
		}
	}
	for i, ln := range listeners {
		m := &member{s: s, index: i, addr: ln.Addr(), ln: ln, changed: make(chan struct{})}
		s.members = append(s.members, m)
	}
	for _, m := range s.members {
		s.wg.Add(1)
		go m.acceptLoop(m.ln)
	}
	s.wg.Add(1)
	go s.expiryLoop()
	return s, nil
}

// Addr returns the first member's address, host:port.
func (s *Server) Addr() string { return s.members[0].Addr() }

// Addrs returns every member's address.
func (s *Server) Addrs() []string {
	out := make([]string, len(s.members))
	for i, m := range s.members {
		out[i] = m.Addr()
	}
	return out
}

// Member returns the i-th member (from 0) of the virtual ensemble. It panics like an index if there is no such member.
func (s *Server) Member(i int) *Member { return &Member{s.members[i]} }

// Members returns how many members there are.
func (s *Server) Members() int { return len(s.members) }

// Close stops listening, drops every connection without a word and waits for the server's goroutines. It may be called again.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	close(s.done)
	for _, t := range s.scripts {
		t.Stop()
	}
	conns := s.connList()
	s.mu.Unlock()
	for _, m := range s.members {
		m.stopListening()
	}
	for _, c := range conns {
		c.drop()
	}
	s.wg.Wait()
	return nil
}

// Queued is how many bytes of replies and events wait to be written, over all connections.
func (s *Server) Queued() int64 { return s.outgoing.Load() }

func (s *Server) connList() []*conn {
	out := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	return out
}

// member is one listener of the virtual ensemble.
type member struct {
	s     *Server
	index int
	addr  net.Addr

	mu      sync.Mutex
	ln      net.Listener // nil while refusing
	fault   Fault
	changed chan struct{} // closed and replaced when fault changes
}

func (m *member) Addr() string { return m.addr.String() }

func (m *member) current() (Fault, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fault, m.changed
}

func (m *member) stopListening() {
	m.mu.Lock()
	ln := m.ln
	m.ln = nil
	m.mu.Unlock()
	if ln != nil {
		ln.Close()
	}
}

func (m *member) acceptLoop(ln net.Listener) {
	defer m.s.wg.Done()
	for {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		if f, _ := m.current(); f.Mode == Hangup {
			nc.Close()
			continue
		}
		m.s.serve(m, nc)
	}
}

// serve starts a connection's two goroutines, unless the server is closed or full.
func (s *Server) serve(m *member, nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= s.cfg.MaxConns {
		s.stats.rejected++
		nc.Close()
		return
	}
	c := newConn(s, m, nc)
	s.conns[c] = struct{}{}
	s.wg.Add(2)
	go c.readLoop()
	go c.writeLoop()
}
