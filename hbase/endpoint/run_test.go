package endpoint_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/endpoint"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start brings up a cluster with a table "t" (families f and g), split as
// told, and a client.
func start(t testing.TB, splits ...string) (*minihbase.Cluster, *hbase.Table) {
	t.Helper()
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	keys := make([][]byte, len(splits))
	for i, s := range splits {
		keys[i] = []byte(s)
	}
	if err := c.CreateTable(t.Context(), "t", []string{"f", "g"}, keys...); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address(), hbase.WithRPCTimeout(500*time.Millisecond), hbase.WithOperationTimeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	return c, tab
}

func key(i int) string { return fmt.Sprintf("r%03d", i) }

func long(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// fill writes rows r000 to r<n-1> with f:n = the row's number.
func fill(t testing.TB, tab *hbase.Table, n int) {
	t.Helper()
	ops := make([]hbase.Op, n)
	for i := range ops {
		ops[i] = hbase.NewPut(key(i)).Set("f", "n", long(int64(i)))
	}
	if err := tab.Batch(t.Context(), ops).Err(); err != nil {
		t.Fatal(err)
	}
}

// counting is a call that counts rows; whole leaves the range out of requests.
func counting(t testing.TB, from, to string, whole bool) *endpoint.Call {
	t.Helper()
	return &endpoint.Call{
		Service: "AggregateService", Method: "GetRowNum", Start: []byte(from), Stop: []byte(to), WholeRegions: whole,
		Request: func(p endpoint.Part) ([]byte, error) {
			scan := &pb.Scan{StartRow: p.Start, StopRow: p.Stop}
			if whole {
				scan.StartRow, scan.StopRow = nil, nil
			}
			return (&pb.AggregateRequest{InterpreterClassName: new(endpoint.Long().Class), Scan: scan}).MarshalVT()
		},
	}
}

// counted runs a call and adds up, checking that the parts cover the range
// without overlapping.
func counted(ctx context.Context, tab *hbase.Table, c *endpoint.Call) (rows int64, parts []endpoint.Part, err error) {
	err = endpoint.Run(ctx, tab, c, func(p *endpoint.Partial) error {
		var r pb.AggregateResponse
		if err := r.UnmarshalVT(p.Value); err != nil {
			return err
		}
		rows += int64(binary.BigEndian.Uint64(r.FirstPart[0]))
		parts = append(parts, p.Part)
		return nil
	})
	return rows, parts, err
}

// covers says whether the parts, put in order, cover a range exactly.
func covers(parts []endpoint.Part, from, to string) bool {
	at := []byte(from)
	for range parts {
		for _, p := range parts {
			if bytes.Equal(p.Start, at) {
				at = p.Stop
				if string(at) == to {
					return true
				}
				break
			}
		}
	}
	return false
}

func TestRanges(t *testing.T) {
	t.Parallel()
	_, tab := start(t, "r030", "r060", "r090")
	fill(t, tab, 120)
	for _, tt := range []struct {
		from, to string
		rows     int64
		parts    int
	}{
		{"", "", 120, 4},
		{"r030", "r060", 30, 1},
		{"r029", "r061", 32, 3},
		{"r005", "r006", 1, 1},
		{"", "r030", 30, 1},
		{"r100", "", 20, 1},
		{"x", "", 0, 1},
		{"r059\x00", "r060\x00", 1, 2},
	} {
		for _, parallel := range []int{0, 1, 3} {
			c := counting(t, tt.from, tt.to, false)
			c.Parallel = parallel
			rows, parts, err := counted(t.Context(), tab, c)
			if err != nil || rows != tt.rows || len(parts) != tt.parts || !covers(parts, tt.from, tt.to) {
				t.Errorf("[%s, %s) with %d at a time: %d rows in %q, %v; want %d in %d parts", tt.from, tt.to, parallel, rows, parts, err, tt.rows, tt.parts)
			}
		}
	}
}

// hold makes the calls of a region's endpoints wait.
func hold(t testing.TB, c *minihbase.Cluster, row string) (release func()) {
	t.Helper()
	r, err := c.Locate("t", []byte(row))
	if err != nil {
		t.Fatal(err)
	}
	id, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "ExecService", Region: r.Encoded}, Action: minihbase.Hold})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.WaitRule(ctx, id, 1); err != nil {
			t.Fatal(err)
		}
		if err := c.RemoveRule(id); err != nil {
			t.Fatal(err)
		}
	}
}

func encoded(t testing.TB, c *minihbase.Cluster, rows ...string) (names []string) {
	t.Helper()
	for _, row := range rows {
		r, err := c.Locate("t", []byte(row))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.Encoded)
	}
	return names
}

// TestExactlyOnce: regions change between the moment a call was aimed at them
// and the moment it runs, and each row still counts once.
func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		whole    bool
		held     []string // regions whose calls wait meanwhile
		disturb  func(t *testing.T, c *minihbase.Cluster) error
		parts    int
		want     error
		parallel int
	}{
		"split": {held: []string{"r040"}, parts: 4, disturb: func(t *testing.T, c *minihbase.Cluster) error {
			return c.Split(t.Context(), encoded(t, c, "r040")[0], []byte("r050"))
		}},
		"split twice": {held: []string{"r040"}, parts: 5, disturb: func(t *testing.T, c *minihbase.Cluster) error {
			if err := c.Split(t.Context(), encoded(t, c, "r040")[0], []byte("r050")); err != nil {
				return err
			}
			return c.Split(t.Context(), encoded(t, c, "r040")[0], []byte("r040"))
		}},
		"move": {held: []string{"r040"}, parts: 3, disturb: func(t *testing.T, c *minihbase.Cluster) error {
			return c.MoveRegion(t.Context(), encoded(t, c, "r040")[0], -1)
		}},
		"merge, both waiting": {held: []string{"r010", "r040"}, parts: 3, disturb: func(t *testing.T, c *minihbase.Cluster) error {
			return c.Merge(t.Context(), encoded(t, c, "r010", "r040")...)
		}},
		"merge, one done": {held: []string{"r040"}, parts: 3, disturb: func(t *testing.T, c *minihbase.Cluster) error {
			return c.Merge(t.Context(), encoded(t, c, "r010", "r040")...)
		}},
		"whole regions, split": {whole: true, held: []string{"r040"}, parts: 4, disturb: func(t *testing.T, c *minihbase.Cluster) error {
			return c.Split(t.Context(), encoded(t, c, "r040")[0], []byte("r050"))
		}},
		"whole regions, merge, both waiting": {whole: true, held: []string{"r010", "r040"}, parts: 2, disturb: func(t *testing.T, c *minihbase.Cluster) error {
			return c.Merge(t.Context(), encoded(t, c, "r010", "r040")...)
		}},
		"whole regions, merge, one done": {whole: true, held: []string{"r040"}, parallel: 1, want: endpoint.ErrOverlap, disturb: func(t *testing.T, c *minihbase.Cluster) error {
			return c.Merge(t.Context(), encoded(t, c, "r010", "r040")...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, tab := start(t, "r030", "r060")
			fill(t, tab, 90)
			if _, _, err := counted(t.Context(), tab, counting(t, "", "", false)); err != nil {
				t.Fatal(err) // and now the regions are known
			}
			releases := make([]func(), len(tt.held))
			for i, row := range tt.held {
				releases[i] = hold(t, c, row)
			}
			var rows int64
			var parts []endpoint.Part
			var err error
			var done sync.WaitGroup
			done.Go(func() {
				call := counting(t, "", "", tt.whole)
				call.Parallel = tt.parallel
				rows, parts, err = counted(t.Context(), tab, call)
			})
			waitHeld(t, c, len(tt.held))
			if err := tt.disturb(t, c); err != nil {
				t.Fatal(err)
			}
			for _, release := range releases {
				release()
			}
			done.Wait()
			if tt.want != nil {
				if !errors.Is(err, tt.want) {
					t.Fatalf("%v, want %v", err, tt.want)
				}
				return
			}
			if err != nil || rows != 90 || len(parts) != tt.parts || !covers(parts, "", "") {
				t.Errorf("%d rows in %q, %v; want 90 in %d parts", rows, parts, err, tt.parts)
			}
		})
	}
}

// waitHeld waits until the first n rules have each caught a call.
func waitHeld(t testing.TB, c *minihbase.Cluster, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, r := range c.Rules()[:n] {
		if err := c.WaitRule(ctx, r.ID, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhileEverythingMoves: counts stay exact while regions split, merge and
// move and answers are lost.
func TestWhileEverythingMoves(t *testing.T) {
	t.Parallel()
	c, tab := start(t, "r040", "r080", "r120", "r160")
	fill(t, tab, 200)
	if _, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "ExecService"}, Every: 7, Action: minihbase.CloseAfter}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var churn sync.WaitGroup
	churn.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			// Changes come with calls: on a machine that has other things to do
			// nobody would catch up with changes that come by themselves.
			for met := c.Rules()[0].Matched; ctx.Err() == nil && c.Rules()[0].Matched < met+4; {
				time.Sleep(100 * time.Microsecond)
			}
			at := key(20 + i*37%160)
			r, err := c.Locate("t", []byte(at))
			if err != nil {
				continue
			}
			// A refusal (a region too small to split, or in transition) is no
			// matter.
			switch i % 3 {
			case 0:
				_ = c.Split(ctx, r.Encoded, []byte(at))
			case 1:
				_ = c.MoveRegion(ctx, r.Encoded, -1)
			case 2:
				if len(r.End) > 0 {
					if next, err := c.Locate("t", r.End); err == nil {
						_ = c.Merge(ctx, r.Encoded, next.Encoded)
					}
				}
			}
		}
	})
	sum := endpoint.New(tab, endpoint.Long(), hbase.NewScan().Column("f", "n"), endpoint.Options{Parallel: 3})
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		rows, parts, err := counted(t.Context(), tab, counting(t, "", "", false))
		if err != nil || rows != 200 || !covers(parts, "", "") {
			t.Fatalf("%d rows in %q, %v", rows, parts, err)
		}
		n, ok, err := sum.Sum(t.Context())
		if err != nil || !ok || n != 199*100 {
			t.Fatalf("sum %d, %v, %v", n, ok, err)
		}
	}
	cancel()
	churn.Wait()
}

// TestPieces: a service that answers in pieces is asked on.
func TestPieces(t *testing.T) {
	t.Parallel()
	_, tab := start(t, "r050")
	fill(t, tab, 100)
	const step = 7
	c := counting(t, "", "", false)
	inner := c.Request
	end := func(p endpoint.Part) []byte {
		from := 0
		if len(p.Start) > 0 {
			fmt.Sscanf(string(p.Start), "r%d", &from)
		}
		return []byte(key(from + step))
	}
	c.Request = func(p endpoint.Part) ([]byte, error) {
		if e := end(p); len(p.Stop) == 0 || bytes.Compare(e, p.Stop) < 0 {
			p.Stop = e
		}
		return inner(p)
	}
	c.Reached = func(p endpoint.Part, _ []byte) ([]byte, time.Duration, error) {
		if string(p.Start) >= "r093" {
			return nil, 0, nil
		}
		return end(p), time.Millisecond, nil
	}
	rows, parts, err := counted(t.Context(), tab, c)
	if err != nil || rows != 100 || len(parts) != 8+8 || !covers(parts, "", "") {
		t.Errorf("%d rows in %q, %v", rows, parts, err)
	}
	c.Reached = func(p endpoint.Part, _ []byte) ([]byte, time.Duration, error) { return p.Start, 0, nil }
	if _, _, err := counted(t.Context(), tab, c); err == nil {
		t.Error("a service that stands still is asked for ever")
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	c, tab := start(t, "r030", "r060")
	fill(t, tab, 90)
	mine := errors.New("mine")
	for name, f := range map[string]func(ctx context.Context) (error, error){
		"merge fails": func(ctx context.Context) (error, error) {
			n := 0
			err := endpoint.Run(ctx, tab, counting(t, "", "", false), func(*endpoint.Partial) error { n++; return mine })
			if n != 1 {
				t.Errorf("merge was called %d times after its error", n)
			}
			return err, mine
		},
		"request fails": func(ctx context.Context) (error, error) {
			call := counting(t, "", "", false)
			call.Request = func(endpoint.Part) ([]byte, error) { return nil, mine }
			_, _, err := counted(ctx, tab, call)
			return err, mine
		},
		"no such table": func(ctx context.Context) (error, error) {
			none, err := tab.Client().Table("none")
			if err != nil {
				return err, nil
			}
			_, _, err = counted(ctx, none, counting(t, "", "", false))
			return err, hbase.ErrTableNotFound
		},
		"ended context": func(ctx context.Context) (error, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, _, err := counted(ctx, tab, counting(t, "", "", false))
			return err, context.Canceled
		},
		"deadline": func(ctx context.Context) (error, error) {
			id, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "ExecService"}, Action: minihbase.Hold})
			if err != nil {
				return err, nil
			}
			defer c.RemoveRule(id)
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			_, _, err = counted(ctx, tab, counting(t, "", "", false))
			return err, context.DeadlineExceeded
		},
		"unrepeatable": func(ctx context.Context) (error, error) {
			id, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "ExecService"}, Times: 1, Action: minihbase.CloseAfter})
			if err != nil {
				return err, nil
			}
			defer c.RemoveRule(id)
			call := counting(t, "", "", false)
			call.Unrepeatable, call.Parallel = true, 1
			_, _, err = counted(ctx, tab, call)
			return err, hbase.ErrUnknownOutcome
		},
		"invalid": func(ctx context.Context) (error, error) {
			_, _, err := counted(ctx, tab, counting(t, "b", "a", false))
			return err, hbase.ErrInvalid
		},
	} {
		err, want := f(t.Context())
		if !errors.Is(err, want) || err == nil {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	call := counting(t, "", "", false)
	call.Service = "NoSuchService"
	_, _, err := counted(t.Context(), tab, call)
	if x, ok := errors.AsType[*hbase.RemoteError](err); !ok || x.Short() != "UnknownProtocolException" || hbase.Retriable(err) {
		t.Errorf("unknown service: %v", err)
	}
}
