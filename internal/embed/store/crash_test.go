package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Whatever was acknowledged before the machine stops is there afterwards, and
// nothing is there in part.
func TestCrash(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	mem := vfs.NewCrashableMem()
	s, err := Open(Options{FS: mem, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const workers = 8
	var acked [workers]atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	tab := testTable(t, s)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			row := []byte(fmt.Sprintf("row%d", w))
			for n := int64(1); ctx.Err() == nil; n++ {
				text := strings.Repeat(fmt.Sprint(n, " "), 50)
				m := &RowMutation{Row: row, Ops: []Op{put(at("f:v", -1, text), at("g:v", -1, text)), inc("f:n", 1)}}
				var err error
				if w%2 == 0 {
					_, errs := tab.MutateBatch(ctx, []*RowMutation{m})
					err = errs[0]
				} else {
					_, err = tab.MutateRow(ctx, m)
				}
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				acked[w].Store(n)
			}
		})
	}
	var clones []*vfs.MemFS
	var counts [][workers]int64
	for range 6 {
		var c [workers]int64
		before := acked[0].Load()
		for acked[0].Load() < before+3 { // let something happen
			time.Sleep(time.Millisecond)
		}
		for w := range workers {
			c[w] = acked[w].Load()
		}
		if r.IntN(3) == 0 {
			if err := s.Flush(context.Background()); err != nil {
				t.Error(err)
			}
		}
		clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(seed, r.Uint64()))}))
		counts = append(counts, c)
	}
	cancel()
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for i, fs := range clones {
		s, err := Open(Options{FS: fs})
		if err != nil {
			t.Fatalf("crash %d: %v", i, err)
		}
		tab := testTable(t, s)
		for w := range workers {
			row := fmt.Sprintf("row%d", w)
			got, err := tab.Get([]byte(row), newest("f:v", "g:v"))
			if err != nil {
				t.Fatal(err)
			}
			if counts[i][w] == 0 && len(got) == 0 {
				continue
			}
			if len(got) != 2 || string(got[0].Value) != string(got[1].Value) {
				t.Errorf("crash %d, %s: a row in part: %s", i, row, show(got))
				continue
			}
			if n := number(t, tab, row, "f:n"); n < counts[i][w] || !strings.HasPrefix(string(got[0].Value), fmt.Sprint(n, " ")) {
				t.Errorf("crash %d, %s: %d acknowledged, %d there with value %.20s", i, row, counts[i][w], n, got[0].Value)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

const childDir = "HOLDFAST_STORE_TEST_CHILD"

// childWrites is the process that TestKill kills: it prints what is
// acknowledged.
func childWrites(dir string) {
	s, err := Open(Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tab := s.Table(1, cells.NewSchema(fam("f", 3), fam("g", 3)))
	for {
		if _, err := tab.MutateRow(context.Background(), &RowMutation{Row: []byte("r"), Ops: []Op{inc("f:n", 1)}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("ok")
	}
}

// The same with a real process, a real disk and kill -9.
func TestKill(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	acked := int64(0)
	for round := range 3 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 20 + 10*round {
			if !lines.Scan() {
				t.Fatalf("round %d: the child ended", round)
			}
			acked++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			acked++ // printed before it died
		}
		_ = cmd.Wait() // killed
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		n := number(t, testTable(t, s), "r", "f:n")
		if n < acked || n > acked+1 {
			t.Errorf("round %d: %d acknowledged, %d there", round, acked, n)
		}
		acked = n
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
