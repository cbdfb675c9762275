package session

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// masterFinder knows the active master, or asks the registry: once, however
// many want to know.
type masterFinder struct {
	core *Core

	mu     sync.Mutex
	known  *health.Server
	flight *masterFlight
}

type masterFlight struct {
	done chan struct{}
	srv  *health.Server
	err  error
}

// masterLookupTimeout bounds one question to the registry. Those who wait ask
// again, within their own time.
const masterLookupTimeout = 5 * time.Second

// find gives the active master; a *RegistryError if there is none.
func (m *masterFinder) find(ctx context.Context) (*health.Server, error) {
	m.mu.Lock()
	if s := m.known; s != nil && s.State() != health.Dead {
		m.mu.Unlock()
		return s, nil
	}
	f := m.flight
	if f == nil {
		f = &masterFlight{done: make(chan struct{})}
		ok := m.core.spawn(func() {
			ctx, cancel := context.WithTimeout(m.core.ctx, masterLookupTimeout)
			defer cancel()
			name, err := m.core.registry.ActiveMaster(ctx)
			if err != nil {
				f.err = m.failed(err)
			} else {
				f.srv = m.core.servers.Get(name)
			}
			m.mu.Lock()
			m.known, m.flight = f.srv, nil
			m.mu.Unlock()
			close(f.done)
		})
		if !ok {
			m.mu.Unlock()
			return nil, ErrClosed
		}
		m.flight = f
	}
	m.mu.Unlock()
	select {
	case <-f.done:
		return f.srv, f.err
	case <-ctx.Done():
		return nil, m.failed(ctx.Err())
	}
}

func (m *masterFinder) failed(err error) error {
	return &RegistryError{What: "active master", Registry: m.core.registry.String(), Err: err}
}

// forget makes the next call ask again, unless another master is known
// already.
func (m *masterFinder) forget(s *health.Server) {
	m.mu.Lock()
	if m.known == s {
		m.known = nil
	}
	m.mu.Unlock()
}

// CallMaster performs a call on the active master, finding it again whenever
// it may have changed. The error is a *retry.Error.
func (c *Core) CallMaster(ctx context.Context, call *ServerCall) (_ Answer, err error) {
	var o op
	o.start(c, ctx, call.config())
	defer func() { o.end(err) }()
	o.at.Master = true
	q := call.request(MasterService)
	for {
		o.waited = true
		o.budget.Enter(retry.Locating)
		o.sent, o.conn = false, nil
		srv, err := c.master.find(o.waiting())
		o.srv = srv
		var cells []byte
		if err == nil {
			cells, err = o.send(&q)
		}
		if err == nil {
			o.budget.Succeeded()
			return Answer{Cells: cells, Attempts: o.budget.Attempts()}, nil
		}
		if err = o.next(err); err != nil {
			return Answer{Attempts: o.budget.Attempts()}, err
		}
	}
}

// CallServer performs a call on one server, without looking for another: it is
// repeated while the server is busy or the answer was lost, but a server that
// is down is an error at once. The error is a *retry.Error.
func (c *Core) CallServer(ctx context.Context, server meta.ServerName, call *ServerCall) (_ Answer, err error) {
	var o op
	o.start(c, ctx, call.config())
	defer func() { o.end(err) }()
	o.stay = true
	o.srv = c.servers.Get(server)
	q := call.request(AdminService)
	for {
		cells, err := o.send(&q)
		if err == nil {
			o.budget.Succeeded()
			return Answer{Cells: cells, Attempts: o.budget.Attempts()}, nil
		}
		if err = o.next(err); err != nil {
			return Answer{Attempts: o.budget.Attempts()}, err
		}
	}
}

func (call *ServerCall) config() retry.Config {
	op := call.Op
	if op == "" {
		op = call.Method
	}
	return retry.Config{Op: op, Idempotency: call.Idempotency}
}

func (call *ServerCall) request(service string) request {
	q := request{
		service: call.Service, method: call.Method, priority: call.Priority, timeout: call.Timeout,
		param: call.Param, result: call.Result,
	}
	if q.service == "" {
		q.service = service
	}
	return q
}
