package shell

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

func dataCommands() []command {
	return []command{
		{"put", "data", "put 't', 'row', 'f:q', 'value'\nput 't', 'row', 'f:q', 'value', 1700000000000\nput 't', 'row', 'f:q', 'value', {TTL => 60000}",
			"Write one cell. A number is its timestamp in ms; TTL is in ms.", runPut},
		{"get", "data", "get 't', 'row'\nget 't', 'row', 'f:q', 'g'\nget 't', 'row', {COLUMN => ['f:a', 'f:b'], VERSIONS => 3, TIMERANGE => [0, 1700000000000]}\nget 't', 'row', {FILTER => \"ColumnPrefixFilter('a')\"}",
			"Read one row. Options: COLUMN, VERSIONS, TIMERANGE, TIMESTAMP, FILTER, CONSISTENCY.", runGet},
		{"scan", "data", "scan 't'\nscan 't', {STARTROW => 'a', STOPROW => 'n', LIMIT => 10}\nscan 't', {ROWPREFIXFILTER => 'user-', COLUMNS => 'f:name', REVERSED => true}\nscan 't', {VERSIONS => 3, RAW => true}\nscan 't', {FILTER => \"PrefixFilter('x') AND ValueFilter(=, 'substring:y')\"}",
			"Read a range of rows. Options: STARTROW, STOPROW, ROWPREFIXFILTER, LIMIT, COLUMNS, VERSIONS, TIMERANGE, TIMESTAMP, FILTER (show_filters lists them), REVERSED, RAW, CACHE, CACHE_BLOCKS, BATCH, MAXLENGTH, ISOLATION_LEVEL, CONSISTENCY.", runScan},
		{"count", "data", "count 't'\ncount 't', {STARTROW => 'a', STOPROW => 'n'}\ncount 't', {FILTER => \"ValueFilter(=, 'binary:x')\"}",
			"Count rows. Keys only travel, the first of each row unless there is a FILTER.", runCount},
		{"delete", "data", "delete 't', 'row', 'f:q'\ndelete 't', 'row', 'f:q', 1700000000000",
			"Delete the newest version of a column, or the version stamped exactly so.", runDelete},
		{"deleteall", "data", "deleteall 't', 'row'\ndeleteall 't', 'row', 'f:q'\ndeleteall 't', 'row', 'f:q', 1700000000000",
			"Delete a row, or all versions of one of its columns.", runDeleteAll},
		{"incr", "data", "incr 't', 'row', 'f:count'\nincr 't', 'row', 'f:count', 10",
			"Add to a counter, exactly once, and print its new value.", runIncr},
		{"append", "data", "append 't', 'row', 'f:q', 'more'",
			"Append to a value, exactly once, and print the whole.", runAppend},
		{"get_counter", "data", "get_counter 't', 'row', 'f:count'",
			"Print a counter.", runGetCounter},
		{"show_filters", "data", "show_filters", "List the filters that FILTER knows. They are combined with AND, OR, SKIP, WHILE and parentheses.", runShowFilters},
	}
}

// target reads the table and row every data command begins with.
func (s *Shell) target(a args) (*hbase.Table, string, error) {
	name, err := a.text(0, "table")
	if err != nil {
		return nil, "", err
	}
	row, err := a.text(1, "row")
	if err != nil {
		return nil, "", err
	}
	t, err := s.Client.Table(name)
	return t, row, err
}

// column reads 'family:qualifier'; a bare family means its empty qualifier.
func (a args) column(i int) (family, qualifier string, err error) {
	c, err := a.text(i, "column")
	if err != nil {
		return "", "", err
	}
	family, qualifier, _ = splitColumn(c)
	return family, qualifier, nil
}

func runPut(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(4, 6); err != nil {
		return nil, err
	}
	t, row, err := s.target(a)
	if err != nil {
		return nil, err
	}
	family, qualifier, err := a.column(2)
	if err != nil {
		return nil, err
	}
	value, err := a.text(3, "value")
	if err != nil {
		return nil, err
	}
	ts, last := hbase.LatestTimestamp, 4
	if a.len() > 4 {
		if _, isOptions := HashOf(a.list[4]); !isOptions {
			if ts, err = a.integer(4, "timestamp"); err != nil {
				return nil, err
			}
			last = 5
		}
	}
	o, err := a.options(last, "TTL", "ATTRIBUTES", "VISIBILITY")
	if err != nil {
		return nil, err
	}
	p := hbase.NewPut(row).SetAt(family, qualifier, ts, []byte(value))
	p.Visibility = o.text("VISIBILITY")
	p.TTL = time.Duration(o.integer("TTL", 1, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	if o.err != nil {
		return nil, o.err
	}
	return say(nil), t.Put(ctx, p)
}

func runGet(ctx context.Context, s *Shell, a args) (*answer, error) {
	t, row, err := s.target(a)
	if err != nil {
		return nil, err
	}
	g := hbase.NewGet(row)
	if a.len() > 2 {
		if _, isOptions := HashOf(a.list[2]); isOptions {
			o, err := a.options(2, "COLUMN", "COLUMNS", "VERSIONS", "TIMERANGE", "TIMESTAMP", "FILTER", "CONSISTENCY", "AUTHORIZATIONS")
			if err != nil {
				return nil, err
			}
			g.Filter = o.filter()
			g.Columns, g.MaxVersions, g.TimeRange = o.columns(), o.count("VERSIONS"), o.timeRange()
			g.Authorizations = o.texts("AUTHORIZATIONS")
			if o.text("CONSISTENCY") == "TIMELINE" {
				g.Consistency = hbase.Timeline
			}
			if o.err != nil {
				return nil, o.err
			}
		} else {
			for i := 2; i < a.len(); i++ {
				names := []Value{a.list[i]}
				if list, ok := a.list[i].([]Value); ok {
					names = list
				}
				o := &options{a: a, h: &Hash{}}
				o.h.add("COLUMN", names)
				g.Columns = append(g.Columns, o.columns()...)
				if o.err != nil {
					return nil, o.err
				}
			}
		}
	}
	res, err := t.Get(ctx, g)
	if err != nil {
		return nil, err
	}
	ans := &answer{head: []string{"COLUMN", "CELL"}, data: cellsJSON(res.Cells)}
	for _, c := range res.Cells {
		ans.rows = append(ans.rows, []string{column(c), "timestamp=" + stamp(c.Timestamp) + ", value=" + hbase.Quote(c.Value)})
	}
	if len(res.Cells) > 0 {
		ans.counted = 1
	}
	return ans, nil
}

func column(c hbase.Cell) string { return hbase.Quote(c.Family) + ":" + hbase.Quote(c.Qualifier) }

// cellJSON is one cell as -o json prints it; bytes are quoted as in text.
type cellJSON struct {
	Row       string `json:"row"`
	Family    string `json:"family"`
	Qualifier string `json:"qualifier"`
	Timestamp int64  `json:"timestamp"`
	Type      string `json:"type"`
	Value     string `json:"value"`
}

func cellsJSON(cs []hbase.Cell) []cellJSON {
	out := make([]cellJSON, 0, len(cs))
	for _, c := range cs {
		out = append(out, cellJSON{hbase.Quote(c.Row), hbase.Quote(c.Family), hbase.Quote(c.Qualifier), c.Timestamp, c.Type.String(), hbase.Quote(c.Value)})
	}
	return out
}

// scanOf reads the options that scan and count share.
func scanOf(o *options) *hbase.Scan {
	sc := &hbase.Scan{
		Start:   []byte(o.text("STARTROW")),
		Stop:    []byte(o.text("STOPROW") + o.text("ENDROW")),
		Columns: o.columns(),
		Caching: o.count("CACHE"),
	}
	if prefix := o.text("ROWPREFIXFILTER"); prefix != "" {
		sc.Start, sc.Stop = []byte(prefix), hbase.PrefixStop([]byte(prefix))
	}
	sc.TimeRange, sc.Filter = o.timeRange(), o.filter()
	return sc
}

func runScan(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	name, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	o, err := a.options(1, "STARTROW", "STOPROW", "ENDROW", "ROWPREFIXFILTER", "LIMIT", "COLUMN", "COLUMNS", "VERSIONS",
		"TIMERANGE", "TIMESTAMP", "FILTER", "REVERSED", "RAW", "CACHE", "CACHE_BLOCKS", "BATCH", "MAXLENGTH", "ISOLATION_LEVEL", "CONSISTENCY", "AUTHORIZATIONS")
	if err != nil {
		return nil, err
	}
	sc := scanOf(o)
	sc.Limit, sc.MaxVersions, sc.Batch = o.count("LIMIT"), o.count("VERSIONS"), o.count("BATCH")
	sc.Reversed, sc.Raw = o.flag("REVERSED"), o.flag("RAW")
	sc.SkipBlockCache = o.has("CACHE_BLOCKS") && !o.flag("CACHE_BLOCKS")
	sc.Authorizations = o.texts("AUTHORIZATIONS")
	maxLength := o.count("MAXLENGTH")
	if o.text("ISOLATION_LEVEL") == "READ_UNCOMMITTED" {
		sc.Isolation = hbase.ReadUncommitted
	}
	if o.text("CONSISTENCY") == "TIMELINE" {
		sc.Consistency = hbase.Timeline
	}
	if o.err != nil {
		return nil, o.err
	}
	t, err := s.Client.Table(name)
	if err != nil {
		return nil, err
	}
	ans := &answer{head: []string{"ROW", "COLUMN+CELL"}}
	var all []hbase.Cell
	var last []byte
	for res, err := range t.Scan(ctx, sc).Rows() {
		if err != nil {
			return nil, err
		}
		if last == nil || string(last) != string(res.Row) {
			ans.counted++
			last = res.Row
		}
		for _, c := range res.Cells {
			if s.JSON {
				all = append(all, c)
				continue
			}
			ans.rows = append(ans.rows, []string{hbase.Quote(c.Row), "column=" + column(c) + ", timestamp=" + stamp(c.Timestamp) + marker(c) + shorten(hbase.Quote(c.Value), maxLength)})
		}
	}
	ans.data = cellsJSON(all)
	return ans, nil
}

// marker prints the type of a delete marker, as raw scans show them.
func marker(c hbase.Cell) string {
	if c.Type.IsDelete() {
		return ", type=" + c.Type.String()
	}
	return ", value="
}

func shorten(s string, max int) string {
	if max > 0 && len(s) > max {
		return s[:max]
	}
	return s
}

func runCount(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	name, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	o, err := a.options(1, "INTERVAL", "CACHE", "STARTROW", "STOPROW", "ENDROW", "ROWPREFIXFILTER", "COLUMN", "COLUMNS", "TIMERANGE", "TIMESTAMP", "FILTER")
	if err != nil {
		return nil, err
	}
	sc := scanOf(o)
	o.count("INTERVAL")
	if o.err != nil {
		return nil, o.err
	}
	sc.SkipBlockCache = true
	if sc.Filter == nil {
		sc.Filter = filter.And(filter.FirstKeyOnly(), filter.KeyOnly())
	} else {
		// The filter may need to see all columns, so all keys travel. It is
		// asked first: behind it values are gone.
		sc.Filter = filter.And(sc.Filter, filter.KeyOnly())
	}
	t, err := s.Client.Table(name)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, err := range t.Scan(ctx, sc).Rows() {
		if err != nil {
			return nil, err
		}
		n++
	}
	return &answer{counted: n, value: fmt.Sprint(n), data: n}, nil
}

// deletion reads what delete and deleteall share: a column and a timestamp.
func deletion(a args) (family, qualifier string, ts int64, err error) {
	ts = hbase.LatestTimestamp
	if family, qualifier, err = a.column(2); err != nil {
		return
	}
	if a.len() > 3 {
		ts, err = a.integer(3, "timestamp")
	}
	return
}

func runDelete(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(3, 4); err != nil {
		return nil, err
	}
	t, row, err := s.target(a)
	if err != nil {
		return nil, err
	}
	family, qualifier, ts, err := deletion(a)
	if err != nil {
		return nil, err
	}
	d := hbase.NewDelete(row)
	if ts == hbase.LatestTimestamp {
		d.LatestVersion(family, qualifier)
	} else {
		d.Version(family, qualifier, ts)
	}
	return say(nil), t.Delete(ctx, d)
}

func runDeleteAll(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 4); err != nil {
		return nil, err
	}
	t, row, err := s.target(a)
	if err != nil {
		return nil, err
	}
	d := hbase.NewDelete(row)
	if a.len() > 2 {
		family, qualifier, ts, err := deletion(a)
		if err != nil {
			return nil, err
		}
		d.ColumnUpTo(family, qualifier, ts)
	}
	return say(nil), t.Delete(ctx, d)
}

func runIncr(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(3, 4); err != nil {
		return nil, err
	}
	t, row, err := s.target(a)
	if err != nil {
		return nil, err
	}
	family, qualifier, err := a.column(2)
	if err != nil {
		return nil, err
	}
	by := int64(1)
	if a.len() > 3 {
		if by, err = a.integer(3, "amount"); err != nil {
			return nil, err
		}
	}
	n, err := t.IncrementColumn(ctx, []byte(row), family, qualifier, by)
	return say(n, fmt.Sprintf("COUNTER VALUE = %d", n)), err
}

func runAppend(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(4, 4); err != nil {
		return nil, err
	}
	t, row, err := s.target(a)
	if err != nil {
		return nil, err
	}
	family, qualifier, err := a.column(2)
	if err != nil {
		return nil, err
	}
	value, err := a.text(3, "value")
	if err != nil {
		return nil, err
	}
	res, err := t.Append(ctx, hbase.NewAppend(row).Add(family, qualifier, []byte(value)))
	if err != nil {
		return nil, err
	}
	whole := hbase.Quote(res.Value(family, qualifier))
	return say(whole, "CURRENT VALUE = "+whole), nil
}

func runGetCounter(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(3, 3); err != nil {
		return nil, err
	}
	t, row, err := s.target(a)
	if err != nil {
		return nil, err
	}
	family, qualifier, err := a.column(2)
	if err != nil {
		return nil, err
	}
	res, err := t.Get(ctx, hbase.NewGet(row).Column(family, qualifier))
	if err != nil {
		return nil, err
	}
	n, ok := res.Int64(family, qualifier)
	if !ok {
		return say(nil, "No counter found at specified coordinates"), nil
	}
	return say(n, fmt.Sprintf("COUNTER VALUE = %d", n)), nil
}

func runShowFilters(_ context.Context, _ *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	list := filter.Language()
	ans := say(list)
	for _, e := range list {
		ans.lines = append(ans.lines, e.Name+"("+e.Arguments+")", "    "+e.About)
	}
	ans.lines = append(ans.lines, "", "OPERATOR is one of < <= = != >= >", "COMPARATOR is binary:, binaryprefix:, substring:, regexstring: or regexstringnocase: and a value")
	return ans, nil
}
