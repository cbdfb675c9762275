//go:build interop

package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// manyRegions lets a server hold 1,000 regions that have been written to in a
// heap of 2 GB.
const manyRegions = `
<property><name>hbase.hregion.memstore.mslab.enabled</name><value>false</value></property>
`

const (
	scanRows = 500_000
	bulkRows = 200_000
)

// startReal starts HBase 2.6.4 for the peers, with the balancer off: what moves
// is moved by the benchmark.
func startReal(b *testing.B) (*peers.Cluster, *hbase.Client) {
	b.Setenv("HEAP", "2g")
	b.Setenv("EXTRA_SITE", manyRegions)
	c := peers.Start(b, peers.HBase26)
	client, err := hbase.Open(context.Background(), c.Address())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	if _, err := client.Admin().SetBalancer(context.Background(), false); err != nil {
		b.Fatal(err)
	}
	return c, client
}

// create makes a table whose regions begin at every step-th prefix of the
// worker's row names.
func create(b *testing.B, c *hbase.Client, name string, regions, prefixes int) {
	b.Helper()
	var splits [][]byte
	for i := 1; i < regions; i++ {
		splits = append(splits, fmt.Appendf(nil, "%04d", i*prefixes/regions))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := c.Admin().CreateTable(ctx, admin.NewTable(name, admin.NewFamily("f")), splits...); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPeers puts the client beside HBase's Java client, blocking and
// asynchronous, on one real HBase 2.6.4, round by round: `make bench-peers`.
// Each figure is the median of the rounds but the first, in which Java compiles.
func BenchmarkPeers(b *testing.B) {
	c, client := startReal(b)
	all := startPeers(b, c)
	us := all[0]
	create(b, client, "t16", 16, 10000)
	create(b, client, "t1000", 1000, 1000)
	for _, p := range all {
		create(b, client, "load_"+p.short, 16, 10000)
		create(b, client, "put_"+p.short, 16, 1000)
	}
	us.do(b, "bulk mode=batch callers=4 rows=%d table=t16", scanRows)
	us.do(b, "bulk mode=batch callers=1 rows=1000 table=t1000")
	if err := client.Admin().Flush(context.Background(), "t16"); err != nil {
		b.Fatal(err)
	}
	// Servers compile, too, whoever asks them.
	for range 3 {
		for _, p := range all {
			p.do(b, "get callers=64 seconds=5 table=t16 rows=%d", scanRows)
		}
	}
	b.Run("gets", func(b *testing.B) {
		for _, callers := range []int{1, 16, 64, 256} {
			t := newTally(b, fmt.Sprintf("%d callers of Get", callers), "per_s", "p50_us", "p99_us", "cpu_s_per_100k", "allocs_per_op")
			t.rounds(all, 4, func(p *peer) string {
				return fmt.Sprintf("get callers=%d seconds=3 table=t16 rows=%d", callers, scanRows)
			})
			t.report("per_s", false)
		}
	})
	b.Run("puts", func(b *testing.B) {
		t := newTally(b, "lone Put", "per_s", "p50_us", "p99_us", "cpu_s_per_100k", "allocs_per_op")
		t.rounds(all, 4, func(p *peer) string { return "put callers=1 seconds=3 rows=1000 table=put_" + p.short })
		t.report("per_s", false)
	})
	b.Run("bulk", func(b *testing.B) {
		for _, mode := range []string{"mode=mutator callers=1", "mode=batch callers=1", "mode=batch callers=4"} {
			t := newTally(b, "bulk load, "+mode, "per_s", "cpu_s_per_100k", "allocs_per_op")
			t.rounds(all, 6, func(p *peer) string { return fmt.Sprintf("bulk %s rows=%d table=load_%s", mode, bulkRows, p.short) })
			t.report("per_s", false)
		}
	})
	b.Run("scans", func(b *testing.B) {
		t := newTally(b, "full scan", "per_s", "cpu_s_per_100k", "allocs_per_op", "bytes_per_op")
		modes := map[string]string{}
		contenders := slices.Clone(all)
		for _, mode := range []string{"reuse", "lockstep", "parallel", "ordered", "parallel-reuse"} {
			alias := &peer{name: us.name + ", " + mode, short: us.short, stdin: us.stdin, out: us.out}
			contenders, modes[alias.name] = append(contenders, alias), mode
		}
		t.rounds(contenders, 9, func(p *peer) string { return "scan mode=" + cmp.Or(modes[p.name], "plain") + " table=t16" })
		t.report("per_s", false)
	})
	b.Run("cold", func(b *testing.B) { coldStart(b, all) })
}

// coldStart measures clients that know nothing.
func coldStart(b *testing.B, all []*peer) {
	// In processes of their own.
	fresh := func(t *tally, rounds int, command string) {
		var fresh []*peer
		for _, p := range all {
			fresh = append(fresh, startPeer(b, p.name, p.short, p.command))
		}
		time.Sleep(3 * time.Second) // what a process does before it is asked is not counted
		t.rounds(fresh, rounds, func(*peer) string { return command })
		for _, p := range fresh {
			p.end()
		}
	}
	t := newTally(b, "first Get of the process", "ms")
	for range 5 {
		fresh(t, 1, "cold table=t16")
	}
	t.report("ms", true)
	t = newTally(b, "first Get of a new client", "ms")
	t.rounds(all, 20, func(*peer) string { return "cold table=t16" })
	t.report("ms", true)
	t = newTally(b, "1,000 callers of one cold region", "ms", "meta_reads")
	t.rounds(all, 4, func(*peer) string { return "herd callers=1000 rows=1 table=t1000" })
	t.report("ms", true)
	t = newTally(b, "1,000 callers of 1,000 cold regions", "ms", "meta_reads")
	t.rounds(all, 4, func(*peer) string { return "herd callers=1000 rows=1000 table=t1000" })
	t.report("ms", true)
	t = newTally(b, "memory of a route", "bytes_per_route")
	fresh(t, 6, "routes table=t1000 rows=1000 other=t16")
	t.report("bytes_per_route", true)
}

// tally gathers the figures of one discipline.
type tally struct {
	b     *testing.B
	title string
	keys  []string
	names []string
	vals  map[string]map[string][]float64 // by peer and key
}

func newTally(b *testing.B, title string, keys ...string) *tally {
	return &tally{b: b, title: title, keys: keys, vals: map[string]map[string][]float64{}}
}

// rounds lets the peers take turns; of more than one round the first does not
// count.
func (t *tally) rounds(all []*peer, n int, command func(*peer) string) {
	for r := range n {
		for _, p := range all {
			f, err := p.try(command(p))
			if err != nil {
				t.b.Fatalf("%s: %s: %v", t.title, p.name, err)
			}
			if f.num("errors") > 0 {
				t.b.Errorf("%s: %s: %v errors: %v", t.title, p.name, f["errors"], f["first_error"])
			}
			if n > 1 && r == 0 {
				continue
			}
			if t.vals[p.name] == nil {
				t.vals[p.name] = map[string][]float64{}
				t.names = append(t.names, p.name)
			}
			for _, k := range t.keys {
				if _, ok := f[k]; ok {
					t.vals[p.name][k] = append(t.vals[p.name][k], f.num(k))
				}
			}
		}
	}
}

// report prints the table, and the ratio of the first peer to the best of the
// others as a metric.
func (t *tally) report(key string, lower bool) {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n  %-20s", t.title, "")
	for _, k := range t.keys {
		fmt.Fprintf(&s, "%16s", k)
	}
	for _, name := range t.names {
		fmt.Fprintf(&s, "\n  %-20s", name)
		for _, k := range t.keys {
			if v := t.vals[name][k]; len(v) > 0 {
				fmt.Fprintf(&s, "%16s", short(mid(v)))
			} else {
				fmt.Fprintf(&s, "%16s", "-")
			}
		}
	}
	t.b.Log(s.String())
	best := 0.0
	for _, name := range t.names[1:] {
		if strings.HasPrefix(name, t.names[0]) {
			continue
		}
		v := mid(t.vals[name][key])
		if best == 0 || (v < best) == lower {
			best = v
		}
	}
	if best > 0 {
		title := strings.Map(func(r rune) rune {
			if r == ' ' || r == ',' {
				return '-'
			}
			return r
		}, t.title)
		t.b.ReportMetric(mid(t.vals[t.names[0]][key])/best, title+"-ours/best")
	}
}

func short(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
