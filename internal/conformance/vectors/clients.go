package vectors

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// maxCell is more than any case writes.
const maxCell = 64 << 20

// clients are how a cluster is reached; workers share them.
type clients struct {
	// plain retries; single asks once, for what is expected to fail: HBase lets
	// clients repeat much that fails every time.
	plain, single *hbase.Client

	mu    sync.Mutex
	socks map[string][]*rpctest.Client // idle, by service and address
}

func open(ctx context.Context, address string) (*clients, error) {
	// The limit on cells is the server's to apply, as when the cases were
	// recorded.
	plain, err := hbase.Open(ctx, address, hbase.WithMaxCellSize(maxCell))
	if err != nil {
		return nil, err
	}
	single, err := hbase.Open(ctx, address, hbase.WithMaxCellSize(maxCell), hbase.WithMaxAttempts(1))
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return &clients{plain: plain, single: single, socks: make(map[string][]*rpctest.Client)}, nil
}

func (c *clients) close() error {
	errs := []error{c.plain.Close(), c.single.Close()}
	for _, idle := range c.socks {
		for _, k := range idle {
			errs = append(errs, k.Close())
		}
	}
	return errors.Join(errs...)
}

// do makes one call over an idle socket or a new one.
func (c *clients) do(address, service, method string, in wire.Marshaler, out wire.Unmarshaler) ([]hbase.Cell, error) {
	key := service + " " + address
	c.mu.Lock()
	var k *rpctest.Client
	if n := len(c.socks[key]); n > 0 {
		k = c.socks[key][n-1]
		c.socks[key] = c.socks[key][:n-1]
	}
	c.mu.Unlock()
	if k == nil {
		var err error
		if k, err = rpctest.Dial(address, rpctest.Options{Service: service}); err != nil {
			return nil, err
		}
	}
	got, err := k.Call(method, in, out)
	if err != nil && rpctest.Remote(err) == nil {
		return nil, errors.Join(err, k.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.socks[key] = append(c.socks[key], k)
	return got, err
}

func (r *runner) call(server hbase.ServerName, method string, in wire.Marshaler, out wire.Unmarshaler) ([]hbase.Cell, error) {
	return r.clients.do(server.Address(), "ClientService", method, in, out)
}

func (r *runner) callMaster(method string, in wire.Marshaler, out wire.Unmarshaler) error {
	status, err := r.clients.plain.Admin().ClusterStatusOf(r.ctx, admin.StatusMaster)
	if err != nil {
		return err
	}
	_, err = r.clients.do(status.Master.Address(), "MasterService", method, in, out)
	return err
}

// locate finds a region in hbase:meta as it is now.
func (r *runner) locate(table string, row []byte) (admin.RegionLocation, error) {
	regions, err := r.clients.plain.Admin().Regions(r.ctx, table)
	if err != nil {
		return admin.RegionLocation{}, err
	}
	for _, l := range regions {
		if !l.Region.Split && !l.Region.Offline && l.Region.Contains(row) {
			return l, nil
		}
	}
	return admin.RegionLocation{}, fmt.Errorf("table %s has no region with %q", table, row)
}

// client is the one that suits what is expected.
func (r *runner) client(s object) *hbase.Client {
	if e, ok := s["expect"].(object); r.once || r.o.Record || ok && (e["error"] != nil || e["failed"] != nil) {
		return r.clients.single
	}
	return r.clients.plain
}

// table is the table of the step being played.
func (r *runner) table(object) *hbase.Table { return r.at }
