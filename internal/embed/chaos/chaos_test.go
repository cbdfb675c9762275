package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func judge(t *testing.T, e *Engine, c *Call) Verdict {
	t.Helper()
	v, err := e.Judge(context.Background(), c)
	if err != nil {
		t.Fatalf("Judge: %v", err)
	}
	return v
}

func TestMatch(t *testing.T) {
	call := &Call{Server: "127.0.0.1:16020", ServerName: "127.0.0.1,16020,1", Service: "ClientService", Method: "Multi",
		Table: "ns:t", Region: "abc", Rows: [][]byte{[]byte("b"), []byte("k")}, User: "ann"}
	scan := &Call{Method: "Scan", Rows: [][]byte{[]byte("c"), nil}, Range: true}
	several := &Call{Table: "ns:t", Region: "abc", Also: []Place{{Table: "ns:u", Region: "def"}}}
	tests := []struct {
		name string
		m    Match
		c    *Call
		want bool
	}{
		{"empty", Match{}, call, true},
		{"server address", Match{Server: "127.0.0.1:16020"}, call, true},
		{"server name", Match{Server: "127.0.0.1,16020,1"}, call, true},
		{"other incarnation", Match{Server: "127.0.0.1,16020,2"}, call, false},
		{"method list", Match{Method: "Get, Multi"}, call, true},
		{"method", Match{Method: "Get"}, call, false},
		{"table", Match{Table: "t"}, call, false},
		{"region", Match{Region: "abc"}, call, true},
		{"user", Match{User: "bob"}, call, false},
		{"row in", Match{StartRow: []byte("k"), StopRow: []byte("l")}, call, true},
		{"another region of the call", Match{Table: "ns:u", Region: "def"}, several, true},
		{"one's table, another's region", Match{Table: "ns:t", Region: "def"}, several, false},
		{"rows around", Match{StartRow: []byte("c"), StopRow: []byte("d")}, call, false},
		{"stop alone", Match{StopRow: []byte("b")}, call, false},
		{"no rows", Match{StartRow: []byte("a")}, &Call{Method: "GetServerInfo"}, false},
		{"scan reaches", Match{StartRow: []byte("x"), StopRow: []byte("z")}, scan, true},
		{"scan begins behind", Match{StopRow: []byte("c")}, scan, false},
	}
	for _, tt := range tests {
		if got := tt.m.matches(tt.c); got != tt.want {
			t.Errorf("%s: %+v matches = %v, want %v", tt.name, tt.m, got, tt.want)
		}
	}
}

func TestPick(t *testing.T) {
	tests := []struct {
		name string
		r    Rule
		want string // x = hit, over 12 calls
	}{
		{"all", Rule{}, "xxxxxxxxxxxx"},
		{"times", Rule{Times: 2}, "xx.........."},
		{"skip", Rule{Skip: 3, Times: 1}, "...x........"},
		{"every", Rule{Every: 4}, "...x...x...x"},
		{"skip and every", Rule{Skip: 1, Every: 2, Times: 2}, "..x.x......."},
	}
	for _, tt := range tests {
		e := New()
		tt.r.Action = DropRequest
		id, err := e.Add(tt.r)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for range 12 {
			if judge(t, e, &Call{}).Before == DropRequest {
				got.WriteByte('x')
			} else {
				got.WriteByte('.')
			}
		}
		if got.String() != tt.want {
			t.Errorf("%s: picked %s, want %s", tt.name, &got, tt.want)
		}
		if n := e.Hits(id); n != uint64(strings.Count(tt.want, "x")) {
			t.Errorf("%s: %d hits", tt.name, n)
		}
	}
}

func TestProbabilityIsReproducible(t *testing.T) {
	run := func(seed uint64) (hits []int) {
		e := New()
		if _, err := e.Add(Rule{Action: Close, Probability: 0.3, Seed: seed}); err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			if judge(t, e, &Call{}).Before == Close {
				hits = append(hits, i)
			}
		}
		return hits
	}
	a, b, c := run(1), run(1), run(2)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("the same seed must pick the same calls, another seed others")
	}
	if len(a) < 250 || len(a) > 350 {
		t.Errorf("%d of 1000 hit at 0.3", len(a))
	}
}

func TestRulesCombine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		for _, r := range []Rule{
			{Action: Delay, Delay: time.Second},
			{Action: Delay, Delay: 2 * time.Second, Match: Match{Table: "t"}},
			{Action: Fail, Exception: Exception{Class: "RegionTooBusyException"}},
			{Action: Close},
		} {
			if _, err := e.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		v := judge(t, e, &Call{Table: "t"})
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("waited %v, want the sum of both delays", d)
		}
		if v.Before != Fail || v.Rule != 3 || v.Exception.Class != "org.apache.hadoop.hbase.RegionTooBusyException" {
			t.Errorf("verdict %+v, want the first rule that is no delay", v)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		if _, err := e.Judge(ctx, &Call{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("delay past the deadline: %v", err)
		}
	})
}

func TestHoldReleaseAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		id, err := e.Add(Rule{Action: Hold, Times: 2})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{}, 2)
		for range 2 {
			go func() {
				judge(t, e, &Call{})
				done <- struct{}{}
			}()
		}
		if err := e.Wait(t.Context(), id, 2); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(done) != 0 {
			t.Fatal("held calls went on")
		}
		if err := e.Release(id); err != nil {
			t.Fatal(err)
		}
		<-done
		<-done
		if !e.List()[0].Resting {
			t.Error("the rule should rest after two hits")
		}
		waiting := make(chan error)
		go func() { waiting <- e.Wait(context.Background(), id, 3) }()
		synctest.Wait()
		if err := e.Remove(id); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; !errors.Is(err, ErrNoRule) {
			t.Errorf("Wait on a removed rule: %v", err)
		}
		if e.Active() {
			t.Error("no rule left, still active")
		}
		if err := e.Remove(id); !errors.Is(err, ErrNoRule) {
			t.Errorf("second Remove: %v", err)
		}
	})
}

func TestRemoveFreesHeldCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New()
		if _, err := e.Add(Rule{Action: Hold}); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { judge(t, e, &Call{}); close(done) }()
		synctest.Wait()
		e.Clear()
		<-done
	})
}

func TestBadRules(t *testing.T) {
	tests := []struct {
		name string
		r    Rule
		want []string
	}{
		{"no action", Rule{}, []string{"action"}},
		{"everything", Rule{Action: Delay, Probability: 2, Match: Match{StartRow: []byte("b"), StopRow: []byte("a")}}, []string{"delay", "probability", "start row"}},
		{"no class", Rule{Action: Fail}, []string{"class"}},
		{"no rate", Rule{Action: Throttle}, []string{"bytes per second"}},
		{"no size", Rule{Action: Oversize, Size: 1 << 31}, []string{"size"}},
		{"a lie to one reader", Rule{Action: MetaHole, Match: Match{User: "ann"}}, []string{"everybody"}},
		{"what is another action's", Rule{Action: MetaHole, BytesPerSecond: 1, Size: 1, Location: "h,1,1", End: []byte("x")},
			[]string{"for throttle", "for oversize", "for meta-stale", "for meta-overlap"}},
	}
	for _, tt := range tests {
		_, err := New().Add(tt.r)
		if !errors.Is(err, ErrBadRule) {
			t.Errorf("%s: %v, want ErrBadRule", tt.name, err)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not tell of the %s", tt.name, err, w)
			}
		}
	}
}

func TestExceptionTexts(t *testing.T) {
	tests := []struct {
		in   Exception
		want wire.RemoteError
	}{
		{Exception{Class: "NoSuchColumnFamilyException", Message: "x"},
			wire.RemoteError{Class: wire.ClassNoSuchColumnFamily, Message: "x", DoNotRetry: true}},
		{Exception{Class: "CallQueueTooBigException", Message: "full"},
			wire.RemoteError{Class: wire.ClassCallQueueTooBig, Message: "full", Overloaded: true}},
		{Exception{Class: "RegionTooBusyException"}, wire.RemoteError{Class: wire.ClassRegionTooBusy, Message: "Over memstore limit"}},
		{Exception{Class: "com.example.E", DoNotRetry: true}, wire.RemoteError{Class: "com.example.E", Message: "injected by a chaos rule", DoNotRetry: true}},
	}
	for _, tt := range tests {
		if got := *tt.in.remote(); got != tt.want {
			t.Errorf("%+v\n got %+v\nwant %+v", tt.in, got, tt.want)
		}
	}
	e := Exception{Class: "RpcThrottlingException", Wait: 61040 * time.Millisecond}
	if r := e.remote(); r.ThrottleWait != e.Wait || !strings.Contains(r.Message, "number of requests exceeded - wait 1min") {
		t.Errorf("throttling: %+v", r)
	}
	e = Exception{Class: "RegionMovedException", Host: "h", Port: 1, StartCode: 2, SeqNum: 3}
	if r := e.remote(); r.Moved == nil || *r.Moved != (wire.MovedTo{Host: "h", Port: 1, StartCode: 2, SeqNum: 3}) {
		t.Errorf("moved: %+v", r)
	}
}

func TestNilEngine(t *testing.T) {
	var e *Engine
	if v, err := e.Judge(context.Background(), &Call{}); v != (Verdict{}) || err != nil {
		t.Error("a nil engine does nothing")
	}
	if e.Active() || e.List() != nil || e.Hits(1) != 0 || e.Remove(1) == nil {
		t.Error("a nil engine holds nothing")
	}
	e.Clear()
}

// TestLies: rules about hbase:meta choose regions, are counted like others, and
// leave calls alone.
func TestLies(t *testing.T) {
	e := New()
	regions := []Region{{"t", "a", nil, []byte("m")}, {"t", "b", []byte("m"), nil}, {"u", "c", nil, nil}}
	told := func(only Action) string {
		var b strings.Builder
		for _, r := range regions {
			if rule, picture, ok := e.Lie(r, only); ok {
				b.WriteString(r.Encoded + ":" + string(rule.Action))
				if picture != nil {
					b.WriteString("!")
				}
				b.WriteByte(' ')
			}
		}
		return b.String()
	}
	if e.Lying() || told("") != "" {
		t.Error("lies without a rule")
	}
	hole, err := e.Add(Rule{Action: MetaHole, Match: Match{Table: "t", StartRow: []byte("x")}, Times: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddWith(Rule{Action: MetaStale, Match: Match{Table: "t"}}, "picture"); err != nil {
		t.Fatal(err)
	}
	if e.Active() || !e.Lying() {
		t.Error("lies are no rules about calls")
	}
	if v := judge(t, e, &Call{Table: "t"}); v != (Verdict{}) {
		t.Errorf("a call met %+v", v)
	}
	if got := told(MetaHole); got != "b:meta-hole " {
		t.Errorf("holes: %s", got)
	}
	if got := told(""); got != "a:meta-stale! b:meta-stale! " {
		t.Errorf("once the hole rests: %s", got)
	}
	if e.Hits(hole) != 1 {
		t.Errorf("%d hits", e.Hits(hole))
	}
	e.Clear()
	if e.Lying() {
		t.Error("it lies after all rules were removed")
	}
}

// TestDamage: whoever checks what he reads notices; an empty block has nothing
// to spoil.
func TestDamage(t *testing.T) {
	var list []cells.Cell
	for _, row := range []string{"r1", "r2", "r3"} {
		list = append(list, cells.Cell{Row: []byte(row), Family: []byte("f"), Qualifier: []byte("q"), Type: cells.Put, Value: []byte("value")})
	}
	for n := 1; n <= len(list); n++ {
		for turn := uint64(1); turn <= 12; turn++ {
			block, err := wire.KeyValueCodec.AppendCells(nil, list[:n])
			if err != nil {
				t.Fatal(err)
			}
			got, err := wire.KeyValueCodec.DecodeCells(Damage(block, turn), nil)
			if err == nil && len(got) == n {
				t.Errorf("%d cells, way %d: read without an error: %v", n, turn, got)
			}
		}
	}
	if len(Damage(nil, 1)) != 0 {
		t.Error("damage to nothing")
	}
}

func TestRuleJSON(t *testing.T) {
	in := Rule{Match: Match{Method: "Get", Table: "t"}, Action: Delay, Delay: time.Second, Times: 3}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Rule
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if out.Method != "Get" || out.Action != Delay || out.Delay != time.Second || out.Times != 3 {
		t.Errorf("%s became %+v", b, out)
	}
}

func BenchmarkJudge(b *testing.B) {
	for _, rules := range []int{0, 1, 10} {
		b.Run(string(rune('0'+rules/10))+string(rune('0'+rules%10)), func(b *testing.B) {
			e := New()
			for range rules {
				e.Add(Rule{Action: Fail, Exception: Exception{Class: "X"}, Match: Match{Method: "Scan"}})
			}
			c := &Call{Method: "Get", Table: "t"}
			b.ReportAllocs()
			for b.Loop() {
				e.Judge(context.Background(), c)
			}
		})
	}
}
