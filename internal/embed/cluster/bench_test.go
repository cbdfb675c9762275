package cluster

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// A table of 100,000 regions: created, a region of it moved, a server of it
// lost.
func BenchmarkManyRegions(b *testing.B) {
	c := start(b, Options{})
	splits := make([][]byte, 100_000-1)
	for i := range splits {
		splits[i] = fmt.Appendf(nil, "%06d", i)
	}
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			if err := c.CreateTable(b.Context(), table("t"), []string{"f"}, 1, splits); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := mustMaster(b, c).DropTable(b.Context(), table("t")); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	if err := c.CreateTable(b.Context(), table("t"), []string{"f"}, 1, splits); err != nil {
		b.Fatal(err)
	}
	regions := c.Regions(table("t"), 0)
	b.Run("move", func(b *testing.B) {
		m, i := mustMaster(b, c), 0
		for b.Loop() {
			if err := m.Move(b.Context(), regions[i%len(regions)].Encoded, meta.ServerName{}); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("kill", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if err := c.Kill(i % 3); err != nil {
				b.Fatal(err)
			}
			dead := mustName(b, c, i%3)
			for c.Catalog().Held(dead) > 0 {
				_, changed := c.catalog.Changed()
				if c.Catalog().Held(dead) > 0 {
					<-changed
				}
			}
			b.StopTimer()
			if err := c.StartServer(i % 3); err != nil {
				b.Fatal(err)
			}
			if _, err := mustMaster(b, c).Balance(b.Context(), "", true, false); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			i++
		}
	})
}

// A reset between two tests: of three small tables with some rows, and of a
// generated one.
func BenchmarkReset(b *testing.B) {
	c := start(b, Options{})
	run := func(name string, fill func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				fill()
				b.StartTimer()
				if err := c.Reset(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("empty", func() {})
	run("small", func() {
		for _, n := range []string{"t", "u", "v"} {
			if err := c.CreateTable(b.Context(), table(n), []string{"f"}, 1, [][]byte{[]byte("g"), []byte("p")}); err != nil {
				b.Fatal(err)
			}
			l := find(b, c, table(n), "a")
			for i := range 10 {
				if err := put(b, l, fmt.Sprintf("a%d", i), "1"); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	run("generated", func() {
		f := &catalog.Formula{Regions: 300_000, Rows: 10, Format: catalog.KeyFormat{Digits: 8, Base: 10}}
		if err := c.GenerateTable(b.Context(), table("t"), []string{"f"}, f); err != nil {
			b.Fatal(err)
		}
	})
	run("killed", func() {
		if err := c.Kill(1); err != nil {
			b.Fatal(err)
		}
	})
}

// One poll of a client that watches hbase:meta at 300,000 regions, over the
// wire: of nothing new, and of 100 moves.
func BenchmarkMetaPoll(b *testing.B) {
	c := start(b, Options{})
	f := &catalog.Formula{Regions: 300_000, Rows: 10, Format: catalog.KeyFormat{Digits: 8, Base: 10}}
	if err := c.GenerateTable(b.Context(), table("t"), []string{"f"}, f); err != nil {
		b.Fatal(err)
	}
	n, _ := c.MetaLocation()
	k := client(b, n.Address(), "ClientService")
	for _, moves := range []int{0, 100} {
		b.Run(fmt.Sprintf("moved=%d", moves), func(b *testing.B) {
			time.Sleep(2 * time.Millisecond)
			since := uint64(c.clock.Millis())
			for i := range moves {
				l, err := c.Locate(table("t"), fmt.Appendf(nil, "%08d", i*3000))
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Move(b.Context(), l.Encoded, -1); err != nil {
					b.Fatal(err)
				}
			}
			var size int64
			for b.Loop() {
				var out pb.ScanResponse
				cells, err := k.Call("Scan", &pb.ScanRequest{
					Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(meta.MetaRegionName)},
					Scan: &pb.Scan{StartRow: meta.FirstRow(table("t")), StopRow: meta.StopRow(table("t")), Column: []*pb.Column{{Family: []byte("info")}}, MaxVersions: new(uint32(1)),
						TimeRange: &pb.TimeRange{From: new(since), To: new(uint64(math.MaxInt64))}},
					NumberOfRows: new(uint32(1000)), CloseScanner: new(true), ClientHandlesPartials: new(true), ClientHandlesHeartbeats: new(true),
				}, &out)
				if err != nil {
					b.Fatal(err)
				}
				if len(out.CellsPerResult) != moves {
					b.Fatalf("%d rows, want %d", len(out.CellsPerResult), moves)
				}
				size = 0
				for i := range cells {
					size += int64(wire.KeyValueCodec.CellSize(&cells[i]))
				}
			}
			b.ReportMetric(float64(size), "cell-bytes/poll")
		})
	}
}

// What is done to an ordinary table beside a generated one of a million regions
// costs what it costs alone.
func BenchmarkBesideGenerated(b *testing.B) {
	for _, regions := range []int{0, 1_000_000} {
		b.Run(fmt.Sprintf("regions=%d", regions), func(b *testing.B) {
			c := start(b, Options{})
			if regions > 0 {
				f := &catalog.Formula{Regions: regions, Rows: 10, Format: catalog.KeyFormat{Digits: 8, Base: 10}}
				if err := c.GenerateTable(b.Context(), table("g"), []string{"f"}, f); err != nil {
					b.Fatal(err)
				}
			}
			m, ctx := mustMaster(b, c), b.Context()
			drop := func() {
				if err := m.DropTable(ctx, table("t")); err != nil {
					b.Fatal(err)
				}
			}
			create := func() {
				if err := c.CreateTable(ctx, table("t"), []string{"f"}, 1, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.Run("create and drop", func(b *testing.B) {
				for b.Loop() {
					create()
					drop()
				}
			})
			create()
			b.Run("move", func(b *testing.B) {
				for b.Loop() {
					for r := range c.Catalog().RegionsOf(table("t")) {
						if err := m.Move(ctx, r.Encoded, meta.ServerName{}); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		})
	}
}
