package minihbase_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/minihbase"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

func controlled(t testing.TB, o minihbase.Options) (*minihbase.Cluster, *control.Client) {
	t.Helper()
	c := up(t, o)
	k, err := control.New(c.Control())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return c, k
}

func code(err error) int {
	var e *control.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestControlRegions(t *testing.T) {
	ctx := t.Context()
	c, k := controlled(t, minihbase.Options{})
	if err := k.CreateTable(ctx, control.CreateRequest{Table: "t", Families: []string{"f"}, Splits: []control.Bytes{control.Bytes("m\x00\xff")}}); err != nil {
		t.Fatal(err)
	}
	st, err := k.Status(ctx)
	if err != nil || st.Address != c.Address() || len(st.Servers) != 3 || len(st.Masters) != 1 || !st.Masters[0].Active || st.Tables != 3 || st.Regions != 3 || st.Meta == "" || st.ClusterID == "" {
		t.Errorf("status %+v, %v", st, err)
	}
	rs, err := k.Regions(ctx, "t")
	if err != nil || len(rs) != 2 || string(rs[1].Start) != "m\x00\xff" || rs[0].State != "OPEN" {
		t.Fatalf("regions %+v, %v", rs, err)
	}
	if _, err := k.Regions(ctx, "none"); code(err) != http.StatusNotFound {
		t.Errorf("regions of no table: %v", err)
	}
	to := st.Servers[(rs[0].Index+1)%3]
	moved, err := k.Move(ctx, control.MoveRequest{RegionRef: control.RegionRef{Table: "t", Row: control.Bytes("a")}, To: to.Address})
	if err != nil || moved.Index != to.Index || moved.Encoded != rs[0].Encoded || moved.OpenSeq <= rs[0].OpenSeq {
		t.Errorf("moved %+v, %v", moved, err)
	}
	if _, err := k.Move(ctx, control.MoveRequest{RegionRef: control.RegionRef{Region: rs[0].Encoded}, To: "nowhere:1"}); code(err) != http.StatusNotFound {
		t.Errorf("move to nowhere: %v", err)
	}
	if _, err := k.Move(ctx, control.MoveRequest{}); code(err) != http.StatusBadRequest {
		t.Errorf("move of nothing: %v", err)
	}
	if err := k.Split(ctx, control.SplitRequest{RegionRef: control.RegionRef{Region: rs[0].Encoded}, At: control.Bytes("g")}); err != nil {
		t.Fatal(err)
	}
	if err := k.Split(ctx, control.SplitRequest{RegionRef: control.RegionRef{Table: "t", Row: control.Bytes("z")}}); code(err) != http.StatusConflict || !strings.Contains(err.Error(), "not splittable") {
		t.Errorf("split of an empty region: %v", err)
	}
	var names []string
	rs, _ = k.Regions(ctx, "t")
	for _, r := range rs {
		if !r.Parent {
			names = append(names, r.Encoded)
		}
	}
	if err := k.Merge(ctx, control.MergeRequest{Regions: names}); err != nil {
		t.Fatal(err)
	}
	if b, err := k.Balance(ctx); err != nil || !b.Ran {
		t.Errorf("balance %+v, %v", b, err)
	}
	if err := k.Group(ctx, control.GroupRequest{Name: "g", Add: true, Servers: []string{"0"}, Tables: []string{"t"}}); err != nil {
		t.Fatal(err)
	}
	if rs, _ := k.Regions(ctx, "t"); rs[0].Index != 0 {
		t.Errorf("the table is on server %d", rs[0].Index)
	}
	if err := k.GenerateTable(ctx, control.GenerateRequest{Table: "gen", Regions: 5000, KeyFormat: "k%04d", Rows: 2}); err != nil {
		t.Fatal(err)
	}
	if r, err := k.Move(ctx, control.MoveRequest{RegionRef: control.RegionRef{Table: "gen", Row: control.Bytes("k4999x")}, To: "1"}); err != nil || string(r.Start) != "k4999" || r.Index != 1 {
		t.Errorf("a generated region was moved: %+v, %v", r, err)
	}
	if err := k.GenerateTable(ctx, control.GenerateRequest{Table: "gen2", Regions: 0}); err == nil {
		t.Error("a table of no regions was generated")
	}
	if err := k.CreateTable(ctx, control.CreateRequest{Table: "rep", Families: []string{"f"}, Replicas: 2}); err != nil {
		t.Fatal(err)
	}
	if rs, err := k.Regions(ctx, "rep"); err != nil || len(rs) != 1 || len(rs[0].Replicas) != 1 || rs[0].Replicas[0].Index == rs[0].Index {
		t.Errorf("a table with replicas: %+v, %v", rs, err)
	}
	if err := k.ReplicaLag(ctx, control.Duration(time.Second)); err != nil {
		t.Error(err)
	}
	if err := k.ReplicaLag(ctx, -1); err == nil {
		t.Error("a negative lag was set")
	}
	for _, name := range []string{"gen", "rep"} {
		if err := k.DropTable(ctx, name); err != nil {
			t.Error(err)
		}
	}
	if err := k.DropTable(ctx, "t"); err != nil {
		t.Error(err)
	}
	if err := k.Reset(ctx); err != nil {
		t.Error(err)
	}
}

func TestControlServers(t *testing.T) {
	ctx := t.Context()
	_, k := controlled(t, minihbase.Options{BackupMasters: 1})
	state := func(i int) string {
		t.Helper()
		st, err := k.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return st.Servers[i].State
	}
	steps := []struct {
		do   func() error
		want string
	}{
		{func() error { return k.Pause(ctx, "1") }, "paused"},
		{func() error { return k.Resume(ctx, "1") }, "running"},
		{func() error { return k.Hang(ctx, "1") }, "hung"},
		{func() error { return k.Resume(ctx, "1") }, "running"},
		{func() error { return k.Slow(ctx, "1", control.Duration(time.Millisecond)) }, "running"},
		{func() error { return k.Slow(ctx, "1", 0) }, "running"},
		{func() error { return k.ResetConnections(ctx, "1") }, "running"},
		{func() error { return k.Kill(ctx, "1") }, "dead"},
		{func() error { return k.Start(ctx, "1") }, "running"},
		{func() error { return k.Stop(ctx, "1") }, "stopped"},
		{func() error { return k.Start(ctx, "1") }, "running"},
		{func() error { return k.Expire(ctx, "1") }, "dead"},
	}
	for i, s := range steps {
		if err := s.do(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if got := state(1); got != s.want {
			t.Errorf("step %d: server is %s, want %s", i, got, s.want)
		}
	}
	if err := k.Pause(ctx, "1"); code(err) != http.StatusConflict {
		t.Errorf("pause of a dead server: %v", err)
	}
	if err := k.Kill(ctx, "17"); code(err) != http.StatusNotFound {
		t.Errorf("kill of no server: %v", err)
	}
	if err := k.Kill(ctx, "meta"); err != nil {
		t.Errorf("kill of meta's server: %v", err)
	}
	if s, err := k.AddServer(ctx); err != nil || s.Index != 3 || s.State != "running" {
		t.Errorf("added %+v, %v", s, err)
	}
	if err := k.Kill(ctx, "master"); err != nil {
		t.Fatal(err)
	}
	if err := k.Start(ctx, "master:0"); err != nil {
		t.Error(err)
	}
	gap := control.Duration(time.Millisecond)
	if err := k.Master(ctx, control.MasterRequest{TransitionGap: &gap, Initializing: new(true)}); err != nil {
		t.Error(err)
	}
	if err := k.Reset(ctx); err != nil {
		t.Error(err)
	}
	for i := range 4 {
		if s := state(i); s != "running" {
			t.Errorf("after the reset server %d is %s", i, s)
		}
	}
}

func TestControlRules(t *testing.T) {
	ctx := t.Context()
	c, k := controlled(t, minihbase.Options{})
	if err := c.CreateTable(ctx, "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	id, err := k.AddRule(ctx, control.Rule{Method: "Mutate", Table: "t", StartRow: control.Bytes("a"), StopRow: control.Bytes("b\x00"), Times: 1, Name: "busy", Action: "fail",
		Exception: &control.Exception{Class: "RegionTooBusyException"}})
	if err != nil {
		t.Fatal(err)
	}
	hit := make(chan error, 1)
	go func() { _, err := k.WaitRule(ctx, id, 1); hit <- err }()
	if err := put(t, c, "t", "z", "1"); err != nil {
		t.Errorf("a row outside the rule's range: %v", err)
	}
	if err := put(t, c, "t", "a", "1"); err == nil {
		t.Error("the rule did nothing")
	}
	if err := <-hit; err != nil {
		t.Error(err)
	}
	rules, err := k.Rules(ctx)
	if err != nil || len(rules) != 1 || rules[0].ID != id || rules[0].Hits != 1 || !rules[0].Resting || string(rules[0].StopRow) != "b\x00" || rules[0].Exception == nil {
		t.Errorf("rules %+v, %v", rules, err)
	}
	if err := k.RemoveRule(ctx, id); err != nil {
		t.Error(err)
	}
	if err := k.RemoveRule(ctx, id); code(err) != http.StatusNotFound {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := k.AddRule(ctx, control.Rule{Action: "explode"}); code(err) != http.StatusBadRequest {
		t.Errorf("an unknown action: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	id, _ = k.AddRule(ctx, control.Rule{Action: "delay", Delay: control.Duration(time.Millisecond), Method: "Never"})
	if _, err := k.WaitRule(short, id, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what never happens: %v", err)
	}
	if err := k.ClearRules(ctx); err != nil {
		t.Error(err)
	}
}

func TestControlEvents(t *testing.T) {
	ctx := t.Context()
	c, k := controlled(t, minihbase.Options{})
	if err := c.CreateTable(ctx, "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	follow, stop := context.WithCancel(ctx)
	got := make(chan control.Event, 10)
	ended := make(chan error, 1)
	go func() {
		for e, err := range k.Follow(follow, control.EventFilter{Method: "Mutate"}, 0) {
			if err != nil {
				ended <- err
				return
			}
			got <- e
		}
		ended <- nil
	}()
	for _, row := range []string{"a", "b\x00"} {
		if err := put(t, c, "t", row, "1"); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-got:
			if string(e.Row) != row || e.Table != "t" || e.Outcome != "ok" || e.Kind != "rpc" {
				t.Errorf("event %+v", e)
			}
		case <-time.After(time.Minute):
			t.Fatal("no event")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	es, err := k.Events(ctx, control.EventFilter{Kind: "cluster", Method: "create"}, 0, 10)
	if err != nil || len(es.Events) != 1 || es.Events[0].Table != "t" || es.Last == 0 || es.Lost != 0 {
		t.Errorf("events %+v, %v", es, err)
	}
	cs, err := k.Counters(ctx)
	if err != nil || len(cs) == 0 {
		t.Errorf("counters %v, %v", cs, err)
	}
	if _, err := k.Events(ctx, control.EventFilter{Kind: "nonsense"}, 0, 0); code(err) != http.StatusBadRequest {
		t.Errorf("an unknown kind: %v", err)
	}
	// A follower does not hold up the end of the cluster.
	go func() {
		for range k.Follow(ctx, control.EventFilter{}, 0) {
		}
		ended <- nil
	}()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

func TestControlClockAndZooKeeper(t *testing.T) {
	ctx := t.Context()
	c, k := controlled(t, minihbase.Options{})
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	if now, err := k.Clock(ctx, control.ClockRequest{Freeze: true, At: &at, Advance: control.Duration(time.Minute)}); err != nil || !now.Frozen || !now.Now.Equal(at.Add(time.Minute)) {
		t.Errorf("clock %+v, %v", now, err)
	}
	if now, err := k.Clock(ctx, control.ClockRequest{Reset: true}); err != nil || now.Frozen || time.Since(now.Now).Abs() > time.Minute {
		t.Errorf("clock %+v, %v", now, err)
	}
	if err := k.SetZNode(ctx, control.ZNode{Path: "/x/y", Data: []byte{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if n, err := k.ZNode(ctx, "/x"); err != nil || len(n.Children) != 1 || n.Children[0] != "y" {
		t.Errorf("znode %+v, %v", n, err)
	}
	if n, err := k.ZNode(ctx, "/x/y"); err != nil || string(n.Data) != "\x01\x02" {
		t.Errorf("znode %+v, %v", n, err)
	}
	if err := k.RemoveZNode(ctx, "/x"); err != nil {
		t.Error(err)
	}
	if _, err := k.ZNode(ctx, "/x"); code(err) != http.StatusNotFound {
		t.Errorf("a znode that is gone: %v", err)
	}
	ss, err := k.Sessions(ctx)
	if err != nil || len(ss) != 4 { // three region servers and a master
		t.Errorf("sessions %+v, %v", ss, err)
	}
	if err := k.ExpireSession(ctx, "0x1"); code(err) != http.StatusNotFound {
		t.Errorf("no session: %v", err)
	}
	for _, f := range []control.ZooKeeperFault{{Mode: "frozen"}, {Latency: control.Duration(time.Millisecond)}, {}} {
		if err := k.ZooKeeperFault(ctx, f); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if err := k.ZooKeeperFault(ctx, control.ZooKeeperFault{Mode: "upside down"}); code(err) != http.StatusBadRequest {
		t.Errorf("an unknown mode: %v", err)
	}
	if err := k.DropZooKeeperConnections(ctx); err != nil {
		t.Error(err)
	}
	_ = c
}

// The port answers programs, not web pages, and refuses what it does not know.
func TestControlRefusals(t *testing.T) {
	c, _ := controlled(t, minihbase.Options{})
	for _, x := range []struct {
		name, method, path, body, origin, host string
		want                                   int
	}{
		{name: "from a page", method: "POST", path: "/reset", origin: "http://evil.example", want: 403},
		{name: "by a name of its own", method: "GET", path: "/status", host: "evil.example", want: 403},
		{name: "localhost", method: "GET", path: "/status", host: "localhost:1", want: 200},
		{name: "no such path", method: "GET", path: "/nothing", want: 404},
		{name: "wrong method", method: "GET", path: "/kill", want: 405},
		{name: "misspelt field", method: "POST", path: "/kill", body: `{"sever":"0"}`, want: 400},
		{name: "more than JSON", method: "POST", path: "/balance", body: `{} and more`, want: 400},
		{name: "two values", method: "POST", path: "/balance", body: `{}{}`, want: 400},
		{name: "space around", method: "POST", path: "/balance", body: " {} \n", want: 200},
		{name: "no group", method: "POST", path: "/group", body: `{}`, want: 400},
		{name: "nothing to do with a group", method: "POST", path: "/group", body: `{"name":"g"}`, want: 400},
		{name: "events neither on nor off", method: "POST", path: "/events", body: `{}`, want: 400},
		{name: "not JSON", method: "POST", path: "/kill", body: `kill it`, want: 400},
		{name: "bad number", method: "GET", path: "/events?since=x", want: 400},
		{name: "wait for no rule, milliseconds", method: "POST", path: "/rule/9/wait?timeout=50", want: 404},
		{name: "bad timeout", method: "POST", path: "/rule/9/wait?timeout=soon", want: 400},
		{name: "bad rule id", method: "DELETE", path: "/rule/x", want: 400},
		{name: "too much", method: "POST", path: "/rule", body: `{"name":"` + strings.Repeat("x", 5<<20) + `"}`, want: 400},
	} {
		req, err := http.NewRequestWithContext(t.Context(), x.method, c.Control()+x.path, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		if x.origin != "" {
			req.Header.Set("Origin", x.origin)
		}
		if x.host != "" {
			req.Host = x.host
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		var refusal control.Error
		err = json.NewDecoder(resp.Body).Decode(&refusal)
		resp.Body.Close()
		if resp.StatusCode != x.want {
			t.Errorf("%s: %d, want %d", x.name, resp.StatusCode, x.want)
		}
		if x.want != 200 && (err != nil || refusal.Message == "") {
			t.Errorf("%s: refused without {\"error\": ...}: %v", x.name, err)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
