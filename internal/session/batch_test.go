package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func getItem(row string) Item {
	return Item{Row: []byte(row), Actions: []*pb.Action{{Get: &pb.Get{Row: []byte(row)}}}}
}

func putItem(row string, idem Idempotency) Item {
	block := cellsOf(cells.Cell{Row: []byte(row), Family: []byte("f"), Qualifier: []byte("q"), Type: cells.Put, Value: []byte("v")})
	return Item{
		Row: []byte(row), Idempotency: idem, Cells: block,
		Actions: []*pb.Action{{Mutation: &pb.MutationProto{MutateType: pb.MutationProto_PUT.Enum(), AssociatedCellCount: new(int32(1))}}},
	}
}

func atomicItem(row string, n int) Item {
	it := Item{Row: []byte(row), Atomic: true}
	for i := range n {
		one := putItem(row, Safe)
		one.Actions[0].Mutation.Nonce = new(uint64(i + 1))
		it.Cells = append(it.Cells, one.Cells...)
		it.Actions = append(it.Actions, one.Actions...)
	}
	return it
}

func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		cuts := []string{}
		for i := 1; i < 10; i++ {
			cuts = append(cuts, fmt.Sprintf("%d", i))
		}
		table := c.table("t", cuts...)
		core := c.open()
		var items []Item
		for i := range 300 {
			row := fmt.Sprintf("%03d", (i*7)%300)
			switch i % 3 {
			case 0:
				items = append(items, getItem(row))
			case 1:
				items = append(items, putItem(row, Safe))
			default:
				items = append(items, atomicItem(row, 3))
			}
		}
		out := core.Batch(t.Context(), table, items)
		for i, o := range out {
			if o.Err != nil || o.Attempts != 1 || len(o.Results) != len(items[i].Actions) || !o.Processed {
				t.Fatalf("item %d: %+v", i, o)
			}
			if i%3 == 0 {
				got := o.Results[0].Cells
				if len(got) != 1 || string(got[0].Row) != string(items[i].Row) {
					t.Fatalf("item %d: %v", i, got)
				}
			}
			if i%3 == 1 {
				row := string(items[i].Row)
				if n := c.region(table, row).count[row]; n != 1 {
					t.Errorf("row %s applied %d times", row, n)
				}
			}
		}
		// Three servers, ten regions, one request each.
		if n := c.calls("Multi", "t"); n != 3 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestBatchCutsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		table := c.table("t", "4", "8")
		core := c.open(func(cfg *Config) { cfg.BatchActions = 10 })
		type sent struct{ rows []string }
		var got []sent
		c.hook(func(q *query) *reply {
			var m pb.MultiRequest
			if q.method == "Multi" && m.UnmarshalVT(q.param) == nil {
				s := sent{}
				for _, ra := range m.RegionAction {
					for _, a := range ra.Action {
						s.rows = append(s.rows, string(a.Get.GetRow()))
					}
				}
				c.mu.Lock()
				got = append(got, s)
				c.mu.Unlock()
				if len(s.rows) > 10 {
					t.Errorf("a request with %d actions", len(s.rows))
				}
				return &reply{delay: time.Millisecond, apply: true}
			}
			return nil
		})
		var items []Item
		for i := range 95 {
			// Not in row order, so that the order within a region shows.
			items = append(items, getItem(fmt.Sprintf("%02d", 94-i)))
		}
		for i, o := range core.Batch(t.Context(), table, items) {
			if o.Err != nil || string(o.Results[0].Cells[0].Row) != fmt.Sprintf("%02d", 94-i) {
				t.Fatalf("item %d: %+v", i, o)
			}
		}
		if len(got) < 10 || len(got) > 13 {
			t.Errorf("%d requests for 95 actions of at most 10", len(got))
		}
		// Within a region, the caller's order.
		order := map[int][]string{}
		for _, s := range got {
			for _, row := range s.rows {
				k := 0
				if row >= "4" {
					k++
				}
				if row >= "8" {
					k++
				}
				order[k] = append(order[k], row)
			}
		}
		for k, rows := range order {
			if !slices.IsSortedFunc(rows, func(a, b string) int { return strings.Compare(b, a) }) {
				t.Errorf("region %d got its items out of order: %v", k, rows)
			}
		}
	})
}

func TestBatchRetriesOnlyWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t", "b", "c")
		core := c.open()
		items := []Item{putItem("a1", Safe), putItem("a2", Safe), putItem("b1", Safe), putItem("b2", Safe), putItem("c1", Safe), getItem("c2")}
		if out := core.Batch(t.Context(), table, items); out[0].Err != nil {
			t.Fatal(out[0].Err)
		}
		// A read of meta may still run on ahead of the first batch.
		synctest.Wait()
		// One region has moved, with a hint; one action of another is too busy.
		c.move(c.region(table, "b1"), c.server(1), true)
		busy := true
		c.hook(func(q *query) *reply {
			if q.method != "Multi" || q.srv != c.server(3) || !busy {
				return nil
			}
			busy = false
			// c1 was too busy, c2 did not fit into the answer.
			return &reply{msg: &pb.MultiResponse{RegionActionResult: []*pb.RegionActionResult{{ResultOrException: []*pb.ResultOrException{
				{Index: new(uint32(1)), Exception: wire.NewRemoteError(wire.ClassMultiActionResultTooLarge, "").Named()},
				{Index: new(uint32(0)), Exception: wire.NewRemoteError(wire.ClassRegionTooBusy, "memstore").Named()},
			}}}}}
		})
		c.forgetLog()
		out := core.Batch(t.Context(), table, items)
		want := []int{1, 1, 2, 2, 2, 2}
		for i, o := range out {
			if o.Err != nil || o.Attempts != want[i] {
				t.Errorf("item %d: %d attempts, %v; want %d", i, o.Attempts, o.Err, want[i])
			}
		}
		for _, row := range []string{"a1", "a2", "b1", "b2", "c1"} {
			if n := c.region(table, row).count[row]; n != 2 {
				t.Errorf("row %s was changed %d times by two batches", row, n)
			}
		}
		if n := c.metaReads(); n != 0 {
			t.Errorf("%d meta reads", n)
		}
	})
}

func TestBatchReportsPerItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t", "m")
		core := c.open()
		items := []Item{getItem("a"), putItem("b", Safe), putItem("x", Unsafe), putItem("y", Nonced), getItem("z")}
		items[3].Actions[0].Mutation.Nonce = new(uint64(9))
		if out := core.Batch(t.Context(), table, items); out[4].Err != nil {
			t.Fatal(out[4].Err)
		}
		// The second server applies everything and loses its answers, once.
		lost := map[string]bool{}
		c.hook(func(q *query) *reply {
			if q.method != "Multi" || q.srv != c.server(2) {
				if q.srv == c.server(1) && q.method == "Multi" && c.tableOf(q) == "t" {
					return &reply{msg: &pb.MultiResponse{RegionActionResult: []*pb.RegionActionResult{{ResultOrException: []*pb.ResultOrException{
						{Index: new(uint32(0)), Exception: wire.NewRemoteError(wire.ClassNoSuchColumnFamily, "nofam").Named()},
						{Index: new(uint32(1)), Result: &pb.Result{}},
					}}}}}
				}
				return nil
			}
			if lost[string(q.param)] {
				return nil
			}
			lost[string(q.param)] = true
			return &reply{kill: true, apply: true}
		})
		items[3].Actions[0].Mutation.Nonce = new(uint64(10))
		out := core.Batch(t.Context(), table, items)
		var remote *wire.RemoteError
		if err := out[0].Err; !errors.As(err, &remote) || remote.Class != wire.ClassNoSuchColumnFamily || !strings.Contains(err.Error(), "row a") {
			t.Errorf("item 0: %v", err)
		}
		if out[1].Err != nil {
			t.Errorf("item 1: %v", out[1].Err)
		}
		if err := out[2].Err; !errors.Is(err, retry.ErrUnknownOutcome) {
			t.Errorf("item 2: %v", err)
		}
		if out[3].Err != nil || out[4].Err != nil {
			t.Errorf("items 3 and 4: %v, %v", out[3].Err, out[4].Err)
		}
		r := c.region(table, "x")
		// Whether the server has read the request for x before it closed the
		// connection on account of y's is what cannot be known.
		if x := r.count["x"]; x < 1 || x > 2 || r.count["y"] != 2 {
			t.Errorf("x was changed %d times, y %d times; want 1 or 2, and 2", x, r.count["y"])
		}
	})
}

func TestBatchWithAFrozenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t", "g", "p")
		core := c.open()
		items := []Item{getItem("a"), getItem("h"), getItem("q"), putItem("h2", Unsafe)}
		if out := core.Batch(t.Context(), table, items); out[1].Err != nil {
			t.Fatal(out[1].Err)
		}
		c.server(2).freeze()
		time.AfterFunc(20*time.Second, c.server(2).thaw)
		began := time.Now()
		for i, o := range core.Batch(t.Context(), table, items) {
			if o.Err != nil {
				t.Errorf("item %d: %v", i, o.Err)
			}
		}
		if d := time.Since(began); d < 20*time.Second || d > 20*time.Second+100*time.Millisecond {
			t.Errorf("took %v, the server was back after 20s", d)
		}
		// With too little time, those of the other servers are done all the same.
		c.server(2).freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began = time.Now()
		out := core.Batch(ctx, table, items)
		if d := time.Since(began); d > 3*time.Second+5*time.Millisecond {
			t.Errorf("returned after %v", d)
		}
		for i, o := range out {
			frozen := i == 1 || i == 3
			if frozen != (o.Err != nil) {
				t.Errorf("item %d: %v", i, o.Err)
			}
			if frozen && !errors.Is(o.Err, context.DeadlineExceeded) {
				t.Errorf("item %d: %v", i, o.Err)
			}
		}
		if !errors.Is(out[3].Err, retry.ErrUnknownOutcome) || retry.SafeToRetry(out[3].Err) {
			t.Errorf("unsafe item: %v", out[3].Err)
		}
		c.server(2).thaw()
	})
}

func TestBatchDeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t", "g", "p")
		core := c.open()
		items := []Item{getItem("a"), getItem("h"), getItem("h2"), getItem("q")}
		if out := core.Batch(t.Context(), table, items); out[1].Err != nil {
			t.Fatal(out[1].Err)
		}
		c.server(2).kill()
		time.AfterFunc(5*time.Second, func() { c.move(c.region(table, "h"), c.server(3), false) })
		began := time.Now()
		for i, o := range core.Batch(t.Context(), table, items) {
			if o.Err != nil {
				t.Errorf("item %d: %v", i, o.Err)
			}
		}
		if d := time.Since(began); d < 5*time.Second || d > 6100*time.Millisecond {
			t.Errorf("took %v, the region was back after 5s", d)
		}
	})
}

func TestBatchOfMissingTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		c.table("t")
		core := c.open()
		missing := c.table("x")
		c.mu.Lock()
		c.regions = c.regions[:1]
		c.mu.Unlock()
		began := time.Now()
		for i, o := range core.Batch(t.Context(), missing, []Item{getItem("a"), getItem("b")}) {
			if !errors.Is(o.Err, route.ErrTableNotFound) {
				t.Errorf("item %d: %v", i, o.Err)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("took %v", d)
		}
	})
}

func TestBatchConditional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		table := c.table("t")
		core := c.open()
		it := putItem("a", Unsafe)
		it.Condition = &pb.Condition{Row: []byte("a"), Family: []byte("f"), Qualifier: []byte("q")}
		no := putItem("b", Unsafe)
		no.Condition = it.Condition
		c.hook(func(q *query) *reply {
			var m pb.MultiRequest
			if q.method != "Multi" || m.UnmarshalVT(q.param) != nil || len(m.RegionAction) == 0 {
				return nil
			}
			resp := &pb.MultiResponse{}
			for i, ra := range m.RegionAction {
				if ra.Condition == nil || !ra.GetAtomic() {
					t.Error("a conditional item went without its condition")
				}
				resp.RegionActionResult = append(resp.RegionActionResult, &pb.RegionActionResult{
					Processed:         new(i == 0),
					ResultOrException: []*pb.ResultOrException{{Index: new(uint32(0)), Result: &pb.Result{}}},
				})
			}
			return &reply{msg: resp}
		})
		out := core.Batch(t.Context(), table, []Item{it, no})
		if out[0].Err != nil || !out[0].Processed || out[1].Err != nil || out[1].Processed {
			t.Errorf("%+v", out)
		}
	})
}

func TestBatchOfALargeTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		var cuts []string
		for i := 1; i < 1000; i++ {
			cuts = append(cuts, fmt.Sprintf("%04d", i))
		}
		table := c.table("t", cuts...)
		core := c.open()
		var items []Item
		for i := range 1000 {
			items = append(items, getItem(fmt.Sprintf("%04d", i)))
		}
		for i, o := range core.Batch(t.Context(), table, items) {
			if o.Err != nil {
				t.Fatalf("item %d: %v", i, o.Err)
			}
		}
		if n := c.metaReads(); n > 30 {
			t.Errorf("%d meta reads for 1000 cold regions", n)
		}
		if n := c.calls("Multi", "t"); n > 60 {
			t.Errorf("%d requests", n)
		}
	})
}

// FuzzMultiAnswer feeds answers of every shape to the decoder.
func FuzzMultiAnswer(f *testing.F) {
	good := &pb.MultiResponse{RegionActionResult: []*pb.RegionActionResult{
		{ResultOrException: []*pb.ResultOrException{{Index: new(uint32(0)), Result: &pb.Result{AssociatedCellCount: new(int32(1))}}}},
		{Processed: new(true), ResultOrException: []*pb.ResultOrException{{Result: &pb.Result{}}}},
	}}
	b, _ := good.MarshalVT()
	block := cellsOf(cells.Cell{Row: []byte("r"), Family: []byte("f"), Type: cells.Put})
	f.Add(b, block)
	f.Add([]byte{}, []byte{})
	f.Add(b, block[:5])
	items := []Item{getItem("a"), getItem("b"), atomicItem("c", 2)}
	f.Fuzz(func(t *testing.T, msg, block []byte) {
		c := chunk{parts: []part{{items: []int{0, 1}}, {items: []int{2}, group: true}}, count: 4}
		if c.resp.UnmarshalVT(msg) != nil {
			return
		}
		var generated pb.MultiResponse
		if generated.UnmarshalVT(msg) == nil {
			sameAnswer(t, &c.resp, &generated)
		}
		c.x.cells = block
		seen := 0
		err := c.answers(items, func(p *part, i int, a answer) {
			seen++
			if a.err == nil && len(a.results) != len(items[i].Actions) {
				t.Errorf("item %d: %d results", i, len(a.results))
			}
		})
		if err == nil && seen != 3 {
			t.Errorf("%d answers", seen)
		}
	})
}

// sameAnswer compares what is read by hand with what the generated code reads.
func sameAnswer(t *testing.T, got *multiAnswer, want *pb.MultiResponse) {
	t.Helper()
	results := got.results
	if len(got.regions) != len(want.RegionActionResult) || got.processed != want.GetProcessed() {
		t.Fatalf("%d regions, processed %v; want %d, %v", len(got.regions), got.processed, len(want.RegionActionResult), want.GetProcessed())
	}
	for k, w := range want.RegionActionResult {
		g := got.regions[k]
		if g.results != len(w.ResultOrException) || (g.exception == nil) != (w.Exception == nil) || g.processed != w.GetProcessed() || g.hasProcessed != (w.Processed != nil) {
			t.Fatalf("region %d: %+v, want %v", k, g, w)
		}
		for j, w := range w.ResultOrException {
			g := results[j]
			if (g.index < 0) != (w.Index == nil) || w.Index != nil && *w.Index < 1<<31 && g.index != int32(*w.Index) {
				t.Errorf("index %d, want %v", g.index, w.Index)
			}
			if e := g.exception(); (e == nil) != (w.Exception == nil) || e.GetName() != w.Exception.GetName() {
				t.Errorf("exception %v, want %v", e, w.Exception)
			}
			r := w.Result
			exists := int8(-1)
			if r != nil && r.Exists != nil {
				exists = 0
				if *r.Exists {
					exists = 1
				}
			}
			if g.cells != r.GetAssociatedCellCount() || g.exists != exists || g.stale != r.GetStale() || g.partial != r.GetPartial() {
				t.Errorf("result %+v, want %v", g, r)
			}
			var inline int
			if g.rare != nil {
				inline = len(g.rare.inline)
				if (g.rare.service == nil) != (w.ServiceResult == nil) {
					t.Errorf("service %v, want %v", g.rare.service, w.ServiceResult)
				}
			}
			if r != nil && inline != len(r.Cell) {
				t.Errorf("%d cells inside, want %d", inline, len(r.Cell))
			}
		}
		results = results[g.results:]
	}
}
