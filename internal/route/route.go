package route

import (
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Origin says from whom a route was learned.
type Origin uint8

// The origins, in ascending order of authority.
const (
	FromSnapshot Origin = iota
	FromMetaReplica
	FromMeta
	FromHint
)

// Route is our belief about one region: its key range and its server. What the
// methods return does not change, except for Valid, Rejected and the times.
// Byte slices returned must not be changed.
type Route struct {
	table  *table
	server *health.Server
}

// Table names the table.
func (r *Route) Table() meta.TableName { return meta.TableName{} }

// Start gives the region's first row (empty: from the beginning).
func (r *Route) Start() []byte { return nil }

// End gives the first row after the region (empty: to the end).
func (r *Route) End() []byte { return nil }

// Contains says whether the region holds the row.
func (r *Route) Contains(row []byte) bool { return false }

// RegionID is the region's creation time in ms.
func (r *Route) RegionID() uint64 { return 0 }

// OpenSeq orders the locations of one region; meta.NoSeqNum if unknown.
func (r *Route) OpenSeq() int64 { return 0 }

// Server gives the server believed to hold the region; nil if meta names none
// (such a route is never valid).
func (r *Route) Server() *health.Server { return r.server }

// Epoch is the server's epoch captured when the route was learned.
func (r *Route) Epoch() uint64 { return 0 }

// Encoded gives the encoded region name (32 hex digits).
func (r *Route) Encoded() string { return "" }

// Name gives the full region name, made anew by each call.
func (r *Route) Name() []byte { return nil }

// AppendName appends the full region name.
func (r *Route) AppendName(b []byte) []byte { return b }

// AppendEncoded appends the encoded region name; requests may carry it as
// ENCODED_REGION_NAME, except for hbase:meta.
func (r *Route) AppendEncoded(b []byte) []byte { return b }

// Region gives the identity as meta knows it.
func (r *Route) Region() meta.Region { return meta.Region{} }

// Origin says from whom the route was learned.
func (r *Route) Origin() Origin { return 0 }

// Age is the time since the route was last confirmed by its origin, to the
// second.
func (r *Route) Age() time.Duration { return 0 }

// Valid says whether nothing is known against the route: not rejected, and the
// server's epoch is the one captured.
func (r *Route) Valid() bool { return false }

// String is for traces.
func (r *Route) String() string { return "" }
