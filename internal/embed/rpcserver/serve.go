package rpcserver

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// serve runs one call to its end: rules, handler, answer.
func (c *Call) serve() {
	s := c.Conn.server
	defer c.ctx.end()
	if !c.inlineNow && c.Conn.out.awaitTurn(&c.ctx, s.cfg.MaxUnread) != nil || c.late() {
		// The client has given up; whatever we do would be for nobody.
		c.drop(eventlog.Dropped)
		return
	}
	if s.cfg.Outliers != nil {
		c.begun = time.Now()
	}
	if err := c.method.decode(c); err != nil {
		c.fail(err)
		return
	}
	rules := s.cfg.Chaos.Active()
	if c.method.describe != nil && (rules || s.cfg.Events.Enabled()) {
		c.method.describe(c)
	}
	if !rules {
		out, err := c.handle()
		if err != nil {
			c.fail(err)
			return
		}
		c.succeed(out)
		return
	}

	v, err := s.cfg.Chaos.Judge(&c.ctx, c.chaosCall())
	c.rule = v.Rule
	if err != nil {
		c.drop(eventlog.Dropped)
		return
	}
	switch v.Before {
	case chaos.DropRequest:
		c.drop(eventlog.Dropped)
		return
	case chaos.Close:
		c.drop(eventlog.Closed)
		c.Conn.reset()
		return
	case chaos.Fail:
		c.fail(v.Exception)
		return
	}
	out, err := c.handle()
	if v.ReplyDelay > 0 && chaos.Sleep(&c.ctx, v.ReplyDelay) != nil {
		c.drop(eventlog.Dropped)
		return
	}
	switch v.After {
	case chaos.DropReply:
		c.drop(eventlog.Dropped)
		return
	case chaos.CloseAfter:
		c.drop(eventlog.Closed)
		c.Conn.reset()
		return
	case chaos.FailAfter:
		err = v.Exception
	case chaos.Truncate:
		frame, _ := c.render(out, err)
		c.record(eventlog.Closed)
		c.Conn.out.sendLast(frame[:len(frame)/2])
		// Another goroutine may be writing it for us. If the peer does not read,
		// the connection's end ends the wait.
		_ = c.Conn.out.flushed(c.Conn.ctx)
		c.end()
		c.Conn.close()
		return
	case chaos.CorruptCells:
		c.damage = v.Turn
	case chaos.Throttle:
		frame, how := c.render(out, err)
		c.record(how)
		c.Conn.out.sendSlowly(frame, pace{v.Rate, v.Freed})
		c.end()
		return
	case chaos.Oversize:
		frame, how := c.render(out, err)
		c.record(how)
		announce(frame, v.Size)
		c.Conn.out.sendLast(frame)
		c.end()
		return
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.succeed(out)
}

// announce makes a frame claim to be of another size; 0 stands for the largest
// that the format has.
func announce(frame []byte, size int64) {
	if size == 0 {
		size = math.MaxInt32
	}
	binary.BigEndian.PutUint32(frame, uint32(size))
}

// late says whether the client has given up on the call.
func (c *Call) late() bool {
	return !c.inlineNow && !c.Deadline.IsZero() && time.Now().After(c.Deadline)
}

// handle runs the handler. A panic in it is a bug of ours; it is answered and
// logged, since one call must not end the other calls' server.
func (c *Call) handle() (out wire.Marshaler, err error) {
	defer func() {
		if r := recover(); r != nil {
			c.Conn.server.log.Error("panic in a handler", "method", c.Method, "panic", r, "stack", string(debug.Stack()))
			out, err = nil, wire.NewRemoteError(wire.ClassIOException, fmt.Sprintf("internal error in %s: %v", c.Method, r))
		}
	}()
	return c.method.run(&c.ctx, c)
}

func (c *Call) chaosCall() *chaos.Call {
	s := c.Conn.server
	call := &chaos.Call{
		Server: s.address, ServerName: s.fullName,
		Service: c.Conn.header.Load().service.name, Method: c.Method,
		Table: c.Target.Table, Region: c.Target.Region,
		Rows: c.Target.Rows, Range: c.Target.Range,
		User: c.Conn.User(),
	}
	if in, ok := c.in.(*pb.MultiRequest); ok && len(in.GetRegionAction()) > 1 {
		for _, ra := range in.GetRegionAction()[1:] {
			var t Target
			t.region(ra.GetRegion())
			call.Also = append(call.Also, chaos.Place{Table: t.Table, Region: t.Region})
		}
	}
	return call
}

// render makes the frame of an answer, and says how the call went.
func (c *Call) render(out wire.Marshaler, err error) (frame []byte, outcome string) {
	if err == nil {
		if frame, err = c.frameOf(out); err == nil {
			return frame, eventlog.OK
		}
	}
	x := ToRemote(err)
	return wire.AppendException(c.Conn.server.frames.get(0), c.ID, x), x.Short()
}

func (c *Call) frameOf(out wire.Marshaler) (frame []byte, err error) {
	if len(c.reply) == 0 && len(c.encoded) == 0 {
		return wire.AppendResponse(c.Conn.server.frames.get(0), c.ID, out, nil)
	}
	if !c.Conn.CellBlocks() {
		return nil, fmt.Errorf("cells to answer on a connection without a codec")
	}
	size := 0
	for i := range c.reply {
		size += c.Conn.codec.CellSize(&c.reply[i])
	}
	block := c.encoded
	if block == nil {
		block = c.Conn.server.frames.get(size)
	}
	block, err = c.Conn.codec.AppendCells(block, c.reply)
	defer func() { c.Conn.server.frames.put(block) }()
	if err != nil {
		return nil, err
	}
	if c.damage > 0 {
		block = chaos.Damage(block, c.damage)
	}
	cells := block
	if z := c.Conn.compressor; z != nil && len(block) > 0 {
		if cells, err = z.Compress(nil, block); err != nil {
			return nil, err
		}
	}
	return wire.AppendResponse(c.Conn.server.frames.get(len(cells)+frameSlack+out.SizeVT()), c.ID, out, cells)
}

// frameSlack is more than the parts of an answer besides message and cells.
const frameSlack = 64

func (c *Call) succeed(out wire.Marshaler) { c.answer(out, nil) }
func (c *Call) fail(err error)             { c.answer(nil, err) }

// answer sends the answer and ends the call.
func (c *Call) answer(out wire.Marshaler, err error) {
	frame, how := c.render(out, err)
	if m := c.Conn.server.mode.Load(); m != nil && m.slow > 0 {
		if chaos.Sleep(c.Conn.ctx, m.slow) != nil {
			how = eventlog.Closed
		}
	}
	if how == eventlog.OK {
		c.outlies(out)
	}
	// Recorded before it is sent: who has the answer finds it in the log.
	c.record(how)
	if c.hold {
		c.Conn.out.hold(frame)
	} else {
		c.Conn.out.send(frame)
	}
	c.end()
}

// drop ends the call without an answer.
func (c *Call) drop(how string) {
	c.record(how)
	c.end()
}

// end takes the call out of what is in flight.
func (c *Call) end() {
	c.Conn.calls.Add(-1)
	c.Conn.out.callEnded()
	c.Conn.server.callEnds(c)
}

func (c *Call) record(how string) {
	s := c.Conn.server
	if !s.cfg.Events.Enabled() {
		return
	}
	h := c.Conn.header.Load()
	e := eventlog.Event{
		Kind: eventlog.RPC, Time: c.Received,
		Server: s.address, Service: h.service.name, Method: c.Method,
		Table: c.Target.Table, Region: c.Target.Region, Rows: c.Target.NumRows,
		User: h.user, Client: c.Conn.remote,
		Latency: time.Since(c.Received), Outcome: how, Rule: c.rule, Detail: c.Target.Detail,
	}
	if len(c.Target.Rows) > 0 {
		e.Row = c.Target.Rows[0]
	}
	s.cfg.Events.Record(&e)
}
