package master

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// space reckons with space quotas. In HBase region servers report sizes, the
// master compares them and writes what it finds into hbase:quota, and region
// servers read it there, each once a minute or less often; here it is one round
// for all.
type space struct {
	wake chan struct{} // size one: a quota has changed

	mu    sync.Mutex // one round at a time; taken before a table's lock
	sizes map[uint32]tableSize
}

// tableSize is a table's size and the read point at which it was counted. Data
// that goes without a write (a compaction, dropped rows) is noticed with the next
// one, or after a minute.
type tableSize struct {
	bytes uint64
	at    uint64
	when  time.Time
}

// staleSize is how long a size counts if nothing was written.
const staleSize = time.Minute

// restFactor keeps counting from taking more than a twentieth of a processor.
const restFactor = 20

// spaceChore keeps the tables' use of their quotas, and what follows from it.
func (m *Master) spaceChore(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.space.wake:
		case <-t.C:
		}
		begin := time.Now()
		if err := m.ReckonSpace(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("space quotas", "err", err)
		}
		t.Reset(max(m.cfg.SpacePeriod, restFactor*time.Since(begin)))
	}
}

// wakeSpace has the chore look at once.
func (m *Master) wakeSpace() {
	select {
	case m.space.wake <- struct{}{}:
	default: // it will
	}
}

// ReckonSpace counts what the tables under space quotas use, writes it to
// hbase:quota, where the region servers enforce it, and disables or enables
// tables whose policy is DISABLE. When it returns, calls that come later meet
// what it found.
func (m *Master) ReckonSpace(ctx context.Context) error {
	if !m.cfg.Quotas {
		return nil
	}
	m.space.mu.Lock()
	defer m.space.mu.Unlock()
	s := m.state()
	want, err := m.spaceUse(ctx, s)
	if err != nil {
		return err
	}
	changed := map[meta.TableName]*pb.SpaceQuotaSnapshot{}
	had := map[meta.TableName]*pb.SpaceQuotaSnapshot{}
	for table, u := range s.SpaceUsages() {
		if had[table] = u; want[table] == nil {
			changed[table] = nil
		}
	}
	for table, u := range want {
		if !proto.Equal(u, had[table]) {
			changed[table] = u
		}
	}
	if len(changed) > 0 {
		if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			for table, u := range changed {
				if tx.Table(table) == nil {
					u = nil // deleted meanwhile
				}
				if err := tx.SetSpaceUsage(table, u); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	var errs []error
	for table := range changed {
		if disables(had[table]) && !disables(want[table]) {
			errs = append(errs, m.setEnabled(ctx, table, true))
		}
	}
	for table, u := range want {
		if t := s.Table(table); disables(u) && t.State == pb.TableState_ENABLED {
			errs = append(errs, m.setEnabled(ctx, table, false))
		}
	}
	return errors.Join(errs...)
}

func disables(u *pb.SpaceQuotaSnapshot) bool {
	return u.GetQuotaStatus().GetInViolation() && u.GetQuotaStatus().GetViolationPolicy() == pb.SpaceViolationPolicy_DISABLE
}

// setEnabled enables or disables a table. One that is so already, or is gone, is
// no error.
func (m *Master) setEnabled(ctx context.Context, name meta.TableName, on bool) error {
	var id uint64
	var err error
	if on {
		id, err = m.enableTable(ctx, &pb.EnableTableRequest{TableName: name.ToProto()})
	} else {
		id, err = m.disableTable(ctx, &pb.DisableTableRequest{TableName: name.ToProto()})
	}
	if err == nil {
		err = m.await(ctx, id)
	}
	if err == nil {
		return nil
	}
	if x := asException(err); slices.Contains([]string{wire.ClassTableNotEnabled, wire.ClassTableNotDisabled, wire.ClassTableNotFound}, x.Class) {
		return nil
	}
	return err
}

// spaceUse reckons the tables that have a space quota, or whose namespace has
// one. A table that violates its own has its policy; else one whose namespace
// is violated has that, with the namespace's figures.
func (m *Master) spaceUse(ctx context.Context, s *catalog.State) (map[meta.TableName]*pb.SpaceQuotaSnapshot, error) {
	own, shared := s.SpaceQuotas()
	if len(own)+len(shared) == 0 {
		return nil, nil
	}
	out := map[meta.TableName]*pb.SpaceQuotaSnapshot{}
	used := map[string]uint64{}
	for t := range s.Tables() {
		n := shared[t.Name.Namespace]
		if own[t.Name] == nil && n == nil {
			continue
		}
		size, err := m.sizeOf(ctx, t)
		if err != nil {
			return nil, err
		}
		used[t.Name.Namespace] += size
		if q := own[t.Name]; q != nil {
			out[t.Name] = spaceSnapshot(q, size)
		} else {
			out[t.Name] = nil
		}
	}
	for name, u := range out {
		if n := shared[name.Namespace]; n != nil && !u.GetQuotaStatus().GetInViolation() {
			if all := spaceSnapshot(n, used[name.Namespace]); u == nil || all.GetQuotaStatus().GetInViolation() {
				out[name] = all
			}
		}
	}
	return out, nil
}

func spaceSnapshot(q *pb.SpaceQuota, used uint64) *pb.SpaceQuotaSnapshot {
	st := &pb.SpaceQuotaStatus{InViolation: new(used > q.GetSoftLimit())}
	if st.GetInViolation() {
		st.ViolationPolicy = q.ViolationPolicy
	}
	return &pb.SpaceQuotaSnapshot{QuotaStatus: st, QuotaUsage: new(used), QuotaLimit: q.SoftLimit}
}

// sizeOf gives a table's size, counted anew if something was written since. What
// is rendered or generated takes no space. Called with space.mu held.
func (m *Master) sizeOf(ctx context.Context, t *catalog.Table) (uint64, error) {
	if t.Virtual() {
		return 0, nil
	}
	at := m.cfg.Store.ReadPoint()
	if old, ok := m.space.sizes[t.ID]; ok && old.at == at && time.Since(old.when) < staleSize {
		return old.bytes, nil
	}
	h, err := m.cfg.Tables.Handle(t)
	if err != nil {
		return 0, err
	}
	n, err := h.DataBytes(ctx, nil, nil)
	if err != nil {
		return 0, err
	}
	if len(m.space.sizes) > 10_000 {
		clear(m.space.sizes) // of tables that are gone, most likely
	}
	m.space.sizes[t.ID] = tableSize{n, at, time.Now()}
	return n, nil
}

// getSpaceQuotaRegionSizes answers GetSpaceQuotaRegionSizes: the size of every
// table.
func (m *Master) getSpaceQuotaRegionSizes(ctx context.Context, _ *pb.GetSpaceQuotaRegionSizesRequest) (*pb.GetSpaceQuotaRegionSizesResponse, error) {
	out := &pb.GetSpaceQuotaRegionSizesResponse{}
	if !m.cfg.Quotas {
		return out, nil
	}
	m.space.mu.Lock()
	defer m.space.mu.Unlock()
	for t := range m.state().Tables() {
		n, err := m.sizeOf(ctx, t)
		if err != nil {
			return nil, err
		}
		out.Sizes = append(out.Sizes, &pb.GetSpaceQuotaRegionSizesResponse_RegionSizes{TableName: t.Name.ToProto(), Size: &n})
	}
	return out, nil
}

// getQuotaStates answers GetQuotaStates: what is used of the quotas of tables and
// of namespaces.
func (m *Master) getQuotaStates(ctx context.Context, _ *pb.GetQuotaStatesRequest) (*pb.GetQuotaStatesResponse, error) {
	out := &pb.GetQuotaStatesResponse{}
	if !m.cfg.Quotas {
		return out, nil
	}
	m.space.mu.Lock()
	defer m.space.mu.Unlock()
	s := m.state()
	own, shared := s.SpaceQuotas()
	used := map[string]uint64{}
	for t := range s.Tables() {
		q := own[t.Name]
		if q == nil && shared[t.Name.Namespace] == nil {
			continue
		}
		n, err := m.sizeOf(ctx, t)
		if err != nil {
			return nil, err
		}
		used[t.Name.Namespace] += n
		if q != nil {
			out.TableSnapshots = append(out.TableSnapshots, &pb.GetQuotaStatesResponse_TableQuotaSnapshot{TableName: t.Name.ToProto(), Snapshot: spaceSnapshot(q, n)})
		}
	}
	for name, q := range shared {
		if s.Namespace(name) != nil {
			out.NsSnapshots = append(out.NsSnapshots, &pb.GetQuotaStatesResponse_NamespaceQuotaSnapshot{Namespace: &name, Snapshot: spaceSnapshot(q, used[name])})
		}
	}
	slices.SortFunc(out.NsSnapshots, func(a, b *pb.GetQuotaStatesResponse_NamespaceQuotaSnapshot) int {
		return strings.Compare(a.GetNamespace(), b.GetNamespace())
	})
	return out, nil
}

// spaceForbidsEnabling refuses to enable a table that is disabled for its size.
func (m *Master) spaceForbidsEnabling(name meta.TableName) error {
	if m.cfg.Quotas && disables(m.state().SpaceUsage(name)) {
		return refuse(wire.ClassAccessDenied, "Enabling the table '%s' is disallowed due to a violated space quota.", name)
	}
	return nil
}
