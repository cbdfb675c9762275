package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// RPCConfig describes a registry of ClientMetaService endpoints.
type RPCConfig struct {
	// Endpoints are host:port of masters or region servers; at least one.
	Endpoints []string
	// User and RealUser as in a connection header.
	User, RealUser string
	// Fanout is how many endpoints are asked at a time: default 2.
	Fanout int
	// ConnectTimeout bounds one dial (default 5 s), IdleTimeout closes an
	// unused connection (default 2 min).
	ConnectTimeout, IdleTimeout time.Duration
	// Dial opens TCP connections; default net.Dialer.
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Logger *slog.Logger
}

const clientMetaService = "ClientMetaService"

const (
	// hedgeDelay is how long the endpoints asked may keep silent before the
	// next ones are asked as well.
	hedgeDelay = 500 * time.Millisecond
	// askTimeout bounds one question to one endpoint.
	askTimeout = 5 * time.Second
	// refreshInterval is how often the list of endpoints is renewed, as HBase's
	// client does (hbase.client.bootstrap.refresh_interval_secs).
	refreshInterval = 5 * time.Minute
	// maxEndpoints bounds the list: a few are enough to find the rest.
	maxEndpoints = 64
)

// rpcRegistry asks masters or region servers. It keeps one connection to each
// endpoint that has answered; they close themselves when idle.
type rpcRegistry struct {
	cfg RPCConfig

	ctx    context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	closed    bool
	wg        sync.WaitGroup
	endpoints []string // the configured ones first
	conns     map[string]*rpc.Conn
	refreshed time.Time
	asking    map[*question]struct{} // under way
}

// question is one that waits for an endpoint.
type question struct {
	what, addr string
	began      time.Time
}

// Trouble tells which endpoints owe an answer.
func (r *rpcRegistry) Trouble() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &EndpointsError{}
	for q := range r.asking {
		e.What = q.what
		e.Endpoints = append(e.Endpoints, EndpointError{q.addr, fmt.Errorf("no answer for %s", time.Since(q.began).Round(time.Millisecond))})
	}
	if len(e.Endpoints) == 0 {
		return nil
	}
	slices.SortFunc(e.Endpoints, func(a, b EndpointError) int { return strings.Compare(a.Addr, b.Addr) })
	return e
}

// OpenRPC makes a registry over ClientMetaService. It does not connect: the
// first question does.
func OpenRPC(cfg RPCConfig) (Registry, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, &AddressError{"hbase+rpc://", []string{"no host"}}
	}
	if cfg.Fanout <= 0 {
		cfg.Fanout = DefaultFanout
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = DefaultConnectTimeout
	}
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = DefaultIdleTimeout
	}
	r := &rpcRegistry{cfg: cfg, endpoints: slices.Clone(cfg.Endpoints), conns: make(map[string]*rpc.Conn), asking: make(map[*question]struct{}), refreshed: time.Now()}
	//holdfast:allow context connections belong to the registry, which outlives every call
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// String gives the address.
func (r *rpcRegistry) String() string { return "hbase+rpc://" + strings.Join(r.cfg.Endpoints, ",") }

// Close ends the connections.
func (r *rpcRegistry) Close() error {
	r.mu.Lock()
	r.closed = true
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
	for _, c := range conns {
		c.Close()
	}
	return nil
}

// EndpointError is what one endpoint said, or that it said nothing.
type EndpointError struct {
	Addr string
	Err  error
}

// EndpointsError says that no endpoint of the registry had an answer.
type EndpointsError struct {
	// What was asked for.
	What      string
	Endpoints []EndpointError
}

func (e *EndpointsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ask for the %s:", e.What)
	for i, p := range e.Endpoints {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, " %s: %v", p.Addr, p.Err)
	}
	return b.String()
}

// Unwrap gives the errors of the endpoints.
func (e *EndpointsError) Unwrap() []error {
	var all []error
	for _, p := range e.Endpoints {
		all = append(all, p.Err)
	}
	return all
}

// spawn runs f on a goroutine Close waits for.
func (r *rpcRegistry) spawn(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.wg.Go(f)
	return true
}

// ask puts a question to random endpoints, Fanout at a time, and gives the
// first good answer. Those who fail or keep silent are followed by the next.
func ask[T any](ctx context.Context, r *rpcRegistry, what string, f func(context.Context, *rpc.Conn) (T, error)) (T, error) {
	var none T
	type reply struct {
		addr  string
		value T
		err   error
	}
	r.mu.Lock()
	order := slices.Clone(r.endpoints)
	r.mu.Unlock()
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })

	// The questions end when this one is answered, or the registry closed.
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	stop := context.AfterFunc(r.ctx, cancel)
	defer stop()

	replies := make(chan reply, len(order))
	out := 0
	more := func() {
		for range r.cfg.Fanout {
			if len(order) == 0 {
				return
			}
			addr := order[0]
			order = order[1:]
			if !r.spawn(func() {
				q := &question{what, addr, time.Now()}
				r.mu.Lock()
				r.asking[q] = struct{}{}
				r.mu.Unlock()
				value, err := askOne(asking, r, addr, f)
				r.mu.Lock()
				delete(r.asking, q)
				r.mu.Unlock()
				replies <- reply{addr, value, err}
			}) {
				return
			}
			out++
		}
	}
	more()
	fail := &EndpointsError{What: what}
	hedge := time.NewTimer(hedgeDelay)
	defer hedge.Stop()
	for out > 0 {
		select {
		case a := <-replies:
			out--
			if a.err == nil {
				r.refreshSoon()
				return a.value, nil
			}
			fail.Endpoints = append(fail.Endpoints, EndpointError{a.addr, a.err})
			if out == 0 {
				more()
				hedge.Reset(hedgeDelay)
			}
		case <-hedge.C:
			more()
			hedge.Reset(hedgeDelay)
		case <-ctx.Done():
			fail.Endpoints = append(fail.Endpoints, EndpointError{"the others", ctx.Err()})
			return none, fail
		}
	}
	if r.ctx.Err() != nil {
		return none, ErrClosed
	}
	if len(fail.Endpoints) == 0 {
		return none, ErrClosed
	}
	return none, fail
}

func askOne[T any](ctx context.Context, r *rpcRegistry, addr string, f func(context.Context, *rpc.Conn) (T, error)) (T, error) {
	var none T
	for again := false; ; again = true {
		c, fresh, err := r.conn(ctx, addr)
		if err != nil {
			return none, err
		}
		v, err := f(ctx, c)
		if err != nil && !fresh && !again && c.Err() != nil && ctx.Err() == nil {
			continue // an old connection may have been closed by the server
		}
		return v, err
	}
}

// conn gives the connection to an endpoint, and whether it is a new one.
func (r *rpcRegistry) conn(ctx context.Context, addr string) (c *rpc.Conn, fresh bool, err error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, false, ErrClosed
	}
	if c = r.conns[addr]; c != nil && c.Err() == nil {
		r.mu.Unlock()
		return c, false, nil
	}
	r.mu.Unlock()
	c, err = rpc.Dial(ctx, rpc.Config{
		Addr: addr, Service: clientMetaService,
		EffectiveUser: r.cfg.User, RealUser: r.cfg.RealUser,
		Dial: r.cfg.Dial, ConnectTimeout: r.cfg.ConnectTimeout, IdleTimeout: r.cfg.IdleTimeout,
		Logger: r.cfg.Logger,
	})
	if err != nil {
		return nil, false, err
	}
	r.mu.Lock()
	old := r.conns[addr]
	switch {
	case r.closed:
		r.mu.Unlock()
		c.Close()
		return nil, false, ErrClosed
	case old != nil && old.Err() == nil: // somebody was faster
		r.mu.Unlock()
		c.Close()
		return old, false, nil
	}
	r.conns[addr] = c
	r.mu.Unlock()
	return c, true, nil
}

// MetaLocation asks for the servers of hbase:meta and takes the primary's.
func (r *rpcRegistry) MetaLocation(ctx context.Context) (meta.ServerName, error) {
	return ask(ctx, r, "location of hbase:meta", func(ctx context.Context, c *rpc.Conn) (meta.ServerName, error) {
		var resp pb.GetMetaRegionLocationsResponse
		call := rpc.Call{Method: "GetMetaRegionLocations", Param: &pb.GetMetaRegionLocationsRequest{}, Result: &resp}
		if err := c.Do(ctx, &call); err != nil {
			return meta.ServerName{}, err
		}
		for _, loc := range resp.MetaLocations {
			if loc.RegionInfo.GetReplicaId() == 0 && loc.ServerName != nil {
				return checkServer(loc.ServerName)
			}
		}
		return meta.ServerName{}, &NotYetError{"hbase:meta", c.Addr(), "the server does not know its location yet"}
	})
}

// ActiveMaster asks for the active master. HBase 1.7 has no such question, but
// one for all masters.
func (r *rpcRegistry) ActiveMaster(ctx context.Context) (meta.ServerName, error) {
	return ask(ctx, r, "active master", func(ctx context.Context, c *rpc.Conn) (meta.ServerName, error) {
		var resp pb.GetActiveMasterResponse
		call := rpc.Call{Method: "GetActiveMaster", Param: &pb.GetActiveMasterRequest{}, Result: &resp}
		err := c.Do(ctx, &call)
		if unknownMethod(err) {
			masters, err := getMasters(ctx, c)
			if err != nil {
				return meta.ServerName{}, err
			}
			for _, m := range masters {
				if m.GetIsActive() {
					return checkServer(m.ServerName)
				}
			}
		} else if err != nil {
			return meta.ServerName{}, err
		}
		if resp.ServerName == nil {
			return meta.ServerName{}, &NotYetError{"active master", c.Addr(), "no master is active"}
		}
		return checkServer(resp.ServerName)
	})
}

// ClusterID asks for the cluster's id.
func (r *rpcRegistry) ClusterID(ctx context.Context) (string, error) {
	return ask(ctx, r, "cluster id", func(ctx context.Context, c *rpc.Conn) (string, error) {
		var resp pb.GetClusterIdResponse
		call := rpc.Call{Method: "GetClusterId", Param: &pb.GetClusterIdRequest{}, Result: &resp}
		if err := c.Do(ctx, &call); err != nil {
			return "", err
		}
		if resp.GetClusterId() == "" {
			return "", &NotYetError{"cluster id", c.Addr(), "the server does not know it yet"}
		}
		return resp.GetClusterId(), nil
	})
}

func getMasters(ctx context.Context, c *rpc.Conn) ([]*pb.GetMastersResponseEntry, error) {
	var resp pb.GetMastersResponse
	err := c.Do(ctx, &rpc.Call{Method: "GetMasters", Param: &pb.GetMastersRequest{}, Result: &resp})
	return resp.MasterServers, err
}

// unknownMethod recognises the answer of an older server.
func unknownMethod(err error) bool {
	remote, ok := errors.AsType[*wire.RemoteError](err)
	return ok && remote.DoNotRetry && !remote.Fatal()
}

// refreshSoon renews the list of endpoints in the background when it is time:
// the configured ones stay, the cluster's own come on top.
func (r *rpcRegistry) refreshSoon() {
	r.mu.Lock()
	due := !r.closed && time.Since(r.refreshed) >= refreshInterval
	if due {
		r.refreshed = time.Now()
	}
	r.mu.Unlock()
	if due {
		r.spawn(r.refresh)
	}
}

func (r *rpcRegistry) refresh() {
	nodes, err := ask(r.ctx, r, "list of bootstrap nodes", func(ctx context.Context, c *rpc.Conn) ([]string, error) {
		var resp pb.GetBootstrapNodesResponse
		err := c.Do(ctx, &rpc.Call{Method: "GetBootstrapNodes", Param: &pb.GetBootstrapNodesRequest{}, Result: &resp})
		var names []*pb.ServerName
		if unknownMethod(err) {
			var masters []*pb.GetMastersResponseEntry
			masters, err = getMasters(ctx, c)
			for _, m := range masters {
				names = append(names, m.ServerName)
			}
		} else {
			names = resp.ServerName
		}
		if err != nil {
			return nil, err
		}
		var addrs []string
		for _, n := range names {
			if s, err := checkServer(n); err == nil {
				addrs = append(addrs, s.Address())
			}
		}
		return addrs, nil
	})
	if err != nil {
		return // the list we have is good enough; the next time is soon
	}
	list := slices.Clone(r.cfg.Endpoints)
	for _, n := range nodes {
		if !slices.Contains(list, n) && len(list) < maxEndpoints {
			list = append(list, n)
		}
	}
	r.mu.Lock()
	r.endpoints = list
	var gone []*rpc.Conn
	for addr, c := range r.conns {
		if !slices.Contains(list, addr) {
			delete(r.conns, addr)
			gone = append(gone, c)
		}
	}
	r.mu.Unlock()
	for _, c := range gone {
		c.Close()
	}
}
