package control

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span that reads and writes itself as Go does ("150ms",
// "2s"); a bare number is milliseconds.
type Duration time.Duration

// MarshalText gives Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalJSON reads a string in Go's notation or a number of milliseconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var ms float64
	if err := json.Unmarshal(b, &ms); err == nil {
		if ms > 1e15 || ms < -1e15 {
			return fmt.Errorf("duration of %g ms is out of range", ms)
		}
		*d = Duration(ms * float64(time.Millisecond))
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is a text like \"150ms\" or a number of milliseconds")
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// Bytes is a row or key, written as HBase's shell does: printable ASCII as it
// is, every other byte, and the backslash, as \xHH.
type Bytes []byte

// MarshalText gives HBase's notation.
func (b Bytes) MarshalText() ([]byte, error) {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c >= ' ' && c <= '~' && c != '\\' {
			out = append(out, c)
		} else {
			out = append(out, '\\', 'x', hex[c>>4], hex[c&15])
		}
	}
	return out, nil
}

// UnmarshalText reads HBase's notation; a backslash that begins no \xHH stands
// for itself.
func (b *Bytes) UnmarshalText(text []byte) error {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) && text[i+1] == 'x' {
			if n, err := strconv.ParseUint(string(text[i+2:i+4]), 16, 8); err == nil {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, text[i])
	}
	*b = out
	return nil
}

// Status is the answer of GET /status.
type Status struct {
	// Address is what clients connect to: hbase://host:port/parent.
	Address   string `json:"address"`
	ZooKeeper string `json:"zookeeper"`
	// Control is this port's URL.
	Control   string   `json:"control"`
	ClusterID string   `json:"clusterId"`
	Masters   []Master `json:"masters"`
	Servers   []Server `json:"servers"`
	// Meta is the host,port,startcode of hbase:meta's server.
	Meta    string `json:"meta"`
	Tables  int    `json:"tables"`
	Regions int    `json:"regions"`
	Clock   Clock  `json:"clock"`
	// LastEvent is the sequence number of the newest event.
	LastEvent uint64 `json:"lastEvent"`
}

// Master is a master's place.
type Master struct {
	Index   int    `json:"index"`
	Address string `json:"address"`
	Name    string `json:"name"`
	Running bool   `json:"running"`
	Active  bool   `json:"active"`
}

// Server is a region server's place.
type Server struct {
	Index   int    `json:"index"`
	Address string `json:"address"`
	// Name is the last incarnation: host,port,startcode.
	Name string `json:"name"`
	// State is running, paused, hung, stopped or dead.
	State   string `json:"state"`
	Regions int    `json:"regions"`
}

// Region is one region.
type Region struct {
	Table   string `json:"table"`
	Encoded string `json:"encoded"`
	Name    string `json:"name"`
	Start   Bytes  `json:"start"`
	End     Bytes  `json:"end"`
	State   string `json:"state"`
	// Server is host,port,startcode; Index its place, -1 if there is none.
	Server  string `json:"server"`
	Index   int    `json:"index"`
	OpenSeq int64  `json:"openSeq"`
	// Parent was split and is served no more.
	Parent bool `json:"parent,omitempty"`
	// Replicas are the secondary replicas, beginning with the one with id 1.
	Replicas []Replica `json:"replicas,omitempty"`
}

// Replica is a secondary replica of a region.
type Replica struct {
	ID      int    `json:"id"`
	Encoded string `json:"encoded"`
	State   string `json:"state"`
	Server  string `json:"server"`
	Index   int    `json:"index"`
	OpenSeq int64  `json:"openSeq"`
}

// RegionRef names a region: by its encoded name, or as the region of a table
// that holds a row.
type RegionRef struct {
	Region string `json:"region,omitempty"`
	Table  string `json:"table,omitempty"`
	Row    Bytes  `json:"row,omitempty"`
}

// MoveRequest moves a region; an empty To lets the master choose.
type MoveRequest struct {
	RegionRef
	// To is a server: index, host:port, host,port,startcode, or "meta" for the
	// one that holds hbase:meta.
	To string `json:"to,omitempty"`
}

// SplitRequest splits a region at a row; without one, in its middle.
type SplitRequest struct {
	RegionRef
	At Bytes `json:"at,omitempty"`
}

// MergeRequest merges neighbouring regions, named in key order.
type MergeRequest struct {
	Regions []string `json:"regions"`
}

// ServerRequest names a server for kill, stop, start, pause, resume, hang,
// slow, expire and reset-connections: a region server as in MoveRequest.To, or
// "master" or "master:1" (kill, stop, start).
type ServerRequest struct {
	Server string `json:"server"`
	// Delay is for slow.
	Delay Duration `json:"delay,omitempty"`
	// LoseUnsynced is for the kill of a region server: writes are lost that
	// HBase would lose (ASYNC_WAL, SKIP_WAL).
	LoseUnsynced bool `json:"loseUnsynced,omitempty"`
}

// BalanceResult is the answer of POST /balance.
type BalanceResult struct {
	Ran     bool `json:"ran"`
	Planned int  `json:"planned"`
	Done    int  `json:"done"`
}

// CreateRequest makes a table with families of default settings.
type CreateRequest struct {
	Table    string   `json:"table"`
	Families []string `json:"families"`
	Splits   []Bytes  `json:"splits,omitempty"`
	// Replicas of each region; 0 and 1 mean none but the region itself.
	Replicas int `json:"replicas,omitempty"`
}

// ReplicaLagRequest lets secondary replicas lag behind; 0 ends it.
type ReplicaLagRequest struct {
	Lag Duration `json:"lag"`
}

// GenerateRequest makes a generated table: see minihbase.GeneratedTable.
type GenerateRequest struct {
	Table    string   `json:"table"`
	Families []string `json:"families,omitempty"`
	// Regions, 1 to 1,000,000.
	Regions int `json:"regions"`
	// KeyFormat is a text with one %0Nd or %0Nx; "%08d" if empty.
	KeyFormat string `json:"keyFormat,omitempty"`
	// Rows of each region; 0 means 10, -1 none.
	Rows int `json:"rows,omitempty"`
	// ValueSize in bytes; 0 makes the row's key the value.
	ValueSize int `json:"valueSize,omitempty"`
}

// Rule is a chaos rule: which calls, which of them, what happens.
type Rule struct {
	// Which calls; empty fields match everything. Server is host:port or
	// host,port,startcode; Method may be several, separated by commas.
	Server   string `json:"server,omitempty"`
	Service  string `json:"service,omitempty"`
	Method   string `json:"method,omitempty"`
	Table    string `json:"table,omitempty"`
	Region   string `json:"region,omitempty"`
	StartRow Bytes  `json:"startRow,omitempty"`
	StopRow  Bytes  `json:"stopRow,omitempty"`
	User     string `json:"user,omitempty"`

	// Which of them: skip so many, then every n-th, so many times (0 for ever),
	// with a probability (0 and 1: always) drawn from a seed.
	Name        string  `json:"name,omitempty"`
	Skip        uint64  `json:"skip,omitempty"`
	Every       uint64  `json:"every,omitempty"`
	Times       uint64  `json:"times,omitempty"`
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`

	// Action: delay, delay-reply, hold, drop-request, drop-reply, fail,
	// fail-after, close, close-after, truncate, throttle, corrupt-cells,
	// oversize; or, told to readers of hbase:meta, meta-hole, meta-no-server,
	// meta-stale, meta-overlap.
	Action string   `json:"action"`
	Delay  Duration `json:"delay,omitempty"`
	// Exception for fail and fail-after.
	Exception *Exception `json:"exception,omitempty"`
	// BytesPerSecond for throttle, Size in bytes for oversize.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	Size           int64 `json:"size,omitempty"`
	// Location is the server that a meta-stale row names; End is where the
	// region of meta-overlap ends.
	Location string `json:"location,omitempty"`
	End      Bytes  `json:"end,omitempty"`
}

// Exception is what a failing rule answers.
type Exception struct {
	// Class is a Java class, without package if clients of HBase know it.
	Class      string   `json:"class"`
	Message    string   `json:"message,omitempty"`
	DoNotRetry bool     `json:"doNotRetry,omitempty"`
	Overloaded bool     `json:"overloaded,omitempty"`
	Wait       Duration `json:"wait,omitempty"`
	Host       string   `json:"host,omitempty"`
	Port       int      `json:"port,omitempty"`
	StartCode  uint64   `json:"startCode,omitempty"`
	SeqNum     int64    `json:"seqNum,omitempty"`
}

// RuleStatus is a rule and how often it was applied.
type RuleStatus struct {
	ID   uint64 `json:"id"`
	Hits uint64 `json:"hits"`
	// Resting rules have been applied as often as they were to be.
	Resting bool `json:"resting"`
	Rule
}

// Clock is the cluster's clock.
type Clock struct {
	Now    time.Time `json:"now"`
	Frozen bool      `json:"frozen"`
}

// ClockRequest changes the clock, in this order: reset, freeze (at a time, or
// where it stands), advance, resume.
type ClockRequest struct {
	Reset   bool       `json:"reset,omitempty"`
	Freeze  bool       `json:"freeze,omitempty"`
	At      *time.Time `json:"at,omitempty"`
	Advance Duration   `json:"advance,omitempty"`
	Resume  bool       `json:"resume,omitempty"`
}

// MasterRequest disturbs the master; absent fields stay as they are.
type MasterRequest struct {
	// TransitionGap is how long a region stays closed in every transition.
	TransitionGap *Duration `json:"transitionGap,omitempty"`
	// ProcedureDelay is how much longer every procedure takes.
	ProcedureDelay *Duration `json:"procedureDelay,omitempty"`
	// Initializing makes the master answer PleaseHoldException.
	Initializing *bool `json:"initializing,omitempty"`
	// FailNext makes the next procedure end with an exception.
	FailNext *Exception `json:"failNext,omitempty"`
	// FailClass limits FailNext to a class of procedures
	// ("CreateTableProcedure").
	FailClass string `json:"failClass,omitempty"`
}

// GroupRequest changes region server groups (POST /group): add, remove, or move
// servers and tables to it.
type GroupRequest struct {
	Name    string   `json:"name"`
	Add     bool     `json:"add,omitempty"`
	Remove  bool     `json:"remove,omitempty"`
	Servers []string `json:"servers,omitempty"`
	Tables  []string `json:"tables,omitempty"`
}

// ZooKeeperFault is the body of POST /zk/fault.
type ZooKeeperFault struct {
	// Mode is healthy, frozen, refuse, black hole, hangup, silent, leaderless,
	// electing or read-only.
	Mode          string   `json:"mode,omitempty"`
	Latency       Duration `json:"latency,omitempty"`
	StallPings    bool     `json:"stallPings,omitempty"`
	HangAfter     int      `json:"hangAfter,omitempty"`
	Truncate      int      `json:"truncate,omitempty"`
	HalfHandshake bool     `json:"halfHandshake,omitempty"`
	// Member is the index of the ensemble's member it is about; nil for all.
	Member *int `json:"member,omitempty"`
}

// StallRequest is the body of POST /zk/stall-leader.
type StallRequest struct {
	// Notice is how long the followers do not notice; 10 s if nil.
	Notice *Duration `json:"notice,omitempty"`
	// Elect is how long they then have no leader; 2 s if nil.
	Elect *Duration `json:"elect,omitempty"`
}

// ZooKeeperMember is a member of the ZooKeeper ensemble.
type ZooKeeperMember struct {
	Index   int            `json:"index"`
	Address string         `json:"address"`
	Leader  bool           `json:"leader,omitempty"`
	Fault   ZooKeeperFault `json:"fault"`
}

// Session is a ZooKeeper session. Its id is printed in hexadecimal with 0x.
type Session struct {
	ID         string   `json:"id"`
	Timeout    Duration `json:"timeout"`
	ExpiresIn  Duration `json:"expiresIn"`
	Internal   bool     `json:"internal,omitempty"`
	RemoteAddr string   `json:"remoteAddr,omitempty"`
	// Member is the member of the ensemble it is connected to, -1 if none.
	Member     int `json:"member"`
	Ephemerals int `json:"ephemerals"`
}

// SessionID prints a session id as Session carries it.
func SessionID(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// ParseSessionID reads what SessionID prints.
func ParseSessionID(text string) (int64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("session id %q is not hexadecimal", text)
	}
	return int64(n), nil
}

// ZNode is the body of PUT /zk/node and the answer of GET /zk/node.
type ZNode struct {
	Path     string   `json:"path"`
	Data     []byte   `json:"data"` // base64 in JSON
	Children []string `json:"children,omitempty"`
}

// Event is one thing that happened: a call, or something the cluster did. It
// has the fields of the event log; see docs/control-api.md.
type Event struct {
	Seq     uint64    `json:"seq"`
	Kind    string    `json:"kind"`
	Time    time.Time `json:"time"`
	Server  string    `json:"server,omitempty"`
	Service string    `json:"service,omitempty"`
	Method  string    `json:"method"`
	Table   string    `json:"table,omitempty"`
	Region  string    `json:"region,omitempty"`
	Row     Bytes     `json:"row,omitempty"`
	Rows    int       `json:"rows,omitempty"`
	User    string    `json:"user,omitempty"`
	Client  string    `json:"client,omitempty"`
	Latency Duration  `json:"latency,omitempty"`
	Outcome string    `json:"outcome,omitempty"`
	Rule    uint64    `json:"rule,omitempty"`
	Detail  string    `json:"detail,omitempty"`
}

// EventFilter chooses events; empty fields match everything.
type EventFilter struct {
	Kind                                                  string // "rpc" or "cluster"
	Server, Service, Method, Table, Region, User, Outcome string
	// Failed chooses calls with any outcome but "ok".
	Failed bool
	Rule   uint64
}

// Events is the answer of GET /events.
type Events struct {
	Events []Event `json:"events"`
	// Lost is how many events after since are no longer remembered.
	Lost uint64 `json:"lost"`
	// Last is the sequence number of the newest event there is.
	Last uint64 `json:"last"`
}

// Counter counts calls since the cluster began.
type Counter struct {
	Server  string `json:"server"`
	Service string `json:"service"`
	Method  string `json:"method"`
	Table   string `json:"table,omitempty"`
	Outcome string `json:"outcome"`
	Calls   uint64 `json:"calls"`
}

// Error is an answer that says no.
type Error struct {
	// Code is the HTTP status: 400 for a bad request, 404 for something that
	// is not there, 409 for what cannot be done now.
	Code    int    `json:"-"`
	Message string `json:"error"`
}

func (e *Error) Error() string { return e.Message }
