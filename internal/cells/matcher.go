package cells

import (
	"bytes"
	"math"
)

// Code is a Matcher's verdict on a cell, and where to go from it.
type Code uint8

const (
	MatchInclude        Code = iota // return it, go to the next cell
	MatchIncludeNextCol             // return it, go to the next column (see SeekQualifier)
	MatchIncludeNextRow             // return it; nothing more of this family in this row
	MatchSkip                       // go to the next cell
	MatchNextCol                    // go to the next column (see SeekQualifier)
	MatchNextRow                    // nothing more of this family in this row
	MatchHint                       // go where the filter's NextCellHint says
	MatchDone                       // nothing more of this family in any row: the filter is done
)

// Included says whether the cell is to be returned.
func (c Code) Included() bool { return c <= MatchIncludeNextRow }

// Matcher decides which cells of one family a reader sees: a state machine fed
// with the family's cells row by row, in order, everything stored included.
// It knows column selection, time range, TTLs, delete markers, versions, and
// it asks the filter at the right place (semantics A to F, N2). Cells given to
// it need to be valid during the call only.
//
// One Matcher serves all rows of a scan: call NewRow before each row.
type Matcher struct {
	family *Family
	filter Filter
	raw    bool
	// seePast: KEEP_DELETED_CELLS lets reads in the past see past markers.
	seePast bool
	tr      TimeRange
	now     int64
	oldest  int64 // cells with smaller timestamps are expired
	// maxCheck versions reach the filter, maxResult of them the reader.
	maxCheck, maxResult int
	// qualifiers wanted, sorted; nil for all.
	qualifiers [][]byte

	// Of the row.
	marks  markers
	arrive *arrival // instead of marks, with NEW_VERSION_BEHAVIOR
	// leftHead: other writes of the version at leftTS of the column without a
	// qualifier are passed over.
	leftHead bool
	leftTS   int64

	// Of the column. index is the wanted column we are at (with qualifiers).
	index   int
	count   int
	column  []byte // without qualifiers: the column count belongs to
	hasCol  bool
	lastTS  int64
	lastTyp Type
	hasLast bool

	// Of the column, behind the filter.
	passCol   []byte
	passCount int
	hasPass   bool
}

// NewMatcher makes the matcher of one family for a query. qualifiers are
// sorted; nil means all columns. now is the time against which TTLs count.
func NewMatcher(f *Family, q *Query, qualifiers [][]byte, now int64) *Matcher {
	m := new(Matcher)
	m.Init(f, q, qualifiers, now)
	return m
}

// Init is NewMatcher with a matcher that was used before.
func (m *Matcher) Init(f *Family, q *Query, qualifiers [][]byte, now int64) {
	*m = Matcher{
		family: f, filter: q.Filter, raw: q.Raw, seePast: f.KeepDeleted != KeepFalse,
		tr: q.Range, now: now, qualifiers: qualifiers,
	}
	if tr, ok := q.FamilyRanges[string(f.Name)]; ok {
		m.tr = tr
	}
	if q.Raw {
		m.maxResult = q.MaxVersions
		m.maxCheck = m.maxResult
		if q.Filter != nil {
			m.maxCheck = math.MaxInt
		}
		m.oldest = 0
	} else {
		m.maxResult = min(q.MaxVersions, f.MaxVersions)
		m.maxCheck = m.maxResult
		if q.Filter != nil {
			m.maxCheck = f.MaxVersions
		}
		m.oldest = expiryLine(f.TTL, now)
		if f.NewVersionBehavior {
			m.arrive = newArrival(f.MaxVersions)
		}
	}
}

// expiryLine is the smallest timestamp not yet expired at now.
func expiryLine(ttl, now int64) int64 {
	if ttl == Forever {
		return math.MinInt64
	}
	return now - ttl
}

// NewRow forgets the row before.
func (m *Matcher) NewRow() {
	m.marks.reset()
	if m.arrive != nil {
		m.arrive.reset()
	}
	m.index, m.count = 0, 0
	m.hasCol, m.hasLast, m.hasPass = false, false, false
	m.leftHead = false
}

// SeekQualifier is the column to go to after a code that says "next column":
// the next one wanted, or nil for the one after the present, whatever it is.
func (m *Matcher) SeekQualifier() []byte {
	if m.qualifiers != nil && m.index < len(m.qualifiers) {
		return m.qualifiers[m.index]
	}
	return nil
}

// Match judges the next cell of the family.
//
// Markers of the family lie among the cells without a qualifier, so that
// column is never left: its older versions are judged, and shown to the
// filter, even if that asked for the next column. Only other writes of the
// version just judged are passed over, as by HBase's seek.
func (m *Matcher) Match(c *Cell) (Code, error) {
	code, err := m.match(c)
	if len(c.Qualifier) > 0 || m.raw {
		return code, err
	}
	switch code {
	case MatchNextCol:
		m.leftHead, m.leftTS = true, c.Timestamp
		return MatchSkip, err
	case MatchIncludeNextCol:
		m.leftHead, m.leftTS = true, c.Timestamp
		return MatchInclude, err
	}
	return code, err
}

func (m *Matcher) match(c *Cell) (Code, error) {
	if m.filter != nil && m.filter.FilterAllRemaining() {
		return MatchDone, nil
	}
	if m.qualifiers != nil && m.index >= len(m.qualifiers) {
		return MatchNextRow, nil
	}
	if m.arrive == nil && m.family.MinVersions <= 0 && c.Timestamp < m.oldest {
		return m.leaveColumn(c), nil
	}
	if tagExpired(c, m.now) {
		return MatchSkip, nil
	}
	if m.raw {
		return m.matchColumn(c)
	}
	if c.Type.IsDelete() {
		// A marker outside the time range counts only if nothing is kept
		// behind markers: then everything from its timestamp down is gone for
		// any reader, even one who looks at the past.
		if cmp := m.tr.compare(c.Timestamp); cmp == 0 || cmp > 0 && !m.seePast {
			if m.arrive != nil {
				m.arrive.add(c)
			} else {
				m.marks.add(c)
			}
		}
		return MatchSkip, nil
	}
	if m.leftHead && len(c.Qualifier) == 0 && c.Timestamp == m.leftTS {
		return MatchSkip, nil
	}
	if m.arrive != nil {
		if m.arrive.hides(c) {
			return MatchSkip, nil
		}
	} else if !m.marks.empty() {
		switch m.marks.hides(c) {
		case versionHidden:
			return MatchSkip, nil
		case columnHidden:
			return m.leaveColumn(c), nil
		}
	}
	return m.matchColumn(c)
}

// leaveColumn ends the column of c and says how to go on.
func (m *Matcher) leaveColumn(c *Cell) Code {
	if m.arrive != nil || m.qualifiers == nil {
		return MatchNextCol
	}
	m.doneWithColumn(c)
	if m.index >= len(m.qualifiers) {
		return MatchNextRow
	}
	return MatchNextCol
}

// doneWithColumn moves on to the first wanted column behind that of c.
func (m *Matcher) doneWithColumn(c *Cell) {
	for m.index < len(m.qualifiers) {
		cmp := bytes.Compare(c.Qualifier, m.qualifiers[m.index])
		m.hasLast = false
		if cmp < 0 {
			return
		}
		m.index++
		m.count = 0
		if cmp == 0 {
			return
		}
	}
}

func (m *Matcher) matchColumn(c *Cell) (Code, error) {
	switch cmp := m.tr.compare(c.Timestamp); {
	case cmp > 0:
		return MatchSkip, nil
	case cmp < 0:
		return m.leaveColumn(c), nil
	}
	code := m.checkColumn(c)
	if code == MatchInclude {
		switch {
		case m.arrive != nil:
			code = m.checkArrived(c)
		case m.qualifiers != nil:
			code = m.checkWanted(c)
		default:
			code = m.checkAny(c)
		}
	}
	if !code.Included() || m.filter == nil {
		return code, nil
	}
	said, err := m.filter.FilterCell(c)
	if err != nil {
		return MatchSkip, err
	}
	return m.merge(c, code, said), nil
}

// checkColumn says whether the column is wanted.
func (m *Matcher) checkColumn(c *Cell) Code {
	if m.qualifiers == nil {
		return MatchInclude
	}
	for m.index < len(m.qualifiers) {
		cmp := bytes.Compare(c.Qualifier, m.qualifiers[m.index])
		if cmp == 0 {
			return MatchInclude
		}
		m.hasLast = false
		if cmp < 0 {
			return MatchNextCol
		}
		m.index++
		m.count = 0
	}
	return MatchNextRow
}

// checkWanted counts versions of a column asked for by name. As in HBase, the
// cell that reaches the limit ends the column, and an expired one counts when
// it is the last MIN_VERSIONS protects (or comes behind those).
func (m *Matcher) checkWanted(c *Cell) Code {
	if m.hasLast && m.lastTS == c.Timestamp {
		return MatchSkip // an older write of the same version
	}
	m.count++
	if m.count >= m.maxCheck || m.count >= m.family.MinVersions && c.Timestamp < m.oldest {
		m.index++
		m.count = 0
		m.hasLast = false
		if m.index >= len(m.qualifiers) {
			return MatchIncludeNextRow
		}
		return MatchIncludeNextCol
	}
	m.hasLast, m.lastTS = true, c.Timestamp
	return MatchInclude
}

// checkAny counts versions when every column is wanted. Markers (raw reads)
// do not count.
func (m *Matcher) checkAny(c *Cell) Code {
	if !m.hasCol || !bytes.Equal(m.column, c.Qualifier) {
		m.column = append(m.column[:0], c.Qualifier...)
		m.hasCol, m.hasLast, m.count = true, false, 0
	} else if m.hasLast && m.lastTS == c.Timestamp && m.lastTyp == c.Type {
		return MatchSkip // an older write of the same version
	}
	if !c.Type.IsDelete() {
		m.count++
	}
	if m.count > m.maxCheck || m.count > m.family.MinVersions && c.Timestamp < m.oldest {
		return MatchNextCol
	}
	m.hasLast, m.lastTS, m.lastTyp = true, c.Timestamp, c.Type
	return MatchInclude
}

// checkArrived counts what the arrival order let through: only the reader's
// limit and the TTL are left to check.
func (m *Matcher) checkArrived(c *Cell) Code {
	if !m.hasCol || !bytes.Equal(m.column, c.Qualifier) {
		m.column = append(m.column[:0], c.Qualifier...)
		m.hasCol, m.count = true, 0
	}
	m.count++
	if c.Timestamp < m.oldest {
		if m.count == m.family.MinVersions {
			return MatchIncludeNextCol
		}
		if m.count > m.family.MinVersions {
			return MatchNextCol
		}
	}
	switch {
	case m.count == m.maxResult:
		return MatchIncludeNextCol
	case m.count > m.maxResult:
		return MatchNextCol
	}
	return MatchInclude
}

// merge combines what the versions say of a cell (to be included) with what
// the filter says, and counts versions once more behind the filter.
func (m *Matcher) merge(c *Cell, code Code, said ReturnCode) Code {
	switch said {
	case Skip:
		return code - MatchInclude + MatchSkip
	case NextCol:
		if code == MatchIncludeNextRow {
			return MatchNextRow
		}
		return m.leaveColumn(c)
	case NextRow:
		return MatchNextRow
	case SeekNextUsingHint:
		if code == MatchIncludeNextRow {
			return MatchNextRow
		}
		return MatchHint
	case IncludeAndNextCol:
		if code == MatchInclude {
			code = MatchIncludeNextCol
			if m.arrive == nil {
				m.doneWithColumn(c)
			}
		}
	case IncludeAndSeekNextRow:
		code = MatchIncludeNextRow
	}
	if !m.hasPass || !bytes.Equal(m.passCol, c.Qualifier) {
		m.passCol = append(m.passCol[:0], c.Qualifier...)
		m.hasPass, m.passCount = true, 0
	}
	m.passCount++
	if m.passCount > m.maxResult {
		if code == MatchIncludeNextRow {
			return MatchNextRow
		}
		return m.leaveColumn(c)
	}
	return code
}
