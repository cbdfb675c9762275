package minihbase

import (
	"context"

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
)

// AddRule adds a rule behind the others and gives its id, which is never used
// again.
func (m *Cluster) AddRule(r Rule) (uint64, error) { return m.c.Rules().Add(r) }

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

// Events is the log of every call and of what the cluster did.
func (m *Cluster) Events() *EventLog { return m.c.Events() }

// EventLog is the ring of events; Event one of them; EventFilter chooses.
type (
	EventLog    = eventlog.Log
	Event       = eventlog.Event
	EventFilter = eventlog.Filter
)

// ZooKeeperServer is the ZooKeeper endpoint: its tree, its sessions, and what
// can be wrong with it (Freeze, Resume, Refuse, DropConnections, ExpireSession,
// and Member(0).SetFault for the rest).
func (m *Cluster) ZooKeeperServer() *zkserver.Server { return m.c.ZooKeeper() }
