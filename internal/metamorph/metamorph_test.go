package metamorph

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The long form: go test ./internal/metamorph -run Histories -timeout 2h -histories 200
var (
	histories = flag.Int("histories", 0, "play so many large histories instead of a few small ones")
	seed      = flag.Uint64("seed", 1, "of the first history; 0 takes one by the clock")
	replay    = flag.String("history", "", "play this file instead")
	keep      = flag.String("keep", os.TempDir(), "the folder for histories that failed")
	shrink    = flag.Duration("shrink", 0, "how long to look for a shorter history that fails")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// check plays a history, and keeps it if it fails.
func check(t *testing.T, h *History) {
	t.Helper()
	reports, err := Play(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, rep := range reports {
		t.Logf("%-24s %6.2fs %d rows vague, %v", rep.Setting, rep.Took.Seconds(), rep.Vague, rep.Outcomes)
		if rep.Err() == nil {
			continue
		}
		t.Errorf("seed %d: %v", h.Shape.Seed, rep.Err())
		bad := &History{Shape: h.Shape, Events: h.Events}
		bad.Shape.Settings = []string{rep.Setting}
		if *shrink > 0 {
			s, _ := settingNamed(rep.Setting)
			bad = Shrink(t.Context(), h, s, 3, *shrink)
		}
		file := filepath.Join(*keep, fmt.Sprintf("metamorph-%d.jsonl", h.Shape.Seed))
		if err := os.WriteFile(file, []byte(bad.String()), 0o644); err != nil {
			t.Error(err)
		}
		t.Logf("the history is in %s, %d events: play it with -history", file, len(bad.Events))
	}
}

// TestHistories plays new random histories.
func TestHistories(t *testing.T) {
	if *replay != "" {
		f, err := os.Open(*replay)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		h, err := ReadHistory(f)
		if err != nil {
			t.Fatal(err)
		}
		check(t, h)
		return
	}
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	n, size := 1, Size{Lanes: 3, Rows: 18, Ops: 45, Faults: 14, Settings: 2}
	if *histories > 0 {
		n, size = *histories, Size{Lanes: 4, Rows: 40, Ops: 150, Faults: 60, Settings: 4}
	}
	for i := range n {
		s := first + uint64(i)
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Logf("seed %d", s)
			check(t, Generate(s, size))
		})
	}
}

// TestKeptHistories plays those that have found something once.
func TestKeptHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d histories, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			h, err := ReadHistory(f)
			if err != nil {
				t.Fatal(err)
			}
			check(t, h)
		})
	}
}

// TestFilesHoldHistories: what is written is what is read.
func TestFilesHoldHistories(t *testing.T) {
	h := Generate(*seed, Size{Lanes: 3, Rows: 20, Ops: 60, Faults: 40, Settings: 5})
	text := h.String()
	again, err := ReadHistory(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if again.String() != text {
		t.Error("a history that was read prints otherwise")
	}
	for _, bad := range []string{"", `{"seed":1}`, "{}\n", strings.Replace(text, `"lanes":3`, `"lanes":1`, 1), text + `{"lane":0}`, text + `{"lane":0,"oops":1}`,
		strings.Replace(text, `"settings":["plain"`, `"settings":["strange"`, 1)} {
		if _, err := ReadHistory(strings.NewReader(bad)); err == nil {
			t.Errorf("%.60q is taken for a history", bad)
		}
	}
}

// TestNotices gives wrong answers to the model: one that takes them all proves
// nothing.
func TestNotices(t *testing.T) {
	put := func(q string, ts int64, v string) *Change {
		return &Change{Kind: "put", Cells: []Cell{{Family: familyV, Qualifier: q, Timestamp: ts, Value: v}}}
	}
	add := &Change{Kind: "increment", Cells: []Cell{{Family: familyN, Qualifier: "c", Amount: 1}}}
	is := func(q, v string) func(*state) bool {
		return func(s *state) bool { got, _ := s.newest(familyV, q); return got == v }
	}
	one, two := "\x00\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x02"
	gives := func(v string) func([]Cell) bool { return func(r []Cell) bool { return r[0].Value == v } }
	tests := []struct {
		name string
		play func(r *row) bool
		want bool
	}{
		{"what was put", func(r *row) bool { return r.did(put("q", 5, "a"), nil) && r.saw(is("q", "a")) }, true},
		{"a lost put", func(r *row) bool { return r.did(put("q", 5, "a"), nil) && r.saw(is("q", "")) }, false},
		{"an older put", func(r *row) bool {
			return r.did(put("q", 5, "a"), nil) && r.did(put("q", 4, "b"), nil) && r.saw(is("q", "b"))
		}, false},
		{"a put behind a marker", func(r *row) bool {
			d := &Change{Kind: "delete", Cells: []Cell{{Mark: "column", Family: familyV, Qualifier: "q", Timestamp: 9}}}
			return r.did(d, nil) && r.did(put("q", 5, "a"), nil) && r.saw(is("q", "a"))
		}, false},
		{"the version before the latest", func(r *row) bool {
			d := &Change{Kind: "delete", Cells: []Cell{{Mark: "latest", Family: familyV, Qualifier: "q"}}}
			return r.did(put("q", 4, "a"), nil) && r.did(put("q", 5, "b"), nil) && r.did(d, nil) && r.saw(is("q", "a"))
		}, true},
		{"a doubled increment", func(r *row) bool { return r.did(add, gives(two)) }, false},
		{"a lost increment", func(r *row) bool { _ = r.did(add, gives(one)); return r.did(add, gives(one)) }, false},
		{"two increments", func(r *row) bool { return r.did(add, gives(one)) && r.did(add, gives(two)) }, true},
		{"an unknown increment that was applied", func(r *row) bool { r.mayCome(add, nil); return r.did(add, gives(two)) }, true},
		{"an unknown increment that was not", func(r *row) bool { r.mayCome(add, nil); return r.did(add, gives(one)) }, true},
		{"an unknown increment that was applied late", func(r *row) bool {
			r.mayCome(add, nil)
			return r.did(add, gives(one)) && r.saw(func(s *state) bool { return s.n[0].Value == two })
		}, true},
		{"an unknown increment that came and went", func(r *row) bool {
			r.mayCome(add, nil)
			return r.did(add, gives(two)) && r.saw(func(s *state) bool { return s.n[0].Value == one })
		}, false},
		{"an unknown check whose condition never held", func(r *row) bool {
			r.mayCome(put("q", 5, "a"), &Check{Family: familyV, Qualifier: "p", Op: "=", Value: "x"})
			return r.saw(is("q", "a"))
		}, false},
		{"an unknown check whose condition came to hold", func(r *row) bool {
			r.mayCome(put("q", 5, "a"), &Check{Family: familyV, Qualifier: "p", Op: "=", Value: "x"})
			return r.saw(is("q", "")) && r.did(put("p", 6, "x"), nil) && r.saw(is("q", "a"))
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.play(newRow()); got != tt.want {
				t.Errorf("the model says %v", got)
			}
		})
	}
}

// TestTampering has a lost row, and a row too many, found by whoever reads.
func TestTampering(t *testing.T) {
	row := rowName(0, 1)
	cell := func(v string) []Cell { return []Cell{{Family: familyV, Qualifier: "q0", Timestamp: 10, Value: v}} }
	put := &Op{Kind: "change", Changes: []Change{{Kind: "put", Row: row, Cells: cell("a")}}}
	plain, _ := settingNamed("plain")
	for _, op := range []*Op{
		{Kind: "get", Rows: []string{row}, Read: &Read{}},
		{Kind: "exists", Rows: []string{row}, Read: &Read{}},
		{Kind: "multi-get", Rows: []string{rowName(0, 0), row}, Read: &Read{}},
		{Kind: "multi-exists", Rows: []string{rowName(0, 0), row}, Read: &Read{}},
		{Kind: "scan", Read: &Read{}, Scan: &Scan{}},
		{Kind: "scan", Read: &Read{}, Scan: &Scan{Reversed: true, Batch: 1}},
		{Kind: "parallel", Read: &Read{}, Scan: &Scan{Workers: 2}},
		{Kind: "check", Changes: put.Changes, Checks: []Check{{Row: row, Family: familyV, Qualifier: "q0", Op: "=", Value: "a"}}},
		{Kind: "batch", Ops: []Op{{Kind: "get", Rows: []string{row}, Read: &Read{}}}},
	} {
		t.Run(op.Kind, func(t *testing.T) {
			h := Generate(1, Size{Lanes: 1, Rows: 6, Settings: 1})
			r, err := start(t.Context(), h, plain)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			l := r.lanes[0]
			l.do(t.Context(), 0, put)
			l.do(t.Context(), 1, op)
			if err := r.report.Err(); err != nil {
				t.Fatalf("nothing is wrong yet: %v", err)
			}
			l.rows[row] = newRow() // as if the put had not been heard of
			l.do(t.Context(), 2, op)
			if err := r.report.Err(); err == nil || !strings.Contains(err.Error(), "event 2") {
				t.Errorf("it did not notice: %v", err)
			}
		})
	}
}
