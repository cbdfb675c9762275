package cells

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
)

// rowsOf serves fixed rows in either direction.
func rowsOf(rows ...[]Cell) func(start []byte, reversed bool) iter.Seq[[]Cell] {
	return func(start []byte, reversed bool) iter.Seq[[]Cell] {
		return func(yield func([]Cell) bool) {
			in := slices.Clone(rows)
			if reversed {
				slices.Reverse(in)
			}
			for _, r := range in {
				cmp := bytes.Compare(r[0].Row, start)
				if start != nil && (!reversed && cmp < 0 || reversed && cmp > 0) {
					continue
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

func rowOf(row string, columns ...string) (out []Cell) {
	for i, c := range columns {
		f, q, _ := strings.Cut(c, ":")
		out = append(out, Cell{Row: []byte(row), Family: []byte(f), Qualifier: []byte(q), Timestamp: 1, Type: Put, Value: []byte(fmt.Sprint(i)), Seq: 1})
	}
	return out
}

func read(t *testing.T, spec *ScanSpec, rows ...[]Cell) string {
	t.Helper()
	src := NewRowsSource(rowsOf(rows...), bytes.Compare, spec.Reversed)
	defer src.Close()
	s, err := NewScanner(src, NewSchema(DefaultFamily([]byte("f")), DefaultFamily([]byte("g")), DefaultFamily([]byte("h"))), spec, bytes.Compare, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for range 100 {
		got, state, err := s.Next(nil, &Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			text := string(got[0].Row)
			for i := range got {
				text += fmt.Sprintf(" %s:%s", got[i].Family, got[i].Qualifier)
			}
			out = append(out, text)
		}
		if state == NoMoreRows {
			return strings.Join(out, ", ")
		}
	}
	t.Fatal("does not end")
	return ""
}

// scripted answers by column, and notes what it is shown.
type scripted struct {
	codes    map[string]ReturnCode
	hint     *Cell
	shown    []string
	reversed bool
	whole    bool
	rowsOut  map[string]bool
	allAfter int // FilterAllRemaining once so many cells were shown; 0 never
}

func (f *scripted) Reset() error { f.shown = append(f.shown, "|"); return nil }
func (f *scripted) FilterAllRemaining() bool {
	return f.allAfter > 0 && len(f.shown) >= f.allAfter
}
func (f *scripted) FilterRowKey(c *Cell) (bool, error) { return f.rowsOut[string(c.Row)], nil }
func (f *scripted) FilterCell(c *Cell) (ReturnCode, error) {
	name := string(c.Family) + ":" + string(c.Qualifier)
	f.shown = append(f.shown, name)
	return f.codes[name], nil
}
func (f *scripted) TransformCell(*Cell) error                 { return nil }
func (f *scripted) FilterRowCells(row []Cell) ([]Cell, error) { return row, nil }
func (f *scripted) FilterRow() (bool, error)                  { return false, nil }
func (f *scripted) HasFilterRow() bool                        { return f.whole }
func (f *scripted) NextCellHint(*Cell) (*Cell, error)         { return f.hint, nil }
func (f *scripted) FamilyEssential([]byte) bool               { return true }
func (f *scripted) SetReversed(reversed bool)                 { f.reversed = reversed }
func (f *scripted) IsReversed() bool                          { return f.reversed }

func TestFilterCodes(t *testing.T) {
	rows := [][]Cell{rowOf("a", "f:1", "f:2", "f:3", "g:1", "g:2"), rowOf("b", "f:1", "g:1"), rowOf("c", "f:2", "h:1")}
	at := func(row, family, qualifier string) *Cell {
		return &Cell{Row: []byte(row), Family: []byte(family), Qualifier: []byte(qualifier), Timestamp: LatestTimestamp, Type: Maximum}
	}
	for _, c := range []struct {
		rule     string
		filter   scripted
		reversed bool
		want     string
		shown    string
	}{
		{"N4: the next row is this family's", scripted{codes: map[string]ReturnCode{"f:1": NextRow}}, false,
			"a g:1 g:2, b g:1, c f:2 h:1", "f:1 g:1 g:2 | f:1 g:1 | f:2 h:1 |"},
		{"skip, next column", scripted{codes: map[string]ReturnCode{"f:2": Skip, "g:1": NextCol}}, false,
			"a f:1 f:3 g:2, b f:1, c h:1", "f:1 f:2 f:3 g:1 g:2 | f:1 g:1 | f:2 h:1 |"},
		{"include and next row", scripted{codes: map[string]ReturnCode{"f:2": IncludeAndSeekNextRow}}, false,
			"a f:1 f:2 g:1 g:2, b f:1 g:1, c f:2 h:1", "f:1 f:2 g:1 g:2 | f:1 g:1 | f:2 h:1 |"},
		{"hint in the row", scripted{codes: map[string]ReturnCode{"f:1": SeekNextUsingHint}, hint: at("a", "f", "3")}, false,
			"a f:3 g:1 g:2, b g:1, c f:2 h:1", "f:1 f:3 g:1 g:2 | f:1 g:1 | f:2 h:1 |"},
		{"N8: hint behind", scripted{codes: map[string]ReturnCode{"f:2": SeekNextUsingHint}, hint: at("a", "f", "1")}, false,
			"a f:1 f:3 g:1 g:2, b f:1 g:1, c h:1", "f:1 f:2 f:3 g:1 g:2 | f:1 g:1 | f:2 h:1 |"},
		{"hint to a later row takes the family there only", scripted{codes: map[string]ReturnCode{"f:1": SeekNextUsingHint}, hint: at("c", "", "")}, false,
			"a g:1 g:2, b g:1, c f:2 h:1", "f:1 g:1 g:2 | g:1 | f:2 h:1 |"},
		{"no hint", scripted{codes: map[string]ReturnCode{"f:1": SeekNextUsingHint}}, false,
			"a f:2 f:3 g:1 g:2, b g:1, c f:2 h:1", "f:1 f:2 f:3 g:1 g:2 | f:1 g:1 | f:2 h:1 |"},
		{"reversed hint", scripted{codes: map[string]ReturnCode{"f:2": SeekNextUsingHint, "h:1": SeekNextUsingHint}, hint: at("a", "", "")}, true,
			"b g:1, a f:1 f:3 g:1 g:2", "f:2 h:1 | g:1 | f:1 f:2 f:3 g:1 g:2 |"},
		{"row keys: what is left of the row is still shown", scripted{rowsOut: map[string]bool{"b": true}}, false,
			"a f:1 f:2 f:3 g:1 g:2, c f:2 h:1", "f:1 f:2 f:3 g:1 g:2 | f:1 g:1 | f:2 h:1 |"},
		{"done in the middle", scripted{allAfter: 2}, false, "a f:1 f:2", "f:1 f:2 |"},
	} {
		f := c.filter
		q := NewQuery()
		q.Filter = &f
		got := read(t, &ScanSpec{IncludeStart: true, Reversed: c.reversed, Query: q}, rows...)
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.rule, got, c.want)
		}
		if shown := strings.Join(f.shown, " "); shown != c.shown {
			t.Errorf("%s: shown %q, want %q", c.rule, shown, c.shown)
		}
		if f.reversed != c.reversed {
			t.Errorf("%s: N10", c.rule)
		}
	}
}

func TestRowsSource(t *testing.T) {
	rows := [][]Cell{rowOf("a", "f:1"), rowOf("b", "f:1", "g:1"), rowOf("c", "g:1")}
	if got := read(t, &ScanSpec{Start: []byte("b"), IncludeStart: true, Query: NewQuery()}, rows...); got != "b f:1 g:1, c g:1" {
		t.Error(got)
	}
	if got := read(t, &ScanSpec{Start: []byte("b"), Reversed: true, Query: NewQuery()}, rows...); got != "a f:1" {
		t.Error(got)
	}
	if got := read(t, RowSpec([]byte("b"), NewQuery().AddColumn([]byte("g"), []byte("1"))), rows...); got != "b g:1" {
		t.Error(got)
	}
	if got := read(t, &ScanSpec{IncludeStart: true, Query: NewQuery().AddFamily([]byte("h"))}, rows...); got != "" {
		t.Error(got)
	}
	if got := read(t, &ScanSpec{IncludeStart: true, Query: NewQuery()}); got != "" {
		t.Error(got)
	}
}

// A family marker below versions without a qualifier still counts, whatever
// is asked of that column.
func TestFamilyMarkerBelowEmptyQualifier(t *testing.T) {
	row := []Cell{
		{Row: []byte("r"), Family: []byte("f"), Timestamp: 40, Type: Put, Seq: 1},
		{Row: []byte("r"), Family: []byte("f"), Timestamp: 30, Type: Put, Seq: 1},
		{Row: []byte("r"), Family: []byte("f"), Timestamp: 20, Type: DeleteFamily, Seq: 2},
		{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 30, Type: Put, Seq: 1},
		{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("s"), Timestamp: 10, Type: Put, Seq: 1},
	}
	for what, q := range map[string]*Query{
		"r f: f:q": NewQuery(),
		"r f:q":    NewQuery().AddColumn([]byte("f"), []byte("q")).AddColumn([]byte("f"), []byte("s")),
		"r f:":     NewQuery().AddColumn([]byte("f"), nil).AddColumn([]byte("f"), []byte("s")),
	} {
		if got := read(t, &ScanSpec{IncludeStart: true, Query: q}, row); got != what {
			t.Errorf("got %q, want %q", got, what)
		}
	}
}

// A filter that asks for the next column sees the older versions of the column
// without a qualifier, which no seek leaves, but no other writes of the version
// it has seen.
func TestFilterSeesEmptyQualifierAgain(t *testing.T) {
	put := func(qualifier string, at int64, seq uint64) Cell {
		return Cell{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte(qualifier), Timestamp: at, Type: Put, Seq: seq}
	}
	row := []Cell{put("", 40, 3), put("", 40, 1), put("", 30, 2), put("q", 40, 3), put("q", 30, 2)}
	for _, code := range []ReturnCode{NextCol, IncludeAndNextCol} {
		f := scripted{codes: map[string]ReturnCode{"f:": code, "f:q": code}}
		q := NewQuery()
		q.MaxVersions = 3
		q.Filter = &f
		src := NewRowsSource(rowsOf(row), bytes.Compare, false)
		family := DefaultFamily([]byte("f"))
		family.MaxVersions = 3
		s, err := NewScanner(src, NewSchema(family), &ScanSpec{IncludeStart: true, Query: q}, bytes.Compare, 1000)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := s.Next(nil, &Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if shown := strings.Join(f.shown, " "); shown != "f: f: f:q |" {
			t.Errorf("%v: shown %q", code, shown)
		}
		if want := map[ReturnCode]int{NextCol: 0, IncludeAndNextCol: 3}[code]; len(got) != want {
			t.Errorf("%v: %d cells, want %d", code, len(got), want)
		}
		src.Close()
	}
}
