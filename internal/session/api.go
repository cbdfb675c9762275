package session

import (
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Services a connection may be for, as the connection header names them.
const (
	ClientService = "ClientService"
	AdminService  = "AdminService"
	MasterService = "MasterService"
)

// Idempotency says what may be done about a request that was sent and got no
// answer.
type Idempotency = retry.Idempotency

// See package retry.
const (
	Safe   = retry.Safe
	Nonced = retry.Nonced
	Unsafe = retry.Unsafe
)

// RegionCall is one operation on one row. The value may be reused after the
// call returned, not before; nobody writes to it meanwhile.
type RegionCall struct {
	Table meta.TableName
	// Row decides the region. With Before, the region wanted is the one that
	// ends before Row (reversed scans): the region whose start key is strictly
	// smaller; an empty Row then means the table's last region.
	Row    []byte
	Before bool
	// Service defaults to ClientService.
	Service string
	// Method is the RPC's name ("Get", "Mutate", "Scan", ...).
	Method string
	// Param builds the request for a region, on the caller's goroutine, once
	// per attempt (from 1). Message and cells must not change until the call
	// returns. Cells are in KeyValueCodec form, uncompressed; nil for none.
	Param func(region []byte, attempt int) (param wire.Marshaler, cells []byte)
	// Names, if not nil, keeps the name that Param got for the next call with
	// the same Names, which then must not begin before this one has returned.
	Names *RegionNames
	// Result receives the answer. It is reset before each attempt if it has a
	// Reset method.
	Result wire.Unmarshaler
	// Idempotency decides whether an unanswered request is repeated.
	Idempotency Idempotency
	// Priority goes into the request header; 0 means none, or 200 on system
	// tables.
	Priority uint32
	// Timeout bounds one attempt; 0 means Config.RPCTimeout. An attempt never
	// gets more than what is left of the operation.
	Timeout time.Duration
	// Op names the operation in errors and traces: "get", "put", ... Default:
	// Method.
	Op string

	// Combine lets the call, whose Param then is a GetRequest and its Result reads
	// a GetResponse, travel in one Multi with others to the same server. See
	// combiner.
	Combine bool

	// Timeline lets the region's other replicas answer, for reads that may be
	// stale: those are asked one after another if the primary has not answered
	// within ReplicaAfter (0: Config.ReplicaAfter), or at once if it cannot
	// answer just now. Param and Result need not care: they are never used by
	// two goroutines at one time.
	Timeline     bool
	ReplicaAfter time.Duration
	// Replica, if above 0, addresses that replica and no other.
	Replica int
	// Hedge sends the request a second time if it takes longer than 95 of 100
	// calls to its server: to a replica with Timeline, else to the same server
	// over another connection. Only for reads.
	Hedge bool
	// Abandoned, if set, hears of answers that came after another had won. The
	// losers then are not canceled at once. It runs on a goroutine of its own,
	// maybe after the call has returned.
	Abandoned func(answer Answer, result []byte)

	watched  bool        // the context may end at any moment, see rpc.Call
	trouble  func() bool // see op
	internal bool        // the Core's own work
}

// RegionNames remembers the name of the region asked for last, since routes
// make theirs anew each time, in a buffer that is used again. The zero value is
// empty. Not safe for concurrent use.
type RegionNames struct {
	route *route.Route
	name  []byte
}

// of gives the region's name, valid until the next call; a nil receiver makes a
// name of its own.
func (n *RegionNames) of(r *route.Route) []byte {
	if n == nil {
		return r.Name()
	}
	if n.route != r {
		n.route, n.name = r, r.AppendName(n.name[:0])
	}
	return n.name
}

// Answer is what a successful call brings besides its Result.
type Answer struct {
	// Route is the region that answered; Replica is set if it was not its
	// primary.
	Route   *route.Route
	Replica *route.Replica
	// Cells is the answer's cell block, decompressed, in KeyValueCodec form.
	// It belongs to the caller.
	Cells []byte
	// Attempts counts the requests sent, at least 1.
	Attempts int
}

// Item is one entry of a batch: a single action, or a group of actions on one
// row that the server applies together.
type Item struct {
	Row []byte
	// Actions holds one action (get, mutation or endpoint call), or, with
	// Atomic or Condition, all mutations of the group. Batch sets Action.Index.
	Actions []*pb.Action
	// Atomic makes the actions one atomic change of the row (RowMutations).
	Atomic bool
	// Condition makes the group a check-and-mutate.
	Condition *pb.Condition
	// Cells holds the cells of the item's mutations in order, in KeyValueCodec
	// form; the mutations' associated_cell_count says whose they are.
	Cells       []byte
	Idempotency Idempotency
	// Timeline lets the region's other replicas answer a lone get, as in
	// RegionCall.
	Timeline bool
	// Priority goes into the header of the request that carries the item, if
	// no item beside it has a higher one; 0 means none, or 200 on system
	// tables.
	Priority uint32
}

// Outcome is what became of an Item.
type Outcome struct {
	// Results has one entry per action, nil if Err is set. For a condition
	// over several actions HBase puts everything into the first.
	Results []ActionResult
	// Processed says whether the condition held (true without a condition).
	Processed bool
	// Attempts counts the requests that carried the item.
	Attempts int
	Err      error
}

// ActionResult is the answer to one action.
type ActionResult struct {
	Cells   []cells.Cell
	Exists  *bool // only for an existence-only Get
	Stale   bool
	Partial bool
	Service *pb.CoprocessorServiceResult
}

// ServerCall is a call that is addressed to a server rather than to a row.
type ServerCall struct {
	Service     string
	Method      string
	Param       wire.Marshaler
	Result      wire.Unmarshaler
	Idempotency Idempotency
	Priority    uint32
	Timeout     time.Duration // of one attempt; 0 = Config.RPCTimeout
	Op          string
}
