package hbase_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// replicatedCluster has a table "t" of three regions with three replicas each,
// of 90 rows that every replica has seen.
func replicatedCluster(t *testing.T, opts ...hbase.Option) (*minihbase.Cluster, *hbase.Table) {
	t.Helper()
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1, Servers: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.CreateReplicatedTable(t.Context(), "t", []string{"f"}, 3, []byte("030"), []byte("060")); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	var puts []hbase.Op
	for i := range 90 {
		row := fmt.Sprintf("%03d", i)
		puts = append(puts, hbase.NewPut(row).Set("f", "q", []byte(row)))
	}
	if err := tab.Batch(t.Context(), puts).Err(); err != nil {
		t.Fatal(err)
	}
	return c, tab
}

// pausePrimary freezes the server of the region that holds a row, which is not
// that of hbase:meta.
func pausePrimary(t *testing.T, c *minihbase.Cluster, row string) {
	t.Helper()
	r, err := c.Locate("t", []byte(row))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := c.FindServer("meta"); err != nil || m == r.Index {
		for i := range 4 {
			if i == m || i == r.Replicas[0].Index || i == r.Replicas[1].Index {
				continue
			}
			if i != r.Index {
				if err := c.MoveRegion(t.Context(), r.Encoded, i); err != nil {
					t.Fatal(err)
				}
				r.Index = i
			}
		}
	}
	if err := c.PauseRegionServer(r.Index); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.ResumeRegionServer(r.Index) })
}

func TestTimelineReads(t *testing.T) {
	t.Parallel()
	c, tab := replicatedCluster(t, hbase.WithReplicaAfter(50*time.Millisecond, 50*time.Millisecond), hbase.WithOperationTimeout(time.Minute))
	get := func(row string) *hbase.Get { return &hbase.Get{Row: []byte(row), Consistency: hbase.Timeline} }
	if res, err := tab.Get(t.Context(), &hbase.Get{Row: []byte("015"), Consistency: hbase.Timeline, ReplicaID: 2}); err != nil || !res.Stale || string(res.Value("f", "q")) != "015" {
		t.Fatalf("replica 2: %v, %v", res, err)
	}
	pausePrimary(t, c, "015")
	began := time.Now()
	res, err := tab.Get(t.Context(), get("015"))
	if err != nil || !res.Stale || string(res.Value("f", "q")) != "015" {
		t.Fatalf("get: %v, %v", res, err)
	}
	// Without a replica it would have waited for its whole time.
	if d := time.Since(began); d > 15*time.Second {
		t.Errorf("get took %v", d)
	}
	if ok, err := tab.Exists(t.Context(), get("016")); err != nil || !ok {
		t.Errorf("exists: %v, %v", ok, err)
	}
	var gets []*hbase.Get
	for i := range 90 {
		gets = append(gets, get(fmt.Sprintf("%03d", i)))
	}
	all, err := tab.MultiGet(t.Context(), gets)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if string(r.Row) != string(gets[i].Row) || i < 30 && !r.Stale {
			t.Errorf("row %d: %q, stale %v", i, r.Row, r.Stale)
		}
	}
	// Scans, forwards and backwards, over the frozen region and the others.
	for _, reversed := range []bool{false, true} {
		s := &hbase.Scan{Consistency: hbase.Timeline, Caching: 7}
		if reversed {
			s.Reverse()
		}
		n := 0
		for r, err := range tab.Scan(t.Context(), s).Rows() {
			if err != nil {
				t.Fatal(err)
			}
			want := n
			if reversed {
				want = 89 - n
			}
			if !bytes.Equal(r.Row, fmt.Appendf(nil, "%03d", want)) || want < 30 && !r.Stale {
				t.Fatalf("row %d: %q, stale %v", want, r.Row, r.Stale)
			}
			n++
		}
		if n != 90 {
			t.Errorf("%d rows, reversed %v", n, reversed)
		}
	}
	if s := tab.Client().ReadStats(); s.ReplicaAnswers == 0 || s.ReplicaReads < s.ReplicaAnswers {
		t.Errorf("%+v", s)
	}
}

// A scan whose primary freezes under it goes on at a replica, with no row lost
// or repeated.
func TestTimelineScanGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	c, tab := replicatedCluster(t, hbase.WithReplicaAfter(20*time.Millisecond, 20*time.Millisecond), hbase.WithPingAfter(200*time.Millisecond))
	n := 0
	for r, err := range tab.Scan(t.Context(), &hbase.Scan{Consistency: hbase.Timeline, Caching: 4}).Rows() {
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Row) != fmt.Sprintf("%03d", n) {
			t.Fatalf("row %d: %q", n, r.Row)
		}
		if n == 40 {
			pausePrimary(t, c, "045")
		}
		n++
	}
	if n != 90 {
		t.Errorf("%d rows", n)
	}
}

func TestReplicaThatIsNot(t *testing.T) {
	t.Parallel()
	_, tab := faulty(t, minihbase.Options{})
	var none *hbase.NoReplicaError
	if _, err := tab.Get(t.Context(), &hbase.Get{Row: []byte("r"), Consistency: hbase.Timeline, ReplicaID: 1}); !errors.As(err, &none) {
		t.Errorf("got %v", err)
	}
}
