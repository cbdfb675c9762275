package minihbase

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
)

// A Rule chooses calls (Match, then Skip, Every, Times, Probability) and says
// what happens to them (Action).
type (
	Rule       = chaos.Rule
	Match      = chaos.Match
	Action     = chaos.Action
	Exception  = chaos.Exception
	RuleStatus = chaos.Status
)

// The actions of rules.
const (
	Delay       = chaos.Delay
	DelayReply  = chaos.DelayReply
	Hold        = chaos.Hold
	DropRequest = chaos.DropRequest
	DropReply   = chaos.DropReply
	Fail        = chaos.Fail
	FailAfter   = chaos.FailAfter
	CloseConn   = chaos.Close
	CloseAfter  = chaos.CloseAfter
	Truncate    = chaos.Truncate

	Throttle     = chaos.Throttle
	CorruptCells = chaos.CorruptCells
	Oversize     = chaos.Oversize

	// Lies in hbase:meta; the match of such a rule chooses regions.
	MetaHole     = chaos.MetaHole
	MetaNoServer = chaos.MetaNoServer
	MetaStale    = chaos.MetaStale
	MetaOverlap  = chaos.MetaOverlap
)

// AddRule adds a rule behind the others and gives its id, which is never used
// again. Rule.Location may be a server's index or host:port, too.
func (m *Cluster) AddRule(r Rule) (uint64, error) { return m.c.AddRule(r) }

// RemoveRule removes a rule; calls it holds go on.
func (m *Cluster) RemoveRule(id uint64) error { return m.c.Rules().Remove(id) }

// ReleaseRule lets the calls go on that a Hold rule holds.
func (m *Cluster) ReleaseRule(id uint64) error { return m.c.Rules().Release(id) }

// ClearRules removes every rule.
func (m *Cluster) ClearRules() { m.c.Rules().Clear() }

// Rules lists the rules with their hits, in order.
func (m *Cluster) Rules() []RuleStatus { return m.c.Rules().List() }

// WaitRule returns once a rule was applied n times since it was added.
func (m *Cluster) WaitRule(ctx context.Context, id, n uint64) error {
	return m.c.Rules().Wait(ctx, id, n)
}

// FailNextProcedure makes the master's next procedure end with an exception; the
// next of a class, such as CreateTableProcedure, if class is not empty. Only
// Class, Message and DoNotRetry of e are used; an empty Class is refused.
func (m *Cluster) FailNextProcedure(class string, e Exception) error {
	if e.Class == "" {
		return fmt.Errorf("%w: no exception class", chaos.ErrBadRule)
	}
	m.c.Controls().FailNextProcedure(class, &cells.Exception{Class: e.Class, Message: e.Message, DoNotRetry: e.DoNotRetry})
	return nil
}

// Events is the log of every call and of what the cluster did.
func (m *Cluster) Events() *EventLog { return m.c.Events() }

// EventLog is the ring of events; Event one of them; EventFilter chooses.
type (
	EventLog    = eventlog.Log
	Event       = eventlog.Event
	EventFilter = eventlog.Filter
)

// SetZNode writes a znode, persistent and made with its parents if missing:
// below Options.ZNodeParent, it is how clients get to read wrong bytes.
func (m *Cluster) SetZNode(path string, data []byte) error {
	zk := m.c.ZooKeeper()
	if zk.Exists(path) {
		_, err := zk.Set(path, data, -1)
		return err
	}
	return zk.Put(path, data, 0)
}

// RemoveZNode removes a znode and everything below it. One that is not there is
// no error.
func (m *Cluster) RemoveZNode(path string) error { return m.c.ZooKeeper().DeleteTree(path) }

// RestoreZNodes makes HBase's own znodes what they should be again; so does
// Reset.
func (m *Cluster) RestoreZNodes() { m.c.RestoreZNodes() }

// ZooKeeperServer is the ZooKeeper endpoint: its tree, its sessions, and what
// can be wrong with it (ExpireSession, MoveSession, SetLimits; BreakZooKeeper has
// the rest).
func (m *Cluster) ZooKeeperServer() *zkserver.Server { return m.c.ZooKeeper() }
