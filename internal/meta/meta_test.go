package meta

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

func TestRegionNames(t *testing.T) {
	for _, tc := range []struct {
		region        Region
		name, encoded string
	}{
		{Region{Table: TableName{"default", "t1"}, ID: 1700000000000}, "t1,,1700000000000.43ae7364b4a555b93267937f9bc49ec1.", "43ae7364b4a555b93267937f9bc49ec1"},
		{Region{Table: TableName{"default", "t1"}, ID: 1700000000000, Start: []byte("row\xff")}, "t1,row\xff,1700000000000.12ca0e85fd185446d42e86c66824d00b.", "12ca0e85fd185446d42e86c66824d00b"},
		{Region{Table: TableName{"ns", "t1"}, ID: 1700000000000, Start: []byte("m")}, "ns:t1,m,1700000000000.0bfc0f621c341c12734074f075a0bde8.", "0bfc0f621c341c12734074f075a0bde8"},
		{Region{Table: TableName{"default", "t1"}, ID: 1700000000000, Replica: 1}, "t1,,1700000000000_0001.eda7f6ab9d4c331afd1a82e0e7a9e980.", "eda7f6ab9d4c331afd1a82e0e7a9e980"},
		{MetaRegion, "hbase:meta,,1", "1588230740"},
		{MetaRegion.WithReplica(1), "hbase:meta,,1_0001", "534574363"},
		{MetaRegion.WithReplica(2), "hbase:meta,,1_0002", "1657623790"},
	} {
		if got := string(tc.region.Name()); got != tc.name {
			t.Errorf("name = %q, want %q", got, tc.name)
		}
		if got := tc.region.EncodedName(); got != tc.encoded {
			t.Errorf("encoded name of %s = %s, want %s", tc.name, got, tc.encoded)
		}
		if got, ok := EncodedNameOf([]byte(tc.name)); !ok || got != tc.encoded {
			t.Errorf("EncodedNameOf(%q) = %s, %v", tc.name, got, ok)
		}
	}
	if got := jenkinsName([]byte(MetaRegionName)); got != MetaEncodedName {
		t.Errorf("jenkins hash of %s = %s", MetaRegionName, got)
	}
	if got := jenkinsName([]byte(".META.,,1")); got != "1028785192" {
		t.Errorf("jenkins hash of .META.,,1 = %s", got)
	}
}

// TestCompareRows lists rows in meta's own order, with every trap: tables
// whose names are prefixes of one another, start keys below the comma, start
// keys that hold commas, state rows, the search rows.
func TestCompareRows(t *testing.T) {
	table := TableName{"default", "t"}
	rows := []string{
		"ns:t", "ns:t,,1",
		"t", "t,,1", "t,\x00,1", "t, ,1", "t,a,1", "t,a,10", "t,a!,1", "t,a,b,1", "t,b,1",
		string(SearchRow(table, []byte("b"))),
		"t\x00", "t ,,",
		"t-1", "t-1,,1", "t.x", "t.x,,1", "t1,,1",
	}
	for i, a := range rows {
		for j, b := range rows {
			got, want := CompareRows([]byte(a), []byte(b)), i-j
			if (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("CompareRows(%q, %q) = %d, want the sign of %d", a, b, got, want)
			}
		}
	}
	shuffled := slices.Clone(rows)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	slices.SortFunc(shuffled, func(a, b string) int { return CompareRows([]byte(a), []byte(b)) })
	if !slices.Equal(shuffled, rows) {
		t.Errorf("sorted: %q", shuffled)
	}
}

func TestSearchRows(t *testing.T) {
	table := TableName{"default", "t"}
	for _, tc := range []struct{ got, want string }{
		{string(SearchRow(table, []byte("r"))), "t,r,99999999999999"},
		{string(SearchRowBefore(table, []byte("r"))), "t,r,00000000000000"},
		{string(SearchRowBefore(table, nil)), "t\x00"},
		{string(FirstRow(table)), "t,,"},
		{string(StopRow(table)), "t ,,"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
	region := Region{Table: table, ID: 1700000000000, Start: []byte("m"), End: []byte("z")}
	for _, row := range []string{"m", "n", "y\xff"} {
		if CompareRows(SearchRow(table, []byte(row)), region.Name()) < 0 {
			t.Errorf("the search for %q begins before its region", row)
		}
	}
	if CompareRows(SearchRowBefore(table, region.Start), region.Name()) >= 0 {
		t.Error("the search for the region before m must not find the region that starts at m")
	}
}

func TestTableNames(t *testing.T) {
	for _, tc := range []struct {
		text string
		want TableName
		ok   bool
	}{
		{"t", TableName{"default", "t"}, true},
		{"default:t", TableName{"default", "t"}, true},
		{"ns:t-1.x_y", TableName{"ns", "t-1.x_y"}, true},
		{"hbase:meta", MetaTable, true},
		{"täg", TableName{"default", "täg"}, true},
		{"", TableName{}, false},
		{"a:b:c", TableName{}, false},
		{".t", TableName{}, false},
		{"-t", TableName{}, false},
		{"t t", TableName{}, false},
		{"n-s:t", TableName{}, false},
		{":t", TableName{}, false},
		{"ns:", TableName{}, false},
		{"zookeeper", TableName{}, false},
	} {
		got, err := ParseTableName(tc.text)
		if (err == nil) != tc.ok || tc.ok && got != tc.want {
			t.Errorf("ParseTableName(%q) = %+v, %v", tc.text, got, err)
		}
	}
	if s := (TableName{"default", "t"}).String(); s != "t" {
		t.Errorf("default:t prints as %q", s)
	}
}

func TestServerNames(t *testing.T) {
	s, err := ParseServerName("rs1.example,16020,1700000000000")
	if err != nil || s != (ServerName{"rs1.example", 16020, 1700000000000}) {
		t.Fatalf("ParseServerName = %+v, %v", s, err)
	}
	if s.String() != "rs1.example,16020,1700000000000" || s.Address() != "rs1.example:16020" {
		t.Errorf("%s at %s", s, s.Address())
	}
	for _, bad := range []string{"", "a,b", "a,1,x", "a,70000,1", ",1,1", "a,1,1,1"} {
		if _, err := ParseServerName(bad); err == nil {
			t.Errorf("ParseServerName(%q) gave no error", bad)
		}
	}
}

func TestParseLocation(t *testing.T) {
	region := Region{Table: TableName{"ns", "t"}, ID: 1700000000000, Start: []byte("a"), End: []byte("b"), Offline: true, Split: true}
	cell := func(q string, v []byte) cells.Cell {
		return cells.Cell{Row: region.Name(), Family: []byte("info"), Qualifier: []byte(q), Type: cells.Put, Value: v}
	}
	code := []byte{0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0}
	loc, ok, err := ParseLocation([]cells.Cell{
		cell("regioninfo", region.Marshal()), cell("server", []byte("h:1")), cell("serverstartcode", code),
		cell("seqnumDuringOpen", []byte{0, 0, 0, 0, 0, 0, 0, 9}), cell("state", []byte("SPLIT")),
	})
	if err != nil || !ok {
		t.Fatalf("ok %v, err %v", ok, err)
	}
	if loc.Server != (ServerName{"h", 1, 1700000000000}) || loc.SeqNum != 9 || loc.State != "SPLIT" {
		t.Errorf("location %+v", loc)
	}
	if got := loc.Region; string(got.Name()) != string(region.Name()) || !got.Offline || !got.Split || string(got.End) != "b" {
		t.Errorf("region %+v", got)
	}
	if _, ok, err := ParseLocation([]cells.Cell{{Row: []byte("t"), Family: []byte("table"), Qualifier: []byte("state")}}); ok || err != nil {
		t.Errorf("a state row is no region: %v, %v", ok, err)
	}
	if _, _, err := ParseLocation([]cells.Cell{cell("regioninfo", []byte("junk"))}); err == nil {
		t.Error("junk region info gave no error")
	}
}

func FuzzUnmarshalRegion(f *testing.F) {
	region := Region{Table: TableName{"ns", "t"}, ID: 1, Start: []byte("a")}
	spoil.Add(f, region.Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := UnmarshalRegion(b)
		if err != nil {
			return
		}
		again, err := UnmarshalRegion(r.Marshal())
		if err != nil || string(again.Name()) != string(r.Name()) {
			t.Fatalf("round trip of %x: %v", b, err)
		}
	})
}

func TestParseReplicas(t *testing.T) {
	region := Region{Table: TableName{DefaultNamespace, "t"}, ID: 1}
	code := binary.BigEndian.AppendUint64(nil, 17)
	cell := func(q string, v []byte) cells.Cell {
		return cells.Cell{Row: region.Name(), Family: []byte("info"), Qualifier: []byte(q), Value: v}
	}
	loc, ok, err := ParseLocation([]cells.Cell{
		cell("regioninfo", region.Marshal()),
		cell("server", []byte("rs1:16020")), cell("serverstartcode", code),
		cell("server_0002", []byte("rs2:16020")), cell("serverstartcode_0002", code), cell("state_0002", []byte("OPEN")),
		cell("server_0001", nil), cell("serverstartcode_0001", nil), cell("seqnumDuringOpen_0001", code), cell("state_0001", []byte("CLOSED")),
		cell("server_001A", []byte("no address")), cell("serverstartcode_001A", code),
		cell("server_001a", []byte("rs9:1")), cell("server_0000", []byte("rs9:1")), cell("other_0003", []byte("x")), cell("_0004", nil),
	})
	if err != nil || !ok {
		t.Fatalf("ok %t, %v", ok, err)
	}
	want := []ReplicaLocation{
		{ID: 1, SeqNum: 17, State: "CLOSED"},
		{ID: 2, Server: ServerName{"rs2", 16020, 17}, SeqNum: NoSeqNum, State: "OPEN"},
		{ID: 26, SeqNum: NoSeqNum},
	}
	if !slices.Equal(loc.Replicas, want) {
		t.Errorf("replicas %+v, want %+v", loc.Replicas, want)
	}
	if loc.Server.Host != "rs1" {
		t.Errorf("primary on %v", loc.Server)
	}
	many := []cells.Cell{cell("regioninfo", region.Marshal())}
	for i := range 1000 {
		many = append(many, cell(fmt.Sprintf("server_%04X", i), []byte("rs1:1")))
	}
	if loc, _, _ = ParseLocation(many); len(loc.Replicas) != maxReplicas {
		t.Errorf("%d replicas, want the bound %d", len(loc.Replicas), maxReplicas)
	}
}

func FuzzParseRegionName(f *testing.F) {
	for _, r := range []Region{
		{Table: TableName{"default", "t1"}, ID: 1700000000000},
		{Table: TableName{"ns", "t1"}, ID: 17, Start: []byte("a,b_c.\x00,"), Replica: 0x1a},
		MetaRegion,
	} {
		name := r.Name()
		got, ok := ParseRegionName(name)
		if !ok || got.Table != r.Table || got.ID != r.ID || string(got.Start) != string(r.Start) || got.Replica != r.Replica {
			f.Errorf("%q: got %+v, %t; want %+v", name, got, ok, r)
		}
		spoil.Add(f, name)
	}
	spoil.Add(f, []byte("t,,1."))
	f.Fuzz(func(t *testing.T, name []byte) {
		r, ok := ParseRegionName(name)
		if !ok || r.Table == MetaTable {
			return
		}
		again, ok := ParseRegionName(r.Name())
		if !ok || again.Table != r.Table || again.ID != r.ID || string(again.Start) != string(r.Start) || again.Replica != r.Replica {
			t.Errorf("%q gives %+v, whose name gives %+v", name, r, again)
		}
	})
}

func FuzzParseLocation(f *testing.F) {
	region := Region{Table: TableName{DefaultNamespace, "t"}, ID: 1}
	spoil.Add(f, "server", []byte("rs1:16020"), "server_0001", []byte("rs2:16020"), region.Marshal())
	spoil.Add(f, "serverstartcode_FFFF", []byte("12345678"), "state_0001", []byte("OPEN"), region.Marshal()[:9])
	spoil.Add(f, "_0001", []byte{}, "seqnumDuringOpen_000G", []byte("x"), []byte(ProtoMagic))
	f.Fuzz(func(t *testing.T, q1 string, v1 []byte, q2 string, v2, info []byte) {
		row := []cells.Cell{
			{Row: region.Name(), Family: []byte(FamilyInfo), Qualifier: []byte(q1), Value: v1},
			{Row: region.Name(), Family: []byte(FamilyInfo), Qualifier: []byte(q2), Value: v2},
			{Row: region.Name(), Family: []byte(FamilyInfo), Qualifier: []byte(QualifierRegionInfo), Value: info},
		}
		loc, ok, err := ParseLocation(row)
		if err != nil && ok {
			t.Errorf("both an error and a location: %v", err)
		}
		for i, p := range loc.Replicas {
			if p.ID <= 0 || p.ID > 1<<16-1 || i > 0 && p.ID <= loc.Replicas[i-1].ID {
				t.Errorf("replica %d: %+v", i, loc.Replicas)
			}
		}
	})
}

// A row with one comma has no id: HBase compares the whole of it instead, so
// that a scan from "t," misses the region that starts at nothing.
func TestCompareRowsOneComma(t *testing.T) {
	for _, c := range [][2]string{{"t,,1600000000000.x.", "t,"}, {"t,", "t,a,1600000000000.x."}, {"t,a,1600000000000.x.", "t,b"}, {"t,a,1600000000000.x.", "t,a"}} {
		if CompareRows([]byte(c[0]), []byte(c[1])) >= 0 || CompareRows([]byte(c[1]), []byte(c[0])) <= 0 {
			t.Errorf("%q is not before %q", c[0], c[1])
		}
	}
}
