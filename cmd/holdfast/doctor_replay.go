package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/doctor/checks"
	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/minihbase"
	"github.com/holdfast-hbase/holdfast/zk"
)

// replayed is one incident rebuilt: what a Java client of its release does by
// its own arithmetic, and what this project's client did just now.
type replayed struct {
	Case  string `json:"case"`
	What  string `json:"what"`
	Java  string `json:"java"`
	Ours  string `json:"ours"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

func newDoctorReplay() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "rebuilds five incidents on the embedded cluster and shows that this client recovers",
		Long: `Starts an embedded cluster in memory and rebuilds five incidents of Java clients
with the settings they had. What the Java client does is computed from its
retry loop, release by release; what this client does is run and measured.

Exit codes: 0 this client recovered in all, 1 it did not.`,
		Example: "  holdfast doctor replay",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Minute)
			defer cancel()
			rows, err := replay(ctx)
			if err != nil {
				return err
			}
			if output == "json" {
				err = writeJSON(cmd.OutOrStdout(), rows)
			} else {
				printReplay(cmd.OutOrStdout(), rows)
			}
			if err != nil {
				return err
			}
			for _, r := range rows {
				if !r.OK {
					return &exitError{code: exitNo}
				}
			}
			return nil
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func printReplay(w io.Writer, rows []replayed) {
	for _, r := range rows {
		mark := "recovered"
		if !r.OK {
			mark = "FAILED"
		}
		fmt.Fprintf(w, "%s  %s\n  Java client  %s\n  this client  %s: %s\n", r.Case, r.What, r.Java, mark, r.Ours)
		if r.Error != "" {
			fmt.Fprintf(w, "  error        %s\n", r.Error)
		}
		fmt.Fprintln(w)
	}
}

// scene is the cluster all incidents play on.
type scene struct {
	m *minihbase.Cluster
}

func replay(ctx context.Context) ([]replayed, error) {
	m, err := minihbase.Start(ctx, minihbase.Options{InMemory: true, Servers: 3, ControlPort: -1, ZooKeeperTick: time.Second, SessionTimeout: 3 * time.Second})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	s := &scene{m}
	if err := m.CreateTable(ctx, "replay", []string{"f"}, []byte("m")); err != nil {
		return nil, err
	}
	var rows []replayed
	for _, f := range []func(context.Context, *replayed) error{s.neverPossible, s.staleGateway, s.convoy, s.tuned, s.session} {
		var r replayed
		if err := f(ctx, &r); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r.OK, r.Error = false, err.Error()
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (s *scene) open(ctx context.Context, opts ...hbase.Option) (*hbase.Client, *hbase.Table, error) {
	c, err := hbase.Open(ctx, s.m.Address(), opts...)
	if err != nil {
		return nil, nil, err
	}
	t, err := c.Table("replay")
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, t, nil
}

// move moves the region of a row to another server.
func (s *scene) move(ctx context.Context, row string) error {
	r, err := s.m.Locate("replay", []byte(row))
	if err != nil {
		return err
	}
	return s.m.MoveRegion(ctx, r.Encoded, (r.Index+1)%len(s.m.Servers()))
}

func timed(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}

// neverPossible: rpc timeout = operation timeout = 20 min on 0.98.24.
func (s *scene) neverPossible(ctx context.Context, r *replayed) error {
	r.Case, r.What = "S000", "rpc timeout equal to operation timeout (20 min); the region moves behind a warm client"
	set := retry.JavaSettings{Pause: 100 * time.Millisecond, Retries: 35, RPCTimeout: 20 * time.Minute, OperationTimeout: 20 * time.Minute}
	stale := func(n int, _ time.Duration) (time.Duration, bool) { return 8 * time.Millisecond, n > 1 }
	old := retry.SimulateJava(retry.Version{Minor: 98, Patch: 24}, retry.RegionCalls, set, stale)
	newer := retry.SimulateJava(retry.Version{Major: 1, Minor: 4, Patch: 8}, retry.RegionCalls, set, stale)
	r.Java = fmt.Sprintf("0.98.24 gives up after %d attempt and %v (callDuration=%d), at every call until it is restarted; 1.4.8 succeeds at attempt %d", old.Attempts, old.Total, old.Duration.Milliseconds(), newer.Attempts)
	c, t, err := s.open(ctx, hbase.WithRPCTimeout(20*time.Minute), hbase.WithOperationTimeout(20*time.Minute))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := t.Put(ctx, hbase.NewPut("a").Set("f", "q", []byte("v"))); err != nil {
		return err
	}
	if err := s.move(ctx, "a"); err != nil {
		return err
	}
	took, err := timed(func() error { _, err := t.Get(ctx, hbase.NewGet("a")); return err })
	r.Ours, r.OK = fmt.Sprintf("the first read after the move took %v", took.Round(10*time.Microsecond)), err == nil && took < 5*time.Second
	return err
}

// staleGateway: one warm client shared by everybody; 3 s of patience.
func (s *scene) staleGateway(ctx context.Context, r *replayed) error {
	r.Case, r.What = "S001", "regions move behind a warm gateway; callers wait 3 s"
	r.Java = "keeps the old route until a call fails on it: failed call + lookup (about 1 s with 300000 regions) + pause; two stale hops use 2 of 3 s"
	c, t, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := t.Put(ctx, hbase.NewPut("z").Set("f", "q", []byte("v"))); err != nil {
		return err
	}
	if err := s.move(ctx, "z"); err != nil {
		return err
	}
	call := func() error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := t.Get(ctx, hbase.NewGet("z"))
		return err
	}
	first, err := timed(call)
	second, err2 := timed(call)
	r.Ours, r.OK = fmt.Sprintf("first call after the move %v, second %v", first.Round(10*time.Microsecond), second.Round(10*time.Microsecond)), err == nil && err2 == nil && first < 3*time.Second && second < 500*time.Millisecond
	return errors.Join(err, err2)
}

// convoy: hbase:meta fails while many threads look up.
func (s *scene) convoy(ctx context.Context, r *replayed) error {
	const callers, outage = 50, 2 * time.Second
	r.Case, r.What = "S002", fmt.Sprintf("hbase:meta is not readable for %v while %d threads look a cold table up", outage, callers)
	hold := retry.JavaPauses(retry.Version{Minor: 98, Patch: 12}, retry.MetaLookups, 100*time.Millisecond, 31)
	r.Java = fmt.Sprintf("one lock for all lookups, held through pauses of up to %s by a holder that fails: the last of %d threads may wait %s", checks.Seconds(hold.Milliseconds()), callers, (hold * callers).Round(time.Minute))
	c, t, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	id, err := s.m.AddRule(minihbase.Rule{Match: minihbase.Match{Table: "hbase:meta"}, Action: minihbase.Fail, Exception: minihbase.Exception{Class: "RegionTooBusyException"}})
	if err != nil {
		return err
	}
	heal := time.AfterFunc(outage, func() { _ = s.m.RemoveRule(id) })
	defer heal.Stop()
	var (
		mu      sync.Mutex
		longest time.Duration
		errs    []error
		wg      sync.WaitGroup
	)
	for i := range callers {
		wg.Go(func() {
			took, err := timed(func() error { _, err := t.Get(ctx, hbase.NewGet(fmt.Sprintf("k%03d", i))); return err })
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, took)
			if err != nil && len(errs) < 3 {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	r.Ours, r.OK = fmt.Sprintf("all %d threads were answered, the last after %v: no thread waits for another's pause", callers, longest.Round(time.Millisecond)), len(errs) == 0 && longest < outage+10*time.Second
	return errors.Join(errs...)
}

// tuned: fewer, shorter retries against a server that is gone for a while.
func (s *scene) tuned(ctx context.Context, r *replayed) error {
	r.Case, r.What = "S003", "retry settings tuned down; a server is killed and its regions open elsewhere"
	v := retry.Version{Minor: 98, Patch: 24}
	before, after := retry.JavaPauses(v, retry.RegionCalls, 100*time.Millisecond, 32), retry.JavaPauses(v, retry.RegionCalls, 50*time.Millisecond, 21)
	r.Java = fmt.Sprintf("pause 100, retries 31: %s; pause 50, retries 21: %s, %.1f times less; whether that outlasts a failover is luck", checks.Seconds(before.Milliseconds()), checks.Seconds(after.Milliseconds()), float64(before)/float64(after))
	c, t, err := s.open(ctx, hbase.WithOperationTimeout(30*time.Second))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := t.Get(ctx, hbase.NewGet("a")); err != nil {
		return err
	}
	loc, err := s.m.Locate("replay", []byte("a"))
	if err != nil {
		return err
	}
	i := loc.Index
	if err := s.m.KillRegionServer(i); err != nil {
		return err
	}
	took, err := timed(func() error { _, err := t.Get(ctx, hbase.NewGet("a")); return err })
	r.Ours, r.OK = fmt.Sprintf("the deadline decides, not a count: the read over the crash took %v", took.Round(time.Millisecond)), err == nil
	return errors.Join(err, s.m.StartRegionServer(i))
}

// session: ZooKeeper goes silent for more than the read timeout.
func (s *scene) session(ctx context.Context, r *replayed) error {
	const timeout, dark = 6 * time.Second, 4 * time.Second
	r.Case, r.What = "S004", fmt.Sprintf("ZooKeeper refuses and drops connections for %v of a session of %v", dark, timeout)
	t90 := zk.StockTimers(90*time.Second, 5)
	r.Java = fmt.Sprintf("of a session of 90 s %v are spent before the client moves, then each unreachable server costs %v: %d whole attempt fits, the session was 17.8 s too late", t90.Read, t90.Connect, t90.Attempts)
	lost := make(chan zk.StateChange, 64)
	c, err := zk.Open(ctx, zk.Config{Servers: s.m.ZooKeepers(), SessionTimeout: timeout, OnState: func(ch zk.StateChange) {
		select {
		case lost <- ch:
		default:
		}
	}})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if _, _, err := c.Children(ctx, "/"); err != nil {
		return err
	}
	id := c.SessionID()
	server := s.m.ZooKeeperServer()
	server.Refuse()
	server.DropConnections()
	timer := time.NewTimer(dark)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := server.Resume(); err != nil {
		return err
	}
	took, err := timed(func() error { _, _, err := c.Children(ctx, "/"); return err })
	r.Ours, r.OK = fmt.Sprintf("session 0x%x is the same afterwards, back %v after the servers", uint64(c.SessionID()), took.Round(time.Millisecond)), err == nil && c.SessionID() == id
	return err
}
