package minihbase_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// slack is what a call may take beyond its deadline here. The promise is 5 ms;
// machines that run tests are busy, so the figure is printed and only what is
// far off fails.
const slack = 50 * time.Millisecond

// impostor listens and does to each connection what a server that is not HBase
// does.
func impostor(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[nc] = true
			mu.Unlock()
			wg.Go(func() { serve(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for nc := range open {
			nc.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// web answers whatever comes as a web server does.
func web(nc net.Conn) {
	buf := make([]byte, 4096)
	if n, err := nc.Read(buf); n > 0 && err == nil {
		_, _ = nc.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request"))
	}
	nc.Close()
}

// banner speaks first, as sshd does.
func banner(nc net.Conn) {
	_, _ = nc.Write([]byte("SSH-2.0-OpenSSH_9.6\r\n"))
	buf := make([]byte, 4096)
	for {
		if _, err := nc.Read(buf); err != nil {
			return
		}
	}
}

// silent accepts and says nothing.
func silent(nc net.Conn) {
	buf := make([]byte, 4096)
	for {
		if _, err := nc.Read(buf); err != nil {
			return
		}
	}
}

// nobody is an address where nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func getRow(ctx context.Context, tab *hbase.Table) error {
	_, err := tab.Get(ctx, hbase.NewGet("row-1"))
	return err
}

// Every error is typed, names what it is about, says what was tried and where
// the time went, comes in time, and leaves nothing behind.
func TestErrors(t *testing.T) {
	const second = time.Second
	tests := []struct {
		name     string
		kind     string                                          // as hbase.Explain has it; not looked at if empty
		address  func(t *testing.T, c *minihbase.Cluster) string // the cluster's own if nil
		before   func(t *testing.T, c *minihbase.Cluster)
		table    string // "t" if empty
		op       func(ctx context.Context, tab *hbase.Table) error
		deadline time.Duration
		// early: the error is final and comes at once, long before the deadline.
		early bool
		is    []error
		as    func(err error) bool
		says  []string
	}{
		{
			name: "wrong port of ZooKeeper", kind: "ZooKeeper unreachable",
			address:  func(t *testing.T, _ *minihbase.Cluster) string { return "hbase://" + nobody(t) + "/hbase" },
			deadline: 250 * time.Millisecond,
			is:       []error{context.DeadlineExceeded, hbase.ErrRetriesExhausted},
			says:     []string{`"t"`, "row-1", "127.0.0.1:", "refused", "nothing listens on that port"},
		},
		{
			name: "wrong port of the RPC registry", kind: "registry unreachable",
			address:  func(t *testing.T, _ *minihbase.Cluster) string { return "hbase+rpc://" + nobody(t) },
			deadline: 250 * time.Millisecond,
			is:       []error{context.DeadlineExceeded, hbase.ErrRetriesExhausted},
			says:     []string{`"t"`, "row-1", "127.0.0.1:", "connection refused"},
		},
		{
			name: "unknown host of ZooKeeper", kind: "ZooKeeper unreachable",
			address: func(*testing.T, *minihbase.Cluster) string {
				return "hbase://no-such-host.invalid:2181/hbase"
			},
			deadline: 250 * time.Millisecond,
			is:       []error{context.DeadlineExceeded, hbase.ErrRetriesExhausted},
			says:     []string{`"t"`, "row-1", "no-such-host.invalid"},
		},
		{
			name: "unknown host of the RPC registry", kind: "registry unreachable",
			address:  func(*testing.T, *minihbase.Cluster) string { return "hbase+rpc://no-such-host.invalid:16000" },
			deadline: 250 * time.Millisecond,
			is:       []error{context.DeadlineExceeded, hbase.ErrRetriesExhausted},
			says:     []string{`"t"`, "row-1", "no-such-host.invalid"},
		},
		{
			name: "a web server instead of ZooKeeper", kind: "not ZooKeeper",
			address:  func(t *testing.T, _ *minihbase.Cluster) string { return "hbase://" + impostor(t, web) + "/hbase" },
			deadline: 250 * time.Millisecond,
			says:     []string{`"t"`, "row-1", "127.0.0.1:", "not ZooKeeper"},
		},
		{
			name: "a web server instead of HBase", kind: "not HBase",
			address:  func(t *testing.T, _ *minihbase.Cluster) string { return "hbase+rpc://" + impostor(t, web) },
			deadline: 250 * time.Millisecond,
			says:     []string{`"t"`, "row-1", "127.0.0.1:", "HTTP"},
		},
		{
			name: "sshd instead of ZooKeeper", kind: "not ZooKeeper",
			address:  func(t *testing.T, _ *minihbase.Cluster) string { return "hbase://" + impostor(t, banner) + "/hbase" },
			deadline: 250 * time.Millisecond,
			says:     []string{`"t"`, "row-1", "127.0.0.1:", "not ZooKeeper"},
		},
		{
			name: "sshd instead of HBase", kind: "not HBase",
			address:  func(t *testing.T, _ *minihbase.Cluster) string { return "hbase+rpc://" + impostor(t, banner) },
			deadline: 250 * time.Millisecond,
			says:     []string{`"t"`, "row-1", "127.0.0.1:", "SSH"},
		},
		{
			name: "silence instead of ZooKeeper", kind: "ZooKeeper unreachable",
			address:  func(t *testing.T, _ *minihbase.Cluster) string { return "hbase://" + impostor(t, silent) + "/hbase" },
			deadline: 250 * time.Millisecond,
			is:       []error{context.DeadlineExceeded},
			says:     []string{`"t"`, "row-1", "127.0.0.1:"},
		},
		{
			name: "silence instead of HBase", kind: "registry unreachable",
			address:  func(t *testing.T, _ *minihbase.Cluster) string { return "hbase+rpc://" + impostor(t, silent) },
			deadline: 250 * time.Millisecond,
			is:       []error{context.DeadlineExceeded},
			says:     []string{`"t"`, "row-1", "127.0.0.1:"},
		},
		{
			name: "ZooKeeper for HBase", kind: "registry unreachable",
			address: func(_ *testing.T, c *minihbase.Cluster) string {
				return "hbase+rpc://" + c.ZooKeeper()
			},
			deadline: 250 * time.Millisecond,
			says:     []string{`"t"`, "row-1", "127.0.0.1:"},
		},
		{
			name: "HBase for ZooKeeper",
			address: func(_ *testing.T, c *minihbase.Cluster) string {
				return "hbase://" + c.Master() + "/hbase"
			},
			deadline: 250 * time.Millisecond,
			says:     []string{`"t"`, "row-1", "127.0.0.1:"},
		},
		{
			name: "missing znode parent", kind: "znode parent",
			address:  func(_ *testing.T, c *minihbase.Cluster) string { return "hbase://" + c.ZooKeeper() + "/elsewhere" },
			deadline: 250 * time.Millisecond,
			says:     []string{`"t"`, "row-1", "/elsewhere", "127.0.0.1:"},
		},
		{
			name: "ZooKeeper frozen", kind: "ZooKeeper unreachable",
			before: func(t *testing.T, c *minihbase.Cluster) {
				zk := c.ZooKeeperServer()
				zk.Freeze()
				t.Cleanup(func() {
					if err := zk.Resume(); err != nil {
						t.Error(err)
					}
				})
			},
			deadline: 250 * time.Millisecond,
			is:       []error{context.DeadlineExceeded, hbase.ErrRetriesExhausted},
			says:     []string{`"t"`, "row-1", "127.0.0.1:"},
		},
		{
			name: "table not found", kind: "table missing", table: "absent", deadline: 5 * second, early: true,
			is:   []error{hbase.ErrTableNotFound},
			says: []string{`"absent"`, "row-1"},
		},
		{
			name: "table disabled", kind: "table disabled", table: "off", deadline: 5 * second, early: true,
			is:   []error{hbase.ErrTableNotEnabled},
			says: []string{`"off"`, "row-1"},
		},
		{
			name: "wrong family", kind: "family missing", deadline: 5 * second, early: true,
			op: func(ctx context.Context, tab *hbase.Table) error {
				return tab.Put(ctx, hbase.NewPut("row-1").Set("nope", "q", nil))
			},
			is: []error{hbase.ErrNoSuchFamily},
			as: func(err error) bool {
				e, ok := errors.AsType[*hbase.RemoteError](err)
				return ok && e.DoNotRetry
			},
			says: []string{`"t"`, "row-1", "nope", "NoSuchColumnFamilyException"},
		},
		{
			name: "wrong family of a Get", kind: "family missing", deadline: 5 * second, early: true,
			op: func(ctx context.Context, tab *hbase.Table) error {
				_, err := tab.Get(ctx, hbase.NewGet("row-1").Family("nope"))
				return err
			},
			is:   []error{hbase.ErrNoSuchFamily},
			says: []string{`"t"`, "row-1", "nope"},
		},
		{
			name: "wrong family of a scan", kind: "family missing", deadline: 5 * second, early: true,
			op: func(ctx context.Context, tab *hbase.Table) error {
				_, err := tab.Scan(ctx, hbase.NewScan().Family("nope")).Next()
				return err
			},
			is:   []error{hbase.ErrNoSuchFamily},
			says: []string{`"t"`, "nope"},
		},
		{
			name: "row too long", kind: "invalid request", deadline: 5 * second, early: true,
			op: func(ctx context.Context, tab *hbase.Table) error {
				return tab.Put(ctx, hbase.NewPut(strings.Repeat("k", 32768)).Set("f", "q", nil))
			},
			is:   []error{hbase.ErrInvalid},
			as:   func(err error) bool { _, ok := errors.AsType[*hbase.InvalidError](err); return ok },
			says: []string{"put", "kkk", "32768", "32767"},
		},
		{
			name: "deadline too short", kind: "no answer in time",
			before: func(t *testing.T, c *minihbase.Cluster) {
				rule(t, c, minihbase.Rule{Match: minihbase.Match{Table: "t"}, Action: minihbase.DelayReply, Delay: 400 * time.Millisecond})
			},
			deadline: 30 * time.Millisecond,
			is:       []error{context.DeadlineExceeded},
			says:     []string{`"t"`, "row-1", "1 attempt on 127.0.0.1,", "calling"},
		},
		{
			name: "deadline that is over", kind: "no time", deadline: -time.Second,
			is:   []error{context.DeadlineExceeded},
			says: []string{`"t"`, "row-1", "no attempt"},
		},
		{
			name: "region never opens", kind: "region in transition",
			before: func(t *testing.T, c *minihbase.Cluster) {
				rule(t, c, minihbase.Rule{Match: minihbase.Match{Table: "t"}, Action: minihbase.Fail, Exception: minihbase.Exception{Class: "RegionOpeningException"}})
			},
			deadline: 300 * time.Millisecond,
			is:       []error{context.DeadlineExceeded, hbase.ErrRetriesExhausted},
			says:     []string{`"t"`, "row-1", "attempts on 127.0.0.1,", "waiting", "RegionOpeningException"},
		},
		{
			name: "server too busy for ever", kind: "server overloaded",
			before: func(t *testing.T, c *minihbase.Cluster) {
				rule(t, c, minihbase.Rule{Match: minihbase.Match{Table: "t"}, Action: minihbase.Fail, Exception: minihbase.Exception{Class: "CallQueueTooBigException"}})
			},
			deadline: 300 * time.Millisecond,
			is:       []error{context.DeadlineExceeded, hbase.ErrRetriesExhausted},
			says:     []string{`"t"`, "row-1", "127.0.0.1,", "CallQueueTooBigException"},
		},
	}
	c, admin := start(t, minihbase.Options{ControlPort: -1})
	table(t, c, admin, "t")
	table(t, c, admin, "off")
	if err := admin.Admin().DisableTable(t.Context(), "off"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address := c.Address()
			if tt.address != nil {
				address = tt.address(t, c)
			}
			if tt.before != nil {
				tt.before(t, c)
			}
			if tt.table == "" {
				tt.table = "t"
			}
			if tt.op == nil {
				tt.op = getRow
			}
			quiet := goleak.IgnoreCurrent()
			client, err := hbase.Open(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			tab, err := client.Table(tt.table)
			if err != nil {
				t.Fatal(err)
			}
			// A machine with more to do than it can may be late once.
			var late, took time.Duration
			for try := range 6 {
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				began := time.Now()
				err = tt.op(ctx, tab)
				took = time.Since(began)
				cancel()
				t.Logf("after %v of %v: %v", took.Round(10*time.Microsecond), tt.deadline, err)
				if err == nil {
					t.Fatal("no error")
				}
				if late = took - max(tt.deadline, 0); late <= slack<<try && (!tt.early || took <= tt.deadline/4) {
					break
				}
				if try == 5 {
					t.Errorf("took %v of %v, and no less in so many tries", took, tt.deadline)
				}
			}
			for _, target := range tt.is {
				if !errors.Is(err, target) {
					t.Errorf("errors.Is(err, %v) is false", target)
				}
			}
			if tt.as != nil && !tt.as(err) {
				t.Errorf("not of the type that is documented: %T", err)
			}
			if e := hbase.Explain(err); tt.kind != "" && e.Kind != tt.kind || len(e.Next) == 0 {
				t.Errorf("explained as %q:\n%s", e.Kind, e)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error does not say %q", s)
				}
			}
			began := time.Now()
			if err := client.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("Close took %v", d)
			}
			// The cluster, in the same process, may still be seeing to the end of
			// connections that the client has closed.
			const embed = "github.com/holdfast-hbase/holdfast/internal/embed/"
			if err := goleak.Find(quiet, goleak.IgnoreAnyFunction(embed+"zkserver.(*conn).readLoop"), goleak.IgnoreAnyFunction(embed+"zkserver.(*conn).writeLoop"),
				goleak.IgnoreAnyFunction(embed+"rpcserver.(*Conn).start"), goleak.IgnoreAnyFunction(embed+"rpcserver.(*Server).watchdog"), goleak.IgnoreAnyFunction(embed+"rpcserver.(*workers).run")); err != nil {
				t.Error(err)
			}
		})
	}
}

func rule(t *testing.T, c *minihbase.Cluster, r minihbase.Rule) {
	t.Helper()
	if _, err := c.AddRule(r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.ClearRules)
}

// A closed client says so at once, to calls under way too.
func TestErrorsClosedClient(t *testing.T) {
	c, admin := start(t, minihbase.Options{ControlPort: -1})
	table(t, c, admin, "t")
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	if err := getRow(t.Context(), tab); err != nil {
		t.Fatal(err)
	}
	rule(t, c, minihbase.Rule{Match: minihbase.Match{Table: "t"}, Action: minihbase.Hold})
	ended := make(chan error, 1)
	go func() { ended <- getRow(t.Context(), tab) }()
	if err := c.WaitRule(t.Context(), c.Rules()[0].ID, 1); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := client.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-ended; !errors.Is(err, hbase.ErrClosed) {
		t.Errorf("the call under way: %v", err)
	}
	for _, op := range []func(context.Context, *hbase.Table) error{
		getRow,
		func(ctx context.Context, tab *hbase.Table) error {
			return tab.Put(ctx, hbase.NewPut("a").Set("f", "q", nil))
		},
		func(ctx context.Context, tab *hbase.Table) error {
			_, err := tab.Scan(ctx, hbase.NewScan()).Next()
			return err
		},
		func(ctx context.Context, tab *hbase.Table) error {
			_, err := tab.MultiGet(ctx, []*hbase.Get{hbase.NewGet("a")})
			return err
		},
		func(ctx context.Context, tab *hbase.Table) error {
			return client.Ping(ctx)
		},
		func(ctx context.Context, tab *hbase.Table) error {
			_, err := client.Admin().ListTables(ctx, "", false)
			return err
		},
	} {
		if err := op(t.Context(), tab); !errors.Is(err, hbase.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	if err := client.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
