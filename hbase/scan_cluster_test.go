package hbase_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// hardKey makes keys that sort unlike text: zeros, 0xff, prefixes of one
// another, and the comma that separates the parts of a region's name.
func hardKey(r *rand.Rand) []byte {
	b := make([]byte, 1+r.IntN(4))
	for i := range b {
		b[i] = "\x00\x00\xff\xff,,a /\x01\xfe"[r.IntN(11)]
	}
	return b
}

// wantRows are the rows of a scan, in its order, out of all in byte order.
func wantRows(s *hbase.Scan, all []string) []string {
	var want []string
	for _, row := range all {
		fromStart, fromStop := bytes.Compare([]byte(row), s.Start), bytes.Compare([]byte(row), s.Stop)
		if s.Reversed {
			fromStart, fromStop = -fromStart, -fromStop
		}
		if len(s.Start) > 0 && (fromStart < 0 || fromStart == 0 && s.ExcludeStart) ||
			len(s.Stop) > 0 && (fromStop > 0 || fromStop == 0 && !s.IncludeStop) {
			continue
		}
		want = append(want, row)
	}
	if s.Reversed {
		slices.Reverse(want)
	}
	if s.Limit > 0 && len(want) > s.Limit {
		want = want[:s.Limit]
	}
	return want
}

// TestScansAgainstModel: scans with any combination of bounds, direction,
// limits and cuts give what a sorted list gives, while the regions they walk
// over are split, merged and moved at keys that are hard to compare.
func TestScansAgainstModel(t *testing.T) {
	seed := newSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.CreateTable(t.Context(), "t", []string{"f", "g"}, []byte(","), []byte("a\xff")); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	table, _ := client.Table("t")

	model := map[string]map[string]int{} // row, column: length of the value
	var ops []hbase.Op
	for range 200 {
		row := hardKey(random)
		put := hbase.NewPut(row)
		columns := map[string]int{}
		for range 1 + random.IntN(6) {
			family, qualifier := []string{"f", "g"}[random.IntN(2)], string(hardKey(random)[:random.IntN(2)])
			if _, twice := columns[family+":"+qualifier]; !twice {
				columns[family+":"+qualifier] = random.IntN(3) * random.IntN(500)
				put.Set(family, qualifier, make([]byte, columns[family+":"+qualifier]))
			}
		}
		if model[string(row)] == nil {
			model[string(row)] = columns
			ops = append(ops, put)
		}
	}
	if err := table.Batch(t.Context(), ops).Err(); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for row := range model {
		rows = append(rows, row)
	}
	slices.Sort(rows)

	bound := func() []byte {
		switch random.IntN(4) {
		case 0:
			return nil
		case 1:
			return hardKey(random)
		}
		return []byte(rows[random.IntN(len(rows))])
	}
	for range 400 {
		regions, err := c.Regions("t")
		if err != nil {
			t.Fatal(err)
		}
		// What is no key to split at, or no neighbour to merge, is refused.
		switch i := random.IntN(len(regions)); random.IntN(8) {
		case 0:
			_ = c.Split(t.Context(), regions[i].Encoded, hardKey(random))
		case 1:
			_ = c.Merge(t.Context(), regions[i].Encoded, regions[min(i+1, len(regions)-1)].Encoded)
		case 2:
			_ = c.MoveRegion(t.Context(), regions[i].Encoded, -1)
		}
		s := &hbase.Scan{
			Start: bound(), Stop: bound(), ExcludeStart: random.IntN(3) == 0, IncludeStop: random.IntN(3) == 0,
			Reversed: random.IntN(2) == 0, Caching: random.IntN(6), Limit: random.IntN(2) * random.IntN(40),
			Batch: random.IntN(2) * random.IntN(4), MaxResultSize: int64(random.IntN(2) * random.IntN(600)), Prefetch: hbase.Prefetch(random.IntN(3)),
			ReuseResults: random.IntN(2) == 0,
		}
		s.AllowPartial = s.Batch == 0 && random.IntN(2) == 0
		if order := bytes.Compare(s.Start, s.Stop); len(s.Start) > 0 && len(s.Stop) > 0 && (order == 0 || order > 0 != s.Reversed) {
			continue // nothing, or refused
		}
		var want, got []string
		for _, row := range wantRows(s, rows) {
			columns := model[row]
			names := make([]string, 0, len(columns))
			for name := range columns {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				want = append(want, fmt.Sprintf("%q %q %d", row, name, columns[name]))
			}
		}
		for r, err := range table.Scan(t.Context(), s).Rows() {
			if err != nil {
				t.Fatalf("%+v: %v", s, err)
			}
			if s.Batch > 0 && len(r.Cells) > s.Batch {
				t.Errorf("%d cells where %d are allowed", len(r.Cells), s.Batch)
			}
			for _, cell := range r.Cells {
				got = append(got, fmt.Sprintf("%q %q %d", cell.Row, string(cell.Family)+":"+string(cell.Qualifier), len(cell.Value)))
			}
		}
		if n := rpc.Lent(); n != 0 {
			t.Fatalf("%+v: %d buffers are still lent", s, n)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v, %q to %q:\n got %v\nwant %v", s, s.Start, s.Stop, got, want)
		}
	}
}
