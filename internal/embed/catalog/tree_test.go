package catalog

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A tree and a map take the same random changes; after each batch both must
// agree in every order, from every start, and older trees must be unchanged.
func TestTreeAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	type picture struct {
		t    tree[int]
		want []int
	}
	var old []picture
	tr := newTree(cmp.Compare[int])
	model := map[int]bool{}
	for round := range 60 {
		for range 400 {
			k := rnd.IntN(5000)
			if rnd.IntN(10) < 6-round/10 {
				tr = tr.set(k)
				model[k] = true
			} else {
				tr = tr.remove(k)
				delete(model, k)
			}
		}
		want := slices.Sorted(maps.Keys(model))
		check(t, tr, want, rnd)
		old = append(old, picture{tr, want})
	}
	for _, p := range old {
		check(t, p.t, p.want, rnd)
	}
	for k := range 5000 {
		tr = tr.remove(k)
	}
	if tr.root != nil || tr.size != 0 {
		t.Fatalf("emptied tree has size %d, root %v", tr.size, tr.root)
	}
}

func check(t *testing.T, tr tree[int], want []int, rnd *rand.Rand) {
	t.Helper()
	if got := slices.Collect(tr.all()); !slices.Equal(got, want) || tr.size != len(want) {
		t.Fatalf("all: got %d items (size %d), want %d", len(got), tr.size, len(want))
	}
	for range 20 {
		k := rnd.IntN(5000)
		at := func(v int) int { return cmp.Compare(v, k) }
		i, found := slices.BinarySearch(want, k)
		if got := slices.Collect(tr.from(at)); !slices.Equal(got, want[i:]) {
			t.Fatalf("from %d: got %v, want %v", k, got, want[i:])
		}
		down := want[:i]
		if found {
			down = want[:i+1]
		}
		down = slices.Clone(down)
		slices.Reverse(down)
		if got := slices.Collect(tr.downFrom(at)); !slices.Equal(got, down) {
			t.Fatalf("downFrom %d: got %v, want %v", k, got, down)
		}
		if got, ok := tr.find(at); ok != found || ok && got != k {
			t.Fatalf("find %d: got %d %v, want found %v", k, got, ok, found)
		}
	}
}

func TestBuildTree(t *testing.T) {
	for _, n := range []int{0, 1, 47, 48, 49, 5000} {
		var items, want []int
		for i := range n {
			want = append(want, i)
			items = append(items, n-1-i)
		}
		tr := buildTree(cmp.Compare[int], items)
		check(t, tr, want, rand.New(rand.NewPCG(3, 4)))
		tr = tr.set(n).remove(n)
		check(t, tr, want, rand.New(rand.NewPCG(3, 4)))
	}
}
