package torture

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNotices tampers with the table behind the suite's back: a suite that
// notices nothing proves nothing.
func TestNotices(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	tab, err := client.Table("torture")
	if err != nil {
		t.Fatal(err)
	}
	d := newData(4, 8)
	counter, plain := d.counters[0].key, d.rows[2].key
	tests := []struct {
		name   string
		tamper func(ctx context.Context) error
		want   []string // parts of the report's error
	}{
		{"nothing", func(context.Context) error { return nil }, nil},
		{"a lost increment", func(ctx context.Context) error {
			_, err := tab.IncrementColumn(ctx, counter, family, counterColumn, -1)
			return err
		}, []string{"lost 1"}},
		{"a doubled increment", func(ctx context.Context) error {
			_, err := tab.IncrementColumn(ctx, counter, family, counterColumn, 1)
			return err
		}, []string{"1 too many"}},
		{"a jump", func(ctx context.Context) error {
			_, err := tab.IncrementColumn(ctx, counter, family, counterColumn, 1_000_000)
			return err
		}, []string{"increment of", "want between", "get: row", "too many"}},
		{"a lost row", func(ctx context.Context) error { return tab.Delete(ctx, hbase.NewDelete(plain)) },
			[]string{"get: row", "0 cells", "scan [", "final scan: row"}},
		{"a row too many", func(ctx context.Context) error {
			return tab.Put(ctx, hbase.NewPut(append(plain, 'x')).Set(family, staticColumn, nil))
		}, []string{"scan [", "final scan: row"}},
		{"half a row", func(ctx context.Context) error {
			return tab.Delete(ctx, hbase.NewDelete(d.rows[0].key).Column(family, wideColumn(3)))
		}, []string{"get: row", "40 cells, want 41"}},
		{"another value", func(ctx context.Context) error {
			return tab.Put(ctx, hbase.NewPut(plain).Set(family, staticColumn, []byte("x")))
		}, []string{"get: row", `fixed cell is "x"`}},
		{"failing calls", func(context.Context) error {
			_, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Table: "torture", Method: "Mutate"}, Times: 1,
				Action: minihbase.Fail, Exception: minihbase.Exception{Class: "DoNotRetryIOException"}})
			return err
		}, []string{"failed at", "DoNotRetryIOException"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &tampering{Embedded{Mini: c}, tt.tamper}
			rep, err := Run(t.Context(), Config{
				Client: client, Cluster: f, Regions: 4, Rows: 8, Workers: 12, Pace: time.Millisecond, Dwell: 150 * time.Millisecond,
				Plan: []Step{{Event: Move}},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := rep.Err(); err != nil {
				got = err.Error()
			}
			if tt.want == nil && got != "" {
				t.Errorf("noticed %s", got)
			}
			for _, w := range tt.want {
				if !strings.Contains(got, w) {
					t.Errorf("did not notice %q, only:\n%.2000s", w, got)
				}
			}
		})
	}
}

// tampering does something else as well when it moves a region.
type tampering struct {
	Embedded
	tamper func(context.Context) error
}

func (f *tampering) Move(ctx context.Context, encoded, server string) error {
	if err := f.tamper(ctx); err != nil {
		return err
	}
	return f.Embedded.Move(ctx, encoded, server)
}

func TestHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("quantile of nothing")
	}
	for i := range 100 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for _, q := range []struct {
		q    float64
		want time.Duration
	}{{0.01, time.Millisecond}, {0.5, 50 * time.Millisecond}, {0.99, 99 * time.Millisecond}, {1, 100 * time.Millisecond}} {
		got := h.quantile(q.q)
		if got < q.want || got > q.want*5/4+time.Microsecond {
			t.Errorf("quantile %v is %v, want %v up to a quarter more", q.q, got, q.want)
		}
	}
	for _, d := range []time.Duration{0, time.Microsecond, time.Second, time.Hour} {
		if i := bucket(d); d >= top(i) && i < len(h)-1 || i > 0 && d < top(i-1) {
			t.Errorf("%v is in bucket %d, %v to %v", d, i, top(i-1), top(i))
		}
	}
}
