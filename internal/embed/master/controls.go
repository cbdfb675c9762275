package master

import (
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Controls disturb a master on purpose. The zero value disturbs nothing; it
// outlives a master. Safe for concurrent use.
type Controls struct {
	mu           sync.Mutex
	gap          time.Duration
	delay        time.Duration
	initializing bool
	failures     []failure
}

type failure struct {
	class string // procedure class; empty fails any
	err   *cells.Exception
}

// SetTransitionGap makes every region that moves, splits, merges or is opened
// stay closed for d in between, visible in hbase:meta (OPENING, CLOSING);
// servers answer RegionOpeningException where it will open. 0 ends it.
func (c *Controls) SetTransitionGap(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap = max(d, 0)
}

// SetProcedureDelay makes every procedure take d longer. 0 ends it.
func (c *Controls) SetProcedureDelay(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = max(d, 0)
}

// SetInitializing makes every call of MasterService answer
// PleaseHoldException, as a master does that is still starting.
func (c *Controls) SetInitializing(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.initializing = on
}

// FailNextProcedure makes the next procedure of a class ("CreateTableProcedure";
// empty: of any) end with the exception after it has done its work.
func (c *Controls) FailNextProcedure(class string, e *cells.Exception) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, failure{class, e})
}

// Reset takes all disturbances away.
func (c *Controls) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap, c.delay, c.initializing, c.failures = 0, 0, false, nil
}

func (c *Controls) transitionGap() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gap
}

func (c *Controls) procedureDelay() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delay
}

func (c *Controls) isInitializing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.initializing
}

func (c *Controls) takeFailure(class string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, f := range c.failures {
		if f.class == "" || f.class == class {
			c.failures = append(c.failures[:i], c.failures[i+1:]...)
			return f.err
		}
	}
	return nil
}
