package store

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Rules J1 to J13.
func TestIncrement(t *testing.T) {
	k := &clock{1000}
	tab := testTable(t, testStore(t, Options{Now: k.now}))
	ctx := context.Background()
	r := mutate(t, tab, "r", inc("f:a", 5))
	if len(r.Cells) != 1 || r.Cells[0].Timestamp != 1000 || number(t, tab, "r", "f:a") != 5 || !r.Processed {
		t.Errorf("J1: %v", r)
	}
	r = mutate(t, tab, "r", inc("f:a", 3))
	if r.Cells[0].Timestamp != 1001 || number(t, tab, "r", "f:a") != 8 {
		t.Errorf("J2: %v", r)
	}
	mutate(t, tab, "r", put(at("f:text", 1, "abc")))
	_, err := tab.MutateRow(ctx, &RowMutation{Row: []byte("r"), Ops: []Op{inc("f:a", 1), inc("f:text", 1)}})
	refused(t, "J3", err, cells.ClassDoNotRetry, true)
	if !strings.Contains(err.Error(), "Field is not a long, it's 3 bytes wide") || number(t, tab, "r", "f:a") != 8 {
		t.Errorf("J3: %v", err)
	}
	mutate(t, tab, "r", inc("f:max", math.MaxInt64))
	mutate(t, tab, "r", inc("f:max", 1))
	if n := number(t, tab, "r", "f:max"); n != math.MinInt64 {
		t.Errorf("J4: %d", n)
	}
	several := inc("g:z", 1)
	several.Cells = append(several.Cells, inc("f:b", 2).Cells[0], inc("f:a", 3).Cells[0])
	r = mutate(t, tab, "several", several)
	if len(r.Cells) != 3 || string(r.Cells[0].Qualifier) != "a" || string(r.Cells[1].Qualifier) != "b" || string(r.Cells[2].Family) != "g" {
		t.Errorf("J5: %v", show(r.Cells))
	}
	twice := inc("f:c", 1)
	twice.Cells = append(twice.Cells, inc("f:c", 10).Cells[0])
	r = mutate(t, tab, "twice", twice)
	if len(r.Cells) != 2 || number(t, tab, "twice", "f:c") != 10 {
		t.Errorf("J5 twice: %v", r)
	}
	mutate(t, tab, "r", inc("f:zero", 0))
	if number(t, tab, "r", "f:zero") != 0 {
		t.Error("J6")
	}
	old := inc("f:a", 1)
	old.Range = cells.TimeRange{Min: 0, Max: 10}
	mutate(t, tab, "r", old)
	if n := number(t, tab, "r", "f:a"); n != 8 {
		t.Errorf("J7: the newest is %d", n) // the new cell (1) lies at 1000, below 1001
	}
	quiet := inc("f:a", 1)
	quiet.NoResult = true
	if r := mutate(t, tab, "r", quiet); len(r.Cells) != 0 {
		t.Errorf("J8: %v", r)
	}
	k.ms = 2000
	mutate(t, tab, "r", del(marker(cells.DeleteColumn, "f:a", -1)))
	k.ms++
	mutate(t, tab, "r", inc("f:a", 1))
	if n := number(t, tab, "r", "f:a"); n != 1 {
		t.Errorf("J9: %d", n)
	}
	stamped := inc("f:ts", 1)
	stamped.Cells[0].Timestamp = 77
	mutate(t, tab, "r", stamped)
	mutate(t, tab, "r", stamped)
	if got := get(t, tab, "r", all("f:ts")); !strings.HasPrefix(got, "f:ts@2001=") || !strings.Contains(got, "f:ts@77=") {
		t.Errorf("J12: %s", got)
	}
	bad := inc("f:new", 1)
	bad.Cells[0].Value = []byte{1, 2}
	_, err = tab.MutateRow(ctx, &RowMutation{Row: []byte("r"), Ops: []Op{bad}})
	refused(t, "J13", err, cells.ClassDoNotRetry, true)
	if r := mutate(t, tab, "r", Op{Kind: Increment}); len(r.Cells) != 0 {
		t.Errorf("J13, no columns: %v", r)
	}
	// J10: a TTL given is carried by the new cell, one found goes on.
	lasting := inc("f:ttl", 1)
	lasting.TTL = 100
	mutate(t, tab, "r", lasting)
	mutate(t, tab, "r", inc("f:ttl", 1))
	k.ms += 200
	same(t, "J10", get(t, tab, "r", all("f:ttl")), "")
}

// Rules K1 to K5.
func TestAppend(t *testing.T) {
	k := &clock{1000}
	s := testStore(t, Options{Now: k.now})
	schema := cells.NewSchema(fam("f", 3), fam("g", 3))
	schema.MaxCellSize = 100
	tab := s.Table(1, schema)
	r := mutate(t, tab, "r", app("f:a", "ab"))
	same(t, "K1", show(r.Cells), "f:a@1000=ab")
	r = mutate(t, tab, "r", app("f:a", "cd"))
	same(t, "K2, K5", show(r.Cells), "f:a@1001=abcd")
	both := app("f:b", "x")
	both.Cells = append(both.Cells, app("f:a", "ef").Cells[0])
	r = mutate(t, tab, "r", both)
	same(t, "K3", show(r.Cells), "f:a@1002=abcdef f:b@1000=x")
	_, err := tab.MutateRow(context.Background(), &RowMutation{Row: []byte("r"), Ops: []Op{app("f:a", strings.Repeat("y", 70))}})
	refused(t, "K4", err, cells.ClassDoNotRetry, true)
	same(t, "K4", get(t, tab, "r", newest("f:a")), "f:a@1002=abcdef")
}

// Rules L1 to L19, as far as they are the store's.
func TestConditions(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rule     string
		stored   string // "-" for absent
		op       CompareOp
		expected string
		holds    bool
	}{
		{"L1", "-", Equal, "", true}, {"L2", "-", NotEqual, "", false}, {"L3", "-", Less, "", true}, {"L3", "-", Greater, "", true},
		{"L4", "-", Equal, "x", false}, {"L4", "-", NotEqual, "x", false}, {"L4", "-", Less, "x", false},
		{"L5", "", Equal, "", true}, {"L5", "", GreaterOrEqual, "", true}, {"L5", "", NotEqual, "", false},
		{"L6", "x", Equal, "", false}, {"L6", "x", NotEqual, "", true}, {"L6", "x", Less, "", false}, {"L6", "x", Greater, "", false},
		{"L7", "b", Less, "a", true}, {"L7", "b", Greater, "c", true}, {"L7", "b", Less, "c", false}, {"L7", "b", GreaterOrEqual, "b", true},
		{"L7", "b", LessOrEqual, "b", true}, {"L7", "b", Equal, "b", true}, {"L7", "b", NotEqual, "a", true}, {"L7", "b", NotEqual, "b", false},
	} {
		tab := testTable(t, testStore(t, Options{}))
		if c.stored != "-" {
			mutate(t, tab, "r", put(at("f:c", 10, c.stored)))
		}
		m := &RowMutation{Row: []byte("r"), Ops: []Op{put(at("f:done", 1, "y"))},
			Condition: &Condition{Family: []byte("f"), Qualifier: []byte("c"), Op: c.op, Value: []byte(c.expected)}}
		r, err := tab.MutateRow(ctx, m)
		if err != nil || r.Processed != c.holds {
			t.Errorf("%s: stored %q, op %d, expected %q: %v, %v", c.rule, c.stored, c.op, c.expected, r.Processed, err)
		}
		want := ""
		if c.holds {
			want = "f:done@1=y"
		}
		same(t, c.rule+" applied", get(t, tab, "r", all("f:done")), want)
	}

	k := &clock{1000}
	tab := testTable(t, testStore(t, Options{Now: k.now}))
	check := func(op CompareOp, value string, ops ...Op) (MutateResult, error) {
		return tab.MutateRow(ctx, &RowMutation{Row: []byte("r"), Ops: ops, Condition: &Condition{Family: []byte("f"), Qualifier: []byte("c"), Op: op, Value: []byte(value)}})
	}
	mutate(t, tab, "r", put(at("f:c", 10, "old"), at("f:c", 5000, "new")))
	m := &RowMutation{Row: []byte("r"), Ops: []Op{put(at("f:x", 1, "y"))}, Condition: &Condition{Family: []byte("f"), Qualifier: []byte("c"), Op: Equal, Value: []byte("old"), Range: cells.TimeRange{Min: 0, Max: 100}}}
	if r, err := tab.MutateRow(ctx, m); err != nil || !r.Processed {
		t.Errorf("L9: %v, %v", r, err)
	}
	if r, err := check(Equal, "new", put(at("f:c", -1, "newer"))); err != nil || !r.Processed {
		t.Errorf("L11: %v, %v", r, err)
	}
	same(t, "L11", get(t, tab, "r", newest("f:c")), "f:c@5000=newer")
	if r, err := check(Equal, "newer", put(at("f:p", 7, "p")), inc("f:n", 2), app("f:s", "x"), del(marker(cells.DeleteColumn, "f:x", 10))); err != nil || !r.Processed || len(r.Cells) != 2 {
		t.Errorf("L12: %v, %v", r, err)
	}
	same(t, "L12", get(t, tab, "r", newest("f:p", "f:x", "f:s")), "f:p@7=p f:s@1000=x")
	_, err := check(Equal, "newer", put(at("nope:x", 1, "")))
	refused(t, "L15 in the mutation", err, cells.ClassNoSuchColumnFamily, true)
	if r, err := check(Equal, "wrong", put(at("nope:x", 1, ""))); err != nil || r.Processed {
		t.Errorf("L15: a mutation not reached: %v, %v", r, err)
	}
	m = &RowMutation{Row: []byte("r"), Ops: []Op{put(at("f:x", 1, ""))}, Condition: &Condition{Family: []byte("nope")}}
	_, err = tab.MutateRow(ctx, m)
	refused(t, "L15 in the condition", err, cells.ClassNoSuchColumnFamily, true)
	m.Condition = &Condition{Row: []byte("other"), Family: []byte("f")}
	_, err = tab.MutateRow(ctx, m)
	refused(t, "L14", err, cells.ClassDoNotRetry, true)
	_, err = check(NoOp, "x", put(at("f:x", 1, "")))
	refused(t, "L17", err, cells.ClassIOException, false)
}

// Rule L16: of racing check-and-puts on an absent cell exactly one passes.
func TestConditionRace(t *testing.T) {
	tab := testTable(t, testStore(t, Options{}))
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for range 16 {
		wg.Go(func() {
			m := &RowMutation{Row: []byte("r"), Ops: []Op{put(at("f:c", -1, "me"))}, Condition: &Condition{Family: []byte("f"), Qualifier: []byte("c"), Op: Equal}}
			r, err := tab.MutateRow(context.Background(), m)
			if err != nil {
				t.Error(err)
			}
			if r.Processed {
				mu.Lock()
				passed++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if passed != 1 {
		t.Errorf("%d passed", passed)
	}
}

// Who was refused because of a write sees that write from then on, even if an
// earlier one, of another row, still waits for its disk.
func TestRefusalsAreSeenByReaders(t *testing.T) {
	ctx := context.Background()
	absent := func() *Condition {
		return &Condition{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("c"), Op: Equal}
	}
	m := func() *RowMutation {
		return &RowMutation{Row: []byte("r"), Ops: []Op{put(at("f:c", -1, "mine"))}, Condition: absent()}
	}
	for name, refused := range map[string]func(*Table) (processed bool, err error){
		"one": func(tab *Table) (bool, error) {
			r, err := tab.MutateRow(ctx, m())
			return r.Processed, err
		},
		"batch": func(tab *Table) (bool, error) {
			rs, errs := tab.MutateBatch(ctx, []*RowMutation{m()})
			return rs[0].Processed, errs[0]
		},
		"rows": func(tab *Table) (bool, error) {
			return tab.MutateRows(ctx, []*RowMutation{{Row: []byte("r"), Ops: m().Ops}}, []*Condition{absent()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t, Options{})
			tab := testTable(t, s)
			slow, _ := s.mvcc.begin()
			var wg sync.WaitGroup
			wg.Go(func() { mutate(t, tab, "r", put(at("f:c", -1, "theirs"))) })
			for held := false; !held; {
				holds, _, err := tab.holds(tab.Schema(), []byte("r"), absent())
				if err != nil {
					t.Fatal(err)
				}
				held = !holds
			}
			timer := time.AfterFunc(20*time.Millisecond, func() { s.mvcc.complete(slow) })
			processed, err := refused(tab)
			seen := get(t, tab, "r", cells.NewQuery())
			if processed || err != nil || !strings.Contains(seen, "theirs") {
				t.Errorf("%v, %v; a reader sees %q", processed, err, seen)
			}
			if timer.Stop() {
				s.mvcc.complete(slow)
			}
			wg.Wait()
		})
	}
}

// Rules M1 to M4, M9.
func TestMutationsRefused(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	ctx := context.Background()
	try := func(row string, ops ...Op) error {
		_, err := tab.MutateRow(ctx, &RowMutation{Row: []byte(row), Ops: ops})
		return err
	}
	ok := put(at("f:q", 1, "v"))
	refused(t, "M1 empty row", try("", ok), cells.ClassIOException, false)
	refused(t, "M1 long row", try(strings.Repeat("r", 32768), ok), cells.ClassIOException, false)
	if err := try(strings.Repeat("r", 32767), ok); err != nil {
		t.Errorf("M1: the longest row: %v", err)
	}
	refused(t, "M2 put", try("r", put(at("nope:q", 1, "v"))), cells.ClassNoSuchColumnFamily, true)
	refused(t, "M2 delete", try("r", del(marker(cells.DeleteColumn, "nope:q", 1))), cells.ClassNoSuchColumnFamily, true)
	refused(t, "M2 increment", try("r", inc("nope:q", 1)), cells.ClassNoSuchColumnFamily, true)
	limit := cells.DefaultMaxCellSize - 27 // M3: row, family and qualifier of one byte each
	refused(t, "M3 over", try("r", put(at("f:q", 1, strings.Repeat("v", limit+1)))), cells.ClassDoNotRetry, true)
	if err := try("r", put(at("f:q", 1, strings.Repeat("v", limit)))); err != nil {
		t.Errorf("M3 at the limit: %v", err)
	}
	negative := at("f:q", 1, "v")
	negative.Timestamp = -5
	refused(t, "M4", try("r", put(negative)), cells.ClassIOException, false)
	if r := mutate(t, tab, "none", put()); !r.Processed {
		t.Error("M6: nothing to do")
	}
	ro := cells.NewSchema(fam("f", 1))
	ro.ReadOnly = true
	tab = s.Table(9, ro)
	refused(t, "M9", try("r", ok), cells.ClassDoNotRetry, true)
	e := cells.NoSuchFamily([]byte("nope")).InRegion("t,,1.e.", "t")
	same(t, "text", e.Message, "Column family nope does not exist in region t,,1.e. in table t")
}

// Rules I4, I8, I9, C25, and rows that fail alone.
func TestBatch(t *testing.T) {
	k := &clock{1000}
	tab := testTable(t, testStore(t, Options{Now: k.now}))
	ctx := context.Background()
	ms := []*RowMutation{
		{Row: []byte("a"), Ops: []Op{put(at("f:q", -1, "1"))}},
		{Row: []byte("a"), Ops: []Op{put(at("f:q", -1, "2"))}},
		{Row: []byte("b"), Ops: []Op{put(at("nope:q", -1, "1"))}},
		{Row: []byte("c"), Ops: []Op{put(at("f:n", -1, string([]byte{0, 0, 0, 0, 0, 0, 0, 7})))}},
		{Row: []byte("c"), Ops: []Op{inc("f:n", 1)}},
		{Row: []byte("c"), Ops: []Op{del(marker(cells.DeleteColumn, "f:gone", -1))}},
		{Row: []byte("d"), Ops: []Op{put(at("f:x", 1, "x"))}, Condition: &Condition{Family: []byte("f"), Qualifier: []byte("q"), Op: NotEqual}},
		{Row: []byte(""), Ops: []Op{put(at("f:x", 1, "x"))}},
	}
	res, errs := tab.MutateBatch(ctx, ms)
	refused(t, "bad family", errs[2], cells.ClassNoSuchColumnFamily, true)
	refused(t, "empty row", errs[7], cells.ClassIOException, false)
	for _, i := range []int{0, 1, 3, 4, 5} {
		if errs[i] != nil || !res[i].Processed {
			t.Errorf("%d: %v, %v", i, res[i], errs[i])
		}
	}
	if res[6].Processed || errs[6] != nil {
		t.Errorf("condition: %v, %v", res[6], errs[6])
	}
	same(t, "I9", get(t, tab, "a", all()), "f:q@1000=2")
	if n := number(t, tab, "c", "f:n"); n != 8 {
		t.Errorf("an increment sees the puts before it: %d", n)
	}
	res, errs = tab.MutateBatch(ctx, nil)
	if len(res) != 0 || len(errs) != 0 {
		t.Error("empty batch")
	}
	// C25: one timestamp for a whole RowMutations, the delete comes first.
	mutate(t, tab, "r", put(at("f:q", -1, "v")), del(marker(cells.DeleteColumn, "f:q", -1)))
	same(t, "C25", get(t, tab, "r", all()), "")
}

func TestMutateRows(t *testing.T) {
	tab := testTable(t, testStore(t, Options{}))
	ctx := context.Background()
	mutate(t, tab, "a", put(at("f:q", 1, "v")))
	rows := func(cond string, ops ...string) (bool, error) {
		var ms []*RowMutation
		for _, r := range ops {
			ms = append(ms, &RowMutation{Row: []byte(r), Ops: []Op{put(at("f:new", 1, "n"))}})
		}
		return tab.MutateRows(ctx, ms, []*Condition{{Row: []byte("a"), Family: []byte("f"), Qualifier: []byte("q"), Op: Equal, Value: []byte(cond)}})
	}
	if ok, err := rows("wrong", "b", "c"); ok || err != nil {
		t.Error(ok, err)
	}
	same(t, "nothing written", scanAll(t, tab, whole(all("f:new")), 0), "")
	if ok, err := rows("v", "c", "b", "c"); !ok || err != nil {
		t.Error(ok, err)
	}
	same(t, "both written", scanAll(t, tab, whole(all("f:new")), 0), "b{f:new@1=n} c{f:new@1=n}")
	_, err := tab.MutateRows(ctx, []*RowMutation{{Row: []byte("x"), Ops: []Op{put(at("f:q", 1, "v"))}}, {Row: []byte("y"), Ops: []Op{put(at("nope:q", 1, "v"))}}}, nil)
	refused(t, "one bad family", err, cells.ClassNoSuchColumnFamily, true)
	same(t, "atomic", get(t, tab, "x", all()), "")
}

// Rule I11.
func TestNonces(t *testing.T) {
	k := &clock{1000}
	tab := testTable(t, testStore(t, Options{Now: k.now}))
	ctx := context.Background()
	send := func(row string, nonce uint64, op Op) MutateResult {
		t.Helper()
		op.NonceGroup, op.Nonce = 5, nonce
		r, err := tab.MutateRow(ctx, &RowMutation{Row: []byte(row), Ops: []Op{op}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := show(send("r", 1, inc("f:n", 5)).Cells)
	mutate(t, tab, "r", inc("f:n", 100))
	same(t, "the repeat answers the value of then", show(send("r", 1, inc("f:n", 5)).Cells), first)
	if n := number(t, tab, "r", "f:n"); n != 105 {
		t.Errorf("applied twice: %d", n)
	}
	mutate(t, tab, "r", del())
	same(t, "after a delete", show(send("r", 1, inc("f:n", 5)).Cells), first)
	same(t, "another row and kind", show(send("other", 1, app("f:s", "x")).Cells), "")
	same(t, "not applied", get(t, tab, "other", all()), "")
	send("r2", 2, inc("f:n", 1))
	send("r2", 0, inc("f:n", 1))
	send("r2", 0, inc("f:n", 1))
	if n := number(t, tab, "r2", "f:n"); n != 3 {
		t.Errorf("without a nonce: %d", n)
	}
	// A failure frees the nonce.
	mutate(t, tab, "bad", put(at("f:n", 1, "abc")))
	op := inc("f:n", 1)
	op.Nonce = 9
	if _, err := tab.MutateRow(ctx, &RowMutation{Row: []byte("bad"), Ops: []Op{op}}); err == nil {
		t.Error("incremented a text")
	}
	mutate(t, tab, "bad", del())
	k.ms++
	if r, err := tab.MutateRow(ctx, &RowMutation{Row: []byte("bad"), Ops: []Op{op}}); err != nil || len(r.Cells) != 1 {
		t.Errorf("the freed nonce: %v, %v", r, err)
	}
	// A condition that does not hold frees it too.
	op.Nonce = 10
	m := &RowMutation{Row: []byte("c"), Ops: []Op{op}, Condition: &Condition{Family: []byte("f"), Qualifier: []byte("go"), Op: NotEqual}}
	if r, _ := tab.MutateRow(ctx, m); r.Processed {
		t.Error("condition")
	}
	mutate(t, tab, "c", put(at("f:go", 1, "x")))
	for range 2 {
		if r, err := tab.MutateRow(ctx, m); err != nil || !r.Processed || len(r.Cells) != 1 {
			t.Errorf("conditional increment: %v, %v", r, err)
		}
	}
	if n := number(t, tab, "c", "f:n"); n != 1 {
		t.Errorf("conditional increment applied twice: %d", n)
	}
	// Ten minutes later it is forgotten.
	k.ms += nonceMillis + 1
	send("r2", 2, inc("f:n", 1))
	if n := number(t, tab, "r2", "f:n"); n != 4 {
		t.Errorf("after ten minutes: %d", n)
	}
	// The same nonce twice in one batch.
	op.Nonce = 50
	_, errs := tab.MutateBatch(ctx, []*RowMutation{{Row: []byte("two"), Ops: []Op{op}}, {Row: []byte("two"), Ops: []Op{op}}})
	if errs[0] != nil || errs[1] != nil || number(t, tab, "two", "f:n") != 1 {
		t.Errorf("twice in a batch: %v", errs)
	}
}

func TestNonceWaits(t *testing.T) {
	var n nonces
	n.init(1000)
	key := nonceKey{1, 2}
	ctx := context.Background()
	if _, taken, err := n.begin(ctx, key, 0, true); taken || err != nil {
		t.Fatal(taken, err)
	}
	if _, _, err := n.begin(ctx, key, 0, false); !errors.Is(err, errNonceBusy) {
		t.Fatalf("busy: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, _, err := n.begin(short, key, 0, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("wait: %v", err)
	}
	done := make(chan uint64)
	go func() {
		at, _, _ := n.begin(ctx, key, 0, true)
		done <- at
	}()
	n.end(key, true, 77, 0)
	if got := <-done; got != 77 {
		t.Fatalf("read point %d", got)
	}
	for i := range uint64(5000) {
		k := nonceKey{9, i}
		if _, _, err := n.begin(ctx, k, 0, true); err != nil {
			t.Fatal(err)
		}
		n.end(k, true, i, 0)
	}
	if len(n.known) > 1000 || len(n.queue) > 5000 {
		t.Errorf("%d nonces remembered", len(n.known))
	}
}

// Rule C24: with a clock that runs, a put after a delete is visible.
func TestPutBehindDelete(t *testing.T) {
	tab := testTable(t, testStore(t, Options{}))
	for i := range 50 {
		mutate(t, tab, "r", del(marker(cells.DeleteColumn, "f:q", -1)))
		mutate(t, tab, "r", put(at("f:q", -1, "v")))
		if got := get(t, tab, "r", newest()); !strings.HasSuffix(got, "=v") {
			t.Fatalf("round %d: the put is hidden: %q", i, got)
		}
		mutate(t, tab, "r", del())
		if mutate(t, tab, "r", inc("f:n", 1)); number(t, tab, "r", "f:n") != 1 {
			t.Fatalf("round %d: the increment is hidden", i)
		}
	}
}
