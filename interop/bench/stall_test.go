//go:build interop

package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
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
// itself needs. The floor are probers that get, and increment, the same row at
// every server every 2 ms over raw sockets: the longest time in which none of
// them was served. Beside them callers get and increment through the client, and
// what counts is the same: the longest time in which none of them had an answer.
// (The longest call would count what a busy server takes for a call that it got
// before the region was closed.) The region is moved ten times, then its server is
// killed.
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
	measure := func(fault func()) (floor, took [2]time.Duration) {
		var probers, callers sync.WaitGroup
		var done atomic.Bool
		served := [2]*gaps{newGaps(), newGaps()}
		for _, s := range live {
			loc := region
			loc.Server = s
			probers.Go(func() { probe(loc, dialRaw, &done, served[0]) })
			probers.Go(func() { probe(loc, dialRawIncrement, &done, served[1]) })
		}
		answered := [2]*gaps{newGaps(), newGaps()}
		for i := range 8 {
			callers.Go(func() {
				for !done.Load() {
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
					answered[i%2].now()
				}
			})
		}
		time.Sleep(200 * time.Millisecond)
		fault()
		time.Sleep(200 * time.Millisecond)
		done.Store(true)
		callers.Wait()
		probers.Wait()
		for i := range floor {
			floor[i], took[i] = served[i].longest(), answered[i].longest()
		}
		return floor, took
	}
	for range b.N {
		var report strings.Builder
		fmt.Fprintf(&report, "%-10s%16s%16s%16s%16s%16s", "", "reads off ms", "no Get ms", "writes off ms", "no Increment ms", "beyond ms")
		var beyond []time.Duration
		line := func(name string, floor, took [2]time.Duration) time.Duration {
			d := max(took[0]-floor[0], took[1]-floor[1])
			fmt.Fprintf(&report, "\n%-10s%16.1f%16.1f%16.1f%16.1f%16.1f", name, us(floor[0])/1e3, us(took[0])/1e3, us(floor[1])/1e3, us(took[1])/1e3, us(d)/1e3)
			return d
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
			floor, took := measure(func() {
				if err := adm.MoveRegion(ctx, loc.Region.EncodedName(), to); err != nil {
					b.Error(err)
				}
			})
			beyond = append(beyond, line(fmt.Sprintf("move %d", i+1), floor, took))
		}
		floor, took := measure(func() {
			loc, err := adm.Locate(ctx, table, []byte(row))
			if err != nil {
				b.Error(err)
				return
			}
			c.Kill(c.ServerNumber(loc.Server.Address()))
			time.Sleep(75 * time.Second)
		})
		killed := line("kill -9", floor, took)
		b.Log("\n" + report.String())
		slices.Sort(beyond)
		b.ReportMetric(us(beyond[len(beyond)/2])/1e3, "ms-beyond-a-move")
		b.ReportMetric(us(beyond[len(beyond)-1])/1e3, "ms-beyond-the-worst-move")
		b.ReportMetric(us(killed)/1e3, "ms-beyond-a-kill")
	}
}

// probe asks one server for the row, or to increment it, again and again.
func probe(loc admin.RegionLocation, dial func(admin.RegionLocation) (*raw, error), done *atomic.Bool, served *gaps) {
	var r *raw
	for !done.Load() {
		if r == nil {
			var err error
			if r, err = dial(loc); err != nil {
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
