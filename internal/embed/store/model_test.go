package store

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// modelSeed is the same each time, so that nothing is found by chance while
// something else is being changed; make random takes new ones.
var modelSeed = flag.Uint64("seed", 1, "of random tests; 0 takes the clock's")

// TestModel compares the store with a naive list of cells under random
// mutations, reads, flushes, compactions and restarts.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for i := range uint64(8) {
		seed := seed + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { runModel(t, seed, 400) })
	}
}

// model is every cell written, in order, and what a reader sees of it by the
// plain words of the rules.
type model struct {
	schema *cells.Schema
	cells  []cells.Cell // Row set; Seq is the position
}

func (m *model) families(q *cells.Query) (out []*cells.Family) {
	for i := range m.schema.Families {
		f := &m.schema.Families[i]
		if len(q.Columns) == 0 || slices.ContainsFunc(q.Columns, func(c cells.Columns) bool { return bytes.Equal(c.Family, f.Name) }) {
			out = append(out, f)
		}
	}
	return out
}

func (m *model) read(row []byte, q *cells.Query, now int64) (out []cells.Cell) {
	for _, f := range m.families(q) {
		var qualifiers [][]byte
		for _, c := range q.Columns {
			if bytes.Equal(c.Family, f.Name) {
				qualifiers = c.Qualifiers
			}
		}
		out = append(out, m.readFamily(row, f, qualifiers, q, now)...)
	}
	return out
}

func expired(c *cells.Cell, now int64) bool {
	ttl, ok := cells.TTLOf(c.Tags)
	return ok && c.Timestamp+ttl < now
}

func (m *model) readFamily(row []byte, f *cells.Family, qualifiers [][]byte, q *cells.Query, now int64) (out []cells.Cell) {
	tr := q.Range
	if r, ok := q.FamilyRanges[string(f.Name)]; ok {
		tr = r
	}
	in := func(ts int64) bool { return ts >= tr.Min && (ts < tr.Max || tr.Max == math.MaxInt64) }
	tooOld := func(ts int64) bool { return !q.Raw && f.TTL != cells.Forever && ts < now-f.TTL }
	var mine []cells.Cell
	for _, c := range m.cells {
		if bytes.Equal(c.Row, row) && bytes.Equal(c.Family, f.Name) && !expired(&c, now) && !tooOld(c.Timestamp) {
			mine = append(mine, c)
		}
	}
	var seen []cells.Cell
	for _, p := range mine {
		hidden := false
		for _, d := range mine {
			if q.Raw || p.Type != cells.Put || !d.Type.IsDelete() {
				continue
			}
			if !in(d.Timestamp) && (d.Timestamp < tr.Min || f.KeepDeleted != cells.KeepFalse) {
				continue
			}
			column := bytes.Equal(d.Qualifier, p.Qualifier)
			switch d.Type {
			case cells.DeleteFamily:
				hidden = hidden || p.Timestamp <= d.Timestamp
			case cells.DeleteFamilyVersion:
				hidden = hidden || p.Timestamp == d.Timestamp
			case cells.DeleteColumn:
				hidden = hidden || column && p.Timestamp <= d.Timestamp
			case cells.Delete:
				hidden = hidden || column && p.Timestamp == d.Timestamp
			}
		}
		wanted := qualifiers == nil || slices.ContainsFunc(qualifiers, func(x []byte) bool { return bytes.Equal(x, p.Qualifier) })
		if hidden || !wanted || !in(p.Timestamp) || p.Type != cells.Put && !q.Raw {
			continue
		}
		// A later write of the same version replaces it.
		seen = slices.DeleteFunc(seen, func(o cells.Cell) bool {
			return bytes.Equal(o.Qualifier, p.Qualifier) && o.Timestamp == p.Timestamp && o.Type == p.Type
		})
		seen = append(seen, p)
	}
	slices.SortStableFunc(seen, func(a, b cells.Cell) int { return cells.CompareWithinRow(&a, &b) })
	limit := min(q.MaxVersions, f.MaxVersions)
	if q.Raw {
		limit = q.MaxVersions
	}
	count := 0
	taken := 0
	for i, c := range seen {
		if i == 0 || !bytes.Equal(c.Qualifier, seen[i-1].Qualifier) {
			count = 0
		}
		if c.Type == cells.Put {
			count++
		}
		if count > limit {
			continue
		}
		taken++
		if q.StoreLimit >= 0 && taken > q.StoreLimit+q.StoreOffset {
			break
		}
		if taken > q.StoreOffset {
			out = append(out, c)
		}
	}
	return out
}

func (m *model) rows() [][]byte {
	var rows [][]byte
	for _, c := range m.cells {
		rows = append(rows, c.Row)
	}
	slices.SortFunc(rows, bytes.Compare)
	return slices.CompactFunc(rows, bytes.Equal)
}

func (m *model) scan(spec *cells.ScanSpec, now int64) string {
	var out []string
	rows := m.rows()
	if spec.Reversed {
		slices.Reverse(rows)
	}
	for _, row := range rows {
		after := bytes.Compare(row, spec.Start)
		if spec.Reversed {
			after = -after
		}
		if len(spec.Start) > 0 && (after < 0 || after == 0 && !spec.IncludeStart) {
			continue
		}
		past := bytes.Compare(row, spec.Stop)
		if spec.Reversed {
			past = -past
		}
		if len(spec.Stop) > 0 && (past > 0 || past == 0 && !spec.IncludeStop) {
			continue
		}
		if got := m.read(row, spec.Query, now); len(got) > 0 {
			out = append(out, fmt.Sprintf("%s{%s}", row, show(got)))
		}
	}
	return strings.Join(out, " ")
}

func runModel(t *testing.T, seed uint64, steps int) {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	k := &clock{1000}
	mem := vfs.NewCrashableMem()
	s, err := Open(Options{FS: mem, Now: k.now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	g := fam("g", 1+r.IntN(3))
	g.KeepDeleted = cells.KeepDeleted(r.IntN(2))
	if r.IntN(2) == 0 {
		g.TTL = 20
	}
	m := &model{schema: cells.NewSchema(fam("f", 1+r.IntN(3)), g)}
	tab := s.Table(1, m.schema)
	ctx := context.Background()
	row := func() string { return pick("a", "a\x00", "b", "\xff") }
	column := func() string { return pick("f:", "f:\x00", "f:p", "f:q", "g:", "g:q") }
	ts := func() int64 { return k.ms - int64(r.IntN(12)) }

	randomQuery := func() *cells.Query {
		q := cells.NewQuery()
		q.MaxVersions = 1 + r.IntN(4)
		switch r.IntN(4) {
		case 0:
			q = all(column(), column())
		case 1:
			q.AddFamily([]byte(pick("f", "g")))
		case 2:
			if q.Raw = r.IntN(2) == 0; q.Raw {
				q.MaxVersions = 100
			}
		}
		if r.IntN(3) == 0 {
			lo := ts()
			q.Range = cells.TimeRange{Min: lo, Max: lo + int64(r.IntN(8))}
		}
		if r.IntN(5) == 0 {
			lo := ts()
			q.SetFamilyRange([]byte("g"), cells.TimeRange{Min: lo, Max: lo + 5})
		}
		if r.IntN(5) == 0 {
			q.StoreLimit, q.StoreOffset = 1+r.IntN(3), r.IntN(2)
		}
		return q
	}
	write := func() *RowMutation {
		mut := &RowMutation{Row: []byte(row())}
		for range 1 + r.IntN(3) {
			var op Op
			if r.IntN(3) > 0 {
				op = put(at(column(), ts(), fmt.Sprint(len(m.cells))))
				if r.IntN(5) == 0 {
					op.TTL = int64(1 + r.IntN(20))
				}
			} else {
				c := at(column(), ts(), "")
				c.Type = []cells.Type{cells.Delete, cells.DeleteColumn, cells.DeleteFamily, cells.DeleteFamilyVersion}[r.IntN(4)]
				if c.Type == cells.DeleteFamily || c.Type == cells.DeleteFamilyVersion {
					c.Qualifier = nil
				}
				op = del(c)
			}
			mut.Ops = append(mut.Ops, op)
		}
		return mut
	}
	// Within one write, the same cell twice is one cell: the later.
	writes := uint64(0)
	note := func(muts ...*RowMutation) {
		writes++
		for _, mut := range muts {
			for _, op := range mut.Ops {
				for _, c := range op.Cells {
					c.Row, c.Seq = mut.Row, writes
					if op.TTL > 0 && op.TTL != NoTTL {
						c.Tags = cells.TTLTag(op.TTL)
					}
					m.cells = slices.DeleteFunc(m.cells, func(o cells.Cell) bool { return cells.Compare(&o, &c) == 0 })
					m.cells = append(m.cells, c)
				}
			}
		}
	}
	for step := range steps {
		k.ms++
		switch n := r.IntN(20); {
		case n < 9:
			mut := write()
			if _, err := tab.MutateRow(ctx, mut); err != nil {
				t.Fatal(err)
			}
			note(mut)
		case n < 10:
			var ms []*RowMutation
			for range 3 {
				ms = append(ms, write())
			}
			_, errs := tab.MutateBatch(ctx, ms)
			for i := range ms {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
			}
			note(ms...)
		case n < 14:
			q, of := randomQuery(), row()
			same(t, fmt.Sprintf("step %d: get %q %+v", step, of, q), get(t, tab, of, q), show(m.read([]byte(of), q, k.ms)))
		case n < 18:
			spec := &cells.ScanSpec{IncludeStart: r.IntN(4) > 0, IncludeStop: r.IntN(2) == 0, Reversed: r.IntN(2) == 0, Query: randomQuery()}
			if r.IntN(2) == 0 {
				spec.Start = []byte(row())
			}
			if r.IntN(2) == 0 {
				spec.Stop = []byte(row())
			}
			same(t, fmt.Sprintf("step %d: scan %+v %+v", step, spec, spec.Query), scanAll(t, tab, spec, 0), m.scan(spec, k.ms))
		case n == 18:
			if r.IntN(3) > 0 {
				if err := s.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				break
			}
			compactModel(t, tab, m, k.ms)
		default:
			if r.IntN(4) > 0 {
				break
			}
			// A crash: everything acknowledged is there.
			crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(seed, uint64(step)))})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			mem = crashed
			if s, err = Open(Options{FS: mem, Now: k.now}); err != nil {
				t.Fatal(err)
			}
			tab = s.Table(1, m.schema)
		}
		if t.Failed() {
			t.Fatalf("at step %d", step)
		}
	}
}

// live holds the newest cells of every row.
func (m *model) live(now int64) map[string]bool {
	live := make(map[string]bool)
	for _, row := range m.rows() {
		for _, c := range m.read(row, newest(), now) {
			live[string(row)+show([]cells.Cell{c})] = true
		}
	}
	return live
}

// compactModel runs a major compaction, which must not change what a plain
// reader sees, and takes what is left over into the model.
func compactModel(t *testing.T, tab *Table, m *model, now int64) {
	t.Helper()
	// Where deleted cells are kept, deleted versions count towards VERSIONS at a
	// compaction, and so live ones can go (D11). But nothing may come back.
	exact := newest()
	if m.schema.Family([]byte("g")).KeepDeleted != cells.KeepFalse {
		exact = newest("f")
	}
	before := m.scan(whole(exact), now)
	live := m.live(now)
	if err := tab.MajorCompact(context.Background(), nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	// A crash may undo a compaction, which the model could not follow.
	if err := tab.s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	same(t, "compacted", scanAll(t, tab, whole(exact), 0), before)
	for _, row := range m.rows() {
		got, err := tab.Get(row, newest())
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if cell := string(row) + show(got[i:i+1]); !live[cell] {
				t.Fatalf("%s came back", cell)
			}
		}
	}
	var left []cells.Cell
	src := tab.rawSource(nil, nil)
	if err := src.SeekRow(nil, true); err != nil {
		t.Fatal(err)
	}
	for src.Row() != nil {
		for c := src.Cell(); c != nil; c = src.Cell() {
			left = append(left, c.Clone())
			if err := src.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if err := src.NextRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := src.suspend(); err != nil {
		t.Fatal(err)
	}
	if len(left) > len(m.cells) {
		t.Fatalf("%d cells became %d", len(m.cells), len(left))
	}
	slices.SortStableFunc(left, func(a, b cells.Cell) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range left {
		left[i].Seq = 0 // before every later write
	}
	m.cells = left
}
