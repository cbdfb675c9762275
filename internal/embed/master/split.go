package master

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// splitRegion answers SplitRegion.
func (m *Master) splitRegion(ctx context.Context, q *pb.SplitTableRegionRequest) (uint64, error) {
	info := meta.RegionFromProto(q.GetRegionInfo())
	var row []byte
	if q.SplitRow != nil {
		row = bytes.Clone(q.GetSplitRow())
	}
	return m.split(ctx, info.EncodedName(), row, q.GetNonceGroup(), q.GetNonce())
}

// Split splits a region at a row, or in its middle if row is empty, and waits
// until that is done.
func (m *Master) Split(ctx context.Context, encoded string, row []byte) error {
	id, err := m.split(ctx, encoded, row, 0, 0)
	if err != nil {
		return err
	}
	return m.await(ctx, id)
}

func (m *Master) split(ctx context.Context, encoded string, row []byte, group, nonce uint64) (uint64, error) {
	r := m.state().Region(encoded)
	if r == nil {
		return 0, refuse(wire.ClassUnknownRegion, "No RegionState found for %s", encoded)
	}
	return m.submit(ctx, "SplitTableRegionProcedure", group, nonce, func(ctx context.Context, prepared func()) error {
		return m.locked(ctx, r.Info.Table, func(s *catalog.State, t *catalog.Table) error {
			r := s.Region(encoded)
			if r == nil {
				return refuse(wire.ClassUnknownRegion, "No RegionState found for %s", encoded)
			}
			at, err := m.checkSplit(ctx, s, t, r, row)
			if err != nil {
				return err
			}
			prepared()
			return m.doSplit(ctx, t, r, at)
		})
	})
}

const noSplitPolicy = "DisabledRegionSplitPolicy"

// checkSplit refuses splits as HBase does and finds the row to split at.
func (m *Master) checkSplit(ctx context.Context, s *catalog.State, t *catalog.Table, r *catalog.Region, row []byte) ([]byte, error) {
	if t.State != pb.TableState_ENABLED {
		return nil, tableNotEnabled(t.Name)
	}
	if err := systemVirtual(t, "splitting"); err != nil {
		return nil, err
	}
	if r.State != pb.RegionState_OPEN {
		return nil, refuse(wire.ClassDoNotRetryRegion, "%s is not OPEN; state=%s", r.Encoded, r.State)
	}
	if len(row) == 0 {
		if err := m.storeRows(ctx, t, r); err != nil {
			return nil, err
		}
		h, err := m.cfg.Tables.Handle(t)
		if err != nil {
			return nil, err
		}
		if row, err = h.MidRow(r.Info.Start, r.Info.End); err != nil {
			return nil, err
		}
		if len(row) == 0 {
			return nil, refuse(wire.ClassDoNotRetryIO, "Region not splittable because bestSplitPoint = null, maybe table is too small for auto split. For force split, try specifying split row")
		}
	}
	if bytes.Equal(row, r.Info.Start) {
		return nil, refuse(wire.ClassDoNotRetryIO, "Split row is equal to startkey: %s", cells.Quote(row))
	}
	if !r.Info.Contains(row) {
		return nil, refuse(wire.ClassDoNotRetryIO, "Split row is not inside region key range splitKey:%s region: {ENCODED => %s, NAME => '%s'}", cells.Quote(row), r.Encoded, cells.Quote(r.Name))
	}
	if len(row) > cells.MaxRowLength {
		return nil, refuse(wire.ClassDoNotRetryIO, "Split row of %d bytes is longer than a row may be", len(row))
	}
	if s.Setting(settingSplitOff) != "" {
		return nil, retriable(wire.ClassIOException, "Split region %s failed due to split switch off", cells.Quote(r.Name))
	}
	if v, ok := t.Attribute("SPLIT_ENABLED"); ok && strings.EqualFold(v, "false") {
		return nil, refuse(wire.ClassDoNotRetryIO, "Split region %s failed as region split is disabled for the table", cells.Quote(r.Name))
	}
	if v, ok := t.Attribute("SPLIT_POLICY"); ok && strings.HasSuffix(v, noSplitPolicy) {
		return nil, refuse(wire.ClassDoNotRetryIO, "Region %s is not splittable: its table's split policy is %s", cells.Quote(r.Name), noSplitPolicy)
	}
	return row, nil
}

// doSplit replaces a region by two on the same server. The caller holds the
// table's lock exclusively.
func (m *Master) doSplit(ctx context.Context, t *catalog.Table, r *catalog.Region, at []byte) error {
	id, err := m.childID(r)
	if err != nil {
		return err
	}
	if err := m.storeRows(ctx, t, r); err != nil {
		return err
	}
	now := m.cfg.Now().UnixMilli()
	a := catalog.NewRegion(meta.Region{Table: t.Name, ID: id, Start: r.Info.Start, End: at}, now)
	b := catalog.NewRegion(meta.Region{Table: t.Name, ID: id, Start: at, End: r.Info.End}, now)
	parent := func(tx *catalog.Tx) {
		p := *r
		p.Info.Split, p.Info.Offline, p.State = true, true, pb.RegionState_SPLIT
		p.SplitA, p.SplitB, p.Replicas = &a.Info, &b.Info, nil
		p.InfoTime, p.StateTime = tx.Now(), tx.Now()
		tx.PutRegion(&p)
	}
	src := m.find(r.Server)
	gap := m.cfg.Controls.transitionGap()
	if gap > 0 {
		if err := m.change(r.Encoded, func(r *catalog.Region) { r.State = pb.RegionState_SPLITTING }); err != nil {
			return err
		}
		m.closeReplicas(ctx, r)
		m.closeOn(ctx, src, r.Encoded, nil)
		err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			parent(tx)
			for _, d := range []*catalog.Region{a, b} {
				c := *d
				c.State, c.OpenSeq = pb.RegionState_CLOSED, 1
				tx.PutRegion(&c)
			}
			return nil
		})
		if err != nil {
			return err
		}
		// From here on the split has happened; if the master ends now, the
		// daughters are opened when the next one starts.
		if err := wait(ctx, gap); err != nil {
			return err
		}
	}
	ps, err := m.onServer(ctx, t, src, a, b)
	if err != nil {
		return err
	}
	if err := m.open(ctx, t, ps, func(tx *catalog.Tx, ps []placement) error {
		parent(tx)
		return publishOpen(tx, ps)
	}); err != nil {
		return err
	}
	if gap == 0 {
		m.closeReplicas(ctx, r)
		m.closeOn(ctx, src, r.Encoded, nil)
	}
	m.event(eventlog.Event{Method: "split", Server: r.Server.Address(), Table: t.Name.String(), Region: r.Encoded, Row: at, Rows: 1, Detail: a.Encoded + " " + b.Encoded})
	return nil
}

// onServer places regions on the server given, or elsewhere if it is dead.
func (m *Master) onServer(ctx context.Context, t *catalog.Table, rs host.RegionServer, regions ...*catalog.Region) ([]placement, error) {
	if rs == nil || !rs.Alive() {
		return m.place(ctx, t, regions)
	}
	var ps []placement
	for _, r := range regions {
		ps = append(ps, placement{region: r, server: rs, seq: m.nextSeq()})
	}
	return ps, nil
}

// childID gives a region id larger than the parents'.
func (m *Master) childID(parents ...*catalog.Region) (id uint64, err error) {
	err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		id = tx.NextRegionID()
		for _, p := range parents {
			if id <= p.Info.ID {
				return errors.New("region ids do not grow")
			}
		}
		return nil
	})
	return id, err
}

// mergeRegions answers MergeTableRegions.
func (m *Master) mergeRegions(ctx context.Context, q *pb.MergeTableRegionsRequest) (uint64, error) {
	var names []string
	for _, s := range q.GetRegion() {
		r, err := m.regionOf(s)
		if err != nil {
			return 0, err
		}
		names = append(names, r.Encoded)
	}
	return m.merge(ctx, names, q.GetForcible(), q.GetNonceGroup(), q.GetNonce())
}

// Merge merges neighbouring regions, named in key order, into one and waits
// until that is done.
func (m *Master) Merge(ctx context.Context, encoded []string) error {
	id, err := m.merge(ctx, encoded, false, 0, 0)
	if err != nil {
		return err
	}
	return m.await(ctx, id)
}

func (m *Master) merge(ctx context.Context, names []string, force bool, group, nonce uint64) (uint64, error) {
	bad := func(format string, a ...any) error { return refuse(wire.ClassMergeRegion, format, a...) }
	unique := slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) < 2 {
		return 0, bad("At least two regions are needed to merge, got %d", len(names))
	}
	if len(unique) != len(names) {
		return 0, bad("Duplicate regions specified; cannot merge a region to itself. Passed in %d but only %d unique.", len(names), len(unique))
	}
	first := m.state().Region(names[0])
	if first == nil {
		return 0, unknownRegion(names[0])
	}
	return m.submit(ctx, "MergeTableRegionsProcedure", group, nonce, func(ctx context.Context, prepared func()) error {
		return m.locked(ctx, first.Info.Table, func(s *catalog.State, t *catalog.Table) error {
			var rs []*catalog.Region
			for _, n := range names {
				r := s.Region(n)
				if r == nil {
					return unknownRegion(n)
				}
				rs = append(rs, r)
			}
			if err := m.checkMerge(s, t, rs, force); err != nil {
				return err
			}
			prepared()
			return m.doMerge(ctx, t, rs)
		})
	})
}

func (m *Master) checkMerge(s *catalog.State, t *catalog.Table, rs []*catalog.Region, force bool) error {
	bad := func(format string, a ...any) error { return refuse(wire.ClassMergeRegion, format, a...) }
	if err := systemVirtual(t, "merging regions"); err != nil {
		return err
	}
	for _, r := range rs {
		if r.Info.Table != t.Name {
			return bad("Can't merge regions from two different tables: %s, %s", t.Name, r.Info.Table)
		}
	}
	if force {
		// Forced merges may name the regions in any order. They still have to
		// be neighbours: in HBase one that leaves a gap swallows what lies in
		// it.
		slices.SortFunc(rs, func(a, b *catalog.Region) int { return bytes.Compare(a.Info.Start, b.Info.Start) })
	}
	for i := range rs[1:] {
		if a, b := rs[i], rs[i+1]; len(a.Info.End) == 0 || !bytes.Equal(a.Info.End, b.Info.Start) {
			return bad("Unable to merge non-adjacent or non-overlapping regions '%s', '%s' when force=false", a.Encoded, b.Encoded)
		}
	}
	for _, r := range rs {
		if r.State != pb.RegionState_OPEN {
			return bad("%s: %s is not OPEN; state=%s", wire.ClassDoNotRetryRegion, r.Encoded, r.State)
		}
	}
	if s.Setting(settingMergeOff) != "" {
		return bad("Merge of regions failed because merge switch is off: %s", cells.Quote(rs[0].Name))
	}
	if v, ok := t.Attribute("MERGE_ENABLED"); ok && strings.EqualFold(v, "false") {
		return bad("Merge of regions failed because region merge is disabled for the table: %s", t.Name)
	}
	return nil
}

// doMerge replaces regions by one that covers them all, on the first one's
// server. The caller holds the table's lock exclusively.
func (m *Master) doMerge(ctx context.Context, t *catalog.Table, rs []*catalog.Region) error {
	id, err := m.childID(rs...)
	if err != nil {
		return err
	}
	for _, r := range rs {
		if err := m.storeRows(ctx, t, r); err != nil {
			return err
		}
	}
	now := m.cfg.Now().UnixMilli()
	merged := catalog.NewRegion(meta.Region{Table: t.Name, ID: id, Start: rs[0].Info.Start, End: rs[len(rs)-1].Info.End}, now)
	for _, r := range rs {
		merged.Merged = append(merged.Merged, r.Info)
	}
	swap := func(tx *catalog.Tx) {
		for _, r := range rs {
			tx.DeleteRegion(r)
		}
		// Split parents of what is merged would lie over the new region as
		// soon as it is split itself.
		for _, p := range slices.Collect(tx.Ordinary(t.Name)) {
			if p.Parent() && overlap(&p.Info, &merged.Info) {
				tx.DeleteRegion(p)
			}
		}
	}
	closeAll := func() {
		for _, r := range rs {
			m.closeReplicas(ctx, r)
			m.closeOn(ctx, m.find(r.Server), r.Encoded, nil)
		}
	}
	gap := m.cfg.Controls.transitionGap()
	if gap > 0 {
		for _, r := range rs {
			if err := m.change(r.Encoded, func(r *catalog.Region) { r.State = pb.RegionState_MERGING }); err != nil {
				return err
			}
		}
		closeAll()
		err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			swap(tx)
			c := *merged
			c.State, c.OpenSeq = pb.RegionState_CLOSED, 1
			tx.PutRegion(&c)
			return nil
		})
		if err != nil {
			return err
		}
		if err := wait(ctx, gap); err != nil {
			return err
		}
	}
	ps, err := m.onServer(ctx, t, m.find(rs[0].Server), merged)
	if err != nil {
		return err
	}
	if err := m.open(ctx, t, ps, func(tx *catalog.Tx, ps []placement) error {
		if gap == 0 {
			swap(tx)
		}
		return publishOpen(tx, ps)
	}); err != nil {
		return err
	}
	if gap == 0 {
		closeAll()
	}
	m.event(eventlog.Event{Method: "merge", Server: rs[0].Server.Address(), Table: t.Name.String(), Region: merged.Encoded, Rows: len(rs)})
	return nil
}

func overlap(a, b *meta.Region) bool {
	return (len(b.End) == 0 || bytes.Compare(a.Start, b.End) < 0) && (len(a.End) == 0 || bytes.Compare(b.Start, a.End) < 0)
}

// clean removes split parents and merge marks that are no longer needed: here
// nothing refers to them once the children are open. It answers how many
// entries it changed.
func (m *Master) clean() (n int, err error) {
	done := func(tx *catalog.Tx, i *meta.Region) bool {
		if i == nil {
			return true
		}
		c := tx.RegionNamed(i.Name())
		return c == nil || c.State == pb.RegionState_OPEN || c.Parent()
	}
	var work []*catalog.Region
	for r := range m.state().Select(meta.TableName{}, func(r *catalog.Region) bool {
		return r.Parent() || len(r.Merged) > 0 && r.State == pb.RegionState_OPEN
	}) {
		work = append(work, r)
	}
	if len(work) == 0 {
		return 0, nil
	}
	err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		for _, w := range work {
			r := tx.Region(w.Encoded)
			if r == nil || r != w {
				continue
			}
			if r.Parent() {
				if done(tx, r.SplitA) && done(tx, r.SplitB) {
					tx.DeleteRegion(r)
					n++
				}
				continue
			}
			c := *r
			c.Merged, c.InfoTime = nil, tx.Now()
			tx.PutRegion(&c)
			n++
		}
		return nil
	})
	return n, err
}

// janitor cleans now and then, while it is enabled.
func (m *Master) janitor(ctx context.Context) {
	t := time.NewTicker(m.cfg.JanitorPeriod)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if m.state().Setting(settingJanitorOff) == "" {
				if _, err := m.clean(); err != nil {
					m.log.Warn("catalog janitor", "err", err)
				}
			}
		}
	}
}
