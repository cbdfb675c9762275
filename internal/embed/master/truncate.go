package master

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// truncateRegion answers TruncateRegion: the region is closed, loses its rows
// and is opened where it was.
func (m *Master) truncateRegion(ctx context.Context, q *pb.TruncateRegionRequest) (uint64, error) {
	info := meta.RegionFromProto(q.GetRegionInfo())
	encoded := info.EncodedName()
	r := m.state().Region(encoded)
	if r == nil {
		return 0, unknownRegion(encoded)
	}
	return m.submit(ctx, "TruncateRegionProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		return m.locked(ctx, r.Info.Table, func(s *catalog.State, t *catalog.Table) error {
			r := s.Region(encoded)
			if r == nil {
				return unknownRegion(encoded)
			}
			if t.State != pb.TableState_ENABLED {
				return tableNotEnabled(t.Name)
			}
			if err := systemVirtual(t, "truncating a region"); err != nil {
				return err
			}
			if err := generatedTable(t, "truncating a region"); err != nil {
				return err
			}
			if r.State != pb.RegionState_OPEN {
				return refuse(wire.ClassDoNotRetryRegion, "%s is not OPEN; state=%s", encoded, r.State)
			}
			prepared()
			m.closeOn(ctx, m.find(r.Server), encoded, nil)
			if err := m.change(encoded, func(r *catalog.Region) { r.State = pb.RegionState_CLOSED }); err != nil {
				return err
			}
			h, err := m.cfg.Tables.Handle(t)
			if err == nil {
				err = h.DropRows(r.Info.Start, r.Info.End)
			}
			if err != nil {
				return err
			}
			m.event(eventlog.Event{Method: "truncate region", Table: t.Name.String(), Region: encoded})
			return m.assignOne(ctx, t, m.state().Region(encoded), m.find(r.Server))
		})
	})
}
