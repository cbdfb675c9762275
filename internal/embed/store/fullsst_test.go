package store

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// noTables is a file system on which, once full, no table file can be written,
// while the log still can: its files are used again.
type noTables struct {
	vfs.FS
	full atomic.Bool
}

func (f *noTables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") && f.full.Load() {
		return nil, syscall.ENOSPC
	}
	return f.FS.Create(name, c)
}

// TestDiskFullForTables: while the engine cannot flush, writes are refused and
// do not hang; reads and the catalog go on; once there is room, so do writes.
func TestDiskFullForTables(t *testing.T) {
	mem := vfs.NewMem()
	fsys := &noTables{FS: mem}
	s, err := Open(Options{FS: fsys, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tab := testTable(t, s)
	fsys.full.Store(true)
	acked := 0
	write := func() error {
		_, err := tab.MutateRow(t.Context(), &RowMutation{Row: fmt.Appendf(nil, "%06d", acked), Ops: []Op{put(at("f:q", 1, strings.Repeat("v", 2000)))}})
		if err == nil {
			acked++
		}
		return err
	}
	for err == nil && acked < 20_000 {
		err = write()
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("after %d writes: %v", acked, err)
	}
	if err := s.Apply([]KV{{Key: []byte("k"), Value: []byte("v")}}); err != nil {
		t.Errorf("catalog: %v", err)
	}
	if got := get(t, tab, "000000", newest()); got == "" {
		t.Error("a row cannot be read")
	}
	full := acked
	fsys.full.Store(false)
	for deadline := time.Now().Add(time.Minute); acked < full+1000; {
		if err := write(); err != nil && time.Now().After(deadline) {
			t.Fatalf("a minute after there is room: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s = testStore(t, Options{FS: mem})
	if n := strings.Count(scanAll(t, testTable(t, s), whole(all()), 0), "f:q@1="); n != acked {
		t.Errorf("%d rows are there, %d were acknowledged", n, acked)
	}
}
