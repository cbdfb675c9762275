package catalog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Bounds of a generated table.
const (
	MaxGeneratedRegions = 1_000_000
	MaxGeneratedRows    = 10_000
	MaxGeneratedValue   = 64 << 10
)

// GeneratedQualifier is the one column that generated rows have in every
// family the table was made with.
const GeneratedQualifier = "q"

// Formula says what regions and rows a generated table has. It is immutable.
//
// Region i begins at KeyFormat's text for i (the first one at the empty key,
// as every table does). Its row 0 has that text as its key, its row j the text,
// a hyphen and j with five digits. Each row has the column "q" in every family,
// with the time of the table's creation; the value is the row's key, repeated
// and cut to ValueSize bytes if that is not 0.
type Formula struct {
	Regions   int
	Rows      int // of each region
	ValueSize int
	// ID is the id of all regions, CreatedAt the timestamp of all cells in ms.
	ID        uint64
	CreatedAt int64
	// Families are those of the table when it was made.
	Families []string
	Format   KeyFormat

	// byName finds regions by encoded name: an open-addressing table of
	// region numbers plus one, made when a name is first looked up (4 to 12
	// bytes per region).
	once   sync.Once
	byName []uint32
}

// KeyFormat makes a number into a key: a text with one verb, %0Nd (decimal) or
// %0Nx (hexadecimal), in which N is the number of digits. All keys have one
// length, so that they sort as their numbers do.
type KeyFormat struct {
	Before, After string
	Digits        int
	Base          int // 10 or 16
}

// DefaultKeyFormat is used when none is given.
const DefaultKeyFormat = "%08d"

// ParseKeyFormat reads the notation.
func ParseKeyFormat(text string) (KeyFormat, error) {
	before, rest, ok := strings.Cut(text, "%0")
	bad := func() (KeyFormat, error) {
		return KeyFormat{}, fmt.Errorf("key format %q is not a text with one %%0Nd or %%0Nx (N digits, 1 to 15), such as %q", text, DefaultKeyFormat)
	}
	if !ok || strings.Contains(before, "%") {
		return bad()
	}
	i := strings.IndexAny(rest, "dx")
	if i < 1 || strings.Contains(rest[i:], "%") {
		return bad()
	}
	n, err := strconv.Atoi(rest[:i])
	if err != nil || n < 1 || n > 15 || rest[0] == '+' || rest[0] == '-' {
		return bad()
	}
	f := KeyFormat{Before: before, After: rest[i+1:], Digits: n, Base: 10}
	if rest[i] == 'x' {
		f.Base = 16
	}
	if len(f.Before)+len(f.After) > 1024 {
		return KeyFormat{}, errors.New("key format: more than 1,024 bytes around the number")
	}
	return f, nil
}

func (f KeyFormat) String() string {
	verb := "d"
	if f.Base == 16 {
		verb = "x"
	}
	return fmt.Sprintf("%s%%0%d%s%s", f.Before, f.Digits, verb, f.After)
}

// Append appends the key of a number.
func (f KeyFormat) Append(b []byte, n int) []byte {
	b = append(b, f.Before...)
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], int64(n), f.Base)
	for range f.Digits - len(d) {
		b = append(b, '0')
	}
	b = append(b, d...)
	return append(b, f.After...)
}

// Number is the number whose key this is.
func (f KeyFormat) Number(key []byte) (int, bool) {
	if len(key) != len(f.Before)+f.Digits+len(f.After) || !bytes.HasPrefix(key, []byte(f.Before)) || !bytes.HasSuffix(key, []byte(f.After)) {
		return 0, false
	}
	n := 0
	for _, c := range key[len(f.Before) : len(f.Before)+f.Digits] {
		d := -1
		switch {
		case c >= '0' && c <= '9':
			d = int(c - '0')
		case f.Base == 16 && c >= 'a' && c <= 'f':
			d = int(c-'a') + 10
		}
		if d < 0 {
			return 0, false
		}
		n = n*f.Base + d
	}
	return n, true
}

// Check refuses formulas that make no table.
func (f *Formula) Check() error {
	switch {
	case f.Regions < 1 || f.Regions > MaxGeneratedRegions:
		return fmt.Errorf("a generated table has 1 to %d regions, not %d", MaxGeneratedRegions, f.Regions)
	case f.Rows < 0 || f.Rows > MaxGeneratedRows:
		return fmt.Errorf("a region of a generated table has 0 to %d rows, not %d", MaxGeneratedRows, f.Rows)
	case f.ValueSize < 0 || f.ValueSize > MaxGeneratedValue:
		return fmt.Errorf("a generated value has 0 (as long as its key) to %d bytes, not %d", MaxGeneratedValue, f.ValueSize)
	case math.Pow(float64(f.Format.Base), float64(f.Format.Digits)) < float64(f.Regions):
		return fmt.Errorf("key format %q has too few digits for %d regions", f.Format, f.Regions)
	}
	return nil
}

// start is region i's start key.
func (f *Formula) start(i int) []byte {
	if i == 0 {
		return []byte{}
	}
	return f.Format.Append(make([]byte, 0, len(f.Format.Before)+f.Format.Digits+len(f.Format.After)), i)
}

// Region is the identity of region i.
func (f *Formula) Region(table meta.TableName, i int) meta.Region {
	r := meta.Region{Table: table, ID: f.ID, Start: f.start(i), End: []byte{}}
	if i+1 < f.Regions {
		r.End = f.start(i + 1)
	}
	return r
}

// Index is the number of the region with that identity.
func (f *Formula) Index(info *meta.Region) (int, bool) {
	if info.ID != f.ID || info.Replica != 0 {
		return 0, false
	}
	return f.startIndex(info.Start)
}

func (f *Formula) startIndex(start []byte) (int, bool) {
	if len(start) == 0 {
		return 0, true
	}
	i, ok := f.Format.Number(start)
	return i, ok && i > 0 && i < f.Regions
}

// Holding is the number of the region that holds a row.
func (f *Formula) Holding(row []byte) int {
	return sort.Search(f.Regions-1, func(i int) bool { return bytes.Compare(f.start(i+1), row) > 0 })
}

// indexNamed is the number of the region with that full name.
func (f *Formula) indexNamed(table meta.TableName, name []byte) (int, bool) {
	encoded, ok := meta.EncodedNameOf(name)
	if !ok {
		return 0, false
	}
	base := name[:len(name)-len(encoded)-2]
	first, last := bytes.IndexByte(base, ','), bytes.LastIndexByte(base, ',')
	if first < 0 || last <= first || string(base[:first]) != table.String() {
		return 0, false
	}
	i, ok := f.startIndex(base[first+1 : last])
	if !ok || string(base[last+1:]) != strconv.FormatUint(f.ID, 10) {
		return 0, false
	}
	r := f.Region(table, i)
	return i, r.EncodedName() == encoded
}

// indexEncoded is the number of the region with that encoded name.
func (f *Formula) indexEncoded(table meta.TableName, encoded string) (int, bool) {
	hash, ok := nameHash(encoded)
	if !ok {
		return 0, false
	}
	f.once.Do(func() { f.byName = f.buildNames(table) })
	mask := uint32(len(f.byName) - 1)
	for h := hash & mask; f.byName[h] != 0; h = (h + 1) & mask {
		i := int(f.byName[h] - 1)
		if r := f.Region(table, i); r.EncodedName() == encoded {
			return i, true
		}
	}
	return 0, false
}

func (f *Formula) buildNames(table meta.TableName) []uint32 {
	size := 4
	for size < f.Regions+f.Regions/3+1 {
		size *= 2
	}
	names, mask := make([]uint32, size), uint32(size-1)
	for i := range f.Regions {
		r := f.Region(table, i)
		hash, _ := nameHash(r.EncodedName())
		h := hash & mask
		for names[h] != 0 {
			h = (h + 1) & mask
		}
		names[h] = uint32(i + 1)
	}
	return names
}

// nameHash takes 32 bits out of an encoded name, which is a hash itself.
func nameHash(encoded string) (uint32, bool) {
	if len(encoded) != 32 {
		return 0, false
	}
	var b [4]byte
	if _, err := hex.Decode(b[:], []byte(encoded[:8])); err != nil {
		return 0, false
	}
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]), true
}

// rowKey is the key of row j of region i.
func (f *Formula) rowKey(i, j int) []byte {
	b := f.Format.Append(make([]byte, 0, len(f.Format.Before)+f.Format.Digits+len(f.Format.After)+6), i)
	if j > 0 {
		b = fmt.Appendf(b, "-%05d", j)
	}
	return b
}

// row renders row j of region i.
func (f *Formula) row(i, j int) []cells.Cell {
	key := f.rowKey(i, j)
	value := key
	if f.ValueSize > 0 {
		value = make([]byte, f.ValueSize)
		for n := 0; n < len(value); {
			n += copy(value[n:], key)
		}
	}
	out := make([]cells.Cell, len(f.Families))
	for k, family := range f.Families {
		out[k] = cells.Cell{Row: key, Family: []byte(family), Qualifier: []byte(GeneratedQualifier), Timestamp: f.CreatedAt, Type: cells.Put, Value: value}
	}
	return out
}

// RegionRows renders the rows of region i from start on, or backwards from
// start: see host.VirtualTable.
func (f *Formula) RegionRows(i int, start []byte, reversed bool) iter.Seq[[]cells.Cell] {
	return func(yield func([]cells.Cell) bool) {
		if reversed {
			n := f.Rows
			if start != nil {
				n = sort.Search(f.Rows, func(j int) bool { return bytes.Compare(f.rowKey(i, j), start) > 0 })
			}
			for j := n - 1; j >= 0; j-- {
				if !yield(f.row(i, j)) {
					return
				}
			}
			return
		}
		for j := sort.Search(f.Rows, func(j int) bool { return bytes.Compare(f.rowKey(i, j), start) >= 0 }); j < f.Rows; j++ {
			if !yield(f.row(i, j)) {
				return
			}
		}
	}
}
