package hbase

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// rpcScan is the scanTransport over a session.
type rpcScan struct {
	t    *Table
	scan *Scan
}

func (r *rpcScan) name() string { return "table " + strconv.Quote(r.t.name.String()) }

// rows is how many results one answer may hold; without Caching the size
// governs.
func (r *rpcScan) rows() uint32 {
	if r.scan.Caching > 0 {
		return uint32(r.scan.Caching)
	}
	return math.MaxInt32
}

func (r *rpcScan) open(ctx context.Context, o scanOpening) (scanRegion, *scanReply, error) {
	scan, err := pbScan(r.scan, r.scan.MaxResultSize)
	if err != nil {
		return nil, nil, err
	}
	if len(o.row) > 0 {
		scan.StartRow = o.row
	}
	if len(r.scan.Stop) > 0 {
		scan.StopRow = r.scan.Stop
	}
	scan.IncludeStartRow = new(o.inclusive)
	scan.IncludeStopRow = new(r.scan.IncludeStop)
	if o.mvcc != 0 {
		scan.MvccReadPoint = new(o.mvcc)
	}
	req := &pb.ScanRequest{
		Scan:                    scan,
		NumberOfRows:            new(r.rows()),
		ClientHandlesPartials:   new(true),
		ClientHandlesHeartbeats: new(true),
	}
	r.common(req, o.limit)
	var spec regionSpec
	req.Region = &spec.spec
	var resp scanRead
	ans, err := r.t.c.core.CallRegion(ctx, &session.RegionCall{
		Table: r.t.name, Row: o.row, Before: o.before, Method: "Scan", Op: "scan open",
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			spec.set(region)
			return req, nil
		},
		Result: r.result(&resp), Idempotency: session.Safe,
		Timeline: r.scan.Consistency == Timeline, ReplicaAfter: r.t.c.cfg.ScanReplicaAfter, Replica: r.scan.ReplicaID,
		Hedge: r.scan.Hedge || r.t.c.cfg.HedgedReads, Abandoned: r.closeAbandoned,
		Priority: r.scan.Priority,
	})
	if err != nil {
		resp.loan.Return()
		if retry.ScannerLost(err) {
			// An opening that brings data can break like a next.
			return nil, nil, &scannerLostError{err}
		}
		return nil, nil, err
	}
	reg := &rpcRegion{scan: r, route: ans.Route, replica: ans.Replica, id: resp.GetScannerId()}
	reply, err := reg.read(&resp, ans.Cells)
	if err != nil {
		return nil, nil, err
	}
	reply.mvcc = resp.GetMvccReadPoint()
	return reg, reply, nil
}

// closeAbandoned closes a scanner that was opened in vain: another replica's was
// opened first.
func (r *rpcScan) closeAbandoned(ans session.Answer, result []byte) {
	var resp pb.ScanResponse
	if resp.UnmarshalVT(result) != nil || resp.ScannerId == nil || resp.MoreResults != nil && !resp.GetMoreResults() ||
		resp.MoreResultsInRegion != nil && !resp.GetMoreResultsInRegion() {
		return // there is none, or the server has closed it
	}
	reg := &rpcRegion{scan: r, route: ans.Route, replica: ans.Replica, id: resp.GetScannerId()}
	//holdfast:allow context the scan that it was opened for may be over
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	reg.close(ctx)
}

func (r *rpcScan) common(req *pb.ScanRequest, limit int) {
	if limit > 0 {
		req.LimitOfRows = new(uint32(limit))
	}
	if r.scan.Metrics {
		req.TrackScanMetrics = new(true)
	}
}

// rpcRegion is an open scanner on the region of a route, or on a replica of it.
type rpcRegion struct {
	scan    *rpcScan
	route   *route.Route
	replica *route.Replica // nil: the primary
	id      uint64
}

// scanRead is a ScanResponse with its cells.
type scanRead struct {
	pb.ScanResponse
	reply *scanReply
	loan  *rpc.Loan // its memory, if that is used again
}

// lentRead is a scanRead whose memory is used again.
type lentRead struct{ *scanRead }

// Borrow is called before an answer is read.
func (a lentRead) Borrow(l *rpc.Loan) {
	a.loan.Return() // of an attempt that failed
	a.loan = l
}

// result is what a call of the scan reads its answer into.
func (r *rpcScan) result(a *scanRead) wire.Unmarshaler {
	if r.scan.ReuseResults {
		return lentRead{a}
	}
	return a
}

// ReadCells is called while the answer can still be asked for again.
func (a *scanRead) ReadCells(block []byte) (err error) {
	a.reply, err = replyOf(&a.ScanResponse, block)
	return err
}

// read reads an answer of the scanner.
func (r *rpcRegion) read(resp *scanRead, block []byte) (reply *scanReply, err error) {
	if r.replica != nil {
		resp.Stale = new(true)
	}
	if reply = resp.reply; reply == nil || r.replica != nil {
		if reply, err = replyOf(&resp.ScanResponse, block); err != nil {
			resp.loan.Return()
			return nil, err
		}
	}
	reply.loan = resp.loan
	return reply, nil
}

func (r *rpcRegion) bounds() (start, end []byte) { return r.route.Start(), r.route.End() }

func (r *rpcRegion) next(ctx context.Context, seq uint64, limit int) (*scanReply, error) {
	req := &pb.ScanRequest{
		ScannerId:               new(r.id),
		NumberOfRows:            new(r.scan.rows()),
		NextCallSeq:             new(seq),
		ClientHandlesPartials:   new(true),
		ClientHandlesHeartbeats: new(true),
	}
	r.scan.common(req, limit)
	var resp scanRead
	ans, err := r.call(ctx, "scan next", req, r.scan.result(&resp))
	if err != nil {
		resp.loan.Return()
		return nil, err
	}
	return r.read(&resp, ans.Cells)
}

func (r *rpcRegion) renew(ctx context.Context, seq uint64) error {
	var resp pb.ScanResponse
	_, err := r.call(ctx, "scan renew", &pb.ScanRequest{
		ScannerId: new(r.id), NextCallSeq: new(seq), Renew: new(true), NumberOfRows: new(uint32(0)),
	}, &resp)
	return err
}

func (r *rpcRegion) close(ctx context.Context) {
	var resp pb.ScanResponse
	// Nothing to be done about an error: the lease ends the scanner then.
	_, _ = r.call(ctx, "scan close", &pb.ScanRequest{
		ScannerId: new(r.id), CloseScanner: new(true), NumberOfRows: new(uint32(0)),
	}, &resp)
}

func (r *rpcRegion) call(ctx context.Context, op string, req *pb.ScanRequest, resp wire.Unmarshaler) (session.Answer, error) {
	ans, err := r.scan.t.c.core.CallReplica(ctx, r.route, r.replica, &session.RegionCall{
		Table: r.scan.t.name, Row: r.route.Start(), Method: "Scan", Op: op,
		Param:  func([]byte, int) (wire.Marshaler, []byte) { return req, nil },
		Result: resp, Idempotency: session.Safe, Priority: r.scan.scan.Priority,
	})
	if err == nil {
		return ans, nil
	}
	var attempt *session.AttemptError
	if errors.As(err, &attempt) && (attempt.Decision.Retriable || attempt.Decision.ReopenScanner) {
		return ans, &scannerLostError{err}
	}
	return ans, err
}

// cutAt says whether the last result that has cells is a part of its row, and
// whether all others are whole.
func cutAt(resp *pb.ScanResponse) (cut, whole bool) {
	if !slices.Contains(resp.PartialFlagPerResult, true) {
		return false, true
	}
	last := len(resp.CellsPerResult) - 1
	for last >= 0 && resp.CellsPerResult[last] == 0 {
		last--
	}
	for i, partial := range resp.PartialFlagPerResult {
		switch {
		case !partial || i >= len(resp.CellsPerResult) || resp.CellsPerResult[i] == 0:
		case i == last:
			cut = true
		default:
			return false, false
		}
	}
	return cut, true
}

// replyOf reads an answer. Results travel inline, or as counts with the cells
// beside them.
func replyOf(resp *pb.ScanResponse, block []byte) (*scanReply, error) {
	reply := &scanReply{ttl: time.Duration(resp.GetTtl()) * time.Millisecond}
	reply.heartbeat = resp.GetHeartbeatMessage()
	reply.more = resp.MoreResults == nil || resp.GetMoreResults()
	if resp.MoreResultsInRegion != nil {
		reply.moreInRegion = resp.GetMoreResultsInRegion()
	} else {
		reply.moreInRegion = true
	}
	if resp.Cursor != nil {
		reply.cursor, reply.hasCursor = resp.Cursor.GetRow(), true
	}
	stale := resp.GetStale()
	for i, r := range resp.Results {
		p := scanPart{partial: r.GetPartial(), stale: stale || r.GetStale(), scanned: r.GetMetrics().GetBlockBytesScanned()}
		if i < len(resp.PartialFlagPerResult) {
			p.partial = resp.PartialFlagPerResult[i]
		}
		for _, c := range r.Cell {
			p.cells = append(p.cells, inlineCell(c))
		}
		reply.parts = append(reply.parts, p)
	}
	plain := plainRows{block: block, counts: resp.CellsPerResult, stale: stale}
	cut, whole := cutAt(resp)
	if len(plain.counts) > 0 && len(resp.Results) == 0 && len(resp.QueryMetrics) == 0 && whole {
		plain.cut = cut
		if err := plain.check(); err != nil {
			return nil, err
		}
		reply.plain = plain
	} else if len(plain.counts) > 0 {
		var err error
		if reply.parts, err = plain.parts(func(i int, p *scanPart) {
			if i < len(resp.PartialFlagPerResult) {
				p.partial = resp.PartialFlagPerResult[i]
			}
			if i < len(resp.QueryMetrics) {
				p.scanned = resp.QueryMetrics[i].GetBlockBytesScanned()
			}
		}); err != nil {
			return nil, err
		}
	}
	if resp.ScanMetrics != nil {
		reply.metrics = make(map[string]int64, len(resp.ScanMetrics.Metrics))
		for _, m := range resp.ScanMetrics.Metrics {
			reply.metrics[m.GetName()] += m.GetValue()
		}
	}
	return reply, nil
}
