package regionserver

import (
	"bytes"
	"context"
	"iter"
	"strconv"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// clientService is ClientService: data.
func (s *Server) clientService() *rpcserver.Service {
	svc := rpcserver.NewService("ClientService")
	rpcserver.Handle(svc, "Get", s.get, rpcserver.Brief[*pb.GetRequest](true),
		rpcserver.Describe(func(c *rpcserver.Call, in *pb.GetRequest) {
			s.aim(c, in.GetRegion(), in.GetGet().GetRow())
			if in.GetGet().GetExistenceOnly() {
				c.Target.Detail = "exists"
			}
		}))
	rpcserver.Handle(svc, "Mutate", s.mutate, rpcserver.Brief[*pb.MutateRequest](s.cfg.InlineWrites),
		rpcserver.Describe(func(c *rpcserver.Call, in *pb.MutateRequest) {
			s.aim(c, in.GetRegion(), in.GetMutation().GetRow())
			c.Target.Detail = mutationDetail(in)
		}))
	rpcserver.Handle(svc, "Multi", s.multi, rpcserver.Describe(s.aimMulti))
	rpcserver.Handle(svc, "Scan", s.scan, rpcserver.Inline[*pb.ScanRequest](true), rpcserver.Describe(s.aimScan))
	rpcserver.Handle(svc, "ExecService", s.execService, rpcserver.Describe(func(c *rpcserver.Call, in *pb.CoprocessorServiceRequest) {
		s.aim(c, in.GetRegion(), in.GetCall().GetRow())
		c.Target.Detail = in.GetCall().GetServiceName() + "." + in.GetCall().GetMethodName()
	}))
	rpcserver.Handle(svc, "ExecRegionServerService", s.execServerService)
	rpcserver.Handle(svc, "PrepareBulkLoad", s.prepareBulkLoad)
	rpcserver.Handle(svc, "BulkLoadHFile", s.bulkLoad, rpcserver.Describe(func(c *rpcserver.Call, in *pb.BulkLoadHFileRequest) {
		s.aim(c, in.GetRegion(), nil)
		c.Target.Detail = strconv.Itoa(len(in.GetFamilyPath())) + " files"
	}))
	rpcserver.Handle(svc, "CleanupBulkLoad", s.cleanupBulkLoad)
	return svc
}

// aim says what a call is about: a region and perhaps a row.
func (s *Server) aim(c *rpcserver.Call, spec *pb.RegionSpecifier, row []byte) {
	t := &c.Target
	if r := s.byName(spec.GetValue()); r != nil {
		t.Table, t.Region, t.Any = r.table, r.Encoded, r
	} else {
		t.Table, t.Region = tableOfName(spec.GetValue())
	}
	if row != nil {
		t.Rows, t.NumRows = [][]byte{row}, 1
	}
}

// get is ClientService.Get.
func (s *Server) get(ctx context.Context, c *rpcserver.Call, in *pb.GetRequest) (*pb.GetResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	r, err := s.enter(in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	paid, err := s.admit(c, r, cost{reads: 1})
	if err != nil {
		return nil, err
	}
	defer paid.end()
	list, err := s.read(r, in.GetGet())
	if err != nil {
		return nil, err
	}
	paid.read(list)
	if in.GetGet().GetExistenceOnly() {
		return &pb.GetResponse{Result: existsResult(r, len(list) > 0)}, nil
	}
	if c.Conn.CellBlocks() && c.Conn.Version().AtLeast(1, 3) {
		c.TakeReplyCells(list)
		return &pb.GetResponse{Result: r.stamp(blockResult(len(list)))}, nil
	}
	return &pb.GetResponse{Result: r.stamp(inlineResult(list, false))}, nil
}

// read answers a Get on a region the caller is in.
func (s *Server) read(r *region, g *pb.Get) ([]cells.Cell, error) {
	q, err := getQuery(g)
	if err != nil {
		return nil, err
	}
	if err := r.checkRange(g.GetRow(), "Get"); err != nil {
		return nil, err
	}
	r.reads.Add(1)
	rows, compare := r.rendered(q)
	if at := s.lagging(r); at != 0 && rows == nil {
		sc, err := r.Table.NewScan(cells.RowSpec(g.GetRow(), q), at)
		if err != nil {
			return nil, r.explain(err)
		}
		list, _, err := sc.Next(nil, &cells.Limits{})
		if e := sc.Close(); err == nil {
			err = e
		}
		return list, r.explain(err)
	}
	if rows == nil {
		list, err := r.Table.Get(g.GetRow(), q)
		if err != nil {
			return nil, r.explain(err)
		}
		return list, nil
	}
	src := cells.NewRowsSource(rows, compare, false)
	defer src.Close()
	sc, err := cells.NewScanner(src, r.schema(), cells.RowSpec(g.GetRow(), q), compare, s.now())
	if err != nil {
		return nil, r.explain(err)
	}
	list, _, err := sc.Next(nil, &cells.Limits{})
	return list, r.explain(err)
}

// lagging is the read point of a secondary replica that lags behind; 0 for the
// present.
func (s *Server) lagging(r *region) uint64 {
	if r.Info.Replica == 0 || s.cfg.ReplicaReadPoint == nil {
		return 0
	}
	return s.cfg.ReplicaReadPoint()
}

// stamp says in a Result whether it is from a secondary replica.
func (r *region) stamp(p *pb.Result) *pb.Result {
	*p.Stale = r.Info.Replica != 0
	return p
}

func existsResult(r *region, exists bool) *pb.Result {
	return &pb.Result{Exists: &exists, Stale: new(r.Info.Replica != 0)}
}

// rendered gives the rows of a region that are made when they are read, and
// their order; nil if they are in the store.
func (r *region) rendered(q *cells.Query) (rows func(start []byte, reversed bool) iter.Seq[[]cells.Cell], compare func(a, b []byte) int) {
	switch {
	case r.Virtual != nil:
		// A filter may count rows, also those of which the time range leaves
		// nothing.
		var since int64
		if q.Filter == nil && len(q.FamilyRanges) == 0 {
			since = q.Range.Min
		}
		return func(start []byte, reversed bool) iter.Seq[[]cells.Cell] {
			return r.Virtual.Rows(start, reversed, since)
		}, r.Virtual.Compare
	case r.Generated != nil && !r.Generated.Stored():
		return r.Generated.Rows, bytes.Compare
	}
	return nil, nil
}

// contains says whether the row lies in the region.
func (r *region) contains(row []byte) bool {
	if r.Virtual != nil {
		return true // one region each, without bounds
	}
	return bytes.Compare(row, r.Info.Start) >= 0 && (len(r.Info.End) == 0 || bytes.Compare(row, r.Info.End) < 0)
}

// checkRange refuses a row outside the region, for the operation named.
func (r *region) checkRange(row []byte, op string) error {
	if r.contains(row) {
		return nil
	}
	return wire.NewRemoteError(wire.ClassWrongRegion, r.outOfRange(row, op))
}

func (r *region) outOfRange(row []byte, op string) string {
	return "Requested row out of range for " + op + " on HRegion " + r.name +
		", startKey='" + cells.Quote(r.Info.Start) + "', getEndKey()='" + cells.Quote(r.Info.End) +
		"', row='" + cells.QuoteShort(row, 512) + "'"
}

// explain completes an error of the store with what only the region knows.
func (r *region) explain(err error) error {
	if err == nil {
		return nil
	}
	if x, ok := err.(*cells.Exception); ok {
		return x.InRegion(r.name, "'"+r.table+"'")
	}
	return err
}
