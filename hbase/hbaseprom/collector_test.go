package hbaseprom_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/hbaseprom"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gather gives every series with its value: name{label="value",...}.
func gather(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			switch {
			case m.Counter != nil:
				got[name] = m.Counter.GetValue()
			case m.Gauge != nil:
				got[name] = m.Gauge.GetValue()
			case m.Histogram != nil:
				got[name] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return got
}

func TestCollector(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.CreateTable(t.Context(), "orders", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	m := hbaseprom.New(hbaseprom.Options{Tables: true, ConstLabels: prometheus.Labels{"client": "a"}})
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	client, err := hbase.Open(t.Context(), c.Address(), hbase.WithHooks(m))
	if err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table("orders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "Get", Table: "orders"}, Action: minihbase.Fail, Times: 2, Exception: minihbase.Exception{Class: "RegionTooBusyException"}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := tab.Get(t.Context(), hbase.NewGet("r")); err != nil {
			t.Fatal(err)
		}
	}
	if err := tab.Put(t.Context(), hbase.NewPut("r").Set("nope", "q", nil)); err == nil {
		t.Fatal("no error")
	}
	if err := tab.Put(t.Context(), hbase.NewPut("r").Set("f", "q", nil)); err != nil {
		t.Fatal(err)
	}
	for _, err := range tab.Scan(t.Context(), &hbase.Scan{}).Rows() {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := gather(t, r)
	for name, want := range map[string]float64{
		`operations_total{client="a",error="",op="get",table="orders"}`:                            3,
		`operations_total{client="a",error="NoSuchColumnFamilyException",op="put",table="orders"}`: 1,
		`operation_duration_seconds{client="a",op="get",table="orders"}`:                           3,
		`operations_in_flight{client="a"}`:                                                         0,
		`attempts_total{client="a",error="",method="Get"}`:                                         3,
		`attempts_total{client="a",error="RegionTooBusyException",method="Get"}`:                   2,
		`retries_total{class="region busy",client="a"}`:                                            2,
		`failures_total{client="a",rule="region busy"}`:                                            2,
		`failures_total{client="a",rule="do not retry"}`:                                           1,
		`waits_total{class="region busy",client="a"}`:                                              2,
		`lookups_total{client="a",result="ok"}`:                                                    1,
		`meta_reads_total{client="a",kind="scan",result="ok"}`:                                     1,
		`meta_reads_total{client="a",kind="registry",result="ok"}`:                                 1,
		`scans_total{client="a",result="ok"}`:                                                      1,
		`scan_rows_total{client="a"}`:                                                              1,
		`routes{client="a"}`:                                                                       2,
		`route_misses_total{client="a"}`:                                                           2,
		`servers{client="a",state="down"}`:                                                         0,
		`server_calls_in_flight{client="a"}`:                                                       0,
	} {
		if v, ok := got["hbase_client_"+name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	for _, name := range []string{"request_bytes_total", "response_bytes_total", "wait_seconds_total", "connections", `servers{client="a",state="healthy"}`} {
		found := false
		for series, v := range got {
			found = found || strings.HasPrefix(series, "hbase_client_"+name) && v > 0
		}
		if !found {
			t.Errorf("no %s above 0", name)
		}
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	got = gather(t, r)
	if _, ok := got[`hbase_client_routes{client="a"}`]; ok || got[`hbase_client_connections{client="a"}`] != 0 {
		t.Errorf("after the client's end: %v", got)
	}
}

// A server or a program that invents names does not make more series.
func TestCardinalityIsBounded(t *testing.T) {
	m := hbaseprom.New(hbaseprom.Options{Tables: true, MaxTables: 3, MaxValues: 4})
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	for i := range 200 {
		o := hbase.Operation{Name: fmt.Sprint("op", i%50), Table: hbase.TableName{Namespace: "default", Qualifier: fmt.Sprint("t", i)}}
		ctx := m.OperationStart(context.Background(), o)
		m.OperationEnd(ctx, o, hbase.OperationResult{Err: errors.New("odd")})
		m.AttemptEnd(ctx, hbase.Attempt{Method: fmt.Sprint("m", i)}, hbase.AttemptResult{Err: &hbase.RemoteError{Class: fmt.Sprint("c.Odd", i)}, Decision: hbase.Decision{Rule: fmt.Sprint("r", i)}})
	}
	operations, attempts, others := 0, 0, false
	for name := range gather(t, r) {
		if strings.HasPrefix(name, "hbase_client_operations_total") {
			operations++
			others = others || strings.Contains(name, `table="other"`)
		}
		if strings.HasPrefix(name, "hbase_client_attempts_total") {
			attempts++
		}
	}
	if operations > 5*4 || attempts > 5*5 || !others {
		t.Errorf("%d series of operations, %d of attempts, others %v", operations, attempts, others)
	}
	// Without the option the table is no label.
	m = hbaseprom.New(hbaseprom.Options{})
	r = prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	for i := range 20 {
		o := hbase.Operation{Name: "get", Table: hbase.TableName{Namespace: "default", Qualifier: fmt.Sprint("t", i)}}
		m.OperationEnd(m.OperationStart(context.Background(), o), o, hbase.OperationResult{})
	}
	if got := gather(t, r)[`hbase_client_operations_total{error="",op="get",table=""}`]; got != 20 {
		t.Errorf("%v operations without a table", got)
	}
}
