package admin

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// cluster is one of the clusters every test runs on.
type cluster struct {
	name    string // embedded, 2.6.4, 2.4.17
	address string
	client  *hbase.Client
	adm     *admin.Admin
	version string // what the master says
	close   func() error
	tables  atomic.Int64
}

// opener starts one kind of cluster.
type opener struct {
	name string
	open func() (address string, close func() error, err error)
}

// clusters are those of this run, started together when the first test asks.
var clusters = sync.OnceValues(openAll)

func TestMain(m *testing.M) {
	code := m.Run()
	if started.Load() {
		all, _ := clusters()
		for _, c := range all {
			if err := c.end(); err != nil {
				fmt.Fprintln(os.Stderr, c.name+":", err)
				code = 1
			}
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// started says that clusters has been asked for.
var started atomic.Bool

func openAll() ([]*cluster, error) {
	kinds := append([]opener{{"embedded", openEmbedded}}, realClusters()...)
	all := make([]*cluster, len(kinds))
	errs := make([]error, len(kinds))
	var wg sync.WaitGroup
	for i, k := range kinds {
		wg.Go(func() { all[i], errs[i] = openOne(k) })
	}
	wg.Wait()
	var up []*cluster
	var err error
	for i, c := range all {
		if c != nil {
			up = append(up, c)
		}
		if errs[i] != nil {
			err = fmt.Errorf("%s: %w", kinds[i].name, errs[i])
		}
	}
	return up, err
}

func openOne(k opener) (*cluster, error) {
	address, end, err := k.open()
	if err != nil {
		return nil, err
	}
	c := &cluster{name: k.name, address: address, close: end}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c.client, err = hbase.Open(ctx, address); err != nil {
		return c, err
	}
	c.adm = c.client.Admin()
	// A master that has just come up may wait for its region server yet.
	for {
		st, err := c.adm.ClusterStatus(ctx)
		if err == nil && len(st.Live) > 0 {
			c.version = st.Version
			return c, nil
		}
		if ctx.Err() != nil {
			return c, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (c *cluster) end() error {
	var err error
	if c.client != nil {
		err = c.client.Close()
	}
	if e := c.close(); err == nil {
		err = e
	}
	return err
}

func openEmbedded() (string, func() error, error) {
	c, err := minihbase.Start(context.Background(), minihbase.Options{InMemory: true, Servers: 1, ControlPort: -1, Quotas: true})
	if err != nil {
		return "", nil, err
	}
	return c.Address(), c.Close, nil
}

// each runs f on every cluster, on all of them at a time: tests of one cluster
// run one after another.
func each(t *testing.T, f func(t *testing.T, c *cluster)) {
	t.Helper()
	started.Store(true)
	all, err := clusters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f(t, c)
		})
	}
}

// v26 says whether the cluster is an HBase of 2.6 or later, which the embedded
// one is.
func (c *cluster) v26() bool { return !strings.HasPrefix(c.version, "2.4.") }

// context bounds what one test may take on one cluster.
func (c *cluster) context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// table makes a table with a name of its own and family f, and drops it with
// the test.
func (c *cluster) table(t *testing.T, splits ...string) string {
	t.Helper()
	name := c.fresh("t")
	keys := make([][]byte, len(splits))
	for i, s := range splits {
		keys[i] = []byte(s)
	}
	if err := c.adm.CreateTable(c.context(t), admin.NewTable(name, admin.NewFamily("f")), keys...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.drop(t, name) })
	return name
}

// fresh gives a name no other test has.
func (c *cluster) fresh(prefix string) string {
	return fmt.Sprintf("%s%d", prefix, c.tables.Add(1))
}

// drop disables and drops a table if it exists.
func (c *cluster) drop(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	state, err := c.adm.TableState(ctx, name)
	if err != nil {
		return
	}
	if state == admin.Enabled {
		if err := c.adm.DisableTable(ctx, name); err != nil {
			t.Errorf("disable %s: %v", name, err)
		}
	}
	if err := c.adm.DeleteTable(ctx, name); err != nil {
		t.Errorf("drop %s: %v", name, err)
	}
}

// put writes rows with f:q and the value given.
func (c *cluster) put(t *testing.T, table, value string, rows ...string) {
	t.Helper()
	tab, err := c.client.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := tab.Put(c.context(t), hbase.NewPut(row).Set("f", "q", []byte(value))); err != nil {
			t.Fatal(err)
		}
	}
}
