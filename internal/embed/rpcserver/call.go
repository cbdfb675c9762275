package rpcserver

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Call is one request being served. It belongs to its handler until that
// returns.
type Call struct {
	// Conn is the connection it came on.
	Conn *Conn
	// Method is the RPC's name.
	Method string
	ID     uint32
	// Param is the request message as sent.
	Param []byte
	// Received is when the frame was read; Deadline when the client stops
	// waiting (zero: never said).
	Received time.Time
	Deadline time.Time
	// Target is what the call is about, for chaos rules and the event log; a
	// handler may complete it.
	Target Target

	in     any // the decoded param
	method *method
	block  []byte // cell block as sent
	size   int    // bytes accounted for
	reply  []cells.Cell
	// encoded is the beginning of the answer's cell block.
	encoded []byte
	ctx     callContext
	rule    uint64    // the chaos rule that touched it
	begun   time.Time // when it was its turn, if there are Outliers
	damage  uint64    // how to spoil the answer's cells: see chaos.Damage; 0 not at all
	// inlineNow: it runs on the reader's goroutine, and its frame still stands
	// in the read buffer.
	inlineNow bool
	hold      bool // its answer may wait: another one follows at once
	early     bool // see Server.early
	frame     int
}

// Target is what a call is about.
type Target struct {
	// Table in text form, Region by encoded name.
	Table, Region string
	// Rows are the rows named, at most some: NumRows says how many there are.
	// With Range they are two, between which the call reads; an empty second
	// one is open. They may alias the request.
	Rows    [][]byte
	NumRows int
	Range   bool
	// Detail is a word for the event log.
	Detail string
	// Any is for the method's own use between Describe and the handler.
	Any any
}

// Cells starts a reader over the request's cell block. What it reads is valid
// until the handler returns.
func (c *Call) Cells() (wire.CellReader, error) {
	block := c.block
	if c.Conn.compressor != nil && len(block) > 0 {
		var err error
		if block, err = c.unpack(block); err != nil {
			return wire.CellReader{}, err
		}
	}
	return c.Conn.codec.Reader(block), nil
}

// ReplyCells appends cells to the answer's cell block. They must stay as they
// are until the answer is written, and must not be given if the connection has
// no codec.
func (c *Call) ReplyCells(list ...cells.Cell) { c.reply = append(c.reply, list...) }

// TakeReplyCells makes list the answer's cell block, instead of what was
// appended before. The server only reads it.
func (c *Call) TakeReplyCells(list []cells.Cell) { c.reply = list }

// EncodeReplyCells appends cells to the answer's cell block as TakeReplyCells
// and ReplyCells do, and before theirs, but is done with the cells when it
// returns. An error is a cell that the codec cannot carry; then nothing was
// appended.
func (c *Call) EncodeReplyCells(list []cells.Cell) error {
	if c.encoded == nil {
		c.encoded = c.Conn.server.frames.get(maxSmall + 1)
	}
	block, err := c.Conn.codec.AppendCells(c.encoded, list)
	c.encoded = block
	return err
}

// Version is the client's version as far as answers depend on it.
type Version struct{ Major, Minor int }

// AtLeast compares versions.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// callContext is a context that costs nothing until somebody waits for it: the
// deadline's timer is made at the first call of Done.
type callContext struct {
	parent   context.Context // the connection's
	deadline time.Time
	full     atomic.Pointer[fullContext]
}

type fullContext struct {
	context.Context
	cancel context.CancelFunc
}

func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }
func (c *callContext) Value(key any) any           { return c.parent.Value(key) }

func (c *callContext) Done() <-chan struct{} {
	if c.deadline.IsZero() {
		return c.parent.Done()
	}
	if f := c.full.Load(); f != nil {
		return f.Done()
	}
	ctx, cancel := context.WithDeadline(c.parent, c.deadline)
	f := &fullContext{ctx, cancel}
	if !c.full.CompareAndSwap(nil, f) {
		cancel()
		f = c.full.Load()
	}
	return f.Done()
}

func (c *callContext) Err() error {
	if f := c.full.Load(); f != nil {
		return f.Err()
	}
	if err := c.parent.Err(); err != nil {
		return err
	}
	if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// end frees the timer.
func (c *callContext) end() {
	if f := c.full.Load(); f != nil {
		f.cancel()
	}
}

var _ context.Context = (*callContext)(nil)
