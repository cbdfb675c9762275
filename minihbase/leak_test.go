package minihbase_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// files counts this process's open files; 0 where the system does not tell.
func files(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// useOnce starts a cluster, has a row served and ends it; a rough end comes
// with a server dead, another one stopped and a scanner open.
func useOnce(t *testing.T, o minihbase.Options, rough bool) {
	t.Helper()
	ctx := t.Context()
	c, err := minihbase.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := c.Locate("t", []byte("r")); err != nil {
		if err := c.CreateTable(ctx, "t", []string{"f"}, []byte("m")); err != nil {
			t.Fatal(err)
		}
	}
	client, err := hbase.Open(ctx, c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"r", "s"} {
		if err := tab.Put(ctx, hbase.NewPut(row).Set("f", "q", []byte("v"))); err != nil {
			t.Fatal(err)
		}
	}
	if !rough {
		return
	}
	scan := hbase.NewScan()
	scan.Caching = 1
	s := tab.Scan(ctx, scan)
	defer s.Close()
	if r, err := s.Next(); r == nil || err != nil {
		t.Fatal(r, err)
	}
	if err := c.KillRegionServer(0); err != nil {
		t.Fatal(err)
	}
	if err := c.StopRegionServer(ctx, 1); err != nil {
		t.Fatal(err)
	}
}

// TestStartStop: two hundred starts and stops leave no goroutine, no open file
// and no memory behind.
func TestStartStop(t *testing.T) {
	for _, tt := range []struct {
		name          string
		rounds, short int
		o             minihbase.Options
	}{
		{"memory", 200, 12, minihbase.Options{Events: 100}},
		{"disk", 200, 6, minihbase.Options{Events: 100, Dir: t.TempDir(), NoFsync: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rounds := tt.rounds
			if testing.Short() {
				rounds = tt.short
			}
			for range 3 { // what is made once and kept
				useOnce(t, tt.o, true)
			}
			quiet, before, heap := goleak.IgnoreCurrent(), files(t), heapInUse()
			began := time.Now()
			for i := range rounds {
				useOnce(t, tt.o, i%2 == 1)
			}
			took := time.Since(began)
			if err := goleak.Find(quiet); err != nil {
				t.Errorf("after %d rounds: %v", rounds, err)
			}
			if after := files(t); after > before {
				t.Errorf("%d files are open after %d rounds, %d were before", after, rounds, before)
			}
			// A leak of one region server's worth in each round is ten times that.
			if grown := heapInUse() - heap; grown > 8<<20 {
				t.Errorf("the heap has grown by %d KiB in %d rounds", grown>>10, rounds)
			}
			t.Logf("%d starts and stops in %v", rounds, took.Round(time.Millisecond))
		})
	}
}

func heapInUse() int64 {
	// Twice: what finalizers let go of is collected by the next one.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkFirstRow is how long it takes in this process from nothing to a first
// row served: the cluster's start, a table, a client, a put and a get.
func BenchmarkFirstRow(b *testing.B) {
	for b.Loop() {
		c, err := minihbase.Start(b.Context(), minihbase.Options{})
		if err != nil {
			b.Fatal(err)
		}
		serveRow(b, c)
		b.StopTimer()
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func serveRow(b *testing.B, c *minihbase.Cluster) {
	b.Helper()
	if err := c.CreateTable(b.Context(), "t", []string{"f"}); err != nil {
		b.Fatal(err)
	}
	client, err := hbase.Open(b.Context(), c.Address())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("t")
	if err != nil {
		b.Fatal(err)
	}
	if err := tab.Put(b.Context(), hbase.NewPut("r").Set("f", "q", []byte("v"))); err != nil {
		b.Fatal(err)
	}
	if r, err := tab.Get(b.Context(), hbase.NewGet("r")); err != nil || string(r.Value("f", "q")) != "v" {
		b.Fatal(r, err)
	}
}
