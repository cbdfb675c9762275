package route

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// keysOf generates sets of keys that are hard on heads: empty, long common
// prefixes, trailing zeros, 0xff, lengths around eight.
func keysOf(t *rapid.T) [][]byte {
	prefix := rapid.SampledFrom([]string{"", "a", "user-", "\x00", "\xff\xff", "a-long-common-prefix-"}).Draw(t, "prefix")
	alphabet := rapid.SampledFrom([]string{"\x00\x01", "ab", "\x00\xff", "0123456789"}).Draw(t, "alphabet")
	n := rapid.IntRange(1, 40).Draw(t, "n")
	var keys [][]byte
	for range n {
		b := rapid.SliceOfN(rapid.IntRange(0, len(alphabet)-1), 0, 12).Draw(t, "key")
		k := []byte(prefix)
		for _, i := range b {
			k = append(k, alphabet[i])
		}
		keys = append(keys, k)
	}
	if rapid.Bool().Draw(t, "empty") {
		keys = append(keys, nil)
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal)
}

func TestHeadsAgreeWithKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := keysOf(t)
		h := makeHeads(len(keys), func(i int) []byte { return keys[i] }, nil, nil)
		probe := func(row []byte) {
			lo, hi := h.find(row)
			if lo < 0 || lo > hi || hi > len(keys) {
				t.Fatalf("row %q: range %d..%d of %d", row, lo, hi, len(keys))
			}
			for i, k := range keys {
				switch {
				case i < lo && bytes.Compare(k, row) > 0:
					t.Fatalf("row %q: key %d %q is left of %d", row, i, k, lo)
				case i >= hi && bytes.Compare(k, row) <= 0:
					t.Fatalf("row %q: key %d %q is right of %d", row, i, k, hi)
				}
			}
		}
		for _, k := range keys {
			probe(k)
			probe(append(bytes.Clone(k), 0))
			if len(k) > 0 {
				probe(k[:len(k)-1])
			}
		}
		for range 20 {
			probe(rapid.SliceOfN(rapid.Byte(), 0, 24).Draw(t, "row"))
		}
	})
}

func TestLowerBound(t *testing.T) {
	for n := range 70 {
		head := make([]uint64, n)
		for i := range head {
			head[i] = uint64(2*i + 1)
		}
		for x := range uint64(2*n + 3) {
			want, _ := slices.BinarySearch(head, x)
			if got := lowerBound(head, x); got != want {
				t.Fatalf("n %d x %d: %d, want %d", n, x, got, want)
			}
		}
	}
}

// naive is the model of a table's index: a sorted list and the ordering rules,
// without chunks, heads and sharing.
type naive struct {
	t      *table
	routes []*Route
}

func (m *naive) publish(news []*Route) {
	for _, n := range news {
		j := merge{t: m.t}
		v := win
		var keep []*Route
		for _, o := range m.routes {
			if n.endsAfter(o.startKey()) && o.endsAfter(n.startKey()) {
				v = min(v, j.judge(n, o))
			} else {
				keep = append(keep, o)
			}
		}
		if v == win {
			m.routes = append(keep, n)
			slices.SortFunc(m.routes, func(a, b *Route) int { return bytes.Compare(a.startKey(), b.startKey()) })
		}
	}
}

func (m *naive) floor(row []byte) *Route {
	var r *Route
	for _, x := range m.routes {
		if bytes.Compare(x.startKey(), row) <= 0 {
			r = x
		}
	}
	return r
}

func (m *naive) below(row []byte) *Route {
	var r *Route
	for _, x := range m.routes {
		if len(row) == 0 || bytes.Compare(x.startKey(), row) < 0 {
			r = x
		}
	}
	return r
}

// A random history of pages, single answers, moves, splits, merges and
// removals gives the same index as the model.
func TestIndexAgainstModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c, _ := newCache(t, Config{})
			rng := rand.New(rand.NewPCG(seed, 7))
			c.mu.Lock()
			tab := c.tableFor(tbl)
			mirror := c.tableFor(meta.TableName{Namespace: "default", Qualifier: "mirror"}) // keeps the model's rewinds apart
			c.mu.Unlock()
			mirror.name, mirror.text = tab.name, tab.text
			m := &naive{t: mirror}
			span := []int{60, 400, 1500, 4000, 60, 1500}[seed]
			for step := range []int{400, 300, 120, 60, 400, 120}[seed] {
				var locs []meta.Location
				at := rng.IntN(span)
				for range 1 + rng.IntN(1+[]int{1, 5, 60, 1500}[rng.IntN(4)]) {
					if at >= span {
						break
					}
					width := 1 + rng.IntN(1+rng.IntN(6))
					r := meta.Region{Table: tbl, ID: uint64(1000 + rng.IntN(1+step/4)), Start: key(at), End: key(min(at+width, span))}
					if at+width >= span {
						r.End = nil
					}
					locs = append(locs, meta.Location{Region: r, Server: server(rng.IntN(5)), SeqNum: int64(rng.IntN(40)), State: "OPEN"})
					at += width + rng.IntN(1+rng.IntN(3))
				}
				a := tab.makeRoutes(locs, FromMeta)
				tab.publish(a)
				m.publish(a)
				if rng.IntN(10) == 0 && len(m.routes) > 0 {
					for range 1 + rng.IntN(20) {
						m.routes[rng.IntN(len(m.routes))].reject()
					}
				}
				if rng.IntN(8) == 0 {
					gone := map[*Route]bool{}
					for _, r := range m.routes {
						if rng.IntN(6) == 0 {
							gone[r] = true
						}
					}
					m.routes = slices.DeleteFunc(m.routes, func(r *Route) bool { return gone[r] })
					if removed := tab.removeExactly(gone); len(removed) != len(gone) {
						t.Fatalf("step %d: removed %d of %d", step, len(removed), len(gone))
					}
				}
				checkSame(t, step, tab.root.Load(), m)
				for range 30 {
					row := key(rng.IntN(span + 5))
					if rng.IntN(2) == 0 {
						row = append(row, 'x')
					}
					r := tab.root.Load()
					if got, want := r.floor(row), m.floor(row); got != want {
						t.Fatalf("step %d: floor of %q: %v, want %v", step, row, got, want)
					}
					if got, want := r.guess(row), m.floor(row); got != nil && (got != want || !got.Contains(row)) {
						t.Fatalf("step %d: guess of %q: %v, want %v", step, row, got, want)
					}
					if got, want := r.find(position{key: row, before: true}), m.below(row); got != want {
						t.Fatalf("step %d: below %q: %v, want %v", step, row, got, want)
					}
				}
			}
			if got := int(c.routes.Load()); got != len(m.routes) {
				t.Errorf("counted %d routes, have %d", got, len(m.routes))
			}
		})
	}
}

func checkSame(t *testing.T, step int, r *root, m *naive) {
	t.Helper()
	i := 0
	for _, c := range r.chunks {
		if len(c.routes) == 0 || len(c.routes) > maxChunk {
			t.Fatalf("step %d: chunk of %d", step, len(c.routes))
		}
		for _, x := range c.routes {
			if i >= len(m.routes) || m.routes[i] != x {
				t.Fatalf("step %d: route %d is %v", step, i, x)
			}
			i++
		}
	}
	if i != len(m.routes) || r.n != i {
		t.Fatalf("step %d: %d routes, root says %d, model %d", step, i, r.n, len(m.routes))
	}
	// Every place can be walked to.
	var k at
	if r.n > 0 {
		for n := 0; n < i; n++ {
			if r.get(k) != m.routes[n] {
				t.Fatalf("step %d: walk %d", step, n)
			}
			k = r.next(k)
		}
		if r.get(k) != nil {
			t.Fatalf("step %d: walk does not end", step)
		}
	}
}

// Small chunks join their neighbours, so that a table that shrinks does not
// leave a list of crumbs.
func TestChunksAreJoined(t *testing.T) {
	_, tab := loaded(t, 20_000, 1000)
	before := len(tab.root.Load().chunks)
	keep := map[*Route]bool{}
	i := 0
	for _, c := range tab.root.Load().chunks {
		for _, r := range c.routes {
			keep[r] = i%20 == 0
			i++
		}
	}
	tab.remove(0, before, func(r *Route) bool { return !keep[r] })
	r := tab.root.Load()
	if r.n != 1000 || len(r.chunks) > r.n/(minChunk/2) {
		t.Errorf("%d routes in %d chunks (%d before)", r.n, len(r.chunks), before)
	}
	tab.remove(0, len(r.chunks), func(*Route) bool { return true })
	if r := tab.root.Load(); r.n != 0 || len(r.chunks) != 0 {
		t.Errorf("%d routes in %d chunks, want none", r.n, len(r.chunks))
	}
}

func TestRouteIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Route{}); n != 80 {
		t.Errorf("%d bytes, want 80, which is a size class", n)
	}
}

func TestKeysAreShared(t *testing.T) {
	_, tab := loaded(t, 2000, 1000)
	var prev *Route
	for _, c := range tab.root.Load().chunks {
		for _, r := range c.routes {
			if prev != nil && prev.end != r.start {
				t.Fatalf("%v and %v have keys of their own", prev, r)
			}
			prev = r
		}
	}
	if got := heapPerRoute(t, 50_000, false); got > 120 {
		t.Errorf("%.1f bytes a route, want at most 120", got)
	} else {
		t.Logf("%.1f bytes a route with keys of 20 bytes", got)
	}
}

// The ordering rules, docs/design/routing.md.
func TestOrderingRules(t *testing.T) {
	type belief struct {
		id       uint64
		start    string
		end      string
		seq      int64
		server   int
		origin   Origin
		rejected bool
		down     bool // its server's epoch moved on
	}
	old := belief{id: 100, start: "c", end: "m", seq: 10, server: 1, origin: FromMeta}
	with := func(b belief, f func(*belief)) belief { f(&b); return b }
	rows := []struct {
		name string
		old  belief
		new  belief
		want verdict
	}{
		{"the same again", old, old, confirm},
		{"larger sequence", old, with(old, func(b *belief) { b.seq, b.server = 11, 2 }), win},
		{"larger sequence, same server", old, with(old, func(b *belief) { b.seq = 11 }), win},
		{"smaller sequence", old, with(old, func(b *belief) { b.seq, b.server = 9, 2 }), lose},
		{"smaller sequence, same server", old, with(old, func(b *belief) { b.seq = 9 }), lose},
		{"smaller sequence against a rejected one", with(old, func(b *belief) { b.rejected = true }), with(old, func(b *belief) { b.seq, b.server = 9, 2 }), win},
		{"smaller sequence, replica, against a rejected one", with(old, func(b *belief) { b.rejected = true }), with(old, func(b *belief) { b.seq, b.server, b.origin = 9, 2, FromMetaReplica }), lose},
		{"smaller sequence against a server that went down", with(old, func(b *belief) { b.down = true }), with(old, func(b *belief) { b.seq, b.server = 9, 2 }), win},
		{"equal sequence, other server, meta", old, with(old, func(b *belief) { b.server = 2 }), win},
		{"equal sequence, other server, meta against hint", with(old, func(b *belief) { b.origin = FromHint }), with(old, func(b *belief) { b.server = 2 }), lose},
		{"equal sequence, other server, hint against meta", old, with(old, func(b *belief) { b.server, b.origin = 2, FromHint }), win},
		{"equal sequence, other server, against a rejected hint", with(old, func(b *belief) { b.origin, b.rejected = FromHint, true }), with(old, func(b *belief) { b.server = 2 }), win},
		{"exactly what was rejected", with(old, func(b *belief) { b.rejected = true }), old, lose},
		{"what was rejected, by an unknown sequence", with(old, func(b *belief) { b.rejected = true }), with(old, func(b *belief) { b.seq = meta.NoSeqNum }), lose},
		{"the same after its server came back", with(old, func(b *belief) { b.down = true }), old, win},
		{"unknown sequence, other server", old, with(old, func(b *belief) { b.seq, b.server = meta.NoSeqNum, 2 }), win},
		{"unknown sequence, other server, snapshot", old, with(old, func(b *belief) { b.seq, b.server, b.origin = meta.NoSeqNum, 2, FromSnapshot }), lose},
		{"snapshot moves forward", old, with(old, func(b *belief) { b.seq, b.server, b.origin = 12, 2, FromSnapshot }), win},
		{"daughter", old, belief{id: 200, start: "c", end: "g", seq: 1, server: 1, origin: FromMeta}, win},
		{"merged region", old, belief{id: 200, start: "a", end: "p", seq: 1, server: 1, origin: FromMeta}, win},
		{"right neighbour of a stale parent", old, belief{id: 200, start: "g", end: "z", seq: 1, server: 1, origin: FromMeta}, win},
		{"older cut", old, belief{id: 50, start: "a", end: "z", seq: 99, server: 2, origin: FromMeta}, lose},
		{"older cut against a rejected one", with(old, func(b *belief) { b.rejected = true }), belief{id: 50, start: "a", end: "z", seq: 99, server: 2, origin: FromMeta}, win},
		{"older cut, replica, against a rejected one", with(old, func(b *belief) { b.rejected = true }), belief{id: 50, start: "a", end: "z", seq: 99, server: 2, origin: FromMetaReplica}, lose},
		{"older cut from a hint cannot be", old, belief{id: 50, start: "a", end: "z", seq: 99, server: 2, origin: FromHint}, lose},
		{"nobody serves it", old, with(old, func(b *belief) { b.seq, b.rejected = 11, true }), lose},
		{"nobody serves the daughter yet", old, belief{id: 200, start: "c", end: "g", server: 1, rejected: true, origin: FromMeta}, win},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c, _ := newCache(t, Config{})
			c.mu.Lock()
			tab := c.tableFor(tbl)
			c.mu.Unlock()
			make := func(b belief) *Route {
				return tab.makeRoutes([]meta.Location{{
					Region: meta.Region{Table: tbl, ID: b.id, Start: []byte(b.start), End: []byte(b.end)},
					Server: server(b.server), SeqNum: b.seq, State: "OPEN",
				}}, b.origin)[0]
			}
			o := make(r.old)
			if r.old.down {
				o.server.Refused(errDown)
				<-o.server.Up()
			}
			n := make(r.new)
			if r.new.rejected {
				n.reject()
			}
			tab.publish([]*Route{o})
			if r.old.rejected {
				o.reject()
			}
			m := merge{t: tab}
			if got := m.judge(n, o); got != r.want {
				t.Fatalf("judge: %d, want %d", got, r.want)
			}
			clear(tab.rewinds)
			added, removed := tab.publish([]*Route{n})
			if (len(added) == 1) != (r.want == win) || (len(removed) == 1) != (r.want == win) {
				t.Errorf("added %v, removed %v", added, removed)
			}
		})
	}
}

// Three identical answers of meta outweigh larger numbers in the cache; other
// answers between them, or a replica's, do not count.
func TestRewind(t *testing.T) {
	c, _ := newCache(t, Config{})
	c.mu.Lock()
	tab := c.tableFor(tbl)
	c.mu.Unlock()
	put := func(seq int64, srv int, o Origin) bool {
		r := regionOf(tbl, 3, 10)
		added, _ := tab.publish(tab.makeRoutes([]meta.Location{{Region: r, Server: server(srv), SeqNum: seq, State: "OPEN"}}, o))
		return len(added) == 1
	}
	put(50, 1, FromMeta)
	for i, r := range []struct {
		seq    int64
		srv    int
		origin Origin
		want   bool
	}{
		{40, 2, FromMeta, false},
		{40, 2, FromMeta, false},
		{41, 3, FromMeta, false}, // another answer: the count begins anew
		{40, 2, FromMeta, false},
		{40, 2, FromMetaReplica, false},
		{40, 2, FromMeta, false},
		{40, 2, FromMeta, true},
	} {
		if got := put(r.seq, r.srv, r.origin); got != r.want {
			t.Errorf("answer %d: accepted %t, want %t", i, got, r.want)
		}
	}
	// One answer counts once, however many beliefs it contradicts.
	for i := range 5 {
		r := meta.Region{Table: tbl, ID: 1800000000000, Start: key(20 + i), End: key(21 + i)}
		tab.publish(tab.makeRoutes([]meta.Location{{Region: r, Server: server(1), SeqNum: 1, State: "OPEN"}}, FromMeta))
	}
	wide := meta.Location{Region: meta.Region{Table: tbl, ID: 1500000000000, Start: key(20), End: key(25)}, Server: server(1), SeqNum: 1, State: "OPEN"}
	for i := range 3 {
		added, removed := tab.publish(tab.makeRoutes([]meta.Location{wide}, FromMeta))
		if got := len(added) == 1; got != (i == 2) || got && len(removed) != 5 {
			t.Errorf("wide answer %d: added %d, removed %d", i, len(added), len(removed))
		}
	}
}

func TestPositions(t *testing.T) {
	p := func(key string, before bool) position { return position{key: []byte(key), before: before} }
	sorted := []position{p("", false), p("a", true), p("a", false), p("b", true), p("b", false), p("", true)}
	for i := range sorted {
		for j := range sorted {
			got := sorted[i].compare(sorted[j])
			if want := min(max(i-j, -1), 1); got != want {
				t.Errorf("%v and %v: %d, want %d", sorted[i], sorted[j], got, want)
			}
		}
	}
	c, _ := newCache(t, Config{})
	c.mu.Lock()
	tab := c.tableFor(tbl)
	c.mu.Unlock()
	region := func(start, end string) *Route {
		return tab.makeRoutes([]meta.Location{{Region: meta.Region{Table: tbl, ID: 1, Start: []byte(start), End: []byte(end)}, Server: server(1)}}, FromMeta)[0]
	}
	for _, r := range []struct {
		start, end string
		pos        position
		want       bool
	}{
		{"c", "f", p("c", false), true}, {"c", "f", p("f", false), false}, {"c", "f", p("c", true), false},
		{"c", "f", p("f", true), true}, {"c", "f", p("d", true), true}, {"c", "", p("", true), true},
		{"c", "f", p("", true), false}, {"", "", p("", true), true}, {"", "c", p("", false), true}, {"", "c", p("c", true), true},
	} {
		if got := r.pos.in(region(r.start, r.end)); got != r.want {
			t.Errorf("%q before %t in [%s,%s): %t", r.pos.key, r.pos.before, r.start, r.end, got)
		}
		if got := r.pos.inGap([]byte(r.start), []byte(r.end)); got != r.want {
			t.Errorf("%q before %t in gap [%s,%s): %t", r.pos.key, r.pos.before, r.start, r.end, got)
		}
	}
}

// TestSteps: the search in two levels gives what the search in one does.
func TestSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 3000 {
		head := make([]uint64, 1+rng.IntN(maxChunk))
		width := rng.IntN(64) + 1 // of the differences, in bits
		base := rng.Uint64() >> rng.IntN(64)
		for i := range head {
			head[i] = base + rng.Uint64()>>(64-width)
			if round%3 == 0 { // few different ones
				head[i] &^= 1<<(width/2) - 1
			}
		}
		slices.Sort(head)
		if round%5 == 0 {
			head[0] = 0 // an empty first key
		}
		if round%7 == 0 {
			head[len(head)-1] = ^uint64(0)
		}
		st := makeSteps(head)
		for range 200 {
			x := head[rng.IntN(len(head))] + uint64(rng.IntN(3)) - 1
			if rng.IntN(4) == 0 {
				x = rng.Uint64() >> rng.IntN(64)
			}
			want, _ := slices.BinarySearchFunc(head, x, func(h, x uint64) int {
				if h <= x {
					return -1
				}
				return 1
			})
			if got := st.last(head, x); got != want-1 {
				t.Fatalf("round %d: last of %d heads at most %#x is %d, want %d", round, len(head), x, got, want-1)
			}
		}
	}
}
