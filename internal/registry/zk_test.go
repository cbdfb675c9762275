package registry

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestZooKeeper runs the registry over a real session.
func TestZooKeeper(t *testing.T) {
	s, err := zkserver.Start(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, data := range hbaseTree("/hbase") {
		if path == "/zookeeper" {
			continue
		}
		if err := s.Put(path, data, 0); err != nil {
			t.Fatal(path, err)
		}
	}
	r, err := OpenZooKeeper(ZooKeeperConfig{Servers: []string{s.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if got, err := r.MetaLocation(ctx); err != nil || got != rs1 {
		t.Fatalf("meta: %v, %v", got, err)
	}
	if n := len(s.Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
	// The session expires; the registry opens another.
	s.ExpireSession(s.Sessions()[0].ID)
	if got, err := r.ActiveMaster(ctx); err != nil || got != rs1 {
		t.Errorf("master, after the session expired: %v, %v", got, err)
	}
	// The wrong parent, with a hint at the right one.
	wrong, err := OpenZooKeeper(ZooKeeperConfig{Servers: []string{s.Addr()}, ZNodeParent: "/hbase-unsecure"})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	_, err = wrong.ClusterID(ctx)
	var z *ZNodeError
	if !errors.As(err, &z) || !strings.Contains(err.Error(), "did you mean /hbase?") {
		t.Errorf("wrong parent: %v", err)
	}
	// A frozen ZooKeeper costs no more than the caller's time.
	s.Freeze()
	short, cancel2 := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel2()
	began := time.Now()
	_, err = r.MetaLocation(short)
	if d := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || d > 20*time.Second { // or it would wait for ever
		t.Errorf("frozen: %v after %v", err, d)
	}
	s.Resume()
	if _, err := r.MetaLocation(ctx); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestZooKeeperUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	for _, tc := range []struct{ server, want string }{
		{addr, "refused"},
		{"no-such-host.invalid:2181", "no-such-host.invalid"},
	} {
		r, err := OpenZooKeeper(ZooKeeperConfig{Servers: []string{tc.server}})
		if err != nil {
			t.Fatal(err)
		}
		// A loaded machine may need longer until it has heard the refusal.
		for limit := 400 * time.Millisecond; ; limit *= 3 {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			began := time.Now()
			_, err = r.MetaLocation(ctx)
			cancel()
			if d := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || d > limit+20*time.Second {
				t.Errorf("%s: %v after %v", tc.server, err, d)
			} else if !strings.Contains(err.Error(), tc.want) {
				if limit < 30*time.Second {
					continue
				}
				t.Errorf("%s: %v does not say why", tc.server, err)
			}
			break
		}
		r.Close()
	}
}
