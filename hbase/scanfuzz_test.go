package hbase

import (
	"bytes"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// FuzzScanAnswer gives a scan whatever answers come, in every mode: what it
// hands out is in order and within its range, a row once unless in parts, and
// nothing else happens but an error.
func FuzzScanAnswer(f *testing.F) {
	var block []byte
	for _, row := range []string{"b", "b", "c", "d"} {
		var err error
		if block, err = wire.KeyValueCodec.AppendCell(block, &cells.Cell{Row: []byte(row), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 1, Type: cells.Put, Value: []byte("v")}); err != nil {
			f.Fatal(err)
		}
	}
	add := func(resp *pb.ScanResponse, block []byte) {
		msg, err := resp.MarshalVT()
		if err != nil {
			f.Fatal(err)
		}
		for mode := range byte(16) {
			f.Add(msg, block, mode)
		}
	}
	add(&pb.ScanResponse{CellsPerResult: []uint32{2, 1, 1}, MoreResultsInRegion: new(false)}, block)
	add(&pb.ScanResponse{CellsPerResult: []uint32{1, 1, 2}, PartialFlagPerResult: []bool{true, true, false}}, block)
	add(&pb.ScanResponse{CellsPerResult: []uint32{1 << 31, 1 << 31, 0}}, block)
	add(&pb.ScanResponse{HeartbeatMessage: new(true), Cursor: &pb.Cursor{Row: []byte("c")}}, nil)
	add(&pb.ScanResponse{Results: []*pb.Result{{Cell: []*pb.Cell{{Row: []byte("b"), Family: []byte("f")}}}}, MoreResults: new(false)}, nil)
	f.Fuzz(func(t *testing.T, msg, block []byte, mode byte) {
		var resp pb.ScanResponse
		if resp.UnmarshalVT(msg) != nil {
			return
		}
		s := &Scan{Start: []byte("a"), Stop: []byte("d"), Reversed: mode&1 > 0, AllowPartial: mode&2 > 0, NeedCursor: mode&4 > 0}
		if s.Reversed {
			s.Start, s.Stop = s.Stop, s.Start
		}
		if mode&8 > 0 {
			s.Batch, s.Limit = 2, 3
		}
		st := newScanState(s, 1<<16)
		if err := st.opened(st.opening(), []byte("a"), []byte("e"), 1); err != nil {
			t.Fatal(err)
		}
		var last []byte
		begun := false
		for range 3 { // the same answer again is out of order, or more of the row
			reply, err := replyOf(&resp, block)
			if err != nil {
				return
			}
			out, err := st.accept(&reply.scanAnswer, nil)
			for _, r := range out {
				if r.Cursor {
					continue
				}
				order := bytes.Compare(r.Row, last)
				if s.Reversed {
					order = -order
				}
				if begun && (order < 0 || order == 0 && st.joins()) {
					t.Fatalf("row %q after %q", r.Row, last)
				}
				if len(r.Cells) == 0 || s.Batch > 0 && !s.AllowPartial && len(r.Cells) > s.Batch {
					t.Fatalf("%d cells at once", len(r.Cells))
				}
				begun, last = true, r.Row
			}
			if err != nil || st.done || !st.open {
				return
			}
		}
	})
}
