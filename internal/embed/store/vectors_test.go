package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/cells/filter"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// TestVectors replays what a real HBase 2.6.4 answered, as far as it is the
// store's doing: data operations, against a store without a server. The client
// (regions in turn, limits) and the region server (bounds) are played in a few
// lines. Cases with steps that need a server are left to its tests.

type vectorFile struct {
	Theme    string
	Fixtures map[string]struct {
		Table vectorTable
		Steps []tree
	}
	Cases []struct {
		Name, Why, Fixture string
		Physical           bool
		Table              *vectorTable
		Steps              []tree
	}
}

type vectorTable struct {
	Name       string
	Families   map[string]map[string]string
	Attributes map[string]string
	Splits     []json.RawMessage
}

// vectorsKnown are cases we answer otherwise, with the reason. Anything else
// must agree.
var vectorsKnown = map[string]string{
	"filters-value/regex-java-lookaround": "look-around and back references are refused",
	"filters-value/regex-joni-lookaround": "look-around and back references are refused",
	"filters-row/rowfilter-component":     "HBase compares what happens to lie behind a short row's key; a component that is not there is an error everywhere else",
}

func TestVectors(t *testing.T) {
	total, passed, elsewhere, physical := 0, 0, 0, 0
	for _, theme := range []string{"versions", "mutations", "atomic", "scans", "filters-column", "filters-list", "filters-row", "filters-value", "errors", "batch"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "vectors", theme+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var file vectorFile
		if err := json.Unmarshal(raw, &file); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		fixtures := make(map[string]*vectorRun)
		n, ok, other := 0, 0, 0
		for _, c := range file.Cases {
			run := fixtures[c.Fixture]
			switch {
			case c.Table != nil:
				run = w.table(t, c.Table)
			case c.Fixture != "" && run == nil:
				fx := file.Fixtures[c.Fixture]
				run = w.table(t, &fx.Table)
				for _, s := range fx.Steps {
					if err := run.step(s); err != nil {
						t.Fatalf("%s fixture %s: %v", theme, c.Fixture, err)
					}
				}
				fixtures[c.Fixture] = run
			}
			n++
			if run == nil || !run.can(c.Steps) {
				other++
				continue
			}
			var failed error
			for i, s := range c.Steps {
				if failed = run.step(s); failed != nil {
					failed = fmt.Errorf("step %d (%s): %w", i, s.text("op"), failed)
					break
				}
			}
			switch {
			case failed == nil:
				ok++
				if why, known := vectorsKnown[c.Name]; known {
					t.Errorf("%s passes, though it was known not to: %s", c.Name, why)
				}
			case c.Physical:
				physical++
				t.Logf("physical: %s: %v", c.Name, failed)
			case vectorsKnown[c.Name] == "":
				t.Errorf("%s: %s\n\t%v", c.Name, c.Why, failed)
			}
		}
		t.Logf("%s: %d cases, %d agree, %d need a server", theme, n, ok, other)
		total, passed, elsewhere = total+n, passed+ok, elsewhere+other
	}
	t.Logf("in all: %d cases, %d agree, %d need a server, %d differ in when data is dropped, %d known", total, passed, elsewhere, physical, len(vectorsKnown))
}

// world is a store with a clock that can be moved on.
type world struct {
	s    *Store
	skip atomic.Int64 // ms the clock is ahead
	id   uint32
}

func newWorld(t *testing.T) *world {
	w := &world{}
	s, err := Open(Options{Now: w.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w.s = s
	return w
}

func (w *world) now() int64 { return time.Now().UnixMilli() + w.skip.Load() }

func (w *world) table(t *testing.T, vt *vectorTable) *vectorRun {
	w.id++
	schema := cells.NewSchema()
	var families []cells.Family
	for name, attrs := range vt.Families {
		f, err := cells.FamilyFromAttributes([]byte(name), func(a string) (string, bool) { v, ok := attrs[a]; return v, ok })
		if err != nil {
			t.Fatal(err)
		}
		families = append(families, f)
		if ms, ok := attrs["hbase.hstore.time.to.purge.deletes"]; ok {
			n, _ := strconv.Atoi(ms)
			schema.PurgeDeletesAfter = time.Duration(n) * time.Millisecond
		}
	}
	purge := schema.PurgeDeletesAfter
	schema = cells.NewSchema(families...)
	schema.PurgeDeletesAfter = purge
	schema.ReadOnly = vt.Attributes["READONLY"] == "true"
	if v, ok := vt.Attributes["hbase.server.keyvalue.maxsize"]; ok {
		schema.MaxCellSize, _ = strconv.Atoi(v)
	}
	r := &vectorRun{w: w, t: w.s.Table(w.id, schema), t0: w.now(), bounds: [][]byte{nil}}
	for _, raw := range vt.Splits {
		b, err := parseBytes(raw)
		if err != nil {
			t.Fatal(err)
		}
		r.bounds = append(r.bounds, b)
	}
	slices.SortFunc(r.bounds, bytes.Compare)
	return r
}

// vectorRun is one table of the vectors.
type vectorRun struct {
	w      *world
	t      *Table
	t0     int64
	bounds [][]byte // region starts
}

var vectorOps = []string{"put", "delete", "get", "exists", "scan", "increment", "append", "mutateRow", "checkAndMutate", "multiRow", "flush", "majorCompact", "sleep", "modifyFamily"}

func (r *vectorRun) can(steps []tree) bool {
	for _, s := range steps {
		if !slices.Contains(vectorOps, s.text("op")) || s["table"] != nil {
			return false
		}
	}
	return true
}

func parseBytes(raw json.RawMessage) ([]byte, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	switch raw[0] {
	case '[':
		var parts []json.RawMessage
		if err := json.Unmarshal(raw, &parts); err != nil {
			return nil, err
		}
		var all []byte
		for _, p := range parts {
			b, err := parseBytes(p)
			if err != nil {
				return nil, err
			}
			all = append(all, b...)
		}
		return all, nil
	case '{':
		var rep struct {
			Repeat json.RawMessage
			Times  int
		}
		if err := json.Unmarshal(raw, &rep); err != nil {
			return nil, err
		}
		b, err := parseBytes(rep.Repeat)
		return bytes.Repeat(b, rep.Times), err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	out := []byte{}
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) && text[i+1] == 'x' {
			if n, err := strconv.ParseUint(text[i+2:i+4], 16, 8); err == nil {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, text[i])
	}
	return out, nil
}

// ts reads a timestamp; absent and null give LatestTimestamp.
func (r *vectorRun) ts(raw json.RawMessage) (int64, error) {
	if raw == nil || string(raw) == "null" || string(raw) == `"max"` {
		return math.MaxInt64, nil
	}
	if string(raw) == `"min"` {
		return math.MinInt64, nil
	}
	if raw[0] == '{' {
		var rel struct{ Now int64 }
		err := json.Unmarshal(raw, &rel)
		return r.t0 + rel.Now, err
	}
	return strconv.ParseInt(string(raw), 10, 64)
}

func (r *vectorRun) timeRange(raw json.RawMessage) (cells.TimeRange, error) {
	var two []json.RawMessage
	if err := json.Unmarshal(raw, &two); err != nil || len(two) != 2 {
		return cells.TimeRange{}, fmt.Errorf("time range %s: %v", raw, err)
	}
	lo, err := r.ts(two[0])
	if err != nil {
		return cells.TimeRange{}, err
	}
	hi, err := r.ts(two[1])
	if err != nil {
		return cells.TimeRange{}, err
	}
	return cells.NewTimeRange(lo, hi)
}

// step runs one step and compares.
func (r *vectorRun) step(s tree) error {
	var expect tree
	if s["expect"] != nil {
		if err := json.Unmarshal(s["expect"], &expect); err != nil {
			return err
		}
	}
	if expect.text("side") == "client" {
		return nil
	}
	got, err := r.do(s, expect)
	if class := expect.text("error"); class != "" || err != nil {
		var e *cells.Exception
		if !errors.As(err, &e) {
			return fmt.Errorf("got %v and error %v, want %s", got, err, s["expect"])
		}
		if e.Class != class || e.DoNotRetry != expect.flag("doNotRetry", false) {
			return fmt.Errorf("got error %v (do not retry %v), want %s", e, e.DoNotRetry, s["expect"])
		}
		return nil
	}
	if expect == nil || expect["ok"] != nil {
		return nil
	}
	switch s.text("op") {
	case "exists":
		return want(expect["value"], got.exists)
	case "scan":
		return r.sameResults(got.results, expect["results"])
	case "checkAndMutate":
		if err := want(expect["success"], got.processed); err != nil {
			return err
		}
		if expect["result"] != nil {
			return r.sameCells(got.cells, expect["result"])
		}
		return nil
	case "multiRow":
		return want(expect["processed"], got.processed)
	case "get", "increment", "append", "mutateRow":
		return r.sameCells(got.cells, expect["cells"])
	}
	return nil
}

func want(raw json.RawMessage, got bool) error {
	if string(raw) != strconv.FormatBool(got) {
		return fmt.Errorf("got %v, want %s", got, raw)
	}
	return nil
}

type outcome struct {
	cells     []cells.Cell
	results   []result
	exists    bool
	processed bool
}

type result struct {
	cells []cells.Cell
	more  bool
}

func (r *vectorRun) sameResults(got []result, raw json.RawMessage) error {
	var wanted []tree
	if err := json.Unmarshal(raw, &wanted); err != nil {
		return err
	}
	if len(got) != len(wanted) {
		return fmt.Errorf("got %d results, want %d: %v\nwant %s", len(got), len(wanted), got, raw)
	}
	for i := range got {
		if err := r.sameCells(got[i].cells, wanted[i]["cells"]); err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
		if more := wanted[i].flag("more", false); more != got[i].more {
			return fmt.Errorf("result %d: got more %v, want %v", i, got[i].more, more)
		}
	}
	return nil
}

func (r *vectorRun) sameCells(got []cells.Cell, raw json.RawMessage) error {
	var wanted [][]json.RawMessage
	if err := json.Unmarshal(raw, &wanted); err != nil {
		return err
	}
	if len(got) != len(wanted) {
		return fmt.Errorf("got %d cells %v, want %.2000s", len(got), got, raw)
	}
	for i := range got {
		g, w := &got[i], wanted[i]
		var b [4][]byte
		for k, at := range []int{0, 1, 2, 5} {
			var err error
			if b[k], err = parseBytes(w[at]); err != nil {
				return err
			}
		}
		same := bytes.Equal(g.Row, b[0]) && bytes.Equal(g.Family, b[1]) && bytes.Equal(g.Qualifier, b[2]) && bytes.Equal(g.Value, b[3]) &&
			strconv.Quote(g.Type.String()) == string(w[4])
		if string(w[3]) == `"now"` {
			same = same && g.Timestamp >= r.t0 && g.Timestamp <= r.w.now()+10 // increments go ahead of a fast clock
		} else {
			ts, err := r.ts(w[3])
			if err != nil {
				return err
			}
			same = same && g.Timestamp == ts
		}
		if !same {
			return fmt.Errorf("cell %d: got %v=%q, want %s", i, g, g.Value, raw)
		}
	}
	return nil
}

func (r *vectorRun) do(s, expect tree) (outcome, error) {
	ctx := context.Background()
	switch op := s.text("op"); op {
	case "flush":
		return outcome{}, r.t.Flush(ctx, nil, nil, nil)
	case "majorCompact":
		var families [][]byte
		if s["family"] != nil {
			families = [][]byte{s.bytes("family")}
		}
		return outcome{}, r.t.MajorCompact(ctx, nil, nil, families)
	case "sleep":
		r.w.skip.Add(s.number("ms"))
		return outcome{}, nil
	case "modifyFamily":
		return outcome{}, r.modifyFamily(s)
	case "get", "exists":
		q, err := r.query(s, expect)
		if err != nil {
			return outcome{}, err
		}
		got, err := r.t.Get(s.bytes("row"), q)
		if s.flag("existsOnly", false) {
			return outcome{exists: len(got) > 0}, err
		}
		return outcome{cells: got, exists: len(got) > 0}, err
	case "scan":
		got, err := r.scan(s, expect)
		return outcome{results: got}, err
	case "put", "delete", "increment", "append", "mutateRow":
		m, err := r.mutation(s)
		if err != nil {
			return outcome{}, err
		}
		res, err := r.t.MutateRow(ctx, m)
		return outcome{cells: res.Cells, processed: res.Processed}, err
	case "checkAndMutate":
		return r.checkAndMutate(ctx, s)
	case "multiRow":
		return r.multiRow(ctx, s)
	default:
		return outcome{}, fmt.Errorf("op %q", op)
	}
}

func (r *vectorRun) modifyFamily(s tree) error {
	var attrs map[string]string
	if err := json.Unmarshal(s["attributes"], &attrs); err != nil {
		return err
	}
	old := r.t.Schema()
	families := slices.Clone(old.Families)
	for i := range families {
		if string(families[i].Name) == s.text("family") {
			f, err := cells.FamilyFromAttributes(families[i].Name, func(a string) (string, bool) { v, ok := attrs[a]; return v, ok })
			if err != nil {
				return err
			}
			families[i] = f
		}
	}
	// A master does, before it closes the regions.
	if err := r.t.Flush(context.Background(), nil, nil, nil); err != nil {
		return err
	}
	r.t.SetSchema(cells.NewSchema(families...))
	return nil
}

func (r *vectorRun) query(s, expect tree) (*cells.Query, error) {
	q := cells.NewQuery()
	var err error
	var families map[string][]json.RawMessage
	if s["families"] != nil {
		if err := json.Unmarshal(s["families"], &families); err != nil {
			return nil, err
		}
	}
	for f, qualifiers := range families {
		if qualifiers == nil {
			q.AddFamily([]byte(f))
		}
		for _, raw := range qualifiers {
			b, err := parseBytes(raw)
			if err != nil {
				return nil, err
			}
			q.AddColumn([]byte(f), b)
		}
	}
	if s["maxVersions"] != nil {
		q.MaxVersions = int(s.number("maxVersions"))
	}
	if s.flag("allVersions", false) {
		q.MaxVersions = math.MaxInt32
	}
	if s["timeRange"] != nil {
		if q.Range, err = r.timeRange(s["timeRange"]); err != nil {
			return nil, err
		}
	}
	if s["timestamp"] != nil {
		ts, err := r.ts(s["timestamp"])
		if err != nil {
			return nil, err
		}
		q.Range = cells.TimeRange{Min: ts, Max: ts + 1}
	}
	if s["familyTimeRanges"] != nil {
		var ranges map[string]json.RawMessage
		if err := json.Unmarshal(s["familyTimeRanges"], &ranges); err != nil {
			return nil, err
		}
		for f, raw := range ranges {
			tr, err := r.timeRange(raw)
			if err != nil {
				return nil, err
			}
			q.SetFamilyRange([]byte(f), tr)
		}
	}
	if s["storeLimit"] != nil {
		q.StoreLimit = int(s.number("storeLimit"))
	}
	q.StoreOffset = int(s.number("storeOffset"))
	q.Raw = s.flag("raw", false)
	f, err := r.filter(s, expect)
	if err != nil {
		return nil, err
	}
	q.Filter, err = filter.Parse(f)
	return q, err
}

func (r *vectorRun) filter(s, expect tree) (*pb.Filter, error) {
	switch {
	case expect["filterWire"] != nil:
		return wireOf(expect["filterWire"])
	case s["filter"] != nil:
		return parseFilterTree(s["filter"])
	}
	return nil, nil
}

// scan plays the client: the regions in turn, all rows of a region in one
// call.
func (r *vectorRun) scan(s, expect tree) ([]result, error) {
	start, stop := s.bytes("startRow"), s.bytes("stopRow")
	includeStart, includeStop := s.flag("includeStartRow", true), s.flag("includeStopRow", false)
	if p := s.bytes("rowPrefix"); p != nil {
		start, stop = p, afterPrefix(p)
	}
	limit := int(s.number("limit"))
	if s.flag("oneRow", false) {
		limit = 1
	}
	reversed := s.flag("reversed", false)
	regions := slices.Clone(r.bounds)
	if reversed {
		slices.Reverse(regions)
	}
	var all []result
	rows := 0
	for _, lower := range regions {
		var upper []byte
		if i := slices.IndexFunc(r.bounds, func(b []byte) bool { return bytes.Equal(b, lower) }); i+1 < len(r.bounds) {
			upper = r.bounds[i+1]
		}
		q, err := r.query(s, expect)
		if err != nil {
			return nil, err
		}
		spec := &cells.ScanSpec{Start: start, Stop: stop, IncludeStart: includeStart, IncludeStop: includeStop, Reversed: reversed,
			Lower: lower, Upper: upper, LoadAll: s["loadOnDemand"] != nil && !s.flag("loadOnDemand", true), Query: q}
		// The client does not go to regions beyond the stop row.
		if len(stop) > 0 && (!reversed && bytes.Compare(lower, stop) > 0 || reversed && len(upper) > 0 && bytes.Compare(upper, stop) <= 0) {
			break
		}
		got, over, err := r.scanRegion(spec, s, &rows, max(limit, 0))
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
		if over {
			break
		}
	}
	return all, nil
}

func (r *vectorRun) scanRegion(spec *cells.ScanSpec, s tree, rows *int, limit int) (got []result, over bool, err error) {
	batch := int(s.number("batch"))
	if batch > 0 && spec.Filter != nil && spec.Filter.HasFilterRow() {
		return nil, true, cells.IOException("Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow")
	}
	sc, err := r.t.NewScan(spec, 0)
	if err != nil {
		return nil, true, err
	}
	defer sc.Close()
	lim := cells.Limits{Batch: batch}
	size := s.number("maxResultSize")
	partial := s.flag("allowPartial", false) && size > 0
	lim.MidRow = partial
	caching := int(s.number("caching"))
	used, inCall := int64(0), 0
	for limit == 0 || *rows < limit {
		if partial {
			lim.Bytes = size - used
		}
		cs, state, err := sc.Next(nil, &lim)
		if err != nil {
			return nil, true, err
		}
		if err := sc.Pause(); err != nil {
			return nil, true, err
		}
		for i := range cs {
			used += int64(cs[i].HeapSize())
		}
		if len(cs) > 0 {
			if n := len(got); n > 0 && got[n-1].more && !bytes.Equal(got[n-1].cells[0].Row, cs[0].Row) {
				// What was left of the row before was filtered out.
				if *rows++; limit > 0 && *rows >= limit {
					return got, true, nil
				}
			}
			got = append(got, result{cs, state.MidRow()})
			inCall++
		}
		if len(cs) > 0 && !state.MidRow() {
			*rows++
		}
		if state == cells.NoMoreRows {
			return got, sc.FilterDone() && inCall == 0, nil
		}
		if partial && used >= size || caching > 0 && inCall >= caching { // the call ends here
			used, inCall = 0, 0
		}
	}
	return got, true, nil
}

func (r *vectorRun) mutation(s tree) (*RowMutation, error) {
	m := &RowMutation{Row: s.bytes("row")}
	if s.text("op") == "mutateRow" {
		var inner []tree
		if err := json.Unmarshal(s["mutations"], &inner); err != nil {
			return nil, err
		}
		for _, i := range inner {
			op, err := r.op(i)
			if err != nil {
				return nil, err
			}
			m.Ops = append(m.Ops, op)
		}
		return m, nil
	}
	op, err := r.op(s)
	m.Ops = []Op{op}
	return m, err
}

func (r *vectorRun) op(s tree) (Op, error) {
	op := Op{TTL: s.number("ttl"), NoResult: !s.flag("returnResults", true)}
	var err error
	if op.Timestamp, err = r.ts(s["ts"]); err != nil {
		return op, err
	}
	if s["timeRange"] != nil {
		if op.Range, err = r.timeRange(s["timeRange"]); err != nil {
			return op, err
		}
	}
	var lines [][]json.RawMessage
	items := s["cells"]
	switch s.text("op") {
	case "put":
		op.Kind = Put
	case "delete":
		op.Kind, items = Delete, s["items"]
	case "increment":
		op.Kind = Increment
	case "append":
		op.Kind = Append
	}
	if items != nil {
		if err := json.Unmarshal(items, &lines); err != nil {
			return op, err
		}
	}
	for _, l := range lines {
		c := cells.Cell{Type: cells.Put, Timestamp: op.Timestamp}
		switch op.Kind {
		case Put:
			c.Family, _ = parseBytes(l[0])
			c.Qualifier, _ = parseBytes(l[1])
			if string(l[2]) != "null" {
				if c.Timestamp, err = r.ts(l[2]); err != nil {
					return op, err
				}
			}
			c.Value, err = parseBytes(l[3])
		case Delete:
			var kind string
			_ = json.Unmarshal(l[0], &kind)
			c.Type = map[string]cells.Type{"version": cells.Delete, "column": cells.DeleteColumn, "family": cells.DeleteFamily, "familyVersion": cells.DeleteFamilyVersion}[kind]
			c.Family, _ = parseBytes(l[1])
			if len(l) > 2 {
				c.Qualifier, _ = parseBytes(l[2])
			}
			if len(l) > 3 && string(l[3]) != "null" {
				c.Timestamp, err = r.ts(l[3])
			}
		default:
			c.Family, _ = parseBytes(l[0])
			c.Qualifier, _ = parseBytes(l[1])
			if n, e := strconv.ParseInt(string(l[2]), 10, 64); e == nil {
				c.Value = binary.BigEndian.AppendUint64(nil, uint64(n))
			} else {
				c.Value, err = parseBytes(l[2])
			}
		}
		if err != nil {
			return op, err
		}
		if c.Type == cells.DeleteFamily {
			// The Java client's addFamily forgets what was added for the family.
			op.Cells = slices.DeleteFunc(op.Cells, func(o cells.Cell) bool { return bytes.Equal(o.Family, c.Family) })
		}
		op.Cells = append(op.Cells, c)
	}
	return op, nil
}

func (r *vectorRun) condition(s tree) (*Condition, error) {
	c := &Condition{Row: s.bytes("row"), Family: s.bytes("family"), Qualifier: s.bytes("qualifier")}
	f, err := r.filter(s, nil)
	if err != nil {
		return nil, err
	}
	if c.Filter, err = filter.Parse(f); err != nil {
		return nil, err
	}
	c.Op = Equal
	if !s.flag("ifNotExists", false) && c.Filter == nil {
		c.Op = CompareOp(pb.CompareType_value[s.text("op")])
		if s["comparator"] != nil {
			w, err := s.comparator()
			if err != nil {
				return nil, err
			}
			p, err := filter.ParseComparator(w)
			if err != nil {
				return nil, err
			}
			c.Value = p.Value()
		} else {
			c.Value = s.bytes("value")
		}
	}
	if s["timeRange"] != nil {
		c.Range, err = r.timeRange(s["timeRange"])
	}
	return c, err
}

func (r *vectorRun) checkAndMutate(ctx context.Context, s tree) (outcome, error) {
	var cond, inner tree
	if err := errors.Join(json.Unmarshal(s["condition"], &cond), json.Unmarshal(s["mutation"], &inner)); err != nil {
		return outcome{}, err
	}
	c, err := r.condition(cond)
	if err != nil {
		return outcome{}, err
	}
	m, err := r.mutation(inner)
	if err != nil {
		return outcome{}, err
	}
	c.Row = s.bytes("row")
	m.Condition = c
	res, err := r.t.MutateRow(ctx, m)
	return outcome{cells: res.Cells, processed: res.Processed}, err
}

// multiRow plays the endpoint, which lives in the region of the first row.
func (r *vectorRun) multiRow(ctx context.Context, s tree) (outcome, error) {
	var steps, conds []tree
	if err := json.Unmarshal(s["mutations"], &steps); err != nil {
		return outcome{}, err
	}
	if s["conditions"] != nil {
		if err := json.Unmarshal(s["conditions"], &conds); err != nil {
			return outcome{}, err
		}
	}
	var ms []*RowMutation
	for _, i := range steps {
		m, err := r.mutation(i)
		if err != nil {
			return outcome{}, err
		}
		if r.region(m.Row) != r.region(steps[0].bytes("row")) {
			return outcome{}, cells.DoNotRetry("Requested row out of range " + cells.Quote(m.Row))
		}
		ms = append(ms, m)
	}
	var cs []*Condition
	for _, i := range conds {
		c, err := r.condition(i)
		if err != nil {
			return outcome{}, err
		}
		if r.region(c.Row) != r.region(steps[0].bytes("row")) {
			return outcome{}, &cells.Exception{Class: "org.apache.hadoop.hbase.regionserver.WrongRegionException"}
		}
		cs = append(cs, c)
	}
	ok, err := r.t.MutateRows(ctx, ms, cs)
	return outcome{processed: ok}, err
}

func (r *vectorRun) region(row []byte) int {
	at := 0
	for i, b := range r.bounds {
		if bytes.Compare(row, b) >= 0 {
			at = i
		}
	}
	return at
}
