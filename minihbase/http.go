package minihbase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/console"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

// controlServer serves the controls over HTTP on loopback.
type controlServer struct {
	m       *Cluster
	url     string
	console *console.Console
	srv     *http.Server
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// maxBody bounds a request.
const maxBody = 4 << 20

func startControl(m *Cluster, port int) (*controlServer, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &controlServer{m: m, url: "http://" + l.Addr().String(), console: console.New(m.c), cancel: cancel}
	s.srv = &http.Server{
		Handler: limited(guard(known(s.routes()))), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		// Requests that wait (for a rule, for events) end with the server.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	s.wg.Go(func() { _ = s.srv.Serve(&fewConns{Listener: l}) })
	return s, nil
}

// close ends the port: requests that wait are told by their context, and
// connections get a moment to end by themselves.
func (s *controlServer) close() {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.srv.Shutdown(ctx) != nil {
		_ = s.srv.Close()
	}
	s.wg.Wait()
	s.console.Close()
}

// guard refuses what another web page could make a browser send.
func guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if foreign(r) {
			refuse(w, &control.Error{Code: http.StatusForbidden, Message: "the control port answers programs on this machine and its own page, not other web pages"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// known answers what no route matches as every refusal is answered. The mux
// itself would do it in plain text.
func known(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		// The mux knows whether another method would have done, and says so in
		// Allow; its words are dropped.
		probe := &headersOnly{ResponseWriter: w}
		mux.ServeHTTP(probe, r)
		e := &control.Error{Code: http.StatusNotFound, Message: fmt.Sprintf("there is no %s; docs/control-api.md lists the requests", r.URL.Path)}
		if probe.code == http.StatusMethodNotAllowed {
			e.Code, e.Message = probe.code, fmt.Sprintf("%s takes %s, not %s", r.URL.Path, w.Header().Get("Allow"), r.Method)
		}
		refuse(w, e)
	})
}

// headersOnly lets a handler set headers, and keeps its code instead of
// sending it.
type headersOnly struct {
	http.ResponseWriter
	code int
}

func (h *headersOnly) WriteHeader(code int)        { h.code = code }
func (h *headersOnly) Write(p []byte) (int, error) { return len(p), nil }

// badRequest marks an error that is the caller's.
func badRequest(err error) error {
	return &control.Error{Code: http.StatusBadRequest, Message: err.Error()}
}

func notFound(err error) error {
	return &control.Error{Code: http.StatusNotFound, Message: err.Error()}
}

func refuse(w http.ResponseWriter, err error) {
	var e *control.Error
	if !errors.As(err, &e) {
		// What the cluster cannot do now: the state is in the way.
		e = &control.Error{Code: http.StatusConflict, Message: err.Error()}
		var x *cells.Exception
		switch {
		case errors.As(err, &x):
			e.Message = x.Class[strings.LastIndexByte(x.Class, '.')+1:] + ": " + x.Message
		case errors.Is(err, chaos.ErrNoRule):
			e.Code = http.StatusNotFound
		case errors.Is(err, chaos.ErrBadRule):
			e.Code = http.StatusBadRequest
		}
	}
	answer(w, e.Code, e)
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	// A caller that has gone away is no concern of ours.
	_ = enc.Encode(v)
}

// handle adds a route whose body, if there is one, is read into a Q. Unknown
// fields are refused, so that a misspelt one is not a silent nothing.
func handle[Q any](mux *http.ServeMux, pattern string, f func(r *http.Request, q Q) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		var q Q
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		err := dec.Decode(&q)
		if err == nil {
			var more json.RawMessage
			if err = dec.Decode(&more); err == nil {
				err = errors.New("something follows the first JSON value")
			}
		}
		if !errors.Is(err, io.EOF) {
			refuse(w, badRequest(fmt.Errorf("body: %w", err)))
			return
		}
		out, err := f(r, q)
		if err != nil {
			refuse(w, err)
			return
		}
		if out == nil {
			out = struct{}{}
		}
		answer(w, http.StatusOK, out)
	})
}

type none struct{}

func (s *controlServer) routes() *http.ServeMux {
	mux, m := http.NewServeMux(), s.m
	handle(mux, "GET /status", func(*http.Request, none) (any, error) { return s.status(), nil })
	handle(mux, "GET /regions", func(r *http.Request, _ none) (any, error) {
		if err := onlyQuery(r, "table", "limit"); err != nil {
			return nil, err
		}
		limit := 0
		if text := r.FormValue("limit"); text != "" {
			var err error
			if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
				return nil, badRequest(fmt.Errorf("limit %q is no number", text))
			}
		}
		rs, err := m.firstRegions(r.FormValue("table"), limit)
		if err != nil {
			return nil, notFound(err)
		}
		out := make([]control.Region, len(rs))
		for i := range rs {
			out[i] = region(&rs[i])
		}
		return out, nil
	})
	handle(mux, "POST /create", func(r *http.Request, q control.CreateRequest) (any, error) {
		splits := make([][]byte, len(q.Splits))
		for i, k := range q.Splits {
			splits[i] = k
		}
		return nil, m.CreateReplicatedTable(r.Context(), q.Table, q.Families, max(q.Replicas, 1), splits...)
	})
	handle(mux, "POST /generate", func(r *http.Request, q control.GenerateRequest) (any, error) {
		return nil, m.GenerateTable(r.Context(), GeneratedTable{
			Name: q.Table, Families: q.Families, Regions: q.Regions, KeyFormat: q.KeyFormat, Rows: q.Rows, ValueSize: q.ValueSize,
		})
	})
	handle(mux, "POST /replica-lag", func(r *http.Request, q control.ReplicaLagRequest) (any, error) {
		if q.Lag < 0 {
			return nil, badRequest(errors.New("a lag is not negative"))
		}
		m.SetReplicaLag(time.Duration(q.Lag))
		return nil, nil
	})
	handle(mux, "POST /drop", func(r *http.Request, q struct {
		Table string `json:"table"`
	}) (any, error) {
		return nil, m.DropTable(r.Context(), q.Table)
	})
	handle(mux, "POST /move", func(r *http.Request, q control.MoveRequest) (any, error) {
		encoded, err := s.encoded(q.RegionRef)
		if err != nil {
			return nil, err
		}
		to := -1
		if q.To != "" {
			if to, err = m.FindServer(q.To); err != nil {
				return nil, notFound(err)
			}
		}
		if err := m.MoveRegion(r.Context(), encoded, to); err != nil {
			return nil, err
		}
		return s.region(encoded)
	})
	handle(mux, "POST /split", func(r *http.Request, q control.SplitRequest) (any, error) {
		encoded, err := s.encoded(q.RegionRef)
		if err != nil {
			return nil, err
		}
		return nil, m.Split(r.Context(), encoded, q.At)
	})
	handle(mux, "POST /merge", func(r *http.Request, q control.MergeRequest) (any, error) {
		return nil, m.Merge(r.Context(), q.Regions...)
	})
	handle(mux, "POST /balance", func(r *http.Request, _ none) (any, error) {
		b, err := m.Balance(r.Context())
		return control.BalanceResult{Ran: b.Ran, Planned: b.Planned, Done: b.Done}, err
	})
	handle(mux, "POST /group", func(r *http.Request, q control.GroupRequest) (any, error) {
		if q.Name == "" || !q.Add && !q.Remove && len(q.Servers)+len(q.Tables) == 0 {
			return nil, badRequest(errors.New("a group needs a name, and something to do with it: add, servers, tables, remove"))
		}
		if q.Add {
			if err := m.AddGroup(r.Context(), q.Name); err != nil {
				return nil, err
			}
		}
		if len(q.Servers)+len(q.Tables) > 0 {
			addresses, all := make([]string, len(q.Servers)), m.RegionServers()
			for i, n := range q.Servers {
				at, err := m.FindServer(n)
				if err != nil {
					return nil, notFound(err)
				}
				addresses[i] = all[at]
			}
			if err := m.MoveToGroup(r.Context(), q.Name, addresses, q.Tables); err != nil {
				return nil, err
			}
		}
		if q.Remove {
			return nil, m.RemoveGroup(q.Name)
		}
		return nil, nil
	})
	handle(mux, "POST /reset", func(r *http.Request, _ none) (any, error) { return nil, m.Reset(r.Context()) })
	handle(mux, "POST /reckon-space", func(r *http.Request, _ none) (any, error) { return nil, m.ReckonSpace(r.Context()) })
	handle(mux, "POST /clock", func(_ *http.Request, q control.ClockRequest) (any, error) { return s.clock(q) })
	handle(mux, "POST /master", func(_ *http.Request, q control.MasterRequest) (any, error) { return nil, s.master(q) })
	s.serverRoutes(mux)
	s.ruleRoutes(mux)
	s.eventRoutes(mux)
	s.zkRoutes(mux)
	// The page, and what only it asks for.
	mux.Handle("GET /{$}", s.console)
	for _, path := range s.console.Paths() {
		mux.Handle("GET "+path, s.console)
	}
	return mux
}

func (s *controlServer) status() control.Status {
	m := s.m
	st := control.Status{
		Address: m.Address(), ZooKeeper: m.ZooKeeper(), Control: s.url, ClusterID: m.c.ClusterID(),
		Clock: control.Clock{Now: m.Clock().Now(), Frozen: m.Clock().Frozen()}, LastEvent: m.Events().LastSeq(),
	}
	for _, x := range m.Masters() {
		st.Masters = append(st.Masters, control.Master(x))
	}
	for _, x := range m.Servers() {
		st.Servers = append(st.Servers, server(x))
	}
	if n, _ := m.c.MetaLocation(); !n.IsZero() {
		st.Meta = n.String()
	}
	cat := m.c.Catalog()
	for range cat.Tables() {
		st.Tables++
	}
	st.Regions = cat.RegionCount()
	return st
}

func server(x ServerInfo) control.Server {
	return control.Server{Index: x.Index, Address: x.Address, Name: x.Name, State: string(x.State), Regions: x.Regions}
}

func region(r *Region) control.Region {
	out := control.Region{Table: r.Table, Encoded: r.Encoded, Name: r.Name, Start: r.Start, End: r.End, State: r.State,
		Server: r.Server, Index: r.Index, OpenSeq: r.OpenSeq, Parent: r.Parent}
	for _, p := range r.Replicas {
		out.Replicas = append(out.Replicas, control.Replica(p))
	}
	return out
}

// region describes one region.
func (s *controlServer) region(encoded string) (any, error) {
	if r, ok := s.m.c.Region(encoded); ok {
		return region(&r), nil
	}
	return nil, notFound(fmt.Errorf("region %s is gone", encoded))
}

// encoded finds the region a request names.
func (s *controlServer) encoded(q control.RegionRef) (string, error) {
	switch {
	case q.Region != "" && q.Table != "":
		return "", badRequest(errors.New("give region, or table and row"))
	case q.Region != "":
		if s.m.c.Catalog().Region(q.Region) == nil {
			return "", notFound(fmt.Errorf("there is no region %s", q.Region))
		}
		return q.Region, nil
	case q.Table != "":
		r, err := s.m.Locate(q.Table, q.Row)
		if err != nil {
			return "", notFound(err)
		}
		return r.Encoded, nil
	}
	return "", badRequest(errors.New("which region? give region, or table and row"))
}

func (s *controlServer) clock(q control.ClockRequest) (any, error) {
	c := s.m.Clock()
	if q.Reset {
		c.Reset()
	}
	if q.Freeze || q.At != nil {
		var at time.Time
		if q.At != nil {
			at = *q.At
		}
		c.Freeze(at)
	}
	if q.Advance != 0 {
		c.Advance(time.Duration(q.Advance))
	}
	if q.Resume {
		c.Resume()
	}
	return control.Clock{Now: c.Now(), Frozen: c.Frozen()}, nil
}

func (s *controlServer) master(q control.MasterRequest) error {
	c := s.m.c.Controls()
	if q.TransitionGap != nil {
		c.SetTransitionGap(time.Duration(*q.TransitionGap))
	}
	if q.ProcedureDelay != nil {
		c.SetProcedureDelay(time.Duration(*q.ProcedureDelay))
	}
	if q.Initializing != nil {
		c.SetInitializing(*q.Initializing)
	}
	if q.FailNext != nil {
		if q.FailNext.Class == "" {
			return badRequest(errors.New("failNext needs a class"))
		}
		c.FailNextProcedure(q.FailClass, &cells.Exception{Class: q.FailNext.Class, Message: q.FailNext.Message, DoNotRetry: q.FailNext.DoNotRetry})
	}
	return nil
}
