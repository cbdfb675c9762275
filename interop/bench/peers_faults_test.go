//go:build interop

package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/interop/peers"
)

const counters = 1024

// BenchmarkPeersFaults lets every peer meet the very same faults: 32 callers
// that increment and one that scans, in tables of their own; a server stopped
// for 20 s, with more callers who keep to one region each, one killed, the one of hbase:meta killed, and ten moves.
func BenchmarkPeersFaults(b *testing.B) {
	ctx := context.Background()
	c, client := startReal(b)
	all := startPeers(b, c)
	us := all[0]
	for _, p := range all {
		create(b, client, "inc_"+p.short, 16, counters)
		create(b, client, "scan_"+p.short, 16, counters)
		create(b, client, "own_"+p.short, 16, counters)
		us.do(b, "bulk mode=batch callers=1 rows=%d table=scan_%s", counters, p.short)
	}
	acked := map[string]float64{}
	for range b.N {
		for _, f := range []struct {
			name string
			do   func()
		}{
			{"SIGSTOP of a server for 20 s", func() {
				address := serverOf(b, client, "inc_go", false)
				beside := startBeside(b, client, all, address)
				c.Pause(c.ServerNumber(address))
				beside(20 * time.Second)
				c.Resume(c.ServerNumber(address))
				time.Sleep(5 * time.Second)
				for _, p := range all {
					p.do(b, "stop name=own")
				}
			}},
			{"10 moves of each table", func() { moves(ctx, b, client, all) }},
			{"kill -9 of a server", func() { kill(b, c, serverOf(b, client, "inc_go", false)) }},
			{"kill -9 of the server of hbase:meta", func() { kill(b, c, serverOf(b, client, "hbase:meta", true)) }},
		} {
			for _, p := range all {
				p.do(b, "start name=inc kind=increment callers=32 rows=%d table=inc_%s", counters, p.short)
				p.do(b, "start name=scan kind=scan callers=1 rows=%d table=scan_%s", counters, p.short)
			}
			time.Sleep(5 * time.Second)
			f.do()
			var s strings.Builder
			fmt.Fprintf(&s, "%s\n  %-20s%14s%10s%14s%10s%14s%14s%10s%10s", f.name, "", "longest s", "gap s", "p99.9 ms", "errors",
				"acked", "stored", "scans", "failed")
			for _, p := range all {
				inc, scan := p.do(b, "stop name=inc"), p.do(b, "stop name=scan")
				acked[p.short] += inc.num("acked")
				stored := sum(ctx, b, client, "inc_"+p.short)
				fmt.Fprintf(&s, "\n  %-20s%14.2f%10.2f%14.0f%10.0f%14.0f%14.0f%10.0f%10.0f", p.name, inc.num("max_us")/1e6,
					inc.num("gap_ms")/1e3, inc.num("p999_us")/1e3, inc.num("errors"), acked[p.short], stored, scan.num("acked"), scan.num("errors"))
				if p == us && (inc.num("errors") > 0 || scan.num("errors") > 0 || stored != acked[p.short]) {
					b.Errorf("%s: %v %v", f.name, inc["first_error"], scan["first_error"])
				}
				// What a failed call has done is not known; the next fault counts afresh.
				acked[p.short] = stored
			}
			b.Log(s.String())
		}
	}
}

// startBeside starts callers that keep to one region each, and gives a function
// that says what became, while the server of the address was stopped, of the
// calls to the regions of the others: the increments acknowledged in a second,
// against what they were before. Callers of the stopped server do not count, as
// they have none.
func startBeside(b *testing.B, client *hbase.Client, all []*peer, address string) func(time.Duration) {
	const before = 5 * time.Second
	for _, p := range all {
		p.do(b, "start name=own kind=increment callers=32 rows=%d regions=16 table=own_%s", counters, p.short)
	}
	time.Sleep(before) // connections, routes, Java's compiler
	counted := func(d time.Duration) map[string]float64 {
		rate := map[string]float64{}
		for _, p := range all {
			rate[p.short] = -p.do(b, "count name=own").num("acked")
		}
		time.Sleep(d)
		for _, p := range all {
			rate[p.short] = (rate[p.short] + p.do(b, "count name=own").num("acked")) / d.Seconds()
		}
		return rate
	}
	usual := counted(before)
	return func(d time.Duration) {
		// Callers that were on their way to the stopped server are stuck by then.
		time.Sleep(time.Second)
		rate := counted(d - time.Second)
		for _, p := range all {
			regions, err := client.Admin().Regions(context.Background(), "own_"+p.short)
			if err != nil {
				b.Fatal(err)
			}
			others := 0
			for _, r := range regions {
				if r.Server.Address() != address {
					others++
				}
			}
			b.Logf("  %-20s%3d of 16 regions elsewhere: %6.0f increments/s before, of all; %6.0f while it was stopped, of theirs: %.2f x their share",
				p.name, others, usual[p.short], rate[p.short], rate[p.short]/(usual[p.short]*float64(others)/16))
		}
	}
}

// serverOf gives the address of a server that holds regions of the table; not
// the one of hbase:meta unless asked for.
func serverOf(b *testing.B, client *hbase.Client, table string, meta bool) string {
	b.Helper()
	ctx := context.Background()
	root, err := client.Admin().Regions(ctx, "hbase:meta")
	if err != nil {
		b.Fatal(err)
	}
	if meta {
		return root[0].Server.Address()
	}
	list, err := client.Admin().Regions(ctx, table)
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range list {
		if !l.Server.IsZero() && l.Server != root[0].Server {
			return l.Server.Address()
		}
	}
	b.Fatalf("all regions of %s are beside hbase:meta", table)
	return ""
}

// kill ends a server, and starts it again when the cluster has had the time to
// recover its regions.
func kill(b *testing.B, c *peers.Cluster, address string) {
	n := c.ServerNumber(address)
	c.Kill(n)
	time.Sleep(60 * time.Second)
	c.StartServer(n)
	time.Sleep(10 * time.Second)
}

// moves moves ten regions of each peer's tables to their next server.
func moves(ctx context.Context, b *testing.B, client *hbase.Client, all []*peer) {
	adm := client.Admin()
	live, err := adm.RegionServers(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10 {
		for _, p := range all {
			for _, table := range []string{"inc_", "scan_"} {
				regions, err := adm.Regions(ctx, table+p.short)
				if err != nil {
					b.Fatal(err)
				}
				r := regions[i%len(regions)]
				for n, s := range live {
					if s == r.Server {
						if err := adm.MoveRegion(ctx, r.Region.EncodedName(), live[(n+1)%len(live)]); err != nil {
							b.Fatal(err)
						}
						break
					}
				}
			}
		}
	}
}

func sum(ctx context.Context, b *testing.B, client *hbase.Client, table string) float64 {
	t, err := client.Table(table)
	if err != nil {
		b.Fatal(err)
	}
	var n int64
	for r, err := range t.Scan(ctx, nil).Rows() {
		if err != nil {
			b.Fatal(err)
		}
		v, _ := r.Int64("f", "n")
		n += v
	}
	return float64(n)
}
