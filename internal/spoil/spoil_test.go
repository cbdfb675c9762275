package spoil

import (
	"fmt"
	"testing"
)

// TestVariants: they are as many as promised, none is the seed, they are the
// same each time, and leave the seed as it is.
func TestVariants(t *testing.T) {
	seed := []any{[]byte("some bytes"), "text", true, uint8(3), int32(4), uint32(5), int64(6), uint64(7), 8, 1.5}
	was := fmt.Sprintf("%q", seed)
	first, second := all("FuzzX", seed), all("FuzzX", seed)
	if len(first) != variants || fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("%d, and %d the second time", len(first), len(second))
	}
	spoilt := make([]int, len(seed))
	for _, v := range first {
		if fmt.Sprintf("%q", v) == was {
			t.Error("a variant is the seed")
		}
		for i := range v {
			if fmt.Sprintf("%q", v[i]) != fmt.Sprintf("%q", seed[i]) {
				spoilt[i]++
			}
		}
	}
	for i, n := range spoilt[:len(seed)-1] {
		if n < 5 {
			t.Errorf("a %T was spoilt %d times", seed[i], n)
		}
	}
	if fmt.Sprintf("%q", seed) != was {
		t.Error("the seed was spoilt itself")
	}
	if other := all("FuzzY", seed); fmt.Sprint(first) == fmt.Sprint(other) {
		t.Error("another target gets the same")
	}
	if few := all("FuzzX", []any{true}); len(few) != 1 {
		t.Errorf("a truth value has %d others", len(few))
	}
}
