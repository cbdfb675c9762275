package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

func (s *suite) reads(t *testing.T) {
	tab := s.table(t, plain("f", "g"), split("m")...)
	put(t, tab,
		hbase.NewPut("a").Set("f", "q", []byte("v")).Set("f", "", []byte("empty qualifier")).Set("g", "q", []byte{}),
		hbase.NewPut("z\x00\xff").Set("f", "\x01\xfe", []byte{0, 255}),
	)
	expect(t, "whole row", get(t, tab, hbase.NewGet("a")), "f:=empty qualifier f:q=v g:q=")
	expect(t, "one family", get(t, tab, hbase.NewGet("a").Family("g")), "g:q=")
	expect(t, "columns", get(t, tab, hbase.NewGet("a").Column("f", "q", "none")), "f:q=v")
	expect(t, "the empty qualifier", get(t, tab, hbase.NewGet("a").Column("f", "")), "f:=empty qualifier")
	expect(t, "binary", get(t, tab, hbase.NewGet("z\x00\xff")), `f:\x01\xFE=\x00\xFF`)
	if v := get(t, tab, hbase.NewGet("a")).Value("g", "q"); v == nil || len(v) != 0 {
		t.Errorf("an empty value reads as %v", v)
	}
	missing := get(t, tab, hbase.NewGet("nowhere"))
	if !missing.Empty() || missing.Row != nil {
		t.Errorf("a missing row: %+v", missing)
	}
	for row, want := range map[string]bool{"a": true, "nowhere": false} {
		ok, err := tab.Exists(t.Context(), hbase.NewGet(row))
		if err != nil || ok != want {
			t.Errorf("exists %q: %v, %v", row, ok, err)
		}
	}
	put(t, tab, hbase.NewPut("a").Set("f", "q", []byte("new")))
	expect(t, "overwritten", get(t, tab, hbase.NewGet("a").Column("f", "q")), "f:q=new")

	var gets []*hbase.Get
	for i := range 50 {
		row := fmt.Sprintf("%c%02d", 'a'+i%26, i)
		if i%5 != 0 {
			put(t, tab, hbase.NewPut(row).Set("f", "i", fmt.Append(nil, i)))
		}
		gets = append(gets, hbase.NewGet(row))
	}
	rs, err := tab.MultiGet(t.Context(), gets)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rs {
		want := fmt.Sprint(i)
		if i%5 == 0 {
			want = ""
		}
		if got := string(r.Value("f", "i")); got != want {
			t.Errorf("multi-get %d: %q, want %q", i, got, want)
		}
	}
	limited := &hbase.Get{Row: []byte("a"), MaxPerFamily: 1, OffsetPerFamily: 1}
	expect(t, "offset and limit per family", get(t, tab, limited), "f:q=new")
	expect(t, "filtered", get(t, tab, hbase.NewGet("a").WithFilter(filter.Qualifier(filter.Equal, filter.Binary("")))), "f:=empty qualifier")
}

func (s *suite) versions(t *testing.T) {
	tab := s.table(t, []*admin.FamilyDescriptor{admin.NewFamily("f").Versions(3), admin.NewFamily("one")})
	for ts := int64(1); ts <= 5; ts++ {
		put(t, tab, hbase.NewPut("r").SetAt("f", "q", ts*10, fmt.Append(nil, ts)).SetAt("one", "q", ts*10, fmt.Append(nil, ts)))
	}
	expect(t, "newest", get(t, tab, hbase.NewGet("r")), "f:q@50=5 one:q@50=5")
	expect(t, "two", get(t, tab, hbase.NewGet("r").Family("f").Versions(2)), "f:q@50=5 f:q@40=4")
	expect(t, "all kept", get(t, tab, hbase.NewGet("r").Versions(hbase.AllVersions)), "f:q@50=5 f:q@40=4 f:q@30=3 one:q@50=5")
	expect(t, "in a range", get(t, tab, hbase.NewGet("r").Family("f").In(hbase.TimeRange{From: 30, To: 50}).Versions(9)), "f:q@40=4 f:q@30=3")
	expect(t, "at a time", get(t, tab, hbase.NewGet("r").Family("f").In(hbase.At(40))), "f:q@40=4")
	byFamily := &hbase.Get{Row: []byte("r"), FamilyTimeRange: map[string]hbase.TimeRange{"f": {From: 0, To: 41}}}
	expect(t, "range of one family", get(t, tab, byFamily), "f:q@40=4 one:q@50=5")
	// Versions written out of order are ordered by their timestamps.
	put(t, tab, hbase.NewPut("s").SetAt("f", "q", 30, []byte("c")).SetAt("f", "q", 10, []byte("a")).SetAt("f", "q", 20, []byte("b")))
	expect(t, "out of order", get(t, tab, hbase.NewGet("s").Versions(3)), "f:q@30=c f:q@20=b f:q@10=a")
	if r := get(t, tab, hbase.NewGet("r").Family("f").Versions(9)); len(r.Versions("f", "q")) != 3 {
		t.Errorf("Versions: %v", r.Versions("f", "q"))
	}
}

func (s *suite) deletes(t *testing.T) {
	tab := s.table(t, []*admin.FamilyDescriptor{admin.NewFamily("f").Versions(5), admin.NewFamily("g").Versions(5)})
	fill := func(row string) {
		p := hbase.NewPut(row)
		for ts := int64(1); ts <= 3; ts++ {
			p.SetAt("f", "a", ts, fmt.Append(nil, ts)).SetAt("f", "b", ts, fmt.Append(nil, ts)).SetAt("g", "c", ts, fmt.Append(nil, ts))
		}
		put(t, tab, p)
	}
	const b, c = "f:b@3=3 f:b@2=2 f:b@1=1", "g:c@3=3 g:c@2=2 g:c@1=1"
	for i, test := range []struct {
		name string
		f    func(*hbase.Delete)
		want string
	}{
		{"row", func(d *hbase.Delete) {}, ""},
		{"row up to", func(d *hbase.Delete) { d.UpTo(2) }, "f:a@3=3 f:b@3=3 g:c@3=3"},
		{"family", func(d *hbase.Delete) { d.Family("f") }, c},
		{"family up to", func(d *hbase.Delete) { d.FamilyUpTo("f", 1) }, "f:a@3=3 f:a@2=2 f:b@3=3 f:b@2=2 " + c},
		{"family version", func(d *hbase.Delete) { d.FamilyVersion("f", 2) }, "f:a@3=3 f:a@1=1 f:b@3=3 f:b@1=1 " + c},
		{"column", func(d *hbase.Delete) { d.Column("f", "a") }, b + " " + c},
		{"column up to", func(d *hbase.Delete) { d.ColumnUpTo("f", "a", 2) }, "f:a@3=3 " + b + " " + c},
		{"latest version", func(d *hbase.Delete) { d.LatestVersion("f", "a") }, "f:a@2=2 f:a@1=1 " + b + " " + c},
		{"version", func(d *hbase.Delete) { d.Version("f", "a", 2) }, "f:a@3=3 f:a@1=1 " + b + " " + c},
		{"several", func(d *hbase.Delete) { d.Column("f", "a").Family("g") }, b},
	} {
		row := fmt.Sprintf("r%d", i)
		fill(row)
		d := hbase.NewDelete(row)
		test.f(d)
		if err := tab.Delete(t.Context(), d); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		expect(t, test.name, get(t, tab, hbase.NewGet(row).Versions(9)), test.want)
	}
	// A marker hides what is written later with an older timestamp.
	put(t, tab, hbase.NewPut("r5").SetAt("f", "a", 1, []byte("late")))
	expect(t, "behind a marker", get(t, tab, hbase.NewGet("r5").Column("f", "a")), "")
}

func (s *suite) increments(t *testing.T) {
	tab := s.table(t, plain("f"))
	add := func(amount, want int64) {
		t.Helper()
		n, err := tab.IncrementColumn(t.Context(), []byte("r"), "f", "n", amount)
		if err != nil || n != want {
			t.Errorf("+%d: %d, %v; want %d", amount, n, err, want)
		}
	}
	add(5, 5)
	add(0, 5)
	add(-7, -2)
	add(1<<62, 1<<62-2)
	add(1<<62, math.MaxInt64-1)
	add(2, math.MinInt64) // the counter wraps
	r, err := tab.Increment(t.Context(), hbase.NewIncrement("s").Add("f", "b", 2).Add("f", "a", 1))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.Int64("f", "a")
	b, _ := r.Int64("f", "b")
	if a != 1 || b != 2 || len(r.Cells) != 2 || string(r.Row) != "s" {
		t.Errorf("two counters: %v", r)
	}
	silent := hbase.NewIncrement("s").Add("f", "a", 1)
	silent.NoResult = true
	if r, err = tab.Increment(t.Context(), silent); err != nil || !r.Empty() {
		t.Errorf("without result: %v, %v", r, err)
	}
	put(t, tab, hbase.NewPut("text").Set("f", "n", []byte("abc")))
	_, err = tab.IncrementColumn(t.Context(), []byte("text"), "f", "n", 1)
	var remote *hbase.RemoteError
	if !errors.As(err, &remote) || hbase.Retriable(err) {
		t.Errorf("a counter of 3 bytes: %v, want the server's final exception", err)
	}
	// Several increments in one millisecond are stamped ahead of the clock, and
	// a delete hides only what is stamped up to its own time: let it catch up.
	pause(t, 20*time.Millisecond)
	if err := tab.Delete(t.Context(), hbase.NewDelete("r")); err != nil {
		t.Fatal(err)
	}
	pause(t, 2*time.Millisecond)
	add(3, 3)

	const workers, each = 8, 25
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				if _, err := tab.IncrementColumn(t.Context(), []byte("c"), "f", "n", 1); err != nil {
					t.Errorf("concurrent increment: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n, _ := get(t, tab, hbase.NewGet("c")).Int64("f", "n"); n != workers*each {
		t.Errorf("%d after %d increments", n, workers*each)
	}
}

func (s *suite) appends(t *testing.T) {
	tab := s.table(t, plain("f"))
	for i, want := range []string{"ab", "abab"} {
		r, err := tab.Append(t.Context(), hbase.NewAppend("r").Add("f", "q", []byte("ab")).Add("f", "p", []byte{byte('0' + i)}))
		if err != nil || string(r.Value("f", "q")) != want {
			t.Errorf("append %d: %v, %v; want %s", i, r, err, want)
		}
	}
	expect(t, "appended", get(t, tab, hbase.NewGet("r")), "f:p=01 f:q=abab")
	silent := hbase.NewAppend("r").Add("f", "q", []byte("c"))
	silent.NoResult = true
	if r, err := tab.Append(t.Context(), silent); err != nil || !r.Empty() {
		t.Errorf("without result: %v, %v", r, err)
	}
	expect(t, "appended silently", get(t, tab, hbase.NewGet("r").Column("f", "q")), "f:q=ababc")
}

func (s *suite) checkAndMutate(t *testing.T) {
	tab := s.table(t, plain("f"))
	put(t, tab, hbase.NewPut("r").Set("f", "v", []byte("b")).Set("f", "e", []byte{}))
	for i, test := range []struct {
		name string
		c    func(*hbase.CheckAndMutate)
		want bool
	}{
		{"equal", func(c *hbase.CheckAndMutate) { c.IfEquals("f", "v", []byte("b")) }, true},
		{"not equal", func(c *hbase.CheckAndMutate) { c.IfEquals("f", "v", []byte("c")) }, false},
		{"exists", func(c *hbase.CheckAndMutate) { c.IfNotExists("f", "v") }, false},
		{"absent", func(c *hbase.CheckAndMutate) { c.IfNotExists("f", "none") }, true},
		{"empty counts as absent", func(c *hbase.CheckAndMutate) { c.IfNotExists("f", "e") }, true},
		{"present", func(c *hbase.CheckAndMutate) { c.If("f", "v", hbase.NotEqual, nil) }, true},
		{"a < stored", func(c *hbase.CheckAndMutate) { c.If("f", "v", hbase.Less, []byte("a")) }, true},
		{"c < stored", func(c *hbase.CheckAndMutate) { c.If("f", "v", hbase.Less, []byte("c")) }, false},
		{"c > stored", func(c *hbase.CheckAndMutate) { c.If("f", "v", hbase.Greater, []byte("c")) }, true},
		{"b >= stored", func(c *hbase.CheckAndMutate) { c.If("f", "v", hbase.GreaterOrEqual, []byte("b")) }, true},
		{"x != absent", func(c *hbase.CheckAndMutate) { c.If("f", "none", hbase.NotEqual, []byte("x")) }, false},
		{"filter", func(c *hbase.CheckAndMutate) { c.IfFilter(filter.Value(filter.Equal, filter.Binary("b"))) }, true},
		{"filter fails", func(c *hbase.CheckAndMutate) { c.IfFilter(filter.Value(filter.Equal, filter.Binary("zzz"))) }, false},
		{"old versions only", func(c *hbase.CheckAndMutate) {
			c.IfEquals("f", "v", []byte("b")).In(hbase.TimeRange{From: 0, To: 1000})
		}, false},
	} {
		q := fmt.Sprintf("done%02d", i)
		c := hbase.NewCheckAndMutate("r").Then(hbase.NewPut("r").Set("f", q, []byte("x")))
		test.c(c)
		res, err := tab.CheckAndMutate(t.Context(), c)
		if err != nil || res.Applied != test.want {
			t.Errorf("%s: applied %v, %v; want %v", test.name, res.Applied, err, test.want)
		}
		if got := get(t, tab, hbase.NewGet("r")).Has("f", q); got != test.want {
			t.Errorf("%s: written %v, want %v", test.name, got, test.want)
		}
	}
	// Other actions.
	res, err := tab.CheckAndMutate(t.Context(), hbase.NewCheckAndMutate("r").IfEquals("f", "v", []byte("b")).
		Then(hbase.NewDelete("r").Column("f", "done00")))
	if err != nil || !res.Applied || get(t, tab, hbase.NewGet("r")).Has("f", "done00") {
		t.Errorf("delete: %+v, %v", res, err)
	}
	many := func(v string) *hbase.CheckAndMutate {
		return hbase.NewCheckAndMutate("r").IfEquals("f", "v", []byte(v)).Then(hbase.NewRowMutations("r").Add(
			hbase.NewPut("r").Set("f", "m", []byte("1")), hbase.NewDelete("r").Column("f", "done03"), hbase.NewIncrement("r").Add("f", "n", 4)))
	}
	if res, err = tab.CheckAndMutate(t.Context(), many("wrong")); err != nil || res.Applied {
		t.Errorf("row mutations with a false condition: %+v, %v", res, err)
	}
	if r := get(t, tab, hbase.NewGet("r")); r.Has("f", "m") || !r.Has("f", "done03") {
		t.Errorf("a false condition changed the row: %v", r)
	}
	if res, err = tab.CheckAndMutate(t.Context(), many("b")); err != nil || !res.Applied {
		t.Errorf("row mutations: %+v, %v", res, err)
	} else if n, ok := res.Result.Int64("f", "n"); !ok || n != 4 {
		t.Errorf("the increment's result: %v", res.Result)
	}
	if r := get(t, tab, hbase.NewGet("r")); !r.Has("f", "m") || r.Has("f", "done03") {
		t.Errorf("row mutations left %v", r)
	}
	// Exactly one of many racers wins.
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		wg.Go(func() {
			res, err := tab.CheckAndMutate(t.Context(), hbase.NewCheckAndMutate("race").IfNotExists("f", "q").
				Then(hbase.NewPut("race").Set("f", "q", fmt.Append(nil, i))))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("racer: %v", err)
			}
			if res.Applied {
				won++
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d racers won", won)
	}
}

func (s *suite) mutateRow(t *testing.T) {
	tab := s.table(t, plain("f"))
	put(t, tab, hbase.NewPut("r").Set("f", "old", []byte("x")))
	r, err := tab.MutateRow(t.Context(), hbase.NewRowMutations("r").Add(
		hbase.NewPut("r").Set("f", "new", []byte("y")),
		hbase.NewDelete("r").Column("f", "old"),
		hbase.NewIncrement("r").Add("f", "n", 3),
	))
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := r.Int64("f", "n"); !ok || n != 3 {
		t.Errorf("the increment's result: %v", r)
	}
	expect(t, "after", get(t, tab, hbase.NewGet("r")), `f:n=\x00\x00\x00\x00\x00\x00\x00\x03 f:new=y`)
	_, err = tab.MutateRow(t.Context(), hbase.NewRowMutations("r").Add(
		hbase.NewPut("r").Set("f", "new", []byte("z")),
		hbase.NewPut("r").Set("nofamily", "q", []byte("z")),
	))
	if !errors.Is(err, hbase.ErrNoSuchFamily) {
		t.Errorf("unknown family: %v, want ErrNoSuchFamily", err)
	}
	expect(t, "nothing of a failed one", get(t, tab, hbase.NewGet("r").Column("f", "new")), "f:new=y")
}

func (s *suite) batch(t *testing.T) {
	tab := s.table(t, plain("f"), split("h", "p")...)
	put(t, tab, hbase.NewPut("b").Set("f", "q", []byte("was")), hbase.NewPut("x").Set("f", "q", []byte("gone")),
		hbase.NewPut("e").Set("f", "q", []byte("was")), hbase.NewPut("g").Set("f", "q", []byte("was")))
	ops := []hbase.Op{
		hbase.NewPut("a").Set("f", "q", []byte("1")),
		hbase.NewGet("b"),
		hbase.NewDelete("x"),
		hbase.NewIncrement("n").Add("f", "c", 7),
		hbase.NewAppend("m").Add("f", "q", []byte("app")),
		hbase.NewPut("c").Set("nofamily", "q", nil),
		hbase.NewRowMutations("d").Add(hbase.NewPut("d").Set("f", "1", nil), hbase.NewPut("d").Set("f", "2", nil)),
		hbase.NewCheckAndMutate("e").IfEquals("f", "q", []byte("was")).Then(hbase.NewPut("e").Set("f", "is", []byte("now"))),
		hbase.NewCheckAndMutate("g").IfEquals("f", "q", []byte("never")).Then(hbase.NewDelete("g")),
		hbase.NewGet("nowhere"),
		hbase.NewGet("b").Family("nofamily"),
	}
	out := tab.Batch(t.Context(), ops)
	if len(out) != len(ops) {
		t.Fatalf("%d outcomes of %d operations", len(out), len(ops))
	}
	for i, o := range out {
		switch i {
		case 5, 10:
			if !errors.Is(o.Err, hbase.ErrNoSuchFamily) || o.Result != nil {
				t.Errorf("operation %d: %+v, want ErrNoSuchFamily", i, o)
			}
		default:
			if o.Err != nil || o.Result == nil {
				t.Errorf("operation %d: %+v", i, o)
			} else if o.Applied != (i != 8) {
				t.Errorf("operation %d: applied %v", i, o.Applied)
			}
		}
	}
	if t.Failed() {
		return
	}
	expect(t, "get", out[1].Result, "f:q=was")
	if n, _ := out[3].Result.Int64("f", "c"); n != 7 {
		t.Errorf("increment: %v", out[3].Result)
	}
	expect(t, "append", out[4].Result, "f:q=app")
	if !out[9].Result.Empty() {
		t.Errorf("missing row: %v", out[9].Result)
	}
	expect(t, "put", get(t, tab, hbase.NewGet("a")), "f:q=1")
	expect(t, "deleted", get(t, tab, hbase.NewGet("x")), "")
	expect(t, "checked", get(t, tab, hbase.NewGet("e")), "f:is=now f:q=was")
	expect(t, "checked in vain", get(t, tab, hbase.NewGet("g")), "f:q=was")
	expect(t, "row mutations", get(t, tab, hbase.NewGet("d")), "f:1= f:2=")

	// Enough for several requests to each region, and in order within a row.
	var many []hbase.Op
	for i := range 1000 {
		many = append(many, hbase.NewPut(fmt.Sprintf("%c%03d", 'a'+i%26, i)).Set("f", "i", fmt.Append(nil, i)))
	}
	for i := range 10 {
		many = append(many, hbase.NewPut("same").SetAt("f", "i", 5, fmt.Append(nil, i)))
	}
	if err := tab.Batch(t.Context(), many).Err(); err != nil {
		t.Fatal(err)
	}
	if n := len(collect(t, tab, hbase.NewScan().Column("f", "i"))); n != 1001 {
		t.Errorf("%d rows after a batch of 1001", n)
	}
	expect(t, "the last put of a row wins", get(t, tab, hbase.NewGet("same")), "f:i@5=9")
	if out := tab.Batch(t.Context(), nil); len(out) != 0 || out.Err() != nil {
		t.Errorf("an empty batch: %v", out)
	}
}

func (s *suite) writeOptions(t *testing.T) {
	tab := s.table(t, plain("f"))
	for _, d := range []hbase.Durability{hbase.UseDefault, hbase.SkipWAL, hbase.AsyncWAL, hbase.SyncWAL, hbase.FsyncWAL} {
		p := hbase.NewPut(d.String()).Set("f", "q", []byte("v"))
		p.Durability = d
		p.ID = "conformance"
		p.Attributes = map[string][]byte{"mine": []byte("yours")}
		put(t, tab, p)
		expect(t, d.String(), get(t, tab, hbase.NewGet(d.String())), "f:q=v")
	}
	p := hbase.NewPut("ttl").Set("f", "q", []byte("v"))
	p.TTL = time.Hour
	put(t, tab, p)
	expect(t, "a long TTL", get(t, tab, hbase.NewGet("ttl")), "f:q=v")
	p = hbase.NewPut("ttl").Set("f", "q", []byte("short"))
	p.TTL = 300 * time.Millisecond
	put(t, tab, p)
	s.until(t, "the short TTL ends", func(ctx context.Context) (bool, error) {
		r, err := tab.Get(ctx, hbase.NewGet("ttl"))
		return err == nil && string(r.Value("f", "q")) != "short", err
	})
	g := &hbase.Get{Row: []byte("SYNC_WAL"), Isolation: hbase.ReadUncommitted, SkipBlockCache: true, ID: "conformance"}
	expect(t, "read uncommitted", get(t, tab, g), "f:q=v")
	big := make([]byte, 3<<20)
	for i := range 64 {
		binary.BigEndian.PutUint64(big[i*8:], uint64(i))
	}
	put(t, tab, hbase.NewPut("big").Set("f", "q", big))
	if got := get(t, tab, hbase.NewGet("big")).Value("f", "q"); string(got) != string(big) {
		t.Errorf("a value of 3 MiB came back as %d bytes", len(got))
	}
}

// pause lets real time pass, since the clock of a real cluster cannot be set.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
