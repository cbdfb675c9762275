//go:build interop

package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// BenchmarkStall asks how long callers stand still beyond what the cluster
// itself needs. The floor is a prober that asks every server for the same row
// every 2 ms over raw sockets: the longest time in which none of them served
// it. Beside it callers get and increment through the client. The region is
// moved ten times, then its server is killed.
func BenchmarkStall(b *testing.B) {
	ctx := context.Background()
	c, client := startReal(b)
	region := prepare(b, client)
	adm := client.Admin()
	live, err := adm.RegionServers(ctx)
	if err != nil {
		b.Fatal(err)
	}
	t, err := client.Table(table)
	if err != nil {
		b.Fatal(err)
	}
	measure := func(fault func()) (floor, get, inc time.Duration) {
		var probers, callers sync.WaitGroup
		var done atomic.Bool
		served := newGaps()
		for _, s := range live {
			loc := region
			loc.Server = s
			probers.Go(func() { probe(b, loc, &done, served) })
		}
		var longest [2]atomic.Int64
		for i := range 8 {
			callers.Go(func() {
				for !done.Load() {
					began := time.Now()
					ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
					var err error
					if i%2 == 0 {
						_, err = t.Get(ctx, hbase.NewGet(row))
					} else {
						_, err = t.IncrementColumn(ctx, []byte(row), "f", "n", 1)
					}
					cancel()
					if err != nil {
						b.Error(err)
						return
					}
					raise(&longest[i%2], time.Since(began))
				}
			})
		}
		time.Sleep(200 * time.Millisecond)
		fault()
		time.Sleep(200 * time.Millisecond)
		done.Store(true)
		callers.Wait()
		probers.Wait()
		return served.longest(), time.Duration(longest[0].Load()), time.Duration(longest[1].Load())
	}
	for range b.N {
		var report strings.Builder
		fmt.Fprintf(&report, "%-10s%16s%16s%16s%16s", "", "cluster ms", "get ms", "increment ms", "beyond ms")
		var worst time.Duration
		line := func(name string, floor, get, inc time.Duration) time.Duration {
			beyond := max(get, inc) - floor
			fmt.Fprintf(&report, "\n%-10s%16.1f%16.1f%16.1f%16.1f", name, us(floor)/1e3, us(get)/1e3, us(inc)/1e3, us(beyond)/1e3)
			return beyond
		}
		for i := range 10 {
			loc, err := adm.Locate(ctx, table, []byte(row))
			if err != nil {
				b.Fatal(err)
			}
			to := live[i%len(live)]
			if to == loc.Server {
				to = live[(i+1)%len(live)]
			}
			floor, get, inc := measure(func() {
				if err := adm.MoveRegion(ctx, loc.Region.EncodedName(), to); err != nil {
					b.Error(err)
				}
			})
			worst = max(worst, line(fmt.Sprintf("move %d", i+1), floor, get, inc))
		}
		floor, get, inc := measure(func() {
			loc, err := adm.Locate(ctx, table, []byte(row))
			if err != nil {
				b.Error(err)
				return
			}
			c.Kill(c.ServerNumber(loc.Server.Address()))
			time.Sleep(75 * time.Second)
		})
		killed := line("kill -9", floor, get, inc)
		b.Log("\n" + report.String())
		b.ReportMetric(us(worst)/1e3, "ms-beyond-a-move")
		b.ReportMetric(us(killed)/1e3, "ms-beyond-a-kill")
	}
}

// probe asks one server for the row again and again.
func probe(b *testing.B, loc admin.RegionLocation, done *atomic.Bool, served *gaps) {
	var r *raw
	for !done.Load() {
		if r == nil {
			var err error
			if r, err = dialRaw(loc); err != nil {
				time.Sleep(2 * time.Millisecond)
				continue
			}
		}
		switch ok, err := r.served(); {
		case err != nil:
			r.close()
			r = nil
		case ok:
			served.now()
		}
		time.Sleep(2 * time.Millisecond)
	}
	if r != nil {
		r.close()
	}
}

// served says whether the frame was answered with a row and not an exception.
func (r *raw) served() (bool, error) {
	if err := r.conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false, err
	}
	if _, err := r.conn.Write(r.frame); err != nil {
		return false, err
	}
	if _, err := io.ReadFull(r.conn, r.in[:4]); err != nil {
		return false, err
	}
	n := int(binary.BigEndian.Uint32(r.in))
	if n+4 > len(r.in) {
		return false, fmt.Errorf("an answer of %d bytes", n)
	}
	body := r.in[4 : 4+n]
	if _, err := io.ReadFull(r.conn, body); err != nil {
		return false, err
	}
	size, w := binary.Uvarint(body)
	if w <= 0 || size > uint64(len(body)-w) {
		return false, fmt.Errorf("an answer that cannot be read")
	}
	var h pb.ResponseHeader
	if err := h.UnmarshalVT(body[w : w+int(size)]); err != nil {
		return false, err
	}
	return h.Exception == nil, nil
}

// gaps finds the longest time between two moments.
type gaps struct {
	begin     time.Time
	last, gap atomic.Int64
}

func newGaps() *gaps { return &gaps{begin: time.Now()} }

func (g *gaps) now() {
	now := time.Since(g.begin)
	raise(&g.gap, now-time.Duration(g.last.Swap(int64(now))))
}

func (g *gaps) longest() time.Duration { return time.Duration(g.gap.Load()) }

// raise lifts v to d if it is below.
func raise(v *atomic.Int64, d time.Duration) {
	for {
		old := v.Load()
		if int64(d) <= old || v.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}
