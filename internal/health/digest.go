package health

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// digest counts how long answered calls took, in buckets a quarter of an octave
// wide, so that a quantile is at most a quarter too large. Counting is one
// atomic addition; quantiles are computed now and then (refresh), and recent
// calls weigh most: the counts are halved whenever there are enough of them.
type digest struct {
	counts [digestBuckets]atomic.Uint32
	// The quantiles as of the last refresh, in nanoseconds; 0 = too few calls.
	p95, p999 atomic.Int64

	// Of refresh, under Table.scoring:
	kept  uint64 // counts as the last refresh left them
	calls uint64 // ever
}

const (
	// From 1 us to about 70 s.
	digestBuckets = 27 * 4
	// digestMin calls are needed before a quantile says anything.
	digestMin = 20
	// digestHalve: with fewer calls than this, old ones still count in full, or
	// a quiet server would have no quantiles.
	digestHalve = 512
)

// bucketOf gives the bucket of a duration.
func bucketOf(d time.Duration) int {
	us := uint64(max(d/time.Microsecond, 1))
	e := bits.Len64(us) - 1
	quarter := us << 2 >> e & 3
	return min(4*e+int(quarter), digestBuckets-1)
}

// bucketEnd gives the end of a bucket.
func bucketEnd(i int) time.Duration {
	e, quarter := i/4, i%4
	return time.Duration(5+quarter) << e * time.Microsecond / 4
}

func (g *digest) add(d time.Duration) { g.counts[bucketOf(d)].Add(1) }

// refresh computes the quantiles and gives the number of calls ever counted.
func (g *digest) refresh() uint64 {
	var counts [digestBuckets]uint32
	var total uint64
	for i := range counts {
		counts[i] = g.counts[i].Load()
		total += uint64(counts[i])
	}
	g.calls += total - min(g.kept, total)
	if total < digestMin {
		g.kept = total
		return g.calls
	}
	g.p95.Store(int64(quantile(&counts, total, 0.95)))
	g.p999.Store(int64(quantile(&counts, total, 0.999)))
	g.kept = total
	if total >= digestHalve {
		for i, n := range counts {
			if n > 1 {
				g.counts[i].Add(-(n / 2))
				g.kept -= uint64(n / 2)
			}
		}
	}
	return g.calls
}

// quantile gives the end of the bucket that the quantile lies in.
func quantile(counts *[digestBuckets]uint32, total uint64, q float64) time.Duration {
	want := uint64(q * float64(total))
	var sum uint64
	for i, n := range counts {
		if sum += uint64(n); sum > want {
			return bucketEnd(i)
		}
	}
	return bucketEnd(digestBuckets - 1)
}
