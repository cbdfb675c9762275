package hbase

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Cell is one version of one column: row, family, qualifier, timestamp (ms),
// type, value and tags.
type Cell = cells.Cell

// CellType is the type byte of a cell. Everything a plain read returns is a
// [TypePut]; the delete markers appear only in raw scans.
type CellType = cells.Type

// The types of cells that a read can return.
const (
	TypePut                 = cells.Put
	TypeDelete              = cells.Delete
	TypeDeleteFamilyVersion = cells.DeleteFamilyVersion
	TypeDeleteColumn        = cells.DeleteColumn
	TypeDeleteFamily        = cells.DeleteFamily
)

// TableName is a namespace and a qualifier; its text form leaves the default
// namespace out.
type TableName = meta.TableName

// ServerName is one incarnation of a server process: host, port and start code.
type ServerName = meta.ServerName

// Region is the identity of a region: table, creation id, key range, replica.
type Region = meta.Region

// ParseTableName reads "qualifier" or "namespace:qualifier" and checks the
// characters HBase allows.
func ParseTableName(s string) (TableName, error) { return meta.ParseTableName(s) }

// LatestTimestamp in a mutation stands for "the server's clock when it applies
// the change". It is what the builders use unless a timestamp is given.
const LatestTimestamp = cells.LatestTimestamp

// Quote prints bytes as HBase's tools do: printable ASCII stands for itself,
// everything else becomes \xHH.
func Quote(b []byte) string { return cells.Quote(b) }

// Bytes is what row keys may be given as: text or bytes. Bytes are not copied;
// leave them alone until the call has returned.
type Bytes interface{ ~string | ~[]byte }

// Column selects a family, or some qualifiers of it.
type Column struct {
	Family []byte
	// Qualifiers to read; none means the whole family. An empty qualifier is
	// legal and stands for itself.
	Qualifiers [][]byte
}

// TimeRange is a half-open interval of cell timestamps in milliseconds:
// From <= t < To. The zero value means all of time.
type TimeRange struct{ From, To int64 }

// At is the range that holds exactly one timestamp.
func At(ts int64) TimeRange {
	if ts == math.MaxInt64 {
		return TimeRange{ts, ts}
	}
	return TimeRange{ts, ts + 1}
}

// Between is the range from (inclusive) to (exclusive).
func Between(from, to time.Time) TimeRange {
	return TimeRange{from.UnixMilli(), to.UnixMilli()}
}

// IsZero says whether the range is all of time.
func (r TimeRange) IsZero() bool { return r == TimeRange{} }

// String prints the range as [from,to).
func (r TimeRange) String() string {
	if r.IsZero() {
		return "[0,inf)"
	}
	return fmt.Sprintf("[%d,%d)", r.From, r.To)
}

// Filter is evaluated by the region server. The folder filter has HBase's own;
// anything with the class name and the protobuf bytes that the server expects
// will do.
type Filter interface {
	// Name is the full Java class name.
	Name() string
	// Marshal gives the protobuf bytes of that class.
	Marshal() ([]byte, error)
}

// Durability says how far a write must have got into the server's log before
// it is acknowledged.
type Durability uint8

// HBase's durabilities.
const (
	UseDefault Durability = iota // what the table says; SYNC_WAL if it says nothing
	SkipWAL                      // never logged: lost if the server dies before a flush
	AsyncWAL                     // logged soon after the answer
	SyncWAL                      // handed to the file system's replicas
	FsyncWAL                     // forced to disk
)

var durabilityNames = [...]string{"USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL"}

// String gives HBase's name.
func (d Durability) String() string { return enumName("Durability", durabilityNames[:], uint8(d)) }

// CompareOp is the operator of a [CheckAndMutate] condition.
type CompareOp uint8

// HBase's comparison operators.
const (
	Less CompareOp = iota
	LessOrEqual
	Equal
	NotEqual
	GreaterOrEqual
	Greater
)

var compareNames = [...]string{"LESS", "LESS_OR_EQUAL", "EQUAL", "NOT_EQUAL", "GREATER_OR_EQUAL", "GREATER"}

// String gives HBase's name.
func (o CompareOp) String() string { return enumName("CompareOp", compareNames[:], uint8(o)) }

// Isolation says which writes a read may see.
type Isolation uint8

// HBase's isolation levels.
const (
	ReadCommitted   Isolation = iota // only finished writes
	ReadUncommitted                  // also writes in progress, row by row
)

// String gives HBase's name.
func (i Isolation) String() string {
	return enumName("Isolation", []string{"READ_COMMITTED", "READ_UNCOMMITTED"}, uint8(i))
}

// ReadType says how a server reads files for a scan.
type ReadType uint8

// HBase's read types.
const (
	ReadDefault ReadType = iota // starts positional, becomes a stream when the scan turns out long
	ReadStream                  // sequential from the start
	ReadPositional
)

// String gives HBase's name.
func (r ReadType) String() string {
	return enumName("ReadType", []string{"DEFAULT", "STREAM", "PREAD"}, uint8(r))
}

// Consistency says who may answer a read.
type Consistency uint8

// HBase's consistencies.
const (
	Strong   Consistency = iota // the primary region only
	Timeline                    // a replica may answer; [Result.Stale] says so
)

// String gives HBase's name.
func (c Consistency) String() string {
	return enumName("Consistency", []string{"STRONG", "TIMELINE"}, uint8(c))
}

func enumName(kind string, names []string, v uint8) string {
	if int(v) < len(names) {
		return names[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}
