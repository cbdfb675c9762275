package endpoint_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/endpoint"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// found is a value and whether there was one.
type found[T any] struct {
	v  T
	ok bool
}

func got[T any](v T, ok bool, err error) func(testing.TB) found[T] {
	return must(found[T]{v, ok}, err)
}

func TestLong(t *testing.T) {
	t.Parallel()
	_, tab := start(t, "r030", "r060", "s")
	fill(t, tab, 90) // 0 to 89
	for _, p := range []*hbase.Put{
		hbase.NewPut("r005").Set("f", "n", []byte("not a number")),
		hbase.NewPut("r007").Set("f", "m", long(1000)).Set("g", "n", long(-5)),
		hbase.NewPut("r080").Set("f", "m", long(-3)),
	} {
		if err := tab.Put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	type want struct {
		max, min, sum found[int64]
		rows          int64
		average, std  float64
	}
	yes := func(n int64) found[int64] { return found[int64]{n, true} }
	var none found[int64]
	// 0 to 89 without 5, in 90 rows.
	const sum = 89*45 - 5
	squares := 0
	for i := range 90 {
		if i != 5 {
			squares += i * i
		}
	}
	std := func(n, sum, squares float64) float64 { return math.Sqrt(squares/n - sum/n*(sum/n)) }
	for name, tt := range map[string]struct {
		scan *hbase.Scan
		want want
	}{
		"a column":      {hbase.NewScan().Column("f", "n"), want{yes(89), yes(0), yes(sum), 90, sum / 90.0, std(90, sum, float64(squares))}},
		"a range":       {hbase.NewScanRange("r029", "r031").Column("f", "n"), want{yes(30), yes(29), yes(59), 2, 29.5, 0.5}},
		"one region":    {hbase.NewScanRange("r030", "r032").Column("f", "n"), want{yes(31), yes(30), yes(61), 2, 30.5, 0.5}},
		"sparse column": {hbase.NewScan().Column("f", "m"), want{yes(1000), yes(-3), yes(997), 2, 498.5, 501.5}},
		"a family":      {hbase.NewScanRange("r007", "r008").Family("f"), want{yes(1000), yes(7), yes(1007), 1, 1007, 0}},
		"two families":  {hbase.NewScanRange("r007", "r008").Family("f").Column("g", "n"), want{yes(1000), yes(-5), yes(1002), 1, 1002, 0}},
		"no value":      {hbase.NewScanRange("r005", "r006").Column("f", "n"), want{none, none, none, 1, math.NaN(), math.NaN()}},
		"no row":        {hbase.NewScanPrefix("x").Column("f", "n"), want{none, none, none, 0, math.NaN(), math.NaN()}},
		"no such cell":  {hbase.NewScan().Column("f", "x"), want{none, none, none, 0, math.NaN(), math.NaN()}},
		"a filter":      {hbase.NewScanRange("r010", "r020").Column("f", "n").WithFilter(filter.Row(filter.Equal, filter.Binary("r013"))), want{yes(13), yes(13), yes(13), 1, 13, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			a := endpoint.New(tab, endpoint.Long(), tt.scan, endpoint.Options{})
			s := must(a.Statistics(t.Context()))(t)
			got := want{
				got(a.Max(t.Context()))(t), got(a.Min(t.Context()))(t), got(a.Sum(t.Context()))(t),
				must(endpoint.RowCount(t.Context(), tab, tt.scan, endpoint.Options{Parallel: 2}))(t),
				must(a.Average(t.Context()))(t), must(a.StdDev(t.Context()))(t),
			}
			if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", tt.want); g != w {
				t.Errorf("\n got %s\nwant %s", g, w)
			}
			if s.Found != tt.want.sum.ok || s.Sum != tt.want.sum.v || fmt.Sprint(s.Average, s.StdDev) != fmt.Sprint(tt.want.average, tt.want.std) {
				t.Errorf("statistics %+v", s)
			}
		})
	}
	for _, row := range []string{"r010", "r011", "r050"} {
		if err := tab.Put(t.Context(), hbase.NewPut(row).Set("f", "", nil)); err != nil {
			t.Fatal(err)
		}
	}
	only := filter.Row(filter.Equal, filter.Binary("r007"))
	for name, tt := range map[string]struct {
		scan *hbase.Scan
		rows int64
	}{
		"all":                     {nil, 90},
		"two families":            {hbase.NewScan().Family("f").Family("g"), 90},
		"the sparser family":      {hbase.NewScan().Family("g"), 1},
		"a column of each":        {hbase.NewScan().Column("g", "n").Column("f", "m"), 2},
		"two columns":             {hbase.NewScan().Column("f", "m", ""), 5},
		"the empty column":        {hbase.NewScan().Column("f", ""), 3},
		"the empty column and g":  {hbase.NewScan().Column("f", "").Family("g"), 4},
		"a column under a filter": {hbase.NewScan().Column("f", "m").WithFilter(only), 1},
		"whole under a filter":    {hbase.NewScan().WithFilter(only), 1},
		"family twice":            {&hbase.Scan{Columns: []hbase.Column{{Family: []byte("f"), Qualifiers: [][]byte{[]byte("m")}}, {Family: []byte("f")}}}, 90},
	} {
		if n := must(endpoint.RowCount(t.Context(), tab, tt.scan, endpoint.Options{}))(t); n != tt.rows {
			t.Errorf("%s: %d rows, want %d", name, n, tt.rows)
		}
	}
	if _, err := endpoint.RowCount(t.Context(), tab, hbase.NewScan().Column("f", "").WithFilter(only), endpoint.Options{}); !errors.Is(err, hbase.ErrInvalid) {
		t.Errorf("the empty column under a filter: %v", err)
	}
}

func TestDouble(t *testing.T) {
	t.Parallel()
	_, tab := start(t, "b")
	bits := func(f float64) []byte { return long(int64(math.Float64bits(f))) }
	for row, v := range map[string]float64{"a": -1.5, "aa": 2.25, "b": 0.25} {
		if err := tab.Put(t.Context(), hbase.NewPut(row).Set("f", "x", bits(v))); err != nil {
			t.Fatal(err)
		}
	}
	a := endpoint.New(tab, endpoint.Double(), hbase.NewScan().Column("f", "x"), endpoint.Options{})
	if max, min, sum := got(a.Max(t.Context()))(t), got(a.Min(t.Context()))(t), got(a.Sum(t.Context()))(t); max.v != 2.25 || min.v != -1.5 || sum.v != 1 {
		t.Errorf("%v %v %v", max, min, sum)
	}
	if avg := must(a.Average(t.Context()))(t); avg != 1.0/3 {
		t.Errorf("average %v", avg)
	}
	if err := tab.Put(t.Context(), hbase.NewPut("c").Set("f", "x", bits(math.NaN()))); err != nil {
		t.Fatal(err)
	}
	if max, min := got(a.Max(t.Context()))(t), got(a.Min(t.Context()))(t); max.v == max.v || min.v != -1.5 {
		t.Errorf("with NaN: %v %v", max, min)
	}
}

func TestBigDecimal(t *testing.T) {
	t.Parallel()
	_, tab := start(t, "b")
	for row, d := range map[string]endpoint.Decimal{
		"a": {Unscaled: big.NewInt(1005), Scale: 3},                     // 1.005 is read as 1.00
		"b": {Unscaled: big.NewInt(-250), Scale: 2},                     // -2.50
		"c": {Unscaled: new(big.Int).Lsh(big.NewInt(1), 70), Scale: 0},  // 2^70
		"d": {Unscaled: new(big.Int).Lsh(big.NewInt(-1), 70), Scale: 0}, // -2^70
	} {
		if err := tab.Put(t.Context(), hbase.NewPut(row).Set("f", "x", d.Append(nil))); err != nil {
			t.Fatal(err)
		}
	}
	a := endpoint.New(tab, endpoint.BigDecimal(), hbase.NewScan().Column("f", "x"), endpoint.Options{})
	max, min, sum := got(a.Max(t.Context()))(t), got(a.Min(t.Context()))(t), got(a.Sum(t.Context()))(t)
	if max.v.String() != "1180591620717411303424.00" || min.v.String() != "-1180591620717411303424.00" || sum.v.String() != "-1.50" {
		t.Errorf("%v %v %v", max.v, min.v, sum.v)
	}
	if avg := must(a.Average(t.Context()))(t); avg != -0.375 {
		t.Errorf("average %v", avg)
	}
}

// TestMedian holds the median against its definition, over several regions.
func TestMedian(t *testing.T) {
	t.Parallel()
	c, tab := start(t, "r003", "r006", "r100")
	put := func(i int, n, w int64) {
		if err := tab.Put(t.Context(), hbase.NewPut(key(i)).Set("f", "n", long(n)).Set("f", "w", long(w))); err != nil {
			t.Fatal(err)
		}
	}
	median := func(s *hbase.Scan) found[int64] {
		t.Helper()
		return got(endpoint.New(tab, endpoint.Long(), s, endpoint.Options{}).Median(t.Context()))(t)
	}
	column := func() *hbase.Scan { return hbase.NewScan().Column("f", "n") }
	if m := median(column()); m.ok {
		t.Errorf("of nothing: %v", m)
	}
	put(1, 7, 1)
	if m := median(column()); m != (found[int64]{7, true}) {
		t.Errorf("of one: %v", m)
	}
	for i := range 11 {
		put(i, int64(i), 1) // sums 0 1 3 6 10 15 21 28 of 55: half is passed at 7
	}
	for name, tt := range map[string]struct {
		scan *hbase.Scan
		want int64
	}{
		"all":                  {column(), 6},
		"a range":              {hbase.NewScanRange("r001", "r006").Column("f", "n"), 3}, // 1 3 6 10 15
		"passed at a boundary": {hbase.NewScanRange("r001", "r004").Column("f", "n"), 2}, // 1 3 | 6
		"weighted":             {hbase.NewScan().Column("f", "n", "w"), 4},               // 11 rows of weight 1
		"weighted range":       {hbase.NewScanRange("r005", "r009").Column("f", "n", "w"), 6},
	} {
		if m := median(tt.scan); !m.ok || m.v != tt.want {
			t.Errorf("%s: %v, want %d", name, m, tt.want)
		}
	}
	if err := c.Split(t.Context(), encoded(t, c, "r003")[0], []byte("r005")); err != nil {
		t.Fatal(err)
	}
	if m := median(column()); m.v != 6 {
		t.Errorf("after a split: %v", m)
	}
	for name, s := range map[string]*hbase.Scan{
		"nil": nil, "no column": hbase.NewScan().Family("f"), "three": hbase.NewScan().Column("f", "a", "b", "c"),
	} {
		if _, _, err := endpoint.New(tab, endpoint.Long(), s, endpoint.Options{}).Median(t.Context()); !errors.Is(err, hbase.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusedAggregates(t *testing.T) {
	t.Parallel()
	c, tab := start(t)
	fill(t, tab, 3)
	for name, s := range map[string]*hbase.Scan{
		"reversed":  hbase.NewScan().Column("f", "n").Reverse(),
		"limit":     hbase.NewScan().Column("f", "n").WithLimit(1),
		"backwards": hbase.NewScanRange("b", "a").Column("f", "n"),
		"bad name":  hbase.NewScan().Column("f:", "n"),
	} {
		if _, _, err := endpoint.New(tab, endpoint.Long(), s, endpoint.Options{}).Sum(t.Context()); !errors.Is(err, hbase.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := endpoint.RowCount(t.Context(), tab, nil, endpoint.Options{Parallel: -1}); !errors.Is(err, hbase.ErrInvalid) {
		t.Errorf("parallel: %v", err)
	}
	if _, err := endpoint.RowCount(t.Context(), tab, hbase.NewScan().Family("none"), endpoint.Options{}); !errors.Is(err, hbase.ErrNoSuchFamily) {
		t.Errorf("unknown family: %v", err)
	}
	// And an answer that is none does not pass.
	if _, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "ExecService"}, Times: 1, Action: minihbase.Truncate}); err != nil {
		t.Fatal(err)
	}
	if n := must(endpoint.RowCount(t.Context(), tab, nil, endpoint.Options{}))(t); n != 3 {
		t.Errorf("%d rows", n)
	}
}

// TestServerAndMasterServices: single calls beside the regions'.
func TestServerAndMasterServices(t *testing.T) {
	t.Parallel()
	c, tab := start(t, "m")
	client := tab.Client()
	ans, err := client.CallMasterService(t.Context(), &hbase.ServiceCall{Service: "RSGroupAdminService", Method: "ListRSGroupInfos"})
	if err != nil || len(ans.Value) == 0 {
		t.Errorf("master: %+v, %v", ans, err)
	}
	server := must(meta.ParseServerName(c.Servers()[0].Name))(t)
	for name, f := range map[string]func() error{
		"master": func() error {
			_, err := client.CallMasterService(t.Context(), &hbase.ServiceCall{Service: "None", Method: "x"})
			return err
		},
		"server": func() error {
			_, err := client.CallServerService(t.Context(), server, &hbase.ServiceCall{Service: "None", Method: "x"})
			return err
		},
	} {
		err := f()
		if x, ok := errors.AsType[*hbase.RemoteError](err); !ok || x.Short() != "UnknownProtocolException" {
			t.Errorf("%s: %v", name, err)
		}
	}
	one, err := tab.CallService(t.Context(), []byte("x"), counting2(t))
	if err != nil || string(one.Region.Start) != "m" || len(one.Value) == 0 {
		t.Errorf("region: %+v, %v", one, err)
	}
	for _, call := range []*hbase.ServiceCall{nil, {}, {Service: "a"}, {Service: "a", Method: "b", Timeout: -1}} {
		if _, err := tab.CallService(t.Context(), nil, call); !errors.Is(err, hbase.ErrInvalid) {
			t.Errorf("%+v: %v", call, err)
		}
	}
}

func counting2(t testing.TB) *hbase.ServiceCall {
	t.Helper()
	c := counting(t, "", "", true)
	req, err := c.Request(endpoint.Part{})
	if err != nil {
		t.Fatal(err)
	}
	return &hbase.ServiceCall{Service: c.Service, Method: c.Method, Request: req}
}
