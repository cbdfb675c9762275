package store

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// bytesOf draws short strings over an alphabet in which escaping and prefixes
// matter.
func bytesOf(r *rand.Rand, most int) []byte {
	b := make([]byte, r.IntN(most+1))
	for i := range b {
		b[i] = []byte{0, 1, 2, 0xFE, 0xFF, 'a'}[r.IntN(6)]
	}
	return b
}

func randomCell(r *rand.Rand) cells.Cell {
	return cells.Cell{
		Row: bytesOf(r, 3), Family: bytesOf(r, 2), Qualifier: bytesOf(r, 3),
		Timestamp: []int64{0, 1, 2, 255, 256, math.MaxInt64 - 1, math.MaxInt64}[r.IntN(7)],
		Type:      []cells.Type{cells.Minimum, cells.Put, cells.Delete, cells.DeleteFamilyVersion, cells.DeleteColumn, cells.DeleteFamily, cells.Maximum}[r.IntN(7)],
		Seq:       []uint64{0, 1, 2, 256, math.MaxUint64}[r.IntN(5)],
	}
}

// Rules A1 to A3, A6: encoded keys sort as cells do.
func TestKeyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := comparer()
	for range 200_000 {
		a, b := randomCell(r), randomCell(r)
		if r.IntN(2) == 0 { // mostly neighbours: one field differs
			b = a
			d := randomCell(r)
			switch r.IntN(6) {
			case 0:
				b.Row = d.Row
			case 1:
				b.Family = d.Family
			case 2:
				b.Qualifier = d.Qualifier
			case 3:
				b.Timestamp = d.Timestamp
			case 4:
				b.Type = d.Type
			case 5:
				b.Seq = d.Seq
			}
		}
		ka, kb := appendCellKey(nil, 7, &a), appendCellKey(nil, 7, &b)
		if got, want := sign(c.Compare(ka, kb)), cells.Compare(&a, &b); got != want {
			t.Fatalf("compare %v, %v: keys say %d, cells %d", &a, &b, got, want)
		}
		sameRow := bytes.Equal(ka[:splitRow(ka)], kb[:splitRow(kb)])
		if sameRow != bytes.Equal(a.Row, b.Row) {
			t.Fatalf("split of %v and %v: same %v", &a, &b, sameRow)
		}
		sep := c.Separator(nil, ka, kb)
		if bytes.Compare(ka, kb) < 0 && (bytes.Compare(sep, ka) < 0 || bytes.Compare(sep, kb) >= 0) {
			t.Fatalf("separator of %x and %x is %x", ka, kb, sep)
		}
		row := ka[:splitRow(ka)]
		next := c.ImmediateSuccessor(nil, row)
		if bytes.Compare(ka, next) >= 0 || bytes.Compare(row, kb[:splitRow(kb)]) < 0 && bytes.Compare(kb, next) < 0 {
			t.Fatalf("successor of row %x is %x", row, next)
		}
	}
}

func sign(n int) int { return cmp.Compare(n, 0) }

func TestKeyRowsSort(t *testing.T) {
	rows := [][]byte{[]byte("a"), []byte("a\x00"), []byte("a\x00\x00"), []byte("a\x00\x01"), []byte("a\x00\xff"), []byte("a\x01"), []byte("aa"), []byte("b"), []byte("\xff"), []byte("\xff\xff")}
	var keys [][]byte
	for _, r := range rows {
		keys = append(keys, appendRowKey(nil, 1, r))
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Fatalf("%x", keys)
	}
}

// Rule A6: round trip, long rows included.
func TestKeyRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	check := func(c cells.Cell) {
		t.Helper()
		key := appendCellKey(nil, 42, &c)
		var bufs [3][]byte
		id, got, err := decodeCellKey(key, &bufs)
		if err != nil || id != 42 || cells.Compare(&c, &got) != 0 {
			t.Fatalf("%v became %v (table %d, %v)", &c, &got, id, err)
		}
	}
	for range 10_000 {
		check(randomCell(r))
	}
	long := bytes.Repeat([]byte{0, 0xFF, 'x'}, cells.MaxRowLength/3+1)[:cells.MaxRowLength]
	check(cells.Cell{Row: long, Family: []byte("f"), Qualifier: long, Timestamp: 1, Type: cells.Put, Seq: 1})
}

func TestValueRoundTrip(t *testing.T) {
	for _, c := range []cells.Cell{
		{},
		{Value: []byte("v")},
		{Value: []byte{}, Tags: cells.TTLTag(5)},
		{Value: bytes.Repeat([]byte("x"), 1000), Tags: bytes.Repeat([]byte{0, 2, 9, 1}, 100)},
	} {
		var got cells.Cell
		if err := decodeValue(appendValue(nil, &c), &got); err != nil || !bytes.Equal(got.Value, c.Value) || !bytes.Equal(got.Tags, c.Tags) {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	for _, bad := range [][]byte{{}, {2}, {1}, {1, 5, 0}, {1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}} {
		if err := decodeValue(bad, new(cells.Cell)); err == nil {
			t.Errorf("%x accepted", bad)
		}
	}
}

func FuzzDecodeCellKey(f *testing.F) {
	c := cells.Cell{Row: []byte("r\x00"), Family: []byte("f"), Qualifier: []byte{0, 0xFF}, Timestamp: 5, Type: cells.Put, Seq: 9}
	f.Add(appendCellKey(nil, 1, &c))
	f.Add([]byte{spaceCells, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1})
	f.Add([]byte{spaceCatalog, 'x'})
	f.Fuzz(func(t *testing.T, key []byte) {
		if n := splitRow(key); n > len(key) {
			t.Fatalf("split %d of %d", n, len(key))
		}
		var bufs [3][]byte
		id, c, err := decodeCellKey(key, &bufs)
		if err != nil {
			return
		}
		if again := appendCellKey(nil, id, &c); !bytes.Equal(again, key) {
			t.Fatalf("%x decodes to %v, which encodes to %x", key, &c, again)
		}
	})
}

func FuzzDecodeValue(f *testing.F) {
	f.Add(appendValue(nil, &cells.Cell{Value: []byte("v"), Tags: cells.TTLTag(1)}))
	f.Fuzz(func(t *testing.T, stored []byte) {
		var c cells.Cell
		if decodeValue(stored, &c) != nil {
			return
		}
		var again cells.Cell
		if err := decodeValue(appendValue(nil, &c), &again); err != nil || !bytes.Equal(c.Value, again.Value) || !bytes.Equal(c.Tags, again.Tags) {
			t.Fatalf("%x: %v, %v, %v", stored, c, again, err)
		}
	})
}
