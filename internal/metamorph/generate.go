package metamorph

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// Size says how long a history is to be.
type Size struct {
	Lanes, Rows, Ops, Faults, Settings int
}

// Generate makes a history. The same seed and size give the same.
func Generate(seed uint64, size Size) *History {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), h: &History{Shape: Shape{
		Seed: seed, Lanes: size.Lanes, Rows: size.Rows, Servers: 3,
	}}}
	s := &g.h.Shape
	for lane := range s.Lanes {
		s.Splits = append(s.Splits, rowName(lane, s.Rows/3), rowName(lane, s.Rows*2/3))
	}
	all := Settings()
	s.Settings = []string{all[0].Name}
	for _, i := range g.Perm(len(all) - 1) {
		if len(s.Settings) < size.Settings {
			s.Settings = append(s.Settings, all[1+i].Name)
		}
	}
	for range size.Ops {
		for lane := range s.Lanes {
			g.clock++
			op := g.op(lane)
			g.h.Events = append(g.h.Events, Event{Lane: lane, Op: &op})
		}
	}
	total := size.Ops * s.Lanes
	for i := range size.Faults {
		f := g.fault()
		f.After = total * i / size.Faults
		g.h.Events = append(g.h.Events, Event{Fault: &f})
	}
	return g.h
}

type generator struct {
	*rand.Rand
	h     *History
	clock int64 // the history's own time
	n     int   // of values
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) row(lane int) string { return rowName(lane, g.IntN(g.h.Shape.Rows)) }

// rows are different rows of a lane, in order.
func (g *generator) rows(lane, n int) []string {
	var out []string
	perm := g.Perm(g.h.Shape.Rows)
	for i := range min(n, len(perm)) {
		out = append(out, rowName(lane, perm[i]))
	}
	return out
}

func (g *generator) value() string {
	g.n++
	v := fmt.Sprintf("v%d", g.n)
	if g.chance(15) {
		v += strings.Repeat("x", 100+g.IntN(900))
	}
	return v
}

func (g *generator) v() string { return fmt.Sprintf("q%d", g.IntN(4)) }

func (g *generator) op(lane int) Op {
	switch k := g.IntN(100); {
	case k < 10:
		return Op{Kind: g.pick("get", "get", "get", "exists"), Rows: g.rows(lane, 1), Read: g.read()}
	case k < 18:
		return Op{Kind: g.pick("multi-get", "multi-get", "multi-exists"), Rows: g.rows(lane, 2+g.IntN(8)), Read: g.read()}
	case k < 32:
		return Op{Kind: "scan", Read: g.read(), Scan: g.scan(lane)}
	case k < 36:
		s := g.scan(lane)
		s.Workers, s.Ordered = 1+g.IntN(4), g.chance(50)
		return Op{Kind: "parallel", Read: g.read(), Scan: s}
	case k < 66:
		return g.change(lane)
	case k < 76:
		return g.check(lane)
	case k < 82:
		rows := g.neighbours(lane)
		op := Op{Kind: "rows"}
		for _, r := range rows {
			op.Changes = append(op.Changes, g.timed(r))
		}
		if g.chance(30) {
			op.Kind = "check-rows"
			op.Checks = []Check{g.condition(rows[0])}
		}
		return op
	case k < 92:
		op := Op{Kind: "batch"}
		for _, r := range g.rows(lane, 2+g.IntN(10)) {
			var one Op
			switch g.IntN(6) {
			case 0:
				one = Op{Kind: "get", Rows: []string{r}, Read: g.read()}
			case 1:
				one = g.check(lane)
				g.rename(&one, r)
			default:
				one = g.change(lane)
				g.rename(&one, r)
				one.Changes[0].Unrepeatable = one.Changes[0].showsTwice()
			}
			op.Ops = append(op.Ops, one)
		}
		return op
	default:
		op := Op{Kind: "mutator"}
		rows := g.rows(lane, 6)
		for range 3 + g.IntN(15) {
			c := g.change(lane).Changes[0]
			for stampedByServer(&c) && c.deletes() { // see lane.do
				c = g.change(lane).Changes[0]
			}
			c = rename(c, rows[g.IntN(len(rows))])
			c.Unrepeatable = c.showsTwice()
			if c.Kind == "increment" || c.Kind == "append" {
				c.NoResult = true
			}
			op.Changes = append(op.Changes, c)
		}
		return op
	}
}

func rename(c Change, row string) Change {
	c.Row = row
	for i := range c.Parts {
		c.Parts[i].Row = row
	}
	return c
}

func (g *generator) rename(o *Op, row string) {
	for i := range o.Changes {
		o.Changes[i] = rename(o.Changes[i], row)
	}
	for i := range o.Checks {
		o.Checks[i].Row = row
	}
}

// neighbours are a few rows side by side.
func (g *generator) neighbours(lane int) []string {
	from := g.IntN(max(g.h.Shape.Rows-3, 1))
	var out []string
	for i := range 1 + g.IntN(3) {
		if from+i < g.h.Shape.Rows {
			out = append(out, rowName(lane, from+i))
		}
	}
	return out
}

// put and del have timestamps of the history's own.
func (g *generator) put(row string) Change {
	g.clock++ // nobody else writes a version of this time
	c := Change{Kind: "put", Row: row}
	used := map[string]bool{}
	for range 1 + g.IntN(3) {
		if q := g.v(); !used[q] {
			used[q] = true
			c.Cells = append(c.Cells, Cell{Family: familyV, Qualifier: q, Timestamp: g.clock * 10, Value: g.value()})
		}
	}
	return c
}

func (g *generator) del(row string) Change {
	c := Change{Kind: "delete", Row: row}
	past := g.clock*10 - g.Int64N(400) - 5
	if past < 1 || g.chance(30) {
		past = g.clock*10 + 1
	}
	switch g.IntN(5) {
	case 0:
		c.UpTo = past
	case 1:
		c.Cells = []Cell{{Mark: "column", Family: familyV, Qualifier: g.v(), Timestamp: past}}
	case 2:
		c.Cells = []Cell{{Mark: "version", Family: familyV, Qualifier: g.v(), Timestamp: past / 10 * 10}}
	case 3:
		c.Cells = []Cell{{Mark: "family", Family: familyV, Timestamp: past}}
	case 4:
		c.Cells = []Cell{{Mark: "family-version", Family: familyV, Timestamp: past / 10 * 10}}
	}
	if len(c.Cells) == 1 && c.Cells[0].Timestamp == 0 {
		c.Cells[0].Timestamp = 1
	}
	return c
}

func (g *generator) timed(row string) Change {
	if g.chance(70) {
		return g.put(row)
	}
	return g.del(row)
}

func (g *generator) count(row string) Change {
	c := Change{Kind: "increment", Row: row}
	if g.chance(30) {
		c.Kind = "append"
		c.Cells = []Cell{{Family: familyN, Qualifier: "a0", Value: g.value()[:2]}}
		return c
	}
	for i := range 1 + g.IntN(2) {
		c.Cells = append(c.Cells, Cell{Family: familyN, Qualifier: fmt.Sprintf("c%d", i), Amount: 1 + g.Int64N(5)})
	}
	return c
}

func (g *generator) change(lane int) Op {
	row := g.row(lane)
	var c Change
	switch k := g.IntN(100); {
	case k < 30:
		c = g.put(row)
	case k < 45:
		c = g.del(row)
	case k < 48:
		c = Change{Kind: "delete", Row: row, Cells: []Cell{{Mark: "latest", Family: familyV, Qualifier: g.v()}}}
	case k < 52:
		c = Change{Kind: "delete", Row: row, Cells: []Cell{{Mark: "column", Family: familyS, Qualifier: "s0"}}}
		switch g.IntN(4) {
		case 0:
			c.Cells[0] = Cell{Mark: "family", Family: familyN}
		case 1:
			c.Cells = nil
		}
		c.Unrepeatable = g.chance(50)
	case k < 66:
		c = Change{Kind: "put", Row: row, Cells: []Cell{{Family: familyS, Qualifier: g.pick("s0", "s1"), Value: g.value()}}}
		c.Unrepeatable = g.chance(50)
	case k < 88:
		c = g.count(row)
		c.NoResult = g.chance(20)
	default:
		c = Change{Kind: "row", Row: row}
		for range 1 + g.IntN(3) {
			c.Parts = append(c.Parts, g.timed(row))
		}
		if g.chance(60) {
			c.Parts = append(c.Parts, g.count(row))
		}
	}
	return Op{Kind: "change", Changes: []Change{c}}
}

func (g *generator) condition(row string) Check {
	c := Check{Row: row, Family: familyV, Qualifier: g.v(), Op: g.pick("=", "=", "!=", "<", ">=", "<=", ">")}
	switch g.IntN(4) {
	case 0:
		c.Value = ""
		c.Op = g.pick("=", "!=")
	case 1:
		c.Family, c.Qualifier = familyS, g.pick("s0", "s1")
		fallthrough
	default:
		c.Value = fmt.Sprintf("v%d", g.IntN(g.n+1))
	}
	return c
}

func (g *generator) check(lane int) Op {
	op := g.change(lane)
	for stampedByServer(&op.Changes[0]) && op.Changes[0].deletes() {
		op = g.change(lane)
	}
	op.Kind = "check"
	op.Changes[0].Unrepeatable = false
	op.Checks = []Check{g.condition(op.Changes[0].Row)}
	return op
}

func (g *generator) read() *Read {
	r := new(Read)
	switch g.IntN(6) {
	case 0:
		r.Columns = []string{familyV}
	case 1:
		r.Columns = []string{familyV + ":" + g.v(), familyN}
	case 2:
		r.Columns = []string{familyS, familyN + ":c0", familyV + ":q0", familyV + ":q2"}
	}
	if g.chance(40) {
		r.Versions = 1 + g.IntN(5)
	}
	if g.chance(15) {
		r.From = g.Int64N(g.clock*10 + 1)
		r.To = r.From + 1 + g.Int64N(g.clock*10+1)
	}
	switch g.IntN(10) {
	case 0:
		r.PerFamily, r.Offset = 1+g.IntN(4), g.IntN(3)
	case 1:
		r.Filter = "first-key"
	case 2:
		r.Filter, r.Prefix = "column-prefix", g.pick("q", "q1", "c", "s")
	}
	return r
}

func (g *generator) scan(lane int) *Scan {
	s := new(Scan)
	rows := g.h.Shape.Rows
	switch g.IntN(3) {
	case 0: // everything
	case 1:
		s.Start, s.Stop = rowName(lane, 0), rowName(lane+1, 0)
	case 2:
		a, b := g.IntN(rows), g.IntN(rows+1)
		s.Start, s.Stop = rowName(lane, min(a, b)), rowName(lane, max(a, b))
		s.ExcludeStart, s.IncludeStop = g.chance(20), g.chance(20)
		if s.Start == s.Stop {
			s.ExcludeStart, s.IncludeStop = false, true
		}
	}
	if s.Reversed = g.chance(35); s.Reversed {
		s.Start, s.Stop = s.Stop, s.Start
	}
	if g.chance(30) {
		s.Limit = 1 + g.IntN(rows)
	}
	switch g.IntN(5) {
	case 0:
		s.Batch = 1 + g.IntN(4)
	case 1:
		s.Partial = true
	}
	if g.chance(50) {
		s.Caching = 1 + g.IntN(6)
	}
	if g.chance(40) {
		s.Size = 50 + g.IntN(1500)
	}
	s.Prefetch = g.IntN(3)
	return s
}

// refusals are the classes of the error table that say nothing about the
// request itself.
var refusals = []string{
	"NotServingRegionException", "RegionMovedException", "RegionOpeningException", "WrongRegionException", "RegionTooBusyException",
	"CallQueueTooBigException", "CallDroppedException", "ServerTooBusyException", "RpcThrottlingException", "ServerNotRunningYetException",
	"RegionServerStoppedException", "RegionServerAbortedException", "PleaseHoldException", "RetryImmediatelyException",
	"MultiActionResultTooLarge", "IOException", "com.example.StrangeException", "TimeoutIOException", "CallTimeoutException",
}

// afterwards are those by which the client does not know whether the request
// was executed.
var afterwards = []string{"IOException", "com.example.StrangeException", "CallTimeoutException", "TimeoutIOException"}

// final are those that end an operation.
var final = []string{"DoNotRetryIOException", "AccessDeniedException", "NoSuchColumnFamilyException", "TableNotFoundException"}

func isFinal(class string) bool {
	for _, f := range final {
		if strings.HasSuffix(class, f) {
			return true
		}
	}
	return false
}

func (g *generator) fault() Fault {
	lane := g.IntN(g.h.Shape.Lanes)
	f := Fault{Server: g.IntN(g.h.Shape.Servers), Row: g.row(lane)}
	switch k := g.IntN(100); {
	case k < 22:
		f.Kind = "move"
	case k < 28:
		f.Kind = "split"
	case k < 33:
		f.Kind = "merge"
	case k < 40:
		f.Kind, f.For = "kill", time.Duration(g.IntN(120))*time.Millisecond
	case k < 44:
		f.Kind, f.For = "hang", time.Duration(20+g.IntN(200))*time.Millisecond
	case k < 48:
		f.Kind, f.For = "pause", time.Duration(20+g.IntN(200))*time.Millisecond
	case k < 52:
		f.Kind = "reset"
	case k < 55:
		f.Kind, f.For = "slow", time.Duration(g.IntN(15))*time.Millisecond
	case k < 58:
		f.Kind, f.For = "gap", time.Duration(g.IntN(60))*time.Millisecond
	case k < 62:
		f.Kind = "clear"
	default:
		f.Kind, f.Rule = "rule", g.rule(&f)
	}
	return f
}

func (g *generator) rule(f *Fault) *minihbase.Rule {
	r := &minihbase.Rule{Match: minihbase.Match{Table: "t"}, Skip: uint64(g.IntN(4)), Every: uint64(1 + g.IntN(4)), Times: uint64(1 + g.IntN(5)), Seed: g.Uint64()}
	if g.chance(20) {
		r.Probability = 0.3
	}
	r.Method = g.pick("", "", "Get", "Mutate", "Multi", "Scan", "Mutate,Multi", "ExecService")
	if g.chance(15) {
		r.Match = minihbase.Match{Table: "hbase:meta"}
	}
	switch k := g.IntN(100); {
	case k < 10:
		r.Action, r.Delay = minihbase.Delay, time.Duration(1+g.IntN(60))*time.Millisecond
	case k < 18:
		r.Action, r.Delay = minihbase.DelayReply, time.Duration(1+g.IntN(60))*time.Millisecond
	case k < 25:
		r.Action = minihbase.DropRequest
	case k < 35:
		r.Action = minihbase.DropReply
	case k < 41:
		r.Action = minihbase.CloseConn
	case k < 48:
		r.Action = minihbase.CloseAfter
	case k < 55:
		r.Action = minihbase.Truncate
	case k < 62:
		r.Action, r.Exception.Class = minihbase.FailAfter, afterwards[g.IntN(len(afterwards))]
	case k < 65:
		r.Action, r.Exception.Class = minihbase.Fail, final[g.IntN(len(final))]
		if r.Table != "t" { // who cannot look regions up fails for good
			r.Exception.Class = "IOException"
		}
		r.Times = 1
	case k < 70:
		r.Action, r.Method = minihbase.Fail, "Scan"
		r.Exception.Class = g.pick("UnknownScannerException", "ScannerResetException", "OutOfOrderScannerNextException", "LeaseException")
	default:
		r.Action, r.Exception.Class = minihbase.Fail, refusals[g.IntN(len(refusals))]
		switch r.Exception.Class {
		case "RegionMovedException":
			// To wherever f.Server is: true or not.
			r.Exception.SeqNum = g.Int64N(200)
		case "RpcThrottlingException":
			r.Exception.Wait = time.Duration(1+g.IntN(60)) * time.Millisecond
		}
	}
	return r
}
