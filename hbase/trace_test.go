package hbase_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// tracedTable is a table of a client of its own, with hooks.
func tracedTable(t *testing.T, c *minihbase.Cluster, hooks ...any) *hbase.Table {
	t.Helper()
	client, err := hbase.Open(t.Context(), c.Address(), hbase.WithHooks(hooks...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func kinds(trace *hbase.Trace) string {
	entries, _ := trace.Entries()
	var list []string
	for _, e := range entries {
		list = append(list, e.Kind)
	}
	return strings.Join(list, " ")
}

func TestTrace(t *testing.T) {
	c, _ := faulty(t, minihbase.Options{})
	trace := hbase.NewTrace(0)
	tab := tracedTable(t, c, trace)
	if _, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "Get", Table: "t"}, Action: minihbase.Fail, Times: 1, Exception: minihbase.Exception{Class: "RegionTooBusyException"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Get(t.Context(), hbase.NewGet("r001")); err != nil {
		t.Fatal(err)
	}
	s := trace.Totals()
	if s.Calls != 1 || s.Attempts < 3 || s.FailedAttempts != 1 || s.Waits != 1 || s.Lookups != 1 || s.MetaReads < 2 || s.Dials < 1 ||
		s.Waiting < 20*time.Millisecond || s.RequestBytes <= 0 || s.ResponseBytes <= 0 {
		t.Errorf("totals %+v", s)
	}
	entries, dropped := trace.Entries()
	if dropped != 0 || entries[0].Kind != "call" || entries[len(entries)-1].Kind != "call" {
		t.Errorf("%d dropped, %s", dropped, kinds(trace))
	}
	text := trace.String()
	for _, want := range []string{
		`get begins, 1m0s allowed: table t, row "r001"`, "lookup: region ", "hbase:meta, scan: ", "dial 127.0.0.1:", "attempt 1: Get region ",
		"error: RegionTooBusyException", "so: region busy: keep, wait region busy", "wait: region busy", "attempt 2: Get region ", "get ends after 2 attempts", "1 calls, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
	var doc struct {
		Entries []struct {
			Kind   string
			AtMs   float64
			TookMs float64
		}
		Totals map[string]float64
	}
	raw, err := json.Marshal(trace)
	if err != nil || json.Unmarshal(raw, &doc) != nil || len(doc.Entries) != len(entries) || doc.Totals["waits"] != 1 {
		t.Errorf("%v: %s", err, raw)
	}
	// Whatever is known costs a line for the attempt and two for the call.
	trace.Reset()
	if _, err := tab.Get(t.Context(), hbase.NewGet("r001")); err != nil {
		t.Fatal(err)
	}
	if got := kinds(trace); got != "call attempt call" {
		t.Errorf("warm: %s", got)
	}
}

func TestTraceOfMarkedCalls(t *testing.T) {
	c, _ := faulty(t, minihbase.Options{})
	trace := hbase.NewTrace(5)
	tab := tracedTable(t, c, trace)
	marked := trace.Mark(t.Context())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := tab.Get(t.Context(), hbase.NewGet("r001")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s := trace.Totals(); s != (hbase.TraceTotals{}) {
		t.Errorf("calls that are not marked: %+v", s)
	}
	for row, err := range tab.Scan(marked, &hbase.Scan{Limit: 3}).Rows() {
		if err != nil || row == nil {
			t.Fatal(err)
		}
	}
	if s := trace.Totals(); s.Calls < 1 || s.Attempts < 1 {
		t.Errorf("%+v", s)
	}
	for range 5 {
		if _, err := tab.Get(marked, hbase.NewGet("r001")); err != nil {
			t.Fatal(err)
		}
	}
	entries, dropped := trace.Entries()
	if len(entries) != 5 || dropped == 0 {
		t.Errorf("%d entries and %d dropped of a trace of 5", len(entries), dropped)
	}
}

// counting is a hook that sees scans and clients.
type counting struct {
	mu     sync.Mutex
	events []string
	opened *hbase.Client
	closed bool
}

func (c *counting) add(s string) {
	c.mu.Lock()
	c.events = append(c.events, s)
	c.mu.Unlock()
}

func (c *counting) ClientOpened(client *hbase.Client) { c.opened = client }
func (c *counting) ClientClosed(client *hbase.Client) { c.closed = client == c.opened }

type scanKey struct{}

func (c *counting) ScanStart(ctx context.Context, s hbase.ScanInfo) context.Context {
	c.add("start " + s.Table.String())
	return context.WithValue(ctx, scanKey{}, true)
}

func (c *counting) ScanEvent(_ context.Context, _ hbase.ScanInfo, e hbase.ScanEvent) {
	c.add(e.Kind.String())
}

func (c *counting) ScanEnd(ctx context.Context, _ hbase.ScanInfo, r hbase.ScanResult) {
	if ctx.Value(scanKey{}) == nil {
		c.add("another's context")
	}
	if r.Err != nil || r.Stats.RPCs == 0 || r.Rows == 0 {
		c.add("end with nothing")
		return
	}
	c.add("end")
}

func TestScanAndClientHooks(t *testing.T) {
	c, plain := faulty(t, minihbase.Options{})
	if err := plain.Put(t.Context(), hbase.NewPut("r001").Set("f", "q", nil)); err != nil {
		t.Fatal(err)
	}
	h := &counting{}
	client, err := hbase.Open(t.Context(), c.Address(), hbase.WithHooks(h))
	if err != nil {
		t.Fatal(err)
	}
	if h.opened != client || len(client.Servers()) != 0 {
		t.Errorf("opened %p, servers %v", h.opened, client.Servers())
	}
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range tab.Scan(t.Context(), &hbase.Scan{}).Rows() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s := client.Servers(); len(s) == 0 || s[0].State != hbase.ServerHealthy || s[0].Err != nil {
		t.Errorf("servers %+v", s)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(h.events, ", ")
	if !strings.HasPrefix(got, "start t, region entered") || !strings.HasSuffix(got, ", end") || !h.closed {
		t.Errorf("%s, closed %v", got, h.closed)
	}
	if _, err := hbase.Open(t.Context(), c.Address(), hbase.WithHooks(struct{}{})); err == nil || !strings.Contains(err.Error(), "none of the ...Hook interfaces") {
		t.Errorf("a hook that is none: %v", err)
	}
}
