package cluster

import (
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/meta"
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
