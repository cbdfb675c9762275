package hbase

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Op is anything a [Table.Batch] takes: *Get, *Put, *Delete, *Increment,
// *Append, *RowMutations, *CheckAndMutate.
type Op interface{ isOp() }

// Mutation is a change of one row: *Put, *Delete, *Increment or *Append.
type Mutation interface {
	Op
	// RowKey is the row that is changed.
	RowKey() []byte
	mutation() *mutation
	options() *MutationOptions
}

// RowAction is what a [CheckAndMutate] does when its condition holds: any
// Mutation, or *RowMutations.
type RowAction interface {
	Op
	RowKey() []byte
	isRowAction()
}

// MutationOptions are the settings all mutations share.
type MutationOptions struct {
	// Durability is the table's unless set.
	Durability Durability
	// TTL lets the written cells expire earlier than their family's. Default
	// 0: the family's. Resolution: 1 ms.
	TTL time.Duration
	// ID is a name that shows in the server's slow-call log.
	ID string
	// Attributes travel to the server untouched.
	Attributes map[string][]byte
	// Priority of the request among others in the server's queues, for an
	// HBase that has been told to heed it. Default 0: none, or 200 on system
	// tables. A request with several mutations gets their highest.
	Priority uint32
	// ACL lets users read or change the written cells beyond what they may do
	// with the table, and only with an AccessController (HFile version 3).
	ACL ACL
	// Visibility is an expression of labels, see [VisibilityLabels]: who has
	// not the labels does not see the cells, and a Delete hides only cells with
	// the same expression. Only with a VisibilityController; without one HBase
	// ignores it, and the cells are seen by all.
	Visibility string
	// ClusterIDs are the clusters that have this change already: replication
	// does not send it there. For those who replicate by themselves.
	ClusterIDs [][16]byte
	// Unrepeatable says that applying a Put or Delete twice does harm, since
	// the second time may hide what another client has written in between: see
	// the package comment on retries. It is then not sent again once it may
	// have been applied, and [ErrUnknownOutcome] says so. Increments and
	// Appends are not applied twice anyway.
	Unrepeatable bool
}

// mutation is the part of all mutations that the encoder and the checks need.
type mutation struct {
	row   []byte
	cells []Cell
	// timestamp of a Delete without cells; LatestTimestamp otherwise.
	timestamp int64

	// self tells a copy from what it was copied from: both must not append to
	// the same memory.
	self *mutation

	// Room for what a mutation usually has, one cell and short names, so that
	// it is one object: loads make them by the million.
	one  [1]Cell
	room [64]byte
	used int
}

// maxKept is the longest row that is kept in a mutation's room.
const maxKept = 40

// newMutation starts a mutation of row.
func newMutation[B Bytes](m *mutation, row B) {
	m.timestamp = LatestTimestamp
	if len(row) <= maxKept {
		m.row = append(m.room[:0], row...)
		m.used = len(row)
		m.row = m.row[:m.used:m.used]
		return
	}
	m.row = []byte(row)
}

// name keeps a family or a qualifier.
func (m *mutation) name(s string) []byte {
	end := m.used + len(s)
	if end > len(m.room) {
		return []byte(s)
	}
	b := append(m.room[m.used:m.used:end], s...)
	m.used = end
	return b
}

// Put writes cells of one row, all or nothing. A Put is safe to send twice
// only if its cells carry timestamps, and is sent again all the same unless
// Unrepeatable is set; see the package comment on retries.
type Put struct {
	MutationOptions
	m mutation
}

// NewPut starts an empty put; add cells with Set.
func NewPut[B Bytes](row B) *Put {
	m := new(Put)
	newMutation(&m.m, row)
	return m
}

// Set writes value into a column, stamped by the server's clock.
func (p *Put) Set(family, qualifier string, value []byte) *Put {
	return p.SetAt(family, qualifier, LatestTimestamp, value)
}

// SetAt writes value into a column with a timestamp in milliseconds.
func (p *Put) SetAt(family, qualifier string, ts int64, value []byte) *Put {
	p.m.add(cells.Put, family, qualifier, ts, value)
	return p
}

// Add takes cells as they are: their Row and Type are overwritten, their
// Timestamp is taken literally ([LatestTimestamp] for the server's clock, 0 is
// 1970). Bytes are not copied.
func (p *Put) Add(cs ...Cell) *Put {
	p.m.own()
	for _, c := range cs {
		c.Row, c.Type = p.m.row, cells.Put
		p.m.cells = append(p.m.cells, c)
	}
	return p
}

// RowKey is the row.
func (p *Put) RowKey() []byte { return p.m.row }

// Cells are the cells to be written, in the order they were added.
func (p *Put) Cells() []Cell { return p.m.cells }

// Delete removes a row, families or columns of it. Without any of the
// selecting methods the whole row goes.
//
// HBase deletes by writing markers that hide cells with timestamps up to the
// marker's; a marker hides cells written later with an older timestamp too.
type Delete struct {
	MutationOptions
	m mutation
}

// NewDelete deletes the whole row unless something is selected.
func NewDelete[B Bytes](row B) *Delete {
	m := new(Delete)
	newMutation(&m.m, row)
	return m
}

// UpTo limits a whole-row delete to cells stamped ts (ms) or earlier. It does
// not touch selections made by the other methods.
func (d *Delete) UpTo(ts int64) *Delete { d.m.timestamp = ts; return d }

// Family deletes all cells of a family (Java: addFamily).
func (d *Delete) Family(family string) *Delete {
	return d.FamilyUpTo(family, LatestTimestamp)
}

// FamilyUpTo deletes the cells of a family stamped ts or earlier.
func (d *Delete) FamilyUpTo(family string, ts int64) *Delete {
	d.m.add(cells.DeleteFamily, family, "", ts, nil)
	return d
}

// FamilyVersion deletes the cells of a family stamped exactly ts (Java:
// addFamilyVersion).
func (d *Delete) FamilyVersion(family string, ts int64) *Delete {
	d.m.add(cells.DeleteFamilyVersion, family, "", ts, nil)
	return d
}

// Column deletes all versions of a column (Java: addColumns).
func (d *Delete) Column(family, qualifier string) *Delete {
	return d.ColumnUpTo(family, qualifier, LatestTimestamp)
}

// ColumnUpTo deletes the versions of a column stamped ts or earlier.
func (d *Delete) ColumnUpTo(family, qualifier string, ts int64) *Delete {
	d.m.add(cells.DeleteColumn, family, qualifier, ts, nil)
	return d
}

// LatestVersion deletes the newest version of a column, so that the one before
// it shows again (Java: addColumn without a timestamp). The server has to read
// the row for it.
func (d *Delete) LatestVersion(family, qualifier string) *Delete {
	return d.Version(family, qualifier, LatestTimestamp)
}

// Version deletes the version of a column stamped exactly ts (Java: addColumn).
func (d *Delete) Version(family, qualifier string, ts int64) *Delete {
	d.m.add(cells.Delete, family, qualifier, ts, nil)
	return d
}

// Add takes markers as they are; their Row is overwritten, their Type must be
// one of the delete types.
func (d *Delete) Add(cs ...Cell) *Delete {
	d.m.own()
	for _, c := range cs {
		c.Row = d.m.row
		d.m.cells = append(d.m.cells, c)
	}
	return d
}

// RowKey is the row.
func (d *Delete) RowKey() []byte { return d.m.row }

// Cells are the markers to be written; none for a whole row.
func (d *Delete) Cells() []Cell { return d.m.cells }

// Increment adds to 8-byte big-endian counters of one row, atomically. It is
// sent with a nonce, so a repeat after a lost answer is not applied twice.
type Increment struct {
	MutationOptions
	// TimeRange restricts which existing cells count. Default: all.
	TimeRange TimeRange
	// NoResult saves the server sending the new values back.
	NoResult bool
	m        mutation
}

// NewIncrement starts an increment; name counters with Add.
func NewIncrement[B Bytes](row B) *Increment {
	m := new(Increment)
	newMutation(&m.m, row)
	return m
}

// Add adds amount to the column's counter; a missing counter starts at 0. The
// counter wraps at the ends of int64. Naming a column twice in one Increment
// does not sum up: HBase keeps the last.
func (i *Increment) Add(family, qualifier string, amount int64) *Increment {
	i.m.add(cells.Put, family, qualifier, LatestTimestamp, binary.BigEndian.AppendUint64(nil, uint64(amount)))
	return i
}

// RowKey is the row.
func (i *Increment) RowKey() []byte { return i.m.row }

// Cells are the amounts, as 8-byte values.
func (i *Increment) Cells() []Cell { return i.m.cells }

// Append appends bytes to values of one row, atomically. It is sent with a
// nonce, so a repeat after a lost answer is not applied twice.
type Append struct {
	MutationOptions
	// TimeRange restricts which existing cells count. Default: all.
	TimeRange TimeRange
	// NoResult saves the server sending the new values back.
	NoResult bool
	m        mutation
}

// NewAppend starts an append; name columns with Add.
func NewAppend[B Bytes](row B) *Append {
	m := new(Append)
	newMutation(&m.m, row)
	return m
}

// Add appends value to the column; a missing column starts empty.
func (a *Append) Add(family, qualifier string, value []byte) *Append {
	a.m.add(cells.Put, family, qualifier, LatestTimestamp, value)
	return a
}

// RowKey is the row.
func (a *Append) RowKey() []byte { return a.m.row }

// Cells are the bytes to append.
func (a *Append) Cells() []Cell { return a.m.cells }

// RowMutations applies several mutations to one row, in order, all or nothing
// and unseen in between. Increments and Appends in it need HBase 2.4.
type RowMutations struct {
	Row       []byte
	Mutations []Mutation
}

// NewRowMutations starts a list; add to it with Add.
func NewRowMutations[B Bytes](row B) *RowMutations { return &RowMutations{Row: []byte(row)} }

// Add appends mutations; all must name the same row.
func (r *RowMutations) Add(ms ...Mutation) *RowMutations {
	r.Mutations = append(r.Mutations, ms...)
	return r
}

// RowKey is the row.
func (r *RowMutations) RowKey() []byte { return r.Row }

// own is called before cells are appended. What a copy shares with its original
// is not changed any more.
func (m *mutation) own() {
	if m.self != m {
		m.self, m.cells = m, slices.Clip(m.cells)
	}
}

func (m *mutation) add(t CellType, family, qualifier string, ts int64, value []byte) {
	m.own()
	var f []byte
	if n := len(m.cells); n > 0 && string(m.cells[n-1].Family) == family {
		f = m.cells[n-1].Family
	} else {
		f = m.name(family)
	}
	if m.cells == nil {
		m.cells = m.one[:0]
	}
	m.cells = append(m.cells, Cell{Row: m.row, Family: f, Qualifier: m.name(qualifier), Timestamp: ts, Type: t, Value: value})
}

func (*Put) isOp()          {}
func (*Delete) isOp()       {}
func (*Increment) isOp()    {}
func (*Append) isOp()       {}
func (*RowMutations) isOp() {}

func (*Put) isRowAction()          {}
func (*Delete) isRowAction()       {}
func (*Increment) isRowAction()    {}
func (*Append) isRowAction()       {}
func (*RowMutations) isRowAction() {}

func (o *MutationOptions) options() *MutationOptions { return o }

func (p *Put) mutation() *mutation       { return &p.m }
func (d *Delete) mutation() *mutation    { return &d.m }
func (i *Increment) mutation() *mutation { return &i.m }
func (a *Append) mutation() *mutation    { return &a.m }
