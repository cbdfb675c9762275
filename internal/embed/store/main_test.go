package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		childWrites(dir)
	}
	goleak.VerifyTestMain(m)
}

// Shorthands of the tests. One table, families f and g, unless said.

func testStore(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func fam(name string, versions int) cells.Family {
	f := cells.DefaultFamily([]byte(name))
	f.MaxVersions = versions
	return f
}

func testTable(t testing.TB, s *Store) *Table {
	return s.Table(1, cells.NewSchema(fam("f", 3), fam("g", 3)))
}

// at makes a cell from "family:qualifier"; ts below 0 means the clock.
func at(column string, ts int64, value string) cells.Cell {
	f, q, _ := strings.Cut(column, ":")
	if ts < 0 {
		ts = cells.LatestTimestamp
	}
	return cells.Cell{Family: []byte(f), Qualifier: []byte(q), Timestamp: ts, Type: cells.Put, Value: []byte(value)}
}

func marker(typ cells.Type, column string, ts int64) cells.Cell {
	c := at(column, ts, "")
	c.Type = typ
	return c
}

func put(cs ...cells.Cell) Op { return Op{Kind: Put, Cells: cs, TTL: NoTTL} }
func del(cs ...cells.Cell) Op {
	return Op{Kind: Delete, Cells: cs, TTL: NoTTL, Timestamp: cells.LatestTimestamp}
}

func inc(column string, n int64) Op {
	c := at(column, -1, "")
	c.Value = binary.BigEndian.AppendUint64(nil, uint64(n))
	return Op{Kind: Increment, Cells: []cells.Cell{c}}
}

func app(column, piece string) Op {
	return Op{Kind: Append, Cells: []cells.Cell{at(column, -1, piece)}}
}

func mutate(t testing.TB, tab *Table, row string, ops ...Op) MutateResult {
	t.Helper()
	r, err := tab.MutateRow(context.Background(), &RowMutation{Row: []byte(row), Ops: ops})
	if err != nil {
		t.Fatalf("mutate %q: %v", row, err)
	}
	return r
}

func all(columns ...string) *cells.Query {
	q := cells.NewQuery()
	q.MaxVersions = 100
	for _, c := range columns {
		f, qual, has := strings.Cut(c, ":")
		if has {
			q.AddColumn([]byte(f), []byte(qual))
		} else {
			q.AddFamily([]byte(f))
		}
	}
	return q
}

func newest(columns ...string) *cells.Query {
	q := all(columns...)
	q.MaxVersions = 1
	return q
}

// show writes cells as "f:q@ts=value", markers as "f:q@ts=TYPE".
func show(cs []cells.Cell) string {
	var parts []string
	for i := range cs {
		c := &cs[i]
		v := string(c.Value)
		if c.Type != cells.Put {
			v = c.Type.String()
		}
		parts = append(parts, fmt.Sprintf("%s:%s@%d=%s", c.Family, c.Qualifier, c.Timestamp, v))
	}
	return strings.Join(parts, " ")
}

func get(t testing.TB, tab *Table, row string, q *cells.Query) string {
	t.Helper()
	got, err := tab.Get([]byte(row), q)
	if err != nil {
		t.Fatalf("get %q: %v", row, err)
	}
	return show(got)
}

func number(t testing.TB, tab *Table, row, column string) int64 {
	t.Helper()
	got, err := tab.Get([]byte(row), newest(column))
	if err != nil || len(got) != 1 || len(got[0].Value) != 8 {
		t.Fatalf("counter %s %s: %v, %v", row, column, got, err)
	}
	return int64(binary.BigEndian.Uint64(got[0].Value))
}

// scanAll reads to the end, pausing after each row: "row{cells} row{cells}".
func scanAll(t testing.TB, tab *Table, spec *cells.ScanSpec, readPoint uint64) string {
	t.Helper()
	sc, err := tab.NewScan(spec, readPoint)
	if err != nil {
		t.Fatalf("open scanner: %v", err)
	}
	defer sc.Close()
	return drain(t, sc)
}

func drain(t testing.TB, sc *Scanner) string {
	t.Helper()
	var rows []string
	for {
		got, state, err := sc.Next(nil, &cells.Limits{})
		if err != nil {
			t.Fatalf("next: %v", err)
		}
		if len(got) > 0 {
			rows = append(rows, fmt.Sprintf("%s{%s}", got[0].Row, show(got)))
		}
		if state == cells.NoMoreRows {
			return strings.Join(rows, " ")
		}
		if err := sc.Pause(); err != nil {
			t.Fatal(err)
		}
	}
}

func whole(q *cells.Query) *cells.ScanSpec { return &cells.ScanSpec{IncludeStart: true, Query: q} }

func same(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// refused checks the Java class of an error.
func refused(t testing.TB, what string, err error, class string, doNotRetry bool) {
	t.Helper()
	var e *cells.Exception
	if !errors.As(err, &e) || e.Class != class || e.DoNotRetry != doNotRetry {
		t.Errorf("%s: got %v, want %s (do not retry %v)", what, err, class, doNotRetry)
	}
}

// clock is a settable clock.
type clock struct{ ms int64 }

func (c *clock) now() int64 { return c.ms }
