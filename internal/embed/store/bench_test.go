package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

func benchStore(b *testing.B, o Options) *Store {
	b.Helper()
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func benchRow(i int) []byte { return fmt.Appendf(nil, "user%08d", i) }

func benchPut(row []byte, columns int) *RowMutation {
	op := Op{Kind: Put}
	for q := range columns {
		op.Cells = append(op.Cells, cells.Cell{Family: []byte("f"), Qualifier: fmt.Appendf(nil, "field%d", q),
			Timestamp: cells.LatestTimestamp, Value: []byte("0123456789012345678901234567890123456789012345678901234567890123")[:60]})
	}
	return &RowMutation{Row: row, Ops: []Op{op}}
}

func benchFill(b *testing.B, t *Table, rows, columns int) {
	b.Helper()
	ctx := context.Background()
	for i := 0; i < rows; {
		var ms []*RowMutation
		for ; i < rows && len(ms) < 100; i++ {
			ms = append(ms, benchPut(benchRow(i), columns))
		}
		_, errs := t.MutateBatch(ctx, ms)
		for _, err := range errs {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func benchTable(s *Store) *Table {
	return s.Table(1, cells.NewSchema(cells.DefaultFamily([]byte("f"))))
}

func BenchmarkOpenInMemory(b *testing.B) {
	for b.Loop() {
		s, err := Open(Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, columns := range []int{1, 10} {
		b.Run(fmt.Sprintf("columns=%d", columns), func(b *testing.B) {
			t := benchTable(benchStore(b, Options{}))
			const rows = 10_000
			benchFill(b, t, rows, columns)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				got, err := t.Get(benchRow(i*7919%rows), cells.NewQuery())
				if err != nil || len(got) != columns {
					b.Fatal(len(got), err)
				}
			}
		})
	}
	b.Run("one-of-10", func(b *testing.B) {
		t := benchTable(benchStore(b, Options{}))
		const rows = 10_000
		benchFill(b, t, rows, 10)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			got, err := t.Get(benchRow(i*7919%rows), cells.NewQuery().AddColumn([]byte("f"), []byte("field7")))
			if err != nil || len(got) != 1 {
				b.Fatal(len(got), err)
			}
		}
	})
	b.Run("flushed", func(b *testing.B) {
		s := benchStore(b, Options{})
		t := benchTable(s)
		const rows = 10_000
		benchFill(b, t, rows, 10)
		if err := s.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			got, err := t.Get(benchRow(i*7919%rows), cells.NewQuery())
			if err != nil || len(got) != 10 {
				b.Fatal(len(got), err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		t := benchTable(benchStore(b, Options{}))
		const rows = 10_000
		benchFill(b, t, rows, 10)
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := t.Get(benchRow(i*7919%rows), cells.NewQuery()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func BenchmarkScan(b *testing.B) {
	for _, flushed := range []bool{false, true} {
		b.Run(fmt.Sprintf("flushed=%v", flushed), func(b *testing.B) {
			s := benchStore(b, Options{})
			t := benchTable(s)
			const rows = 20_000
			benchFill(b, t, rows, 10)
			if flushed {
				if err := s.Flush(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			n := 0
			for b.Loop() {
				sc, err := t.NewScan(&cells.ScanSpec{IncludeStart: true, Query: cells.NewQuery()}, 0)
				if err != nil {
					b.Fatal(err)
				}
				var buf []cells.Cell
				for {
					got, state, err := sc.Next(buf[:0], &cells.Limits{})
					if err != nil {
						b.Fatal(err)
					}
					n += len(got)
					buf = got
					if state == cells.NoMoreRows {
						break
					}
				}
				if err := sc.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mcells/s")
		})
	}
}

func BenchmarkPut(b *testing.B) {
	for _, dir := range []string{"memory", "disk"} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/writers=%d", dir, writers), func(b *testing.B) {
				o := Options{}
				if dir == "disk" {
					o.Dir = b.TempDir()
				}
				t := benchTable(benchStore(b, o))
				var next atomic.Int64
				b.SetParallelism(writers)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := t.MutateRow(context.Background(), benchPut(benchRow(int(next.Add(1))), 10)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

func BenchmarkIncrement(b *testing.B) {
	t := benchTable(benchStore(b, Options{}))
	one := binary.BigEndian.AppendUint64(nil, 1)
	b.ReportAllocs()
	for b.Loop() {
		m := &RowMutation{Row: []byte("r"), Ops: []Op{{Kind: Increment, Cells: []cells.Cell{{Family: []byte("f"), Qualifier: []byte("c"), Timestamp: math.MaxInt64, Value: one}}}}}
		if _, err := t.MutateRow(context.Background(), m); err != nil {
			b.Fatal(err)
		}
	}
}
