package hbase

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
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
	add(&pb.ScanResponse{CellsPerResult: []uint32{2, 1, 0, 1, 0}, PartialFlagPerResult: []bool{false, false, false, true}}, block)
	add(&pb.ScanResponse{CellsPerResult: []uint32{1, 1, 1, 1}, PartialFlagPerResult: []bool{false, false, false, true}}, block)
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
		// st is shown answers as they come, parted all of them as parts.
		st, parted := newScanState(s, 1<<16), newScanState(s, 1<<16)
		for _, st := range []*scanState{st, parted} {
			if err := st.opened(st.opening(), []byte("a"), []byte("e"), 1); err != nil {
				t.Fatal(err)
			}
		}
		var last []byte
		begun := false
		for range 3 { // the same answer again is out of order, or more of the row
			reply, err := replyOf(&resp, block)
			if err != nil {
				return
			}
			parts := reply.scanAnswer
			if len(parts.plain.counts) > 0 {
				if parts.parts, err = parts.plain.parts(nil); err != nil {
					t.Fatalf("a block that was looked through: %v", err)
				}
			}
			want, wantErr := parted.accept(&parts, nil)
			rows, err := st.answer(&reply.scanAnswer)
			var out []*Result
			for n := rows.len(); rows.more(); n-- {
				if n != rows.len() {
					t.Fatalf("%d rows left, want %d", rows.len(), n)
				}
				out = append(out, rows.take())
			}
			if len(out)+len(want) > 0 && !reflect.DeepEqual(out, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) || rows.err != nil {
				t.Fatalf("%v, %v, %v, as parts %v, %v", out, err, rows.err, want, wantErr)
			}
			if o, p := st.opening(), parted.opening(); st.done != parted.done || st.open != parted.open || !st.done && !reflect.DeepEqual(o, p) {
				t.Fatalf("stands at %+v, with parts at %+v", o, p)
			}
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

// TestPlainRowsAreMadeAsTaken: ten thousand rows of an answer are the rows that
// were sent, and as long as nobody takes them they need no memory of their own.
func TestPlainRowsAreMadeAsTaken(t *testing.T) {
	const n = 10_000
	var block []byte
	var counts []uint32
	for i := range n {
		k := i % 3 // cells
		counts = append(counts, uint32(k))
		for q := range k {
			var err error
			block, err = wire.KeyValueCodec.AppendCell(block, &cells.Cell{
				Row: fmt.Appendf(nil, "r%05d", i), Family: []byte("f"), Qualifier: fmt.Append(nil, q), Timestamp: int64(i), Type: cells.Put, Value: fmt.Append(nil, i)})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	reply, err := replyOf(&pb.ScanResponse{CellsPerResult: counts, Stale: new(true)}, block)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		s    *Scan
		rows int
		last string
	}{
		{"all", &Scan{}, n - (n+2)/3, "r09998"},
		{"limit", &Scan{Limit: 1001}, 1001, "r01501"},
		{"stop", &Scan{Stop: []byte("r00100"), IncludeStop: true}, 67, "r00100"},
	} {
		st := newScanState(c.s, 1<<20)
		if err := st.opened(st.opening(), nil, nil, 1); err != nil {
			t.Fatal(err)
		}
		var rows scanRows
		if allocs := testing.AllocsPerRun(1, func() {
			*st = *newScanState(c.s, 1<<20)
			if rows, err = st.answer(&reply.scanAnswer); err != nil {
				t.Fatal(err)
			}
		}); allocs > 5 {
			t.Errorf("%s: %v allocations before a row is taken", c.name, allocs)
		}
		if rows.len() != c.rows {
			t.Errorf("%s: %d rows, want %d", c.name, rows.len(), c.rows)
		}
		seen, last := 0, ""
		for rows.more() {
			r := rows.take()
			i, err := strconv.Atoi(string(r.Row[1:]))
			if err != nil || len(r.Cells) != i%3 || !r.Stale || r.Partial || string(r.Row) <= last {
				t.Fatalf("%s: %v after %s, %v", c.name, r, last, err)
			}
			for q, cell := range r.Cells {
				if string(cell.Row) != string(r.Row) || string(cell.Qualifier) != fmt.Sprint(q) || string(cell.Value) != fmt.Sprint(i) {
					t.Fatalf("%s: row %d has %v", c.name, i, cell)
				}
			}
			// What callers do with theirs is nobody else's business.
			r.Cells = append(r.Cells, Cell{})
			_ = append(r.Cells[0].Value, "xxxxxxxxxxxxxxxxxxxxx"...)
			seen, last = seen+1, string(r.Row)
		}
		if seen != c.rows || last != c.last {
			t.Errorf("%s: %d rows to %s, want %d to %s", c.name, seen, last, c.rows, c.last)
		}
	}
}

// TestPlainRowsBetweenParts: where answers are cut within rows, only those rows
// are made before they are taken, and nothing of an answer is needed behind its
// last row.
func TestPlainRowsBetweenParts(t *testing.T) {
	const rows, width, perAnswer = 100, 3, 31 // no multiple of width
	var all []Cell
	for i := range rows {
		for q := range width {
			all = append(all, Cell{Row: fmt.Appendf(nil, "r%03d", i), Family: []byte("f"), Qualifier: fmt.Append(nil, q), Timestamp: 1, Type: cells.Put, Value: fmt.Append(nil, i)})
		}
	}
	for _, limit := range []int{0, 10, 11, 12, 50} {
		st := newScanState(&Scan{Limit: limit}, 1<<20)
		if err := st.opened(st.opening(), nil, nil, 1); err != nil {
			t.Fatal(err)
		}
		seen, lazy := 0, 0
		for at := 0; at < len(all) && !st.done; at += perAnswer {
			part := all[at:min(at+perAnswer, len(all))]
			block, err := wire.KeyValueCodec.AppendCells(nil, part)
			if err != nil {
				t.Fatal(err)
			}
			resp := &pb.ScanResponse{MoreResultsInRegion: new(at+perAnswer < len(all))}
			for i := range part {
				if i == 0 || !bytes.Equal(part[i].Row, part[i-1].Row) {
					resp.CellsPerResult = append(resp.CellsPerResult, 0)
					resp.PartialFlagPerResult = append(resp.PartialFlagPerResult, false)
				}
				resp.CellsPerResult[len(resp.CellsPerResult)-1]++
			}
			last := len(resp.PartialFlagPerResult) - 1
			resp.PartialFlagPerResult[last] = (at+len(part))%width != 0
			reply, err := replyOf(resp, block)
			if err != nil {
				t.Fatal(err)
			}
			got, err := st.answer(&reply.scanAnswer)
			if err != nil {
				t.Fatal(err)
			}
			if !got.isMade() && len(got.made) <= 1 {
				lazy++
			}
			for got.more() {
				r := got.take()
				want := all[seen*width : (seen+1)*width]
				if !sameCells(r.Cells, want) || !bytes.Equal(r.Row, want[0].Row) || r.Partial {
					t.Fatalf("limit %d: row %d is %v", limit, seen, r)
				}
				seen++
			}
			clear(block)
		}
		want := rows
		if limit > 0 {
			want = limit
		}
		if seen != want || lazy == 0 {
			t.Errorf("limit %d: %d rows, want %d; %d answers of rows not made yet", limit, seen, want, lazy)
		}
		if n := (len(all) + perAnswer - 1) / perAnswer; limit == 0 && lazy != n {
			t.Errorf("%d answers of rows not made yet, want %d", lazy, n)
		}
	}
}
