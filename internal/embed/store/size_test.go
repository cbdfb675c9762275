package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// TestDataBytes: what was written counts, wherever the engine has it, within the
// rows asked for; and not what is gone.
func TestDataBytes(t *testing.T) {
	s := testStore(t, Options{})
	ctx := t.Context()
	tab := s.Table(7, &cells.Schema{Families: []cells.Family{{Name: []byte("f"), MaxVersions: 5, TTL: cells.Forever}}})
	size := func(start, end string) uint64 {
		t.Helper()
		n, err := tab.DataBytes(ctx, []byte(start), []byte(end))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	put := func(row, value string) {
		t.Helper()
		m := &RowMutation{Row: []byte(row), Ops: []Op{{Kind: Put, Cells: []cells.Cell{{Family: []byte("f"), Qualifier: []byte("qq"), Timestamp: cells.LatestTimestamp, Type: cells.Put, Value: []byte(value)}}}}}
		if _, err := tab.MutateRow(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if n := size("", ""); n != 0 {
		t.Errorf("an empty table has %d bytes", n)
	}
	// A row with a zero byte, which a key holds escaped.
	put("a\x00", strings.Repeat("v", 100))
	const one = cellBytes + 2 + 1 + 2 + 100
	if n := size("", ""); n != one {
		t.Errorf("one cell: %d bytes, want %d", n, one)
	}
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	put("m\x00", strings.Repeat("w", 100))
	for _, tc := range []struct {
		start, end string
		want       uint64
	}{{"", "", 2 * one}, {"", "m", one}, {"m", "", one}, {"b", "c", 0}} {
		if n := size(tc.start, tc.end); n != tc.want {
			t.Errorf("[%q, %q): %d bytes, want %d", tc.start, tc.end, n, tc.want)
		}
	}
	if err := tab.DropRows([]byte("m"), nil); err != nil {
		t.Fatal(err)
	}
	if n := size("", ""); n != one {
		t.Errorf("after rows were dropped: %d bytes, want %d", n, one)
	}
	// Beyond what is counted, the answer is an estimate, and no less than that.
	for i := range 20 {
		put(fmt.Sprintf("z%03d", i), strings.Repeat("x", 100))
	}
	if n, err := tab.dataBytes(ctx, nil, nil, 5*one); err != nil || n < 5*one || n >= 7*one {
		t.Errorf("beyond %d bytes: %d, %v", 5*one, n, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := tab.DataBytes(ended, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
