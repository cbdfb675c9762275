package host

import (
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Quotas tells region servers which throttles calls have, and which tables have
// outgrown their space. All methods are safe
// for concurrent use and return at once.
type Quotas interface {
	// Throttles gives the throttles that a user's calls on a table have to pass,
	// in HBase's order: the user's, the table's, its namespace's, the server's.
	// There are none while throttling is switched off. The list may be kept and
	// must not be changed.
	Throttles(user string, table meta.TableName) []Throttle
	// Space gives what a table uses of its space quota; nil if it has none, or it
	// was not reckoned yet. It must not be changed.
	Space(table meta.TableName) *Space
	// Spaces lists it for all tables that have a quota, by name.
	Spaces() []*pb.GetSpaceQuotaSnapshotsResponse_TableQuotaSnapshot
}

// Throttle is the limits of one target.
type Throttle struct {
	// Target names what has the limits: what is spent of them is the same for
	// all calls with the same target.
	Target string
	// Limits are replaced by a new value when they change.
	Limits *pb.Throttle
	// Exceedable limits do not count as long as those of the server allow a call
	// (exceed throttle quota); what it costs does.
	Exceedable bool
}

// Space is what a table, or its namespace, uses of a space quota.
type Space struct {
	Used, Limit uint64 // bytes
	// Violated says that Policy holds.
	Violated bool
	Policy   pb.SpaceViolationPolicy
}
