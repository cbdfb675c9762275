package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// lag makes secondary replicas show what was there some time ago: it samples
// the store's read point while it is on. The zero value is off.
type lag struct {
	at atomic.Uint64 // the read point replicas use; 0 means the present one

	mu   sync.Mutex
	stop chan struct{} // ends the sampler under way; nil while off
}

// Sampling: twenty times per lag, but no more often and no more seldom than
// this.
const (
	minLagTick = 5 * time.Millisecond
	maxLagTick = time.Second
)

// SetReplicaLag lets secondary replicas lag d behind: reads of them see what
// was there d ago, but nothing older than from this call on. 0 ends it.
func (c *Cluster) SetReplicaLag(d time.Duration) {
	l := &c.lag
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		close(l.stop)
		l.stop = nil
	}
	if d <= 0 {
		l.at.Store(0)
		return
	}
	stop := make(chan struct{})
	l.stop = stop
	first := c.store.ReadPoint()
	l.at.Store(first)
	c.background(func() {
		type sample struct {
			at    time.Time
			point uint64
		}
		samples := []sample{{time.Now(), first}}
		t := time.NewTicker(min(max(d/20, minLagTick), maxLagTick))
		defer t.Stop()
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-stop:
				return
			case now := <-t.C:
				if p := c.store.ReadPoint(); p != samples[len(samples)-1].point {
					samples = append(samples, sample{now, p})
				}
				for len(samples) > 1 && now.Sub(samples[1].at) >= d {
					samples = samples[1:]
				}
				l.mu.Lock()
				if l.stop == stop {
					l.at.Store(samples[0].point)
				}
				l.mu.Unlock()
			}
		}
	})
}

// replicaReadPoint is the read point of secondary replicas, 0 for the present.
func (c *Cluster) replicaReadPoint() uint64 { return c.lag.at.Load() }
