package retry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

var table = meta.TableName{Namespace: "default", Qualifier: "t"}

func half() float64 { return 0.5 }

func TestBudgetTellsTheStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var b Budget
		b.Start(ctx, Config{Op: "get", Table: table, Row: []byte("r\x01"), Timeout: 2 * time.Second, Rand: half})
		servers := []string{"rs1:16020", "rs2:16020", "rs1:16020"}
		var err error
		for i := 0; err == nil; i++ {
			b.Enter(Locating)
			time.Sleep(5 * time.Millisecond)
			if err = b.Attempt(servers[i%3], "abcd"); err != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
			cause := remote(wire.ClassRegionTooBusy)
			d := Classify(cause, Attempt{})
			b.Failed(cause, d)
			err = b.Wait(ctx, d.Wait, d.Hint)
		}
		// Waits: 37.5, 75, 150, 300, 600 ms = 1162.5; a sixth of 1.2 s does not
		// fit into what six attempts of 105 ms leave of 2 s.
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is not an *Error", err)
		}
		if b.Elapsed() != 1792500*time.Microsecond || e.Attempts != 6 || e.Reason != Deadline || e.Failures != 6 {
			t.Errorf("elapsed %v, %d attempts, reason %v, %d failures", b.Elapsed(), e.Attempts, e.Reason, e.Failures)
		}
		want := []Spent{
			{Phase: Locating, Time: 30 * time.Millisecond},
			{Phase: Calling, Time: 600 * time.Millisecond},
			{Phase: Waiting, Class: RegionBusy, Count: 5, Time: 1162500 * time.Microsecond},
		}
		if len(e.Spent) != 3 || e.Spent[0] != want[0] || e.Spent[1] != want[1] || e.Spent[2] != want[2] {
			t.Errorf("spent %+v\nwant  %+v", e.Spent, want)
		}
		if len(e.Causes) != 3 || e.Causes[0].Attempt != 4 || e.Causes[2].Attempt != 6 || e.Causes[2].Server != "rs1:16020" {
			t.Errorf("causes %+v", e.Causes)
		}
		if len(e.Servers) != 2 || e.MoreServers != 0 {
			t.Errorf("servers %v and %d", e.Servers, e.MoreServers)
		}
		if !errors.Is(err, ErrRetriesExhausted) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("%v: wrong identity", err)
		}
		if !errors.Is(err, &wire.RemoteError{Class: wire.ClassRegionTooBusy}) {
			t.Errorf("%v does not unwrap to its cause", err)
		}
		text := err.Error()
		for _, part := range []string{
			`get "t" row r\x01 region abcd: deadline exceeded after 1.793s of 2s, 6 attempts on rs1:16020, rs2:16020`,
			"RegionTooBusyException: text", "locating 30ms", "calling 600ms", "waiting 1.163s (region busy, 5 times)",
			"attempt 4 on rs1:16020", "3 earlier failures",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("%q\nlacks %q", text, part)
			}
		}
	})
}

func TestWaitThatDoesNotFitIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var b Budget
		b.Start(ctx, Config{Op: "put", Table: table, Timeout: time.Minute})
		if err := b.Attempt("rs1:1", ""); err != nil {
			t.Fatal(err)
		}
		cause := throttled(3 * time.Second)
		d := Classify(cause, Attempt{})
		b.Failed(cause, d)
		err := b.Wait(ctx, d.Wait, d.Hint)
		var e *Error
		if !errors.As(err, &e) || e.NextWait != 3*time.Second || e.Timeout != time.Second {
			t.Fatalf("%v", err)
		}
		if b.Elapsed() != 0 {
			t.Errorf("took %v", b.Elapsed())
		}
		if !strings.Contains(err.Error(), "the server asks to wait 3s") {
			t.Error(err)
		}
	})
}

func TestThrottleHintIsHonoured(t *testing.T) {
	var b Budget
	b.Start(context.Background(), Config{Timeout: time.Minute})
	for range 100 {
		d, ok := b.Next(Throttled, 3*time.Second)
		if !ok || d < 3*time.Second || d > 5*time.Second {
			t.Fatalf("wait %v %t", d, ok)
		}
	}
}

func TestAttemptCap(t *testing.T) {
	ctx := context.Background()
	var b Budget
	b.Start(ctx, Config{Op: "get", MaxAttempts: 2})
	fail := func(class string) Decision {
		err := remote(class)
		d := Classify(err, Attempt{})
		b.Failed(err, d)
		return d
	}
	if err := b.Attempt("a:1", ""); err != nil {
		t.Fatal(err)
	}
	fail(wire.ClassRetryImmediately) // does not count: the next is free
	if err := b.Attempt("a:1", ""); err != nil {
		t.Fatal(err)
	}
	fail(wire.ClassNotServingRegion)
	if err := b.Wait(ctx, Relocate, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Attempt("a:1", ""); err != nil {
		t.Fatal(err)
	}
	fail(wire.ClassNotServingRegion)
	_, ok := b.Next(Relocate, 0)
	err := b.Exhausted()
	var e *Error
	if ok || !errors.As(err, &e) || e.Reason != TooManyAttempts || e.Attempts != 3 {
		t.Errorf("ok %t, %v", ok, err)
	}
	if !errors.Is(err, ErrRetriesExhausted) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: wrong identity", err)
	}
	if err := b.Attempt("a:1", ""); !errors.Is(err, ErrRetriesExhausted) {
		t.Errorf("attempt beyond the cap: %v", err)
	}
}

func TestCancelIsReportedAsTheContextsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("user pressed a key")
		ctx, cancel := context.WithCancelCause(context.Background())
		var b Budget
		b.Start(ctx, Config{Op: "increment", Idempotency: Nonced})
		if err := b.Attempt("a:1", ""); err != nil {
			t.Fatal(err)
		}
		b.Failed(broken(true), Classify(broken(true), Attempt{Idempotency: Nonced}))
		time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
		err := b.Wait(ctx, Generic, 0)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || errors.Is(err, ErrRetriesExhausted) {
			t.Errorf("%v: wrong identity", err)
		}
		// The increment was sent once, and its answer never came.
		if !errors.Is(err, ErrUnknownOutcome) || SafeToRetry(err) {
			t.Errorf("%v: must say that the outcome is unknown", err)
		}
		if b.Elapsed() != 10*time.Millisecond {
			t.Errorf("took %v", b.Elapsed())
		}
		// An I/O symptom of the cancellation is reported as the cancellation.
		b.Failed(broken(true), Decision{})
		if err := b.Fail(ctx, Decision{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestUnknownOutcome(t *testing.T) {
	ctx := context.Background()
	var b Budget
	b.Start(ctx, Config{Op: "check and mutate", Table: table, Idempotency: Unsafe})
	if err := b.Attempt("a:1", ""); err != nil {
		t.Fatal(err)
	}
	d := Classify(broken(true), Attempt{Idempotency: Unsafe})
	b.Failed(broken(true), d)
	err := b.Fail(ctx, d)
	if !errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrRetriesExhausted) || SafeToRetry(err) || Retriable(err) {
		t.Errorf("%v: wrong identity", err)
	}
	if want := `check and mutate "t": outcome unknown after`; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q lacks %q", err, want)
	}
}

func TestFinalErrorIsShort(t *testing.T) {
	ctx := context.Background()
	var b Budget
	b.Start(ctx, Config{Op: "get", Table: table, Row: []byte("r")})
	if err := b.Attempt("a:1", ""); err != nil {
		t.Fatal(err)
	}
	cause := remote(wire.ClassNoSuchColumnFamily)
	d := Classify(cause, Attempt{})
	b.Failed(cause, d)
	err := b.Fail(ctx, d)
	if !errors.Is(err, &wire.RemoteError{Class: wire.ClassNoSuchColumnFamily}) || strings.Contains(err.Error(), "[") {
		t.Error(err)
	}
}

func TestWaitForReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var b Budget
		b.Start(ctx, Config{Timeout: time.Minute})
		ready := make(chan struct{})
		time.AfterFunc(20*time.Millisecond, func() { close(ready) })
		if err := b.WaitFor(ctx, ServerDown, time.Second, ready); err != nil || b.Elapsed() != 20*time.Millisecond {
			t.Errorf("%v after %v", err, b.Elapsed())
		}
	})
}

func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Budget
		b.Start(context.Background(), Config{Timeout: 3 * time.Second})
		for _, r := range []struct{ rpc, want time.Duration }{{time.Second, time.Second}, {time.Minute, 3 * time.Second}, {0, 3 * time.Second}} {
			if got := b.AttemptTimeout(r.rpc); got != r.want {
				t.Errorf("rpc %v: %v, want %v", r.rpc, got, r.want)
			}
		}
		time.Sleep(4 * time.Second)
		if got := b.AttemptTimeout(time.Second); got != 0 {
			t.Errorf("after the deadline: %v", got)
		}
		if err := b.Attempt("a:1", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("attempt after the deadline: %v", err)
		}
		b.Start(context.Background(), Config{})
		if got := b.AttemptTimeout(time.Second); got != time.Second {
			t.Errorf("no deadline: %v", got)
		}
	})
}

func TestFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Budget
		b.Start(context.Background(), Config{Op: "get", Timeout: 3 * time.Second, MaxAttempts: 1})
		began, err := b.FirstAttempt("a:1", "r")
		if err != nil || !began.Equal(time.Now()) || b.Attempts() != 1 {
			t.Fatalf("%v, %v, %d attempts", began, err, b.Attempts())
		}
		time.Sleep(time.Second)
		if got := b.AttemptTimeoutFrom(began, time.Minute); got != 3*time.Second {
			t.Errorf("%v from its beginning", got)
		}
		if got := b.AttemptTimeout(time.Minute); got != 2*time.Second {
			t.Errorf("%v from now", got)
		}
		var e *Error
		if err := b.Attempt("b:1", "r"); !errors.As(err, &e) || len(e.Servers) != 1 || e.Servers[0] != "a:1" ||
			len(e.Spent) != 1 || e.Spent[0] != (Spent{Phase: Calling, Time: time.Second}) {
			t.Errorf("a second of one: %v, %+v", err, e)
		}
		ctx, cancel := context.WithDeadline(context.Background(), time.Now())
		defer cancel()
		b.Start(ctx, Config{Op: "get"})
		if _, err := b.FirstAttempt("a:1", "r"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
	})
}

func TestServersAreCounted(t *testing.T) {
	var b Budget
	b.Start(context.Background(), Config{Op: "get"})
	for _, s := range []string{"a:1", "b:1", "a:1", "c:1", "d:1", "e:1", "f:1"} {
		if err := b.Attempt(s, ""); err != nil {
			t.Fatal(err)
		}
	}
	var e *Error
	if !errors.As(b.Exhausted(), &e) || len(e.Servers) != 4 || e.MoreServers != 2 {
		t.Errorf("%v and %d more", e.Servers, e.MoreServers)
	}
	if !strings.Contains(e.Error(), "on a:1, b:1, c:1, d:1 and 2 more") {
		t.Error(e)
	}
}

func TestErrorTextIsBounded(t *testing.T) {
	e := &Error{Op: "get", Row: make([]byte, maxRow), Causes: []Cause{{Err: errors.New(strings.Repeat("x", 10000) + "\nat org.apache")}}}
	if n := len(e.Error()); n > 1000 {
		t.Errorf("%d bytes", n)
	}
}

func TestSuccessAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	var b Budget
	cfg := Config{Op: "get", Table: table, Row: []byte("r"), Timeout: time.Second, Tokens: NewTokens()}
	if n := testing.AllocsPerRun(100, func() {
		b.Start(ctx, cfg)
		b.Enter(Locating)
		if err := b.Attempt("a:1", "r"); err != nil {
			t.Fatal(err)
		}
		b.Succeeded()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTokens(t *testing.T) {
	tok := NewTokens()
	for i := range 4 {
		tok.Failed()
		if tok.Scarce() {
			t.Fatalf("scarce after %d failures", i+1)
		}
	}
	tok.Failed()
	if !tok.Scarce() {
		t.Fatal("not scarce after 5 failures")
	}
	// While scarce, waits of busy classes are long at once; others are not.
	var b Budget
	b.Start(context.Background(), Config{Timeout: time.Hour, Tokens: tok, Rand: half})
	if d, _ := b.Next(ServerBusy, 0); d != 3750*time.Millisecond {
		t.Errorf("server busy wait %v", d)
	}
	if d, _ := b.Next(Transit, 0); d != 7500*time.Microsecond {
		t.Errorf("transit wait %v", d)
	}
	tok.Succeeded()
	if tok.Scarce() {
		t.Error("scarce although more than half is left")
	}
	for range 100 {
		tok.Failed()
	}
	for range 51 {
		tok.Succeeded()
	}
	if tok.Scarce() {
		t.Error("51 successes do not fill the bucket above half")
	}
}

// TestScarceTokensTakeNoAttempt: what else fails in a client makes a call's
// waits longer, but not so long that a call that had time for another attempt
// ends without it.
func TestScarceTokensTakeNoAttempt(t *testing.T) {
	tok := NewTokens()
	for range 10 {
		tok.Failed()
	}
	for _, c := range []Class{RegionBusy, ServerBusy, Throttled, Generic} {
		for _, timeout := range []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				var b Budget
				b.Start(context.Background(), Config{Timeout: timeout, Tokens: tok})
				var last time.Duration
				for range 100 {
					d, ok := b.Next(c, 0)
					if !ok {
						break
					}
					time.Sleep(d)
					last = b.Elapsed()
				}
				if last < timeout*3/4 || last >= timeout {
					t.Errorf("%v, %v: the last attempt came after %v", c, timeout, last)
				}
				b.Start(context.Background(), Config{Timeout: timeout, Tokens: tok})
				hint := timeout - timeout/20
				if d, ok := b.Next(c, hint); ok && d < hint {
					t.Errorf("%v, %v: waits %v though the server asked for %v", c, timeout, d, hint)
				}
				if d, ok := b.Next(c, timeout+time.Second); ok {
					t.Errorf("%v, %v: waits %v though the server's wait does not fit", c, timeout, d)
				}
			})
		}
	}
}

func BenchmarkBudgetSuccess(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var bu Budget
	b.ReportAllocs()
	for b.Loop() {
		bu.Start(ctx, Config{Op: "get"})
		bu.Enter(Locating)
		_ = bu.Attempt("a:1", "r")
		bu.Succeeded()
	}
}

func TestTokensOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, sick, well := NewTokens(), NewTokens(), NewTokens()
		busy := Classify(remote(wire.ClassCallQueueTooBig), Attempt{})
		var b Budget
		b.Start(t.Context(), Config{Tokens: client, Rand: func() float64 { return 0 }})
		for range 4 {
			b.On(sick)
			b.Failed(errors.New("busy"), busy)
		}
		for range 10 { // others pay into the client's bucket meanwhile
			client.Succeeded()
		}
		b.Failed(errors.New("busy"), busy)
		if !sick.Scarce() || client.Scarce() || well.Scarce() {
			t.Fatalf("left: client %v, sick %v, well %v", client.Left(), sick.Left(), well.Left())
		}
		if d, ok := b.Next(ServerBusy, 0); !ok || d != 2500*time.Millisecond {
			t.Errorf("wait for the sick server: %v", d)
		}
		b.On(well)
		if d, ok := b.Next(ServerBusy, 0); !ok || d != 100*time.Millisecond {
			t.Errorf("wait for the other: %v", d)
		}
		b.On(sick)
		for range 100 {
			b.Succeeded()
		}
		if sick.Scarce() || sick.Left() != 10 || client.Left() != 10 {
			t.Errorf("after successes: %v", sick.Left())
		}
		// Nobody's tokens never run out.
		var none *Tokens
		none.Failed()
		none.Succeeded()
		if none.Scarce() || none.Left() != 10 {
			t.Error("nil ran out")
		}
	})
}

func TestRetriesArePaidForWhileTokensAreScarce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewTokens()
		for range 100 {
			if !k.Pay() {
				t.Fatal("a retry was refused though none had failed")
			}
		}
		for range 10 {
			k.Failed()
		}
		pay := func() (n int) {
			for k.Pay() {
				n++
			}
			return n
		}
		if n := pay(); n != 10 {
			t.Errorf("%d retries put aside, want 10", n)
		}
		for range 100 {
			k.Begun()
		}
		if n := pay(); n != 10 { // twenty, of which ten can be put aside
			t.Errorf("%d retries for 100 calls at once", n)
		}
		n := 0
		for range 100 {
			k.Begun()
			n += pay()
		}
		if n != 20 {
			t.Errorf("%d retries for 100 calls, want 20", n)
		}
		n = 0
		for range 50 { // 5 s, in steps that are no whole tenths
			time.Sleep(99 * time.Millisecond)
			n += pay()
		}
		if n != 4 {
			t.Errorf("%d retries in 4.95 s, want one a second", n)
		}
		for range 60 {
			k.Succeeded()
		}
		if !k.Pay() {
			t.Error("refused though it goes well again")
		}
		var none *Tokens
		none.Begun()
		if !none.Pay() {
			t.Error("nil refuses")
		}
	})
}
