package session

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func statusCall() *ServerCall {
	return &ServerCall{Method: "GetClusterStatus", Op: "status", Param: &pb.GetClusterStatusRequest{}, Result: &pb.GetClusterStatusResponse{}}
}

func TestCallMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		core := c.open()
		reg := core.Registry().(*fakeRegistry)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := core.CallMaster(t.Context(), statusCall()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if reg.asked["master"] != 1 {
			t.Errorf("the registry was asked %d times by 50 callers", reg.asked["master"])
		}
	})
}

func TestMasterFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		core := c.open()
		if _, err := core.CallMaster(t.Context(), statusCall()); err != nil {
			t.Fatal(err)
		}
		c.master.kill()
		c.mu.Lock()
		c.master = nil
		c.mu.Unlock()
		time.AfterFunc(5*time.Second, func() {
			s := c.start(meta.ServerName{Host: "m2", Port: 16000, StartCode: 300})
			c.mu.Lock()
			c.master = s
			c.mu.Unlock()
		})
		// The new one needs a moment to begin.
		c.hook(func(q *query) *reply {
			if q.srv.name.Host == "m2" && time.Now().Second()%60 < 7 {
				return &reply{err: wire.NewRemoteError(wire.ClassPleaseHold, "Master is initializing")}
			}
			return nil
		})
		began := time.Now()
		a, err := core.CallMaster(t.Context(), statusCall())
		if d := time.Since(began); err != nil || d < 7*time.Second || d > 8100*time.Millisecond {
			t.Errorf("%v after %v and %d attempts", err, d, a.Attempts)
		}
	})
}

func TestNoMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		core := c.open()
		c.mu.Lock()
		c.master = nil
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		_, err := core.CallMaster(ctx, statusCall())
		var y *registry.NotYetError
		var story *retry.Error
		if d := time.Since(began); !errors.As(err, &y) || !errors.As(err, &story) || !errors.Is(err, context.DeadlineExceeded) || d > 2*time.Second+5*time.Millisecond {
			t.Errorf("%v after %v", err, d)
		}
		// A wrong znode parent does not get better by waiting.
		core.Registry().(*fakeRegistry).err = &registry.ZNodeError{Path: "/hbase", Ensemble: "zk1:2181", Problem: "missing", Missing: true, Suggestions: []string{"/hbase-unsecure"}}
		began = time.Now()
		_, err = core.CallMaster(t.Context(), statusCall())
		if d := time.Since(began); !errors.Is(err, registry.ErrZNode) || d != 0 || !strings.Contains(err.Error(), "did you mean /hbase-unsecure?") {
			t.Errorf("%v after %v", err, d)
		}
		table := c.table("t")
		_, _, err = get(t.Context(), core, table, "r")
		if d := time.Since(began); !errors.Is(err, registry.ErrZNode) || d != 0 {
			t.Errorf("%v after %v", err, d)
		}
	})
}

func TestCallServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		core := c.open()
		info := func() (string, error) {
			var resp pb.GetServerInfoResponse
			_, err := core.CallServer(t.Context(), c.server(1).name, &ServerCall{Method: "GetServerInfo", Param: &pb.GetServerInfoRequest{}, Result: &resp})
			return resp.GetServerInfo().GetServerName().GetHostName(), err
		}
		if host, err := info(); err != nil || host != "rs1" {
			t.Fatal(host, err)
		}
		busy := 2
		c.hook(func(q *query) *reply {
			if busy--; busy >= 0 {
				return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
			}
			return nil
		})
		if _, err := info(); err != nil {
			t.Errorf("a busy server: %v", err)
		}
		c.server(1).kill()
		began := time.Now()
		_, err := info()
		if time.Since(began) > time.Second || err == nil {
			t.Errorf("a dead server: %v after %v", err, time.Since(began))
		}
		_, err = info()
		if !errors.Is(err, health.ErrServerDown) {
			t.Errorf("a server known to be dead: %v", err)
		}
	})
}

func TestRPCRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		defer c.stop()
		c.hook(func(q *query) *reply {
			switch q.method {
			case "GetMetaRegionLocations":
				return &reply{msg: &pb.GetMetaRegionLocationsResponse{MetaLocations: []*pb.RegionLocation{
					{RegionInfo: meta.MetaRegion.ToProto(), ServerName: c.meta.name.ToProto(), SeqNum: new(int64(1))},
				}}}
			case "GetActiveMaster":
				return &reply{msg: &pb.GetActiveMasterResponse{ServerName: c.master.name.ToProto()}}
			case "GetClusterId":
				return &reply{msg: &pb.GetClusterIdResponse{ClusterId: new("id-7")}}
			case "GetBootstrapNodes":
				return &reply{msg: &pb.GetBootstrapNodesResponse{ServerName: []*pb.ServerName{c.server(1).name.ToProto(), c.server(3).name.ToProto()}}}
			}
			return nil
		})
		c.mu.Lock()
		c.blocks["rs2:16020"] = true
		c.mu.Unlock()
		// One refuses, one hangs, one answers: the answer wins, soon.
		r, err := registry.OpenRPC(registry.RPCConfig{Endpoints: []string{"gone:1", "rs2:16020", "rs1:16020"}, User: "u", Dial: c.dial})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for range 20 {
			began := time.Now()
			s, err := r.MetaLocation(t.Context())
			if err != nil || s != c.meta.name || time.Since(began) > 510*time.Millisecond {
				t.Errorf("meta: %v, %v after %v", s, err, time.Since(began))
			}
		}
		if s, err := r.ActiveMaster(t.Context()); err != nil || s != c.master.name {
			t.Errorf("master: %v, %v", s, err)
		}
		if id, err := r.ClusterID(t.Context()); err != nil || id != "id-7" {
			t.Errorf("id: %v, %v", id, err)
		}
		// After a while the list of endpoints is the cluster's own as well.
		time.Sleep(6 * time.Minute)
		if _, err := r.ClusterID(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		c.server(1).kill()
		if _, err := r.ClusterID(t.Context()); err != nil {
			t.Errorf("with the configured endpoints gone: %v", err)
		}
		c.server(3).kill()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err = r.ClusterID(ctx)
		var all *registry.EndpointsError
		if !errors.As(err, &all) || time.Since(began) > 3*time.Second || !strings.Contains(err.Error(), "gone:1: dial gone:1") {
			t.Errorf("nobody left: %v after %v", err, time.Since(began))
		}
	})
}

// TestNotHBase talks to a web server by mistake, over real sockets.
func TestNotHBase(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.Close()
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				nc.Read(make([]byte, 100))
				nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			})
		}
	})
	core, err := Open(t.Context(), Config{Address: "hbase+rpc://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	table, _ := meta.ParseTableName("t")
	// A loaded machine may need longer until it has heard the answer.
	for limit := 300 * time.Millisecond; ; limit *= 3 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		began := time.Now()
		_, _, err = get(ctx, core, table, "r")
		cancel()
		if d := time.Since(began); err == nil || d > limit+20*time.Second {
			t.Fatalf("%v after %v", err, d)
		}
		var not *rpc.NotHBaseError
		if errors.As(err, &not) && strings.Contains(err.Error(), "HTTP server") {
			return
		}
		if limit > 30*time.Second {
			t.Fatal(err)
		}
	}
}

func TestConfig(t *testing.T) {
	core, err := Open(t.Context(), Config{Address: "hbase://zk1:2181?rpc-timeout=3s&user=alice", RPCTimeout: 0, PingAfter: 700 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	cfg := core.Config()
	if cfg.RPCTimeout != 3*time.Second || cfg.User != "alice" || cfg.PingAfter != 700*time.Millisecond || cfg.OperationTimeout != time.Minute {
		t.Errorf("%+v", cfg)
	}
	want := map[string]string{"rpc-timeout": "3s address", "user": "alice address", "ping-after": "700ms program", "operation-timeout": "1m0s default"}
	for _, s := range cfg.Effective() {
		if w, ok := want[s.Name]; ok && s.Value+" "+s.Source != w {
			t.Errorf("%s is %s from %s, want %s", s.Name, s.Value, s.Source, w)
		}
	}
	if !strings.Contains(cfg.String(), "rpc-timeout") {
		t.Errorf("prints as %q", cfg.String())
	}
	for _, addr := range []string{"", "hbase://zk1?x=1", "hbase://zk1?authentication=kerberos"} {
		if _, err := Open(t.Context(), Config{Address: addr}); err == nil {
			t.Errorf("address %q was accepted", addr)
		}
	}
}
