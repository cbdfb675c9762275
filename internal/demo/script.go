package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// RegionAt is where a stretch of the table is.
type RegionAt struct {
	Start, End []byte
	Server     string // host:port; empty while in transition
}

// Counters are what the cluster saw of the client.
type Counters struct {
	RPCs      int64 // calls of ClientService answered
	MetaReads int64 // of those, reads of hbase:meta
}

// Cluster is what the demo does to the cluster under the load.
type Cluster interface {
	// String names the cluster for people.
	String() string
	// Regions tells where the table is now. It must not disturb Counters.
	Regions(ctx context.Context, table string) ([]RegionAt, error)
	// Servers lists the live servers.
	Servers(ctx context.Context) ([]string, error)
	// Move moves the region that starts at start to the server.
	Move(ctx context.Context, table string, start []byte, server string) error
	// Split splits the region that holds key there.
	Split(ctx context.Context, table string, key []byte) error
	// MoveToGroup makes an rsgroup of the server and moves the table into it;
	// HomeGroup undoes both.
	MoveToGroup(ctx context.Context, table, server string) error
	HomeGroup(ctx context.Context, table string) error
	// Kill ends a server as kill -9 does; Restart starts it again.
	Kill(ctx context.Context, server string) error
	Restart(ctx context.Context, server string) error
	// Counters reads the cluster's event log; ok is false if it has none.
	Counters() (c Counters, ok bool)
}

// Config of a run.
type Config struct {
	Client  *hbase.Client
	Cluster Cluster
	Table   string        // default "demo"; dropped first if it exists
	Regions int           // default 32
	Length  time.Duration // of the load; default 15 s
	Workers int           // of each kind; default 8
	// Timeout of one operation: the business timeout of the people this is
	// for. Default 3 s.
	Timeout time.Duration
	Logger  *slog.Logger
	// Progress, if set, is called about four times a second, and for each
	// event, from one goroutine at a time.
	Progress func(Progress)
}

// Progress is the state of a run for a live picture.
type Progress struct {
	Length  time.Duration
	View    view
	Regions []RegionAt
	Servers []string
	Stage   string // "creating the table", "load", "verifying"
}

type sample struct {
	At      time.Duration
	Regions []RegionAt
}

// Run is a finished demo.
type Run struct {
	Verdict Verdict

	started time.Time
	final   view
	samples []sample
}

// step is one line of the script: done at a share of the run's length.
type step struct {
	at   float64
	kind string
	do   func(ctx context.Context) (text string, err error)
}

type runner struct {
	cfg  Config
	rec  *recorder
	base Counters
	ops  int // operations done at the last reading of the counters

	mu       sync.Mutex
	samples  []sample
	killed   string
	progress sync.Mutex
}

// Start runs the demo. The error is about the demo itself (no table, no final
// scan); whether the cluster held is in Run.Verdict.
func Start(ctx context.Context, cfg Config) (*Run, error) {
	if cfg.Table == "" {
		cfg.Table = "demo"
	}
	defaultTo(&cfg.Regions, 32)
	defaultTo(&cfg.Workers, 8)
	defaultTo(&cfg.Length, 15*time.Second)
	defaultTo(&cfg.Timeout, 3*time.Second)
	if cfg.Progress == nil {
		cfg.Progress = func(Progress) {}
	}
	r := &runner{cfg: cfg}
	r.cfg.Progress(Progress{Stage: "creating the table", Length: cfg.Length})
	if err := r.createTable(ctx); err != nil {
		return nil, err
	}
	table, err := cfg.Client.Table(cfg.Table)
	if err != nil {
		return nil, err
	}

	started := time.Now()
	r.rec = newRecorder(started)
	l := &load{table: table, rec: r.rec, timeout: cfg.Timeout, writers: cfg.Workers, pause: pause}
	r.base, _ = cfg.Cluster.Counters()
	loadCtx, stop := context.WithTimeout(ctx, cfg.Length)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { r.watch(loadCtx) })
	wg.Go(func() { r.play(loadCtx) })
	l.run(loadCtx, cfg.Workers)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.account()
	r.rec.mu.Lock()
	r.rec.settle()
	r.rec.mu.Unlock()

	run := &Run{started: started, final: r.rec.view(time.Now()), samples: r.samples}
	v := &run.Verdict
	v.Cluster, v.Table = cfg.Cluster.String(), cfg.Table
	_, v.Counted = cfg.Cluster.Counters()
	v.fill(run.final)
	r.cfg.Progress(Progress{Stage: "verifying", Length: cfg.Length, View: run.final})
	if err := l.verify(ctx, v); err != nil {
		return run, err
	}
	v.judge()
	return run, nil
}

func defaultTo[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (r *runner) createTable(ctx context.Context) error {
	adm := r.cfg.Client.Admin()
	exists, err := adm.TableExists(ctx, r.cfg.Table)
	if err != nil {
		return err
	}
	if exists {
		if err := adm.DisableTable(ctx, r.cfg.Table); err != nil && !errors.Is(err, hbase.ErrTableNotEnabled) {
			return err
		}
		if err := adm.DeleteTable(ctx, r.cfg.Table); err != nil {
			return err
		}
	}
	splits := make([][]byte, 0, r.cfg.Regions-1)
	for i := 1; i < r.cfg.Regions; i++ {
		splits = append(splits, fmt.Appendf(nil, "%04x", i*0x10000/r.cfg.Regions))
	}
	return adm.CreateTable(ctx, admin.NewTable(r.cfg.Table, admin.NewFamily(family)), splits...)
}

// watch samples where the regions are and feeds the live picture.
func (r *runner) watch(ctx context.Context) {
	t := time.NewTicker(250 * time.Millisecond)
	defer t.Stop()
	for {
		r.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (r *runner) look(ctx context.Context) {
	r.progress.Lock()
	defer r.progress.Unlock()
	regions, err := r.cfg.Cluster.Regions(ctx, r.cfg.Table)
	now := time.Now()
	if err == nil {
		r.mu.Lock()
		r.samples = append(r.samples, sample{now.Sub(r.rec.start), regions})
		r.mu.Unlock()
	}
	servers, err := r.cfg.Cluster.Servers(ctx)
	if err != nil {
		servers = nil
	}
	r.cfg.Progress(Progress{Stage: "load", Length: r.cfg.Length, View: r.rec.view(now), Regions: regions, Servers: servers})
}

// play runs the script.
func (r *runner) play(ctx context.Context) {
	for _, s := range r.script() {
		pause(ctx, time.Until(r.rec.start.Add(time.Duration(s.at*float64(r.cfg.Length)))))
		if ctx.Err() != nil {
			return
		}
		r.account()
		begin := time.Now()
		r.rec.event(Event{At: begin.Sub(r.rec.start), Kind: s.kind, Text: s.kind})
		text, err := s.do(ctx)
		took := time.Since(begin)
		r.rec.amend(func(e *Event) {
			e.Took = took
			if text != "" {
				e.Text = text
			}
			switch {
			case errors.Is(err, ErrNotPossible):
				e.Text += " (skipped: " + err.Error() + ")"
			case err != nil && ctx.Err() == nil:
				e.Err = err.Error()
			}
		})
		r.look(ctx)
	}
}

// account books the RPCs since the last reading to the latest event: those
// beyond one an operation (scans take many by nature and are left out of the
// comparison by the cluster's counters) and the reads of hbase:meta.
func (r *runner) account() {
	now, ok := r.cfg.Cluster.Counters()
	if !ok {
		return
	}
	v := r.rec.view(time.Now())
	ops := v.Done[KindPut] + v.Done[KindIncrement] + v.Done[KindGet] + v.Failed
	r.rec.amend(func(e *Event) {
		e.Meta += now.MetaReads - r.base.MetaReads
		e.Calls += max(0, (now.RPCs-r.base.RPCs)-int64(ops-r.ops))
	})
	r.base, r.ops = now, ops
}

func (r *runner) script() []step {
	c, table := r.cfg.Cluster, r.cfg.Table
	return []step{
		{0.15, "move", func(ctx context.Context) (string, error) {
			from, to, start, err := r.pickMove(ctx)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("move the region at %q from %s to %s", start, from, to), c.Move(ctx, table, start, to)
		}},
		{0.30, "split", func(ctx context.Context) (string, error) {
			key := fmt.Appendf(nil, "%04x", 0x10000/r.cfg.Regions/2+0x8000)
			return fmt.Sprintf("split at %q", key), c.Split(ctx, table, key)
		}},
		{0.45, "group", func(ctx context.Context) (string, error) {
			servers, err := c.Servers(ctx)
			if err != nil || len(servers) < 2 {
				return "move the table to another rsgroup", errors.Join(err, errFew(servers))
			}
			target := servers[len(servers)-1]
			return "move the whole table to an rsgroup of " + target, c.MoveToGroup(ctx, table, target)
		}},
		{0.58, "group", func(ctx context.Context) (string, error) {
			return "move the table back to the default rsgroup", c.HomeGroup(ctx, table)
		}},
		{0.70, "kill", func(ctx context.Context) (string, error) {
			servers, err := c.Servers(ctx)
			if err != nil || len(servers) < 2 {
				return "kill a server", errors.Join(err, errFew(servers))
			}
			r.killed = servers[0]
			return "kill -9 of " + r.killed, c.Kill(ctx, r.killed)
		}},
		{0.85, "start", func(ctx context.Context) (string, error) {
			return "start " + r.killed + " again", c.Restart(ctx, r.killed)
		}},
	}
}

func errFew(servers []string) error {
	if len(servers) < 2 {
		return fmt.Errorf("needs two live servers, found %d", len(servers))
	}
	return nil
}

func (r *runner) pickMove(ctx context.Context) (from, to string, start []byte, err error) {
	regions, err := r.cfg.Cluster.Regions(ctx, r.cfg.Table)
	if err != nil {
		return "", "", nil, err
	}
	servers, err := r.cfg.Cluster.Servers(ctx)
	if err != nil {
		return "", "", nil, err
	}
	for _, region := range regions[len(regions)/3:] {
		for _, s := range servers {
			if region.Server != "" && s != region.Server {
				return region.Server, s, region.Start, nil
			}
		}
	}
	return "", "", nil, errFew(servers)
}
