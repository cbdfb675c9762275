package route

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// cluster is a model of HBase as far as routes go: regions on servers, and
// hbase:meta, which hears of changes a little later than the servers.
type cluster struct {
	t   *testing.T
	rng *rand.Rand
	f   *fakeMeta
	lag time.Duration // at most, of meta

	mu      sync.Mutex
	regions []*truth // sorted, without holes
	alive   map[meta.ServerName]bool
	servers []meta.ServerName // present incarnations
	nextID  uint64
	seq     int64
	hints   map[string]meta.Location // by encoded name and server: where it went
	changes sync.WaitGroup           // of meta, to come
	since   map[string]time.Time     // when meta told the truth about a region
	well    time.Time                // when meta answered again
}

type truth struct {
	region meta.Region
	server meta.ServerName
	seq    int64
	open   bool
}

type refusal int

const (
	served refusal = iota
	notServing
	movedAway
	refused
)

// call is a request to a route's server.
func (k *cluster) call(r *Route, row []byte) (refusal, meta.Location) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := r.Server().Name()
	if !k.alive[name] {
		return refused, meta.Location{}
	}
	for _, x := range k.regions {
		if x.region.ID == r.RegionID() && bytes.Equal(x.region.Start, r.Start()) {
			if x.open && x.server == name && x.region.Contains(row) {
				return served, meta.Location{Region: x.region}
			}
			break
		}
	}
	if to, ok := k.hints[r.Encoded()+name.String()]; ok && k.rng.IntN(3) > 0 {
		return movedAway, to
	}
	return notServing, meta.Location{}
}

// tell brings a change to meta, later.
func (k *cluster) tell(change func()) {
	d := time.Duration(k.rng.Int64N(int64(k.lag) + 1))
	k.changes.Add(1)
	time.AfterFunc(d, func() {
		defer k.changes.Done()
		change()
	})
}

func (k *cluster) live() []meta.ServerName {
	return slices.DeleteFunc(slices.Clone(k.servers), func(n meta.ServerName) bool { return !k.alive[n] })
}

// assign opens a region somewhere, after a while. Under mu.
func (k *cluster) assign(x *truth, closed time.Duration) {
	k.changes.Add(1)
	time.AfterFunc(closed, func() {
		defer k.changes.Done()
		k.mu.Lock()
		defer k.mu.Unlock()
		live := k.live()
		x.server = live[k.rng.IntN(len(live))]
		k.seq++
		x.seq, x.open = k.seq, true
		l := meta.Location{Region: x.region, Server: x.server, SeqNum: x.seq, State: "OPEN"}
		region := x.region
		k.tell(func() {
			k.f.mu.Lock()
			_, found := slices.BinarySearchFunc(k.f.rows, region.Name(), func(r metaRow, n []byte) int { return meta.CompareRows(r.name, n) })
			k.f.mu.Unlock()
			if found { // not split or merged away meanwhile
				k.f.change(func(o *meta.Location) bool {
					if o.Region.ID == region.ID && bytes.Equal(o.Region.Start, region.Start) && o.SeqNum < l.SeqNum && !o.Region.Split {
						*o = l
						k.since[region.EncodedName()] = time.Now()
					}
					return true
				})
			}
		})
	})
}

func (k *cluster) fault() {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := k.rng.IntN(len(k.regions))
	x := k.regions[i]
	switch k.rng.IntN(6) {
	case 0, 1: // move
		if !x.open {
			return
		}
		x.open = false
		from := x.server
		k.assign(x, time.Duration(k.rng.Int64N(int64(300*time.Millisecond))))
		enc := x.region.EncodedName()
		k.changes.Add(1)
		time.AfterFunc(300*time.Millisecond, func() {
			defer k.changes.Done()
			k.mu.Lock()
			defer k.mu.Unlock()
			k.hints[enc+from.String()] = meta.Location{Server: x.server, SeqNum: x.seq - 1}
		})
	case 2: // split
		mid := append(bytes.Clone(x.region.Start), byte('a'+k.rng.IntN(20)))
		if !x.open || len(x.region.End) > 0 && bytes.Compare(mid, x.region.End) >= 0 || len(k.regions) > 200 {
			return
		}
		k.nextID++
		a, b, p := x.region, x.region, x.region
		a.ID, b.ID, a.End, b.Start = k.nextID, k.nextID, mid, mid
		p.Offline, p.Split = true, true
		da := &truth{region: a, server: x.server, seq: 1, open: k.rng.IntN(2) == 0}
		db := &truth{region: b, server: x.server, seq: 1, open: da.open}
		k.regions = slices.Replace(k.regions, i, i+1, da, db)
		state := "OPEN"
		if !da.open {
			state = "CLOSED"
			k.assign(da, 200*time.Millisecond)
			k.assign(db, 400*time.Millisecond)
		}
		// One atomic change of meta, and meta knows before the servers do.
		k.f.put(meta.Location{Region: p, Server: x.server, SeqNum: x.seq, State: "SPLIT"},
			meta.Location{Region: a, Server: x.server, SeqNum: 1, State: state}, meta.Location{Region: b, Server: x.server, SeqNum: 1, State: state})
		k.f.mu.Lock()
		k.since[a.EncodedName()], k.since[b.EncodedName()] = time.Now(), time.Now()
		k.f.mu.Unlock()
		if k.rng.IntN(2) == 0 {
			k.f.delete(p)
		}
	case 3: // merge
		if i+1 >= len(k.regions) || !x.open || !k.regions[i+1].open {
			return
		}
		y := k.regions[i+1]
		k.nextID++
		m := &truth{region: x.region, server: x.server}
		m.region.ID, m.region.End = k.nextID, y.region.End
		k.regions = slices.Replace(k.regions, i, i+2, m)
		k.f.mu.Lock()
		names := []string{string(x.region.Name()), string(y.region.Name())}
		k.f.rows = slices.DeleteFunc(k.f.rows, func(r metaRow) bool { return slices.Contains(names, string(r.name)) })
		k.f.mu.Unlock()
		k.f.put(meta.Location{Region: m.region, Server: x.server, SeqNum: 1, State: "CLOSED"})
		k.assign(m, 150*time.Millisecond)
	case 4: // kill; the address may come back as another incarnation
		live := k.live()
		if len(live) < 3 {
			return
		}
		dead := live[k.rng.IntN(len(live))]
		k.alive[dead] = false
		for _, x := range k.regions {
			if x.open && x.server == dead {
				x.open = false
				k.assign(x, 500*time.Millisecond+time.Duration(k.rng.Int64N(int64(2*time.Second))))
			}
		}
		next := dead
		next.StartCode += 1000
		k.changes.Add(1)
		time.AfterFunc(time.Duration(k.rng.Int64N(int64(3*time.Second))), func() {
			defer k.changes.Done()
			k.mu.Lock()
			defer k.mu.Unlock()
			for i := range k.servers {
				if k.servers[i] == dead {
					k.servers[i] = next
				}
			}
			k.alive[next] = true
		})
	case 5: // reopen in place
		if x.open {
			x.open = false
			k.assign(x, 50*time.Millisecond)
		}
	}
}

// operation is what a client does with a row: it follows the error table. late
// is how long it went on after the region could be found and reached.
func (k *cluster) operation(ctx context.Context, c *Cache, row []byte) (attempts int, late time.Duration, err error) {
	began := time.Now()
	for attempts = 1; ; attempts++ {
		r, err := c.Locate(ctx, tbl, row)
		if err != nil {
			return attempts, 0, err
		}
		if !r.Contains(row) {
			k.t.Errorf("row %q: route %v", row, r)
		}
		what, hint := k.call(r, row)
		switch what {
		case served:
			k.f.mu.Lock()
			for _, t := range []time.Time{k.since[hint.Region.EncodedName()], k.well} {
				if t.After(began) {
					began = t
				}
			}
			k.f.mu.Unlock()
			return attempts, time.Since(began), nil
		case refused:
			k.f.dead.Store(r.Server().Name(), true)
			r.Server().Refused(errDown)
		case movedAway:
			if c.Moved(r, hint.Server, hint.SeqNum) != nil {
				continue
			}
			c.Rejected(r)
		case notServing:
			c.Rejected(r)
		}
		timer := time.NewTimer(time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return attempts, 0, ctx.Err()
		}
	}
}

func maximum(m *atomic.Int64, d time.Duration) {
	for old := m.Load(); int64(d) > old && !m.CompareAndSwap(old, int64(d)); old = m.Load() {
	}
}

// Whatever happens to the cluster, callers get through while it happens, and
// once it is over every row is served within two seconds, without more reads
// of meta than there are regions (G8).
func TestFaultyCluster(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newCache(t, Config{})
				f.setDelay(2 * time.Millisecond)
				k := &cluster{
					t: t, rng: rand.New(rand.NewPCG(seed, 99)), f: f, lag: []time.Duration{0, 50 * time.Millisecond, 700 * time.Millisecond}[seed%3],
					alive: map[meta.ServerName]bool{}, nextID: 1700000000000, seq: 10, hints: map[string]meta.Location{}, since: map[string]time.Time{},
				}
				for i := range 6 {
					k.servers = append(k.servers, server(1+i))
					k.alive[server(1+i)] = true
				}
				f.fill(tbl, 40, 6)
				for i := range 40 {
					k.regions = append(k.regions, &truth{region: regionOf(tbl, i, 40), server: server(1 + i%6), seq: 10, open: true})
				}
				var ill atomic.Bool
				rngMeta := rand.New(rand.NewPCG(seed, 5))
				var mu sync.Mutex
				f.before = func(*MetaScan, [][]byte) error {
					mu.Lock()
					defer mu.Unlock()
					if ill.Load() || rngMeta.IntN(50) == 0 {
						return errDown
					}
					return nil
				}
				stop := make(chan struct{})
				var wg sync.WaitGroup
				var ops, most, latest atomic.Int64
				for w := range 16 {
					wg.Go(func() {
						rng := rand.New(rand.NewPCG(seed, uint64(w)))
						for {
							select {
							case <-stop:
								return
							default:
							}
							row := append(key(rng.IntN(40)), byte('a'+rng.IntN(26)))
							ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
							began := time.Now()
							n, late, err := k.operation(ctx, c, row)
							cancel()
							if err != nil {
								t.Errorf("row %q: %v after %d attempts and %v", row, err, n, time.Since(began))
								return
							}
							ops.Add(1)
							maximum(&most, time.Since(began))
							maximum(&latest, late)
							time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
						}
					})
				}
				driver := rand.New(rand.NewPCG(seed, 7))
				for range 150 {
					time.Sleep(time.Duration(driver.IntN(200)) * time.Millisecond)
					k.fault()
					if driver.IntN(30) == 0 {
						ill.Store(true)
						time.AfterFunc(time.Duration(driver.Int64N(int64(2*time.Second))), func() {
							f.mu.Lock()
							k.well = time.Now()
							f.mu.Unlock()
							ill.Store(false)
						})
					}
				}
				k.changes.Wait()
				ill.Store(false)
				healthy := time.Now()
				close(stop)
				wg.Wait()
				if d := time.Since(healthy); d > 2500*time.Millisecond {
					t.Errorf("the last caller got through %v after the cluster was healthy", d)
				}
				reads := f.reads()
				began := time.Now()
				for _, x := range k.regions {
					ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
					wg.Go(func() {
						defer cancel()
						if n, _, err := k.operation(ctx, c, x.region.Start); err != nil {
							t.Errorf("healthy again, row %q: %v after %d attempts\n%s", x.region.Start, err, n, c.Explain(tbl, x.region.Start))
						}
					})
				}
				wg.Wait()
				t.Logf("%d operations, longest %v, latest %v, last %v after the end, %d reads, %d regions; then all served after %v and %d reads", ops.Load(), time.Duration(most.Load()), time.Duration(latest.Load()), began.Sub(healthy), reads, len(k.regions), time.Since(began), f.reads()-reads)
				if d := time.Since(began); d > 2500*time.Millisecond {
					t.Errorf("all rows served %v after the cluster was healthy", d)
				}
				if n := f.reads() - reads; n > int64(len(k.regions)) {
					t.Errorf("%d reads for %d regions afterwards", n, len(k.regions))
				}
				if d := time.Duration(latest.Load()); d > 2500*time.Millisecond {
					t.Errorf("somebody was served %v after it was possible", d)
				}
				time.Sleep(time.Second) // routes are read that nobody waits for
				if s := c.Stats(); s.Waiters != 0 || s.Gates != 0 || s.Reads != 0 {
					t.Errorf("left behind: %+v", s)
				}
			})
		})
	}
}
