package route

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// loaded gives a cache with n routes, learned in pages of the given size, as
// Warm does, without going through a fake meta.
func loaded(t testing.TB, n, page int) (*Cache, *table) {
	c, _ := newCache(t, Config{})
	c.mu.Lock()
	tab := c.tableFor(tbl)
	c.mu.Unlock()
	locs := make([]meta.Location, 0, page)
	for i := 0; i < n; {
		locs = locs[:0]
		for ; i < n && len(locs) < page; i++ {
			locs = append(locs, meta.Location{Region: regionOf(tbl, i, n), Server: server(i % 100), SeqNum: 10, State: "OPEN"})
		}
		tab.publish(tab.makeRoutes(locs, FromMeta))
	}
	if got := tab.root.Load().n; got != n {
		t.Fatalf("%d routes, want %d", got, n)
	}
	return c, tab
}

var sizes = []int{10_000, 300_000, 1_000_000}

// BenchmarkLookup: hot is 512 rows over and over, cold is any row; worst is
// cold with rows so near to the regions' start keys that the keys have to be
// looked at.
func BenchmarkLookup(b *testing.B) {
	for _, n := range sizes {
		c, _ := loaded(b, n, 1000)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, kind := range []string{"hot", "cold", "worst"} {
			rows := make([][]byte, 512)
			if kind != "hot" {
				rows = make([][]byte, min(4*n, 1<<20))
			}
			for i := range rows {
				if kind == "worst" {
					rows[i] = append(key(1+rng.IntN(n-1)), "/x"...)
				} else {
					rows[i] = fmt.Appendf(nil, "user-%08d-b%d", 1+rng.IntN(n-1), i)
				}
			}
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				b.ReportAllocs()
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				began, ops := threadTime(), 0
				i := 0
				for b.Loop() {
					if c.Lookup(tbl, rows[i]) == nil {
						b.Fatal("miss")
					}
					if i++; i == len(rows) {
						i = 0
					}
					ops++
				}
				b.ReportMetric(float64(threadTime()-began)/float64(ops), "cpu-ns/op")
			})
		}
	}
}

func BenchmarkLookupParallel(b *testing.B) {
	c, _ := loaded(b, 300_000, 1000)
	b.RunParallel(func(pb *testing.PB) {
		rng := rand.New(rand.NewPCG(rand.Uint64(), 2))
		rows := make([][]byte, 512)
		for i := range rows {
			rows[i] = append(key(1+rng.IntN(299_999)), "/x"...)
		}
		for i := 0; pb.Next(); i++ {
			if c.Lookup(tbl, rows[i&511]) == nil {
				b.Error("miss")
				return
			}
		}
	})
}

// BenchmarkPublish is one region that moved.
func BenchmarkPublish(b *testing.B) {
	for _, n := range sizes {
		_, tab := loaded(b, n, 1000)
		rng := rand.New(rand.NewPCG(1, 2))
		seq := int64(10)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				seq++
				l := meta.Location{Region: regionOf(tbl, rng.IntN(n), n), Server: server(int(seq % 100)), SeqNum: seq, State: "OPEN"}
				if added, _ := tab.publish(tab.makeRoutes([]meta.Location{l}, FromMeta)); len(added) != 1 {
					b.Fatal("not accepted")
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		loaded(b, 100_000, 1000)
	}
}

// heapPerRoute is what a route costs: loaded in pages, and one by one in
// random order.
func heapPerRoute(t testing.TB, n int, byOne bool) float64 {
	servers := health.NewTable()
	t.Cleanup(servers.Close)
	c, _ := newCache(t, Config{Servers: servers})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c.mu.Lock()
	tab := c.tableFor(tbl)
	c.mu.Unlock()
	if byOne {
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
			l := meta.Location{Region: regionOf(tbl, i, n), Server: server(i % 100), SeqNum: 10, State: "OPEN"}
			tab.publish(tab.makeRoutes([]meta.Location{l}, FromMeta))
		}
	} else {
		locs := make([]meta.Location, 0, 1000)
		for i := 0; i < n; {
			locs = locs[:0]
			for ; i < n && len(locs) < 1000; i++ {
				locs = append(locs, meta.Location{Region: regionOf(tbl, i, n), Server: server(i % 100), SeqNum: 10, State: "OPEN"})
			}
			tab.publish(tab.makeRoutes(locs, FromMeta))
		}
		clear(locs[:cap(locs)])
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
	runtime.KeepAlive(c)
	return per
}

func BenchmarkHeapPerRoute(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(heapPerRoute(b, 300_000, false), "B/route-paged")
		b.ReportMetric(heapPerRoute(b, 100_000, true), "B/route-single")
	}
}
