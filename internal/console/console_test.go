package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/console"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func up(t testing.TB, o minihbase.Options) *minihbase.Cluster {
	t.Helper()
	c, err := minihbase.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ask sends a request as a browser does from the page itself.
func ask(t testing.TB, c *minihbase.Cluster, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Control()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	k := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := k.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// get asks for an answer in JSON.
func get[T any](t testing.TB, c *minihbase.Cluster, path string, params ...string) (out T) {
	t.Helper()
	resp, body := ask(t, c, path+query(params))
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %s %s %s", path, resp.Status, resp.Header.Get("Content-Type"), body)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%s: %v in %.200s", path, err, body)
	}
	return out
}

func query(params []string) string {
	q := url.Values{}
	for i := 0; i < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// The page comes from the binary alone: with a policy that lets it fetch from
// nowhere else, and without anything that would.
func TestAssets(t *testing.T) {
	c := up(t, minihbase.Options{Servers: 1})
	resp, page := ask(t, c, "/", "Sec-Fetch-Site", "none")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" || !bytes.Contains(page, []byte("<!doctype html>")) {
		t.Fatalf("%s %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	entries, err := os.ReadDir("web")
	if err != nil || len(entries) < 10 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		resp, body := ask(t, c, "/console/"+e.Name())
		want, err := os.ReadFile("web/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK || !bytes.Equal(body, want) {
			t.Errorf("%s: %s, %d bytes", e.Name(), resp.Status, len(body))
		}
		h := resp.Header
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: no %s in %q", e.Name(), part, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") {
			t.Errorf("%s: a weak policy: %q", e.Name(), csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", e.Name(), h)
		}
		kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
		switch ext := e.Name()[strings.LastIndexByte(e.Name(), '.'):]; {
		case ext == ".js" && kind != "text/javascript", ext == ".css" && kind != "text/css", ext == ".svg" && kind != "image/svg+xml":
			t.Errorf("%s is served as %s", e.Name(), kind)
		}
		for _, far := range []string{"https://", "//cdn", "@import", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("} {
			if bytes.Contains(want, []byte(far)) {
				t.Errorf("%s has %s", e.Name(), far)
			}
		}
	}
	if resp, body := ask(t, c, "/console/none.js"); resp.StatusCode != http.StatusNotFound || !bytes.Contains(body, []byte(`"error"`)) {
		t.Errorf("a file that is not there: %s %s", resp.Status, body)
	}
}

// The console is bounded, whatever is asked.
func TestRefusals(t *testing.T) {
	c := up(t, minihbase.Options{Servers: 1})
	for _, path := range []string{
		"/console/map?cells=5001", "/console/map?cells=x", "/console/rates?since=-1",
		"/console/rows", "/console/rows?table=t&limit=201", "/console/rows?table=t&versions=101", "/console/rows?table=a:b:c",
		"/console/regions?table=none", "/console/regions?table=hbase:meta&limit=501",
		"/console/events?kind=all", "/console/events?limit=501", "/console/events?since=x",
	} {
		if resp, body := ask(t, c, path); resp.StatusCode != http.StatusBadRequest || !bytes.Contains(body, []byte(`{"error":`)) {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	if resp, body := ask(t, c, "/console/rows?table=none"); resp.StatusCode != http.StatusConflict || !bytes.Contains(body, []byte("there is no table none")) {
		t.Errorf("rows of no table: %s %s", resp.Status, body)
	}
}

func keys(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, "%05d", i)
	}
	return out
}

func TestMap(t *testing.T) {
	ctx := t.Context()
	c := up(t, minihbase.Options{BackupMasters: 1})
	if err := c.CreateTable(ctx, "t", []string{"f", "g"}, []byte("m\x00"), []byte("t")); err != nil {
		t.Fatal(err)
	}
	m := get[console.Map](t, c, "/console/map")
	if m.Address != c.Address() || len(m.Servers) != 3 || len(m.Masters) != 2 || m.ZKFault != "healthy" || len(m.Groups) != 1 || len(m.Groups[0].Servers) != 3 {
		t.Errorf("%+v", m)
	}
	at := -1
	for i, x := range m.Tables {
		if x.Name == "t" {
			at = i
			if x.Total != 3 || x.Regions["OPEN"] != 3 || strings.Join(x.Families, " ") != "f g" || !x.Listed || x.System || x.Virtual || x.State != "ENABLED" {
				t.Errorf("%+v", x)
			}
		}
	}
	var listed []console.MapRegion
	for _, r := range m.Regions {
		if r.Table == at {
			listed = append(listed, r)
		}
	}
	if len(listed) != 3 || string(listed[1].Start) != "m\x00" || listed[1].State != "OPEN" || listed[1].Server < 0 || listed[1].OpenSeq <= 0 || !strings.HasPrefix(listed[1].Name, `t,m\x00,`) {
		t.Fatalf("%+v", listed)
	}
	if m.Total != m.Open || m.Total != len(m.Regions) || len(m.Blocks) != 0 || m.InTransition != 0 {
		t.Errorf("%d regions, %d open, %d listed", m.Total, m.Open, len(m.Regions))
	}

	// Whoever has the picture is told so, until something changes: a move, a
	// server's state, ZooKeeper's.
	same := func(why string, want bool) {
		t.Helper()
		next := get[console.Map](t, c, "/console/map", "have", m.Version)
		if next.Same != want {
			t.Errorf("%s: same %t", why, next.Same)
		}
		if !want {
			m = next
		}
	}
	same("nothing happened", true)
	to := (listed[0].Server + 1) % 3
	if err := c.MoveRegion(ctx, listed[0].Encoded, to); err != nil {
		t.Fatal(err)
	}
	same("a move", false)
	for _, r := range m.Regions {
		if r.Encoded == listed[0].Encoded && r.Server != to {
			t.Errorf("moved to %d, shown on %d", to, r.Server)
		}
	}
	if err := c.PauseRegionServer(1); err != nil {
		t.Fatal(err)
	}
	same("a pause", false)
	if m.Servers[1].State != "paused" {
		t.Errorf("%+v", m.Servers[1])
	}
	if err := c.ResumeRegionServer(1); err != nil {
		t.Fatal(err)
	}
	same("a resume", false)
	if err := c.Split(ctx, listed[1].Encoded, []byte("p")); err != nil {
		t.Fatal(err)
	}
	same("a split", false)
	if m.Parents != 1 || m.Open != m.Total-1 {
		t.Errorf("%d regions, %d open, %d parents", m.Total, m.Open, m.Parents)
	}
	if err := c.AddGroup(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	if err := c.MoveToGroup(ctx, "g", c.RegionServers()[2:], nil); err != nil {
		t.Fatal(err)
	}
	same("a group", false)
	if len(m.Groups) != 2 || len(m.Groups[0].Servers) != 2 || len(m.Groups[1].Servers) != 1 || m.Groups[1].Servers[0] != 2 {
		t.Errorf("%+v", m.Groups)
	}
}

// A million regions are counted in little time and few bytes; small tables are
// listed beside them.
func TestMapOfMillion(t *testing.T) {
	ctx := t.Context()
	c := up(t, minihbase.Options{})
	regions := 1_000_000
	if testing.Short() {
		regions = 100_000
	}
	if err := c.GenerateTable(ctx, minihbase.GeneratedTable{Name: "huge", Regions: regions}); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateTable(ctx, "small", []string{"f"}, keys(9)...); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, body := ask(t, c, "/console/map")
	took := time.Since(began)
	var m console.Map
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	if len(body) > 64<<10 {
		t.Errorf("%d bytes", len(body))
	}
	t.Logf("a picture of %d regions: %v, %d bytes", m.Total, took, len(body))
	sum := 0
	for _, b := range m.Blocks {
		if m.Tables[b.Table].Name != "huge" || b.State != "OPEN" || b.Server < 0 {
			t.Errorf("%+v", b)
		}
		sum += b.Count
	}
	if sum != regions || len(m.Blocks) != 3 || m.Total != regions+12 || m.Open != m.Total || len(m.Regions) != 12 {
		t.Errorf("%d in %d blocks, %d in all, %d listed", sum, len(m.Blocks), m.Total, len(m.Regions))
	}
	// With less room, less is listed.
	if m = get[console.Map](t, c, "/console/map", "cells", "10"); len(m.Regions) != 2 || len(m.Blocks) != 6 {
		t.Errorf("%d listed, %d blocks", len(m.Regions), len(m.Blocks))
	}
	// Regions are found from any key on.
	r := get[console.Regions](t, c, "/console/regions", "table", "huge", "from", "00077777x", "limit", "3")
	if len(r.Regions) != 3 || string(r.Regions[0].Start) != "00077777" || !r.More || string(r.Next) != "00077780" || r.Regions[2].Server < 0 {
		t.Errorf("%+v", r)
	}
	if r = get[console.Regions](t, c, "/console/regions", "table", "small"); len(r.Regions) != 10 || r.More || len(r.Next) != 0 {
		t.Errorf("%d regions, more %t from %q", len(r.Regions), r.More, r.Next)
	}
	if r = get[console.Regions](t, c, "/console/regions", "table", "huge", "from", fmt.Sprintf("%08d", regions-1)); len(r.Regions) != 1 || r.More {
		t.Errorf("%d at the end, more %t", len(r.Regions), r.More)
	}
}

// The page itself may act, and no other: the port's guard is before the console.
func TestOrigins(t *testing.T) {
	c := up(t, minihbase.Options{Servers: 1})
	for _, x := range []struct {
		headers []string
		want    int
	}{
		{nil, 200},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Origin", "http://evil.example"}, 403},
		{[]string{"Origin", c.Control()}, 200},
	} {
		if resp, body := ask(t, c, "/console/rows?table=hbase:namespace", x.headers...); resp.StatusCode != x.want {
			t.Errorf("%v: %s %s", x.headers, resp.Status, body)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.Control()+"/balance", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		for i := 0; i < len(x.headers); i += 2 {
			req.Header.Set(x.headers[i], x.headers[i+1])
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != x.want {
			t.Errorf("POST with %v: %s", x.headers, resp.Status)
		}
	}
}

func open(t *testing.T, c *minihbase.Cluster, table string) *hbase.Table {
	t.Helper()
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	tab, err := client.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestRows(t *testing.T) {
	ctx := t.Context()
	c := up(t, minihbase.Options{})
	if err := c.CreateTable(ctx, "t", []string{"f", "g"}, []byte("m")); err != nil {
		t.Fatal(err)
	}
	tab := open(t, c, "t")
	put := func(p *hbase.Put) {
		t.Helper()
		if err := tab.Put(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	put(hbase.NewPut("a\x00\\").Set("f", "q\xff", []byte("v\n")).Set("g", "x", bytes.Repeat([]byte("y"), 2000)))
	put(hbase.NewPut("b").Set("f", "q", []byte("1")))
	put(hbase.NewPut("z").Set("f", "q", []byte("26")))
	wide := hbase.NewPut("w")
	for i := range 300 {
		wide.Set("f", fmt.Sprintf("%04d", i), nil)
	}
	put(wide)

	_, body := ask(t, c, "/console/rows?table=t&limit=1")
	for _, want := range []string{`"key":"a\\x00\\x5C"`, `"qualifier":"q\\xFF"`, `"value":"v\\x0A"`, `"length":2000`, `"more":true`, `"next":"b"`, `"type":"Put"`} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	rows := func(params ...string) console.Rows {
		t.Helper()
		return get[console.Rows](t, c, "/console/rows", append([]string{"table", "t"}, params...)...)
	}
	names := func(r console.Rows) (s string) {
		for _, x := range r.Rows {
			s += string(x.Key) + " "
		}
		return s
	}
	if r := rows(); names(r) != "a\x00\\ b w " || !r.More || string(r.Next) != "w\x00" || len(r.Rows[2].Cells) != 200 || !r.Rows[2].More || len(r.Rows[0].Cells[1].Value) != 512 {
		t.Errorf("a wide row: %q, more %t, next %q", names(r), r.More, r.Next)
	}
	if r := rows("from", `a\x01`); names(r) != "b w " {
		t.Errorf("from a key: %q", names(r))
	}
	if r := rows("from", `w\x00`); names(r) != "z " || r.More {
		t.Errorf("behind the wide row: %q, more %t", names(r), r.More)
	}
	if r := rows("family", "g"); names(r) != "a\x00\\ " {
		t.Errorf("one family: %q", names(r))
	}
	if resp, body := ask(t, c, "/console/rows?table=t&family=none"); resp.StatusCode != http.StatusConflict || !bytes.Contains(body, []byte("none")) {
		t.Errorf("no such family: %s %s", resp.Status, body)
	}

	// Versions and markers.
	put(hbase.NewPut("b").Set("f", "q", []byte("2")))
	if r := rows("from", "b", "limit", "1", "versions", "3"); len(r.Rows[0].Cells) != 1 || string(r.Rows[0].Cells[0].Value) != "2" {
		t.Errorf("%+v", r.Rows)
	}
	if err := tab.Delete(ctx, hbase.NewDelete("b")); err != nil {
		t.Fatal(err)
	}
	if r := rows("from", "b", "limit", "1"); names(r) != "w " {
		t.Errorf("a deleted row: %q", names(r))
	}
	r := rows("from", "b", "limit", "1", "versions", "3", "raw", "true")
	if len(r.Rows) != 1 || len(r.Rows[0].Cells) < 3 || r.Rows[0].Cells[0].Type == "Put" {
		t.Errorf("raw: %+v", r.Rows)
	}

	// What is rendered, too: hbase:meta in its own order, generated rows, before
	// and after one of them was written.
	if r := get[console.Rows](t, c, "/console/rows", "table", "hbase:meta"); len(r.Rows) < 4 || string(r.Rows[len(r.Rows)-1].Key[:3]) != "t,m" {
		t.Errorf("meta: %q", names(r))
	}
	if err := c.GenerateTable(ctx, minihbase.GeneratedTable{Name: "gen", Regions: 100_000, KeyFormat: "%06d", Rows: 2}); err != nil {
		t.Fatal(err)
	}
	gen := func(from string, limit string) console.Rows {
		return get[console.Rows](t, c, "/console/rows", "table", "gen", "from", from, "limit", limit)
	}
	if r := gen("050000", "3"); names(r) != "050000 050000-00001 050001 " || !r.More || string(r.Next) != "050001-00001" {
		t.Errorf("generated: %q next %q", names(r), r.Next)
	}
	if err := open(t, c, "gen").Put(ctx, hbase.NewPut("050000a").Set("f", "q", nil)); err != nil {
		t.Fatal(err)
	}
	if r := gen("050000", "4"); names(r) != "050000 050000-00001 050000a 050001 " {
		t.Errorf("generated and written: %q", names(r))
	}
	if r := gen("099999-00001", "4"); names(r) != "099999-00001 " || r.More {
		t.Errorf("the end: %q, more %t", names(r), r.More)
	}
	if err := c.GenerateTable(ctx, minihbase.GeneratedTable{Name: "none", Regions: 100_000, Rows: -1}); err != nil {
		t.Fatal(err)
	}
	if r := get[console.Rows](t, c, "/console/rows", "table", "none"); len(r.Rows) != 0 || !r.More || string(r.Next) != "00001000" {
		t.Errorf("empty regions: %d rows, next %q", len(r.Rows), r.Next)
	}

	// The rows of a cluster without servers can still be looked at, and looking
	// leaves no trace.
	before := c.Events().LastSeq()
	for i := range 3 {
		if err := c.KillRegionServer(i); err != nil {
			t.Fatal(err)
		}
	}
	if r := rows("from", "z"); names(r) != "z " {
		t.Errorf("without servers: %q", names(r))
	}
	calls, _ := c.Events().Query(minihbase.EventFilter{Service: "ClientService", Table: "t"}, before, 0)
	if len(calls) != 0 {
		t.Errorf("looking was logged: %v", calls)
	}
}

func TestEvents(t *testing.T) {
	ctx := t.Context()
	c := up(t, minihbase.Options{Events: 256})
	if err := c.CreateTable(ctx, "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	tab := open(t, c, "t")
	for i := range 300 {
		if _, err := tab.Get(ctx, hbase.NewGet(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	e := get[console.Events](t, c, "/console/events", "method", "Get", "table", "t", "limit", "10")
	if len(e.Events) != 10 || string(e.Events[9].Row) != "299" || string(e.Events[0].Row) != "290" || e.Older < 200 || e.Last < 300 || !e.Enabled {
		t.Errorf("%d events, %d older, last %d", len(e.Events), e.Older, e.Last)
	}
	if e = get[console.Events](t, c, "/console/events", "kind", "rpc", "since", fmt.Sprint(e.Last)); len(e.Events) != 0 || e.Older != 0 {
		t.Errorf("nothing new: %+v", e)
	}
	c.Events().SetEnabled(false)
	if e = get[console.Events](t, c, "/console/events"); e.Enabled {
		t.Error("the log is off and said to be on")
	}
}

// The counts that the page shows are those of the calls that were made.
func TestRates(t *testing.T) {
	ctx := t.Context()
	c := up(t, minihbase.Options{})
	if err := c.CreateTable(ctx, "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	tab := open(t, c, "t")
	calls := func(n int) {
		t.Helper()
		for range n {
			if _, err := tab.Get(ctx, hbase.NewGet("r")); err != nil {
				t.Fatal(err)
			}
		}
	}
	line := func(lines []console.Line, name string) console.Line {
		for _, l := range lines {
			if l.Name == name {
				return l
			}
		}
		return console.Line{}
	}
	calls(50) // before the console was opened: from the log's memory
	r := get[console.Rates](t, c, "/console/rates")
	if l := line(r.Methods, "Get"); l.Calls != 50 || r.Sampled || !r.Enabled {
		t.Errorf("%+v", l)
	}
	calls(70)
	r = get[console.Rates](t, c, "/console/rates")
	at, err := c.Locate("t", []byte("r"))
	if err != nil {
		t.Fatal(err)
	}
	m, s := line(r.Methods, "Get"), line(r.Servers, c.RegionServers()[at.Index])
	if m.Calls != 120 || s.Calls < 120 || r.Total.Calls < s.Calls {
		t.Errorf("method %d, server %d, total %d", m.Calls, s.Calls, r.Total.Calls)
	}
	// A second later all of them are in the seconds that are over.
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for sum := uint64(0); sum < 120; {
		r = get[console.Rates](t, c, "/console/rates")
		m, sum = line(r.Methods, "Get"), 0
		for _, n := range m.Rate {
			sum += uint64(n)
		}
		if wait.Err() != nil {
			t.Fatalf("%d calls in the seconds that are over", sum)
		}
	}
	if n := len(m.Rate); n != 299 || len(m.P99s) != n || len(m.Failed) != n || len(m.P50s) != n || m.PerSecond <= 0 || m.P50 <= 0 || m.P99 < m.P50 {
		t.Errorf("%d seconds, %+v a second, p50 %v, p99 %v", n, m.PerSecond, m.P50, m.P99)
	}
	if r = get[console.Rates](t, c, "/console/rates", "since", fmt.Sprint(r.Now)); len(r.Total.Rate) > 2 {
		t.Errorf("%d seconds since just now", len(r.Total.Rate))
	}
}
