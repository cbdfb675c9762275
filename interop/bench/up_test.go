//go:build interop

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
	"github.com/holdfast-hbase/holdfast/interop/upproc"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// BenchmarkUp starts `holdfast up` again and again, in memory and on a
// directory with two million cells that was closed in order: time from exec to
// ready, to the first row served to a client, and resident memory once it
// idles.
func BenchmarkUp(b *testing.B) {
	bin := upproc.Build(b)
	b.Run("memory", func(b *testing.B) {
		measureUp(b, bin, func(ctx context.Context, c *hbase.Client) error {
			if err := c.Admin().CreateTable(ctx, admin.NewTable(upTable, admin.NewFamily("f"))); err != nil {
				return err
			}
			tab, err := c.Table(upTable)
			if err != nil {
				return err
			}
			return errors.Join(tab.Put(ctx, hbase.NewPut("r").Set("f", "q", []byte("v"))), served(ctx, tab, "r", 1))
		}, "--in-memory")
	})
	b.Run("disk", func(b *testing.B) {
		dir := b.TempDir()
		fill(b, dir)
		measureUp(b, bin, func(ctx context.Context, c *hbase.Client) error {
			tab, err := c.Table(upTable)
			if err != nil {
				return err
			}
			return served(ctx, tab, "row0123456", upColumns)
		}, "--dir", dir)
	})
}

const (
	upTable   = "t"
	upRows    = 200_000
	upColumns = 10
)

func served(ctx context.Context, tab *hbase.Table, row string, columns int) error {
	r, err := tab.Get(ctx, hbase.NewGet(row))
	if err == nil && len(r.Cells) != columns {
		err = fmt.Errorf("row %s has %d cells, want %d", row, len(r.Cells), columns)
	}
	return err
}

func measureUp(b *testing.B, bin string, first func(context.Context, *hbase.Client) error, flags ...string) {
	var ready, serving []time.Duration
	var rss []int64
	for b.Loop() {
		for range 10 {
			p := upproc.Up(b, bin, flags...)
			began := time.Now()
			client, err := hbase.Open(b.Context(), p.Address)
			if err != nil {
				b.Fatal(err)
			}
			if err := first(b.Context(), client); err != nil {
				b.Fatal(err)
			}
			ready, serving = append(ready, p.Start), append(serving, p.Start+time.Since(began))
			client.Close()
			time.Sleep(300 * time.Millisecond)
			rss = append(rss, p.RSS())
			if err := errors.Join(p.Signal(os.Interrupt), p.Wait(10*time.Second)); err != nil {
				b.Fatal(err)
			}
		}
	}
	slices.Sort(ready)
	slices.Sort(serving)
	slices.Sort(rss)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(ready[len(ready)/2]), "ready-ms")
	b.ReportMetric(ms(ready[len(ready)-1]), "ready-worst-ms")
	b.ReportMetric(ms(serving[len(serving)/2]), "first-row-ms")
	b.ReportMetric(float64(rss[len(rss)/2])/(1<<20), "rss-MB")
}

// fill makes a directory with a table of upRows rows, by way of an HFile.
func fill(b *testing.B, dir string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "f", "file")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w, err := hfile.NewWriter(f, hfile.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range upRows {
		for k := range upColumns {
			c := cells.Cell{Row: fmt.Appendf(nil, "row%07d", i), Family: []byte("f"), Qualifier: fmt.Appendf(nil, "column%02d", k), Timestamp: 1, Type: cells.Put,
				Value: fmt.Appendf(nil, "value %020d of sixty bytes, more or less, as they come", i*upColumns+k)}
			if err := w.Append(&c); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		b.Fatal(err)
	}
	c, err := minihbase.Start(b.Context(), minihbase.Options{Dir: dir, ControlPort: -1})
	if err != nil {
		b.Fatal(err)
	}
	client, err := hbase.Open(b.Context(), c.Address())
	if err != nil {
		b.Fatal(err)
	}
	if err := client.Admin().CreateTable(b.Context(), admin.NewTable(upTable, admin.NewFamily("f"))); err != nil {
		b.Fatal(err)
	}
	if r, err := client.Admin().BulkLoad(b.Context(), upTable, filepath.Dir(filepath.Dir(path))); err != nil || r.Cells != upRows*upColumns {
		b.Fatalf("%+v, %v", r, err)
	}
	client.Close()
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
}
