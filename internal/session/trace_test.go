package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// The files in testdata/traces hold the error table as it is lived through: a
// script of what the cluster does, and below it what becomes of one operation
// of each kind. See testdata/traces/README for the language.
var update = flag.Bool("update", false, "rewrite the traces")

// traceOps are the kinds of operations, in the order of the files.
var traceOps = []string{"get", "put", "increment", "check and put", "scan next", "batch"}

// TestTraces compares every trace with its file.
func TestTraces(t *testing.T) {
	for _, file := range traceFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, p := range parseTraces(t, file, text) {
				out.WriteString(p.text)
				if p.script == nil {
					continue
				}
				got := p.play(t)
				if got != p.want && !*update {
					t.Errorf("%s:%d:\n%s--- gives\n%s--- and not\n%s", file, p.line, strings.Join(p.script, "\n")+"\n", got, p.want)
				}
				fmt.Fprintf(&out, "----\n%s", got)
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestEveryRuleHasATrace: the table and the files grow together.
func TestEveryRuleHasATrace(t *testing.T) {
	var all bytes.Buffer
	for _, file := range traceFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, rule := range retry.Rules() {
		if !bytes.Contains(all.Bytes(), []byte(": "+rule+": ")) {
			t.Errorf("rule %q has no trace", rule)
		}
	}
}

func traceFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/traces/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// tracePart is a comment, or a script with its result.
type tracePart struct {
	text   string // as it stands in the file, without the result
	line   int
	ops    []string
	script []string
	want   string
}

// parseTraces reads a file: a script begins with the line "trace", maybe with
// the operations it is for, and ends with "----"; its result ends with an empty
// line.
func parseTraces(t *testing.T, file string, text []byte) (parts []tracePart) {
	t.Helper()
	var cur tracePart
	state := 0 // outside, in a script, in a result
	n := 0
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		n++
		line := in.Text()
		switch {
		case state == 0 && (line == "trace" || strings.HasPrefix(line, "trace ")):
			parts = append(parts, cur)
			cur = tracePart{text: line + "\n", line: n, script: []string{}, ops: traceOps}
			if _, only, ok := strings.Cut(line, " "); ok {
				cur.ops = strings.Split(only, ", ")
			}
			state = 1
		case state == 1 && line == "----":
			state = 2
		case state == 1:
			cur.script = append(cur.script, line)
			cur.text += line + "\n"
		case state == 2 && line == "":
			parts = append(parts, cur)
			cur = tracePart{text: "\n"}
			state = 0
		case state == 2:
			cur.want += line + "\n"
		default:
			cur.text += line + "\n"
		}
	}
	if state == 1 {
		t.Fatalf("%s: the script of line %d has no end", file, cur.line)
	}
	return append(parts, cur)
}

// play gives the result: operations that take the same course are told of
// together.
func (p *tracePart) play(t *testing.T) string {
	var names []string
	courses := map[string][]string{}
	for _, op := range p.ops {
		// All waits as short as they may be, and all as long.
		low, high := p.course(t, op, 0), p.course(t, op, 1-1e-12)
		course := low.with(high)
		if courses[course] == nil {
			names = append(names, course)
		}
		courses[course] = append(courses[course], op)
	}
	var b strings.Builder
	for _, course := range names {
		fmt.Fprintf(&b, "%s:\n%s", strings.Join(courses[course], ", "), course)
	}
	return b.String()
}

// trace is what the hooks saw of one operation. A %v in a line stands for one
// of its times or numbers. A loose one keeps no waits and no times, and of lines
// that repeat one.
type trace struct {
	mu    sync.Mutex
	on    bool
	lines []string
	times [][]any
	loose bool
}

func (tr *trace) add(line string, times ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	line = "  " + line + "\n"
	if tr.loose && (strings.HasPrefix(line, "  wait ") || slices.Contains(tr.lines[max(len(tr.lines)-2, 0):], line)) {
		return
	}
	if tr.on {
		tr.lines = append(tr.lines, line)
		tr.times = append(tr.times, times)
	}
}

// with prints a trace beside one with longer waits: as one, with ranges, if the
// course is the same.
func (tr *trace) with(other *trace) string {
	if !slices.Equal(tr.lines, other.lines) {
		return "  with short waits:\n" + tr.with(tr) + "  with long waits:\n" + other.with(other)
	}
	var b strings.Builder
	for i, line := range tr.lines {
		var args []any
		for j, x := range tr.times[i] {
			y := other.times[i][j]
			d, isTime := x.(time.Duration)
			if isTime {
				x, y = d.Round(time.Millisecond), y.(time.Duration).Round(time.Millisecond)
			}
			if s := fmt.Sprint(x); x != y {
				args = append(args, fmt.Sprintf("%s to %v", s, y))
			} else {
				args = append(args, s)
			}
		}
		fmt.Fprintf(&b, line, args...)
	}
	return b.String()
}

// traced marks the context of the operation that is traced.
type traced struct{}

func isTraced(ctx context.Context) bool { return ctx.Value(traced{}) != nil }

func (tr *trace) AttemptStart(ctx context.Context, _ Attempt) context.Context { return ctx }

func (tr *trace) AttemptEnd(ctx context.Context, a Attempt, r AttemptResult) {
	if !isTraced(ctx) {
		return
	}
	sent := ", sent"
	if !r.Sent {
		sent = ", not sent"
	}
	what := "ok"
	if r.Err != nil {
		what = verdict(r.Decision)
		if r.Decision.Rule == "not HBase" {
			sent = "" // it may have hung up before or after
		}
	}
	tr.add(fmt.Sprintf("#%d to %s%s: %s", a.Number, a.Server.Host, sent, what))
}

func verdict(d Decision) string {
	s := d.String()
	if s == "" {
		return "the operation is over"
	}
	if d.MaybeApplied {
		s += ", may have been applied"
	}
	return s
}

func (tr *trace) Failure(ctx context.Context, f Failure) {
	if !isTraced(ctx) {
		return
	}
	where := f.Server.Host
	if where == "" {
		where = "nobody"
	}
	tr.add(fmt.Sprintf("no request to %s: %s", where, verdict(f.Decision)))
}

func (tr *trace) Waited(ctx context.Context, w Wait) {
	if !isTraced(ctx) {
		return
	}
	early := ""
	if w.Took < w.Planned {
		early = ", cut short"
	}
	tr.add("wait "+w.Class+" %v"+early, w.Planned)
}

func (tr *trace) LookedUp(ctx context.Context, l Lookup) {
	if !isTraced(ctx) {
		return
	}
	if l.Err != nil {
		tr.add("lookup: nothing"+tr.after(), tr.times1(l.Took)...)
		return
	}
	tr.add("lookup: "+l.Server.Host+tr.after(), tr.times1(l.Took)...)
}

// after and times1 print a time, unless what it depends on has jitter that a
// test cannot choose.
func (tr *trace) after() string {
	if tr.loose {
		return ""
	}
	return " after %v"
}

func (tr *trace) times1(d time.Duration) []any {
	if tr.loose {
		return nil
	}
	return []any{d}
}

func (tr *trace) RouteChanged(e RouteEvent) {
	if e.Table.String() != "t" {
		return
	}
	s := "route " + e.Change.String()
	if e.Change == RouteMoved {
		s += " from " + e.From.Host + " to " + e.To.Host
	}
	tr.add(s)
}

// traceRun is one operation on one cluster.
type traceRun struct {
	*trace
	t      *testing.T
	c      *fakeCluster
	core   *Core
	table  meta.TableName
	op     string
	left   int // answers that are not the usual ones
	after  int // usual ones before them
	answer reply
	mu     sync.Mutex
	others sync.WaitGroup
	ends   []func()
}

// course performs the operation with one extreme of jitter.
func (p *tracePart) course(t *testing.T, op string, jitter float64) *trace {
	tr := &trace{}
	t.Run(op, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { p.perform(t, tr, op, jitter) })
	})
	return tr
}

func (p *tracePart) perform(t *testing.T, tr *trace, op string, jitter float64) {
	x := &traceRun{trace: tr, t: t, c: newFake(t, 3), op: op}
	x.c.mu.Lock()
	x.c.meta = x.c.servers["rs3:16020"]
	x.c.mu.Unlock()
	x.table = x.c.table("t") // on rs1
	timeout, cancel, cold := 30*time.Second, time.Duration(0), false
	var least, most time.Duration
	var mostReads int
	config := func(cfg *Config) {
		cfg.Rand = func() float64 { return jitter }
		cfg.Hooks = []any{tr}
	}
	var later []func()
	for i, line := range p.script {
		f := strings.Fields(line)
		arg := func(n int) string {
			if n < len(f) {
				return f[n]
			}
			return ""
		}
		bad := func(err error) {
			if err != nil {
				t.Fatalf("line %d, %q: %v", p.line+1+i, line, err)
			}
		}
		switch arg(0) {
		case "#":
		case "cold":
			cold = true
		case "about":
			var err error
			least, err = time.ParseDuration(arg(1))
			bad(err)
			most, err = time.ParseDuration(arg(2))
			bad(err)
			mostReads, err = strconv.Atoi(arg(3))
			bad(err)
			tr.loose = true
		case "timeout", "cancel":
			d, err := time.ParseDuration(arg(1))
			bad(err)
			if arg(0) == "timeout" {
				timeout = d
			} else {
				cancel = d
			}
		case "attempts":
			n, err := strconv.Atoi(arg(1))
			bad(err)
			before := config
			config = func(cfg *Config) { before(cfg); cfg.MaxAttempts = n }
		case "crowd":
			before := config
			config = func(cfg *Config) { before(cfg); cfg.MaxWaitingPerServer = 1 }
			later = append(later, x.crowd)
		case "gate":
			before := config
			config = func(cfg *Config) { before(cfg); cfg.gateWaiters = 8 }
			later = append(later, x.gate)
		case "queue":
			before := config
			config = func(cfg *Config) { before(cfg); cfg.MaxInFlight, cfg.maxQueue = 1, 1 }
			later = append(later, x.queue)
		default:
			later = append(later, func() { bad(x.step(f)) })
		}
	}
	x.core = x.c.open(config)
	if !cold {
		if _, _, err := get(t.Context(), x.core, x.table, "warm"); err != nil {
			t.Fatal(err)
		}
		if op == "status" {
			if _, err := x.core.CallMaster(t.Context(), statusCall()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
	}
	x.c.hook(x.reply)
	for _, f := range later {
		f()
	}
	synctest.Wait() // what has happened is known
	x.c.forgetLog()
	tr.on = true
	ctx, stop := context.WithTimeout(t.Context(), timeout)
	if cancel > 0 {
		ctx, stop = context.WithCancel(t.Context())
		time.AfterFunc(cancel, stop)
	}
	defer stop()
	ctx = context.WithValue(ctx, traced{}, true)
	began := time.Now()
	err := x.call(ctx)
	took := time.Since(began)
	reads := x.c.metaReads()
	what := "done"
	if err != nil {
		what = "failed"
		if errors.Is(err, retry.ErrUnknownOutcome) {
			what = "unknown"
		} else if attempt, ok := errors.AsType[*AttemptError](err); ok {
			what = "left to the scanner"
			if !attempt.Decision.Retriable {
				what = "failed"
			} else if attempt.Decision.ReopenScanner {
				what += ", which opens another"
			}
		}
	}
	applied := 0
	x.c.mu.Lock()
	for _, r := range x.c.regions {
		applied += r.count["r"]
	}
	x.c.mu.Unlock()
	line := fmt.Sprintf("%s after %%v, %%v reads of meta", what)
	args := []any{took, reads}
	if tr.loose {
		line, args = what, nil
		if op != "scan next" && (took < least || took > most || reads > mostReads) {
			line = fmt.Sprintf("%s after %v with %d reads of meta, which is not about %v to %v and %d", what, took, reads, least, most, mostReads)
		}
	}
	switch op {
	case "put", "increment", "check and put", "batch":
		if tr.loose && (op == "put" || op == "batch") && applied > 0 {
			line += ", applied"
			break
		}
		line += fmt.Sprintf(", applied %d times", applied)
	}
	tr.add(line, args...)
	tr.mu.Lock()
	tr.on = false
	tr.mu.Unlock()
	if err != nil && retry.SafeToRetry(err) != (applied == 0) && applied > 0 {
		t.Errorf("%v is called safe to retry, and was applied", err)
	}
	// After everything, the client still works.
	for _, f := range x.ends {
		f()
	}
	x.c.hook(nil)
	x.others.Wait()
	if op != "status" && !slices.Contains(p.script, "drop-table") {
		if _, _, err := get(t.Context(), x.core, x.table, "after"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}

// call performs the operation on row "r".
func (x *traceRun) call(ctx context.Context) error {
	switch x.op {
	case "get":
		_, _, err := get(ctx, x.core, x.table, "r")
		return err
	case "put", "increment", "check and put":
		idem := map[string]Idempotency{"put": Safe, "increment": Nonced, "check and put": Unsafe}[x.op]
		nonce := uint64(0)
		if idem == Nonced {
			nonce = 7
		}
		_, err := mutate(ctx, x.core, x.table, "r", idem, nonce)
		return err
	case "batch":
		return x.core.Batch(ctx, x.table, []Item{putItem("r", Safe)})[0].Err
	case "status":
		_, err := x.core.CallMaster(ctx, statusCall())
		return err
	case "unencodable get":
		_, err := x.core.CallRegion(ctx, &RegionCall{
			Table: x.table, Row: []byte("r"), Method: "Get", Op: "get", Result: new(pb.GetResponse),
			Param: func([]byte, int) (wire.Marshaler, []byte) { return unencodable{}, nil },
		})
		return err
	case "scan next":
		r, err := x.core.Routes().Locate(ctx, x.table, []byte("r"))
		if err != nil {
			return err
		}
		_, err = x.core.CallRoute(ctx, r, &RegionCall{
			Table: x.table, Row: []byte("r"), Method: "Scan", Op: "scan next", Result: new(pb.ScanResponse),
			Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
				return &pb.ScanRequest{Region: specifier(region), ScannerId: new(uint64(1))}, nil
			},
		})
		return err
	}
	return fmt.Errorf("there is no operation %q", x.op)
}

// reply is the script's answer to the operation's requests.
func (x *traceRun) reply(q *query) *reply {
	if t := x.c.tableOf(q); t != "t" && !(x.op == "status" && q.method == "GetClusterStatus") {
		return nil
	}
	x.mu.Lock()
	r := (*reply)(nil)
	switch {
	case x.after > 0:
		x.after--
	case x.left > 0:
		x.left--
		one := x.answer
		r = &one
	}
	x.mu.Unlock()
	if q.method == "Scan" && r == nil {
		var m pb.ScanRequest
		if err := m.UnmarshalVT(q.param); err != nil {
			x.t.Error(err)
		}
		x.c.mu.Lock()
		defer x.c.mu.Unlock()
		if _, e := x.c.hosted(q.srv, m.Region.GetValue(), nil); e != nil {
			return &reply{err: e}
		}
		return &reply{msg: &pb.ScanResponse{}}
	}
	if q.method == "Scan" && r.apply {
		r.apply = false
	}
	return r
}

// garbage is an answer that no client can read.
type garbage struct{}

func (garbage) SizeVT() int { return 3 }

func (garbage) MarshalToSizedBufferVT(b []byte) (int, error) {
	return copy(b[len(b)-3:], "\xff\xff\xff"), nil
}

// unencodable is a request that cannot be sent.
type unencodable struct{}

func (unencodable) SizeVT() int { return 3 }

func (unencodable) MarshalToSizedBufferVT([]byte) (int, error) {
	return 0, errors.New("cannot be encoded")
}

// step is one line of a script.
func (x *traceRun) step(f []string) error {
	arg := func(n int) string {
		if n < len(f) {
			return f[n]
		}
		return ""
	}
	has := func(word string) bool { return slices.Contains(f, word) }
	x.c.mu.Lock()
	server := x.c.servers[arg(1)+":16020"]
	if arg(1) == "m1" {
		server = x.c.master
	}
	x.c.mu.Unlock()
	region := x.c.region(x.table, "r")
	switch f[0] {
	case "fail", "close", "drop", "garbage":
		n, err := strconv.Atoi(arg(1))
		if err != nil {
			return err
		}
		x.left = n
		x.answer = reply{apply: has("applied"), kill: f[0] == "close", swallow: f[0] == "drop"}
		if f[0] == "garbage" {
			x.answer = reply{msg: garbage{}}
		}
		if f[0] == "fail" {
			class := arg(2)
			if name, ok := strings.CutPrefix(class, "hbase."); ok {
				class = "org.apache.hadoop.hbase." + name
			}
			e := wire.NewRemoteError(class, "because")
			if e.Class == "" {
				return errors.New("which class?")
			}
			switch arg(2) {
			case "RpcThrottling":
				d, err := time.ParseDuration(arg(3))
				if err != nil {
					return err
				}
				e = wire.NewThrottling("number of requests exceeded", d)
			case "RegionMoved":
				s := x.c.servers[arg(3)+":16020"].name
				e = wire.NewRegionMoved(wire.MovedTo{Host: s.Host, Port: s.Port, StartCode: s.StartCode, SeqNum: 6})
			}
			e.DoNotRetry = e.DoNotRetry || has("do-not-retry")
			e.Overloaded = e.Overloaded || has("overloaded")
			x.answer.err = e
		}
	case "move":
		if after := arg(3); after != "" && after != "hint" {
			d, err := time.ParseDuration(after)
			if err != nil {
				return err
			}
			time.AfterFunc(d, func() { x.c.move(region, server, false) })
			return nil
		}
		x.c.move(region, server, has("hint"))
	case "kill":
		server.kill()
	case "down": // and everybody knows
		server.kill()
		ctx, stop := context.WithTimeout(x.t.Context(), 10*time.Millisecond)
		defer stop()
		if _, _, err := get(ctx, x.core, x.table, "other"); err == nil {
			return errors.New("it answers")
		}
		synctest.Wait()
	case "freeze":
		d, err := time.ParseDuration(arg(2))
		if err != nil {
			return err
		}
		server.freeze()
		time.AfterFunc(d, server.thaw)
	case "unassign": // for a while
		d, err := time.ParseDuration(arg(1))
		if err != nil {
			return err
		}
		x.c.mu.Lock()
		region.unassigned = true
		x.c.mu.Unlock()
		time.AfterFunc(d, func() {
			x.c.mu.Lock()
			region.unassigned = false
			x.c.mu.Unlock()
		})
	case "foreign": // something else listens at rs1's port, so many times
		n, err := strconv.Atoi(arg(1))
		if err != nil {
			return err
		}
		x.c.mu.Lock()
		x.c.foreign = n
		x.c.mu.Unlock()
	case "drop-table":
		x.c.mu.Lock()
		x.c.regions, x.c.byName, x.c.sorted = nil, map[string]*fakeRegion{}, nil
		x.c.mu.Unlock()
	default:
		return errors.New("there is no such step")
	}
	return nil
}

// crowd lets another caller wait for rs1, which is frozen.
func (x *traceRun) crowd() {
	s := x.c.server(1)
	s.freeze()
	x.others.Go(func() {
		if _, _, err := get(x.t.Context(), x.core, x.table, "other"); err != nil {
			x.t.Error(err)
		}
	})
	x.ends = append(x.ends, s.thaw)
	time.Sleep(10 * time.Second)
}

// queue fills the client's own line to rs1, which is slow.
func (x *traceRun) queue() {
	x.mu.Lock()
	x.left, x.answer = 1, reply{delay: 250 * time.Millisecond, apply: true}
	x.mu.Unlock()
	for range 2 {
		x.others.Go(func() {
			if _, _, err := get(x.t.Context(), x.core, x.table, "other"); err != nil {
				x.t.Error(err)
			}
		})
	}
	synctest.Wait()
}

// gate lets as many callers wait for the region as may.
func (x *traceRun) gate() {
	region := x.c.region(x.table, "r")
	x.c.mu.Lock()
	region.unassigned = true
	x.c.mu.Unlock()
	for range 8 {
		x.others.Go(func() {
			if _, _, err := get(x.t.Context(), x.core, x.table, "other"); err != nil {
				x.t.Error(err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	time.AfterFunc(300*time.Millisecond, func() {
		x.c.mu.Lock()
		region.unassigned = false
		x.c.mu.Unlock()
	})
}

// foreigner is a connection to something that is not HBase.
func foreigner() net.Conn {
	ours, theirs := newPipe()
	go func() {
		defer theirs.Close()
		if _, err := wire.ReadPreamble(theirs); err == nil {
			fmt.Fprint(theirs, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		}
	}()
	return ours
}
