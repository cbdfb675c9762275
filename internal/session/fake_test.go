package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// fakeCluster is a scripted HBase over in-memory pipes: hbase:meta is rendered
// from a list of regions, region servers answer for the regions they hold, and
// a hook may answer, delay or swallow any call.
type fakeCluster struct {
	t *testing.T

	mu      sync.Mutex
	servers map[string]*fakeServer // by host:port
	regions []*fakeRegion
	byName  map[string]*fakeRegion
	sorted  []*fakeRegion // in meta's order
	meta    *fakeServer   // who holds hbase:meta
	master  *fakeServer
	log     []logged
	// answer, if set, is asked first; nil means the usual answer.
	answer func(q *query) *reply
	states map[string]pb.TableState_State
	blocks map[string]bool // addresses whose dials hang
	nonces map[uint64]bool
	dials  map[string]int
	// foreign is how many dials of rs1 are answered by something else.
	foreign int
}

type fakeRegion struct {
	meta.Region
	name  []byte
	on    *fakeServer
	seq   int64
	moved map[*fakeServer]wire.MovedTo // what former holders say
	count map[string]int               // applied changes by row
	// replicas are the secondary ones, by id, and who holds them.
	replicas map[int]*fakeServer
	// unassigned regions keep their last server in meta but nobody serves them.
	unassigned bool
}

type fakeServer struct {
	c    *fakeCluster
	name meta.ServerName

	mu     sync.Mutex
	thawed *sync.Cond
	frozen bool
	dead   bool
	conns  map[net.Conn]bool
	wg     sync.WaitGroup
}

type logged struct {
	server string
	method string
	table  string
}

// query is a call as the fake sees it.
type query struct {
	srv    *fakeServer
	method string
	param  []byte
	cells  []byte
	header wire.ReceivedRequest
}

// reply is an answer. Without any field it is an empty success.
type reply struct {
	msg     wire.Marshaler
	cells   []byte
	err     *wire.RemoteError
	delay   time.Duration
	swallow bool // never answer
	kill    bool // close the connection instead
	apply   bool // do the usual thing first, then this
}

func newFake(t *testing.T, servers int) *fakeCluster {
	c := &fakeCluster{
		t: t, servers: map[string]*fakeServer{}, states: map[string]pb.TableState_State{},
		blocks: map[string]bool{}, byName: map[string]*fakeRegion{}, nonces: map[uint64]bool{}, dials: map[string]int{},
	}
	for i := range servers {
		c.start(meta.ServerName{Host: "rs" + strconv.Itoa(i+1), Port: 16020, StartCode: 100})
	}
	c.meta = c.server(1)
	c.master = c.start(meta.ServerName{Host: "m1", Port: 16000, StartCode: 100})
	return c
}

func (c *fakeCluster) start(name meta.ServerName) *fakeServer {
	s := &fakeServer{c: c, name: name, conns: map[net.Conn]bool{}}
	s.thawed = sync.NewCond(&s.mu)
	c.mu.Lock()
	c.servers[name.Address()] = s
	c.mu.Unlock()
	return s
}

func (c *fakeCluster) server(n int) *fakeServer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers["rs"+strconv.Itoa(n)+":16020"]
}

// stop ends the fake's goroutines.
func (c *fakeCluster) stop() {
	c.mu.Lock()
	all := make([]*fakeServer, 0, len(c.servers))
	for _, s := range c.servers {
		all = append(all, s)
	}
	c.mu.Unlock()
	for _, s := range all {
		s.kill()
		s.wg.Wait()
	}
}

// table makes a table whose regions are cut at the given keys and dealt to the
// servers in turn.
func (c *fakeCluster) table(name string, cuts ...string) meta.TableName {
	table, err := meta.ParseTableName(name)
	if err != nil {
		c.t.Fatal(err)
	}
	n := 0
	for i := 0; i <= len(cuts); i++ {
		r := &fakeRegion{Region: meta.Region{Table: table, ID: 1_700_000_000_000}, seq: 5, count: map[string]int{}, moved: map[*fakeServer]wire.MovedTo{}}
		if i > 0 {
			r.Start = []byte(cuts[i-1])
		}
		if i < len(cuts) {
			r.End = []byte(cuts[i])
		}
		for {
			n++
			if s := c.server(n); s != nil {
				r.on = s
				break
			}
			n = 0
		}
		r.name = r.Name()
		c.mu.Lock()
		c.regions = append(c.regions, r)
		c.byName[string(r.name)] = r
		c.sorted = nil
		c.mu.Unlock()
	}
	return table
}

// region finds the region of a row.
func (c *fakeCluster) region(table meta.TableName, row string) *fakeRegion {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.regions {
		if r.Table == table && !r.Split && r.Contains([]byte(row)) {
			return r
		}
	}
	c.t.Fatalf("no region for %s in %s", row, table)
	return nil
}

// move puts a region on another server; hint makes the old one say where.
func (c *fakeCluster) move(r *fakeRegion, to *fakeServer, hint bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := r.on
	r.on = to
	r.seq += 10
	if hint {
		r.moved[from] = wire.MovedTo{Host: to.name.Host, Port: to.name.Port, StartCode: to.name.StartCode, SeqNum: r.seq}
	} else {
		delete(r.moved, from)
	}
}

func (c *fakeCluster) calls(method, table string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, l := range c.log {
		if (method == "" || l.method == method) && (table == "" || l.table == table) {
			n++
		}
	}
	return n
}

// pings counts the questions about no region.
func (c *fakeCluster) pings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, l := range c.log {
		if l.method == "Multi" && l.table == "" {
			n++
		}
	}
	return n
}

func (c *fakeCluster) metaReads() int { return c.calls("", "hbase:meta") }

func (c *fakeCluster) forgetLog() {
	c.mu.Lock()
	c.log = nil
	c.mu.Unlock()
}

// hook sets the script.
func (c *fakeCluster) hook(f func(q *query) *reply) {
	c.mu.Lock()
	c.answer = f
	c.mu.Unlock()
}

func (s *fakeServer) kill() {
	s.mu.Lock()
	s.dead, s.frozen = true, false
	conns := s.conns
	s.conns = map[net.Conn]bool{}
	s.mu.Unlock()
	s.thawed.Broadcast()
	for nc := range conns {
		nc.Close()
	}
}

// revive takes a kill back: the same incarnation can be reached again.
func (s *fakeServer) revive() {
	s.mu.Lock()
	s.dead = false
	s.mu.Unlock()
}

func (s *fakeServer) freeze() {
	s.mu.Lock()
	s.frozen = true
	s.mu.Unlock()
}

func (s *fakeServer) thaw() {
	s.mu.Lock()
	s.frozen = false
	s.mu.Unlock()
	s.thawed.Broadcast()
}

func (s *fakeServer) waitThawed() {
	s.mu.Lock()
	for s.frozen {
		s.thawed.Wait()
	}
	s.mu.Unlock()
}

// dial is Config.Dial.
func (c *fakeCluster) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c.mu.Lock()
	s, blocked := c.servers[addr], c.blocks[addr]
	c.dials[addr]++
	foreign := s != nil && c.foreign > 0 && s.name.Host == "rs1"
	if foreign {
		c.foreign--
	}
	c.mu.Unlock()
	if foreign {
		return foreigner(), nil
	}
	if blocked {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	host, _, _ := net.SplitHostPort(addr)
	if host == "nowhere" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
	refused := &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	if s == nil {
		return nil, refused
	}
	ours, theirs := newPipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, refused
	}
	s.conns[theirs] = true
	s.wg.Go(func() { s.serve(theirs) })
	return ours, nil
}

func (s *fakeServer) serve(nc net.Conn) {
	defer nc.Close()
	s.waitThawed()
	if _, err := wire.ReadPreamble(nc); err != nil {
		return
	}
	if _, err := wire.ReadConnectionHeader(nc); err != nil {
		return
	}
	var wmu sync.Mutex
	for {
		s.waitThawed()
		frame, err := wire.ReadFrame(nc, 1<<28, nil)
		if err != nil {
			return
		}
		s.waitThawed()
		var q query
		if err := wire.DecodeRequest(frame, &q.header); err != nil {
			return
		}
		q.srv, q.method, q.param, q.cells = s, string(q.header.Method), q.header.Param, q.header.Cells
		s.wg.Go(func() {
			r := s.c.handle(&q)
			if r.delay > 0 {
				time.Sleep(r.delay)
			}
			s.waitThawed()
			if r.swallow {
				return
			}
			if r.kill {
				nc.Close()
				return
			}
			var out []byte
			if r.err != nil {
				out = wire.AppendException(nil, q.header.CallID, r.err)
			} else if out, err = wire.AppendResponse(nil, q.header.CallID, r.msg, r.cells); err != nil {
				s.c.t.Error(err)
			}
			wmu.Lock()
			defer wmu.Unlock()
			nc.Write(out)
		})
	}
}

// handle gives the scripted answer, or the usual one.
func (c *fakeCluster) handle(q *query) *reply {
	c.mu.Lock()
	script := c.answer
	c.log = append(c.log, logged{server: q.srv.name.Host, method: q.method, table: c.tableOf(q)})
	c.mu.Unlock()
	if script != nil {
		if r := script(q); r != nil {
			if r.apply {
				if usual := c.usual(q); r.msg == nil && r.err == nil {
					r.msg, r.cells = usual.msg, usual.cells
				}
			}
			return r
		}
	}
	return c.usual(q)
}

func (c *fakeCluster) tableOf(q *query) string {
	name := q.region()
	if name == nil {
		return ""
	}
	t, _, _ := bytes.Cut(name, []byte(","))
	return string(t)
}

// region gives the name of the (first) region a call is about.
func (q *query) region() []byte {
	switch q.method {
	case "Get":
		var m pb.GetRequest
		if m.UnmarshalVT(q.param) == nil {
			return m.Region.GetValue()
		}
	case "Mutate":
		var m pb.MutateRequest
		if m.UnmarshalVT(q.param) == nil {
			return m.Region.GetValue()
		}
	case "Scan":
		var m pb.ScanRequest
		if m.UnmarshalVT(q.param) == nil {
			return m.Region.GetValue()
		}
	case "Multi":
		var m pb.MultiRequest
		if m.UnmarshalVT(q.param) == nil && len(m.RegionAction) > 0 {
			return m.RegionAction[0].Region.GetValue()
		}
	}
	return nil
}

func (c *fakeCluster) usual(q *query) *reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name := q.region(); string(name) == meta.MetaRegionName {
		if q.srv != c.meta {
			e := wire.NewRemoteError(wire.ClassNotServingRegion, "hbase:meta,,1")
			if q.method == "Multi" {
				return &reply{msg: &pb.MultiResponse{RegionActionResult: []*pb.RegionActionResult{{Exception: e.Named()}}}}
			}
			return &reply{err: e}
		}
		return c.readMeta(q)
	}
	switch q.method {
	case "Get":
		var m pb.GetRequest
		if err := m.UnmarshalVT(q.param); err != nil {
			c.t.Error(err)
		}
		r, e := c.hosted(q.srv, m.Region.GetValue(), m.Get.Row)
		if e != nil {
			return &reply{err: e}
		}
		block := cellsOf(c.value(r, m.Get.Row, q.srv))
		return &reply{msg: &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: new(int32(1))}}, cells: block}
	case "Mutate":
		var m pb.MutateRequest
		if err := m.UnmarshalVT(q.param); err != nil {
			c.t.Error(err)
		}
		r, e := c.hosted(q.srv, m.Region.GetValue(), m.Mutation.Row)
		if e != nil {
			return &reply{err: e}
		}
		if n := m.Mutation.GetNonce(); n == 0 || !c.nonces[n] {
			c.nonces[n] = true
			r.count[string(m.Mutation.Row)]++
		}
		return &reply{msg: &pb.MutateResponse{Processed: new(true)}}
	case "Multi":
		return c.multi(q)
	case "GetServerInfo":
		return &reply{msg: &pb.GetServerInfoResponse{ServerInfo: &pb.ServerInfo{ServerName: q.srv.name.ToProto()}}}
	case "IsMasterRunning":
		return &reply{msg: &pb.IsMasterRunningResponse{IsMasterRunning: new(true)}}
	case "GetClusterStatus":
		return &reply{msg: &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{}}}
	}
	return &reply{err: wire.NewRemoteError(wire.ClassUnsupportedOperation, q.method)}
}

func (c *fakeCluster) value(r *fakeRegion, row []byte, s *fakeServer) cells.Cell {
	return cells.Cell{Row: row, Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 1, Type: cells.Put, Value: fmt.Appendf(nil, "%s:%d", s.name.Host, r.count[string(row)])}
}

func cellsOf(list ...cells.Cell) []byte {
	b, err := wire.KeyValueCodec.AppendCells(nil, list)
	if err != nil {
		panic(err)
	}
	return b
}

// replicate puts a replica of the region on a server.
func (c *fakeCluster) replicate(r *fakeRegion, id int, on *fakeServer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.replicas == nil {
		r.replicas = map[int]*fakeServer{}
	}
	r.replicas[id] = on
}

// replicaOf finds the region of a replica's name.
func (c *fakeCluster) replicaOf(name []byte) (*fakeRegion, int) {
	for _, r := range c.regions {
		for id := range r.replicas {
			if x := r.WithReplica(int32(id)); string(x.Name()) == string(name) {
				return r, id
			}
		}
	}
	return nil, 0
}

// hosted finds the region a server is asked for, or HBase's exception.
func (c *fakeCluster) hosted(s *fakeServer, name, row []byte) (*fakeRegion, *wire.RemoteError) {
	if r, id := c.replicaOf(name); r != nil {
		if r.replicas[id] == s {
			return r, nil
		}
		return nil, wire.NewRemoteError(wire.ClassNotServingRegion, string(name)+" is not online on "+s.name.String())
	}
	if r := c.byName[string(name)]; r != nil {
		if r.on == s && !r.unassigned && !r.Split {
			if row != nil && !r.Contains(row) {
				return nil, wire.NewRemoteError(wire.ClassWrongRegion, string(row))
			}
			return r, nil
		}
		if to, ok := r.moved[s]; ok {
			return nil, wire.NewRegionMoved(to)
		}
	}
	return nil, wire.NewRemoteError(wire.ClassNotServingRegion, string(name)+" is not online on "+s.name.String())
}

func (c *fakeCluster) multi(q *query) *reply {
	var m pb.MultiRequest
	if err := m.UnmarshalVT(q.param); err != nil {
		c.t.Error(err)
	}
	resp := &pb.MultiResponse{}
	in := wire.KeyValueCodec.Reader(q.cells)
	var out []cells.Cell
	for _, ra := range m.RegionAction {
		res := &pb.RegionActionResult{}
		resp.RegionActionResult = append(resp.RegionActionResult, res)
		r, e := c.hosted(q.srv, ra.Region.Value, nil)
		group := ra.GetAtomic() || ra.Condition != nil
		for _, a := range ra.Action {
			roe := &pb.ResultOrException{Index: a.Index}
			if mu := a.Mutation; mu != nil {
				list, err := in.Take(int(mu.GetAssociatedCellCount()), nil)
				if err != nil {
					c.t.Error(err)
				}
				if e != nil {
					continue
				}
				row := mu.Row
				if len(list) > 0 {
					row = list[0].Row
				}
				if n := mu.GetNonce(); n == 0 || !c.nonces[n] {
					c.nonces[n] = true
					r.count[string(row)]++
				}
				roe.Result = &pb.Result{}
			} else if e == nil {
				cell := c.value(r, a.Get.Row, q.srv)
				if group {
					roe.Result = &pb.Result{Cell: []*pb.Cell{{Row: cell.Row, Family: cell.Family, Qualifier: cell.Qualifier, Value: cell.Value}}}
				} else {
					out = append(out, cell)
					roe.Result = &pb.Result{AssociatedCellCount: new(int32(1))}
				}
			}
			res.ResultOrException = append(res.ResultOrException, roe)
		}
		if e != nil {
			res.Exception, res.ResultOrException = e.Named(), nil
		} else if group {
			res.Processed = new(true)
		}
	}
	if in.More() {
		c.t.Error("cells left over in a Multi")
	}
	return &reply{msg: resp, cells: cellsOf(out...)}
}

// readMeta serves hbase:meta.
func (c *fakeCluster) readMeta(q *query) *reply {
	if len(c.sorted) != len(c.regions) {
		c.sorted = slices.Clone(c.regions)
		slices.SortFunc(c.sorted, func(a, b *fakeRegion) int { return meta.CompareRows(a.name, b.name) })
	}
	sorted := c.sorted
	switch q.method {
	case "Scan":
		var m pb.ScanRequest
		if err := m.UnmarshalVT(q.param); err != nil {
			c.t.Error(err)
		}
		if !m.GetCloseScanner() {
			c.t.Error("a scan of meta leaves its scanner open")
		}
		if q.header.Priority != 200 {
			c.t.Errorf("meta read with priority %d", q.header.Priority)
		}
		s := m.Scan
		if s.GetReversed() {
			sorted = slices.Clone(sorted)
			slices.Reverse(sorted)
		}
		resp := &pb.ScanResponse{MoreResults: new(false)}
		var block []byte
		for _, r := range sorted {
			from, to := meta.CompareRows(r.name, s.StartRow), meta.CompareRows(r.name, s.StopRow)
			if s.GetReversed() {
				from, to = -from, -to
			}
			if from < 0 || len(s.StopRow) > 0 && (to > 0 || to == 0 && !s.GetIncludeStopRow()) {
				continue
			}
			row := r.metaCells()
			block = append(block, cellsOf(row...)...)
			resp.CellsPerResult = append(resp.CellsPerResult, uint32(len(row)))
			if len(resp.CellsPerResult) >= int(m.GetNumberOfRows()) {
				break
			}
		}
		return &reply{msg: resp, cells: block}
	case "Multi":
		var m pb.MultiRequest
		if err := m.UnmarshalVT(q.param); err != nil {
			c.t.Error(err)
		}
		res := &pb.RegionActionResult{}
		var out []cells.Cell
		for _, a := range m.RegionAction[0].Action {
			roe := &pb.ResultOrException{Index: a.Index, Result: &pb.Result{}}
			if r := c.byName[string(a.Get.Row)]; r != nil {
				row := r.metaCells()
				out = append(out, row...)
				roe.Result.AssociatedCellCount = new(int32(len(row)))
			}
			res.ResultOrException = append(res.ResultOrException, roe)
		}
		return &reply{msg: &pb.MultiResponse{RegionActionResult: []*pb.RegionActionResult{res}}, cells: cellsOf(out...)}
	case "Get":
		var m pb.GetRequest
		if err := m.UnmarshalVT(q.param); err != nil {
			c.t.Error(err)
		}
		state, ok := c.states[string(m.Get.Row)]
		if !ok {
			return &reply{msg: &pb.GetResponse{Result: &pb.Result{}}}
		}
		v, _ := (&pb.TableState{State: state.Enum()}).MarshalVT()
		cell := cells.Cell{Row: m.Get.Row, Family: []byte("table"), Qualifier: []byte("state"), Timestamp: 1, Type: cells.Put, Value: v}
		return &reply{msg: &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: new(int32(1))}}, cells: cellsOf(cell)}
	}
	return &reply{err: wire.NewRemoteError(wire.ClassUnsupportedOperation, q.method)}
}

func (r *fakeRegion) metaCells() []cells.Cell {
	row := r.name
	cell := func(q string, v []byte) cells.Cell {
		return cells.Cell{Row: row, Family: []byte("info"), Qualifier: []byte(q), Timestamp: 1, Type: cells.Put, Value: v}
	}
	list := []cells.Cell{
		cell("regioninfo", r.Marshal()),
		cell("seqnumDuringOpen", binary.BigEndian.AppendUint64(nil, uint64(r.seq))),
		cell("server", []byte(r.on.name.Address())),
		cell("serverstartcode", binary.BigEndian.AppendUint64(nil, r.on.name.StartCode)),
	}
	state := "OPEN"
	if r.unassigned {
		state = "OPENING"
	}
	for id, on := range r.replicas {
		suffix := fmt.Sprintf("_%04X", id)
		list = append(list,
			cell("seqnumDuringOpen"+suffix, binary.BigEndian.AppendUint64(nil, uint64(r.seq))),
			cell("server"+suffix, []byte(on.name.Address())),
			cell("serverstartcode"+suffix, binary.BigEndian.AppendUint64(nil, on.name.StartCode)),
			cell("state"+suffix, []byte("OPEN")))
	}
	return append(list, cell("state", []byte(state)))
}

// fakeRegistry answers from the fake cluster, and counts.
type fakeRegistry struct {
	c     *fakeCluster
	err   error
	asked map[string]int
	mu    sync.Mutex
}

func (r *fakeRegistry) ask(what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	r.asked[what]++
	return r.err
}

func (r *fakeRegistry) MetaLocation(ctx context.Context) (meta.ServerName, error) {
	if err := r.ask("meta"); err != nil {
		return meta.ServerName{}, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.c.meta.name, nil
}

func (r *fakeRegistry) ActiveMaster(ctx context.Context) (meta.ServerName, error) {
	if err := r.ask("master"); err != nil {
		return meta.ServerName{}, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.c.master == nil {
		return meta.ServerName{}, &registry.NotYetError{What: "active master", Where: "fake", State: "missing"}
	}
	return r.c.master.name, nil
}

func (r *fakeRegistry) ClusterID(ctx context.Context) (string, error) { return "fake", nil }
func (r *fakeRegistry) String() string                                { return "fake" }
func (r *fakeRegistry) Close() error                                  { return nil }

// open makes a Core on the fake and closes both at the end.
func (c *fakeCluster) open(edit ...func(*Config)) *Core {
	cfg := Config{Registry: &fakeRegistry{c: c}, User: "test", Dial: c.dial}
	for _, f := range edit {
		f(&cfg)
	}
	core, err := Open(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		core.Close()
		c.stop()
	})
	return core
}

// get reads a row: the value says which server answered.
func get(ctx context.Context, core *Core, table meta.TableName, row string) (string, Answer, error) {
	var resp pb.GetResponse
	a, err := core.CallRegion(ctx, &RegionCall{
		Table: table, Row: []byte(row), Method: "Get", Op: "get", Result: &resp,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			return &pb.GetRequest{Region: specifier(region), Get: &pb.Get{Row: []byte(row)}}, nil
		},
	})
	if err != nil {
		return "", a, err
	}
	list, err := wire.KeyValueCodec.DecodeCells(a.Cells, nil)
	if err != nil || len(list) != 1 {
		return "", a, fmt.Errorf("%d cells, %w", len(list), err)
	}
	return string(list[0].Value), a, nil
}

// mutate counts a change on a row.
func mutate(ctx context.Context, core *Core, table meta.TableName, row string, idem Idempotency, nonce uint64) (Answer, error) {
	var resp pb.MutateResponse
	return core.CallRegion(ctx, &RegionCall{
		Table: table, Row: []byte(row), Method: "Mutate", Op: "mutate", Result: &resp, Idempotency: idem,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			return &pb.MutateRequest{Region: specifier(region), Mutation: &pb.MutationProto{Row: []byte(row), Nonce: &nonce}}, nil
		},
	})
}

func specifier(region []byte) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: region}
}
