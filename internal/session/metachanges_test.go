package session

import (
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
)

// changed is a row of meta as it is after a region has opened.
func changed(table string, start string, ts uint64, columns ...string) *pb.Result {
	name, err := meta.ParseTableName(table)
	if err != nil {
		panic(err)
	}
	region := meta.Region{Table: name, ID: 17, Start: []byte(start)}
	values := map[string][]byte{
		"regioninfo": region.Marshal(), "server": []byte("rs1:16020"), "state": []byte("OPEN"),
		"serverstartcode": binary.BigEndian.AppendUint64(nil, 99), "seqnumDuringOpen": binary.BigEndian.AppendUint64(nil, 5),
	}
	if columns == nil {
		columns = []string{"regioninfo", "seqnumDuringOpen", "server", "serverstartcode", "state"}
	}
	res := &pb.Result{}
	for i, q := range columns {
		res.Cell = append(res.Cell, &pb.Cell{
			Row: region.Name(), Family: []byte("info"), Qualifier: []byte(q), Value: values[q],
			Timestamp: new(ts + uint64(i)), CellType: pb.CellType_PUT.Enum(),
		})
	}
	return res
}

func TestChangesOfMeta(t *testing.T) {
	m := metaReader{&Core{cfg: Config{Logger: slog.New(slog.DiscardHandler)}}}
	row := func(start string) string { return string(changed("t", start, 0).Cell[0].Row) }
	partial := func(r *pb.Result) *pb.Result { r.Partial = new(true); return r }
	for _, tc := range []struct {
		name   string
		resp   *pb.ScanResponse
		start  string
		want   string // start keys of the locations
		newest int64
		rows   int
		next   string
		err    string
	}{
		{name: "nothing", resp: &pb.ScanResponse{MoreResults: new(true), MoreResultsInRegion: new(false)}},
		{name: "two, to the end", resp: &pb.ScanResponse{
			Results:     []*pb.Result{changed("t", "a", 10), changed("t", "b", 8)},
			MoreResults: new(true), MoreResultsInRegion: new(false),
		}, want: "a b", newest: 14, rows: 2},
		{name: "more to come", resp: &pb.ScanResponse{
			Results:     []*pb.Result{changed("t", "a", 10)},
			MoreResults: new(true), MoreResultsInRegion: new(true),
		}, want: "a", newest: 14, rows: 1, next: row("a") + "\x00"},
		{name: "another table's", resp: &pb.ScanResponse{
			Results:     []*pb.Result{changed("other", "a", 100), changed("t", "b", 8)},
			MoreResults: new(true), MoreResultsInRegion: new(false),
		}, want: "b", newest: 104, rows: 2},
		{name: "a heartbeat without rows", resp: &pb.ScanResponse{
			HeartbeatMessage: new(true), Cursor: &pb.Cursor{Row: []byte(row("k"))}, MoreResults: new(true), MoreResultsInRegion: new(true),
		}, next: row("k")},
		{name: "a heartbeat with a row", resp: &pb.ScanResponse{
			Results:          []*pb.Result{changed("t", "a", 10)},
			HeartbeatMessage: new(true), Cursor: &pb.Cursor{Row: []byte(row("k"))}, MoreResults: new(true), MoreResultsInRegion: new(true),
		}, want: "a", newest: 14, rows: 1, next: row("k")},
		{name: "a heartbeat of a server without cursors", resp: &pb.ScanResponse{
			HeartbeatMessage: new(true), MoreResults: new(true), MoreResultsInRegion: new(true),
		}, err: "a heartbeat that does not say where it is"},
		{name: "a row in two parts", resp: &pb.ScanResponse{
			Results: []*pb.Result{
				partial(changed("t", "a", 10, "regioninfo", "seqnumDuringOpen")), changed("t", "a", 20, "server", "serverstartcode", "state"),
				changed("t", "b", 8),
			},
			MoreResults: new(true), MoreResultsInRegion: new(false),
		}, want: "a b", newest: 22, rows: 2},
		{name: "a row that is cut off", resp: &pb.ScanResponse{
			Results:     []*pb.Result{changed("t", "a", 10), partial(changed("t", "b", 8, "regioninfo"))},
			MoreResults: new(true), MoreResultsInRegion: new(true),
		}, want: "a", newest: 14, rows: 1, next: row("b")},
		{name: "nothing but a row that is cut off", start: row("b"), resp: &pb.ScanResponse{
			Results:     []*pb.Result{partial(changed("t", "b", 8, "regioninfo"))},
			MoreResults: new(true), MoreResultsInRegion: new(true),
		}, err: "does not fit"},
		{name: "without region info", resp: &pb.ScanResponse{
			Results:     []*pb.Result{changed("t", "b", 8, "server", "serverstartcode")},
			MoreResults: new(true), MoreResultsInRegion: new(false),
		}, want: "b(name)", newest: 9, rows: 1},
		{name: "HBase 1.0", resp: &pb.ScanResponse{
			Results: []*pb.Result{changed("t", "a", 10), changed("t", "b", 8)}, MoreResults: new(true),
		}, want: "a b", newest: 14, rows: 2, next: row("b") + "\x00"},
		{name: "beyond the range", resp: &pb.ScanResponse{
			Results: []*pb.Result{changed("zz", "a", 10)}, MoreResults: new(true), MoreResultsInRegion: new(true),
		}, newest: 14, rows: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := meta.TableName{Namespace: meta.DefaultNamespace, Qualifier: "t"}
			scan := route.ChangeScan{StartRow: meta.FirstRow(name), StopRow: meta.StopRow(name), Limit: 2, Wanted: func(table []byte) bool { return string(table) == "t" }}
			if tc.start != "" {
				scan.StartRow = []byte(tc.start)
			}
			ch, err := m.changes(tc.resp, nil, scan)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range ch.Locations {
				s := string(l.Region.Start)
				if l.NameOnly {
					s += "(name)"
				}
				if l.Server.Host != "rs1" || l.Server.StartCode != 99 {
					t.Errorf("%s is on %s", s, l.Server)
				}
				got = append(got, s)
			}
			if g := strings.Join(got, " "); g != tc.want || ch.Newest != tc.newest || ch.Rows != tc.rows || string(ch.Next) != tc.next {
				t.Errorf("got %q, newest %d, %d rows, next %q; want %q, %d, %d, %q", g, ch.Newest, ch.Rows, ch.Next, tc.want, tc.newest, tc.rows, tc.next)
			}
		})
	}
}

// FuzzChanges: whatever an answer says, reading on makes progress or ends with
// an error.
func FuzzChanges(f *testing.F) {
	for _, resp := range []*pb.ScanResponse{
		{Results: []*pb.Result{changed("t", "a", 10), changed("t", "b", 8)}, MoreResults: new(true), MoreResultsInRegion: new(true)},
		{Results: []*pb.Result{changed("t", "a", 10)}, PartialFlagPerResult: []bool{true}, HeartbeatMessage: new(true), Cursor: &pb.Cursor{Row: []byte("t,k,")}},
		{CellsPerResult: []uint32{1, 2, 1 << 31}},
	} {
		b, err := resp.MarshalVT()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte("t,,"))
	}
	m := metaReader{core: &Core{cfg: Config{Logger: slog.New(slog.DiscardHandler)}}}
	name := meta.TableName{Namespace: meta.DefaultNamespace, Qualifier: "t"}
	f.Fuzz(func(t *testing.T, answer, block []byte) {
		var resp pb.ScanResponse
		if resp.UnmarshalVT(answer) != nil {
			return
		}
		scan := route.ChangeScan{StartRow: meta.FirstRow(name), StopRow: meta.StopRow(name), Limit: 2}
		ch, err := m.changes(&resp, block, scan)
		if err == nil && (ch.Rows < 0 || ch.Next != nil && len(ch.Next) == 0) {
			t.Errorf("%+v", ch)
		}
	})
}
