package regionserver

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// minScanTime is the least time a scan gets before a heartbeat
// (hbase.hregion.scan.minimum.time.limit, 10 ms).
const minScanTime = 10 * time.Millisecond

// aimScan says what a Scan call is about.
func (s *Server) aimScan(c *rpcserver.Call, in *pb.ScanRequest) {
	t := &c.Target
	if in.ScannerId == nil {
		s.aim(c, in.GetRegion(), nil)
		t.Detail = "open"
		if in.GetCloseScanner() {
			t.Detail = "open and close"
		}
		lo, hi := in.GetScan().GetStartRow(), in.GetScan().GetStopRow()
		if in.GetScan().GetReversed() {
			lo, hi = hi, lo
		}
		t.Rows, t.Range, t.NumRows = [][]byte{notNil(lo), hi}, true, int(in.GetNumberOfRows())
		return
	}
	switch {
	case in.GetRenew():
		t.Detail = "renew"
	case in.GetCloseScanner():
		t.Detail = "close"
	default:
		t.Detail = "next"
	}
	s.scanners.mu.Lock()
	defer s.scanners.mu.Unlock()
	if sc := s.scanners.open[in.GetScannerId()]; sc != nil {
		t.Table, t.Region = sc.region.table, sc.region.Encoded
		t.Rows, t.Range = [][]byte{sc.region.Info.Start, sc.region.Info.End}, true
	}
}

// scan is ClientService.Scan.
func (s *Server) scan(ctx context.Context, c *rpcserver.Call, in *pb.ScanRequest) (*pb.ScanResponse, error) {
	if in.ScannerId == nil && in.Scan == nil {
		return nil, wire.NewRemoteError(wire.ClassDoNotRetryIO, "Missing required input: scannerId or scan")
	}
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	rows := 1
	switch {
	case in.NumberOfRows != nil:
		rows = int(int32(in.GetNumberOfRows()))
	case in.GetCloseScanner():
		rows = 0
	}
	out := &pb.ScanResponse{}
	var sc *scanner
	var err error
	if in.ScannerId == nil {
		if rows < 0 {
			return nil, cells.IOException("Illegal Capacity: " + itoa(rows))
		}
		if sc, err = s.openScanner(in, out); err != nil {
			return nil, err
		}
	} else {
		out.ScannerId = new(in.GetScannerId())
		sc, err = s.scanners.take(in.GetScannerId(), in.NextCallSeq, s.stillHere)
		if errors.Is(err, errGone) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if in.GetRenew() {
			s.scanners.give(sc)
			return out, nil
		}
		if rows < 0 {
			s.scanners.finish(sc, false)
			return nil, cells.IOException("Illegal Capacity: " + itoa(rows))
		}
	}
	if rows > 0 {
		paid, err := s.admit(c, sc.region, cost{reads: 1, readBytes: estimatedScan})
		if err != nil {
			if in.ScannerId == nil {
				s.scanners.finish(sc, false)
			} else {
				s.scanners.unread(sc, in.NextCallSeq != nil)
			}
			return nil, err
		}
		defer paid.end()
		sc.paid = paid
	}
	return s.runScan(c, in, out, sc, rows)
}

// stillHere says whether a scanner's region is still the one served.
func (s *Server) stillHere(r *region) error {
	s.mu.RLock()
	now := s.regions[r.Encoded]
	s.mu.RUnlock()
	if now == r {
		return nil
	}
	return wire.NewRemoteError(wire.ClassNotServingRegion, "Region has changed on the scanner: regionName="+r.name)
}

// openScanner opens a scanner, busy, and fills the opening's part of the answer.
func (s *Server) openScanner(in *pb.ScanRequest, out *pb.ScanResponse) (*scanner, error) {
	r, err := s.enter(in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	p := in.GetScan()
	spec, err := scanSpec(p)
	if err != nil {
		return nil, err
	}
	sc := &scanner{region: r, batch: int(max(int32(p.GetBatchSize()), 0)), needCursor: p.GetNeedCursorResult()}
	if spec.Filter != nil {
		spec.Filter = &meteredFilter{spec.Filter, &sc.meter}
	}
	if n := int64(p.GetMaxResultSize()); n > 0 {
		sc.maxBytes = n
	}
	if sc.in, err = s.regionScanner(r, spec, p.GetMvccReadPoint()); err != nil {
		return nil, err
	}
	if err := s.scanners.add(sc); err != nil {
		_ = sc.in.Close()
		return nil, err
	}
	out.ScannerId = new(sc.id)
	out.MvccReadPoint = new(sc.in.ReadPoint())
	out.Ttl = new(uint32(s.cfg.ScannerLease.Milliseconds()))
	return sc, nil
}

// regionScanner opens a scanner on the rows of a region the caller is in.
func (s *Server) regionScanner(r *region, spec *cells.ScanSpec, readPoint uint64) (rowScanner, error) {
	if r.Virtual == nil {
		spec.Lower, spec.Upper = r.Info.Start, r.Info.End
	}
	if rows, compare := r.rendered(spec.Query); rows != nil {
		src := cells.NewRowsSource(rows, compare, spec.Reversed)
		in, err := cells.NewScanner(src, r.schema(), spec, compare, s.now())
		if err != nil {
			src.Close()
			return nil, r.explain(err)
		}
		return &virtualScanner{in, src}, nil
	}
	if at := s.lagging(r); at != 0 && readPoint == 0 {
		readPoint = at
	}
	in, err := r.Table.NewScan(spec, readPoint)
	if err != nil {
		return nil, r.explain(err)
	}
	return in, nil
}

// runScan does what a call asks of a busy scanner.
func (s *Server) runScan(c *rpcserver.Call, in *pb.ScanRequest, out *pb.ScanResponse, sc *scanner, rows int) (*pb.ScanResponse, error) {
	page := page{s: s, c: c, in: in, out: out, sc: sc, cells: sc.cells[:0], results: sc.results[:0]}
	var err error
	if rows > 0 {
		err = page.fill(rows)
	} else {
		out.MoreResultsInRegion = new(true)
	}
	if err == nil && !c.Deadline.IsZero() && time.Now().After(c.Deadline) {
		// Nobody waits for the answer, and the next call of this scanner would
		// skip its rows.
		err = wire.NewRemoteError(wire.ClassTimeoutIO, "Client deadline exceeded, cannot return results")
	}
	if err != nil {
		s.scanners.finish(sc, false)
		return nil, page.failed(err)
	}
	page.deliver()
	if len(page.results) == 0 && sc.in.FilterDone() {
		out.MoreResults = new(false)
	}
	if out.MoreResults == nil {
		out.MoreResults = new(true)
	}
	if n := len(page.results); n > 0 {
		sc.partialRow = nil
		if page.results[n-1].partial {
			sc.partialRow = page.lastRow
		}
	}
	if !out.GetMoreResults() || !out.GetMoreResultsInRegion() || in.GetCloseScanner() {
		s.scanners.finish(sc, true)
		return out, nil
	}
	if err := sc.in.Pause(); err != nil {
		s.scanners.finish(sc, false)
		return nil, page.failed(err)
	}
	page.keep()
	s.scanners.give(sc)
	return out, nil
}

// page is the answer of one call while it is collected.
type page struct {
	s   *Server
	c   *rpcserver.Call
	in  *pb.ScanRequest
	out *pb.ScanResponse
	sc  *scanner
	// cells are those of the present Result, or of all if they are to travel in
	// the message.
	cells   []cells.Cell
	results []span
	// lastRow is the row of the last Result if that is partial.
	lastRow []byte
}

// span is one Result: n cells.
type span struct {
	n       int
	partial bool
}

// looks says when to look at the clock: after each row as long as rows are slow,
// and as they are fast, which they mostly are, ever less often.
type looks struct {
	last         time.Time
	every, since int // rows
}

const (
	fastRows   = time.Millisecond // between two looks: then there may be more rows
	maxPerLook = 32
)

func (l *looks) due() bool {
	if l.since++; l.since < l.every {
		return false
	}
	now := time.Now()
	if now.Sub(l.last) < fastRows {
		l.every = min(2*max(l.every, 1), maxPerLook)
	} else {
		l.every = 1
	}
	l.last, l.since = now, 0
	return true
}

// keptCells and keptResults bound what a scanner keeps for its next page.
const (
	keptCells   = 256
	keptResults = 32 << 10
)

// keep leaves the lists to the scanner's next page. (Cells that travel in the
// message are still needed.)
func (p *page) keep() {
	p.sc.results, p.sc.cells = nil, nil
	if cap(p.results) <= keptResults {
		p.sc.results = p.results
	}
	if p.c.Conn.CellBlocks() && cap(p.cells) <= keptCells {
		p.sc.cells = p.cells
	}
}

// fill collects up to rows Results: RSRpcServices.scan.
func (p *page) fill(rows int) error {
	sc, r := p.sc, p.sc.region
	if !r.enter() {
		return p.s.gone(r)
	}
	defer r.leave()
	maxBytes := p.s.cfg.MaxResultBytes
	if sc.maxBytes > 0 {
		maxBytes = min(maxBytes, sc.maxBytes)
	}
	partials := p.in.GetClientHandlesPartials()
	var expired func() bool
	// A heartbeat may cut a row, so it takes a client that handles both.
	if partials && p.in.GetClientHandlesHeartbeats() {
		until := p.timeLimit()
		expired = func() bool { return r.closing() || !time.Now().Before(until) }
	} else {
		expired = r.closing
	}
	limit := int(p.in.GetLimitOfRows())
	inBlock := p.c.Conn.CellBlocks()
	lim := cells.Limits{Transient: inBlock, Batch: sc.batch, MidRow: partials, Expired: expired}
	var look looks
	complete := 0
	var size int64
	more := true
	for len(p.results) < rows {
		if inBlock {
			p.cells = p.cells[:0]
		}
		from := len(p.cells)
		lim.Bytes = max(maxBytes-size, 1)
		var state cells.State
		var err error
		p.cells, state, err = sc.in.Next(p.cells, &lim)
		if err != nil {
			return err
		}
		if r.closing() {
			return p.s.gone(r)
		}
		// Where the batch ends with the row, HBase does not look ahead.
		more = state != cells.NoMoreRows || sc.batch > 0 && len(p.cells)-from == sc.batch
		for i := range p.cells[from:] {
			size += int64(p.cells[from+i].ResultSize())
		}
		if got := p.cells[from:]; len(got) > 0 {
			// A partial Result whose row turns out to have had no more cells
			// counts as a whole row once another begins.
			last := sc.partialRow
			if n := len(p.results); n > 0 {
				last = nil
				if p.results[n-1].partial {
					last = p.lastRow
				}
			}
			if last != nil && !bytes.Equal(last, got[0].Row) {
				if complete++; limit > 0 && complete >= limit {
					p.cells = p.cells[:from]
					p.out.MoreResults = new(false)
					break
				}
			}
			partial := state.MidRow()
			p.results = append(p.results, span{len(got), partial})
			if partial {
				p.lastRow = bytes.Clone(got[0].Row)
			}
			if inBlock {
				if err := p.c.EncodeReplyCells(got); err != nil {
					return err
				}
			}
			sc.paid.read(got)
			r.reads.Add(1)
			if !partial {
				if complete++; limit > 0 && complete >= limit {
					p.out.MoreResults = new(false)
					break
				}
			}
		} else if n := len(p.results); !more && n > 0 {
			// Nothing came after what looked like a part of a row.
			p.results[n-1].partial = false
		}
		full := size >= maxBytes
		late := state == cells.TimeReached || state == cells.TimeReachedMidRow || look.due() && expired()
		if !more {
			break
		}
		if late || full && len(p.results) == 0 {
			p.out.HeartbeatMessage = new(true)
			if sc.needCursor {
				if row := sc.in.LastRow(); row != nil {
					p.out.Cursor = &pb.Cursor{Row: bytes.Clone(row)}
				}
			}
		}
		if late || full {
			break
		}
	}
	p.out.MoreResultsInRegion = new(more)
	seen, filtered := sc.meter.since(int64(complete))
	r.filtered.Add(uint64(filtered))
	if p.in.GetTrackScanMetrics() {
		p.out.ScanMetrics = scanMetrics(seen, filtered, size)
	}
	return nil
}

// timeLimit is when to answer with a heartbeat: after half of the smaller of
// lease and the client's patience.
func (p *page) timeLimit() time.Time {
	now := time.Now()
	d := p.s.cfg.ScannerLease
	if !p.c.Deadline.IsZero() {
		d = min(d, p.c.Deadline.Sub(now))
	}
	return now.Add(max(d/2, minScanTime))
}

// deliver puts the Results into the answer.
func (p *page) deliver() {
	p.out.Stale = new(p.sc.region.Info.Replica != 0)
	if !p.c.Conn.CellBlocks() {
		rest := p.cells
		for _, r := range p.results {
			p.out.Results = append(p.out.Results, p.sc.region.stamp(inlineResult(rest[:r.n], r.partial)))
			rest = rest[r.n:]
		}
		return
	}
	if len(p.results) == 0 {
		return
	}
	p.out.CellsPerResult = make([]uint32, len(p.results))
	p.out.PartialFlagPerResult = make([]bool, len(p.results))
	for i, r := range p.results {
		p.out.CellsPerResult[i] = uint32(r.n)
		p.out.PartialFlagPerResult[i] = r.partial
	}
}

// failed is the exception for an error inside a scan. The scanner is gone, so
// clients are told to open another; only what must end the client's whole scan
// goes out as it is, and refusals of filters, which in HBase are no
// IOExceptions and get past that rule.
func (p *page) failed(err error) error {
	err = p.sc.region.explain(err)
	x := rpcserver.ToRemote(err)
	if _, ok := err.(*cells.Exception); ok {
		return x
	}
	if x.DoNotRetry {
		return x
	}
	if p.c.Conn.Version().AtLeast(1, 4) {
		return wire.NewRemoteError(wire.ClassScannerReset, "Scanner is closed on the server-side: "+x.Error())
	}
	return wire.NewRemoteError(wire.ClassUnknownScanner, "Throwing UnknownScannerException to reset the client scanner state for clients older than 1.3.")
}

// meter counts for ScanMetrics.
type meter struct {
	seen int64 // rows a filter was shown
}

// meteredFilter counts the rows its filter is shown.
type meteredFilter struct {
	cells.Filter
	meter *meter
}

func (f *meteredFilter) FilterRowKey(c *cells.Cell) (bool, error) {
	f.meter.seen++
	return f.Filter.FilterRowKey(c)
}

// since gives the rows seen and filtered out since the last call, complete of
// which were given out.
func (m *meter) since(complete int64) (seen, filtered int64) {
	seen = max(m.seen, complete)
	m.seen = 0
	return seen, seen - complete
}

func scanMetrics(seen, filtered, size int64) *pb.ScanMetrics {
	add := func(name string, n int64) *pb.NameInt64Pair { return &pb.NameInt64Pair{Name: &name, Value: &n} }
	return &pb.ScanMetrics{Metrics: []*pb.NameInt64Pair{
		add("ROWS_SCANNED", seen), add("ROWS_FILTERED", filtered), add("BLOCK_BYTES_SCANNED", size),
	}}
}
