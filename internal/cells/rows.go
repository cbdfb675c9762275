package cells

import "iter"

// NewRowsSource is a Source over rows rendered in memory: rows(start,
// reversed) gives whole rows, each in order, beginning with the first at or
// after start (reversed: at or before); a nil start means from the first
// (reversed: the last). The cells may be kept by whoever reads them.
// cmp orders rows.
func NewRowsSource(rows func(start []byte, reversed bool) iter.Seq[[]Cell], cmp func(a, b []byte) int, reversed bool) *RowsSource {
	return &RowsSource{rows: rows, cmp: cmp, reversed: reversed}
}

// RowsSource is the Source made by NewRowsSource. Close it when done.
type RowsSource struct {
	rows     func(start []byte, reversed bool) iter.Seq[[]Cell]
	cmp      func(a, b []byte) int
	reversed bool
	next     func() ([]Cell, bool)
	stop     func()
	row      []Cell
	at       int
}

// Close ends the iteration under way.
func (s *RowsSource) Close() {
	if s.stop != nil {
		s.stop()
		s.next, s.stop = nil, nil
	}
	s.row = nil
}

// SeekRow implements Source.
func (s *RowsSource) SeekRow(row []byte, inclusive bool) error {
	s.Close()
	if len(row) == 0 {
		row = nil
	}
	s.next, s.stop = iter.Pull(s.rows(row, s.reversed))
	if err := s.NextRow(); err != nil {
		return err
	}
	if !inclusive && row != nil && s.row != nil && s.cmp(s.row[0].Row, row) == 0 {
		return s.NextRow()
	}
	return nil
}

// NextRow implements Source.
func (s *RowsSource) NextRow() error {
	s.row, s.at = nil, 0
	for s.next != nil {
		row, ok := s.next()
		if !ok {
			s.Close()
			break
		}
		if len(row) > 0 {
			s.row = row
			break
		}
	}
	return nil
}

// Row implements Source.
func (s *RowsSource) Row() []byte {
	if len(s.row) == 0 {
		return nil
	}
	return s.row[0].Row
}

// Cell implements Source.
func (s *RowsSource) Cell() *Cell {
	if s.at >= len(s.row) {
		return nil
	}
	return &s.row[s.at]
}

// Next implements Source.
func (s *RowsSource) Next() error {
	s.at++
	return nil
}

// SeekCell implements Source.
func (s *RowsSource) SeekCell(family, qualifier []byte, ts int64, typ Type) error {
	to := Cell{Family: family, Qualifier: qualifier, Timestamp: ts, Type: typ, Seq: ^uint64(0)}
	for s.at < len(s.row) && CompareWithinRow(&s.row[s.at], &to) < 0 {
		s.at++
	}
	return nil
}
