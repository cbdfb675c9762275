package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// The demo's table: family f; rows begin with four hexadecimal digits, so that
// the load spreads evenly over regions split by hexadecimal keys.
const (
	family         = "f"
	qualifierValue = "v"
	qualifierCount = "n"
	counterRows    = 64
)

// rowKey is the i-th row of a writer: a spread prefix, then the writer and its
// counter, so that verification can tell exactly which rows must exist.
func rowKey(writer int, i int64) string {
	return fmt.Sprintf("%04x-w%02d-%010d", spread(uint64(writer)<<40|uint64(i)), writer, i)
}

func counterKey(i int) string { return fmt.Sprintf("%04x-counter-%02d", i*0x10000/counterRows, i) }

// spread hashes to 16 bits (the finalizer of splitmix64).
func spread(x uint64) uint16 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return uint16(x>>16) ^ uint16(x>>48)
}

func value(writer int, i int64) string {
	return "value " + strconv.Itoa(writer) + "/" + strconv.FormatInt(i, 10)
}

// load is the workers and what they know to be true.
type load struct {
	table    *hbase.Table
	rec      *recorder
	timeout  time.Duration // of one operation
	writers  int
	acked    []atomic.Int64 // per writer: rows 0..acked-1 are acknowledged, but for holes
	holes    sync.Map       // row -> struct{}: puts that failed, which may or may not exist
	counted  [counterRows]atomic.Int64
	doubtful [counterRows]atomic.Int64 // increments that failed: stored may exceed acked by so many
	lost     atomic.Int64
	doubled  atomic.Int64
	disorder atomic.Int64
	scans    atomic.Int64
	pause    func(context.Context, time.Duration) // between operations of one worker
}

// run starts the workers and returns when ctx has ended and all have stopped.
func (l *load) run(ctx context.Context, perKind int) {
	l.acked = make([]atomic.Int64, l.writers)
	var wg sync.WaitGroup
	for w := range l.writers {
		wg.Go(func() { l.write(ctx, w) })
	}
	for w := range perKind {
		rng := rand.New(rand.NewPCG(uint64(w), 7))
		wg.Go(func() { l.increment(ctx, rng) })
		rng2 := rand.New(rand.NewPCG(uint64(w), 11))
		wg.Go(func() { l.read(ctx, rng2) })
	}
	wg.Go(func() { l.scan(ctx) })
	wg.Wait()
}

// do runs one operation under its own deadline. The end of the run is no
// failure of the operation: it is let finish.
func (l *load) do(ctx context.Context, k Kind, f func(context.Context) error) error {
	opCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
	defer cancel()
	begin := time.Now()
	err := f(opCtx)
	l.rec.record(k, begin, time.Now(), err)
	return err
}

func (l *load) write(ctx context.Context, w int) {
	for i := int64(0); ctx.Err() == nil; i++ {
		row := rowKey(w, i)
		err := l.do(ctx, KindPut, func(ctx context.Context) error {
			return l.table.Put(ctx, hbase.NewPut(row).Set(family, qualifierValue, []byte(value(w, i))))
		})
		if err != nil {
			l.holes.Store(row, struct{}{})
		}
		l.acked[w].Store(i + 1)
		l.pause(ctx, 0)
	}
}

func (l *load) increment(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		i := rng.IntN(counterRows)
		err := l.do(ctx, KindIncrement, func(ctx context.Context) error {
			_, err := l.table.Increment(ctx, hbase.NewIncrement(counterKey(i)).Add(family, qualifierCount, 1))
			return err
		})
		if err != nil {
			l.doubtful[i].Add(1)
		} else {
			l.counted[i].Add(1)
		}
		l.pause(ctx, 0)
	}
}

// read gets a random acknowledged row: it must be there, with its value.
func (l *load) read(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		w := rng.IntN(l.writers)
		n := l.acked[w].Load()
		if n == 0 {
			l.pause(ctx, 10*time.Millisecond)
			continue
		}
		i := rng.Int64N(n)
		row := rowKey(w, i)
		if _, hole := l.holes.Load(row); hole {
			continue
		}
		var res *hbase.Result
		err := l.do(ctx, KindGet, func(ctx context.Context) (err error) {
			res, err = l.table.Get(ctx, hbase.NewGet(row).Column(family, qualifierValue))
			return err
		})
		if err == nil && string(res.Value(family, qualifierValue)) != value(w, i) {
			l.lost.Add(1)
		}
		l.pause(ctx, 0)
	}
}

// scan reads the whole table over and over and checks that rows come in order,
// once each, and that every row acknowledged before it began is among them.
func (l *load) scan(ctx context.Context) {
	for ctx.Err() == nil {
		before := l.snapshot()
		var seen *census
		err := l.do(ctx, KindScan, func(ctx context.Context) (err error) {
			seen, err = l.census(ctx)
			return err
		})
		if err == nil {
			l.scans.Add(1)
			l.doubled.Add(seen.repeated)
			l.disorder.Add(seen.disordered)
			l.lost.Add(l.missing(before, seen))
		}
		l.pause(ctx, 50*time.Millisecond)
	}
}

func (l *load) snapshot() []int64 {
	s := make([]int64, l.writers)
	for w := range s {
		s[w] = l.acked[w].Load()
	}
	return s
}

// census is what one full scan saw.
type census struct {
	rows       []map[int64]struct{} // per writer
	counters   map[string]int64
	repeated   int64
	disordered int64
	total      int64
}

func (l *load) census(ctx context.Context) (*census, error) {
	c := &census{rows: make([]map[int64]struct{}, l.writers), counters: map[string]int64{}}
	for w := range c.rows {
		c.rows[w] = map[int64]struct{}{}
	}
	var last string
	for res, err := range l.table.Scan(ctx, &hbase.Scan{Prefetch: hbase.PrefetchAlways}).Rows() {
		if err != nil {
			return nil, err
		}
		row := string(res.Row)
		switch {
		case row == last:
			c.repeated++
		case row < last:
			c.disordered++
		}
		last = row
		var hash, w int
		var i int64
		if n, _ := fmt.Sscanf(row, "%04x-w%02d-%010d", &hash, &w, &i); n == 3 && w < l.writers {
			c.rows[w][i] = struct{}{}
			if string(res.Value(family, qualifierValue)) == value(w, i) {
				c.total++
			}
		} else if n, ok := res.Int64(family, qualifierCount); ok {
			c.counters[row] = n
		}
	}
	return c, nil
}

// missing counts rows that were acknowledged before a scan and not seen by it.
func (l *load) missing(before []int64, c *census) int64 {
	var n int64
	for w, acked := range before {
		for i := range acked {
			if _, ok := c.rows[w][i]; !ok {
				if _, hole := l.holes.Load(rowKey(w, i)); !hole {
					n++
				}
			}
		}
	}
	return n
}

// verify compares, after the load, what was acknowledged with what is stored.
func (l *load) verify(ctx context.Context, v *Verdict) error {
	c, err := l.census(ctx)
	if err != nil {
		return fmt.Errorf("final scan: %w", err)
	}
	holes := int64(0)
	l.holes.Range(func(any, any) bool { holes++; return true })
	acked := l.snapshot()
	for _, n := range acked {
		v.AckedPuts += n
	}
	v.AckedPuts -= holes
	v.StoredPuts = c.total
	v.Lost = l.lost.Load() + l.missing(acked, c)
	v.Doubled = l.doubled.Load() + c.repeated
	v.Disordered = l.disorder.Load() + c.disordered
	v.FullScans = l.scans.Load() + 1
	for i := range counterRows {
		ack, doubt := l.counted[i].Load(), l.doubtful[i].Load()
		stored := c.counters[counterKey(i)]
		v.AckedIncrements += ack
		v.StoredIncrements += stored
		v.Lost += max(0, ack-stored)
		v.Doubled += max(0, stored-ack-doubt)
	}
	return nil
}

// ErrNotPossible is what a Cluster answers to a fault it cannot cause; the
// demo goes on without it.
var ErrNotPossible = errors.New("not possible on this cluster")
