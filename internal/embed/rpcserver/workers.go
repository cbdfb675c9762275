package rpcserver

import (
	"slices"
	"sync"
	"time"
)

// workers run calls on goroutines that are used again. A handler needs more
// stack than a new goroutine has, and growing one costs as much as a Get.
type workers struct {
	s *Server

	mu   sync.Mutex
	idle []*worker // who rests longest first
	// low is how many have rested since the last trim. trimming: a trim is due.
	low      int
	trimming bool
}

type worker struct {
	next chan *Call // holds one
}

const (
	// maxIdle is how many workers of a server rest, some 16 KiB each; more end.
	maxIdle = 64
	// trimEvery is how often those end that nobody has needed since.
	trimEvery = 100 * time.Millisecond
)

// serve runs a call on a goroutine of its own.
func (p *workers) serve(c *Call) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.low = min(p.low, n-1)
		p.mu.Unlock()
		w.next <- c
		return
	}
	p.mu.Unlock()
	p.s.wg.Add(1)
	go p.run(&worker{next: make(chan *Call, 1)}, c)
}

func (p *workers) run(w *worker, c *Call) {
	defer p.s.wg.Done()
	for c != nil {
		c.serve()
		c = nil
		if !p.rest(w) {
			return
		}
		select {
		case c = <-w.next:
		case <-p.s.ctx.Done():
			if p.leave(w) {
				return
			}
			c = <-w.next // it was chosen before it could leave
		}
	}
}

// rest makes a worker idle; false: there are enough.
func (p *workers) rest(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= maxIdle {
		return false
	}
	p.idle = append(p.idle, w)
	if !p.trimming {
		p.trimming, p.low = true, 0
		time.AfterFunc(trimEvery, p.trim)
	}
	return true
}

// leave takes a worker from the idle ones; false: it is not among them.
func (p *workers) leave(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, w)
	if i < 0 {
		return false
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	p.low = min(p.low, len(p.idle))
	return true
}

// trim ends the workers that have rested since the last time.
func (p *workers) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle[:p.low] {
		w.next <- nil
	}
	p.idle = slices.Delete(p.idle, 0, p.low)
	p.low = len(p.idle)
	if p.trimming = p.low > 0; p.trimming {
		time.AfterFunc(trimEvery, p.trim)
	}
}
