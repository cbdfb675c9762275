package health

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Config is what a Table needs from its owner. Every field may be zero.
type Config struct {
	// Probe asks a down server whether it answers; nil means yes. It runs on
	// the server's prober and should return soon after ctx ends. Without it,
	// servers are never probed and stay down until Answered.
	Probe func(ctx context.Context, s *Server) error
	// ProbeTimeout bounds one probe: default 5 s.
	ProbeTimeout time.Duration
	// ProbeMin and ProbeMax bound the pause between the starts of two probes,
	// which doubles and has +-25 % jitter: defaults 50 ms and 5 s. While
	// somebody waits for the server it does not grow beyond ProbeWanted:
	// default 700 ms, so that they notice within a second, jitter included.
	ProbeMin, ProbeMax, ProbeWanted time.Duration
	// ProbeIdle ends the probing of a server nobody has asked for since; the
	// next one who asks starts it again: default 1 min.
	ProbeIdle time.Duration
	// Attach makes the owner's value for a new server, see Server.Owner. It is
	// called with the table locked and must not call back.
	Attach func(s *Server) any
	// Changed hears of every change of state, on the goroutine that caused it,
	// with no lock held.
	Changed func(s *Server, from, to State, cause error)
	// MaxInFlight and MinInFlight bound the limit of calls in flight to one
	// server (defaults 4096 and 4), MaxQueue the calls that wait beyond it
	// (default 65536).
	MaxInFlight, MinInFlight, MaxQueue int
	// Logger hears of servers going down and coming back; nil for silence.
	Logger *slog.Logger
}

func (c *Config) defaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.ProbeTimeout, 5*time.Second)
	def(&c.ProbeMin, 50*time.Millisecond)
	def(&c.ProbeMax, 5*time.Second)
	def(&c.ProbeWanted, min(700*time.Millisecond, c.ProbeMax))
	def(&c.ProbeIdle, time.Minute)
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = 4096
	}
	if c.MinInFlight <= 0 {
		c.MinInFlight = 4
	}
	c.MinInFlight = min(c.MinInFlight, c.MaxInFlight)
	if c.MaxQueue <= 0 {
		c.MaxQueue = 65536
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Table holds the servers of one client. Reading is lock-free: the map is
// replaced, never changed.
type Table struct {
	cfg     Config
	servers atomic.Pointer[map[string]*Server] // by host:port

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	usual   atomic.Int64 // UsualP95
	scored  atomic.Int64 // when Observe last did something
	scoring sync.Mutex   // one Observe at a time

	mu     sync.Mutex // writers of servers; closed
	closed bool
}

// NewTable makes an empty table that does not probe.
func NewTable() *Table { return New(Config{}) }

// New makes an empty table. Close ends its probers.
func New(cfg Config) *Table {
	cfg.defaults()
	t := &Table{cfg: cfg}
	//holdfast:allow context probes belong to the table, which outlives every call
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.servers.Store(&map[string]*Server{})
	return t
}

// Close ends the probers and returns when they have ended. States stay as they
// are.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.wg.Wait()
}

// Get gives the Server of the incarnation, making it if needed. Seeing a newer
// start code at a known address replaces the old incarnation, which is dead
// from then on. An older start code than the known one gives a dead Server
// that is not entered in the table. Start code 0 ("unknown") gives whoever is
// known at the address.
func (t *Table) Get(name meta.ServerName) *Server {
	addr := name.Address()
	if s := (*t.servers.Load())[addr]; s != nil && (s.name.StartCode == name.StartCode || name.StartCode == 0) {
		return s
	}
	t.mu.Lock()
	old := (*t.servers.Load())[addr]
	if old != nil && (old.name.StartCode == name.StartCode || name.StartCode == 0) {
		t.mu.Unlock()
		return old
	}
	s := &Server{name: name, addr: addr, table: t, entered: time.Now()}
	s.limit.init(&t.cfg)
	if t.cfg.Attach != nil {
		s.owner = t.cfg.Attach(s)
	}
	if old != nil && old.name.StartCode > name.StartCode {
		t.mu.Unlock()
		s.cause = ErrReplaced
		s.state.Store(uint32(Dead))
		return s
	}
	next := make(map[string]*Server, len(*t.servers.Load())+1)
	for a, v := range *t.servers.Load() {
		next[a] = v
	}
	next[addr] = s
	t.servers.Store(&next)
	t.mu.Unlock()
	if old != nil {
		old.die(ErrReplaced)
	}
	return s
}

// Lookup gives the present incarnation at host:port, or nil.
func (t *Table) Lookup(hostport string) *Server { return (*t.servers.Load())[hostport] }

// All gives the present incarnations in no particular order.
func (t *Table) All() []*Server {
	m := *t.servers.Load()
	all := make([]*Server, 0, len(m))
	for _, s := range m {
		all = append(all, s)
	}
	return all
}

func (t *Table) changed(s *Server, from, to State, cause error) {
	if to != Suspect && !(from == Suspect && to == Healthy) {
		t.cfg.Logger.Info("server changed state", "server", s.name.String(), "from", from.String(), "to", to.String(), "cause", cause)
	}
	if t.cfg.Changed != nil {
		t.cfg.Changed(s, from, to, cause)
	}
}

// want notes that somebody needs the server, and sees to it that a prober
// runs, and soon. Under s.mu.
func (s *Server) want() {
	t := s.table
	now := time.Now()
	s.wanted = now
	if t.cfg.Probe == nil || s.State() == Dead {
		return
	}
	if s.prober {
		if s.nextProbe.Sub(now) > t.cfg.ProbeWanted {
			select {
			case s.poke <- struct{}{}:
			default:
			}
		}
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	s.prober = true
	if s.poke == nil {
		s.poke = make(chan struct{}, 1)
	}
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		t.probe(s)
	}()
}

// probe is the prober: one goroutine per down server, from the first evidence
// to the first answer.
func (t *Table) probe(s *Server) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	pause := t.cfg.ProbeMin
	for {
		s.mu.Lock()
		now := time.Now()
		unwanted := now.Sub(s.wanted)
		if s.State() != Down || unwanted > t.cfg.ProbeIdle {
			s.prober = false
			s.mu.Unlock()
			return
		}
		// The first probe also waits: what just refused will refuse again.
		d := pause
		if unwanted < t.cfg.ProbeWanted {
			d = min(d, t.cfg.ProbeWanted)
		}
		s.nextProbe = s.lastProbe.Add(jitter(d))
		if s.nextProbe.Before(now) {
			s.nextProbe = now
		}
		timer.Reset(s.nextProbe.Sub(now))
		s.mu.Unlock()

		select {
		case <-t.ctx.Done():
		case <-s.probeWake():
		case <-s.poke:
			continue
		case <-timer.C:
		}
		s.mu.Lock()
		if t.ctx.Err() != nil || s.State() != Down {
			s.prober = false
			s.mu.Unlock()
			return
		}
		s.state.Store(uint32(Probing))
		s.lastProbe = time.Now()
		s.mu.Unlock()

		ctx, cancel := context.WithTimeout(t.ctx, t.cfg.ProbeTimeout)
		err := t.cfg.Probe(ctx, s)
		cancel()

		s.mu.Lock()
		if s.State() == Probing {
			s.state.Store(uint32(Down))
		}
		s.mu.Unlock()
		if err == nil {
			s.recover(true)
			pause = t.cfg.ProbeMin
			continue // ends at the top, unless it went down again meanwhile
		}
		pause = min(2*pause, t.cfg.ProbeMax)
	}
}

// probeWake is Up without counting as somebody who needs the server.
func (s *Server) probeWake() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.State() != Down && s.State() != Probing {
		return closedChan
	}
	if s.up == nil {
		s.up = make(chan struct{})
	}
	return s.up
}

func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}
