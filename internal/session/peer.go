package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// peer holds the connections to one server incarnation, one per service. It is
// attached to its health.Server and dies with it.
//
// Dialing is single-flight and runs on the Core's time, not on a caller's: who
// leaves early leaves the dial to the others. A refused dial is hard evidence
// and marks the server down at once.
type peer struct {
	core *Core
	srv  *health.Server
	name string // host,port,startcode, made once: it goes into every ledger

	client slot // ClientService, the only one on the hot path
	spare  slot // a second connection for ClientService, for hedges
	tokens *retry.Tokens

	mu     sync.Mutex
	others map[string]*slot // by service name
	all    map[*conn]bool   // those that have not ended, in a slot or not
	last   string           // service of the last dial, for the prober
	closed bool
	// scouted are the routes whose callers have waited for the silent server
	// since hbase:meta was last asked about them.
	scouted   map[*route.Route]bool
	scoutNext time.Time

	// told is closed when those who wait for the server have reason to look
	// again; nil while nobody waits.
	told chan struct{}

	waiting atomic.Int64 // callers who wait for the server to answer again

	inVain atomic.Bool // the prober's last ping went unanswered
}

// slot is the place of one connection.
type slot struct {
	conn atomic.Pointer[conn]

	mu     sync.Mutex
	flight *dial
}

// dial is a connection being made.
type dial struct {
	done chan struct{}
	conn *conn
	err  error
}

// conn is a connection with its watcher.
type conn struct {
	*rpc.Conn
	peer    *peer
	slot    *slot
	service string
	since   time.Time     // it was dialed
	poke    chan struct{} // capacity 1: look now whether the server is silent
	gets    combiner
	// owed is when the oldest request was sent that was given up and may still
	// be answered, in nanoseconds since the connection was made; 0 = none.
	owed atomic.Int64
}

func newPeer(c *Core, s *health.Server) *peer {
	return &peer{core: c, srv: s, name: s.Name().String(), last: ClientService, all: make(map[*conn]bool), tokens: retry.NewTokens()}
}

func peerOf(s *health.Server) *peer {
	p, _ := s.Owner().(*peer)
	return p
}

func (p *peer) slotFor(service string) *slot {
	if service == ClientService {
		return &p.client
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.others[service]
	if s == nil {
		s = &slot{}
		if p.others == nil {
			p.others = make(map[string]*slot)
		}
		p.others[service] = s
	}
	return s
}

// get gives the connection for the service, dialing if there is none.
// spare asks for a second one beside the one that all others use.
func (p *peer) get(ctx context.Context, service string, spare bool) (*conn, error) {
	s := p.slotFor(service)
	if spare {
		s = &p.spare
	}
	if c := s.conn.Load(); c != nil && c.Err() == nil {
		return c, nil
	}
	d, err := p.start(s, service)
	if err != nil {
		return nil, err
	}
	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start gives the dial under way, or begins one.
func (p *peer) start(s *slot, service string) (*dial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conn.Load(); c != nil && c.Err() == nil {
		d := &dial{done: make(chan struct{}), conn: c}
		close(d.done)
		return d, nil
	}
	if s.flight != nil {
		return s.flight, nil
	}
	d := &dial{done: make(chan struct{})}
	ok := p.core.spawn(func() {
		d.conn, d.err = p.dial(p.core.ctx, s, service)
		s.mu.Lock()
		s.flight = nil
		if d.err == nil {
			s.conn.Store(d.conn)
		}
		s.mu.Unlock()
		// Evidence first, so that whoever is woken finds the server down.
		if d.err != nil && p.core.ctx.Err() == nil {
			p.dialFailed(d.err)
		}
		close(d.done)
	})
	if !ok {
		return nil, ErrClosed
	}
	s.flight = d
	return d, nil
}

func (p *peer) dial(ctx context.Context, s *slot, service string) (*conn, error) {
	p.mu.Lock()
	p.last = service
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, p.srv.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, p.core.cfg.ConnectTimeout)
	defer cancel()
	began := time.Now()
	rc, err := rpc.Dial(ctx, p.core.rpcConfig(p.srv.Addr(), service))
	if p.core.hooks != nil {
		p.core.hooks.dialed(Conn{Server: p.srv.Name(), Addr: p.srv.Addr(), Service: service, Start: began, Took: time.Since(began), Err: err})
	}
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: rc, peer: p, slot: s, service: service, since: began, poke: make(chan struct{}, 1)}
	c.gets.cn, c.gets.pace.limit = c, p.core.cfg.GetsTogether
	p.mu.Lock()
	if closed = p.closed; !closed {
		p.all[c] = true
	}
	p.mu.Unlock()
	if closed || !p.core.spawn(c.watch) {
		rc.Close()
		if p.core.hooks != nil {
			p.core.hooks.hungUp(Conn{Server: p.srv.Name(), Addr: rc.Addr(), Service: service, Start: began, Took: time.Since(began), Err: rc.Err()})
		}
		if closed {
			return nil, p.srv.Err()
		}
		return nil, ErrClosed
	}
	return c, nil
}

// dialFailed judges a failed dial: a timeout is silence, everything else
// (refused, no route, no such host, not HBase) is hard evidence.
func (p *peer) dialFailed(err error) {
	switch {
	case silence(err):
		p.srv.Silent(err)
		return
	case errors.Is(err, health.ErrServerDown):
		return // the incarnation is over
	}
	p.srv.Refused(err)
}

// silence says whether the evidence against a server is that it says nothing,
// which proves nothing about its regions.
func silence(err error) bool {
	_, silent := errors.AsType[*SilentError](err)
	return silent || errors.Is(err, rpc.ErrConnectTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// interrupt gives up the calls that may be repeated.
func (p *peer) interrupt(err error) {
	for _, c := range p.conns() {
		c.Interrupt(err)
	}
}

// scout sees to it that hbase:meta is asked now and then where the regions are
// whose callers wait for a silent server: silence leaves routes valid, so
// nothing else would find out that the cluster has given the server up. One
// read serves all of them.
func (c *Core) scout(s *health.Server, r *route.Route) {
	p := peerOf(s)
	now := time.Now()
	p.mu.Lock()
	if p.scouted == nil {
		p.scouted = make(map[*route.Route]bool)
	}
	p.scouted[r] = true
	if now.Before(p.scoutNext) {
		p.mu.Unlock()
		return
	}
	p.scoutNext = now.Add(scoutEvery)
	var routes []*route.Route
	for r := range p.scouted {
		if r.Valid() {
			routes = append(routes, r)
		}
	}
	clear(p.scouted) // who still waits comes again
	p.mu.Unlock()
	c.routes.RecheckAll(routes)
}

// news gives a channel that is closed when the server is no longer down, or when
// one of its regions turns out to be elsewhere.
func (p *peer) news() <-chan struct{} {
	up := p.srv.Up()
	p.mu.Lock()
	if p.told == nil {
		p.told = make(chan struct{})
	}
	told := p.told
	p.mu.Unlock()
	if p.srv.Usable() || p.srv.State() == health.Dead {
		return up // closed by now; told may have been closed before it was made
	}
	return told
}

// untilScout is how long it is until hbase:meta is asked again about the
// server's regions, by the first who waits for one then.
func (p *peer) untilScout() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(max(time.Until(p.scoutNext), time.Millisecond), scoutEvery)
}

// left hears that a region of a server that does not answer is elsewhere: others
// may be as well.
func (p *peer) left() {
	p.mu.Lock()
	if soon := time.Now().Add(scoutSoon); soon.Before(p.scoutNext) {
		p.scoutNext = soon
	}
	p.mu.Unlock()
	p.tellNews()
}

func (p *peer) tellNews() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told != nil {
		close(p.told)
		p.told = nil
	}
}

// forgetScouts frees what only a silent server needs.
func (p *peer) forgetScouts() {
	p.mu.Lock()
	p.scouted = nil
	p.mu.Unlock()
}

func (p *peer) conns() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.all))
}

// close ends the connections for good: the incarnation is over.
func (p *peer) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for _, c := range p.conns() {
		c.Close()
	}
}

// ping asks something every server can answer at once. What the answer says
// does not matter.
func (c *conn) ping(ctx context.Context) error {
	call := rpc.Call{Priority: 200}
	switch c.service {
	case MasterService:
		call.Method, call.Param, call.Result = "IsMasterRunning", &pb.IsMasterRunningRequest{}, &pb.IsMasterRunningResponse{}
	case AdminService:
		call.Method, call.Param, call.Result = "GetServerInfo", &pb.GetServerInfoRequest{}, &pb.GetServerInfoResponse{}
	default:
		// A Multi without actions touches no region and takes no lock.
		call.Method, call.Param, call.Result = "Multi", &pb.MultiRequest{}, &pb.MultiResponse{}
	}
	return c.Do(ctx, &call)
}

// alive says whether the outcome of a ping proves a living server: any answer
// does, except one in which the server says that it is not serving.
func alive(err error) bool {
	if err == nil {
		return true
	}
	remote, ok := errors.AsType[*wire.RemoteError](err)
	if !ok {
		return false
	}
	switch remote.Class {
	case wire.ClassRegionServerStopped, wire.ClassRegionServerAborted, wire.ClassServerNotRunningYet, wire.ClassMasterStopped:
		return false
	}
	return true
}

// probe is health's question whether a down server answers. The old connection
// is asked as long as it has not ended, since a frozen process answers there
// first when it goes on. If a ping was in vain, a new connection is tried
// beside it: the old one may lead nowhere any more.
func (c *Core) probe(ctx context.Context, s *health.Server) error {
	p := peerOf(s)
	p.mu.Lock()
	service := p.last
	p.mu.Unlock()
	sl := p.slotFor(service)
	old := sl.conn.Load()
	if old == nil || old.Err() != nil {
		return p.probeAnew(ctx, sl, service)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, 2)
	n := 1
	if p.inVain.Load() && c.spawn(func() { results <- p.probeAnew(ctx, sl, service) }) {
		n++
	}
	if !c.spawn(func() { results <- old.ping(ctx) }) {
		n--
	}
	err := error(ErrClosed)
	for range n {
		if err = <-results; alive(err) {
			p.inVain.Store(false)
			return nil
		}
	}
	p.inVain.Store(true)
	return fmt.Errorf("probe: %w", err)
}

// probeAnew dials and pings, and leaves the connection to the callers if the
// server answers.
func (p *peer) probeAnew(ctx context.Context, sl *slot, service string) error {
	c, err := p.dial(ctx, sl, service)
	if err != nil {
		if ctx.Err() == nil {
			p.dialFailed(err)
		}
		return err
	}
	if err := c.ping(ctx); !alive(err) {
		c.Close()
		return err
	}
	// The old connection stays for the calls that still wait on it, some of
	// which must not be given up; it ends when it is idle.
	sl.conn.Store(c)
	return nil
}
