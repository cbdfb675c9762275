package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// maxRules bounds the rules of one engine.
const maxRules = 4096

// ErrNoRule is wrapped where a rule id is not (or no longer) known.
var ErrNoRule = errors.New("no such rule")

// Engine holds the rules of a cluster. Make one with New.
type Engine struct {
	active atomic.Bool // any rule about calls
	lying  atomic.Bool // any rule about hbase:meta

	mu    sync.Mutex
	rules []*state
	next  uint64
}

// state is a rule at work; its fields are guarded by the engine's lock.
type state struct {
	Rule
	id      uint64
	matched uint64
	hits    uint64
	rand    *rand.Rand
	// exception is Rule.Exception in wire form.
	exception *wire.RemoteError
	// released is closed when held calls may go on.
	released chan struct{}
	// hit is closed and replaced at every hit while somebody waits.
	hit     chan struct{}
	waiting bool
	removed bool
	// picture is what AddWith was given.
	picture any
}

// Status is a rule as it stands.
type Status struct {
	ID uint64 `json:"id"`
	Rule
	// Matched counts the calls that matched, Hits those the rule was applied
	// to.
	Matched uint64 `json:"matched"`
	Hits    uint64 `json:"hits"`
	// Resting: the rule has been applied Times times.
	Resting bool `json:"resting"`
}

// New makes an engine without rules.
func New() *Engine { return &Engine{} }

// Active says whether there is any rule about calls.
func (e *Engine) Active() bool { return e != nil && e.active.Load() }

// Add checks a rule and puts it behind the others. The id is never reused.
func (e *Engine) Add(r Rule) (uint64, error) { return e.AddWith(r, nil) }

// AddWith is Add for a rule that needs something from its beginning later on:
// Lies gives it back.
func (e *Engine) AddWith(r Rule, picture any) (uint64, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.rules) >= maxRules {
		return 0, fmt.Errorf("%w: there are %d rules already", ErrBadRule, len(e.rules))
	}
	e.next++
	s := &state{Rule: r, id: e.next, released: make(chan struct{}), hit: make(chan struct{}), picture: picture}
	if r.Action == Fail || r.Action == FailAfter {
		s.exception = r.Exception.remote()
	}
	if r.Probability > 0 && r.Probability < 1 {
		s.rand = rand.New(rand.NewPCG(r.Seed, 0x9e3779b97f4a7c15))
	}
	e.rules = append(e.rules, s)
	e.stock()
	return s.id, nil
}

// stock looks what kinds of rules there are. Called with the lock held.
func (e *Engine) stock() {
	calls, lies := false, false
	for _, s := range e.rules {
		calls, lies = calls || !s.Action.Lie(), lies || s.Action.Lie()
	}
	e.active.Store(calls)
	e.lying.Store(lies)
}

// Remove takes a rule away; calls it holds go on.
func (e *Engine) Remove(id uint64) error {
	if e == nil {
		return fmt.Errorf("%w: %d", ErrNoRule, id)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, s := range e.rules {
		if s.id == id {
			e.rules = append(e.rules[:i:i], e.rules[i+1:]...)
			s.end()
			e.stock()
			return nil
		}
	}
	return fmt.Errorf("%w: %d", ErrNoRule, id)
}

// Clear removes every rule.
func (e *Engine) Clear() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.rules {
		s.end()
	}
	e.rules = nil
	e.stock()
}

// end is called with the lock held.
func (s *state) end() {
	s.removed = true
	close(s.released)
	close(s.hit)
}

// Release lets the calls a Hold rule holds go on, and what a Throttle rule
// throttles leave at once; calls it picks later are held again.
func (e *Engine) Release(id uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.find(id)
	if s == nil {
		return fmt.Errorf("%w: %d", ErrNoRule, id)
	}
	close(s.released)
	s.released = make(chan struct{})
	return nil
}

func (e *Engine) find(id uint64) *state {
	for _, s := range e.rules {
		if s.id == id {
			return s
		}
	}
	return nil
}

// List gives the rules in order.
func (e *Engine) List() []Status {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]Status, 0, len(e.rules))
	for _, s := range e.rules {
		all = append(all, s.status())
	}
	return all
}

func (s *state) status() Status {
	return Status{ID: s.id, Rule: s.Rule, Matched: s.matched, Hits: s.hits, Resting: s.resting()}
}

func (s *state) resting() bool { return s.Times > 0 && s.hits >= s.Times }

// Hits is how often the rule was applied; 0 for an unknown rule.
func (e *Engine) Hits(id uint64) uint64 {
	if e == nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.find(id); s != nil {
		return s.hits
	}
	return 0
}

// Wait returns once the rule was applied at least n times since it was added,
// with the context's error, or with ErrNoRule when the rule is removed.
func (e *Engine) Wait(ctx context.Context, id, n uint64) error {
	for {
		e.mu.Lock()
		s := e.find(id)
		if s == nil {
			e.mu.Unlock()
			return fmt.Errorf("%w: %d", ErrNoRule, id)
		}
		if s.hits >= n {
			e.mu.Unlock()
			return nil
		}
		s.waiting = true
		hit := s.hit
		e.mu.Unlock()
		select {
		case <-hit:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Verdict is what is to happen to one call. The zero value is nothing.
type Verdict struct {
	// Rule is the id of the last rule that touched the call.
	Rule uint64
	// Before is 0 or an action in place of the handler: DropRequest, Fail,
	// Close.
	Before Action
	// After is 0 or an action on the answer: DropReply, DelayReply, FailAfter,
	// CloseAfter, Truncate, Throttle, CorruptCells, Oversize.
	After Action
	// Exception for Fail and FailAfter.
	Exception *wire.RemoteError
	// ReplyDelay for DelayReply.
	ReplyDelay time.Duration
	// Rate for Throttle, in bytes per second; Freed is closed when it is over.
	Rate  int64
	Freed <-chan struct{}
	// Turn for CorruptCells counts its hits, from 1.
	Turn uint64
	// Size for Oversize, in bytes.
	Size int64
}

// Judge finds the rules for a call, and waits out their delays and holds: a
// caller must not be one whom others wait for. It returns the context's error
// if that ends first.
func (e *Engine) Judge(ctx context.Context, c *Call) (Verdict, error) {
	var v Verdict
	if !e.Active() {
		return v, nil
	}
	var delay time.Duration
	var holds []<-chan struct{}
	e.mu.Lock()
	for _, s := range e.rules {
		if s.Action.Lie() || !s.pick(c) {
			continue
		}
		v.Rule = s.id
		switch s.Action {
		case Delay:
			delay += s.Delay
			continue
		case Hold:
			holds = append(holds, s.released)
			continue
		case DelayReply:
			v.After, v.ReplyDelay = s.Action, v.ReplyDelay+s.Delay
			continue
		}
		if s.Action.before() {
			v.Before = s.Action
		} else {
			v.After = s.Action
		}
		v.Exception = s.exception
		v.Rate, v.Freed, v.Turn, v.Size = s.BytesPerSecond, s.released, s.hits, s.Size
		break
	}
	e.mu.Unlock()
	if delay > 0 {
		if err := Sleep(ctx, delay); err != nil {
			return v, err
		}
	}
	for _, h := range holds {
		select {
		case <-h:
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
	return v, nil
}

// pick counts the call if it matches and says whether the rule applies. Called
// with the lock held.
func (s *state) pick(c *Call) bool {
	if s.resting() || !s.matches(c) {
		return false
	}
	s.matched++
	if s.matched <= s.Skip {
		return false
	}
	if s.Every > 1 && (s.matched-s.Skip)%s.Every != 0 {
		return false
	}
	if s.rand != nil && s.rand.Float64() >= s.Probability {
		return false
	}
	s.hits++
	if s.waiting {
		close(s.hit)
		s.hit = make(chan struct{})
		s.waiting = false
	}
	return true
}

// Sleep waits for d or for the context's end.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
