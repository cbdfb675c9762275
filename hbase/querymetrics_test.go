package hbase

import (
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func TestQueryMetrics(t *testing.T) {
	metrics := &pb.QueryMetrics{BlockBytesScanned: new(uint64(4711))}
	core := &scriptedCore{answer: &pb.GetResponse{Result: &pb.Result{Metrics: metrics}}}
	table := scriptedTable(core)
	g := &Get{Row: []byte("r"), QueryMetrics: true}
	if res, err := table.Get(t.Context(), g); err != nil || res.BlockBytesScanned != 4711 {
		t.Errorf("get: %+v, %v", res, err)
	}
	var p pb.Get
	if err := fillGet(&p, g, false); err != nil || !p.GetQueryMetricsEnabled() {
		t.Errorf("get: %v, %v", &p, err)
	}
	core.answer = &pb.MutateResponse{Processed: new(true), Metrics: metrics}
	cm := NewCheckAndMutate("r").IfNotExists("f", "q").Then(NewDelete("r"))
	cm.QueryMetrics = true
	if res, err := table.CheckAndMutate(t.Context(), cm); err != nil || res.Result.BlockBytesScanned != 4711 {
		t.Errorf("check and mutate: %+v, %v", res, err)
	}
	if c, err := pbCondition(cm); err != nil || !c.GetQueryMetricsEnabled() {
		t.Errorf("check and mutate: %v, %v", c, err)
	}
	if s, err := pbScan(&Scan{QueryMetrics: true}, 1); err != nil || !s.GetQueryMetricsEnabled() {
		t.Errorf("scan: %v, %v", s, err)
	}
	// A row in two parts has taken the sum of both, the next one its own.
	block, err := codec.AppendCells(nil, []Cell{
		{Row: []byte("a"), Family: []byte("f"), Qualifier: []byte("1"), Timestamp: 1, Type: 4},
		{Row: []byte("a"), Family: []byte("f"), Qualifier: []byte("2"), Timestamp: 1, Type: 4},
		{Row: []byte("b"), Family: []byte("f"), Qualifier: []byte("1"), Timestamp: 1, Type: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := replyOf(&pb.ScanResponse{
		CellsPerResult: []uint32{1, 1, 1}, PartialFlagPerResult: []bool{true, false, false},
		QueryMetrics: []*pb.QueryMetrics{{BlockBytesScanned: new(uint64(1))}, {BlockBytesScanned: new(uint64(2))}, {BlockBytesScanned: new(uint64(4))}},
	}, block)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{1, 2, 4} {
		if reply.parts[i].scanned != want {
			t.Errorf("part %d has %d, want %d", i, reply.parts[i].scanned, want)
		}
	}
	st := newScanState(&Scan{}, 1<<20)
	var results []*Result
	for i := range reply.parts {
		p := &reply.parts[i]
		st.row = p.cells[0].Row
		if results, err = st.take(p, results); err != nil {
			t.Fatal(err)
		}
		if !p.partial {
			results = st.complete(results)
		}
	}
	if len(results) != 2 || results[0].BlockBytesScanned != 3 || results[1].BlockBytesScanned != 4 {
		t.Errorf("rows %+v", results)
	}
}
