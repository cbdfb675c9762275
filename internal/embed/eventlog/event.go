package eventlog

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Kind tells calls from everything else.
type Kind uint8

const (
	// RPC is one call answered (or not) by a server of the cluster.
	RPC Kind = 1 + iota
	// Cluster is something the cluster did or suffered: a move, a kill.
	Cluster
)

// String gives "rpc" or "cluster".
func (k Kind) String() string {
	switch k {
	case RPC:
		return "rpc"
	case Cluster:
		return "cluster"
	}
	return "?"
}

// MarshalText gives String, for JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MaxRow is how many bytes of an event's row are kept.
const MaxRow = 64

// OK is the outcome of a call that was answered without exception.
const OK = "ok"

// Outcomes of calls that got no answer.
const (
	// Dropped: a rule swallowed the request or its answer, or the deadline had
	// passed before the call began.
	Dropped = "dropped"
	// Closed: the connection ended before the answer was ready.
	Closed = "closed"
)

// Event is one thing that happened. Text fields are empty where they do not
// apply.
type Event struct {
	// Seq numbers events from 1 in the order they were recorded (a call is
	// recorded when it ends).
	Seq  uint64 `json:"seq"`
	Kind Kind   `json:"kind"`
	// Time is when the call began or the thing happened.
	Time time.Time `json:"time"`
	// Server is the address (host:port) of the server concerned.
	Server string `json:"server,omitempty"`

	Service string `json:"service,omitempty"`
	// Method is the RPC's method, or what happened ("move", "kill").
	Method string `json:"method"`
	Table  string `json:"table,omitempty"`
	// Region is the encoded name.
	Region string `json:"region,omitempty"`
	// Row is the first row concerned, cut to MaxRow bytes; Rows says how many
	// rows there are, 0 if the call is about none.
	Row  []byte `json:"row,omitempty"`
	Rows int    `json:"rows,omitempty"`
	User string `json:"user,omitempty"`
	// Client is the caller's address.
	Client string `json:"client,omitempty"`
	// Latency runs from the request being read to its answer being ready.
	Latency time.Duration `json:"latency,omitempty"`
	// Outcome is OK, Dropped, Closed, or the exception's class without package.
	Outcome string `json:"outcome,omitempty"`
	// Rule is the id of the chaos rule that touched the call, else 0.
	Rule uint64 `json:"rule,omitempty"`
	// Detail is free text: what is special about the call, or the event's
	// story.
	Detail string `json:"detail,omitempty"`
}

// String prints the event in one line.
func (e *Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s", e.Seq, e.Time.Format("15:04:05.000000"), e.Server)
	if e.Kind == RPC {
		fmt.Fprintf(&b, " %s.%s", e.Service, e.Method)
	} else {
		fmt.Fprintf(&b, " %s", e.Method)
	}
	if e.Table != "" {
		fmt.Fprintf(&b, " table=%s", e.Table)
	}
	if e.Region != "" {
		fmt.Fprintf(&b, " region=%s", e.Region)
	}
	if e.Rows > 0 {
		fmt.Fprintf(&b, " row=%s rows=%d", cells.Quote(e.Row), e.Rows)
	}
	if e.Kind == RPC {
		fmt.Fprintf(&b, " user=%s %s %s", e.User, e.Latency, e.Outcome)
	}
	if e.Rule != 0 {
		fmt.Fprintf(&b, " rule=%d", e.Rule)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, " %s", e.Detail)
	}
	return b.String()
}

// Filter chooses events. An empty field matches everything.
type Filter struct {
	Kind    Kind   `json:"kind,omitempty"`
	Server  string `json:"server,omitempty"`
	Service string `json:"service,omitempty"`
	Method  string `json:"method,omitempty"`
	Table   string `json:"table,omitempty"`
	Region  string `json:"region,omitempty"`
	User    string `json:"user,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	// Failed chooses calls with any outcome but OK.
	Failed bool   `json:"failed,omitempty"`
	Rule   uint64 `json:"rule,omitempty"`
}

// Match says whether the filter chooses e.
func (f *Filter) Match(e *Event) bool {
	return (f.Kind == 0 || f.Kind == e.Kind) &&
		(f.Server == "" || f.Server == e.Server) &&
		(f.Service == "" || f.Service == e.Service) &&
		(f.Method == "" || f.Method == e.Method) &&
		(f.Table == "" || f.Table == e.Table) &&
		(f.Region == "" || f.Region == e.Region) &&
		(f.User == "" || f.User == e.User) &&
		(f.Outcome == "" || f.Outcome == e.Outcome) &&
		(!f.Failed || e.Kind == RPC && e.Outcome != OK) &&
		(f.Rule == 0 || f.Rule == e.Rule)
}
