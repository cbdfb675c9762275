package hbase

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

func TestInvalidRequestsAreNotSent(t *testing.T) {
	long := strings.Repeat("x", 32768)
	big := make([]byte, 11<<20)
	put := func(row string) *Put { return NewPut(row).Set("f", "q", nil) }
	cases := []struct {
		name string
		do   func(*Table) error
		want string
	}{
		{"get without row", func(tab *Table) error { _, err := tab.Get(t.Context(), NewGet("")); return err }, "get: row: is empty"},
		{"get nil", func(tab *Table) error { _, err := tab.Get(t.Context(), nil); return err }, "get: get: is nil"},
		{"long row", func(tab *Table) error { _, err := tab.Get(t.Context(), NewGet(long)); return err }, "is longer than 32767 bytes"},
		{"empty family", func(tab *Table) error { _, err := tab.Get(t.Context(), NewGet("r").Family("")); return err }, "family: is empty"},
		{"long family", func(tab *Table) error {
			return tab.Put(t.Context(), NewPut("r").Set(strings.Repeat("f", 128), "q", nil))
		}, "longer than 127"},
		{"family with colon", func(tab *Table) error { return tab.Put(t.Context(), NewPut("r").Set("a:b", "q", nil)) }, "holds ':'"},
		{"put without cells", func(tab *Table) error { return tab.Put(t.Context(), NewPut("r")) }, "has no cells"},
		{"put nil", func(tab *Table) error { return tab.Put(t.Context(), nil) }, "mutation: is nil"},
		{"negative timestamp", func(tab *Table) error { return tab.Put(t.Context(), NewPut("r").SetAt("f", "q", -1, nil)) }, `cell "r/f:q": timestamp -1 is negative`},
		{"negative delete", func(tab *Table) error { return tab.Delete(t.Context(), NewDelete("r").UpTo(-5)) }, "timestamp -5"},
		{"big value", func(tab *Table) error { return tab.Put(t.Context(), NewPut("r").Set("f", "q", big)) }, "the limit is 10485760"},
		{"put in a delete", func(tab *Table) error {
			return tab.Delete(t.Context(), NewDelete("r").Add(Cell{Family: []byte("f"), Type: TypePut}))
		}, "has type Put"},
		{"time range", func(tab *Table) error { _, err := tab.Get(t.Context(), NewGet("r").In(TimeRange{5, 3})); return err }, "ends before it begins"},
		{"negative versions", func(tab *Table) error { _, err := tab.Get(t.Context(), NewGet("r").Versions(-1)); return err }, "max versions: -1"},
		{"strong replica", func(tab *Table) error {
			_, err := tab.Get(t.Context(), &Get{Row: []byte("r"), ReplicaID: 1})
			return err
		}, "replica id: needs Consistency Timeline"},
		{"replica id", func(tab *Table) error {
			_, err := tab.Scan(t.Context(), &Scan{Consistency: Timeline, ReplicaID: 65536}).Next()
			return err
		}, "replica id: 65536 is not between"},
		{"ttl", func(tab *Table) error {
			p := put("r")
			p.TTL = -time.Second
			return tab.Put(t.Context(), p)
		}, "TTL -1s is negative"},
		{"check without condition", func(tab *Table) error {
			_, err := tab.CheckAndMutate(t.Context(), NewCheckAndMutate("r").Then(put("r")))
			return err
		}, "condition: is missing"},
		{"check with two", func(tab *Table) error {
			_, err := tab.CheckAndMutate(t.Context(), NewCheckAndMutate("r").IfNotExists("f", "q").IfFilter(filter.KeyOnly()).Then(put("r")))
			return err
		}, "set more than once"},
		{"check without action", func(tab *Table) error {
			_, err := tab.CheckAndMutate(t.Context(), NewCheckAndMutate("r").IfNotExists("f", "q"))
			return err
		}, "action: is missing"},
		{"check of another row", func(tab *Table) error {
			_, err := tab.CheckAndMutate(t.Context(), NewCheckAndMutate("r").IfNotExists("f", "q").Then(put("s")))
			return err
		}, `action: is of row "s", the condition of row "r"`},
		{"mutations of another row", func(tab *Table) error {
			_, err := tab.MutateRow(t.Context(), NewRowMutations("r").Add(put("r"), put("s")))
			return err
		}, `mutation 1: is of row "s"`},
		{"no mutations", func(tab *Table) error { _, err := tab.MutateRow(t.Context(), NewRowMutations("r")); return err }, "has no mutations"},
		{"batch and partial", func(tab *Table) error {
			_, err := tab.Scan(t.Context(), &Scan{Batch: 1, AllowPartial: true}).Next()
			return err
		}, "does not go with AllowPartial"},
		{"batch and row filter", func(tab *Table) error {
			_, err := tab.Scan(t.Context(), &Scan{Batch: 1, Filter: filter.Page(3)}).Next()
			return err
		}, "judges whole rows"},
		{"broken filter", func(tab *Table) error {
			_, err := tab.Get(t.Context(), NewGet("r").WithFilter(filter.And(nil)))
			return err
		}, "inside is nil"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			core := &scriptedCore{}
			err := c.do(scriptedTable(core))
			if err == nil {
				t.Fatal("no error")
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want ErrInvalid with %q", err, c.want)
			}
			if Retriable(err) || !SafeToRetry(err) {
				t.Errorf("retriable %v, safe %v; want false, true", Retriable(err), SafeToRetry(err))
			}
			if core.param != nil || core.items != nil {
				t.Error("something was sent")
			}
		})
	}
}

func TestTableNames(t *testing.T) {
	c := newClient(defaultConfig("x"), &scriptedCore{})
	for _, bad := range []string{"", "a b", ":", "ns:", "-x", "a:b:c", "zookeeper"} {
		if _, err := c.Table(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: error %v, want ErrInvalid", bad, err)
		}
	}
	for _, good := range []string{"t", "ns:t", "default:t", "a.b-c_d"} {
		if _, err := c.Table(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestConfigReportsEveryProblem(t *testing.T) {
	cfg := defaultConfig("hbase://x")
	if err := cfg.Validate(); err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	cfg.RPCTimeout, cfg.MaxAttempts, cfg.Compressor = -1, -1, "rar"
	err := cfg.Validate()
	for _, want := range []string{"RPCTimeout", "MaxAttempts", "Compressor"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if s := cfg.String(); !strings.Contains(s, "hbase://x") || !strings.Contains(s, "rpc-timeout") {
		t.Errorf("printed: %s", s)
	}
}

func TestAddressOptions(t *testing.T) {
	t.Setenv("HOLDFAST_ADDRESS", "hbase://zk:2181/hbase?rpc-timeout=3s&max-attempts=7")
	cfg, err := configOf("")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.RPCTimeout != 3*time.Second || cfg.MaxAttempts != 7 || cfg.OperationTimeout != time.Minute {
		t.Errorf("%+v", cfg)
	}
	if _, err := configOf("hbase://zk:2181/hbase?speed=9"); err == nil || !strings.Contains(err.Error(), "rpc-timeout") {
		t.Errorf("unknown option: %v, want an error that lists the known ones", err)
	}
}

// TestImportsStayLight: a program that imports the client must not get the
// embedded cluster's storage, Thrift or a command line with it.
func TestImportsStayLight(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/holdfast-hbase/holdfast/hbase").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		for _, bad := range []string{"cockroachdb/pebble", "apache/thrift", "spf13/cobra", "charmbracelet", "holdfast/internal/embed", "holdfast/minihbase", "holdfast/interop"} {
			if strings.Contains(dep, bad) {
				t.Errorf("hbase pulls in %s", dep)
			}
		}
	}
}

func TestResultHelpers(t *testing.T) {
	cell := func(f, q string, ts int64, v string) Cell {
		return Cell{Row: []byte("r"), Family: []byte(f), Qualifier: []byte(q), Timestamp: ts, Type: TypePut, Value: []byte(v)}
	}
	r := &Result{Row: []byte("r"), Cells: []Cell{
		cell("f", "a", 2, "new"), cell("f", "a", 1, "old"), cell("f", "e", 1, ""), cell("g", "n", 1, "\x00\x00\x00\x00\x00\x00\x01\x00"),
	}}
	if got := string(r.Value("f", "a")); got != "new" {
		t.Errorf("Value: %q", got)
	}
	if r.Value("f", "x") != nil || r.Value("f", "e") == nil {
		t.Error("a missing value is nil, an empty one is not")
	}
	if n, ok := r.Int64("g", "n"); !ok || n != 256 {
		t.Errorf("Int64: %d %v", n, ok)
	}
	if _, ok := r.Int64("f", "a"); ok {
		t.Error("Int64 of three bytes")
	}
	if vs := r.Versions("f", "a"); len(vs) != 2 || string(vs[1].Value) != "old" {
		t.Errorf("Versions: %v", vs)
	}
	if m := r.Map(); len(m) != 2 || string(m["f"]["a"]) != "new" || len(m["f"]) != 2 {
		t.Errorf("Map: %v", m)
	}
	if f := r.Family("f"); len(f) != 2 || string(f["a"]) != "new" {
		t.Errorf("Family: %v", f)
	}
	c := r.Clone()
	r.Cells[0].Value[0] = 'X'
	if string(c.Value("f", "a")) != "new" {
		t.Error("a clone shares bytes")
	}
	var none *Result
	if !none.Empty() || none.Has("f", "a") || none.Clone() != nil || none.String() != "keyvalues=NONE" || len(none.Map()) != 0 || none.Size() != 0 {
		t.Error("a nil Result is empty")
	}
	if (&Result{}).String() != "keyvalues=NONE" {
		t.Error("an empty Result prints as HBase's")
	}
}
