package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// combinedGet is get for Gets that may go together.
func combinedGet(ctx context.Context, core *Core, table meta.TableName, row string) (string, error) {
	var resp pb.GetResponse
	a, err := core.CallRegion(ctx, &RegionCall{
		Table: table, Row: []byte(row), Method: "Get", Op: "get", Result: &resp, Combine: true,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			return &pb.GetRequest{Region: specifier(region), Get: &pb.Get{Row: []byte(row)}}, nil
		},
	})
	if err != nil {
		return "", err
	}
	list, err := wire.KeyValueCodec.DecodeCells(a.Cells, nil)
	if err != nil || len(list) != 1 || int(resp.Result.GetAssociatedCellCount()) != 1 {
		return "", fmt.Errorf("%d cells, %w", len(list), err)
	}
	return string(list[0].Row) + "=" + string(list[0].Value), nil
}

// together sets how many Gets go together on the connections to a server, which
// has to be connected.
func together(core *Core, f *fakeCluster, server, number int) *combiner {
	g := &peerOf(core.servers.Get(f.server(server).name)).client.conn.Load().gets
	g.pace.number.Store(int32(number))
	return g
}

// crowdOf reads rows at once, each on a goroutine of its own, and gives the
// outcomes in order. Each has begun to wait before the next begins.
func crowdOf(ctx context.Context, core *Core, table meta.TableName, rows ...string) func() ([]string, []error) {
	var wg sync.WaitGroup
	values, errs := make([]string, len(rows)), make([]error, len(rows))
	for i, row := range rows {
		wg.Go(func() { values[i], errs[i] = combinedGet(ctx, core, table, row) })
		synctest.Wait()
	}
	return func() ([]string, []error) { wg.Wait(); return values, errs }
}

// stuck is a script that holds back the first n Gets until let go; the n first
// requests by themselves are what makes the others queue.
type stuck struct {
	left atomic.Int32
	wait time.Duration
}

func (s *stuck) answer(q *query) *reply {
	if q.method == "Get" && q.region() != nil && !bytesAreMeta(q.region()) && s.left.Add(-1) >= 0 {
		return &reply{apply: true, delay: s.wait}
	}
	return nil
}

func bytesAreMeta(name []byte) bool { return string(name) == meta.MetaRegionName }

func combining(t *testing.T, number int, cuts ...string) (*fakeCluster, *Core, meta.TableName, *combiner) {
	f := newFake(t, 1)
	table := f.table("t", cuts...)
	core := f.open()
	for _, cut := range append([]string{"a"}, cuts...) {
		if _, err := combinedGet(t.Context(), core, table, cut); err != nil {
			t.Fatal(err)
		}
	}
	f.forgetLog()
	return f, core, table, together(core, f, 1, number)
}

// owe sets how many twentieths of a Get may be asked for again.
func (g *combiner) owe(credit int) {
	g.mu.Lock()
	g.credit = credit
	g.mu.Unlock()
}

// settled checks that nobody has kept a place or stayed behind.
func settled(t *testing.T, g *combiner) {
	t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.out != 0 || len(g.queue) != 0 || len(g.running) != 0 {
		t.Errorf("%d requests out, %d Gets queued, %d Multis running after the last call", g.out, len(g.queue), len(g.running))
	}
}

func TestGetsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, core, table, g := combining(t, 16, "m")
		s := &stuck{wait: time.Millisecond}
		s.left.Store(2)
		f.hook(s.answer)
		values, errs := crowdOf(t.Context(), core, table, "a", "b", "c", "z", "d", "y")()
		want := []string{"a=rs1:0", "b=rs1:0", "c=rs1:0", "z=rs1:0", "d=rs1:0", "y=rs1:0"}
		if !slices.Equal(values, want) || errors.Join(errs...) != nil {
			t.Errorf("got %q, %v", values, errs)
		}
		if gets, multis := f.calls("Get", "t"), f.calls("Multi", "t"); gets != 2 || multis != 1 {
			t.Errorf("%d Gets and %d Multis, want 2 that go at once and 1 of the others", gets, multis)
		}
		settled(t, g)
	})
}

// TestEnoughGetsGo: as many as shall go together do not wait for a place.
func TestEnoughGetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, core, table, g := combining(t, 4)
		s := &stuck{wait: time.Minute}
		s.left.Store(2)
		f.hook(s.answer)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		crowd := crowdOf(ctx, core, table, "a", "b")
		values, errs := crowdOf(t.Context(), core, table, "c", "d", "e", "f")()
		if errors.Join(errs...) != nil || values[3] != "f=rs1:0" || time.Since(began) >= combineWait {
			t.Errorf("got %q, %v after %v", values, errs, time.Since(began))
		}
		cancel()
		crowd()
		settled(t, g)
	})
}

// TestGetsDoNotWaitForTrouble: two requests that hang do not hold up who queues
// behind them, and one that hangs in a Multi not those beside it.
func TestGetsDoNotWaitForTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, core, table, g := combining(t, 64)
		s := &stuck{wait: time.Minute}
		s.left.Store(2)
		var hung atomic.Bool
		f.hook(func(q *query) *reply {
			if q.method == "Multi" && hung.CompareAndSwap(false, true) {
				return &reply{apply: true, delay: time.Minute}
			}
			return s.answer(q)
		})
		ctx, cancel := context.WithCancel(t.Context())
		g.owe(combineCredit * combineAgain)
		began := time.Now()
		crowd := crowdOf(ctx, core, table, "a", "b")
		values, errs := crowdOf(t.Context(), core, table, "c", "d", "e")()
		took := time.Since(began)
		if errors.Join(errs...) != nil || values[2] != "e=rs1:0" {
			t.Errorf("got %q, %v", values, errs)
		}
		if limit := 2*combineWait + combineTooLong + 2*combineWait; took > limit {
			t.Errorf("answered after %v, want at most %v", took, limit)
		}
		g.mu.Lock()
		credit := g.credit
		g.mu.Unlock()
		if credit > (combineCredit-3)*combineAgain+3 {
			t.Errorf("%d twentieths of credit left: asking again cost nothing", credit)
		}
		// Without credit nobody asks twice.
		hung.Store(false)
		g.owe(0)
		began = time.Now()
		values, errs = crowdOf(t.Context(), core, table, "c", "d", "e")()
		if took := time.Since(began); errors.Join(errs...) != nil || took < time.Second {
			t.Errorf("got %q, %v after %v, want the hanging answer", values, errs, took)
		}
		cancel()
		crowd()
		settled(t, g)
	})
}

// TestTogetherAlone: everybody's deadline, exception and context is their own.
func TestTogetherAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, core, table, g := combining(t, 64, "m")
		gone := f.region(table, "z")
		s := &stuck{wait: time.Millisecond}
		s.left.Store(2)
		var slow atomic.Int64
		f.hook(func(q *query) *reply {
			if d := slow.Load(); d > 0 && q.method == "Multi" && !bytesAreMeta(q.region()) {
				return &reply{apply: true, delay: time.Duration(d)}
			}
			return s.answer(q)
		})

		// A region that is gone: its Gets look for it, the others are answered.
		f.mu.Lock()
		gone.unassigned = true
		f.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		values, errs := crowdOf(ctx, core, table, "a", "b", "c", "z", "d")()
		if values[2] != "c=rs1:0" || values[4] != "d=rs1:0" || errs[2] != nil || errs[4] != nil || !errors.Is(errs[3], context.DeadlineExceeded) {
			t.Errorf("got %q, %v", values, errs)
		}
		f.mu.Lock()
		gone.unassigned = false
		f.mu.Unlock()

		// One caller's deadline, and one's cancellation, in a Multi that takes
		// longer.
		slow.Store(int64(30 * time.Millisecond))
		s.left.Store(2)
		g.owe(0)
		first := crowdOf(t.Context(), core, table, "a", "b")
		short, cancelShort := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancelShort()
		canceled, cancelNow := context.WithCancel(t.Context())
		began := time.Now()
		a, b := crowdOf(short, core, table, "c"), crowdOf(canceled, core, table, "d")
		c := crowdOf(t.Context(), core, table, "e", "f")
		time.AfterFunc(7*time.Millisecond, cancelNow)
		if _, errs := b(); !errors.Is(errs[0], context.Canceled) || time.Since(began) != 7*time.Millisecond {
			t.Errorf("the canceled Get: %v after %v", errs, time.Since(began))
		}
		if _, errs := a(); !errors.Is(errs[0], context.DeadlineExceeded) || time.Since(began) != 10*time.Millisecond {
			t.Errorf("the short Get: %v after %v", errs, time.Since(began))
		}
		if values, errs := c(); values[1] != "f=rs1:0" || errors.Join(errs...) != nil {
			t.Errorf("the others: %q, %v", values, errs)
		}
		first()
		settled(t, g)

		// Those who leave the queue before it goes.
		slow.Store(0)
		s.left.Store(2)
		first = crowdOf(t.Context(), core, table, "a", "b")
		canceled, cancelNow = context.WithCancel(t.Context())
		a = crowdOf(canceled, core, table, "c", "d")
		cancelNow()
		if _, errs := a(); !errors.Is(errs[0], context.Canceled) || !errors.Is(errs[1], context.Canceled) {
			t.Errorf("left the queue: %v", errs)
		}
		first()
		settled(t, g)
	})
}

// TestTogetherExcluded: an exception to a whole Multi that may be about one of
// the Gets has everybody ask for himself.
func TestTogetherExcluded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, core, table, g := combining(t, 64)
		s := &stuck{wait: time.Millisecond}
		s.left.Store(2)
		f.hook(func(q *query) *reply {
			switch {
			case q.method == "Multi" && !bytesAreMeta(q.region()):
				return &reply{err: wire.NewRemoteError("org.apache.hadoop.hbase.DoNotRetryIOException", "no such filter")}
			case q.method == "Get":
				var m pb.GetRequest
				if m.UnmarshalVT(q.param) == nil && string(m.Get.GetRow()) == "d" {
					return &reply{err: wire.NewRemoteError("org.apache.hadoop.hbase.DoNotRetryIOException", "no such filter")}
				}
			}
			return s.answer(q)
		})
		values, errs := crowdOf(t.Context(), core, table, "a", "b", "c", "d", "e")()
		remote, ok := errors.AsType[*wire.RemoteError](errs[3])
		if values[2] != "c=rs1:0" || values[4] != "e=rs1:0" || !ok || remote.Message != "no such filter" {
			t.Errorf("got %q, %v", values, errs)
		}
		settled(t, g)
	})
}

// TestTogetherLost: a connection that ends, an overloaded server and an answer
// without sense are to a Get among others what they are to one alone.
func TestTogetherLost(t *testing.T) {
	for name, trouble := range map[string]reply{
		"killed":   {kill: true},
		"busy":     {err: wire.NewRemoteError(wire.ClassServerTooBusy, "busy")},
		"nonsense": {msg: &pb.MultiResponse{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, core, table, g := combining(t, 64)
				s := &stuck{wait: time.Millisecond}
				s.left.Store(2)
				var times atomic.Int32
				f.hook(func(q *query) *reply {
					if q.method == "Multi" && !bytesAreMeta(q.region()) && len(q.region()) > 0 && times.Add(1) == 1 {
						r := trouble
						return &r
					}
					return s.answer(q)
				})
				values, errs := crowdOf(t.Context(), core, table, "a", "b", "c", "d", "e")()
				if values[2] != "c=rs1:0" || values[4] != "e=rs1:0" || errors.Join(errs...) != nil || times.Load() == 0 {
					t.Errorf("got %q, %v, %d Multis", values, errs, times.Load())
				}
				settled(t, g)
			})
		})
	}
}

// TestTogetherClosed: the end of the Core is the end of everybody's Get.
func TestTogetherClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, core, table, g := combining(t, 64)
		f.hook(func(q *query) *reply { return &reply{swallow: true} })
		crowd := crowdOf(t.Context(), core, table, "a", "b", "c", "d", "e")
		time.Sleep(time.Millisecond)
		late := crowdOf(t.Context(), core, table, "f")
		core.Close()
		if _, errs := crowd(); !errors.Is(errs[0], ErrClosed) || !errors.Is(errs[4], ErrClosed) {
			t.Errorf("got %v", errs)
		}
		if _, errs := late(); !errors.Is(errs[0], ErrClosed) {
			t.Errorf("queued: %v", errs)
		}
		settled(t, g)
	})
}

// TestTogetherCrowd is for the race detector: callers who come and go.
func TestTogetherCrowd(t *testing.T) {
	f := newFake(t, 2)
	table := f.table("t", "m")
	core := f.open()
	for i, row := range []string{"a", "z"} {
		if _, err := combinedGet(t.Context(), core, table, row); err != nil {
			t.Fatal(err)
		}
		together(core, f, i+1, 4<<i)
	}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for n := range 50 {
				row := string(rune('a'+(i+n)%26)) + fmt.Sprint(n)
				ctx, cancel := context.WithCancel(t.Context())
				if n%5 == 0 {
					time.AfterFunc(time.Duration(i*n)*time.Microsecond, cancel)
				}
				value, err := combinedGet(ctx, core, table, row)
				if host := map[bool]string{true: "rs1", false: "rs2"}[row < "m"]; err == nil && value != row+"="+host+":0" {
					t.Errorf("row %s: %s", row, value)
				}
				if err != nil && (n%5 != 0 || !errors.Is(err, context.Canceled)) {
					t.Errorf("row %s: %v", row, err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

// TestCombinedRequest checks the request written by hand against the generated
// message, and answers in any order.
func TestCombinedRequest(t *testing.T) {
	regions := []string{"t,,1.a.", "t,m,1.b.", "t,x,1.c."}
	var batch []*combined
	for i := range 200 {
		req := &pb.GetRequest{Region: specifier([]byte(regions[i*i%3])), Get: &pb.Get{Row: fmt.Appendf(nil, "row%d", i), MaxVersions: new(uint32(i))}}
		b, err := req.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		m := &combined{request: b, done: make(chan struct{}, 1)}
		if err := m.split(); err != nil {
			t.Fatal(err)
		}
		batch = append(batch, m)
	}
	var q combinedRequest
	q.build(batch)
	if len(q.message) != cap(q.message) {
		t.Errorf("%d bytes in room for %d", len(q.message), cap(q.message))
	}
	var m pb.MultiRequest
	if err := m.UnmarshalVT(q.message); err != nil {
		t.Fatal(err)
	}
	resp := &pb.MultiResponse{}
	var block []byte
	at := 0
	for _, ra := range m.RegionAction {
		res := &pb.RegionActionResult{}
		for i, a := range ra.Action {
			row := string(q.members[at].get)
			if b, _ := a.Get.MarshalVT(); string(b) != row || int(a.GetIndex()) != i {
				t.Fatalf("action %d: index %d, get %q, want %q", i, a.GetIndex(), b, row)
			}
			at++
		}
		for i := range ra.Action {
			i = len(ra.Action) - 1 - i
			roe := &pb.ResultOrException{Index: new(uint32(i))}
			switch a := ra.Action[i]; i % 4 {
			case 0:
				roe.Result = &pb.Result{AssociatedCellCount: new(int32(2)), Stale: new(true)}
				block = append(block, cellsOf(
					cells.Cell{Row: a.Get.Row, Family: []byte("f"), Qualifier: []byte("1"), Type: cells.Put},
					cells.Cell{Row: a.Get.Row, Family: []byte("f"), Qualifier: []byte("2"), Type: cells.Put})...)
			case 1:
				roe.Result = &pb.Result{Exists: new(true)}
			case 2:
				roe.Exception = wire.NewRemoteError(wire.ClassNotServingRegion, string(a.Get.Row)).Named()
			default:
				continue // the region's exception
			}
			res.ResultOrException = append(res.ResultOrException, roe)
		}
		res.Exception = wire.NewRemoteError(wire.ClassServerTooBusy, "all the others").Named()
		resp.RegionActionResult = append(resp.RegionActionResult, res)
	}
	message, err := resp.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := q.answers(message, block, now); err != nil {
		t.Fatal(err)
	}
	for i, m := range batch {
		row := fmt.Sprintf("row%d", i)
		if len(m.done) != 1 || !m.sent || !m.answered.Equal(now) {
			t.Fatalf("%s has no answer", row)
		}
		var got pb.GetResponse
		if m.err == nil {
			if err := got.UnmarshalVT(m.message); err != nil {
				t.Fatal(err)
			}
		}
		remote, _ := errors.AsType[*wire.RemoteError](m.err)
		list, err := wire.KeyValueCodec.DecodeCells(m.cells, nil)
		switch m.index % 4 {
		case 0:
			if m.err != nil || err != nil || len(list) != 2 || string(list[0].Row) != row || string(list[1].Qualifier) != "2" || !got.Result.GetStale() || got.Result.GetAssociatedCellCount() != 2 {
				t.Errorf("%s: %v, %v, %v", row, list, err, m.err)
			}
		case 1:
			if m.err != nil || !got.Result.GetExists() || len(m.cells) > 0 {
				t.Errorf("%s: %v, %v", row, got.Result, m.err)
			}
		case 2:
			if remote == nil || remote.Class != wire.ClassNotServingRegion || remote.Message != row {
				t.Errorf("%s: %v", row, m.err)
			}
		default:
			if remote == nil || remote.Message != "all the others" {
				t.Errorf("%s: %v", row, m.err)
			}
		}
	}
}

// FuzzCombinedAnswers: whatever comes, nobody gets two outcomes, and who gets
// none is told so by the error.
func FuzzCombinedAnswers(f *testing.F) {
	good := &pb.MultiResponse{RegionActionResult: []*pb.RegionActionResult{
		{ResultOrException: []*pb.ResultOrException{
			{Index: new(uint32(1)), Result: &pb.Result{AssociatedCellCount: new(int32(1))}},
			{Index: new(uint32(0)), Exception: wire.NewRemoteError(wire.ClassNotServingRegion, "x").Named()}}},
		{Exception: wire.NewRemoteError(wire.ClassNotServingRegion, "y").Named()},
	}}
	message, _ := good.MarshalVT()
	f.Add(message, cellsOf(cells.Cell{Row: []byte("r"), Family: []byte("f"), Type: cells.Put}))
	f.Fuzz(func(t *testing.T, message, block []byte) {
		var batch []*combined
		for i := range 4 {
			req, _ := (&pb.GetRequest{Region: specifier([]byte{byte('a' + i/2)}), Get: &pb.Get{Row: []byte("r")}}).MarshalVT()
			m := &combined{request: req, done: make(chan struct{}, 1)}
			if err := m.split(); err != nil {
				t.Fatal(err)
			}
			batch = append(batch, m)
		}
		var q combinedRequest
		q.build(batch)
		err := q.answers(message, block, time.Now())
		for i, m := range batch {
			if len(m.done) == 0 && (err == nil || !slices.Contains(q.members, m)) {
				t.Errorf("Get %d has no outcome, and the answer passes for one: %v", i, err)
			}
			if len(m.done) == 1 && slices.Contains(q.members, m) {
				t.Errorf("Get %d will have two outcomes", i)
			}
		}
	})
}
