package minihbase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

// errLoseUnsynced refuses what would be a silent nothing.
var errLoseUnsynced = badRequest(errors.New("loseUnsynced is for the kill of a region server"))

// serverRoutes adds what is done to one server.
func (s *controlServer) serverRoutes(mux *http.ServeMux) {
	m := s.m
	// Both kinds of servers can be killed, stopped and started.
	either := func(verb string, rs func(context.Context, int) error, master func(int) error) {
		handle(mux, "POST /"+verb, func(r *http.Request, q control.ServerRequest) (any, error) {
			if name, n, ok := strings.Cut(q.Server, ":"); name == "master" {
				i := 0
				if q.LoseUnsynced {
					return nil, errLoseUnsynced
				}
				if ok {
					var err error
					if i, err = strconv.Atoi(n); err != nil {
						return nil, badRequest(fmt.Errorf("server %q is not master:N", q.Server))
					}
				}
				return nil, master(i)
			}
			i, err := m.FindServer(q.Server)
			if err != nil {
				return nil, notFound(err)
			}
			switch {
			case !q.LoseUnsynced:
				return nil, rs(r.Context(), i)
			case verb == "kill":
				return nil, m.KillAndLose(i)
			}
			return nil, errLoseUnsynced
		})
	}
	either("kill", func(_ context.Context, i int) error { return m.KillRegionServer(i) }, m.KillMaster)
	either("stop", m.StopRegionServer, m.StopMaster)
	either("start", func(_ context.Context, i int) error { return m.StartRegionServer(i) }, m.StartMaster)
	one := func(verb string, f func(int, control.ServerRequest) error) {
		handle(mux, "POST /"+verb, func(_ *http.Request, q control.ServerRequest) (any, error) {
			i, err := m.FindServer(q.Server)
			if err != nil {
				return nil, notFound(err)
			}
			if q.LoseUnsynced {
				return nil, errLoseUnsynced
			}
			return nil, f(i, q)
		})
	}
	one("pause", func(i int, _ control.ServerRequest) error { return m.PauseRegionServer(i) })
	one("hang", func(i int, _ control.ServerRequest) error { return m.HangRegionServer(i) })
	one("resume", func(i int, _ control.ServerRequest) error { return m.ResumeRegionServer(i) })
	one("expire", func(i int, _ control.ServerRequest) error { return m.ExpireSession(i) })
	one("reset-connections", func(i int, _ control.ServerRequest) error { return m.ResetConnections(i) })
	one("slow", func(i int, q control.ServerRequest) error { return m.SlowRegionServer(i, time.Duration(q.Delay)) })
	handle(mux, "POST /add", func(*http.Request, none) (any, error) {
		i, err := m.AddRegionServer()
		if err != nil {
			return nil, err
		}
		return server(m.Servers()[i]), nil
	})
}

// toRule and fromRule change between the rule on the wire and the engine's.
func toRule(r *control.Rule) Rule {
	out := Rule{
		Match: Match{Server: r.Server, Service: r.Service, Method: r.Method, Table: r.Table, Region: r.Region, StartRow: r.StartRow, StopRow: r.StopRow, User: r.User},
		Name:  r.Name, Skip: r.Skip, Every: r.Every, Times: r.Times, Probability: r.Probability, Seed: r.Seed,
		Action: Action(r.Action), Delay: time.Duration(r.Delay),
		BytesPerSecond: r.BytesPerSecond, Size: r.Size, Location: r.Location, End: r.End,
	}
	if e := r.Exception; e != nil {
		out.Exception = Exception{Class: e.Class, Message: e.Message, DoNotRetry: e.DoNotRetry, Overloaded: e.Overloaded,
			Wait: time.Duration(e.Wait), Host: e.Host, Port: e.Port, StartCode: e.StartCode, SeqNum: e.SeqNum}
	}
	return out
}

func fromRule(s *RuleStatus) control.RuleStatus {
	r := &s.Rule
	out := control.RuleStatus{ID: s.ID, Hits: s.Hits, Resting: s.Resting, Rule: control.Rule{
		Server: r.Server, Service: r.Service, Method: r.Method, Table: r.Table, Region: r.Region, StartRow: r.StartRow, StopRow: r.StopRow, User: r.User,
		Name: r.Name, Skip: r.Skip, Every: r.Every, Times: r.Times, Probability: r.Probability, Seed: r.Seed,
		Action: string(r.Action), Delay: control.Duration(r.Delay),
		BytesPerSecond: r.BytesPerSecond, Size: r.Size, Location: r.Location, End: r.End,
	}}
	if e := r.Exception; e.Class != "" {
		out.Exception = &control.Exception{Class: e.Class, Message: e.Message, DoNotRetry: e.DoNotRetry, Overloaded: e.Overloaded,
			Wait: control.Duration(e.Wait), Host: e.Host, Port: e.Port, StartCode: e.StartCode, SeqNum: e.SeqNum}
	}
	return out
}

// rule describes one rule.
func (s *controlServer) rule(id uint64) (any, error) {
	for _, r := range s.m.Rules() {
		if r.ID == id {
			return fromRule(&r), nil
		}
	}
	return nil, fmt.Errorf("%w: %d", chaos.ErrNoRule, id)
}

func (s *controlServer) ruleRoutes(mux *http.ServeMux) {
	m := s.m
	id := func(r *http.Request) (uint64, error) {
		n, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
		if err != nil {
			return 0, badRequest(fmt.Errorf("rule id %q is not a number", r.PathValue("id")))
		}
		return n, nil
	}
	handle(mux, "GET /rule", func(*http.Request, none) (any, error) {
		rs := m.Rules()
		out := make([]control.RuleStatus, len(rs))
		for i := range rs {
			out[i] = fromRule(&rs[i])
		}
		return out, nil
	})
	handle(mux, "POST /rule", func(_ *http.Request, q control.Rule) (any, error) {
		n, err := m.AddRule(toRule(&q))
		if err != nil {
			return nil, err
		}
		return s.rule(n)
	})
	handle(mux, "DELETE /rule", func(*http.Request, none) (any, error) { m.ClearRules(); return nil, nil })
	handle(mux, "GET /rule/{id}", func(r *http.Request, _ none) (any, error) {
		n, err := id(r)
		if err != nil {
			return nil, err
		}
		return s.rule(n)
	})
	handle(mux, "DELETE /rule/{id}", func(r *http.Request, _ none) (any, error) {
		n, err := id(r)
		if err != nil {
			return nil, err
		}
		return nil, m.RemoveRule(n)
	})
	handle(mux, "POST /rule/{id}/release", func(r *http.Request, _ none) (any, error) {
		n, err := id(r)
		if err != nil {
			return nil, err
		}
		return nil, m.ReleaseRule(n)
	})
	handle(mux, "POST /rule/{id}/wait", func(r *http.Request, _ none) (any, error) {
		n, err := id(r)
		if err != nil {
			return nil, err
		}
		if err := onlyQuery(r, "hits", "timeout"); err != nil {
			return nil, err
		}
		hits, ctx := uint64(1), r.Context()
		if v := r.FormValue("hits"); v != "" {
			if hits, err = strconv.ParseUint(v, 10, 64); err != nil {
				return nil, badRequest(fmt.Errorf("hits %q is not a number", v))
			}
		}
		if v := r.FormValue("timeout"); v != "" {
			// The same two forms as in a body.
			var d control.Duration
			if d.UnmarshalJSON([]byte(v)) != nil && d.UnmarshalJSON([]byte(strconv.Quote(v))) != nil {
				return nil, badRequest(fmt.Errorf("timeout %q is neither a duration like 150ms nor a number of milliseconds", v))
			}
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(d))
			defer cancel()
		}
		if err := m.WaitRule(ctx, n, hits); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return nil, &control.Error{Code: http.StatusRequestTimeout, Message: fmt.Sprintf("time ran out: rule %d has not been applied as often as %d", n, hits)}
			}
			return nil, err
		}
		return s.rule(n)
	})
}

func fromEvent(e *Event) control.Event {
	return control.Event{Seq: e.Seq, Kind: e.Kind.String(), Time: e.Time, Server: e.Server, Service: e.Service, Method: e.Method,
		Table: e.Table, Region: e.Region, Row: e.Row, Rows: e.Rows, User: e.User, Client: e.Client,
		Latency: control.Duration(e.Latency), Outcome: e.Outcome, Rule: e.Rule, Detail: e.Detail}
}

func eventFilter(r *http.Request) (f EventFilter, err error) {
	v := r.FormValue
	f = EventFilter{Server: v("server"), Service: v("service"), Method: v("method"), Table: v("table"), Region: v("region"), User: v("user"), Outcome: v("outcome"), Failed: v("failed") == "true"}
	switch v("kind") {
	case "":
	case "rpc":
		f.Kind = eventlog.RPC
	case "cluster":
		f.Kind = eventlog.Cluster
	default:
		return f, badRequest(fmt.Errorf("kind %q is neither rpc nor cluster", v("kind")))
	}
	if s := v("rule"); s != "" {
		if f.Rule, err = strconv.ParseUint(s, 10, 64); err != nil {
			return f, badRequest(fmt.Errorf("rule %q is not a number", s))
		}
	}
	return f, nil
}

// onlyQuery refuses parameters of the address that the request does not have: a
// misspelt one would be a silent nothing.
func onlyQuery(r *http.Request, names ...string) error {
	for name := range r.URL.Query() {
		if !slices.Contains(names, name) {
			return badRequest(fmt.Errorf("%s has no parameter %q: it has %s", r.URL.Path, name, strings.Join(names, ", ")))
		}
	}
	return nil
}

func number(r *http.Request, name string) (uint64, error) {
	s := r.FormValue(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 32+31)
	if err != nil {
		return 0, badRequest(fmt.Errorf("%s %q is not a number", name, s))
	}
	return n, nil
}

func (s *controlServer) eventRoutes(mux *http.ServeMux) {
	log := s.m.Events()
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		f, err := eventFilter(r)
		err0 := onlyQuery(r, "kind", "server", "service", "method", "table", "region", "user", "outcome", "failed", "rule", "since", "limit", "follow")
		since, err2 := number(r, "since")
		limit, err3 := number(r, "limit")
		if err := errors.Join(err0, err, err2, err3); err != nil {
			refuse(w, badRequest(err))
			return
		}
		if r.FormValue("follow") == "true" {
			s.follow(w, r, f, since)
			return
		}
		events, lost := log.Query(f, since, int(min(limit, 1<<20)))
		out := control.Events{Events: make([]control.Event, len(events)), Lost: lost, Last: log.LastSeq()}
		for i := range events {
			out.Events[i] = fromEvent(&events[i])
		}
		answer(w, http.StatusOK, out)
	})
	handle(mux, "GET /counters", func(*http.Request, none) (any, error) {
		out := []control.Counter{}
		for _, c := range log.Counters() {
			out = append(out, control.Counter{Server: c.Server, Service: c.Service, Method: c.Method, Table: c.Table, Outcome: c.Outcome, Calls: c.Calls})
		}
		return out, nil
	})
	handle(mux, "POST /events", func(_ *http.Request, q struct {
		Enabled *bool `json:"enabled"`
	}) (any, error) {
		if q.Enabled == nil {
			return nil, badRequest(errors.New("enabled is missing"))
		}
		log.SetEnabled(*q.Enabled)
		return nil, nil
	})
}

// follow streams events as lines of JSON until the caller or the cluster goes.
// An empty line now and then tells a caller behind a proxy that it is alive.
func (s *controlServer) follow(w http.ResponseWriter, r *http.Request, f EventFilter, since uint64) {
	log := s.m.Events()
	sub := log.Subscribe(f, 4096)
	defer sub.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flusher, enc := http.NewResponseController(w), json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// What was remembered comes first; the subscription may hold some of it
	// again.
	old, _ := log.Query(f, since, 0)
	for i := range old {
		since = old[i].Seq
		if enc.Encode(fromEvent(&old[i])) != nil {
			return
		}
	}
	if flusher.Flush() != nil {
		return
	}
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
			if _, err := w.Write([]byte("\n")); err != nil {
				return
			}
		case e, ok := <-sub.C:
			if !ok {
				return
			}
			if e.Seq <= since {
				continue
			}
			if enc.Encode(fromEvent(&e)) != nil {
				return
			}
			if len(sub.C) > 0 {
				continue // flush once the burst is over
			}
		}
		if flusher.Flush() != nil {
			return
		}
	}
}

// member is the index of a member of the ensemble; every one if none is named.
func member(i *int) int {
	if i == nil {
		return AllZooKeepers
	}
	return *i
}

// orNotFound gives the lack of a member its status.
func orNotFound(err error) error {
	if errors.Is(err, ErrNoZooKeeper) {
		return notFound(err)
	}
	return err
}

func (s *controlServer) zkRoutes(mux *http.ServeMux) {
	zk := s.m.c.ZooKeeper()
	handle(mux, "POST /zk/fault", func(_ *http.Request, q control.ZooKeeperFault) (any, error) {
		f := zkserver.Fault{Latency: time.Duration(q.Latency), StallPings: q.StallPings, HangAfter: q.HangAfter, Truncate: q.Truncate, HalfHandshake: q.HalfHandshake}
		known := false
		for m := zkserver.Healthy; m <= zkserver.ReadOnly; m++ {
			if q.Mode == m.String() || q.Mode == "" && m == zkserver.Healthy {
				f.Mode, known = m, true
			}
		}
		if !known {
			return nil, badRequest(fmt.Errorf("mode %q is not known", q.Mode))
		}
		return nil, orNotFound(s.m.BreakZooKeeper(member(q.Member), f))
	})
	handle(mux, "GET /zk/members", func(*http.Request, none) (any, error) {
		out := []control.ZooKeeperMember{}
		for _, z := range s.m.ZooKeeperMembers() {
			f := z.Fault
			out = append(out, control.ZooKeeperMember{Index: z.Index, Address: z.Address, Leader: z.Leader, Fault: control.ZooKeeperFault{
				Mode: f.Mode.String(), Latency: control.Duration(f.Latency), StallPings: f.StallPings, HangAfter: f.HangAfter, Truncate: f.Truncate, HalfHandshake: f.HalfHandshake,
			}})
		}
		return out, nil
	})
	handle(mux, "POST /zk/mend", func(*http.Request, none) (any, error) { return nil, s.m.MendZooKeeper() })
	handle(mux, "POST /zk/stall-leader", func(_ *http.Request, q control.StallRequest) (any, error) {
		notice, elect := 10*time.Second, 2*time.Second
		if q.Notice != nil {
			notice = time.Duration(*q.Notice)
		}
		if q.Elect != nil {
			elect = time.Duration(*q.Elect)
		}
		return nil, s.m.StallZooKeeperLeader(notice, elect)
	})
	handle(mux, "POST /zk/drop", func(_ *http.Request, q struct {
		Member *int `json:"member"`
	}) (any, error) {
		return nil, orNotFound(s.m.DropZooKeeperConnections(member(q.Member)))
	})
	handle(mux, "GET /zk/sessions", func(*http.Request, none) (any, error) {
		out := []control.Session{}
		for _, i := range zk.Sessions() {
			out = append(out, control.Session{ID: control.SessionID(i.ID), Timeout: control.Duration(i.Timeout), ExpiresIn: control.Duration(i.ExpiresIn),
				Internal: i.Internal, RemoteAddr: i.RemoteAddr, Member: i.Member, Ephemerals: i.Ephemerals})
		}
		return out, nil
	})
	handle(mux, "POST /zk/expire", func(_ *http.Request, q struct {
		ID string `json:"id"`
	}) (any, error) {
		id, err := control.ParseSessionID(q.ID)
		if err != nil {
			return nil, badRequest(err)
		}
		if !zk.ExpireSession(id) {
			return nil, notFound(fmt.Errorf("there is no session %s", q.ID))
		}
		return nil, nil
	})
	handle(mux, "GET /zk/node", func(r *http.Request, _ none) (any, error) {
		path := r.FormValue("path")
		data, _, err := zk.Get(path)
		if err != nil {
			return nil, notFound(err)
		}
		children, err := zk.Children(path)
		if err != nil {
			return nil, notFound(err)
		}
		return control.ZNode{Path: path, Data: data, Children: children}, nil
	})
	handle(mux, "PUT /zk/node", func(_ *http.Request, q control.ZNode) (any, error) {
		return nil, s.m.SetZNode(q.Path, q.Data)
	})
	handle(mux, "POST /zk/restore", func(*http.Request, none) (any, error) { s.m.RestoreZNodes(); return nil, nil })
	handle(mux, "DELETE /zk/node", func(r *http.Request, _ none) (any, error) {
		path := r.FormValue("path")
		if !zk.Exists(path) {
			return nil, notFound(fmt.Errorf("there is no znode %q", path))
		}
		return nil, s.m.RemoveZNode(path)
	})
}
