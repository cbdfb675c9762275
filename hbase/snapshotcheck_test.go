package hbase

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/route"
)

// idCore is a core that knows routes, and after a while its cluster's id.
type idCore struct {
	core
	routes *route.Cache
	id     string
	silent atomic.Int64 // questions that get no answer
}

func (c *idCore) Routes() *route.Cache        { return c.routes }
func (c *idCore) Registry() registry.Registry { return idRegistry{} }
func (c *idCore) Close() error                { c.routes.Close(); return nil }
func (c *idCore) ClusterID(ctx context.Context) (string, error) {
	if c.silent.Load() > 0 {
		c.silent.Add(-1)
		<-ctx.Done()
		return "", ctx.Err()
	}
	return c.id, nil
}

type idRegistry struct{ registry.Registry }

func (idRegistry) String() string { return "hbase://zk/hbase" }

// lonelyMeta is a meta with one table of one region.
type lonelyMeta struct{}

func (lonelyMeta) ScanMeta(context.Context, route.MetaScan) ([]meta.Location, error) {
	return []meta.Location{{
		Region: meta.Region{Table: meta.TableName{Namespace: "default", Qualifier: "t"}, ID: 1},
		Server: meta.ServerName{Host: "rs", Port: 1, StartCode: 1}, State: "OPEN",
	}}, nil
}

func (lonelyMeta) GetMeta(_ context.Context, rows [][]byte) ([]*meta.Location, error) {
	return make([]*meta.Location, len(rows)), nil
}

// TestSnapshotOfClusterAtSameAddress: another cluster has been set up where the
// file's was. Its routes are dropped as soon as the cluster says who it is.
func TestSnapshotOfClusterAtSameAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "routes")
		open := func(id string, silent int) *Client {
			servers := health.NewTable()
			t.Cleanup(servers.Close)
			core := &idCore{
				id: id,
				routes: route.New(route.Config{Source: lonelyMeta{}, Servers: servers, Locator: func(context.Context) (meta.ServerName, error) {
					return meta.ServerName{}, errors.New("not asked")
				}}),
			}
			core.silent.Store(int64(silent))
			c := newClient(Config{RouteSnapshot: path, RouteSnapshotEvery: time.Hour}, core)
			c.openSnapshot(t.Context())
			return c
		}
		first := open("one", 0)
		if _, err := first.core.Routes().Locate(t.Context(), meta.TableName{Namespace: "default", Qualifier: "t"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		same := open("one", 2)
		time.Sleep(time.Minute)
		if n := same.RouteStats().Routes; n != 1 {
			t.Errorf("the same cluster: %d routes, want 1", n)
		}
		same.Close()
		// One that the cluster never tells its id still knows it from the file,
		// and from before the cluster fell silent.
		for _, silent := range []int{0, 1000} {
			mute := open("one", silent)
			time.Sleep(time.Minute)
			mute.core.(*idCore).silent.Store(1000)
			mute.Close()
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			servers := health.NewTable()
			r := route.New(route.Config{Source: lonelyMeta{}, Servers: servers})
			if s, err := r.Load(file, route.Cluster{Address: "hbase://zk/hbase", ID: "two"}); !errors.Is(err, route.ErrSnapshotForeign) {
				t.Errorf("silent %d: the file does not say any more whose it is: %+v, %v", silent, s, err)
			}
			r.Close()
			servers.Close()
			file.Close()
		}
		other := open("two", 2)
		if n := other.RouteStats().Routes; n != 1 {
			t.Errorf("%d routes before the cluster has said who it is, want 1", n)
		}
		time.Sleep(time.Minute)
		if n := other.RouteStats().Routes; n != 0 {
			t.Errorf("another cluster's: %d routes are kept", n)
		}
		other.Close()
		// A client that knows nothing leaves the file alone.
		now, err := os.ReadFile(path)
		if err != nil || len(now) != len(written) || bytes.Equal(now, nil) {
			t.Errorf("file of %d bytes, was %d; %v", len(now), len(written), err)
		}
	})
}
