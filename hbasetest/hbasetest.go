package hbasetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// patience is how long a helper without a context may take.
const patience = 10 * time.Second

// Cluster is a cluster for one test. Its methods that return no error end the
// test if they fail.
type Cluster struct {
	*minihbase.Cluster
	t       testing.TB
	options []hbase.Option
	since   uint64 // the last event before the test

	mu     sync.Mutex
	client *hbase.Client // nil until it is asked for
}

// Run starts a cluster that ends with the test.
func Run(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	cfg := configure(opts)
	m, err := minihbase.Start(t.Context(), cfg.cluster)
	if err != nil {
		t.Fatalf("hbasetest: %v", err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("hbasetest: the cluster did not end well: %v", err)
		}
	})
	return newCluster(t, m, cfg)
}

func configure(opts []Option) config {
	var cfg config
	for _, o := range opts {
		o(&cfg)
	}
	return cfg
}

// newCluster ties a running cluster to a test. What is registered last is done
// first: the report shows the cluster as the test left it.
func newCluster(t testing.TB, m *minihbase.Cluster, cfg config) *Cluster {
	c := &Cluster{Cluster: m, t: t, options: cfg.client, since: m.Events().LastSeq()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.report())
		}
		// What a rule holds must not hold up the client's end, nor outlast the
		// test on a shared cluster.
		c.ClearRules()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.client != nil {
			if err := c.client.Close(); err != nil {
				t.Errorf("hbasetest: the client did not end well: %v", err)
			}
		}
	})
	return c
}

// Client is a client of the cluster; it is made at the first call and closed
// with the test.
func (c *Cluster) Client() *hbase.Client {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		ctx, cancel := c.limit()
		defer cancel()
		client, err := hbase.Open(ctx, c.Address(), c.options...)
		if err != nil {
			c.t.Fatalf("hbasetest: client: %v", err)
		}
		c.client = client
	}
	return c.client
}

// withMaster does what needs an active master; while a backup takes over there
// is none, and it waits.
func (c *Cluster) withMaster(ctx context.Context, f func() error) error {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for {
		err := f()
		if !errors.Is(err, minihbase.ErrNoMaster) {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return err
		}
	}
}

// limit is the context of a helper that was given none.
func (c *Cluster) limit() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.t.Context(), patience)
}

// Shared is a cluster for many tests, one after the other. All methods are safe
// for concurrent use.
type Shared struct {
	m   *minihbase.Cluster
	cfg config

	turn chan struct{} // holds one token: who has it uses the cluster
	mu   sync.Mutex
	user testing.TB
}

// Start starts a cluster for TestMain; Close ends it.
func Start(ctx context.Context, opts ...Option) (*Shared, error) {
	cfg := configure(opts)
	m, err := minihbase.Start(ctx, cfg.cluster)
	if err != nil {
		return nil, fmt.Errorf("hbasetest: %w", err)
	}
	return &Shared{m: m, cfg: cfg, turn: make(chan struct{}, 1)}, nil
}

// Address is what clients connect to, the same for all tests.
func (s *Shared) Address() string { return s.m.Address() }

// Close ends the cluster.
func (s *Shared) Close() error { return s.m.Close() }

// Use gives the cluster to a test until it ends, in the shape it had at first:
// no tables, no faults, every server alive, the clock the system's. Parallel
// tests wait for each other. A test, its subtests included, uses a shared
// cluster once: a second Use in the same test ends it, in a subtest it would
// wait for its own parent.
func (s *Shared) Use(t testing.TB) *Cluster {
	t.Helper()
	s.mu.Lock()
	mine := s.user == t
	s.mu.Unlock()
	if mine {
		t.Fatal("hbasetest: the test uses this shared cluster already; keep what the first Use gave, or call its Reset")
	}
	select {
	case s.turn <- struct{}{}:
	case <-t.Context().Done():
		t.Fatalf("hbasetest: waiting for the shared cluster: %v", t.Context().Err())
	}
	s.setUser(t)
	t.Cleanup(func() {
		s.setUser(nil)
		<-s.turn
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.m.Reset(ctx); err != nil {
		t.Fatalf("hbasetest: reset: %v", err)
	}
	return newCluster(t, s.m, s.cfg)
}

func (s *Shared) setUser(t testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = t
}

// Main is a TestMain with a shared cluster: it starts one, puts it into *shared,
// runs the tests, ends it, and gives the exit code.
//
//	var shared *hbasetest.Shared
//
//	func TestMain(m *testing.M) { os.Exit(hbasetest.Main(m, &shared)) }
func Main(m interface{ Run() int }, shared **Shared, opts ...Option) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := Start(ctx, opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*shared = s
	code := m.Run()
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(errors.New("hbasetest: the shared cluster did not end well"), err))
		return max(code, 1)
	}
	return code
}
