package cells

import (
	"bytes"
	"slices"
)

// markers remembers the delete markers met so far in a family of a row, and
// says which cells behind them are hidden (ScanDeleteTracker in HBase). It
// relies on the order of cells: a marker comes before what it hides.
type markers struct {
	familyTS       int64   // largest DeleteFamily timestamp, if any
	hasFamily      bool    //
	familyVersions []int64 // timestamps of DeleteFamilyVersion
	// The marker of the present column that can still hide something.
	column    []byte
	columnTS  int64
	colType   Type
	hasColumn bool
}

type hidden uint8

const (
	visible       hidden = iota
	versionHidden        // this version only
	columnHidden         // this and all older versions of the column
)

func (m *markers) reset() {
	m.hasFamily, m.hasColumn = false, false
	m.familyVersions = m.familyVersions[:0]
}

func (m *markers) empty() bool {
	return !m.hasFamily && !m.hasColumn && len(m.familyVersions) == 0
}

func (m *markers) add(c *Cell) {
	if m.hasFamily && c.Timestamp <= m.familyTS {
		return // all it hides is hidden already
	}
	switch c.Type {
	case DeleteFamily:
		m.hasFamily, m.familyTS = true, c.Timestamp
		return
	case DeleteFamilyVersion:
		m.familyVersions = append(m.familyVersions, c.Timestamp)
		return
	}
	if m.hasColumn && c.Type < m.colType && bytes.Equal(c.Qualifier, m.column) {
		return // a version marker under a column marker
	}
	m.column = append(m.column[:0], c.Qualifier...)
	m.columnTS, m.colType, m.hasColumn = c.Timestamp, c.Type, true
}

func (m *markers) hides(c *Cell) hidden {
	if m.hasFamily && c.Timestamp <= m.familyTS {
		return columnHidden
	}
	if len(m.familyVersions) > 0 && slices.Contains(m.familyVersions, c.Timestamp) {
		return versionHidden
	}
	if !m.hasColumn {
		return visible
	}
	if !bytes.Equal(c.Qualifier, m.column) {
		m.hasColumn = false // a new column
		return visible
	}
	if m.colType == DeleteColumn {
		return columnHidden
	}
	if c.Timestamp == m.columnTS {
		return versionHidden
	}
	m.hasColumn = false // a version marker is behind us
	return visible
}
