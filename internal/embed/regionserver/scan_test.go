package regionserver_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/regionserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// fakeTable is a virtual table of n rows; each costs delay to render.
type fakeTable struct {
	n     int
	delay time.Duration
	cmp   func(a, b []byte) int
	rows  [][]byte
}

func newFakeTable(n int, delay time.Duration) *fakeTable {
	f := &fakeTable{n: n, delay: delay, cmp: bytes.Compare}
	for i := range n {
		f.rows = append(f.rows, fmt.Appendf(nil, "row%04d", i))
	}
	return f
}

func (f *fakeTable) Schema() *cells.Schema {
	return cells.NewSchema(cells.DefaultFamily([]byte("info")))
}
func (f *fakeTable) Compare(a, b []byte) int { return f.cmp(a, b) }
func (f *fakeTable) Rows(start []byte, reversed bool, _ int64) iter.Seq[[]cells.Cell] {
	return func(yield func([]cells.Cell) bool) {
		rows := slices.Clone(f.rows)
		if reversed {
			slices.Reverse(rows)
		}
		for _, row := range rows {
			if start != nil && (!reversed && f.cmp(row, start) < 0 || reversed && f.cmp(row, start) > 0) {
				continue
			}
			if f.delay > 0 {
				time.Sleep(f.delay)
			}
			if !yield([]cells.Cell{
				{Row: row, Family: []byte("info"), Qualifier: []byte("a"), Timestamp: 1, Type: cells.Put, Value: []byte("1")},
				{Row: row, Family: []byte("info"), Qualifier: []byte("b"), Timestamp: 1, Type: cells.Put, Value: []byte("2")},
			}) {
				return
			}
		}
	}
}

// virtualServer is a region server without a store that serves hbase:meta from
// f, reached through a pipe, so that it can live in a synctest bubble.
func virtualServer(t *testing.T, f *fakeTable, change func(*regionserver.Config)) (*regionserver.Server, *rpctest.Client) {
	t.Helper()
	name := meta.ServerName{Host: "h", Port: 1, StartCode: 1}
	cfg := regionserver.Config{Name: name, Cluster: &fakeCluster{rs: name}}
	if change != nil {
		change(&cfg)
	}
	s := regionserver.New(cfg)
	r := &host.Region{Info: meta.MetaRegion, Virtual: f, OpenSeq: 1, Encoded: meta.MetaEncodedName, Name: []byte(meta.MetaRegionName)}
	s.OpenRegion(r)
	mine, theirs := net.Pipe()
	s.RPC().ServeConn(theirs)
	c, err := rpctest.New(mine, rpctest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Kill()
		s.Wait()
	})
	return s, c
}

var metaSpec = named([]byte(meta.MetaRegionName))

func scanCall(t *testing.T, c *rpctest.Client, in *pb.ScanRequest) (*pb.ScanResponse, []cells.Cell, error) {
	t.Helper()
	out := &pb.ScanResponse{}
	got, err := c.Call("Scan", in, out)
	return out, got, err
}

func openScan(rows int) *pb.ScanRequest {
	return &pb.ScanRequest{Region: metaSpec, Scan: &pb.Scan{}, NumberOfRows: new(uint32(rows)), ClientHandlesPartials: new(true), ClientHandlesHeartbeats: new(true)}
}

func nextScan(id, seq uint64, rows int) *pb.ScanRequest {
	return &pb.ScanRequest{ScannerId: &id, NextCallSeq: &seq, NumberOfRows: new(uint32(rows)), ClientHandlesPartials: new(true), ClientHandlesHeartbeats: new(true)}
}

func TestLeaseExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := virtualServer(t, newFakeTable(10, 0), nil)
		out, _, err := scanCall(t, c, openScan(1))
		if err != nil || out.GetTtl() != 60_000 {
			t.Fatalf("%v, ttl %d", err, out.GetTtl())
		}
		id := out.GetScannerId()
		// Within the lease, and renewed, it lives on.
		time.Sleep(59 * time.Second)
		if _, _, err := scanCall(t, c, &pb.ScanRequest{ScannerId: &id, NextCallSeq: new(uint64(0)), Renew: new(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if out, _, err = scanCall(t, c, nextScan(id, 1, 1)); err != nil || len(out.CellsPerResult) != 1 {
			t.Fatal(out, err)
		}
		time.Sleep(61 * time.Second)
		_, _, err = scanCall(t, c, nextScan(id, 2, 1))
		if x := rpctest.Remote(err); x == nil || x.Short() != "UnknownScannerException" || !x.DoNotRetry || !strings.Contains(x.Message, "lease expired") {
			t.Errorf("after the lease: %v", err)
		}
	})
}

// TestLeaseSweep: scanners nobody asks for again are freed.
func TestLeaseSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := virtualServer(t, newFakeTable(10, 0), func(cfg *regionserver.Config) { cfg.MaxScanners = 3 })
		for i := range 4 {
			_, _, err := scanCall(t, c, openScan(1))
			if want := i == 3; (err != nil) != want {
				t.Fatalf("scanner %d: %v", i, err)
			}
			if i == 3 && class(t, err) != "RegionTooBusyException" {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(65 * time.Second)
		for range 3 {
			if _, _, err := scanCall(t, c, openScan(1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := virtualServer(t, newFakeTable(300, 20*time.Millisecond), func(cfg *regionserver.Config) { cfg.ScannerLease = 2 * time.Second })
		// 300 rows cost 6 s; half the lease is 1 s.
		in := openScan(1000)
		in.Scan.NeedCursorResult = new(true)
		begin := time.Now()
		out, _, err := scanCall(t, c, in)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d < time.Second || d > 1100*time.Millisecond {
			t.Errorf("answered after %v, want half the lease", d)
		}
		n := len(out.CellsPerResult)
		if !out.GetHeartbeatMessage() || !out.GetMoreResults() || !out.GetMoreResultsInRegion() || n < 45 || n > 55 {
			t.Errorf("heartbeat: %d results, %v", n, out.GetHeartbeatMessage())
		}
		if out.Cursor == nil || !strings.HasPrefix(string(out.Cursor.Row), "row00") {
			t.Errorf("cursor %v", out.Cursor)
		}
		// The rest comes without loss or repetition.
		id := out.GetScannerId()
		for seq := uint64(0); out.GetMoreResultsInRegion(); seq++ {
			if out, _, err = scanCall(t, c, nextScan(id, seq, 1000)); err != nil {
				t.Fatal(err)
			}
			n += len(out.CellsPerResult)
		}
		if n != 300 {
			t.Errorf("%d rows in all", n)
		}

		// The client's patience is shorter than the lease.
		begin = time.Now()
		resp := &pb.ScanResponse{}
		if _, err := c.Do(rpctest.Request{Method: "Scan", Param: openScan(1000), Timeout: 400 * time.Millisecond}, resp); err != nil || !resp.GetHeartbeatMessage() {
			t.Fatal(resp, err)
		}
		if d := time.Since(begin); d > 250*time.Millisecond {
			t.Errorf("answered after %v, want half of the timeout", d)
		}

		// A client that knows no heartbeats waits for its rows.
		in = openScan(100)
		in.ClientHandlesHeartbeats = nil
		if out, _, err = scanCall(t, c, in); err != nil || len(out.CellsPerResult) != 100 || out.HeartbeatMessage != nil {
			t.Errorf("%d results, %v", len(out.CellsPerResult), err)
		}
	})
}

// TestHeartbeatWithoutRows: a filter that lets nothing pass.
func TestHeartbeatWithoutRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := virtualServer(t, newFakeTable(300, 20*time.Millisecond), func(cfg *regionserver.Config) { cfg.ScannerLease = 4 * time.Second })
		in := openScan(10)
		in.Scan.NeedCursorResult = new(true)
		in.TrackScanMetrics = new(true)
		in.Scan.Filter = rowFilter("BinaryComparator", &pb.BinaryComparator{Comparable: &pb.ByteArrayComparable{Value: []byte("zz")}})
		out, got, err := scanCall(t, c, in)
		if err != nil || len(got) != 0 || !out.GetHeartbeatMessage() || out.Cursor == nil || !out.GetMoreResultsInRegion() {
			t.Fatalf("%v, %v", out, err)
		}
		m := make(map[string]int64)
		for _, p := range out.ScanMetrics.GetMetrics() {
			m[p.GetName()] = p.GetValue()
		}
		if m["ROWS_SCANNED"] < 90 || m["ROWS_FILTERED"] != m["ROWS_SCANNED"] {
			t.Errorf("metrics %v", m)
		}
		id := out.GetScannerId()
		for seq := uint64(0); out.GetMoreResultsInRegion(); seq++ {
			if out, _, err = scanCall(t, c, nextScan(id, seq, 10)); err != nil {
				t.Fatal(err)
			}
		}
		if !out.GetMoreResults() {
			t.Error("a filter that rejects rows does not end the scan")
		}
	})
}

// TestBusyScanner: a second call while one runs finds no lease; the first is
// not disturbed.
func TestBusyScanner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := virtualServer(t, newFakeTable(10, 100*time.Millisecond), nil)
		out, _, err := scanCall(t, c, openScan(1))
		if err != nil {
			t.Fatal(err)
		}
		id := out.GetScannerId()
		first, err := c.Send(rpctest.Request{Method: "Scan", Param: nextScan(id, 0, 5)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		second, err := c.Send(rpctest.Request{Method: "Scan", Param: nextScan(id, 1, 5)})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Receive()
		if err != nil || resp.CallID != second || resp.Exception == nil || resp.Exception.Short() != "LeaseException" || !resp.Exception.DoNotRetry {
			t.Fatalf("second call: %+v, %v", resp, err)
		}
		if resp, err = c.Receive(); err != nil || resp.CallID != first || resp.Exception != nil {
			t.Fatalf("first call: %+v, %v", resp, err)
		}
		if _, _, err = scanCall(t, c, nextScan(id, 1, 1)); err != nil {
			t.Error(err)
		}
	})
}

// TestLateScan: the client has given up before the rows are there: its scanner
// ends, since a later call would leave the rows out.
func TestLateScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := virtualServer(t, newFakeTable(20, 100*time.Millisecond), nil)
		in := openScan(10)
		in.ClientHandlesHeartbeats = nil
		_, err := c.Do(rpctest.Request{Method: "Scan", Param: in, Timeout: 300 * time.Millisecond}, nil)
		if x := rpctest.Remote(err); x == nil || x.Short() != "ScannerResetException" {
			t.Errorf("%v", err)
		}
	})
}

func TestCloseUnderScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := virtualServer(t, newFakeTable(1000, 10*time.Millisecond), nil)
		// Closing does not wait for a scan of 10 s.
		if _, err := c.Send(rpctest.Request{Method: "Scan", Param: openScan(1000)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		begin := time.Now()
		if err := s.CloseRegion(context.Background(), meta.MetaEncodedName, nil); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d > 100*time.Millisecond {
			t.Errorf("closing waited %v for a scan", d)
		}
		resp, err := c.Receive()
		if err != nil || resp.Exception == nil {
			t.Fatalf("the scan: %+v, %v", resp, err)
		}
	})
}

func TestVirtualTable(t *testing.T) {
	f := newFakeTable(0, 0)
	f.cmp = meta.CompareRows
	tables := []string{"t", "t-1", "t.x", "ns:t"}
	slices.Sort(tables)
	for _, n := range tables {
		tn, err := meta.ParseTableName(n)
		if err != nil {
			t.Fatal(err)
		}
		f.rows = append(f.rows, []byte(n))
		for _, start := range []string{"", " x", ",", "a,b", "z"} {
			r := meta.Region{Table: tn, ID: 5, Start: []byte(start)}
			f.rows = append(f.rows, r.Name())
		}
	}
	slices.SortFunc(f.rows, meta.CompareRows)
	_, c := virtualServer(t, f, nil)
	tn, _ := meta.ParseTableName("t")
	rowsOf := func(got []cells.Cell) (rows []string) {
		for _, x := range got {
			if k := string(x.Row); len(rows) == 0 || rows[len(rows)-1] != k {
				rows = append(rows, k)
			}
		}
		return rows
	}
	in := openScan(100)
	in.Scan.StartRow, in.Scan.StopRow = meta.FirstRow(tn), meta.StopRow(tn)
	_, got, err := scanCall(t, c, in)
	if err != nil || len(rowsOf(got)) != 5 {
		t.Errorf("regions of t: %q, %v", rowsOf(got), err)
	}
	for _, r := range rowsOf(got) {
		if !strings.HasPrefix(r, "t,") {
			t.Errorf("row %q is not of table t", r)
		}
	}
	// The lookup of a row: reversed, one row, closed at once.
	in = openScan(1)
	in.Scan.Reversed = new(true)
	in.Scan.StartRow, in.Scan.StopRow = meta.SearchRow(tn, []byte("a,c")), []byte("t,,")
	in.Scan.IncludeStopRow = new(true)
	in.CloseScanner = new(true)
	out, got, err := scanCall(t, c, in)
	if err != nil || len(rowsOf(got)) != 1 || !strings.HasPrefix(rowsOf(got)[0], "t,a,b,5.") {
		t.Errorf("region of a,c: %q, %v", rowsOf(got), err)
	}
	if !out.GetMoreResults() {
		t.Errorf("%v", out)
	}
	// Get, filter and column.
	get := &pb.GetRequest{Region: metaSpec, Get: &pb.Get{Row: []byte("t-1"), Column: []*pb.Column{{Family: []byte("info"), Qualifier: [][]byte{[]byte("b")}}}}}
	if got, err = c.Call("Get", get, nil); err != nil || len(got) != 1 || string(got[0].Value) != "2" {
		t.Errorf("get: %v, %v", got, err)
	}
	get.Get.Row = []byte("nothing")
	if got, err = c.Call("Get", get, nil); err != nil || len(got) != 0 {
		t.Errorf("get of a missing row: %v, %v", got, err)
	}
	get.Get.Column[0].Family = []byte("x")
	if _, err = c.Call("Get", get, nil); class(t, err) != "NoSuchColumnFamilyException" {
		t.Errorf("get of a missing family: %v", err)
	}
	in = openScan(100)
	in.Scan.Filter = filterOf("PrefixFilter", &pb.PrefixFilter{Prefix: []byte("t.x")})
	if _, got, err = scanCall(t, c, in); err != nil || len(rowsOf(got)) != 6 {
		t.Errorf("prefix t.x: %q, %v", rowsOf(got), err)
	}
	put := &pb.MutateRequest{Region: metaSpec, Mutation: putOf(&host.Region{}, "t", "v").Mutation}
	if _, err = c.Call("Mutate", put, nil); class(t, err) != "DoNotRetryIOException" {
		t.Errorf("write to meta: %v", err)
	}
	multi := &pb.MultiRequest{RegionAction: []*pb.RegionAction{
		{Region: metaSpec, Action: []*pb.Action{{Mutation: put.Mutation}}},
		{Region: metaSpec, Atomic: new(true), Action: []*pb.Action{{Mutation: put.Mutation}}},
	}}
	var mout pb.MultiResponse
	if _, err = c.Call("Multi", multi, &mout); err != nil || mout.RegionActionResult[0].ResultOrException[0].Exception == nil || mout.RegionActionResult[1].Exception == nil {
		t.Errorf("multi on meta: %v, %v", &mout, err)
	}
}
