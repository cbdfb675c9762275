package rpc

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A ring of places does what a map would.
func TestCallsLikeAMap(t *testing.T) {
	cs := calls{ring: make([]*pending, minRing), lastID: math.MaxInt32 - 5000}
	want := map[uint32]*pending{}
	ids := []uint32{}
	most, places := 0, 0
	for step := range 200_000 {
		// Waves of some thousand calls, of which some stay for long.
		if grow := step/20_000%2 == 0; rand.IntN(10) < 7 == grow || len(ids) == 0 {
			p := &pending{yield: rand.IntN(100) == 0}
			if !cs.register(p) {
				t.Fatal("not registered")
			}
			if p.id == 0 || p.id > math.MaxInt32 || want[p.id] != nil {
				t.Fatalf("id %d", p.id)
			}
			want[p.id] = p
			ids = append(ids, p.id)
			most, places = max(most, len(ids)), max(places, len(cs.ring))
			continue
		}
		i := min(rand.IntN(len(ids)), rand.IntN(len(ids)))
		id := ids[i]
		ids[i] = ids[len(ids)-1]
		ids = ids[:len(ids)-1]
		if waited, _ := cs.waiting(id); !waited {
			t.Fatalf("%d is not there", id)
		}
		p := want[id]
		delete(want, id)
		if step%2 == 0 {
			if cs.take(id) != p {
				t.Fatalf("%d: another call", id)
			}
		} else if !cs.forget(p) {
			t.Fatalf("%d: not forgotten", id)
		}
		if waited, _ := cs.waiting(id); cs.take(id) != nil || waited || cs.forget(p) {
			t.Fatalf("%d is there twice", id)
		}
		if int(cs.count.Load()) != len(want) || cs.n != len(want) {
			t.Fatalf("%d and %d calls, want %d", cs.count.Load(), cs.n, len(want))
		}
	}
	if most < keepRing || places < 2*most || places > 8*most {
		t.Fatalf("at most %d calls, %d places", most, places)
	}
	yielding := 0
	for _, p := range cs.takeYielding() {
		if !p.yield || want[p.id] != p {
			t.Fatalf("%d does not yield", p.id)
		}
		delete(want, p.id)
		yielding++
	}
	if cs.n != len(want) {
		t.Fatalf("%d calls, want %d", cs.n, len(want))
	}
	if len(want) > 0 {
		if left, over, ok := cs.end(true); left != nil || over || ok {
			t.Fatal("ended though not idle")
		}
	}
	left, over, ok := cs.end(false)
	if len(left) != len(want) || !over || !ok {
		t.Fatalf("%d ended, want %d (%v, %v)", len(left), len(want), over, ok)
	}
	if _, over, ok := cs.end(false); !over || ok || cs.register(&pending{}) || cs.take(1) != nil || cs.takeYielding() != nil {
		t.Fatal("alive after its end")
	}
}

// Many calls at one time do not make the ring large for good.
func TestRingShrinks(t *testing.T) {
	cs := calls{ring: make([]*pending, minRing)}
	var all []*pending
	for range 3 * keepRing {
		p := &pending{}
		cs.register(p)
		all = append(all, p)
	}
	for _, p := range all {
		cs.take(p.id)
	}
	if len(cs.ring) > keepRing || cs.n != 0 {
		t.Errorf("%d places for %d calls", len(cs.ring), cs.n)
	}
}
