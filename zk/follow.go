package zk

import (
	"context"
	"iter"
)

// Node is a node as Follow saw it.
type Node struct {
	Exists bool
	Data   []byte
	Stat   Stat
}

// Follow yields a node's present state and then every newer one, until ctx ends or the consumer stops. A node that does not exist is a state like
// any other. States that follow each other quickly may be skipped, the newest is always yielded. It uses one-shot watches only and
// so works with every server. An error is yielded once and ends it: the Conn ended, or the node may not be read.
func (c *Conn) Follow(ctx context.Context, path string) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		var last Node
		for first := true; ; first = false {
			ok, _, w, err := c.ExistsW(ctx, path)
			var n Node
			if err == nil && ok {
				n.Data, n.Stat, err = c.Get(ctx, path)
				if n.Exists = err == nil; isNoNode(err) {
					err = nil // deleted in between; the watch has fired
				}
			}
			switch {
			case ctx.Err() != nil:
			case err != nil:
				yield(Node{}, err)
			default:
				changed := first || n.Exists != last.Exists || n.Stat.Mzxid != last.Stat.Mzxid || n.Stat.Czxid != last.Stat.Czxid
				last = n
				if changed && !yield(n, nil) {
					break
				}
				select {
				case e := <-w.C():
					if e.Type == EventEnded {
						yield(Node{}, e.Err)
						return
					}
					continue
				case <-ctx.Done():
				}
			}
			if w != nil {
				w.Cancel()
			}
			return
		}
	}
}

func isNoNode(err error) bool {
	oe, ok := err.(*OpError)
	return ok && oe.Err == error(ErrNoNode)
}
