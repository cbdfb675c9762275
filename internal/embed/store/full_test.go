package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullFS is a file system with room for so many bytes in logs; makes says
// that making a log takes all that is left.
type fullFS struct {
	vfs.FS
	room  atomic.Int64
	makes atomic.Bool
	syncs atomic.Bool // fail
}

func (f *fullFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if isLog(name) && f.makes.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := f.FS.Create(name, c)
	if err == nil && isLog(name) {
		file = &fullFile{file, f}
	}
	return file, err
}

func (f *fullFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if f.makes.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := f.FS.ReuseForWrite(from, to, c)
	if err == nil {
		file = &fullFile{file, f}
	}
	return file, err
}

type fullFile struct {
	vfs.File
	fs *fullFS
}

func (f *fullFile) Write(b []byte) (int, error) {
	if left := f.fs.room.Add(-int64(len(b))); left < 0 {
		n, _ := f.File.Write(b[:max(0, min(len(b), len(b)+int(left)))])
		return n, syscall.ENOSPC
	}
	return f.File.Write(b)
}

func (f *fullFile) Sync() error {
	if f.fs.syncs.Load() {
		return syscall.EIO
	}
	return f.File.Sync()
}

func (f *fullFile) SyncData() error { return f.Sync() }

// TestDiskFull: when the log can't be written, whoever writes is told, nobody
// hangs, reads go on, the store closes, and what was acknowledged is there when
// it is opened again.
func TestDiskFull(t *testing.T) {
	for _, kind := range []string{"write", "make", "sync"} {
		t.Run(kind, func(t *testing.T) {
			mem := vfs.NewMem()
			fsys := &fullFS{FS: mem}
			fsys.room.Store(1 << 40)
			s, err := Open(Options{FS: fsys, MemTableBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			tab := testTable(t, s)
			var acked [16]int64
			var writes atomic.Int64
			var wg sync.WaitGroup
			for w := range acked {
				wg.Go(func() {
					row := fmt.Appendf(nil, "row%d", w)
					for n := int64(1); ; n++ {
						m := &RowMutation{Row: row, Ops: []Op{put(at("f:v", -1, strings.Repeat("x", 2000))), inc("f:n", 1)}}
						_, err := tab.MutateRow(context.Background(), m)
						if err != nil {
							if !strings.Contains(err.Error(), syscall.ENOSPC.Error()) && !strings.Contains(err.Error(), syscall.EIO.Error()) {
								t.Errorf("the reason is missing: %v", err)
							}
							return
						}
						acked[w] = n
						if writes.Add(1) == 200 {
							switch kind {
							case "write":
								fsys.room.Store(10_000)
							case "make":
								fsys.makes.Store(true)
							case "sync":
								fsys.syncs.Store(true)
							}
						}
					}
				})
			}
			wg.Wait()
			if _, err := tab.MutateRow(context.Background(), &RowMutation{Row: []byte("later"), Ops: []Op{put(at("f:v", -1, "v"))}}); err == nil {
				t.Error("a write after the failure was acknowledged")
			}
			if _, err := s.NextID("x"); err == nil {
				t.Error("an id after the failure was acknowledged")
			}
			for w, n := range acked {
				if got, err := tab.Get(fmt.Appendf(nil, "row%d", w), newest("f:v")); n > 0 && (err != nil || len(got) != 1) {
					t.Errorf("row%d after the failure: %v, %v", w, show(got), err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if s, err = Open(Options{FS: mem}); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			tab = testTable(t, s)
			for w, n := range acked {
				if n == 0 {
					continue // it may have had no turn
				}
				if got := number(t, tab, fmt.Sprintf("row%d", w), "f:n"); got != n && got != n+1 {
					t.Errorf("row%d: %d acknowledged, %d there", w, n, got)
				}
			}
		})
	}
}
