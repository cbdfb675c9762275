package hbase

import "slices"

// Get reads one row. Make it with [NewGet] or as a literal; it is inert once
// the call has returned and may then be used again.
//
// The zero value of every field is HBase's default.
type Get struct {
	// Row is the key: 1 to 32,767 bytes.
	Row []byte
	// Columns to read; none means every family.
	Columns []Column
	// TimeRange keeps only cells stamped inside it. Default: all of time.
	TimeRange TimeRange
	// FamilyTimeRange overrides TimeRange for single families (HBase 1.2+).
	FamilyTimeRange map[string]TimeRange
	// MaxVersions per column, newest first. Default 1; use [AllVersions] for
	// whatever the family keeps.
	MaxVersions int
	// MaxPerFamily caps the cells (versions count) returned per family;
	// OffsetPerFamily skips that many first. Default 0: no cap.
	MaxPerFamily, OffsetPerFamily int
	// Filter runs on the server. Default none.
	Filter Filter
	// SkipBlockCache asks the server not to keep the blocks it reads.
	SkipBlockCache bool
	// Isolation is ReadCommitted unless set.
	Isolation Isolation
	// Consistency is Strong unless set: only the region's primary answers. With
	// Timeline, the primary is asked first, and if it does not answer within
	// [Config.ReplicaAfter], or cannot answer just now, the other replicas are
	// asked one after another, the fast ones first; whoever answers first wins,
	// and [Result.Stale] says if it was not the primary. Tables without replicas
	// (REGION_REPLICATION) behave as with Strong.
	Consistency Consistency
	// ReplicaID, with Timeline, addresses this replica and no other. Default 0:
	// none in particular.
	ReplicaID int
	// Hedge sends the request a second time if it takes longer than 95 of 100
	// calls to the same server (5 ms to 1 s): to a replica with Timeline, else
	// over a second connection. The server does the work twice then, so hedges
	// are at most a twentieth of the client's calls, and none go to servers that
	// shed load. Batches take no notice of it. See also [WithHedgedReads].
	Hedge bool
	// LoadOnDemand lets the server read families the filter does not need only
	// for rows that pass. Default nil: the server decides.
	LoadOnDemand *bool
	// ExistenceOnly reads no cells: [Result.Exists] says whether there are any.
	// See [Table.Exists] and [Table.MultiExists].
	ExistenceOnly bool
	// QueryMetrics asks for [Result.BlockBytesScanned]. HBase 2.6.2 and later;
	// older servers and the embedded cluster do not say.
	QueryMetrics bool
	// ID is a name that shows in the server's slow-call log.
	ID string
	// Attributes travel to the server untouched (coprocessors read them).
	Attributes map[string][]byte
	// Priority of the request among others in the server's queues, for an
	// HBase that has been told to heed it. Default 0: none, or 200 on system
	// tables.
	Priority uint32
	// Authorizations are the visibility labels to read with, out of those the
	// user has. Default none named: what the server chooses, usually all he has.
	Authorizations []string
	// ACL travels as HBase's attribute of that name. HBase itself reads it on
	// mutations only; coprocessors may do otherwise.
	ACL ACL
}

// AllVersions asks for every version the family keeps.
const AllVersions = 1<<31 - 1

// NewGet reads the whole row, newest versions.
func NewGet[B Bytes](row B) *Get { return &Get{Row: []byte(row)} }

// Family adds a whole family.
func (g *Get) Family(family string) *Get {
	g.Columns = addColumn(g.Columns, family)
	return g
}

// Column adds columns of one family.
func (g *Get) Column(family string, qualifiers ...string) *Get {
	g.Columns = addColumn(g.Columns, family, qualifiers...)
	return g
}

// Versions sets MaxVersions.
func (g *Get) Versions(n int) *Get { g.MaxVersions = n; return g }

// In sets TimeRange.
func (g *Get) In(r TimeRange) *Get { g.TimeRange = r; return g }

// WithFilter sets Filter.
func (g *Get) WithFilter(f Filter) *Get { g.Filter = f; return g }

func (*Get) isOp() {}

// addColumn merges into the family's entry, so that naming a family twice
// selects the union of its columns; a whole family stays whole, as in HBase
// where the last addFamily wins over columns named before it.
//
// A copy of a Get or Scan shares its columns with the original, and neither is
// to see what is added to the other: so nothing is changed in place. Qualifiers
// are added to a family a few times at most, if not all at once.
func addColumn(cols []Column, family string, qualifiers ...string) []Column {
	cols = slices.Clone(cols)
	at := -1
	for i := range cols {
		if string(cols[i].Family) == family {
			at = i
			break
		}
	}
	if at < 0 {
		cols = append(cols, Column{Family: []byte(family)})
		at = len(cols) - 1
	} else if len(qualifiers) == 0 || len(cols[at].Qualifiers) == 0 {
		cols[at].Qualifiers = nil
		return cols
	}
	named := slices.Clip(cols[at].Qualifiers)
	for _, q := range qualifiers {
		named = append(named, []byte(q))
	}
	cols[at].Qualifiers = named
	return cols
}
