package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Action is what a rule does to a call it picks.
type Action string

// The actions.
const (
	// Delay: wait Rule.Delay before the handler runs; later rules still apply.
	Delay Action = "delay"
	// DelayReply: run the handler, then hold its answer back for Rule.Delay.
	DelayReply Action = "delay-reply"
	// Hold: wait until the rule is released or removed, then go on.
	Hold Action = "hold"
	// DropRequest: neither run the handler nor answer.
	DropRequest Action = "drop-request"
	// DropReply: run the handler, then drop the answer: the client cannot know
	// that its write was applied.
	DropReply Action = "drop-reply"
	// Fail: answer Rule.Exception without running the handler.
	Fail Action = "fail"
	// FailAfter: run the handler, then answer Rule.Exception instead of its
	// answer.
	FailAfter Action = "fail-after"
	// Close: reset the connection without running the handler.
	Close Action = "close"
	// CloseAfter: run the handler, then reset the connection.
	CloseAfter Action = "close-after"
	// Truncate: run the handler, send half of the answer's frame, then close.
	Truncate Action = "truncate"
	// Throttle: run the handler, send its answer at Rule.BytesPerSecond; other
	// answers of the connection wait behind it. What is left when the rule is
	// released or removed leaves at once.
	Throttle Action = "throttle"
	// CorruptCells: run the handler, damage the cell block of its answer, each
	// time in the next of the ways of Damage. Answers without one stay as they
	// are.
	CorruptCells Action = "corrupt-cells"
	// Oversize: run the handler, announce an answer of Rule.Size bytes, send
	// what there is, and nothing more on that connection.
	Oversize Action = "oversize"

	// What follows are lies in hbase:meta: they are told to whoever reads it,
	// and Match chooses regions by table, region and rows.

	// MetaHole: the region's row is not there.
	MetaHole Action = "meta-hole"
	// MetaNoServer: the row names no server.
	MetaNoServer Action = "meta-no-server"
	// MetaStale: the row is what it was when the rule was added, or names
	// Rule.Location.
	MetaStale Action = "meta-stale"
	// MetaOverlap: behind the row comes that of a region nobody serves, which
	// begins where this one does and ends at Rule.End, or where the region
	// behind it ends.
	MetaOverlap Action = "meta-overlap"
)

var actions = []Action{Delay, DelayReply, Hold, DropRequest, DropReply, Fail, FailAfter, Close, CloseAfter, Truncate,
	Throttle, CorruptCells, Oversize, MetaHole, MetaNoServer, MetaStale, MetaOverlap}

// Lie says whether the action changes what hbase:meta says, and not a call.
func (a Action) Lie() bool {
	switch a {
	case MetaHole, MetaNoServer, MetaStale, MetaOverlap:
		return true
	}
	return false
}

// before says whether the action happens instead of (or ahead of) the handler.
func (a Action) before() bool {
	switch a {
	case Delay, Hold, DropRequest, Fail, Close:
		return true
	}
	return false
}

// Match chooses calls. An empty field matches everything.
type Match struct {
	// Server is host:port or host,port,startcode.
	Server  string `json:"server,omitempty"`
	Service string `json:"service,omitempty"`
	// Method is the RPC's method; several may be given, separated by commas.
	Method string `json:"method,omitempty"`
	// Table in text form ("ns:t").
	Table string `json:"table,omitempty"`
	// Region is the encoded name.
	Region string `json:"region,omitempty"`
	// StartRow (inclusive) and StopRow (exclusive) match calls whose rows touch
	// the range; with either set, calls without rows don't match.
	StartRow []byte `json:"startRow,omitempty"`
	StopRow  []byte `json:"stopRow,omitempty"`
	User     string `json:"user,omitempty"`
}

// Rule is one disturbance.
type Rule struct {
	Match
	// Name is free text for lists.
	Name string `json:"name,omitempty"`
	// Skip lets the first so many matching calls pass.
	Skip uint64 `json:"skip,omitempty"`
	// Every picks each n-th of the matching calls after Skip; 0 and 1 mean all.
	Every uint64 `json:"every,omitempty"`
	// Times is how many calls the rule picks before it rests; 0 means no bound.
	Times uint64 `json:"times,omitempty"`
	// Probability in (0, 1) picks by chance, reproducibly by Seed; 0 and 1 mean
	// always.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`

	Action Action `json:"action"`
	// Delay for Delay and DelayReply.
	Delay time.Duration `json:"delay,omitempty"`
	// Exception for Fail and FailAfter.
	Exception Exception `json:"exception,omitzero"`
	// BytesPerSecond for Throttle, 1 to 1 GiB.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Size in bytes that Oversize announces, up to 2^31-1, which 0 stands for.
	Size int64 `json:"size,omitempty"`
	// Location is the server a MetaStale row names: host,port,startcode.
	Location string `json:"location,omitempty"`
	// End is where the region of MetaOverlap ends.
	End []byte `json:"end,omitempty"`
}

// Exception is the answer of a failing rule.
type Exception struct {
	// Class is a Java class, with or without package if it is one that clients
	// of HBase act on (see Classes).
	Class string `json:"class,omitempty"`
	// Message defaults to a text of HBase's for the known classes.
	Message string `json:"message,omitempty"`
	// DoNotRetry is taken from the class where that is known.
	DoNotRetry bool `json:"doNotRetry,omitempty"`
	// Overloaded sets server_overloaded: clients from 2.5 on pause longer.
	Overloaded bool `json:"overloaded,omitempty"`
	// Wait is the wait time an RpcThrottlingException tells; default 100 ms.
	Wait time.Duration `json:"wait,omitempty"`
	// Host, Port, StartCode and SeqNum of a RegionMovedException.
	Host      string `json:"host,omitempty"`
	Port      int    `json:"port,omitempty"`
	StartCode uint64 `json:"startCode,omitempty"`
	SeqNum    int64  `json:"seqNum,omitempty"`
}

// ErrBadRule is wrapped by every refusal of a rule.
var ErrBadRule = errors.New("bad rule")

// check completes the rule and tells everything that is wrong with it.
func (r *Rule) check() error {
	var wrong []string
	known := false
	for _, a := range actions {
		known = known || a == r.Action
	}
	if !known {
		wrong = append(wrong, fmt.Sprintf("action %q is none of %v", r.Action, actions))
	}
	if (r.Action == Delay || r.Action == DelayReply) && r.Delay <= 0 {
		wrong = append(wrong, fmt.Sprintf("delay %v is not positive", r.Delay))
	}
	if r.Probability < 0 || r.Probability > 1 {
		wrong = append(wrong, fmt.Sprintf("probability %v is not in [0, 1]", r.Probability))
	}
	if r.Action == Fail || r.Action == FailAfter {
		if r.Exception.Class == "" {
			wrong = append(wrong, "no exception class")
		}
	}
	if r.Action == Throttle && (r.BytesPerSecond < 1 || r.BytesPerSecond > 1<<30) {
		wrong = append(wrong, fmt.Sprintf("%d bytes per second are not 1 to 2^30", r.BytesPerSecond))
	}
	if r.Size < 0 || r.Size > math.MaxInt32 {
		wrong = append(wrong, fmt.Sprintf("size %d is not 0 to 2^31-1", r.Size))
	}
	if r.Action.Lie() && (r.Server != "" || r.Service != "" || r.Method != "" || r.User != "") {
		wrong = append(wrong, "a lie in hbase:meta is told to everybody: it is chosen by table, region and rows")
	}
	for _, f := range []struct {
		name string
		set  bool
		of   Action
	}{
		{"bytesPerSecond", r.BytesPerSecond != 0, Throttle},
		{"size", r.Size != 0, Oversize},
		{"location", r.Location != "", MetaStale},
		{"end", len(r.End) > 0, MetaOverlap},
	} {
		if f.set && r.Action != f.of {
			wrong = append(wrong, fmt.Sprintf("%s is for %s", f.name, f.of))
		}
	}
	if len(r.StopRow) > 0 && bytes.Compare(r.StartRow, r.StopRow) >= 0 {
		wrong = append(wrong, "start row is not before stop row")
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: %s", ErrBadRule, strings.Join(wrong, "; "))
	}
	return nil
}

// Call is what rules match.
type Call struct {
	// Server is host:port, ServerName host,port,startcode.
	Server, ServerName string
	Service, Method    string
	Table, Region      string
	// Also are the other regions of a call about several.
	Also []Place
	// Rows are the rows the call names. With Range they are two, between which
	// the call reads (a scan); an empty second one is open.
	Rows  [][]byte
	Range bool
	User  string
}

// Place is a region, by its encoded name, and its table.
type Place struct{ Table, Region string }

func (m *Match) at(p Place) bool {
	return (m.Table == "" || m.Table == p.Table) && (m.Region == "" || m.Region == p.Region)
}

func (m *Match) matches(c *Call) bool {
	if m.Server != "" && m.Server != c.Server && m.Server != c.ServerName ||
		m.Service != "" && m.Service != c.Service ||
		m.User != "" && m.User != c.User ||
		!m.at(Place{c.Table, c.Region}) && !slices.ContainsFunc(c.Also, m.at) {
		return false
	}
	if m.Method != "" && m.Method != c.Method {
		found := false
		for name := range strings.SplitSeq(m.Method, ",") {
			found = found || strings.TrimSpace(name) == c.Method
		}
		if !found {
			return false
		}
	}
	if len(m.StartRow) == 0 && len(m.StopRow) == 0 {
		return true
	}
	if c.Range && len(c.Rows) == 2 {
		lo, hi := c.Rows[0], c.Rows[1]
		return (len(m.StopRow) == 0 || bytes.Compare(lo, m.StopRow) < 0) &&
			(len(hi) == 0 || bytes.Compare(hi, m.StartRow) > 0 || bytes.Equal(lo, hi) && bytes.Equal(lo, m.StartRow))
	}
	for _, row := range c.Rows {
		if bytes.Compare(row, m.StartRow) >= 0 && (len(m.StopRow) == 0 || bytes.Compare(row, m.StopRow) < 0) {
			return true
		}
	}
	return false
}
