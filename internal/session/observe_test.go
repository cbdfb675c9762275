package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// recorder is every hook at once, and remembers in words.
type recorder struct {
	mu    sync.Mutex
	lines []string
	trace string // what the server is to get
}

type opKey struct{}

func (r *recorder) add(ctx context.Context, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if n, ok := ctx.Value(opKey{}).(string); ok {
		line = "[" + n + "] " + line
	}
	r.note("%s", line)
}

// note is add for what happens on behalf of no operation in particular.
func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := strings.Join(r.lines, "\n")
	r.lines = nil
	return s
}

func host(n meta.ServerName) string { return n.Host }

func (r *recorder) OperationStart(ctx context.Context, o Operation) context.Context {
	ctx = context.WithValue(ctx, opKey{}, o.Name)
	r.add(ctx, "begins on %s, %d items, internal %v", o.Table, o.Items, o.Internal)
	return ctx
}

func (r *recorder) OperationEnd(ctx context.Context, o Operation, e OperationResult) {
	r.add(ctx, "ends: %d attempts, %d failed, error %v", e.Attempts, e.Failed, e.Err != nil)
}

func (r *recorder) AttemptStart(ctx context.Context, a Attempt) context.Context {
	if r.trace != "" {
		a.Trace["traceparent"] = r.trace
	}
	return context.WithValue(ctx, attemptKey{}, a.Number)
}

type attemptKey struct{}

func (r *recorder) AttemptEnd(ctx context.Context, a Attempt, e AttemptResult) {
	what := "ok"
	if e.Err != nil {
		what = e.Decision.String()
	}
	if a.RequestBytes <= 0 || e.Err == nil && e.ResponseBytes <= 0 {
		what += fmt.Sprintf(" with %d bytes for %d", e.ResponseBytes, a.RequestBytes)
	}
	if n, _ := ctx.Value(attemptKey{}).(int); n != a.Number {
		what += " with another's context"
	}
	r.add(ctx, "%s #%d on %s, %d items: %s", a.Method, a.Number, host(a.Server), a.Items, what)
}

func (r *recorder) Failure(ctx context.Context, f Failure) {
	r.add(ctx, "nothing sent to %s: %s", host(f.Server), f.Decision)
}

func (r *recorder) Waited(ctx context.Context, w Wait) {
	if w.Took <= 0 || w.Took > w.Planned+time.Millisecond {
		r.add(ctx, "waits %s instead of %s", w.Took, w.Planned)
	}
	why := "nothing"
	if remote, ok := errors.AsType[*wire.RemoteError](w.Err); ok {
		why = remote.Class[strings.LastIndexByte(remote.Class, '.')+1:]
	}
	r.add(ctx, "waits: %s, because of %s", w.Class, why)
}

func (r *recorder) LookedUp(ctx context.Context, l Lookup) {
	r.add(ctx, "looked up %d rows: on %s, error %v", l.Rows, host(l.Server), l.Err != nil)
}

func (r *recorder) MetaRead(ctx context.Context, m MetaRead) {
	r.add(ctx, "meta %s: %d of %d", m.Kind, m.Found, m.Asked)
}

func (r *recorder) ServerChanged(e ServerEvent) {
	r.note("server %s %s to %s", host(e.Server), e.From, e.To)
}

func (r *recorder) RouteChanged(e RouteEvent) {
	r.note("route %s from %s to %s", e.Change, host(e.From), host(e.To))
}

func (r *recorder) ConnDialed(c Conn) {
	r.note("dialed %s: error %v", host(c.Server), c.Err != nil)
}
func (r *recorder) ConnClosed(c Conn) {
	r.note("hung up on %s: error %v", host(c.Server), c.Err != nil)
}

func expectStory(t *testing.T, what, got string, want ...string) {
	t.Helper()
	if w := strings.Join(want, "\n"); got != w {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, w)
	}
}

func TestHooksTellTheStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		rec := &recorder{}
		core := c.open(func(cfg *Config) { cfg.Hooks = []any{rec, struct{}{}} })
		if _, _, err := get(t.Context(), core, table, "r"); err != nil {
			t.Fatal(err)
		}
		expectStory(t, "cold", rec.take(),
			"[get] begins on t, 1 items, internal false",
			"meta registry: 1 of 1",
			"[read meta] begins on hbase:meta, 1 items, internal true",
			"dialed rs1: error false",
			"[read meta] Scan #1 on rs1, 1 items: ok",
			"[read meta] ends: 1 attempts, 0 failed, error false",
			"meta scan: 1 of 1",
			"[get] looked up 1 rows: on rs1, error false",
			"[get] Get #1 on rs1, 1 items: ok",
			"[get] ends: 1 attempts, 0 failed, error false",
		)
		c.move(c.region(table, "r"), c.server(2), true)
		busy := true
		c.hook(func(q *query) *reply {
			if q.srv == c.server(2) && busy {
				busy = false
				return &reply{err: wire.NewRemoteError(wire.ClassRegionTooBusy, "")}
			}
			return nil
		})
		if _, _, err := get(t.Context(), core, table, "r"); err != nil {
			t.Fatal(err)
		}
		expectStory(t, "moved and busy", rec.take(),
			"[get] begins on t, 1 items, internal false",
			"[get] Get #1 on rs1, 1 items: region moved: replace, wait none",
			"route moved from rs1 to rs2",
			"dialed rs2: error false",
			"[get] Get #2 on rs2, 1 items: region busy: keep, wait region busy",
			"[get] waits: region busy, because of RegionTooBusyException",
			"[get] Get #3 on rs2, 1 items: ok",
			"[get] ends: 3 attempts, 0 failed, error false",
		)
		core.Close()
		if got := rec.take(); strings.Count(got, "hung up on rs") != 2 {
			t.Errorf("closed: got\n%s\nwant two connections closed", got)
		}
	})
}

func TestHooksSeeWhatIsNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		rec := &recorder{}
		core := c.open(func(cfg *Config) { cfg.Hooks = []any{rec} })
		if _, _, err := get(t.Context(), core, table, "r"); err != nil {
			t.Fatal(err)
		}
		c.move(c.region(table, "r"), c.server(2), true)
		c.server(2).kill()
		rec.take()
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		defer cancel()
		if _, _, err := get(ctx, core, table, "r"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		got := rec.take()
		for _, want := range []string{
			"dialed rs2: error true",
			"server rs2 healthy to down",
			"route server forgotten from rs2 to ",
			"[get] nothing sent to rs2: cannot connect: keep, mark down, wait reconnect",
			", 0 failed, error true",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwithout %q", got, want)
			}
		}
	})
}

func TestHooksOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		rec := &recorder{}
		core := c.open(func(cfg *Config) { cfg.Hooks = []any{rec} })
		c.hook(func(q *query) *reply {
			if q.method == "Multi" && c.tableOf(q) == "t" {
				return &reply{err: wire.NewRemoteError(wire.ClassNoSuchColumnFamily, "")}
			}
			return nil
		})
		out := core.Batch(t.Context(), table, []Item{getItem("a"), getItem("b")})
		if len(out) != 2 || out[0].Err == nil {
			t.Fatalf("%v", out)
		}
		got := rec.take()
		for _, want := range []string{
			"[batch] begins on t, 2 items, internal false",
			"[batch] looked up 2 rows: on rs1, error false",
			"[batch] Multi #1 on rs1, 2 items: do not retry: keep, final",
			"[batch] ends: 1 attempts, 2 failed, error true",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwithout %q", got, want)
			}
		}
	})
}
