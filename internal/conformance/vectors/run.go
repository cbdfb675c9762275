package vectors

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

// Options of a run.
type Options struct {
	// Clock, if set, is the cluster's, and stands: waiting moves it on. Without
	// one, waiting takes its time and the clock is the machine's.
	Clock Clock
	// Embedded says that the cluster is the embedded one.
	Embedded bool
	// Only chooses the cases to play. Default: all.
	Only func(theme string, c *Case) bool
	// Differs names the cases ("theme/name", or the name if it begins so) that
	// the cluster answers otherwise, with the reason.
	Differs map[string]string
	// AsJava names cases with scans, batches, splits or descriptors that our
	// client would not send as HBase's does, with the reason: those steps are
	// played as requests of their own.
	AsJava map[string]string
	// Workers play cases side by side. Default 4.
	Workers int
	// Keep leaves the tables there: the cluster is thrown away.
	Keep bool
	// Record writes each answer into its step's expect.
	Record bool
	// Patience is the time one case may take. Default 60 s.
	Patience time.Duration
}

// Clock is a clock that can be moved.
type Clock interface {
	Now() time.Time
	Advance(time.Duration)
}

func (o *Options) now() int64 {
	if o.Clock != nil {
		return o.Clock.Now().UnixMilli()
	}
	return time.Now().UnixMilli()
}

// Report counts cases.
type Report struct {
	// Played cases are Passed plus Differing plus failed ones.
	Played, Passed, Failed int
	// Raw is how many of the played have calls on a socket of the runner's own,
	// AsJava how many have them because our client would ask otherwise.
	Raw, AsJava int
	// Steps were compared, Inexpressible could not be asked of the client.
	Steps, Inexpressible int
	// Differing are cases that differ for a reason that is written down.
	Differing []string
}

// String is one line.
func (p *Report) String() string {
	return fmt.Sprintf("%d cases played, %d pass, %d differ, %d fail; %d of them with raw calls, %d as HBase's client asks; %d steps, %d of them not to be said by the client",
		p.Played, p.Passed, len(p.Differing), p.Failed, p.Raw, p.AsJava, p.Steps, p.Inexpressible)
}

// errInexpressible is what a step gives that the client has no words for. The
// server's answer to the same is a raw call's matter.
var errInexpressible = errors.New("the client cannot say this")

// slow cases are named.
const slow = 3 * time.Second

// FullName of a case: its theme and its name.
func FullName(theme string, c *Case) string {
	if strings.HasPrefix(c.Name, theme+"/") {
		return c.Name
	}
	return theme + "/" + c.Name
}

// runner plays the steps of one case, or of a fixture.
type runner struct {
	o       *Options
	clients *clients
	ctx     context.Context
	// tab is the case's table, t0 the clock when it was made.
	tab        string
	t0         int64
	nonceGroup uint64

	// asJava: see Options.AsJava. once: nothing is repeated, since an error is
	// what is to be seen.
	asJava, once bool

	// at is the table of the step being played.
	at *hbase.Table
	// malformed is what was wrong with a step itself.
	malformed error
	// offsets are the distances from t0 that a recorded case names.
	offsets map[int64]bool

	steps, inexpressible int
}

type fixture struct {
	once sync.Once
	t0   int64
	err  error
}

// Run plays the themes' cases against the cluster at address.
func Run(t *testing.T, address string, themes []*Theme, o Options) *Report {
	t.Helper()
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	c, err := open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	type job struct {
		theme    *Theme
		c        *Case
		fixtures map[string]*fixture
	}
	jobs := make(chan job)
	var mu, alone sync.Mutex
	report := new(Report)
	used := make(map[string]bool)
	var workers sync.WaitGroup
	for range o.Workers {
		workers.Go(func() {
			for j := range jobs {
				name := FullName(j.theme.Name, j.c)
				r := &runner{o: &o, clients: c, asJava: o.AsJava[name] != "", once: o.Differs[name] != ""}
				begin := time.Now()
				if j.c.system() {
					alone.Lock()
				}
				err := r.playCase(t.Context(), j.theme, j.c, j.fixtures)
				if j.c.system() {
					alone.Unlock()
				}
				if took := time.Since(begin); took > slow {
					t.Logf("%s took %v", name, took)
				}
				mu.Lock()
				report.Played++
				report.Steps += r.steps
				report.Inexpressible += r.inexpressible
				if j.c.Raw() {
					report.Raw++
				}
				if r.asJava {
					report.AsJava++
				}
				why, known := o.Differs[name]
				used[name] = true
				switch {
				case err == nil && known:
					report.Failed++
					t.Errorf("%s passes, though it was known not to: %s", name, why)
				case err == nil:
					report.Passed++
				case known:
					report.Differing = append(report.Differing, name)
				default:
					report.Failed++
					t.Errorf("%s: %s\n%v", name, j.c.Why, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, theme := range themes {
		fixtures := make(map[string]*fixture)
		for name := range theme.Fixtures {
			fixtures[name] = new(fixture)
		}
		for _, k := range theme.Cases {
			if o.Only == nil || o.Only(theme.Name, k) {
				jobs <- job{theme, k, fixtures}
			}
		}
	}
	close(jobs)
	workers.Wait()
	slices.Sort(report.Differing)
	return report
}

// Unused gives the names in a list of differences that are no case.
func Unused(differs map[string]string, themes []*Theme) []string {
	left := maps.Clone(differs)
	for _, t := range themes {
		for _, c := range t.Cases {
			delete(left, FullName(t.Name, c))
		}
	}
	return slices.Sorted(maps.Keys(left))
}

func (r *runner) playCase(ctx context.Context, theme *Theme, c *Case, fixtures map[string]*fixture) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Patience)
	defer cancel()
	r.ctx = ctx
	h := fnv.New64a()
	fmt.Fprint(h, FullName(theme.Name, c), time.Now().UnixNano())
	r.nonceGroup = h.Sum64()
	r.t0 = r.o.now()
	switch {
	case c.Table != nil:
		if err := r.makeTable(c.Table); err != nil {
			return fmt.Errorf("table: %w", err)
		}
	case c.Fixture != "":
		f, def := fixtures[c.Fixture], theme.Fixtures[c.Fixture]
		if f == nil {
			return fmt.Errorf("fixture %s is missing", c.Fixture)
		}
		f.once.Do(func() {
			f.t0 = r.t0
			if f.err = r.makeTable(def.Table); f.err == nil {
				f.err = r.playSteps(def.Steps, false)
			}
		})
		if f.err != nil {
			return fmt.Errorf("fixture %s: %w", c.Fixture, f.err)
		}
		r.tab, r.t0 = text(def.Table, "name"), f.t0
	}
	if r.o.Record {
		r.offsets = make(map[int64]bool)
		for _, s := range c.Steps {
			r.noteOffsets(without(s, "expect"))
		}
	}
	err = r.playSteps(c.Steps, true)
	if !r.o.Keep || c.system() {
		err = errors.Join(err, r.cleanUp(c))
	}
	return err
}

// makeTable makes a table afresh.
func (r *runner) makeTable(def object) error {
	t, splits := descriptor(def)
	r.tab = text(def, "name")
	a := r.clients.plain.Admin()
	err := a.CreateTable(r.ctx, t, splits...)
	if errors.Is(err, hbase.ErrTableExists) {
		if err := r.drop(r.tab); err != nil {
			return err
		}
		err = a.CreateTable(r.ctx, t, splits...)
	}
	r.t0 = r.o.now()
	return err
}

func (r *runner) drop(table string) error {
	a := r.clients.plain.Admin()
	if err := a.DisableTable(r.ctx, table); err != nil && !errors.Is(err, hbase.ErrTableNotEnabled) {
		if errors.Is(err, hbase.ErrTableNotFound) {
			return nil
		}
		return err
	}
	return a.DeleteTable(r.ctx, table)
}

// cleanUp removes what a case has made.
func (r *runner) cleanUp(c *Case) error {
	var errs []error
	if c.Table != nil {
		errs = append(errs, r.drop(text(c.Table, "name")))
	}
	a := r.clients.plain.Admin()
	for _, t := range list(c.Cleanup, "tables") {
		errs = append(errs, r.drop(fmt.Sprint(t)))
	}
	for _, n := range list(c.Cleanup, "namespaces") {
		if err := a.DeleteNamespace(r.ctx, fmt.Sprint(n)); !errors.Is(err, hbase.ErrNamespaceNotFound) {
			errs = append(errs, err)
		}
	}
	snapshots, err := a.ListSnapshots(r.ctx, ".*")
	errs = append(errs, err)
	for _, n := range list(c.Cleanup, "snapshots") {
		for _, s := range snapshots {
			if s.Name == n {
				errs = append(errs, a.DeleteSnapshot(r.ctx, s.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// playSteps plays steps and compares.
func (r *runner) playSteps(steps []object, compare bool) error {
	for i, s := range steps {
		play := r.play
		if want, _ := s["expect"].(object); r.asJava && want["side"] != "client" {
			play = r.playAsJava
		}
		got, err := play(s)
		r.steps++
		if errors.Is(err, errInexpressible) {
			r.inexpressible++
			continue
		}
		if r.malformed != nil {
			return fmt.Errorf("step %d, %s: %w", i, short(without(s, "expect")), r.malformed)
		}
		if err != nil {
			if !compare {
				return fmt.Errorf("step %d, %s: %w", i, short(without(s, "expect")), err)
			}
			got = failure(err)
		}
		if r.o.Record {
			s["expect"] = r.recorded(got)
			continue
		}
		if err := r.same(s, got); err != nil {
			return fmt.Errorf("step %d, %s: %w\n got %s\nwant %s", i, short(without(s, "expect")), err, short(shown(got)), short(s["expect"]))
		}
		if err := r.checkFilters(s); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// play does one step.
func (r *runner) play(s object) (any, error) {
	if r.o.Clock != nil {
		r.o.Clock.Advance(time.Millisecond)
	}
	op := text(s, "op")
	switch op {
	case "put", "delete", "increment", "append", "get", "exists", "scan", "mutateRow", "checkAndMutate", "batch", "multiRow":
		var err error
		if r.at, err = r.client(s).Table(r.tableName(s)); err != nil {
			return nil, err
		}
	}
	switch op {
	case "put", "delete", "increment", "append":
		return r.mutate(s)
	case "get", "exists":
		if v, ok := s["maxVersions"]; ok && integer(v) == 0 {
			return nil, errInexpressible // 0 is the client's default
		}
		return r.playGet(s)
	case "scan":
		if v, ok := s["maxVersions"]; ok && integer(v) == 0 {
			return nil, errInexpressible
		}
		return r.playScan(s)
	case "mutateRow":
		return r.playMutateRow(s)
	case "checkAndMutate":
		return r.playCheck(s)
	case "batch":
		return r.playBatch(s)
	case "multiRow":
		return r.playMultiRow(s)
	case "parseFilter":
		return r.parseFilter(s)
	case "encodeFilter":
		o, _ := s["filter"].(object)
		f, err := buildFilter(o)
		if err == nil {
			_, err = f.Marshal()
		}
		if err != nil {
			return nil, err
		}
		return object{}, nil
	case "rpcGet":
		return r.rpcGet(s)
	case "rpcMutate":
		return r.rpcMutate(s)
	case "rpcMulti":
		return r.rpcMulti(s)
	case "rpcScan":
		return r.rpcScan(s)
	case "rpcMaster":
		return r.rpcMaster(s)
	case "sleep", "advance":
		d := time.Duration(integer(s["ms"])) * time.Millisecond
		switch {
		case r.o.Clock != nil:
			r.o.Clock.Advance(d)
		case op == "advance":
			r.bad("the clock cannot be moved here")
		default:
			r.pause(d)
		}
		return object{"ok": true}, nil
	}
	return r.playAdmin(s)
}

// parseFilter reads the filter language; the tree must send what Java sends.
func (r *runner) parseFilter(s object) (any, error) {
	f, err := filter.Parse(text(s, "input"))
	if err != nil {
		return nil, err
	}
	want, _ := s["expect"].(object)
	if tree, ok := want["filter"].(object); ok {
		w, err := buildFilter(tree)
		if err != nil {
			return nil, err
		}
		if err := sameFilter(f, w); err != nil {
			return nil, err
		}
	}
	if w, ok := want["filterWire"].(object); ok {
		if err := checkFilterWire(f, w); err != nil {
			return nil, err
		}
	}
	return object{}, nil
}

func sameFilter(a, b filter.Filter) error {
	x, err := a.Marshal()
	if err != nil {
		return err
	}
	y, err := b.Marshal()
	if err != nil {
		return err
	}
	if a.Name() != b.Name() || string(x) != string(y) {
		return fmt.Errorf("%v sends %x, %v sends %x", a, x, b, y)
	}
	return nil
}

// checkFilters compares the filter of a client's step with the bytes that
// HBase's client sends, and with its text.
func (r *runner) checkFilters(s object) error {
	tree, ok := s["filter"].(object)
	if !ok {
		return nil
	}
	want, _ := s["expect"].(object)
	if w, ok := want["filterWire"].(object); ok {
		f, err := buildFilter(tree)
		if err != nil {
			return err
		}
		if err := checkFilterWire(f, w); err != nil {
			return err
		}
		if language, ok := s["filterString"].(string); ok {
			parsed, err := filter.Parse(language)
			if err != nil {
				return err
			}
			return sameFilter(parsed, f)
		}
	}
	return nil
}
