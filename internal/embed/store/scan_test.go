package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Rules G1 to G9: bounds, directions, regions.
func TestScanBounds(t *testing.T) {
	tab := testTable(t, testStore(t, Options{}))
	for _, r := range []string{"a", "a\x00", "b", "c", "d", "\xff"} {
		mutate(t, tab, r, put(at("f:q", 1, r)))
	}
	mutate(t, tab, "bx", put(at("f:q", 1, "dead")))
	mutate(t, tab, "bx", del(marker(cells.DeleteFamily, "f:", 5)))
	other := tab.s.Table(2, tab.Schema())
	mutate(t, other, "a", put(at("f:q", 1, "of another table")))

	for _, c := range []struct {
		rule               string
		start, stop        string
		notStart, withStop bool
		reversed           bool
		lower, upper       string
		want               string
	}{
		{rule: "G1 open", want: "a a\x00 b c d \xff"},
		{rule: "G1", start: "a\x00", stop: "c", want: "a\x00 b"},
		{rule: "G2 not the start", start: "a", stop: "c", notStart: true, want: "a\x00 b"},
		{rule: "G2 with the stop", start: "b", stop: "c", withStop: true, want: "b c"},
		{rule: "G3 one row", start: "b", stop: "b", withStop: true, want: "b"},
		{rule: "G3 nothing", start: "b", stop: "b", want: ""},
		{rule: "G4", start: "c", stop: "b", want: ""},
		{rule: "G5", start: "aa", stop: "cc", want: "b c"},
		{rule: "G6 open", reversed: true, want: "\xff d c b a\x00 a"},
		{rule: "G6", reversed: true, start: "c", stop: "a", want: "c b a\x00"},
		{rule: "G6 with the stop", reversed: true, start: "cc", stop: "a", withStop: true, want: "c b a\x00 a"},
		{rule: "G6 not the start", reversed: true, start: "c", notStart: true, want: "b a\x00 a"},
		{rule: "G9", start: "bx", stop: "bx", withStop: true, want: ""},
		{rule: "region", lower: "a\x00", upper: "d", want: "a\x00 b c"},
		{rule: "region and start", lower: "b", upper: "d", start: "a", want: "b c"},
		{rule: "region reversed", lower: "b", upper: "d", reversed: true, want: "c b"},
		{rule: "region reversed and start", lower: "b", upper: "d", start: "\xff", reversed: true, want: "c b"},
		{rule: "region reversed, start at its end", lower: "b", upper: "d", start: "d", reversed: true, want: "c b"},
	} {
		spec := &cells.ScanSpec{Start: []byte(c.start), Stop: []byte(c.stop), IncludeStart: !c.notStart, IncludeStop: c.withStop,
			Reversed: c.reversed, Lower: []byte(c.lower), Upper: []byte(c.upper), Query: newest()}
		sc, err := tab.NewScan(spec, 0)
		if err != nil {
			t.Fatal(err)
		}
		rows := ""
		for {
			got, state, err := sc.Next(nil, &cells.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 0 {
				if rows != "" {
					rows += " "
				}
				rows += string(got[0].Row)
			}
			if state == cells.NoMoreRows {
				break
			}
		}
		if err := sc.Close(); err != nil {
			t.Fatal(err)
		}
		same(t, c.rule, rows, c.want)
	}
}

// Rules G10, G11, C23, N11: what a query may ask.
func TestQueryRefused(t *testing.T) {
	tab := testTable(t, testStore(t, Options{}))
	_, err := tab.Get([]byte("r"), all("nope"))
	refused(t, "family in a get", err, cells.ClassNoSuchColumnFamily, true)
	_, err = tab.NewScan(whole(all("f:q", "nope:q")), 0)
	refused(t, "family in a scan", err, cells.ClassNoSuchColumnFamily, true)
	q := all("f:q")
	q.Raw = true
	_, err = tab.NewScan(whole(q), 0)
	refused(t, "columns in a raw scan", err, cells.ClassDoNotRetry, true)
	mutate(t, tab, "r", put(at("f:a", 1, "1"), at("g:a", 1, "2")))
	same(t, "one family", get(t, tab, "r", all("g")), "g:a@1=2")
	same(t, "none named", get(t, tab, "r", all()), "f:a@1=1 g:a@1=2")
}

// Rules H1, H6, H8: limits inside a row.
func TestScanLimits(t *testing.T) {
	tab := testTable(t, testStore(t, Options{}))
	for _, r := range []string{"r1", "r2"} {
		mutate(t, tab, r, put(at("f:1", 1, "a"), at("f:2", 1, "b"), at("f:3", 1, "c"), at("g:1", 1, "d"), at("g:2", 1, "e")))
	}
	size := int64((&cells.Cell{Row: []byte("r1"), Family: []byte("f"), Qualifier: []byte("1"), Value: []byte("a")}).ResultSize())
	steps := func(lim cells.Limits) (out []string) {
		t.Helper()
		sc, err := tab.NewScan(whole(newest()), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer sc.Close()
		for len(out) < 50 {
			got, state, err := sc.Next(nil, &lim)
			if err != nil {
				t.Fatal(err)
			}
			if err := sc.Pause(); err != nil {
				t.Fatal(err)
			}
			text := ""
			for i := range got {
				text += string(got[i].Value)
			}
			out = append(out, fmt.Sprintf("%s:%d", text, state))
			if state == cells.NoMoreRows {
				break
			}
		}
		return out
	}
	for _, c := range []struct {
		what string
		lim  cells.Limits
		want string
	}{
		{"whole rows", cells.Limits{}, "[abcde:0 abcde:1]"},
		{"H1", cells.Limits{Batch: 2}, "[ab:2 cd:2 e:0 ab:2 cd:2 e:1]"},
		{"batch that fits", cells.Limits{Batch: 5}, "[abcde:0 abcde:1]"},
		{"H6 one cell at a time", cells.Limits{Bytes: 1, MidRow: true}, "[a:3 b:3 c:3 d:3 e:4 a:3 b:3 c:3 d:3 e:4 :1]"},
		{"H8", cells.Limits{Bytes: 5 * size, MidRow: true}, "[abcde:4 abcde:4 :1]"},
		{"H6", cells.Limits{Bytes: 3*size - 1, MidRow: true}, "[abc:3 de:0 abc:3 de:1]"},
		{"H7", cells.Limits{Bytes: 1}, "[abcde:0 abcde:1]"},
	} {
		same(t, c.what, fmt.Sprint(steps(c.lim)), c.want)
	}
}

// Rule H10: time runs out between and inside rows, but something is looked at
// in every call.
func TestScanTime(t *testing.T) {
	tab := testTable(t, testStore(t, Options{}))
	const rows = 1000
	for i := range rows {
		mutate(t, tab, fmt.Sprintf("r%04d", i), put(at("f:q", 1, "x")))
	}
	for i := range rows {
		mutate(t, tab, fmt.Sprintf("r%04d", i), del(marker(cells.DeleteColumn, "f:q", 1)))
	}
	sc, err := tab.NewScan(whole(newest()), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	calls := 0
	for {
		got, state, err := sc.Next(nil, &cells.Limits{MidRow: true, Expired: func() bool { return true }})
		if err != nil || len(got) > 0 {
			t.Fatal(got, err)
		}
		if state == cells.NoMoreRows {
			break
		}
		if state != cells.TimeReached && state != cells.TimeReachedMidRow {
			t.Fatalf("state %d", state)
		}
		if sc.LastRow() == nil && calls > 0 {
			t.Fatal("no row reached")
		}
		if calls++; calls > rows {
			t.Fatal("no progress")
		}
	}
	if calls < 2 {
		t.Errorf("time was looked at %d times", calls)
	}
}

// Rules I1, I2, I5, I7: a scanner sees what was there, whatever happens.
func TestReadPoint(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	ctx := context.Background()
	for _, r := range []string{"a", "b", "c"} {
		mutate(t, tab, r, put(at("f:q", 1, "old")))
	}
	sc, err := tab.NewScan(whole(all()), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	got, _, err := sc.Next(nil, &cells.Limits{})
	if err != nil || show(got) != "f:q@1=old" {
		t.Fatal(show(got), err)
	}
	if err := sc.Pause(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		mutate(t, tab, "b", put(at("f:q", int64(10+i), "new")))
	}
	mutate(t, tab, "bb", put(at("f:q", 2, "new")))
	mutate(t, tab, "c", del(marker(cells.DeleteFamily, "f:", 100)))
	if err := tab.MajorCompact(ctx, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	readPoint := sc.ReadPoint()
	same(t, "the open scanner", drain(t, sc), "b{f:q@1=old} c{f:q@1=old}")
	same(t, "opened again", scanAll(t, tab, whole(all()), readPoint), "a{f:q@1=old} b{f:q@1=old} c{f:q@1=old}")
	now := "a{f:q@1=old} b{f:q@14=new f:q@13=new f:q@12=new} bb{f:q@2=new}"
	same(t, "a new one", scanAll(t, tab, whole(all()), 0), now)
	if err := sc.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tab.MajorCompact(ctx, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	same(t, "after a major compaction", scanAll(t, tab, whole(all()), 0), now)
	q := all()
	q.Raw = true
	same(t, "what is left", scanAll(t, tab, whole(q), 0), now)
}

// A paused scanner goes on where it was, in the middle of a row too.
func TestPauseMidRow(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	for _, r := range []string{"a", "b\x00", "c"} {
		mutate(t, tab, r, put(at("f:\x00", 1, "1"), at("f:\x00\xff", 1, "2"), at("f:b", 1, "3"), at("g:", 1, "4")))
	}
	for _, reversed := range []bool{false, true} {
		sc, err := tab.NewScan(&cells.ScanSpec{IncludeStart: true, Reversed: reversed, Query: newest()}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var text string
		for {
			got, state, err := sc.Next(nil, &cells.Limits{Batch: 1})
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				text += string(got[i].Row[:1]) + string(got[i].Value) + " "
			}
			if state == cells.NoMoreRows {
				break
			}
			if err := sc.Pause(); err != nil {
				t.Fatal(err)
			}
			mutate(t, tab, "a", put(at("f:a", 1, "not seen")))
		}
		if err := sc.Close(); err != nil {
			t.Fatal(err)
		}
		want := "a1 a2 a3 a4 b1 b2 b3 b4 c1 c2 c3 c4 "
		if reversed {
			want = "c1 c2 c3 c4 b1 b2 b3 b4 a1 a2 a3 a4 "
			text = text[:0] + text
		}
		same(t, fmt.Sprintf("reversed %v", reversed), removeNew(text), want)
	}
}

// removeNew drops the cells written while the first of the two scans ran.
func removeNew(text string) string {
	const mark = "anot seen "
	for i := 0; i+len(mark) <= len(text); i++ {
		if text[i:i+len(mark)] == mark {
			return text[:i] + text[i+len(mark):]
		}
	}
	return text
}

// A scan over many rows that are not visible, and seeks past many versions.
func TestScanWideAndDeep(t *testing.T) {
	tab := testTable(t, testStore(t, Options{}))
	for v := range 100 {
		mutate(t, tab, "deep", put(at("f:a", int64(v), "a"), at("f:b", int64(v), "b")))
	}
	var wide []cells.Cell
	for i := range 200 {
		wide = append(wide, at(fmt.Sprintf("f:%03d", i), 1, "w"))
	}
	mutate(t, tab, "wide", put(wide...))
	same(t, "newest of many versions", get(t, tab, "deep", newest()), "f:a@99=a f:b@99=b")
	same(t, "columns far apart", get(t, tab, "wide", newest("f:003", "f:150", "f:199", "f:x")), "f:003@1=w f:150@1=w f:199@1=w")
	same(t, "column in a scan", scanAll(t, tab, whole(newest("f:150")), 0), "wide{f:150@1=w}")
}

// A scanner spares from a major compaction what lies in its own region, as in
// HBase, and nothing of other regions and tables.
func TestScannersSpareTheirRegion(t *testing.T) {
	s, ctx := testStore(t, Options{}), t.Context()
	tab, other := testTable(t, s), s.Table(77, testTable(t, s).Schema())
	q := all()
	q.Raw = true
	for _, r := range []string{"a", "m"} {
		mutate(t, tab, r, put(at("f:q", 1, "old")))
	}
	mutate(t, other, "a", put(at("f:q", 1, "old")))
	spec := whole(all())
	spec.Upper = []byte("m")
	sc, err := tab.NewScan(spec, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	for _, r := range []string{"a", "m"} {
		mutate(t, tab, r, del(marker(cells.DeleteFamily, "f:", 100)))
	}
	mutate(t, other, "a", del(marker(cells.DeleteFamily, "f:", 100)))
	for _, region := range [][2]string{{"", "m"}, {"m", ""}} {
		if err := tab.MajorCompact(ctx, []byte(region[0]), []byte(region[1]), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.MajorCompact(ctx, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	same(t, "its own region", scanAll(t, tab, whole(q), 0), "a{f:@100=DeleteFamily f:q@1=old}")
	same(t, "another table", scanAll(t, other, whole(q), 0), "")
	same(t, "the scanner", drain(t, sc), "a{f:q@1=old}")
}
