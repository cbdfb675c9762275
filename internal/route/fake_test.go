package route

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

var tbl = meta.TableName{Namespace: "default", Qualifier: "t"}

// fakeMeta is hbase:meta: rows in HBase's order, and counted reads.
type fakeMeta struct {
	mu   sync.Mutex
	rows []metaRow

	delay   atomic.Int64
	scans   atomic.Int64
	gets    atomic.Int64
	scanned atomic.Int64 // rows given by scans
	got     atomic.Int64 // rows asked for by gets
	most    atomic.Int64 // reads at one time
	now     atomic.Int64
	// before, if set, runs at the start of each read; an error is its answer.
	before func(scan *MetaScan, rows [][]byte) error
	// after may change a scan's answer.
	after    func(scan MetaScan, locs []meta.Location) []meta.Location
	disabled map[meta.TableName]bool
	locator  func() (meta.ServerName, error)
	located  atomic.Int64
	dead     sync.Map // server names that do not answer probes

	skew    atomic.Int64 // of the clock that stamps the cells, ms
	changes atomic.Int64 // scans of changes
	// early, if set, ends a scan of changes after so many rows looked at, as a
	// region server does whose time is up.
	early atomic.Int64
}

type metaRow struct {
	name []byte
	loc  meta.Location
	ts   int64
}

func (f *fakeMeta) stamp() int64 { return time.Now().UnixMilli() + f.skew.Load() }

// ScanChanges gives the rows written since, as the cells of a put of the
// master: a region that is not open is not said where it was.
func (f *fakeMeta) ScanChanges(ctx context.Context, scan ChangeScan) (Changes, error) {
	f.changes.Add(1)
	var ch Changes
	if err := f.enter(ctx, &MetaScan{StartRow: scan.StartRow, StopRow: scan.StopRow, Limit: scan.Limit}, nil); err != nil {
		return ch, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i, _ := slices.BinarySearchFunc(f.rows, scan.StartRow, func(r metaRow, n []byte) int { return meta.CompareRows(r.name, n) })
	looked := int64(0)
	for ; i < len(f.rows) && meta.CompareRows(f.rows[i].name, scan.StopRow) < 0; i++ {
		r := &f.rows[i]
		if e := f.early.Load(); ch.Rows == scan.Limit || e > 0 && looked == e {
			ch.Next = r.name
			return ch, nil
		}
		looked++
		if r.ts < scan.Since {
			continue
		}
		ch.Rows++
		ch.Bytes += rowBytes(r)
		ch.Newest = max(ch.Newest, r.ts)
		table, _, _ := bytes.Cut(r.name, []byte(","))
		if scan.Wanted != nil && !scan.Wanted(table) {
			continue
		}
		l := r.loc
		if l.State != "" && l.State != "OPEN" {
			l.Server, l.SeqNum = meta.ServerName{}, meta.NoSeqNum
		}
		ch.Locations = append(ch.Locations, Change{Location: l})
	}
	return ch, nil
}

// rowBytes is what a row's six cells take in a cell block.
func rowBytes(r *metaRow) int {
	cell := func(qualifier string, value int) int {
		return 4 + 8 + 2 + len(r.name) + 1 + len("info") + len(qualifier) + 8 + 1 + value
	}
	address := len(r.loc.Server.Address())
	return cell("regioninfo", 4+30+len(r.loc.Region.Table.String())+len(r.loc.Region.Start)+len(r.loc.Region.End)) +
		cell("server", address) + cell("serverstartcode", 8) + cell("seqnumDuringOpen", 8) +
		cell("state", len(r.loc.State)) + cell("sn", address+14)
}

func (f *fakeMeta) put(locs ...meta.Location) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range locs {
		name := l.Region.Name()
		i, found := slices.BinarySearchFunc(f.rows, name, func(r metaRow, n []byte) int { return meta.CompareRows(r.name, n) })
		if found {
			f.rows[i].loc, f.rows[i].ts = l, f.stamp()
		} else {
			f.rows = slices.Insert(f.rows, i, metaRow{name, l, f.stamp()})
		}
	}
}

func (f *fakeMeta) setDelay(d time.Duration) { f.delay.Store(int64(d)) }

func (f *fakeMeta) delete(regions ...meta.Region) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range regions {
		name := r.Name()
		f.rows = slices.DeleteFunc(f.rows, func(r metaRow) bool { return string(r.name) == string(name) })
	}
}

// change rewrites the locations for which pick says yes.
func (f *fakeMeta) change(pick func(*meta.Location) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.rows {
		was := f.rows[i].loc
		if pick(&f.rows[i].loc); !reflect.DeepEqual(was, f.rows[i].loc) {
			f.rows[i].ts = f.stamp()
		}
	}
}

func (f *fakeMeta) enter(ctx context.Context, scan *MetaScan, rows [][]byte) error {
	n := f.now.Add(1)
	defer f.now.Add(-1)
	for m := f.most.Load(); n > m && !f.most.CompareAndSwap(m, n); m = f.most.Load() {
	}
	if f.before != nil {
		if err := f.before(scan, rows); err != nil {
			return err
		}
	}
	if d := time.Duration(f.delay.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

func (f *fakeMeta) ScanMeta(ctx context.Context, scan MetaScan) ([]meta.Location, error) {
	f.scans.Add(1)
	if err := f.enter(ctx, &scan, nil); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	cmp := func(r metaRow, n []byte) int { return meta.CompareRows(r.name, n) }
	var locs []meta.Location
	if scan.Reversed {
		i, found := slices.BinarySearchFunc(f.rows, scan.StartRow, cmp)
		if !found {
			i--
		}
		for ; i >= 0 && len(locs) < scan.Limit; i-- {
			if meta.CompareRows(f.rows[i].name, scan.StopRow) < 0 {
				break
			}
			locs = append(locs, f.rows[i].loc)
		}
	} else {
		i, _ := slices.BinarySearchFunc(f.rows, scan.StartRow, cmp)
		for ; i < len(f.rows) && len(locs) < scan.Limit; i++ {
			if meta.CompareRows(f.rows[i].name, scan.StopRow) >= 0 {
				break
			}
			locs = append(locs, f.rows[i].loc)
		}
	}
	f.scanned.Add(int64(len(locs)))
	if f.after != nil {
		locs = f.after(scan, locs)
	}
	return locs, nil
}

func (f *fakeMeta) GetMeta(ctx context.Context, rows [][]byte) ([]*meta.Location, error) {
	f.gets.Add(1)
	f.got.Add(int64(len(rows)))
	if err := f.enter(ctx, nil, rows); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	locs := make([]*meta.Location, len(rows))
	for i, name := range rows {
		j, found := slices.BinarySearchFunc(f.rows, name, func(r metaRow, n []byte) int { return meta.CompareRows(r.name, n) })
		if found {
			l := f.rows[j].loc
			locs[i] = &l
		}
	}
	return locs, nil
}

func (f *fakeMeta) TableDisabled(_ context.Context, table meta.TableName) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disabled[table], nil
}

func (f *fakeMeta) reads() int64 { return f.scans.Load() + f.gets.Load() }

func (f *fakeMeta) locate(context.Context) (meta.ServerName, error) {
	f.located.Add(1)
	if f.locator != nil {
		return f.locator()
	}
	return server(0), nil
}

func server(n int) meta.ServerName {
	return meta.ServerName{Host: fmt.Sprintf("rs%d", n), Port: 16020, StartCode: 1700000000000 + uint64(n)}
}

func key(i int) []byte {
	if i == 0 {
		return nil
	}
	return fmt.Appendf(nil, "user-%08d-abcdef", i)
}

// regionOf is region i of n of a table.
func regionOf(t meta.TableName, i, n int) meta.Region {
	r := meta.Region{Table: t, ID: 1700000000000, Start: key(i)}
	if i+1 < n {
		r.End = key(i + 1)
	}
	return r
}

// fill gives the table n regions on the given number of servers.
func (f *fakeMeta) fill(t meta.TableName, n, servers int) {
	locs := make([]metaRow, n)
	for i := range n {
		r := regionOf(t, i, n)
		locs[i] = metaRow{r.Name(), meta.Location{Region: r, Server: server(1 + i%servers), SeqNum: 10, State: "OPEN"}, f.stamp()}
	}
	f.mu.Lock()
	f.rows = append(f.rows, locs...)
	slices.SortFunc(f.rows, func(a, b metaRow) int { return meta.CompareRows(a.name, b.name) })
	f.mu.Unlock()
}

// newCache makes a cache over a fake meta and closes it with the test.
func newCache(t testing.TB, cfg Config) (*Cache, *fakeMeta) {
	f := &fakeMeta{disabled: map[meta.TableName]bool{}}
	cfg.Source, cfg.Locator = f, f.locate
	var c *Cache
	if cfg.Servers == nil {
		cfg.Servers = health.New(health.Config{
			ProbeMin: time.Millisecond,
			Probe: func(_ context.Context, s *health.Server) error {
				if _, dead := f.dead.Load(s.Name()); dead {
					return errDown
				}
				return nil
			},
			Changed: func(s *health.Server, from, to health.State, _ error) {
				switch {
				case to == health.Down || to == health.Dead:
					c.ServerDown(s)
				case to == health.Healthy && from != health.Suspect:
					c.ServerUp(s)
				}
			},
		})
		t.Cleanup(cfg.Servers.Close)
	}
	c = New(cfg)
	t.Cleanup(c.Close)
	return c, f
}

// kill makes a server refuse, for as long as revive is not called.
func (f *fakeMeta) kill(c *Cache, name meta.ServerName) {
	f.dead.Store(name, true)
	c.cfg.Servers.Get(name).Refused(errDown)
}

func (f *fakeMeta) revive(name meta.ServerName) { f.dead.Delete(name) }

var errDown = &wire.RemoteError{Class: wire.ClassIOException, Message: "meta is ill"}

func locateError(t *testing.T, err error) *LocateError {
	t.Helper()
	e, ok := errors.AsType[*LocateError](err)
	if !ok {
		t.Fatalf("%v is not a *LocateError", err)
	}
	return e
}
