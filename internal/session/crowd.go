package session

import (
	"errors"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// A server that does not answer must not have all of a program's workers waiting
// for it: each of them comes by sooner or later, and then nobody is left for the
// servers that do answer. So the callers who wait for one server can be bounded
// (Config.MaxWaitingPerServer); more are turned away with an error that says
// so, and may go on to other rows. A caller counts from the moment it meets the
// trouble until its operation ends: while it waits
// for a suspected server's answer, for a down one to come up, and for meta to
// name a successor. Callers in flight when the trouble begins count when they
// are given up, at the latest after the time for suspicion and ping.

// waitFor counts a caller among those who wait for the server; an error if there
// are enough of them.
func (c *Core) waitFor(s *health.Server) (*peer, error) {
	p, limit := peerOf(s), int64(c.cfg.MaxWaitingPerServer)
	if p.waiting.Add(1) > limit {
		p.waiting.Add(-1)
		return nil, s.TurnAway(int(limit))
	}
	return p, nil
}

// turnedAway says whether a call has ended because too many wait.
func turnedAway(err error) bool {
	down, ok := errors.AsType[*health.DownError](err)
	return ok && down.Waiting > 0
}

// inTrouble gives the server of a row's region if that does not answer; nil
// otherwise, or if nothing is known of it.
func (c *Core) inTrouble(table meta.TableName, row []byte, before bool) *health.Server {
	r := c.routes.Known(table, row, before)
	if r == nil || r.Server() == nil || r.Server().State() == health.Healthy {
		return nil
	}
	return r.Server()
}

// wait counts the operation among those who wait for a server.
func (o *op) wait(s *health.Server) error {
	if o.core.cfg.MaxWaitingPerServer <= 0 || o.held == peerOf(s) {
		return nil
	}
	p, err := o.core.waitFor(s)
	if err != nil {
		return err
	}
	o.waitNoMore()
	o.held = p
	return nil
}

// waitForRegion is wait for the lookup of a region whose server is in trouble.
func (o *op) waitForRegion(table meta.TableName, row []byte, before bool) error {
	if o.core.cfg.MaxWaitingPerServer <= 0 {
		return nil
	}
	s := o.core.inTrouble(table, row, before)
	if s == nil {
		return nil
	}
	o.srv = s
	err := o.wait(s)
	if err == nil {
		o.srv = nil
	}
	return err
}

func (o *op) waitNoMore() {
	if o.held != nil {
		o.held.waiting.Add(-1)
		o.held = nil
	}
}

// waitFor counts the batch, as one caller, among those who wait for a server.
func (b *batch) waitFor(s *health.Server) error {
	if b.core.cfg.MaxWaitingPerServer <= 0 || b.waits[peerOf(s)] {
		return nil
	}
	p, err := b.core.waitFor(s)
	if err != nil {
		return err
	}
	if b.waits == nil {
		b.waits = make(map[*peer]bool)
	}
	b.waits[p] = true
	return nil
}

func (b *batch) waitForRegion(row []byte) error {
	if b.core.cfg.MaxWaitingPerServer <= 0 {
		return nil
	}
	if s := b.core.inTrouble(b.tableName, row, false); s != nil {
		return b.waitFor(s)
	}
	return nil
}

// mayGoElsewhere says whether an item whose primary has too many waiting for it
// may be answered by a replica: then it stays, without being counted.
func (b *batch) mayGoElsewhere(i int) bool {
	if b.replicas == nil || !b.items[i].Timeline {
		return false
	}
	r := b.core.routes.Known(b.tableName, b.items[i].Row, false)
	return r != nil && len(b.core.routes.Replicas(r)) > 0
}

func (b *batch) waitNoMore() {
	for p := range b.waits {
		p.waiting.Add(-1)
	}
}
