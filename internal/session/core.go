package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
)

// Core is one client's machinery. Safe for concurrent use.
type Core struct {
	cfg      Config
	registry registry.Registry
	owned    bool // the registry is ours to close
	servers  *health.Table
	routes   *route.Cache
	master   masterFinder
	tokens   *retry.Tokens
	hooks    *Hooks // nil: nobody looks
	hedges   hedges
	// Requests to replicas, and answers of theirs that were used.
	replicaReads, replicaAnswers atomic.Int64
	// askingSince is when the question to the registry began that is waiting
	// for its answer, in Unix nanoseconds; 0 if there is none.
	askingSince atomic.Int64

	nonceGroup uint64
	nonces     atomic.Uint64

	// ctx is the root of all shared work: dials, pings, lookups.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // guards closed against wg.Add after wg.Wait
	closed bool
	wg     sync.WaitGroup
}

// Open checks the configuration and makes a Core. It does not need the cluster
// to be reachable: the first call finds out. ctx lends its values to the
// Core's own work, which goes on when ctx ends.
func Open(ctx context.Context, cfg Config) (*Core, error) {
	addr, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c := &Core{cfg: cfg, registry: cfg.Registry, tokens: retry.NewTokens(), hooks: NewHooks(cfg.Hooks)}
	if c.registry == nil {
		if c.registry, err = openRegistry(addr, &c.cfg); err != nil {
			return nil, err
		}
		c.owned = true
	}
	var seed [16]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("nonce group: %w", err)
	}
	c.nonceGroup = binary.BigEndian.Uint64(seed[:8])
	c.nonces.Store(binary.BigEndian.Uint64(seed[8:]))

	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.master.core = c
	c.servers = health.New(health.Config{
		Probe:       c.probe,
		Attach:      func(s *health.Server) any { return newPeer(c, s) },
		Changed:     c.serverChanged,
		MaxInFlight: c.cfg.MaxInFlight,
		MaxQueue:    c.cfg.maxQueue,
		Logger:      c.cfg.Logger,
	})
	c.routes = route.New(route.Config{
		Source: metaReader{c}, Servers: c.servers, Logger: c.cfg.Logger, Rand: c.cfg.Rand, GateWaiters: c.cfg.gateWaiters,
		Locator: func(ctx context.Context) (meta.ServerName, error) {
			began := time.Now()
			c.askingSince.CompareAndSwap(0, began.UnixNano())
			server, err := c.registry.MetaLocation(ctx)
			c.askingSince.Store(0)
			if c.hooks != nil {
				read := MetaRead{Kind: "registry", Asked: 1, Start: began, Took: time.Since(began), Err: err}
				if err == nil {
					read.Found = 1
				}
				c.hooks.metaRead(ctx, read)
			}
			if err != nil {
				err = c.registryError("server of hbase:meta", err)
			}
			return server, err
		},
		Why:           c.registryTrouble,
		Left:          func(s *health.Server) { peerOf(s).left() },
		WatchInterval: c.cfg.MetaWatch,
		MetaReplicas:  c.metaReplicas(),
	})
	return c, nil
}

// metaReplicas is how the replicas of hbase:meta are found; nil if they are not
// to be used.
func (c *Core) metaReplicas() route.MetaReplicas {
	r, ok := c.registry.(registry.Replicated)
	if !ok || !c.cfg.MetaReplicas {
		return nil
	}
	return r.MetaReplicas
}

func (c *Core) registryError(what string, err error) error {
	return &RegistryError{What: what, Registry: c.registry.String(), Err: err}
}

// registryTrouble tells what the registry is struggling with, nil if nobody
// waits for it.
func (c *Core) registryTrouble() error {
	since := c.askingSince.Load()
	if since == 0 {
		return nil
	}
	var err error
	if r, ok := c.registry.(registry.Troubled); ok {
		err = r.Trouble()
	}
	if err == nil {
		err = fmt.Errorf("no answer for %s", time.Since(time.Unix(0, since)).Round(time.Millisecond))
	}
	return c.registryError("server of hbase:meta", err)
}

func openRegistry(addr *registry.Address, cfg *Config) (registry.Registry, error) {
	if addr.Kind == registry.RPC {
		return registry.OpenRPC(registry.RPCConfig{
			Endpoints: addr.Servers, User: cfg.User, RealUser: cfg.RealUser, Fanout: cfg.fanout,
			ConnectTimeout: cfg.ConnectTimeout, IdleTimeout: cfg.IdleTimeout, Dial: cfg.Dial, Logger: cfg.Logger,
		})
	}
	return registry.OpenZooKeeper(registry.ZooKeeperConfig{
		Servers: addr.Servers, ZNodeParent: addr.ZNodeParent, SessionTimeout: cfg.SessionTimeout,
		Dial: cfg.Dial, Logger: cfg.Logger,
	})
}

// serverChanged spreads the news about a server's state.
func (c *Core) serverChanged(s *health.Server, from, to health.State, cause error) {
	if to == health.Healthy || to == health.Dead {
		defer peerOf(s).tellNews()
	}
	if c.hooks != nil {
		c.hooks.serverChanged(ServerEvent{Server: s.Name(), From: from, To: to, Cause: cause, At: time.Now()})
		if to == health.Dead || to == health.Down && !silence(cause) {
			c.hooks.routeChanged(RouteEvent{Change: ServerForgotten, From: s.Name(), Cause: cause})
		}
	}
	switch to {
	case health.Down:
		// Those who may repeat their request need not wait for the answer of a
		// silent server: they look for the region elsewhere, or wait until it
		// goes on.
		peerOf(s).interrupt(downError(s, to, cause))
		c.routes.ServerDown(s)
	case health.Dead:
		peerOf(s).forgetScouts()
		peerOf(s).interrupt(downError(s, to, cause))
		c.routes.ServerDown(s)
		// Closing waits for the connections' goroutines, and this one may hold
		// up others; what was in flight gets its error from the close.
		c.spawn(peerOf(s).close)
	case health.Healthy:
		peerOf(s).forgetScouts()
		if from != health.Suspect {
			c.routes.ServerUp(s)
		}
	}
}

// downError is what calls in flight are given up with. The server may have come
// back in the meantime, but they are given up, and that needs a reason.
func downError(s *health.Server, state health.State, cause error) error {
	if err := s.Err(); err != nil {
		return err
	}
	return &health.DownError{Server: s.Name(), Since: time.Now(), Cause: cause, Dead: state == health.Dead}
}

// rpcConfig describes a connection.
func (c *Core) rpcConfig(addr, service string) rpc.Config {
	return rpc.Config{
		Addr: addr, Service: service,
		EffectiveUser: c.cfg.User, RealUser: c.cfg.RealUser,
		Compression:    c.cfg.Compressor,
		Dial:           c.cfg.Dial,
		ConnectTimeout: c.cfg.ConnectTimeout, IdleTimeout: c.cfg.IdleTimeout,
		Logger: c.cfg.Logger,
	}
}

// spawn runs f on a goroutine that Close waits for; false if closed.
func (c *Core) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(f)
	return true
}

// Close ends every call with ErrClosed, closes the connections, and returns
// when no goroutine of the Core is left.
func (c *Core) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.wg.Wait()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.cancel() // ends dials, pings and, through their watchers, connections
	c.routes.Close()
	c.servers.Close()
	c.wg.Wait()
	if c.owned {
		return c.registry.Close()
	}
	return nil
}

// Routes gives the cache of routes.
func (c *Core) Routes() *route.Cache { return c.routes }

// Servers gives the servers met so far.
func (c *Core) Servers() *health.Table { return c.servers }

// Registry gives the registry.
func (c *Core) Registry() registry.Registry { return c.registry }

// ClusterID asks the registry for the cluster's identity.
func (c *Core) ClusterID(ctx context.Context) (string, error) {
	id, err := c.registry.ClusterID(ctx)
	if err != nil {
		return "", c.registryError("id of the cluster", err)
	}
	return id, nil
}

// Config gives the effective configuration; see Config.Effective.
func (c *Core) Config() Config { return c.cfg }

// NonceGroup is this client's nonce group: random, so that two clients cannot
// take each other's requests for repetitions.
func (c *Core) NonceGroup() uint64 { return c.nonceGroup }

// NewNonce gives a fresh nonce within NonceGroup, never 0.
func (c *Core) NewNonce() uint64 {
	for {
		if n := c.nonces.Add(1); n != 0 {
			return n
		}
	}
}
