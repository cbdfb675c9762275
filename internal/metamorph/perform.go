package metamorph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// do performs an operation and holds its answer against the model.
func (l *lane) do(ctx context.Context, n int, op *Op) {
	if op.unsafe() && op.Kind != "mutator" {
		limit, cancel := context.WithTimeout(ctx, unsafeTimeout)
		defer cancel()
		ctx = limit
	}
	if op.deletesNow() {
		// An increment within the millisecond of another is stamped with the
		// next one, and would not be hidden.
		sleep(context.WithoutCancel(ctx), 5*time.Millisecond)
	}
	// Long before the operation gives up, what it waits for is still there to be
	// looked at.
	late := time.AfterFunc(operationTimeout*3/4, func() {
		l.r.violation("event %d: lane %d: %s does not end; the cluster: %s", n, l.id, text(op), l.r.describe())
		if l.r.giveUp != nil {
			l.r.giveUp()
		}
	})
	defer late.Stop()
	switch op.Kind {
	case "get", "exists", "multi-get", "multi-exists":
		l.read(ctx, n, op)
	case "scan", "parallel":
		l.scan(ctx, n, op)
	case "change", "check":
		w := l.rows[op.Changes[0].Row]
		if w.vague {
			return
		}
		tries := new(attempts)
		o := l.write(context.WithValue(ctx, attemptsKey{}, tries), op)
		l.wrote(ctx, n, op, o, tries.n, op.unsafe())
	case "rows", "check-rows":
		l.multiRow(ctx, n, op)
	case "batch":
		l.batch(ctx, n, op)
	case "mutator":
		l.mutator(ctx, n, op)
	default:
		l.r.violation("event %d: there is no operation %q", n, op.Kind)
	}
}

// deletesNow says whether it writes a marker stamped by the server.
func (op *Op) deletesNow() bool {
	return slices.ContainsFunc(op.Changes, func(c Change) bool { return stampedByServer(&c) && c.deletes() }) ||
		slices.ContainsFunc(op.Ops, func(o Op) bool { return o.deletesNow() })
}

// attempts counts the requests of an operation, by way of the client's hooks.
type attempts struct{ n int }

type attemptsKey struct{}

type attemptsHook struct{}

func (attemptsHook) OperationStart(ctx context.Context, _ hbase.Operation) context.Context {
	return ctx
}

func (attemptsHook) OperationEnd(ctx context.Context, _ hbase.Operation, r hbase.OperationResult) {
	if a, ok := ctx.Value(attemptsKey{}).(*attempts); ok {
		a.n += r.Attempts
	}
}

func (l *lane) found(n int, op *Op, row string, read *Read, got []Cell) {
	w := l.rows[row]
	if !w.saw(func(s *state) bool { return slices.Equal(s.read(read), got) }) {
		l.r.violation("event %d: lane %d: %s: row %s is %s, want %s", n, l.id, text(op), row, show(got), w.expect(read))
		w.vague = true
	}
}

// expect prints what a read may give.
func (r *row) expect(read *Read) string {
	var b strings.Builder
	for i := range r.states {
		if i == 4 {
			fmt.Fprintf(&b, " or %d others", len(r.states)-i)
			break
		}
		if i > 0 {
			b.WriteString(" or ")
		}
		b.WriteString(show(r.states[i].read(read)))
	}
	return b.String()
}

func (l *lane) exists(n int, op *Op, row string, got bool) {
	w := l.rows[row]
	if !w.saw(func(s *state) bool { return (len(s.read(op.Read)) > 0) == got }) {
		l.r.violation("event %d: lane %d: %s: row %s exists: %v, but it is %s", n, l.id, text(op), row, got, w.expect(op.Read))
		w.vague = true
	}
}

func (l *lane) read(ctx context.Context, n int, op *Op) {
	t := l.r.table
	gets := make([]*hbase.Get, len(op.Rows))
	for i, row := range op.Rows {
		gets[i] = op.Read.get(row)
	}
	switch op.Kind {
	case "get":
		res, err := t.Get(ctx, gets[0])
		if l.r.judge(n, op.Kind, false, err) == done {
			l.found(n, op, op.Rows[0], op.Read, cellsOf(res.Cells))
		}
	case "exists":
		found, err := t.Exists(ctx, gets[0])
		if l.r.judge(n, op.Kind, false, err) == done {
			l.exists(n, op, op.Rows[0], found)
		}
	case "multi-get":
		results, err := t.MultiGet(ctx, gets)
		l.r.judge(n, op.Kind, false, first(err))
		for i, res := range results {
			if res != nil {
				l.found(n, op, op.Rows[i], op.Read, cellsOf(res.Cells))
			} else if err == nil {
				l.r.violation("event %d: %s: no result for %s, and no error", n, text(op), op.Rows[i])
			}
		}
	case "multi-exists":
		found, err := t.MultiExists(ctx, gets)
		if l.r.judge(n, op.Kind, false, first(err)) == done {
			for i, f := range found {
				l.exists(n, op, op.Rows[i], f)
			}
		}
	}
}

// first gives the first of joined errors.
func first(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
		return many.Unwrap()[0]
	}
	return err
}

// scan walks a range and checks the order, that each row comes once, and the
// lane's own rows.
func (l *lane) scan(ctx context.Context, n int, op *Op) {
	s := op.Scan
	request := op.Read.scan(s)
	rows := l.r.table.Scan(ctx, request).Rows()
	ordered := true
	if op.Kind == "parallel" {
		rows = l.r.table.ScanParallel(ctx, request, hbase.ParallelOptions{Workers: s.Workers, Ordered: s.Ordered}).Rows()
		ordered = s.Ordered
	}
	wrong := func(format string, args ...any) {
		l.r.violation("event %d: lane %d: %s: %s", n, l.id, text(op), fmt.Sprintf(format, args...))
	}
	found := map[string][]Cell{}
	last, count := "", 0
	var failed error
	for res, err := range rows {
		if err != nil {
			failed = err
			break
		}
		row := string(res.Row)
		list, again := found[row]
		switch {
		case !s.holds(row):
			wrong("row %q is outside", row)
			return
		case again && (row != last && ordered || s.Batch == 0 && !s.Partial):
			wrong("row %q comes again after %q", row, last)
			return
		case !again && ordered && count > 0 && (row < last) != s.Reversed:
			wrong("row %q comes after %q", row, last)
			return
		case len(res.Cells) == 0 || s.Batch > 0 && len(res.Cells) > s.Batch:
			wrong("%d cells of %q at once", len(res.Cells), row)
			return
		}
		if !again {
			count++
		}
		found[row] = append(list, cellsOf(res.Cells)...)
		last = row
	}
	if l.r.judge(n, op.Kind, false, failed) != done {
		return
	}
	if s.Limit > 0 && count > s.Limit {
		wrong("%d rows, the limit is %d", count, s.Limit)
		return
	}
	whole := s.Limit == 0 || count < s.Limit // nothing of the range is missing
	for name := range l.rows {
		if got, ok := found[name]; ok {
			l.found(n, op, name, op.Read, got)
			continue
		}
		passed := whole || ordered && (name < last) != s.Reversed
		if s.holds(name) && passed {
			l.found(n, op, name, op.Read, nil)
		}
	}
}

// holds says whether a row is in the range.
func (s *Scan) holds(row string) bool {
	lo, hi, withLo, withHi := s.Start, s.Stop, !s.ExcludeStart, s.IncludeStop
	if s.Reversed {
		lo, hi, withLo, withHi = s.Stop, s.Start, s.IncludeStop, !s.ExcludeStart
	}
	if lo != "" && (row < lo || row == lo && !withLo) {
		return false
	}
	return hi == "" || row < hi || row == hi && withHi
}

// written is an outcome.
type written struct {
	applied bool
	results []Cell
	err     error
}

// unsafe says whether the client must not repeat it.
func (op *Op) unsafe() bool {
	if op.Kind == "check" || op.Kind == "check-rows" || slices.ContainsFunc(op.Ops, func(o Op) bool { return o.unsafe() }) {
		return true
	}
	return slices.ContainsFunc(op.Changes, func(c Change) bool { return c.unsafe() })
}

func (c *Change) unsafe() bool {
	if c.Unrepeatable && (c.Kind == "put" || c.Kind == "delete") {
		return true
	}
	for _, x := range c.Cells {
		if x.Mark == "latest" || x.Mark == "version" && x.Timestamp == 0 {
			return true
		}
	}
	return slices.ContainsFunc(c.Parts, func(p Change) bool { return p.unsafe() })
}

// write sends a change or a check.
func (l *lane) write(ctx context.Context, op *Op) (w written) {
	t := l.r.table
	c := &op.Changes[0]
	var res *hbase.Result
	if op.Kind == "check" {
		var r hbase.CheckResult
		r, w.err = t.CheckAndMutate(ctx, op.Checks[0].condition().Then(c.action()))
		w.applied = r.Applied
		if r.Result != nil {
			w.results = cellsOf(r.Result.Cells)
		}
		return w
	}
	switch a := c.action().(type) {
	case *hbase.Put:
		w.err = t.Put(ctx, a)
	case *hbase.Delete:
		w.err = t.Delete(ctx, a)
	case *hbase.Increment:
		res, w.err = t.Increment(ctx, a)
	case *hbase.Append:
		res, w.err = t.Append(ctx, a)
	case *hbase.RowMutations:
		res, w.err = t.MutateRow(ctx, a)
	}
	if res != nil {
		w.results = cellsOf(res.Cells)
	}
	w.applied = w.err == nil
	return w
}

// wrote tells the model. short says that the operation had little time.
func (l *lane) wrote(ctx context.Context, n int, op *Op, w written, tries int, short bool) {
	c := &op.Changes[0]
	row := l.rows[c.Row]
	if row.vague {
		return
	}
	var check *Check
	if op.Kind == "check" {
		check = &op.Checks[0]
	}
	kind := op.Kind
	if kind == "change" {
		kind = c.Kind
	}
	switch l.r.judge(n, kind, short, w.err) {
	case refused:
		row.parted = true
	case unknown:
		row.mayCome(c, check)
		if !op.unsafe() && c.showsTwice() {
			row.vague = true
		}
	case done:
		if check != nil && !row.saw(func(s *state) bool { return s.holds(check) == w.applied }) {
			l.r.violation("event %d: lane %d: %s: applied %v, but the row is %s", n, l.id, text(op), w.applied, row.expect(&Read{}))
			row.vague = true
			return
		}
		if !w.applied {
			return
		}
		got := w.results
		fits := func(want []Cell) bool {
			return c.NoResult && len(got) == 0 || slices.Equal(sorted(got), sorted(want))
		}
		if !row.did(c, fits) {
			l.r.violation("event %d: lane %d: %s: it gave %s, which no state explains: %s", n, l.id, text(op), show(got), row.expect(&Read{}))
			row.vague = true
			return
		}
		if tries > 1 && !op.unsafe() && c.showsTwice() {
			for range tries - 1 {
				row.mayCome(c.repeatable(), nil)
			}
		}
		if stampedByServer(c) && c.deletes() {
			// What is written within the same millisecond would be hidden.
			sleep(context.WithoutCancel(ctx), 2*time.Millisecond)
		}
	}
}

func sorted(list []Cell) []Cell {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Cell) int { return strings.Compare(a.Qualifier, b.Qualifier) })
	return list
}

// multiRow changes several rows of one region, or fails for not being one.
func (l *lane) multiRow(ctx context.Context, n int, op *Op) {
	var ms []hbase.Mutation
	for i := range op.Changes {
		ms = append(ms, op.Changes[i].mutation())
	}
	limit, cancel := context.WithTimeout(ctx, multiRowTimeout)
	defer cancel()
	applied := true
	var err error
	if op.Kind == "check-rows" {
		applied, err = l.r.table.CheckAndMutateRows(limit, []*hbase.CheckAndMutate{op.Checks[0].condition()}, ms...)
	} else {
		err = l.r.table.MutateRows(limit, ms...)
	}
	got := l.r.judge(n, op.Kind, op.unsafe(), err)
	if got == refused {
		for _, c := range op.Changes {
			l.rows[c.Row].parted = true
		}
		return
	}
	if op.Kind == "check-rows" && got == done {
		w := l.rows[op.Checks[0].Row]
		if w.parted {
			for _, c := range op.Changes {
				l.rows[c.Row].parted = true
			}
		}
		if !w.saw(func(s *state) bool { return s.holds(&op.Checks[0]) == applied }) {
			l.r.violation("event %d: lane %d: %s: applied %v, but row %s is %s", n, l.id, text(op), applied, op.Checks[0].Row, w.expect(&Read{}))
			w.vague = true
		}
		if !applied {
			return
		}
	}
	for i := range op.Changes {
		c := &op.Changes[i]
		w := l.rows[c.Row]
		if got == done {
			w.did(c, nil)
			continue
		}
		// With a condition on another row: either way. (That the rows change
		// together is not followed up.)
		w.mayCome(c, nil)
	}
}

// multiRowTimeout is short: if the rows' regions have parted, there is nothing
// to wait for.
const multiRowTimeout = 3 * time.Second

func (l *lane) batch(ctx context.Context, n int, op *Op) {
	var ops []hbase.Op
	var of []*Op
	for i := range op.Ops {
		o := &op.Ops[i]
		switch o.Kind {
		case "get":
			ops = append(ops, o.Read.get(o.Rows[0]))
		case "change":
			if l.rows[o.Changes[0].Row].vague {
				continue
			}
			ops = append(ops, o.Changes[0].action())
		case "check":
			if l.rows[o.Changes[0].Row].vague {
				continue
			}
			ops = append(ops, o.Checks[0].condition().Then(o.Changes[0].action()))
		}
		of = append(of, o)
	}
	for i, out := range l.r.table.Batch(ctx, ops) {
		o := of[i]
		if o.Kind == "get" {
			if l.r.judge(n, "batched get", op.unsafe(), out.Err) == done {
				l.found(n, o, o.Rows[0], o.Read, cellsOf(out.Result.Cells))
			}
			continue
		}
		w := written{applied: out.Applied, err: out.Err}
		if out.Result != nil {
			w.results = cellsOf(out.Result.Cells)
		}
		l.wrote(ctx, n, o, w, 1, op.unsafe())
	}
}

func (l *lane) mutator(ctx context.Context, n int, op *Op) {
	failures := map[hbase.RowAction]error{}
	var timeout time.Duration
	if op.unsafe() {
		timeout = unsafeTimeout
	}
	m, err := l.r.table.Mutator(hbase.MutatorOptions{Timeout: timeout, OnError: func(f hbase.FailedMutation) { failures[f.Mutation] = f.Err }})
	if err != nil {
		l.r.violation("event %d: %v", n, err)
		return
	}
	var sent []hbase.RowAction
	var of []*Change
	for i := range op.Changes {
		c := &op.Changes[i]
		if l.rows[c.Row].vague {
			continue
		}
		a := c.action()
		if err := m.Add(ctx, a); err != nil {
			l.r.violation("event %d: add: %v", n, err)
			break
		}
		sent, of = append(sent, a), append(of, c)
	}
	err = m.Close(ctx)
	if _, ok := errors.AsType[*hbase.MutatorError](err); (err != nil) != (len(failures) > 0) || err != nil && !ok {
		l.r.violation("event %d: the mutator ended with %v after %d failures", n, err, len(failures))
	}
	for i, a := range sent {
		o := &Op{Kind: "change", Changes: []Change{*of[i]}}
		w := written{applied: failures[a] == nil, err: failures[a]}
		o.Changes[0].NoResult = true
		l.wrote(ctx, n, o, w, 1, op.unsafe())
	}
}
