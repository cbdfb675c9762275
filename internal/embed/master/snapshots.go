package master

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// A snapshot is a copy of the table's cells in a key space of its own, with
// the descriptor and the region boundaries.

func (m *Master) addSnapshots(s *rpcserver.Service) {
	answer(m, s, "Snapshot", func(ctx context.Context, q *pb.SnapshotRequest) (*pb.SnapshotResponse, error) {
		id, err := m.snapshot(ctx, q)
		if err != nil {
			return nil, err
		}
		return &pb.SnapshotResponse{ExpectedTimeout: new(int64(execTimeout)), ProcId: new(int64(id))}, nil
	})
	answer(m, s, "IsSnapshotDone", func(_ context.Context, q *pb.IsSnapshotDoneRequest) (*pb.IsSnapshotDoneResponse, error) {
		p := m.state().Snapshot(q.GetSnapshot().GetName())
		if p == nil {
			if m.cfg.Procedures.running(snapshotClass) {
				return &pb.IsSnapshotDoneResponse{Done: new(false)}, nil
			}
			return nil, refuse(wire.ClassUnknownSnapshot, "Snapshot %s is not currently running or one of the known completed snapshots.", q.GetSnapshot().GetName())
		}
		return &pb.IsSnapshotDoneResponse{Done: new(true), Snapshot: p.Description}, nil
	})
	answer(m, s, "GetCompletedSnapshots", func(context.Context, *pb.GetCompletedSnapshotsRequest) (*pb.GetCompletedSnapshotsResponse, error) {
		r := &pb.GetCompletedSnapshotsResponse{}
		for p := range m.state().Snapshots() {
			r.Snapshots = append(r.Snapshots, p.Description)
		}
		return r, nil
	})
	answer(m, s, "DeleteSnapshot", func(_ context.Context, q *pb.DeleteSnapshotRequest) (*pb.DeleteSnapshotResponse, error) {
		return &pb.DeleteSnapshotResponse{}, m.deleteSnapshot(q.GetSnapshot().GetName())
	})
	answer(m, s, "RestoreSnapshot", withID(m.restoreSnapshot, func(id *uint64) *pb.RestoreSnapshotResponse { return &pb.RestoreSnapshotResponse{ProcId: id} }))
	answer(m, s, "IsRestoreSnapshotDone", func(context.Context, *pb.IsRestoreSnapshotDoneRequest) (*pb.IsRestoreSnapshotDoneResponse, error) {
		return &pb.IsRestoreSnapshotDoneResponse{Done: new(true)}, nil
	})
}

const snapshotClass = "SnapshotProcedure"

func noSnapshot(name string) error {
	return refuse(wire.ClassSnapshotDoesNotExist, "Snapshot '%s' doesn't exist on the filesystem", name)
}

// running says whether a procedure of the class is still running.
func (ps *Procedures) running(class string) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.unfinished[class] > 0
}

func (m *Master) snapshot(ctx context.Context, q *pb.SnapshotRequest) (uint64, error) {
	d := q.GetSnapshot()
	name, err := parseTable(d.GetTable())
	if err != nil {
		return 0, err
	}
	if d.GetName() == "" {
		return 0, refuse(wire.ClassSnapshotCreation, "Snapshot name must not be empty")
	}
	if q.Nonce == nil && m.state().Table(name) == nil {
		// Clients before 2.6 ask another way, which has words of its own.
		return 0, refuse(wire.ClassSnapshotCreation, "Table '%s' doesn't exist, can't take snapshot.", name)
	}
	return m.submit(ctx, snapshotClass, q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		if m.state().Snapshot(d.GetName()) != nil {
			return refuse(wire.ClassSnapshotExists, "Snapshot '%s' already stored on the filesystem.", d.GetName())
		}
		return m.locked(ctx, name, func(s *catalog.State, t *catalog.Table) error {
			if t.Virtual() {
				return refuse(wire.ClassSnapshotCreation, "unsupported: snapshot of %s: its rows are rendered from the catalog", name)
			}
			if err := generatedTable(t, "snapshot"); err != nil {
				return err
			}
			prepared()
			return m.takeSnapshot(ctx, t, d)
		})
	})
}

// takeSnapshot copies a table. The caller holds its lock.
func (m *Master) takeSnapshot(ctx context.Context, t *catalog.Table, d *pb.SnapshotDescription) error {
	id, err := m.copyData(ctx, t.ID)
	if err != nil {
		return err
	}
	c := proto.CloneOf(d)
	c.Table = new(t.Name.String())
	c.Version = new(int32(2))
	if c.GetCreationTime() == 0 {
		c.CreationTime = new(m.cfg.Now().UnixMilli())
	}
	if c.GetType() == pb.SnapshotDescription_DISABLED || t.State == pb.TableState_DISABLED {
		c.Type = pb.SnapshotDescription_DISABLED.Enum()
	}
	p := &catalog.Snapshot{Description: c, Schema: t.Schema, DataID: id, Starts: startsOf(slices.Collect(m.state().RegionsOf(t.Name)))}
	m.event(eventlog.Event{Method: "snapshot", Table: t.Name.String(), Detail: d.GetName()})
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		if tx.Snapshot(d.GetName()) != nil {
			return refuse(wire.ClassSnapshotExists, "Snapshot '%s' already stored on the filesystem.", d.GetName())
		}
		tx.PutSnapshot(p)
		tx.SetSetting(dropSetting(id), "")
		return nil
	})
}

// copyData copies a key space to a new one, which is marked to be dropped until
// somebody owns it.
func (m *Master) copyData(ctx context.Context, from uint32) (id uint32, err error) {
	if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		id = tx.NextTableID()
		tx.SetSetting(dropSetting(id), "1")
		return nil
	}); err != nil {
		return 0, err
	}
	return id, m.cfg.Store.CopyData(ctx, from, id)
}

func (m *Master) deleteSnapshot(name string) error {
	var id uint32
	if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		p := tx.Snapshot(name)
		if p == nil {
			return noSnapshot(name)
		}
		id = p.DataID
		tx.DeleteSnapshot(p)
		tx.SetSetting(dropSetting(id), "1")
		return nil
	}); err != nil {
		return err
	}
	return m.dropData(id)
}

// restoreSnapshot answers RestoreSnapshot: into the table it was taken of, which
// must be disabled, or as a clone into a table that does not exist.
func (m *Master) restoreSnapshot(ctx context.Context, q *pb.RestoreSnapshotRequest) (uint64, error) {
	d := q.GetSnapshot()
	p := m.state().Snapshot(d.GetName())
	if p == nil {
		return 0, noSnapshot(d.GetName())
	}
	if expired(p.Description, m.cfg.Now()) {
		return 0, refuse(wire.ClassSnapshotTTLExpired, "TTL for snapshot '%s' has already expired.", d.GetName())
	}
	target := d.GetTable()
	if target == "" {
		target = p.Description.GetTable()
	}
	name, err := parseTable(target)
	if err != nil {
		return 0, err
	}
	class := "CloneSnapshotProcedure"
	if m.state().Table(name) != nil {
		class = "RestoreSnapshotProcedure"
	}
	return m.submit(ctx, class, q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		unlock, err := m.lockTable(ctx, name.String(), true)
		if err != nil {
			return err
		}
		defer unlock()
		s := m.state()
		t := &catalog.Table{Name: name, State: pb.TableState_ENABLED}
		var gone *replaced
		if old := s.Table(name); old != nil {
			if err := systemVirtual(old, "restoring"); err != nil {
				return err
			}
			if err := generatedTable(old, "restoring"); err != nil {
				return err
			}
			if old.State != pb.TableState_DISABLED {
				return tableNotDisabled(name)
			}
			*t = *old
			gone = &replaced{id: old.ID, regions: slices.Collect(s.RegionsOf(name))}
		} else if s.Namespace(name.Namespace) == nil {
			return namespaceNotFound(name.Namespace)
		}
		prepared()
		if t.ID, err = m.copyData(ctx, p.DataID); err != nil {
			return err
		}
		schema := catalog.WithoutFamily(p.Schema, nil)
		schema.TableName = name.ToProto()
		t.Schema = schema
		if err := m.buildTable(ctx, t, p.Starts, gone); err != nil {
			return err
		}
		m.event(eventlog.Event{Method: "restore", Table: name.String(), Detail: d.GetName()})
		if gone != nil {
			return m.dropData(gone.id)
		}
		return nil
	})
}

func expired(d *pb.SnapshotDescription, now time.Time) bool {
	return d.GetTtl() > 0 && now.After(time.UnixMilli(d.GetCreationTime()).Add(time.Duration(min(d.GetTtl(), int64(1)<<32))*time.Second))
}
