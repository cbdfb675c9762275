package rpcserver

import (
	"time"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Outliers says which calls a server tells of because they took long or answered
// much. Only calls that were answered without an exception count, as in HBase.
type Outliers struct {
	// Slow is the time beyond which a call is slow, from the moment it was its
	// turn, chaos rules included; Large the bytes of message and cells beyond
	// which its answer is large. Negative: none is.
	Slow  time.Duration
	Large int64
	// Record is told of each such call before its answer is sent, on its
	// goroutine. It must not block, nor keep what it is given.
	Record func(*Outlier)
}

// Outlier is a call that was slow, or answered much.
type Outlier struct {
	Call *Call
	// In is the request message.
	In any
	// Begun is when it was its turn.
	Begun       time.Time
	Queue, Took time.Duration
	Bytes       int64
	Slow, Large bool
}

// outlies tells of the call if it is an outlier.
func (c *Call) outlies(out wire.Marshaler) {
	o := c.Conn.server.cfg.Outliers
	if o == nil || c.begun.IsZero() {
		return
	}
	x := Outlier{Call: c, In: c.in, Begun: c.begun, Queue: c.begun.Sub(c.Received), Took: time.Since(c.begun), Bytes: int64(out.SizeVT())}
	x.Bytes += int64(len(c.encoded))
	for i := range c.reply {
		x.Bytes += int64(wire.KeyValueCodec.CellSize(&c.reply[i]))
	}
	x.Slow, x.Large = o.Slow >= 0 && x.Took > o.Slow, o.Large >= 0 && x.Bytes > o.Large
	if x.Slow || x.Large {
		o.Record(&x)
	}
}
