package store

import (
	"context"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

func TestSmoke(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tab := s.Table(1, cells.NewSchema(cells.DefaultFamily([]byte("f"))))
	ctx := context.Background()
	for _, r := range []string{"a", "b", "c"} {
		_, err := tab.MutateRow(ctx, &RowMutation{Row: []byte(r), Ops: []Op{{Kind: Put, Cells: []cells.Cell{{Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 10, Value: []byte("v" + r)}, {Family: []byte("f"), Qualifier: []byte("r"), Timestamp: 10, Value: []byte("v" + r)}}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := tab.Get([]byte("b"), cells.NewQuery())
	t.Log(got, err)
	for _, rev := range []bool{false, true} {
		sc, err := tab.NewScan(&cells.ScanSpec{IncludeStart: true, Reversed: rev, Query: cells.NewQuery()}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for {
			got, st, err := sc.Next(nil, &cells.Limits{Batch: 1})
			t.Log(got, st, err)
			sc.Pause()
			if st == cells.NoMoreRows {
				break
			}
		}
		sc.Close()
	}
}

func BenchmarkGet(b *testing.B) {
	s, err := Open(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	tab := s.Table(1, cells.NewSchema(cells.DefaultFamily([]byte("f"))))
	ctx := context.Background()
	for i := range 1000 {
		tab.MutateRow(ctx, &RowMutation{Row: []byte{byte(i >> 8), byte(i)}, Ops: []Op{{Kind: Put, Cells: []cells.Cell{{Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 10, Value: []byte("v")}}}}})
	}
	b.ReportAllocs()
	row := []byte{0, 0}
	for i := 0; b.Loop(); i++ {
		row[0], row[1] = byte(i%1000>>8), byte(i%1000)
		got, err := tab.Get(row, cells.NewQuery())
		if err != nil || len(got) != 1 {
			b.Fatal(got, err)
		}
	}
}
