package metamorph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

const tableName = "t"

// Report is what came of a run.
type Report struct {
	Setting string
	// Violations are answers that cannot be right, and failures without a
	// reason.
	Violations []string
	// Outcomes counts operations by kind and outcome.
	Outcomes map[string]int
	// Vague rows are those of which too much was possible.
	Vague int
	// Data is what rows hold of which everything is known.
	Data map[string]string
	Took time.Duration
}

// maxViolations bounds what a report tells.
const maxViolations = 20

// Err is nil if there are no violations.
func (r *Report) Err() error {
	if len(r.Violations) == 0 {
		return nil
	}
	return fmt.Errorf("setting %q: %s", r.Setting, strings.Join(r.Violations, "\n"))
}

// run is one history being played under one setting.
type run struct {
	h       *History
	setting Setting
	mini    *minihbase.Cluster
	client  *hbase.Client
	table   *hbase.Table
	dir     string       // of the snapshot of routes
	done    atomic.Int64 // operations
	final   bool         // a rule answers with a final exception
	lanes   []*lane
	// giveUp ends a run in which an operation hangs.
	giveUp func()

	mu     sync.Mutex
	report *Report
	moved  chan struct{} // a token when done has changed
}

// lane is what one lane knows.
type lane struct {
	r    *run
	id   int
	rows map[string]*row
}

// Play plays the history under all its settings and compares the outcomes. The
// error is about the machinery; what was found is in the reports.
func Play(ctx context.Context, h *History) ([]*Report, error) {
	var reports []*Report
	for _, name := range h.Shape.Settings {
		s, ok := settingNamed(name)
		if !ok {
			return reports, fmt.Errorf("there is no setting %q", name)
		}
		rep, err := Run(ctx, h, s)
		if err != nil {
			return reports, fmt.Errorf("setting %q: %w", name, err)
		}
		for _, other := range reports {
			for row, data := range rep.Data {
				if was, ok := other.Data[row]; ok && was != data {
					rep.Violations = append(rep.Violations, fmt.Sprintf("row %s ends as %s under %q and as %s under %q", row, was, other.Setting, data, rep.Setting))
				}
			}
		}
		reports = append(reports, rep)
	}
	return reports, nil
}

// start makes the cluster, the table and the client.
func start(ctx context.Context, h *History, s Setting) (_ *run, err error) {
	mini, err := minihbase.Start(ctx, minihbase.Options{InMemory: true, ControlPort: -1, Servers: h.Shape.Servers})
	if err != nil {
		return nil, err
	}
	r := &run{h: h, setting: s, mini: mini, report: &Report{Setting: s.Name, Outcomes: map[string]int{}, Data: map[string]string{}}, moved: make(chan struct{}, 1)}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	for i := range h.Shape.Lanes {
		r.lanes = append(r.lanes, &lane{r: r, id: i, rows: map[string]*row{}})
		for j := range h.Shape.Rows {
			r.lanes[i].rows[rowName(i, j)] = newRow()
		}
	}
	for _, e := range h.Events {
		if e.Fault != nil && e.Fault.Rule != nil && isFinal(e.Fault.Rule.Exception.Class) {
			r.final = true
		}
	}
	return r, nil
}

// close leaves nothing behind.
func (r *run) close() error {
	var err error
	if r.client != nil {
		err = r.client.Close()
	}
	return errors.Join(err, r.mini.Close(), os.RemoveAll(r.dir))
}

// Run plays the history on a new cluster.
func Run(ctx context.Context, h *History, s Setting) (_ *Report, err error) {
	began := time.Now()
	r, err := start(ctx, h, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	faults, stop := context.WithCancel(ctx)
	defer stop()
	var chaos, work sync.WaitGroup
	chaos.Go(func() { r.disturb(faults) })
	playing, end := context.WithCancel(ctx)
	defer end()
	r.giveUp = end
	for _, l := range r.lanes {
		work.Go(func() { l.play(playing) })
	}
	work.Wait()
	stop()
	chaos.Wait()
	if playing.Err() != nil {
		r.report.Took = time.Since(began)
		return r.report, ctx.Err()
	}
	if err := r.calm(ctx); err != nil {
		return nil, err
	}
	r.verify(playing)
	if playing.Err() != nil {
		r.report.Took = time.Since(began)
		return r.report, ctx.Err()
	}
	for _, l := range r.lanes {
		for name, w := range l.rows {
			if w.vague {
				r.report.Vague++
			} else if st, ok := w.certain(); ok {
				r.report.Data[name] = show(st.read(&Read{Versions: hbase.AllVersions}))
			}
		}
	}
	r.report.Took = time.Since(began)
	return r.report, ctx.Err()
}

// open makes the table and the client.
func (r *run) open(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "metamorph")
	if err != nil {
		return err
	}
	r.dir = dir
	routes := filepath.Join(dir, "routes")
	first, err := hbase.Open(ctx, r.mini.Address(), append(base(), hbase.WithRouteSnapshot(routes))...)
	if err != nil {
		return err
	}
	defer first.Close()
	n, s, v := admin.NewFamily(familyN), admin.NewFamily(familyS), admin.NewFamily(familyV).Versions(100_000)
	var splits [][]byte
	for _, k := range r.h.Shape.Splits {
		splits = append(splits, []byte(k))
	}
	if err := first.Admin().CreateTable(ctx, admin.NewTable(tableName, n, s, v), splits...); err != nil {
		return err
	}
	options := append(base(), r.setting.Options...)
	if r.setting.Warm {
		t, err := first.Table(tableName)
		if err != nil {
			return err
		}
		for _, err := range t.Scan(ctx, hbase.NewScan()).Rows() {
			if err != nil {
				return err
			}
		}
		if err := first.Close(); err != nil {
			return err
		}
		options = append(options, hbase.WithRouteSnapshot(routes))
	}
	if r.client, err = hbase.Open(ctx, r.mini.Address(), options...); err != nil {
		return err
	}
	r.table, err = r.client.Table(tableName)
	return err
}

func (r *run) violation(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.report.Violations) < maxViolations {
		r.report.Violations = append(r.report.Violations, fmt.Sprintf(format, args...))
	}
}

// describe tells what the cluster has, and what the client knows.
func (r *run) describe() string {
	var b strings.Builder
	for _, s := range r.mini.Servers() {
		fmt.Fprintf(&b, "\n  server %s %s", s.Name, s.State)
	}
	regions, err := r.mini.Regions("")
	if err != nil {
		fmt.Fprintf(&b, "\n  %v", err)
	}
	for _, g := range regions {
		fmt.Fprintf(&b, "\n  region %s", text(g))
	}
	for _, s := range r.client.Servers() {
		fmt.Fprintf(&b, "\n  the client says %+v", s)
	}
	fmt.Fprintf(&b, "\n  routes: %+v", r.client.RouteStats())
	return b.String()
}

func (r *run) count(outcome string) {
	r.mu.Lock()
	r.report.Outcomes[outcome]++
	r.mu.Unlock()
}

// play performs the lane's operations.
func (l *lane) play(ctx context.Context) {
	for i := range l.r.h.Events {
		e := &l.r.h.Events[i]
		if e.Op == nil || e.Lane != l.id || ctx.Err() != nil {
			continue
		}
		l.do(ctx, i, e.Op)
		l.r.done.Add(1)
		select {
		case l.r.moved <- struct{}{}:
		default:
		}
	}
}

// disturb brings the faults about, each when so many operations are through.
func (r *run) disturb(ctx context.Context) {
	for i := range r.h.Events {
		f := r.h.Events[i].Fault
		if f == nil {
			continue
		}
		for int(r.done.Load()) < f.After {
			select {
			case <-r.moved:
			case <-ctx.Done():
				return
			}
		}
		r.fault(ctx, f)
		if ctx.Err() != nil {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// fault does one thing to the cluster. What cannot be done just now is passed
// over: a region may be on the server it is moved to, or be split already.
func (r *run) fault(ctx context.Context, f *Fault) {
	// What has begun is brought to its end.
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	m := r.mini
	switch f.Kind {
	case "move":
		if g, err := m.Locate(tableName, []byte(f.Row)); err == nil {
			_ = m.MoveRegion(limit, g.Encoded, f.Server)
		}
	case "split":
		if g, err := m.Locate(tableName, []byte(f.Row)); err == nil && string(g.Start) != f.Row {
			_ = m.Split(limit, g.Encoded, []byte(f.Row))
		}
	case "merge":
		if g, err := m.Locate(tableName, []byte(f.Row)); err == nil && len(g.End) > 0 {
			if next, err := m.Locate(tableName, g.End); err == nil {
				_ = m.Merge(limit, g.Encoded, next.Encoded)
			}
		}
	case "kill":
		_ = m.KillRegionServer(f.Server)
		sleep(ctx, f.For)
		_ = m.StartRegionServer(f.Server)
	case "hang":
		_ = m.HangRegionServer(f.Server)
		sleep(ctx, f.For)
		_ = m.ResumeRegionServer(f.Server)
	case "pause":
		_ = m.PauseRegionServer(f.Server)
		sleep(ctx, f.For)
		_ = m.ResumeRegionServer(f.Server)
	case "reset":
		_ = m.ResetConnections(f.Server)
	case "slow":
		_ = m.SlowRegionServer(f.Server, f.For)
	case "gap":
		m.SetTransitionGap(f.For)
	case "clear":
		m.ClearRules()
	case "rule":
		rule := *f.Rule
		if strings.HasSuffix(rule.Exception.Class, "RegionMovedException") {
			s := m.Servers()[f.Server]
			name, err := meta.ParseServerName(s.Name)
			if err != nil {
				r.violation("server %q: %v", s.Name, err)
				return
			}
			rule.Exception.Host, rule.Exception.Port, rule.Exception.StartCode = name.Host, int(name.Port), name.StartCode
		}
		if _, err := m.AddRule(rule); err != nil {
			r.violation("rule %+v: %v", rule, err)
		}
	default:
		r.violation("there is no fault %q", f.Kind)
	}
}

// calm undoes the faults.
func (r *run) calm(ctx context.Context) error {
	r.mini.ClearRules()
	r.mini.SetTransitionGap(0)
	for i := range r.h.Shape.Servers {
		_ = r.mini.ResumeRegionServer(i)
		_ = r.mini.SlowRegionServer(i, 0)
		if s := r.mini.Servers()[i]; s.State != "running" {
			if err := r.mini.StartRegionServer(i); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// verify reads everything, with the client of the history and with a new one.
func (r *run) verify(ctx context.Context) {
	fresh, err := hbase.Open(ctx, r.mini.Address(), base()...)
	if err != nil {
		r.violation("at the end: %v", err)
		return
	}
	defer fresh.Close()
	other, err := fresh.Table(tableName)
	if err != nil {
		r.violation("at the end: %v", err)
		return
	}
	r.final = false
	setting := r.setting
	r.setting.MayEnd = false
	all := &Op{Kind: "scan", Read: &Read{Versions: 3}, Scan: &Scan{}}
	for _, l := range r.lanes {
		l.do(ctx, -1, all)
		var rows []string
		for name := range l.rows {
			rows = append(rows, name)
		}
		slices.Sort(rows)
		l.do(ctx, -1, &Op{Kind: "multi-get", Read: &Read{Versions: hbase.AllVersions}, Rows: rows})
	}
	r.setting, r.table = setting, other
	for _, l := range r.lanes {
		l.do(ctx, -1, all)
		l.do(ctx, -1, &Op{Kind: "scan", Read: &Read{Versions: hbase.AllVersions}, Scan: &Scan{Reversed: true}})
	}
}

// outcome is what an error says of what the operation did.
type outcome uint8

const (
	done outcome = iota
	refused
	unknown
)

// judge sorts an operation's outcome, and tells failures without a reason.
// unsafe operations may end as unknown, and have little time.
func (r *run) judge(n int, kind string, unsafe bool, err error) outcome {
	if err == nil {
		r.count(kind + " done")
		return done
	}
	out := unknown
	if hbase.SafeToRetry(err) {
		out = refused
	}
	remote, isRemote := errors.AsType[*hbase.RemoteError](err)
	why := ""
	switch {
	case errors.Is(err, hbase.ErrUnknownOutcome):
		if !unsafe && !(r.setting.MayEnd && errors.Is(err, hbase.ErrRetriesExhausted)) {
			why = "may be repeated, and was not"
		}
		if out != unknown {
			why = "is unknown and safe to retry at once"
		}
	case r.setting.MayEnd && (errors.Is(err, hbase.ErrRetriesExhausted) || errors.Is(err, hbase.ErrServerDown)):
	case r.final && isRemote && isFinal(remote.Class):
	case unsafe && errors.Is(err, context.DeadlineExceeded):
	case kind == "rows" || kind == "check-rows":
		// Perhaps the rows lie in different regions now.
		if !isRemote && !errors.Is(err, context.DeadlineExceeded) {
			why = "failed without a reason"
		}
	default:
		why = "failed without a reason"
	}
	if why != "" {
		r.violation("event %d: %s %s: %v", n, kind, why, err)
	}
	if out == unknown {
		r.count(kind + " unknown")
	} else {
		r.count(kind + " refused")
	}
	return out
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
