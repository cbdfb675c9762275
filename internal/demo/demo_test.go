package demo

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDemo plays the whole script in a few seconds and checks the account, the
// report in its three forms and the plain live view.
func TestDemo(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1, RecoveryDelay: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var live bytes.Buffer
	run, err := Start(t.Context(), Config{
		Client: client, Cluster: &EmbeddedCluster{c}, Regions: 8, Length: 3 * time.Second, Workers: 2,
		Timeout: 20 * time.Second, Progress: NewLive(&live, false, 0).Show,
	})
	if err != nil {
		t.Fatal(err)
	}
	v := run.Verdict
	if !v.OK || v.Failed+int(v.Lost+v.Doubled+v.Disordered) != 0 {
		var text strings.Builder
		v.WriteText(&text)
		t.Fatalf("it did not hold:\n%s", text.String())
	}
	if v.AckedPuts == 0 || v.AckedPuts != v.StoredPuts || v.AckedIncrements == 0 || v.AckedIncrements != v.StoredIncrements {
		t.Errorf("puts %d acknowledged, %d stored; increments %d, %d", v.AckedPuts, v.StoredPuts, v.AckedIncrements, v.StoredIncrements)
	}
	if len(v.Events) != 6 || !v.Counted {
		t.Errorf("%d events, counted %v; want 6 and true", len(v.Events), v.Counted)
	}
	var doc bytes.Buffer
	if err := v.WriteJSON(&doc); err != nil {
		t.Fatal(err)
	}
	var back Verdict
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil || back.Operations != v.Operations {
		t.Errorf("the JSON verdict reads back as %d operations, %v", back.Operations, err)
	}
	var page bytes.Buffer
	if err := run.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	checkSVG(t, page.String())
	for _, want := range []string{"It held fast.", "kill -9 of", "Who held what"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.String(), "http://") || strings.Contains(page.String(), "https://") {
		t.Error("the page is not self-contained")
	}
	for _, want := range []string{"creating the table", "load", "kill -9 of", "verifying"} {
		if !strings.Contains(live.String(), want) {
			t.Errorf("the live view lacks %q", want)
		}
	}
}

// checkSVG parses every picture of the page as XML.
func checkSVG(t *testing.T, page string) {
	t.Helper()
	n := 0
	for rest := page; ; n++ {
		i := strings.Index(rest, "<svg")
		if i < 0 {
			break
		}
		j := strings.Index(rest[i:], "</svg>")
		if j < 0 {
			t.Fatal("an svg does not end")
		}
		dec := xml.NewDecoder(strings.NewReader(rest[i : i+j+6]))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("picture %d: %v", n, err)
			}
		}
		rest = rest[i+j+6:]
	}
	if n < 2 {
		t.Errorf("%d pictures, want the timeline and the map", n)
	}
}

// TestVerdictFails proves that the account can come out bad.
func TestVerdictFails(t *testing.T) {
	for name, v := range map[string]Verdict{
		"failed":       {Failed: 1},
		"lost":         {Lost: 1},
		"doubled":      {Doubled: 1},
		"out of order": {Disordered: 1},
		"event":        {Events: []EventVerdict{{Err: "no"}}},
	} {
		v.judge()
		if v.OK {
			t.Errorf("%s: the verdict is OK", name)
		}
	}
	var good Verdict
	if good.judge(); !good.OK {
		t.Error("nothing wrong, yet the verdict is not OK")
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Millisecond)
	}
	for _, tc := range []struct {
		q    float64
		want time.Duration
	}{{0, time.Millisecond}, {0.5, 500 * time.Millisecond}, {0.99, 990 * time.Millisecond}} {
		got := h.quantile(tc.q)
		if got < tc.want*94/100 || got > tc.want*106/100 {
			t.Errorf("quantile %v = %v, want %v within 6 %%", tc.q, got, tc.want)
		}
	}
	if h.longest != time.Second {
		t.Errorf("longest %v", h.longest)
	}
	for _, d := range []time.Duration{0, time.Microsecond, 15 * time.Microsecond, 16 * time.Microsecond, 31 * time.Microsecond, 32 * time.Microsecond, time.Second, 24 * time.Hour} {
		i := h.index(d)
		if h.value(i) > d {
			t.Errorf("%v falls into bucket %d, which begins at %v", d, i, h.value(i))
		}
	}
}
