package hbase

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/filter"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// scriptedCore records what it is asked and answers as told.
type scriptedCore struct {
	param []byte
	block []byte
	call  session.RegionCall
	items []session.Item

	answer wire.Marshaler
	cells  []byte
	out    []session.Outcome
	err    error
}

func (c *scriptedCore) CallRegion(_ context.Context, call *session.RegionCall) (session.Answer, error) {
	c.call = *call
	m, block := call.Param([]byte("R"), 1)
	c.param, c.block = marshal(m), block
	if c.err != nil {
		return session.Answer{}, c.err
	}
	if c.answer != nil {
		if err := call.Result.UnmarshalVT(marshal(c.answer)); err != nil {
			return session.Answer{}, err
		}
	}
	return session.Answer{Cells: c.cells}, nil
}

func (c *scriptedCore) CallReplica(context.Context, *route.Route, *route.Replica, *session.RegionCall) (session.Answer, error) {
	return session.Answer{}, errors.New("not scripted")
}

func (c *scriptedCore) Batch(_ context.Context, _ meta.TableName, items []session.Item) []session.Outcome {
	c.items = items
	if c.out != nil {
		return c.out
	}
	return make([]session.Outcome, len(items))
}

func (c *scriptedCore) CallMaster(context.Context, *session.ServerCall) (session.Answer, error) {
	return session.Answer{}, errors.New("not scripted")
}

func (c *scriptedCore) CallServer(context.Context, meta.ServerName, *session.ServerCall) (session.Answer, error) {
	return session.Answer{}, errors.New("not scripted")
}
func (c *scriptedCore) Routes() *route.Cache { return nil }
func (c *scriptedCore) NonceGroup() uint64   { return 0x11 }
func (c *scriptedCore) NewNonce() uint64     { return 0x22 }
func (c *scriptedCore) Close() error         { return nil }

func marshal(m wire.Marshaler) []byte {
	b := make([]byte, m.SizeVT())
	n, err := m.MarshalToSizedBufferVT(b)
	if err != nil || n != len(b) {
		panic("a message that does not marshal")
	}
	return b
}

func scriptedTable(c *scriptedCore) *Table {
	return newClient(defaultConfig("hbase://test"), c).tableOf(meta.TableName{Namespace: "default", Qualifier: "t"})
}

// spec is the region specifier of region "R": REGION_NAME.
const spec = "0a05" + "0801" + "120152"

// The bytes are written by hand from the field numbers of Client.proto.
func TestGetBytes(t *testing.T) {
	cases := []struct {
		name string
		get  *Get
		want string
	}{
		{"whole row", NewGet("r"), "0a0172"},
		{"columns", NewGet("r").Family("f").Column("g", "a", ""), "0a0172" + "12030a0166" + "12080a0167" + "120161" + "1200"},
		{"versions", NewGet("r").Versions(3), "0a0172" + "3003"},
		{"time range", NewGet("r").In(TimeRange{1, 300}), "0a0172" + "2a05" + "0801" + "10ac02"},
		{"limits", &Get{Row: []byte("r"), MaxPerFamily: 2, OffsetPerFamily: 1}, "0a0172" + "4002" + "4801"},
		{"no block cache", &Get{Row: []byte("r"), SkipBlockCache: true}, "0a0172" + "3800"},
		{"timeline", &Get{Row: []byte("r"), Consistency: Timeline}, "0a0172" + "6001"},
		{"read uncommitted", &Get{Row: []byte("r"), Isolation: ReadUncommitted},
			"0a0172" + "1a15" + "0a10" + hex.EncodeToString([]byte("_isolationlevel_")) + "120101"},
		{"family range", &Get{Row: []byte("r"), FamilyTimeRange: map[string]TimeRange{"f": {2, 3}}},
			"0a0172" + "6a09" + "0a0166" + "1204" + "0802" + "1003"},
		{"filter", NewGet("r").WithFilter(filter.FirstKeyOnly()),
			"0a0172" + "2235" + "0a31" + hex.EncodeToString([]byte("org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter")) + "1200"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			core := &scriptedCore{}
			if _, err := scriptedTable(core).Get(t.Context(), c.get); err != nil {
				t.Fatal(err)
			}
			want := spec + "12" + hex.EncodeToString([]byte{byte(len(c.want) / 2)}) + c.want
			if got := hex.EncodeToString(core.param); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			if core.call.Method != "Get" || core.call.Idempotency != session.Safe {
				t.Errorf("method %s, idempotency %d", core.call.Method, core.call.Idempotency)
			}
		})
	}
}

func TestMutateBytes(t *testing.T) {
	// kv is one KeyValue: r/f:q, latest, Put, value "v".
	kv := "00000019" + "00000010" + "00000001" + "0001" + "72" + "01" + "66" + "71" + "7fffffffffffffff" + "04" + "76"
	kv = strings.Replace(kv, "00000019"+"00000010", "00000018"+"0000000f", 1)
	cases := []struct {
		name  string
		m     Mutation
		want  string // MutationProto
		block string
		group bool
		idem  session.Idempotency
	}{
		{"put", NewPut("r").Set("f", "q", []byte("v")), "0a0172" + "1002" + "4001", kv, false, session.Safe},
		{"durability and ttl", func() Mutation {
			p := NewPut("r").Set("f", "q", []byte("v"))
			p.Durability, p.TTL = SkipWAL, 258*time.Millisecond
			return p
		}(), "0a0172" + "1002" + "2a10" + "0a04" + hex.EncodeToString([]byte("_ttl")) + "1208" + "0000000000000102" + "3001" + "4001", kv, false, session.Safe},
		{"unrepeatable put", func() Mutation {
			p := NewPut("r").Set("f", "q", []byte("v"))
			p.Unrepeatable = true
			return p
		}(), "0a0172" + "1002" + "4001", kv, false, session.Unsafe},
		{"unrepeatable delete", func() Mutation {
			d := NewDelete("r")
			d.Unrepeatable = true
			return d
		}(), "0a0172" + "1003", "", false, session.Unsafe},
		{"delete row", NewDelete("r"), "0a0172" + "1003", "", false, session.Safe},
		{"delete row up to", NewDelete("r").UpTo(5), "0a0172" + "1003" + "2005", "", false, session.Safe},
		{"delete latest version", NewDelete("r").LatestVersion("f", "q"), "0a0172" + "1003" + "4001",
			"00000017" + "0000000f" + "00000000" + "0001" + "72" + "01" + "66" + "71" + "7fffffffffffffff" + "08", false, session.Unsafe},
		{"delete family version", NewDelete("r").FamilyVersion("f", 9), "0a0172" + "1003" + "4001",
			"00000016" + "0000000e" + "00000000" + "0001" + "72" + "01" + "66" + "0000000000000009" + "0a", false, session.Safe},
		{"delete column", NewDelete("r").Column("f", "q"), "0a0172" + "1003" + "4001",
			"00000017" + "0000000f" + "00000000" + "0001" + "72" + "01" + "66" + "71" + "7fffffffffffffff" + "0c", false, session.Safe},
		{"increment", NewIncrement("r").Add("f", "q", -2), "0a0172" + "1001" + "4001" + "4822",
			"0000001f" + "0000000f" + "00000008" + "0001" + "72" + "01" + "66" + "71" + "7fffffffffffffff" + "04" + "fffffffffffffffe", true, session.Nonced},
		{"append without result", func() Mutation {
			a := NewAppend("r").Add("f", "q", []byte("v"))
			a.NoResult = true
			return a
		}(), "0a0172" + "1000" + "2a09" + "0a04" + hex.EncodeToString([]byte("_rr_")) + "120100" + "4001" + "4822", kv, true, session.Nonced},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			core := &scriptedCore{}
			if _, err := scriptedTable(core).mutate(t.Context(), "mutate", c.m); err != nil {
				t.Fatal(err)
			}
			want := spec + "12" + hex.EncodeToString([]byte{byte(len(c.want) / 2)}) + c.want
			if c.group {
				want += "2011"
			}
			if got := hex.EncodeToString(core.param); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			if got := hex.EncodeToString(core.block); got != c.block {
				t.Errorf("cell block\n got %s\nwant %s", got, c.block)
			}
			if core.call.Idempotency != c.idem {
				t.Errorf("idempotency %d, want %d", core.call.Idempotency, c.idem)
			}
		})
	}
}

func TestCheckAndMutateBytes(t *testing.T) {
	core := &scriptedCore{answer: &pb.MutateResponse{Processed: new(true)}}
	cm := NewCheckAndMutate("r").If("f", "q", Less, []byte("v")).Then(NewDelete("r"))
	res, err := scriptedTable(core).CheckAndMutate(t.Context(), cm)
	if err != nil || !res.Applied {
		t.Fatalf("%+v, %v", res, err)
	}
	name := hex.EncodeToString([]byte("org.apache.hadoop.hbase.filter.BinaryComparator"))
	cond := "0a0172" + "120166" + "1a0171" + "2000" + "2a38" + "0a2f" + name + "1205" + "0a03" + "0a0176"
	want := spec + "1205" + "0a0172" + "1003" + "1a" + hex.EncodeToString([]byte{byte(len(cond) / 2)}) + cond
	if got := hex.EncodeToString(core.param); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if core.call.Idempotency != session.Unsafe {
		t.Errorf("idempotency %d, want unsafe", core.call.Idempotency)
	}
}

func TestScanBytes(t *testing.T) {
	core := &scriptedCore{err: errors.New("stop here")}
	s := &Scan{
		Start: []byte("a"), Stop: []byte("c"), IncludeStop: true, Reversed: false, MaxVersions: 2, Limit: 7, Batch: 3, Caching: 5,
		MaxResultSize: 1000, MaxPerFamily: 4, OffsetPerFamily: 1, Raw: true, ReadType: ReadPositional, NeedCursor: true, SkipBlockCache: true,
	}
	sc := scriptedTable(core).Scan(t.Context(), s)
	_, err := sc.Next()
	sc.Close()
	if err == nil || !strings.Contains(err.Error(), "stop here") || !strings.Contains(err.Error(), `table "t"`) {
		t.Errorf("error %v", err)
	}
	scan := "1210" + "0a05" + hex.EncodeToString([]byte("_raw_")) + "1201ff"
	scan = strings.Replace(scan, "1210", "120a", 1) + "1a0161" + "220163" + "3802" + "4000" + "4803" + "50e807" + "5804" + "6001" +
		"880105" + "a80101" + "b00101" + "b80102" + "c00101"
	want := "0a05" + "0801" + "120152" + "12" + hex.EncodeToString([]byte{byte(len(scan) / 2)}) + scan + "2005" + "3801" + "4001" + "5807"
	got := hex.EncodeToString(core.param)
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestBatchItems(t *testing.T) {
	core := &scriptedCore{}
	tab := scriptedTable(core)
	ops := []Op{
		NewGet("a"),
		NewPut("b").Set("f", "q", []byte("v")),
		NewPut(""), // refused: no row
		NewIncrement("c").Add("f", "q", 1),
		NewRowMutations("d").Add(NewPut("d").Set("f", "q", nil), NewDelete("d").Column("f", "p")),
		NewCheckAndMutate("e").IfNotExists("f", "q").Then(NewRowMutations("e").Add(NewPut("e").Set("f", "q", nil))),
		NewDelete("g").LatestVersion("f", "q"),
		nil,
	}
	core.out = []session.Outcome{
		{Processed: true, Results: []session.ActionResult{{Cells: []cells.Cell{{Row: []byte("a")}}}}},
		{Processed: true, Results: []session.ActionResult{{}}},
		{Err: errors.New("busy")},
		{Processed: true, Results: []session.ActionResult{{}, {}}},
		{Processed: false},
		{Processed: true},
	}
	out := tab.Batch(t.Context(), ops)
	if got := len(core.items); got != 6 {
		t.Fatalf("%d items sent, want 6", got)
	}
	type want struct {
		row     string
		actions int
		atomic  bool
		cond    bool
		idem    session.Idempotency
		cells   int
	}
	for i, w := range []want{
		{"a", 1, false, false, session.Safe, 0},
		{"b", 1, false, false, session.Safe, 1},
		{"c", 1, false, false, session.Nonced, 1},
		{"d", 2, true, false, session.Safe, 2},
		{"e", 1, true, true, session.Unsafe, 1},
		{"g", 1, false, false, session.Unsafe, 1},
	} {
		it := core.items[i]
		n, err := wire.CountCells(it.Cells)
		if err != nil {
			t.Fatal(err)
		}
		got := want{string(it.Row), len(it.Actions), it.Atomic, it.Condition != nil, it.Idempotency, n}
		if got != w {
			t.Errorf("item %d: %+v, want %+v", i, got, w)
		}
	}
	if !errors.Is(out[2].Err, ErrInvalid) || !errors.Is(out[7].Err, ErrInvalid) {
		t.Errorf("refused operations: %v, %v", out[2].Err, out[7].Err)
	}
	if out[0].Result == nil || string(out[0].Result.Row) != "a" {
		t.Errorf("get: %+v", out[0])
	}
	if out[3].Err == nil || !strings.Contains(out[3].Err.Error(), "busy") {
		t.Errorf("increment: %+v", out[3])
	}
	if out[5].Applied || out[5].Err != nil {
		t.Errorf("check: %+v", out[5])
	}
	if got := out.Failed(); len(got) != 3 || got[0] != 2 || got[1] != 3 || got[2] != 7 {
		t.Errorf("failed at %v", got)
	}
	var item *ItemError
	if err := out.Err(); !errors.As(err, &item) || item.Index != 2 {
		t.Errorf("joined error %v", err)
	}
}

func TestResultOfBothForms(t *testing.T) {
	block, err := codec.AppendCells(nil, []Cell{{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 3, Type: cells.Put, Value: []byte("v")}})
	if err != nil {
		t.Fatal(err)
	}
	beside := &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: new(int32(1)), Stale: new(true)}}
	inline := &pb.GetResponse{Result: &pb.Result{Cell: []*pb.Cell{{
		Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: new(uint64(3)), CellType: pb.CellType_PUT.Enum(), Value: []byte("v"),
	}}}}
	for name, core := range map[string]*scriptedCore{
		"beside": {answer: beside, cells: block}, "inline": {answer: inline},
	} {
		res, err := scriptedTable(core).Get(t.Context(), NewGet("r"))
		if err != nil {
			t.Fatal(name, err)
		}
		if string(res.Row) != "r" || string(res.Value("f", "q")) != "v" || res.Cells[0].Timestamp != 3 || res.Stale != (name == "beside") {
			t.Errorf("%s: %+v", name, res)
		}
	}
	lying := &scriptedCore{answer: beside}
	if _, err := scriptedTable(lying).Get(t.Context(), NewGet("r")); err == nil {
		t.Error("cells announced and not there: no error")
	}
}

func TestScanAnswerForms(t *testing.T) {
	var all []Cell
	for _, q := range []string{"a", "b", "c"} {
		all = append(all, Cell{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte(q), Type: cells.Put, Value: []byte{}})
	}
	block, err := codec.AppendCells(nil, all)
	if err != nil {
		t.Fatal(err)
	}
	r, err := replyOf(&pb.ScanResponse{
		CellsPerResult: []uint32{2, 1}, PartialFlagPerResult: []bool{true, false}, MoreResultsInRegion: new(false),
		Ttl: new(uint32(5000)), HeartbeatMessage: new(true), Cursor: &pb.Cursor{Row: []byte("s")},
		ScanMetrics: &pb.ScanMetrics{Metrics: []*pb.NameInt64Pair{{Name: new("ROWS_SCANNED"), Value: new(int64(4))}}},
	}, block)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.parts) != 2 || len(r.parts[0].cells) != 2 || !r.parts[0].partial || r.parts[1].partial || r.moreInRegion || !r.more ||
		r.ttl != 5*time.Second || !r.heartbeat || string(r.cursor) != "s" || r.metrics["ROWS_SCANNED"] != 4 {
		t.Errorf("%+v", r)
	}
	// A result without cells takes a byte of an answer.
	if r, err := replyOf(&pb.ScanResponse{CellsPerResult: make([]uint32, 1<<20)}, block); err != nil || cap(r.parts) != 0 {
		t.Errorf("memory for %d empty results, %v", cap(r.parts), err)
	}
	if _, err := replyOf(&pb.ScanResponse{CellsPerResult: []uint32{1 << 31, 1 << 31}}, block); err == nil {
		t.Error("more cells announced than there are: no error")
	}
}

// What the public layer itself allocates for a Get of one cell; the session
// and the connection come on top.
func TestGetAllocations(t *testing.T) {
	block, err := codec.AppendCells(nil, []Cell{{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Type: cells.Put, Value: []byte("v")}})
	if err != nil {
		t.Fatal(err)
	}
	core := &quickCore{cells: block}
	tab := newClient(defaultConfig("hbase://test"), core).tableOf(meta.TableName{Namespace: "default", Qualifier: "t"})
	g := NewGet("r")
	n := testing.AllocsPerRun(200, func() {
		if r, err := tab.Get(t.Context(), g); err != nil || r.Empty() {
			t.Fatal(r, err)
		}
	})
	if n > 5 {
		t.Errorf("%v allocations, want at most 5", n)
	}
}

// quickCore answers Gets without allocating more than a session must.
type quickCore struct {
	scriptedCore
	cells []byte
}

func (c *quickCore) CallRegion(_ context.Context, call *session.RegionCall) (session.Answer, error) {
	call.Param([]byte("R"), 1)
	return session.Answer{Cells: c.cells}, call.Result.UnmarshalVT(quickAnswer[:])
}

// quickAnswer is GetResponse{Result{AssociatedCellCount: 1}}.
var quickAnswer = [...]byte{0x0a, 0x02, 0x10, 0x01}

// FuzzGetAnswer compares the answer's reader with the generated one.
func FuzzGetAnswer(f *testing.F) {
	f.Add(quickAnswer[:])
	f.Add([]byte{0x0a, 0x02, 0x18, 0x01})
	f.Add([]byte{0x0a, 0x05, 0x0a, 0x03, 0x0a, 0x01, 'r'})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x0b, 0x0a, 0x00, 0x0c})
	f.Fuzz(func(t *testing.T, b []byte) {
		var a getAnswer
		err := a.UnmarshalVT(b)
		var m pb.GetResponse
		if want := m.UnmarshalVT(b); want != nil || err != nil {
			return // which of the two notices more of what is broken is open
		}
		r := m.GetResult()
		if a.cells != int(r.GetAssociatedCellCount()) || a.exists != r.GetExists() || a.stale != r.GetStale() || a.partial != r.GetPartial() || len(a.inline) != len(r.GetCell()) {
			t.Errorf("%x: %+v, want %v", b, a, r)
		}
		if res, err := a.read(b); err == nil && len(res.Cells) > 0 && res.Row == nil && res.Cells[0].Row != nil {
			t.Errorf("%x: cells without a row", b)
		}
	})
}
