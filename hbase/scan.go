package hbase

import "strconv"

// Scan reads a range of rows. Make it with [NewScan] and friends or as a
// literal; run it with [Table.Scan]. A Scan is inert once the scanner is made:
// the scanner keeps a copy.
//
// The zero value of every field is HBase's default; the zero Scan reads the
// whole table.
type Scan struct {
	// Start and Stop bound the rows; empty is open. Start is included and Stop
	// excluded unless the flags say otherwise. In a reversed scan Start is the
	// larger key, and empty means the end of the table.
	Start, Stop  []byte
	ExcludeStart bool
	IncludeStop  bool
	// Reversed walks from larger to smaller rows; cells inside a row keep
	// their order.
	Reversed bool

	// Columns to read; none means every family.
	Columns []Column
	// TimeRange keeps only cells stamped inside it. Default: all of time.
	TimeRange TimeRange
	// FamilyTimeRange overrides TimeRange for single families (HBase 1.2+).
	FamilyTimeRange map[string]TimeRange
	// MaxVersions per column, newest first. Default 1.
	MaxVersions int
	// MaxPerFamily caps the cells per row and family, OffsetPerFamily skips
	// that many first. Default 0: no cap.
	MaxPerFamily, OffsetPerFamily int
	// Filter runs on the server. Default none. Filters that count (PageFilter)
	// start afresh in every region, and when a scan resumes after a failure.
	Filter Filter
	// Raw also returns delete markers and what they hide.
	Raw bool

	// Limit ends the scan after that many rows. Default 0: no limit.
	Limit int
	// Batch cuts rows into results of at most that many cells. Default 0:
	// whole rows.
	Batch int
	// AllowPartial hands out the parts of a row as they come, cut where the
	// server liked; [Result.Partial] marks all but the last. Use it, or Batch,
	// for rows that do not fit in memory.
	AllowPartial bool
	// NeedCursor also hands out results without cells that only tell how far
	// the server has got ([Result.Cursor]), while a filter drops everything.
	NeedCursor bool

	// Caching is the most rows one answer may hold. Default 0: as many as
	// MaxResultSize allows.
	Caching int
	// MaxResultSize is the most bytes one answer should hold. Default 0: the
	// client's setting (2 MiB).
	MaxResultSize int64
	// Prefetch asks for the next answer while the previous one is consumed: at
	// most one more answer in memory. Default PrefetchLong.
	Prefetch Prefetch

	// ReuseResults makes rows cost no memory: a [Result], its cells and all
	// their bytes are valid only until the next one is asked for or the scan is
	// closed, and are then overwritten. What is to be kept longer has to be
	// copied, as with [Result.Clone]. Default: results stay as they are.
	ReuseResults bool

	// SkipBlockCache asks the server not to keep the blocks it reads; set it
	// for large one-off scans.
	SkipBlockCache bool
	// Isolation is ReadCommitted unless set.
	Isolation Isolation
	// ReadType is ReadDefault unless set.
	ReadType ReadType
	// Consistency is Strong unless set. With Timeline each region's scanner is
	// opened as a [Get] is answered, but the other replicas are asked after
	// [Config.ScanReplicaAfter]. It stays with the replica that has opened it;
	// when that fails, the scan goes on behind the last row wherever a scanner
	// can be opened. What one replica has not heard of yet may then be missing
	// although another showed later rows.
	Consistency Consistency
	// ReplicaID, with Timeline, addresses this replica of each region and no
	// other. Default 0: none in particular.
	ReplicaID int
	// Hedge is [Get.Hedge] for the opening of scanners.
	Hedge bool
	// LoadOnDemand lets the server read families the filter does not need only
	// for rows that pass. Default nil: the server decides.
	LoadOnDemand *bool
	// Metrics asks the server to count what it read; see [Scanner.Metrics].
	Metrics bool
	// QueryMetrics asks for [Result.BlockBytesScanned]. HBase 2.6.2 and later;
	// older servers and the embedded cluster do not say.
	QueryMetrics bool
	// ID is a name that shows in the server's slow-call log.
	ID string
	// Attributes travel to the server untouched.
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

// Prefetch says when a scan asks for answers ahead of its caller.
type Prefetch uint8

const (
	// PrefetchLong begins with the second answer: who has consumed a whole one
	// will want more, and short scans cost nothing more than they did.
	PrefetchLong Prefetch = iota
	PrefetchAlways
	PrefetchNever
)

// String names the setting.
func (p Prefetch) String() string {
	switch p {
	case PrefetchLong:
		return "long"
	case PrefetchAlways:
		return "always"
	case PrefetchNever:
		return "never"
	}
	return "prefetch " + strconv.Itoa(int(p))
}

// NewScan reads the whole table.
func NewScan() *Scan { return &Scan{} }

// NewScanRange reads start (inclusive) to stop (exclusive).
func NewScanRange[A, B Bytes](start A, stop B) *Scan {
	return &Scan{Start: []byte(start), Stop: []byte(stop)}
}

// NewScanPrefix reads the rows that begin with prefix.
func NewScanPrefix[B Bytes](prefix B) *Scan {
	p := []byte(prefix)
	return &Scan{Start: p, Stop: PrefixStop(p)}
}

// PrefixStop is the smallest row behind all rows that begin with prefix; nil
// (open) if there is none.
func PrefixStop(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			stop := append([]byte(nil), prefix[:i+1]...)
			stop[i]++
			return stop
		}
	}
	return nil
}

// Reverse makes the scan run downwards from Start (the larger key) to Stop. A
// range made with NewScanRange or NewScanPrefix is turned round, so that it
// covers the same rows.
func (s *Scan) Reverse() *Scan {
	if s.Reversed {
		return s
	}
	s.Reversed = true
	s.Start, s.Stop = s.Stop, s.Start
	s.ExcludeStart, s.IncludeStop = !s.IncludeStop, !s.ExcludeStart
	if len(s.Start) == 0 {
		s.ExcludeStart = false
	}
	if len(s.Stop) == 0 {
		s.IncludeStop = false
	}
	return s
}

// Family adds a whole family.
func (s *Scan) Family(family string) *Scan {
	s.Columns = addColumn(s.Columns, family)
	return s
}

// Column adds columns of one family.
func (s *Scan) Column(family string, qualifiers ...string) *Scan {
	s.Columns = addColumn(s.Columns, family, qualifiers...)
	return s
}

// Versions sets MaxVersions.
func (s *Scan) Versions(n int) *Scan { s.MaxVersions = n; return s }

// In sets TimeRange.
func (s *Scan) In(r TimeRange) *Scan { s.TimeRange = r; return s }

// WithFilter sets Filter.
func (s *Scan) WithFilter(f Filter) *Scan { s.Filter = f; return s }

// WithLimit sets Limit.
func (s *Scan) WithLimit(rows int) *Scan { s.Limit = rows; return s }
