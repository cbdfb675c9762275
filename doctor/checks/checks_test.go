package checks

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/retry"
)

var modern = retry.Version{Major: 1, Minor: 4, Patch: 14}

func TestCumulativePauses(t *testing.T) {
	for start, want := range map[int]map[int]int64{
		0: {1: 100, 2: 300, 3: 600, 4: 1100, 5: 2100, 6: 4100, 7: 8100, 8: 18100, 9: 28100, 10: 38100, 11: 48100, 12: 68100, 13: 88100, 15: 128100, 30: 428100, 31: 448100, 34: 508100, 35: 528100},
		1: {1: 200, 2: 500, 3: 1000, 4: 2000, 5: 4000, 6: 8000, 7: 18000, 8: 28000, 9: 38000, 10: 48000, 11: 68000, 12: 88000, 14: 128000, 15: 148000, 30: 448000, 31: 468000, 34: 528000, 35: 548000},
	} {
		s := scheduleOf(modern, 100, start)
		for k, v := range want {
			if got := s.sum(k); got != v {
				t.Errorf("start-%d, %d pauses: %d, want %d", start, k, got, v)
			}
		}
	}
}

func TestPublishedSchedules(t *testing.T) {
	for _, c := range []struct {
		pause  int64
		start  int
		prefix []int64
		sleeps int
		total  int64
		max    int64
	}{
		{100, 0, []int64{100, 200, 300, 500, 1000, 2000, 4000, 10000, 10000, 10000, 10000, 20000, 20000}, 31, 448100, 20000},
		{100, 1, []int64{200, 300, 500, 1000, 2000, 4000, 10000, 10000, 10000, 10000, 20000}, 30, 448000, 20000},
		{20, 0, []int64{20, 40, 60, 100, 200, 400, 800, 2000, 2000, 2000, 2000, 4000, 4000}, 20, 45620, 4000},
		{20, 1, []int64{40, 60, 100, 200, 400, 800, 2000, 2000, 2000, 2000, 4000}, 20, 49600, 4000},
		{50, 0, []int64{50, 100, 150, 250, 500, 1000, 2000, 5000, 5000, 5000, 5000, 10000, 10000}, 20, 114050, 10000},
		{50, 1, []int64{100, 150, 250, 500, 1000, 2000, 5000, 5000, 5000, 5000, 10000}, 20, 124000, 10000},
	} {
		s := scheduleOf(modern, c.pause, c.start)
		var got []int64
		longest := int64(0)
		for n := 1; n <= c.sleeps; n++ {
			if n <= len(c.prefix) {
				got = append(got, s.sleep(n))
			}
			longest = max(longest, s.sleep(n))
		}
		if !slices.Equal(got, c.prefix) || s.sum(c.sleeps) != c.total || longest != c.max {
			t.Errorf("pause %d start-%d: %v, total %d, longest %d", c.pause, c.start, got, s.sum(c.sleeps), longest)
		}
	}
	// pause=10000 gives hours.
	if h := float64(scheduleOf(modern, 10000, 0).sum(31)) / 3600000; fmt.Sprintf("%.1f", h) != "12.4" {
		t.Errorf("%.2f h", h)
	}
}

func TestGiveUpFits(t *testing.T) {
	for _, c := range []struct {
		limit, duration int64
		fast            bool
		lo, hi          int
	}{
		{60000, 68118, true, 11, 12}, {60000, 68252, true, 11, 12}, {60000, 68222, true, 11, 12}, {60000, 68194, true, 11, 12}, {60000, 68437, true, 11, 12},
		{60000, 68680, true, 11, 12}, {60000, 69144, true, 11, 12}, {10000, 18220, true, 7, 8}, {10000, 19052, true, 7, 8},
		{60000, 60304, false, 0, 0}, {60000, 75000, false, 0, 0}, {1200000, 1200108, false, 0, 0}, {60000, 120100, false, 0, 0},
	} {
		lo, hi, fast := 1000, 0, false
		for _, f := range fitsOfTimeout(modern, 100, c.limit, c.duration, 36, 0, 1) {
			if f.fast() {
				fast, lo, hi = true, min(lo, f.Attempts), max(hi, f.Attempts)
			}
		}
		if fast != c.fast || fast && (lo != c.lo || hi != c.hi) {
			t.Errorf("callTimeout=%d callDuration=%d: fast %v, %d..%d attempts", c.limit, c.duration, fast, lo, hi)
		}
	}
}

func TestSessionArithmetic(t *testing.T) {
	s, err := ExplainSession(180000, 60000, 90000, 2000, 5, "java-3.4")
	if err != nil {
		t.Fatal(err)
	}
	if s.Negotiated != 90000 || s.Read != 60000 || s.Connect != 18000 || s.Patience != 150000 || s.FitConnect != 6000 || s.Fit != 1 || s.ExpiryMax != 92000 {
		t.Errorf("%+v", s)
	}
	for _, c := range [][3]int64{{90000, 0, 40000}, {1, 0, 4000}, {6000, 0, 6000}} {
		s, err := ExplainSession(c[0], 0, 0, 2000, 3, "java-3.9")
		if err != nil || s.Negotiated != c[2] {
			t.Errorf("asked %d: %d, %v", c[0], s.Negotiated, err)
		}
	}
	g, err := ExplainSession(90000, 60000, 90000, 2000, 5, "go")
	if err != nil || g.Patience >= g.Negotiated {
		t.Errorf("this client must have tried every server before the session ends: %+v %v", g, err)
	}
	// The tick that the seed's expiry fits.
	if got := fittingTicks(66769, 68000); got != "2000 or 4000" {
		t.Errorf("ticks %q", got)
	}
}

func TestReleases(t *testing.T) {
	for in, want := range map[string]retry.Version{"0.94": {Minor: 94, Patch: 27}, "0.98": {Minor: 98, Patch: 24}, "1.x": {Major: 1, Minor: 4, Patch: 14}, "2.x": {Major: 2, Minor: 4, Patch: 17}, "1.4.8": {Major: 1, Minor: 4, Patch: 8}, "3.x": {Major: 3}} {
		if got, err := Release(in); err != nil || got != want {
			t.Errorf("%s: %+v %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "x", "0"} {
		if _, err := Release(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestEveryVerdictIsExplained(t *testing.T) {
	for _, id := range order {
		if _, ok := Explain(id); !ok {
			t.Errorf("%s has no page", id)
		}
	}
	for _, f := range simpleFaults() {
		if _, ok := Explain(f.id); !ok {
			t.Errorf("%s has no page", f.id)
		}
	}
	for _, e := range Catalog() {
		if e.Meaning == "" || e.Decided == "" || e.Confirm == "" {
			t.Errorf("%s: incomplete page", e.ID)
		}
	}
}

func TestFieldsSurviveSqueezing(t *testing.T) {
	for in, want := range map[string]uint64{"0x4511b93876c000bforserver": 0x4511b93876c000b, "0x4511b93876c000bat/192": 0x4511b93876c000b, "0x1515bd9bfaa0060closed": 0x1515bd9bfaa0060, "0x100005931a50001atorg.apache": 0x100005931a50001, "0x15b8ae1e1660002,closing": 0x15b8ae1e1660002} {
		if got, _, ok := hexSession(in, 0); !ok || got != want {
			t.Errorf("%s: %x %v", in, got, ok)
		}
	}
	for in, want := range map[string]string{"host1.example/127.0.0.1:16020failed": "host1.example:16020 127.0.0.1", "/192.0.2.9:60020": "192.0.2.9:60020 192.0.2.9", "localhost/0:0:0:0:0:0:0:1:2181.Will": "localhost:2181 0:0:0:0:0:0:0:1", "rs-1:16020row": "rs-1:16020 ", "h/<unresolved>:16020": "h:16020 ", "[2001:db8::1]:1": "", "x": ""} {
		srv, addr, ok := endpoint(in, 0)
		got := ""
		if ok {
			got = srv.String() + " " + addr
		}
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
