package hbase_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// TestMutationsAreValues: what was copied from a mutation does not change with
// it, nor it with the copy.
func TestMutationsAreValues(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 39, 40, 41, 64, 65, 32767} {
		for cells := range 7 {
			row := strings.Repeat("r", size)
			p := hbase.NewPut(row)
			for i := range cells {
				p.Set("f", fmt.Sprint("q", i), []byte{byte(i)})
			}
			a, b := *p, *p
			p.Set("f", "own", []byte("p"))
			a.Set("g", "own", []byte("a")).Set("f", "more", nil)
			b.Set("h", "b", []byte("b")).Set("h", "more", nil)
			c := a
			c.Set("i", "c", nil)
			a.Set("k", "a", nil)
			want := func(name string, p *hbase.Put, more ...string) {
				t.Helper()
				var got []string
				for _, c := range p.Cells() {
					if string(c.Row) != row {
						t.Fatalf("%s: a cell of row %.20q", name, c.Row)
					}
					got = append(got, fmt.Sprintf("%s:%s", c.Family, c.Qualifier))
				}
				var all []string
				for i := range cells {
					all = append(all, fmt.Sprint("f:q", i))
				}
				if all = append(all, more...); fmt.Sprint(all) != fmt.Sprint(got) {
					t.Errorf("row of %d bytes, %d cells: %s has %v, want %v", size, cells, name, got, all)
				}
			}
			want("the first", p, "f:own")
			want("a copy", &a, "g:own", "f:more", "k:a")
			want("another", &b, "h:b", "h:more")
			want("a copy's copy", &c, "g:own", "f:more", "i:c")
		}
	}
}

// TestReadsAreValues: the same of the columns of Gets and Scans.
func TestReadsAreValues(t *testing.T) {
	t.Parallel()
	for families := range 5 {
		g, s := hbase.NewGet("r"), hbase.NewScan()
		for i := range families {
			f := string(rune('a' + i))
			for _, q := range []string{"1", "2", "3"} {
				g.Column(f, q)
				s.Column(f, q)
			}
		}
		want := fmt.Sprintf("%s", g.Columns)
		one, two, scan := *g, *g, *s
		one.Column("a", "x").Family("y").Column("b", "4")
		first := fmt.Sprintf("%s", one.Columns)
		two.Column("a", "z").Family("z").Column("b", "5")
		scan.Column("a", "x").Family("b")
		if got := fmt.Sprintf("%s", g.Columns); got != want {
			t.Errorf("the Get had %s, and has %s", want, got)
		}
		if got := fmt.Sprintf("%s", s.Columns); got != want {
			t.Errorf("the Scan had %s, and has %s", want, got)
		}
		if got := fmt.Sprintf("%s", one.Columns); got != first {
			t.Errorf("the copy had %s, and has %s", first, got)
		}
	}
}

// TestMutationsAreReused: one Put in several batches at a time, twice in one,
// in a Mutator, and appended to afterwards.
func TestMutationsAreReused(t *testing.T) {
	_, tab, _ := parallelTable(t)
	for _, size := range []int{1, 40, 41, 32767} {
		row := bytes.Repeat([]byte{'s'}, size)
		p := hbase.NewPut(row).Set("f", "a", []byte("1"))
		p.Add(hbase.Cell{Family: []byte("f"), Qualifier: []byte("b"), Timestamp: hbase.LatestTimestamp, Value: []byte("2"), Tags: []byte{0, 3, 65, 'x', 'y'}})
		rm := hbase.NewRowMutations(row).Add(p, p)
		m, err := tab.Mutator(hbase.MutatorOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				if err := tab.Batch(t.Context(), []hbase.Op{p, p, rm}).Err(); err != nil {
					t.Error(err)
				}
				if err := tab.Put(t.Context(), p); err != nil {
					t.Error(err)
				}
				if err := m.Add(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		p.Set("f", "c", []byte("3"))
		if err := tab.Put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		r, err := tab.Get(t.Context(), hbase.NewGet(row))
		if err != nil || len(r.Cells) != 3 || string(r.Value("f", "b")) != "2" || string(r.Value("f", "c")) != "3" {
			t.Errorf("row of %d bytes: %v, %v", size, r, err)
		}
	}
	if err := tab.Put(t.Context(), hbase.NewPut("").Set("f", "q", nil)); err == nil {
		t.Error("an empty row was taken")
	}
	if out := tab.Batch(t.Context(), []hbase.Op{hbase.NewPut("").Set("f", "q", nil), (*hbase.Put)(nil), nil, hbase.NewPut("ok").Set("f", "q", nil), (*hbase.RowMutations)(nil), (*hbase.Get)(nil), (*hbase.CheckAndMutate)(nil), &hbase.CheckAndMutate{Row: []byte("x"), Action: (*hbase.Put)(nil)}, &hbase.RowMutations{Row: []byte("x"), Mutations: []hbase.Mutation{nil}}}); out[3].Err != nil || len(out.Failed()) != len(out)-1 {
		t.Errorf("outcomes %+v", out)
	}
}
