package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func call(method, table, outcome string) *Event {
	return &Event{Kind: RPC, Server: "s:1", Service: "ClientService", Method: method, Table: table, Outcome: outcome}
}

func TestRing(t *testing.T) {
	l := New(Options{Capacity: 4})
	for i := range 10 {
		e := call("Get", "t", OK)
		e.Row, e.Rows = []byte(fmt.Sprint("row", i)), 1
		l.Record(e)
	}
	got, lost := l.Query(Filter{}, 0, 0)
	if len(got) != 4 || lost != 6 || got[0].Seq != 7 || got[3].Seq != 10 || string(got[3].Row) != "row9" {
		t.Errorf("%v, %d lost", got, lost)
	}
	if got, lost = l.Query(Filter{}, 8, 0); len(got) != 2 || lost != 0 || got[0].Seq != 9 {
		t.Errorf("since 8: %v, %d lost", got, lost)
	}
	if got, _ = l.Query(Filter{}, 10, 0); len(got) != 0 {
		t.Errorf("since the last: %v", got)
	}
	if got, _ = l.Query(Filter{}, 0, 2); len(got) != 2 || got[0].Seq != 7 {
		t.Errorf("limit: %v", got)
	}
	if n := l.Count(Filter{Method: "Get"}); n != 10 {
		t.Errorf("counted %d, the ring's end must not show", n)
	}
	if l.LastSeq() != 10 {
		t.Error(l.LastSeq())
	}
}

func TestRowsAreCutAndCopied(t *testing.T) {
	l := New(Options{})
	row := []byte(strings.Repeat("x", 100))
	l.Record(&Event{Kind: RPC, Row: row, Rows: 1})
	row[0] = 'y'
	got, _ := l.Query(Filter{}, 0, 0)
	if len(got[0].Row) != MaxRow || got[0].Row[0] != 'x' {
		t.Errorf("row %q", got[0].Row)
	}
}

func TestFilter(t *testing.T) {
	l := New(Options{})
	l.Record(call("Get", "t", OK))
	l.Record(call("Get", "u", "IOException"))
	l.Record(call("Scan", "hbase:meta", OK))
	l.Record(call("Scan", "hbase:meta", Dropped))
	l.Cluster(Event{Method: "move", Table: "t", Region: "r"})
	tests := []struct {
		f       Filter
		events  int
		counted uint64
	}{
		{Filter{}, 5, 4},
		{Filter{Kind: Cluster}, 1, 4},
		{Filter{Method: "Scan", Table: "hbase:meta"}, 2, 2},
		{Filter{Failed: true}, 2, 2},
		{Filter{Outcome: OK}, 2, 2},
		{Filter{Server: "s:2"}, 0, 0},
		{Filter{Kind: RPC, Table: "t"}, 1, 1},
	}
	for _, tt := range tests {
		if got, _ := l.Query(tt.f, 0, 0); len(got) != tt.events {
			t.Errorf("%+v: %d events, want %d", tt.f, len(got), tt.events)
		}
		if got := l.Count(tt.f); got != tt.counted {
			t.Errorf("%+v: counted %d, want %d", tt.f, got, tt.counted)
		}
	}
	if c := l.Counters(); len(c) != 4 || c[0].Method != "Get" {
		t.Errorf("counters %v", c)
	}
}

func TestCountersAreBounded(t *testing.T) {
	l := New(Options{Capacity: 1})
	for i := range maxCounters + 100 {
		l.Record(call("Get", fmt.Sprint(i), OK))
	}
	if n := len(l.Counters()); n != maxCounters+1 {
		t.Errorf("%d counters", n)
	}
	if n := l.Count(Filter{}); n != maxCounters+100 {
		t.Errorf("%d calls counted", n)
	}
}

func TestSubscribe(t *testing.T) {
	l := New(Options{})
	s := l.Subscribe(Filter{Method: "Get"}, 2)
	l.Record(call("Scan", "t", OK))
	for range 5 {
		l.Record(call("Get", "t", OK))
	}
	if e := <-s.C; e.Seq != 2 {
		t.Errorf("first event %d", e.Seq)
	}
	if n := s.Dropped(); n != 3 {
		t.Errorf("%d dropped, want 3", n)
	}
	s.Close()
	s.Close()
	n := 0
	for range s.C {
		n++
	}
	if n != 1 {
		t.Errorf("%d events after the first", n)
	}
	l.Record(call("Get", "t", OK)) // nobody listens
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		go func() {
			for range 3 {
				time.Sleep(time.Second)
				l.Record(call("Get", "t", OK))
				l.Record(call("Scan", "t", OK))
			}
		}()
		got, err := l.Wait(t.Context(), Filter{Method: "Get"}, 0, 2)
		if err != nil || len(got) != 2 {
			t.Errorf("%v, %v", got, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got, err = l.Wait(ctx, Filter{Method: "Get"}, 0, 9); !errors.Is(err, context.DeadlineExceeded) || len(got) != 3 {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestOffAndNil(t *testing.T) {
	l := New(Options{Off: true})
	l.Record(call("Get", "t", OK))
	if l.LastSeq() != 0 || l.Enabled() {
		t.Error("recorded while off")
	}
	l.SetEnabled(true)
	l.Record(call("Get", "t", OK))
	if l.LastSeq() != 1 {
		t.Error("not recorded while on")
	}
	var none *Log
	none.Record(call("Get", "t", OK))
	none.Cluster(Event{})
	none.SetEnabled(true)
	if got, lost := none.Query(Filter{}, 0, 0); got != nil || lost != 0 || none.Count(Filter{}) != 0 || none.LastSeq() != 0 || none.Enabled() {
		t.Error("a nil log holds something")
	}
	s := none.Subscribe(Filter{}, 1)
	s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := none.Wait(ctx, Filter{}, 0, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestConcurrent(t *testing.T) {
	l := New(Options{Capacity: 64})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 1000 {
				l.Record(call("Get", fmt.Sprint(i), OK))
			}
		})
		wg.Go(func() {
			for range 50 {
				l.Query(Filter{}, 0, 0)
				s := l.Subscribe(Filter{}, 4)
				select {
				case <-s.C:
				default:
				}
				s.Close()
			}
		})
	}
	wg.Wait()
	if n := l.Count(Filter{}); n != 4000 {
		t.Errorf("counted %d", n)
	}
}

func TestText(t *testing.T) {
	e := call("Get", "t", OK)
	e.Row, e.Rows, e.Latency, e.Rule = []byte("a\x00"), 1, time.Millisecond, 7
	for _, want := range []string{"ClientService.Get", "table=t", `row=a\x00`, "1ms", "ok", "rule=7"} {
		if !strings.Contains(e.String(), want) {
			t.Errorf("%s lacks %s", e, want)
		}
	}
	b, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(b), `"kind":"rpc"`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	l := New(Options{Capacity: 16})
	e := call("Get", "t", OK)
	e.Row = []byte("row")
	for range 32 {
		l.Record(e)
	}
	if n := testing.AllocsPerRun(100, func() { l.Record(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	l := New(Options{})
	e := call("Get", "t", OK)
	e.Row = []byte("row")
	for b.Loop() {
		l.Record(e)
	}
}
