package regionserver_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// TestAggregateQuirks holds AggregateService to what HBase 2.4.17 answers (the
// interop tests compare the two in full), also where that is odd.
func TestAggregateQuirks(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("t", cells.NewSchema(cells.DefaultFamily([]byte("f")), cells.DefaultFamily([]byte("g"))), nil, "s")
	c := h.dial(rpctest.Options{})
	put := func(row, family, qualifier string, value []byte) {
		t.Helper()
		in := &pb.MutateRequest{Region: specifier(tab.regions[0]), Mutation: &pb.MutationProto{Row: []byte(row), MutateType: pb.MutationProto_PUT.Enum(),
			ColumnValue: []*pb.MutationProto_ColumnValue{{Family: []byte(family), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{
				{Qualifier: []byte(qualifier), Value: value}}}}}}
		if _, err := c.Call("Mutate", in, nil); err != nil {
			t.Fatal(err)
		}
	}
	long := func(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	for i := range 30 {
		row := fmt.Sprintf("r%03d", i)
		if i == 11 {
			put(row, "f", "n", []byte("eleven"))
			continue
		}
		put(row, "f", "n", long(int64(i)))
		if i%20 == 7 {
			put(row, "f", "m", long(int64(1000-i)))
			put(row, "g", "n", long(-5))
		}
	}
	columns := func(names ...[]string) (list []*pb.Column) {
		for _, n := range names {
			c := &pb.Column{Family: []byte(n[0])}
			for _, q := range n[1:] {
				c.Qualifier = append(c.Qualifier, []byte(q))
			}
			list = append(list, c)
		}
		return list
	}
	n, m, f, g := []string{"f", "n"}, []string{"f", "m"}, []string{"f"}, []string{"g"}
	const longs, doubles, decimals = "LongColumnInterpreter", "DoubleColumnInterpreter", "BigDecimalColumnInterpreter"
	for _, tt := range []struct {
		method, class string
		columns       []*pb.Column
		region        int
		want          string // the values and the count, or the exception
	}{
		{"GetSum", longs, columns(n), 0, "[08a803]"}, // 424: "eleven" is none
		{"GetMax", longs, columns(n), 0, "[081d]"},
		{"GetMin", longs, columns(n, g), 0, "[08fbffffffffffffffff01]"}, // both families count
		{"GetMin", longs, columns(n), 1, "[]"},
		{"GetSum", longs, nil, 0, "[08cc12]"}, // all families
		{"GetMax", doubles, columns(n), 0, "[091d00000000000000]"},
		{"GetMax", decimals, columns(f), 0, "IOException"}, // "eleven" begins with no scale that can be
		{"GetRowNum", longs, nil, 0, "[000000000000001e]"},
		{"GetRowNum", longs, columns(g), 0, "[0000000000000002]"},
		{"GetRowNum", longs, columns(m), 0, "[000000000000001e]"},                      // the qualifier is dropped
		{"GetRowNum", longs, columns([]string{"f", "", "m"}), 0, "[0000000000000002]"}, // the least one is
		{"GetRowNum", longs, columns(m, []string{"g", "n"}), 0, "[000000000000001e]"},
		{"GetRowNum", "None", columns(g), 0, "[0000000000000002]"}, // nobody reads values
		{"GetRowNum", longs, nil, 1, "[0000000000000000]"},
		{"GetAvg", longs, columns(n), 0, "[08a803] 000000000000001e"},
		{"GetAvg", longs, columns(m), 0, "[08ae0f] 0000000000000003"}, // one row too many
		{"GetAvg", longs, columns(m), 1, "[]"},
		{"GetStd", longs, columns(m), 0, "[08ae0f 08eafb75] 0000000000000003"},
		{"GetMedian", longs, columns(n), 0, "[08a803 0880808080808080808001]"},
		{"GetMedian", longs, columns([]string{"f", "m", "n"}), 0, "[08d612 08d612]"},
		{"GetMedian", longs, columns(n), 1, "IOException"}, // a NullPointerException
		{"GetSum", "None", columns(n), 0, "IOException"},
		{"GetSum", longs, columns([]string{"none"}), 0, "NoSuchColumnFamilyException"},
	} {
		req := &pb.AggregateRequest{InterpreterClassName: new("org.apache.hadoop.hbase.client.coprocessor." + tt.class), Scan: &pb.Scan{Column: tt.columns}}
		body, err := req.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		var out pb.CoprocessorServiceResponse
		_, err = c.Call("ExecService", &pb.CoprocessorServiceRequest{Region: specifier(tab.regions[tt.region]), Call: &pb.CoprocessorServiceCall{
			Row: []byte("r"), ServiceName: new("AggregateService"), MethodName: &tt.method, Request: body}}, &out)
		got := class(t, err)
		if err == nil {
			var r pb.AggregateResponse
			if err := r.UnmarshalVT(out.GetValue().GetValue()); err != nil {
				t.Fatal(err)
			}
			got = fmt.Sprintf("%x", r.FirstPart)
			if r.SecondPart != nil {
				got += fmt.Sprintf(" %x", r.SecondPart)
			}
		}
		if got != tt.want {
			t.Errorf("%s of %v as %s in region %d: %s, want %s", tt.method, tt.columns, tt.class, tt.region, got, tt.want)
		}
	}
}
