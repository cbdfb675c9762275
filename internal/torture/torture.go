package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// Region is one region of the table under test.
type Region struct {
	Encoded    string
	Start, End []byte
	// Server is the host:port that hbase:meta names; "" if none.
	Server string
}

// Faults is what the suite does to a cluster. Servers are named by host:port.
type Faults interface {
	// String names the cluster for people.
	String() string
	// Regions gives the table's regions in key order, parents of splits left
	// out.
	Regions(ctx context.Context, table string) ([]Region, error)
	// Servers gives the live region servers, MetaServer the one that holds
	// hbase:meta.
	Servers(ctx context.Context) ([]string, error)
	MetaServer(ctx context.Context) (string, error)
	// Move and Split return when the regions are open.
	Move(ctx context.Context, encoded, server string) error
	Split(ctx context.Context, encoded string, row []byte) error
	// Kill is kill -9, Restart a new start at the same port, Pause and Resume
	// are SIGSTOP and SIGCONT.
	Kill(ctx context.Context, server string) error
	Restart(ctx context.Context, server string) error
	Pause(ctx context.Context, server string) error
	Resume(ctx context.Context, server string) error
	// MetaReads counts the calls on hbase:meta the cluster has answered; false
	// if it does not count.
	MetaReads() (uint64, bool)
}

// Config of a run. Client and Cluster must be set.
type Config struct {
	Client  *hbase.Client
	Cluster Faults
	// Table is dropped first if it exists. Default "torture".
	Table string
	// Regions at the start, 1 to 256. Default 16.
	Regions int
	// Rows per region. Default 64; a quarter of them are counters.
	Rows int
	// Workers in all; half of them increment, a fifth scan, the others get.
	// Default 64.
	Workers int
	// Pace is the pause of a worker between two calls. Default 5 ms.
	Pace time.Duration
	// Budget is the time that one call is given. Default 60 s.
	Budget time.Duration
	// Dwell is how long the load runs after each event at least. Default 200 ms.
	Dwell time.Duration
	// Plan of events. Default DefaultPlan(20 s).
	Plan []Step
	// Seed of all choices. 0 takes one from the clock; the report tells it.
	Seed uint64
	// MayFail says that single calls may fail (chaos rules that give final
	// errors); then stored counters need only lie between what was
	// acknowledged and what was tried.
	MayFail bool
	// Logf, if set, is told about each event.
	Logf func(format string, args ...any)
}

type run struct {
	cfg   Config
	table *hbase.Table
	data  *data
	rec   *recorder
	began time.Time
	rand  *rand.Rand // of the one goroutine that plays the plan
	split map[int]bool
	// missing is the server that was started and has not been seen yet.
	missing string
}

// Run plays the plan under load and checks everything. The error is about the
// run itself: the table could not be made, an event could not be brought about.
// Whether the client held is in the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	defaultTo(&cfg.Table, "torture")
	defaultTo(&cfg.Regions, 16)
	defaultTo(&cfg.Rows, 64)
	defaultTo(&cfg.Workers, 64)
	defaultTo(&cfg.Pace, 5*time.Millisecond)
	defaultTo(&cfg.Budget, time.Minute)
	defaultTo(&cfg.Dwell, 200*time.Millisecond)
	if cfg.Plan == nil {
		cfg.Plan = DefaultPlan(20 * time.Second)
	}
	if cfg.Seed == 0 {
		cfg.Seed = uint64(time.Now().UnixNano())
	}
	if cfg.Logf == nil {
		cfg.Logf = func(string, ...any) {}
	}
	if cfg.Regions < 1 || cfg.Regions > 256 || cfg.Rows < 4 || cfg.Rows > 256 || cfg.Workers < 3 {
		return nil, fmt.Errorf("torture: %d regions (1 to 256), %d rows each (4 to 256), %d workers (from 3)", cfg.Regions, cfg.Rows, cfg.Workers)
	}
	table, err := cfg.Client.Table(cfg.Table)
	if err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, table: table, data: newData(cfg.Regions, cfg.Rows), split: map[int]bool{},
		rand: rand.New(rand.NewPCG(cfg.Seed, 0))}
	if err := r.load(ctx); err != nil {
		return nil, fmt.Errorf("torture: load: %w", err)
	}

	r.began = time.Now()
	r.rec = newRecorder(r.began, cfg.Workers, len(cfg.Plan))
	loadCtx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for w := range cfg.Workers {
		wg.Go(func() { r.work(loadCtx, w) })
	}
	err = r.play(ctx)
	stop()
	wg.Wait()
	rep := r.report()
	if err != nil {
		return rep, fmt.Errorf("torture: %w", err)
	}
	if err := r.verify(ctx, rep); err != nil {
		return rep, fmt.Errorf("torture: final scan: %w", err)
	}
	return rep, nil
}

func defaultTo[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

// load makes the table and its rows.
func (r *run) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*r.cfg.Budget)
	defer cancel()
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
	if err := adm.CreateTable(ctx, admin.NewTable(r.cfg.Table, admin.NewFamily(family)), r.data.splits...); err != nil {
		return err
	}
	ops := make([]hbase.Op, len(r.data.rows))
	for i := range r.data.rows {
		ops[i] = r.data.rows[i].put()
	}
	return r.table.Batch(ctx, ops).Err()
}

// verify reads the whole table and compares the counters.
func (r *run) verify(ctx context.Context, rep *Report) error {
	ctx, cancel := context.WithTimeout(ctx, 2*r.cfg.Budget)
	defer cancel()
	i := 0
	for res, err := range r.table.Scan(ctx, hbase.NewScan()).Rows() {
		if err != nil {
			return err
		}
		if i >= len(r.data.rows) {
			rep.Violations = append(rep.Violations, fmt.Sprintf("final scan: a row too many: %s", hbase.Quote(res.Row)))
			break
		}
		row := &r.data.rows[i]
		i++
		if !bytes.Equal(res.Row, row.key) {
			rep.Violations = append(rep.Violations, fmt.Sprintf("final scan: row %s where %s should be", hbase.Quote(res.Row), hbase.Quote(row.key)))
			break
		}
		if row.counter == nil {
			continue
		}
		n, ok := res.Int64(family, counterColumn)
		acked, started := row.counter.acked.Load(), row.counter.started.Load()
		rep.Acknowledged += acked
		rep.Started += started
		rep.Stored += n
		switch {
		case !ok:
			rep.Violations = append(rep.Violations, fmt.Sprintf("final scan: the counter of %s is gone", hbase.Quote(row.key)))
		case n < acked:
			rep.Violations = append(rep.Violations, fmt.Sprintf("counter %s: %d acknowledged, %d stored: lost %d", hbase.Quote(row.key), acked, n, acked-n))
		case n > started || n > acked && !r.cfg.MayFail:
			rep.Violations = append(rep.Violations, fmt.Sprintf("counter %s: %d acknowledged, %d started, %d stored: %d too many", hbase.Quote(row.key), acked, started, n, n-acked))
		}
	}
	if i < len(r.data.rows) {
		rep.Violations = append(rep.Violations, fmt.Sprintf("final scan: %d of %d rows", i, len(r.data.rows)))
	}
	return nil
}
