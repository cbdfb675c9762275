package rpcserver

import (
	"context"
	"time"
)

// pace is how fast an answer is to be written: rate bytes per second until
// freed is closed. The zero value is no pace.
type pace struct {
	rate  int64
	freed <-chan struct{}
}

// paceStep is how often a part of a throttled answer leaves.
const paceStep = 20 * time.Millisecond

// trickle writes a batch in order, and what is in slow at its pace: a byte
// leaves when a link of that rate would have carried it, so that the answer is
// complete after size/rate.
func (w *writer) trickle(batch [][]byte, slow map[*byte]pace) error {
	for _, f := range batch {
		p, throttled := slow[&f[0]]
		for throttled && len(f) > 0 {
			n := min(max(p.rate*int64(paceStep)/int64(time.Second), 1), int64(len(f)))
			free, err := p.wait(w.conn.ctx, time.Duration(n)*time.Second/time.Duration(p.rate))
			if err != nil {
				return err
			}
			if free {
				break
			}
			if _, err := w.conn.nc.Write(f[:n]); err != nil {
				return err
			}
			f = f[n:]
		}
		if len(f) == 0 {
			continue
		}
		if _, err := w.conn.nc.Write(f); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for d, and says whether the pace has ended before.
func (p pace) wait(ctx context.Context, d time.Duration) (free bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false, nil
	case <-p.freed:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
