package endpoint

import (
	"errors"
	"testing"
)

// TestNoMergeAfterItsError: an answer that is already there when merge fails is
// not merged, though the context has not ended yet.
func TestNoMergeAfterItsError(t *testing.T) {
	mine, n := errors.New("mine"), 0
	r := &run{c: &Call{}, merge: func(*Partial) error { n++; return mine }}
	for range 2 {
		if err := r.accept(t.Context(), &Partial{}); !errors.Is(err, mine) {
			t.Errorf("accept: %v, want merge's error", err)
		}
	}
	if n != 1 {
		t.Errorf("merge was called %d times, want once", n)
	}
}
