package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// Kind of call.
type Kind uint8

// The kinds of calls.
const (
	Increment Kind = iota
	Get
	Scan
	kinds
)

// String names the kind.
func (k Kind) String() string { return [...]string{"increment", "get", "scan"}[k] }

// violation is an answer that cannot be right.
type violation struct{ error }

// work is one worker: calls of one kind until the load ends. A call that has
// begun is finished: the end of the load does not cancel it.
func (r *run) work(ctx context.Context, w int) {
	rng := rand.New(rand.NewPCG(r.cfg.Seed, uint64(w)+1))
	kind := Get
	switch {
	case w%2 == 0:
		kind = Increment
	case w%5 == 1:
		kind = Scan
	}
	lane := &r.rec.lanes[w]
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Budget)
		begin := time.Now()
		var err error
		var what string
		switch kind {
		case Increment:
			what, err = r.increment(call, rng)
		case Get:
			what, err = r.get(call, rng)
		case Scan:
			what, err = r.scan(call, rng)
		}
		cancel()
		r.rec.done(lane, kind, what, begin, r.cfg.Budget, err)
		pause(ctx, r.cfg.Pace/2+rand.N(r.cfg.Pace))
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (r *run) increment(ctx context.Context, rng *rand.Rand) (string, error) {
	w := r.data.counters[rng.IntN(len(r.data.counters))]
	by := 1 + rng.Int64N(3)
	lo := w.counter.acked.Load() + by
	w.counter.started.Add(by)
	n, err := r.table.IncrementColumn(ctx, w.key, family, counterColumn, by)
	if err != nil {
		return string(w.key), err
	}
	hi := w.counter.started.Load()
	w.counter.acked.Add(by)
	if n < lo || n > hi {
		return string(w.key), violation{fmt.Errorf("increment of %s gave %d, want between %d and %d", hbase.Quote(w.key), n, lo, hi)}
	}
	return string(w.key), nil
}

func (r *run) get(ctx context.Context, rng *rand.Rand) (string, error) {
	if rng.IntN(4) == 0 {
		return r.multiGet(ctx, rng)
	}
	w := &r.data.rows[rng.IntN(len(r.data.rows))]
	lo, _ := w.bounds()
	res, err := r.table.Get(ctx, hbase.NewGet(w.key))
	if err != nil {
		return string(w.key), err
	}
	_, hi := w.bounds()
	if err := w.check(res, lo, hi); err != nil {
		return string(w.key), violation{fmt.Errorf("get: %w", err)}
	}
	return string(w.key), nil
}

func (w *row) bounds() (lo, hi int64) {
	if w.counter == nil {
		return 0, 0
	}
	return w.counter.acked.Load(), w.counter.started.Load()
}

func (r *run) multiGet(ctx context.Context, rng *rand.Rand) (string, error) {
	const n = 10
	rows := make([]*row, n)
	gets := make([]*hbase.Get, n)
	lo := make([]int64, n)
	for i := range rows {
		rows[i] = &r.data.rows[rng.IntN(len(r.data.rows))]
		gets[i] = hbase.NewGet(rows[i].key)
		lo[i], _ = rows[i].bounds()
	}
	what := fmt.Sprintf("%d rows from %s", n, rows[0].key)
	found, err := r.table.MultiGet(ctx, gets)
	if err != nil {
		return what, err
	}
	for i, w := range rows {
		_, hi := w.bounds()
		if err := w.check(found[i], lo[i], hi); err != nil {
			return what, violation{fmt.Errorf("multi-get: %w", err)}
		}
	}
	return what, nil
}

// scan reads a random range in a random manner and compares it row by row.
func (r *run) scan(ctx context.Context, rng *rand.Rand) (string, error) {
	rows := r.data.rows
	from, to := 0, len(rows)
	s := &hbase.Scan{Caching: []int{0, 20, 100}[rng.IntN(3)]}
	if rng.IntN(6) > 0 {
		// A stretch of one to four regions; small answers only there, so that
		// scans do not take all the time there is.
		from = rng.IntN(len(rows))
		to = min(len(rows), from+1+rng.IntN(3*r.data.perRegion))
		if rng.IntN(3) == 0 {
			s.Caching = 7
		}
		if rng.IntN(4) == 0 {
			s.MaxResultSize = 2000
		}
	}
	s.Prefetch = hbase.Prefetch(rng.IntN(3))
	s.Reversed = rng.IntN(3) == 0
	batch := 0
	if rng.IntN(4) == 0 {
		batch = 1 + rng.IntN(15)
		s.Batch = batch
	}
	if s.Reversed {
		s.Start, s.IncludeStop = rows[to-1].key, true
		s.Stop = rows[from].key
	} else {
		s.Start = rows[from].key
		if to < len(rows) {
			s.Stop = rows[to].key
		}
	}
	want := to - from
	if rng.IntN(4) == 0 {
		s.Limit = 1 + rng.IntN(want)
		want = s.Limit
	}
	what := fmt.Sprintf("[%s, %d rows) reversed=%v caching=%d size=%d batch=%d prefetch=%v", rows[from].key, want, s.Reversed, s.Caching, s.MaxResultSize, batch, s.Prefetch)

	// What counters held when the scan began; it may read no less.
	lo := make([]int64, want)
	at := func(i int) *row {
		if s.Reversed {
			return &rows[to-1-i]
		}
		return &rows[from+i]
	}
	for i := range lo {
		lo[i], _ = at(i).bounds()
	}
	i := 0
	var part *hbase.Result // what has come of a row so far
	finish := func() error {
		if part == nil {
			return nil
		}
		if i >= want {
			return violation{fmt.Errorf("scan %s: row %s behind the last one", what, hbase.Quote(part.Row))}
		}
		w := at(i)
		if !bytes.Equal(part.Row, w.key) {
			return violation{fmt.Errorf("scan %s: row %d is %s, want %s", what, i, hbase.Quote(part.Row), hbase.Quote(w.key))}
		}
		_, hi := w.bounds()
		if err := w.check(part, lo[i], hi); err != nil {
			return violation{fmt.Errorf("scan %s: %w", what, err)}
		}
		i++
		part = nil
		return nil
	}
	for res, err := range r.table.Scan(ctx, s).Rows() {
		if err != nil {
			return what, fmt.Errorf("after %d of %d rows: %w", i, want, err)
		}
		if part != nil && bytes.Equal(part.Row, res.Row) {
			if batch == 0 {
				return what, violation{fmt.Errorf("scan %s: row %s comes twice", what, hbase.Quote(res.Row))}
			}
			part.Cells = append(part.Cells[:len(part.Cells):len(part.Cells)], res.Cells...)
			continue
		}
		if err := finish(); err != nil {
			return what, err
		}
		if batch > 0 && len(res.Cells) > batch {
			return what, violation{fmt.Errorf("scan %s: %d cells of %s at once", what, len(res.Cells), hbase.Quote(res.Row))}
		}
		part = &hbase.Result{Row: res.Row, Cells: res.Cells}
	}
	if err := finish(); err != nil {
		return what, err
	}
	if i != want {
		return what, violation{fmt.Errorf("scan %s: ended after %d of %d rows", what, i, want)}
	}
	return what, nil
}

func isViolation(err error) bool {
	_, ok := errors.AsType[violation](err)
	return ok
}
