package filter

import "github.com/holdfast-hbase/holdfast/internal/cells"

// skip is SkipFilter: the row goes as soon as the inner filter does not answer
// plain INCLUDE for one of its cells. Row keys and row ends are not passed to
// the inner filter.
type skip struct {
	base
	inner cells.Filter
	out   bool
}

func (f *skip) Reset() error {
	f.out = false
	return f.inner.Reset()
}

func (f *skip) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	code, err := f.inner.FilterCell(c)
	f.out = f.out || code != cells.Include
	return code, err
}

func (f *skip) TransformCell(c *cells.Cell) error { return f.inner.TransformCell(c) }
func (f *skip) FilterRow() (bool, error)          { return f.out, nil }
func (f *skip) HasFilterRow() bool                { return true }
func (f *skip) FamilyEssential(family []byte) bool {
	return f.inner.FamilyEssential(family)
}

// while is WhileMatchFilter: the end comes with the first thing the inner
// filter rejects.
type while struct {
	base
	inner cells.Filter
	done  bool
}

func (f *while) Reset() error { return f.inner.Reset() }

func (f *while) FilterAllRemaining() bool { return f.done || f.inner.FilterAllRemaining() }

func (f *while) FilterRowKey(c *cells.Cell) (bool, error) {
	if f.FilterAllRemaining() {
		return true, nil
	}
	out, err := f.inner.FilterRowKey(c)
	f.done = f.done || out
	return out, err
}

func (f *while) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	code, err := f.inner.FilterCell(c)
	f.done = f.done || code != cells.Include
	return code, err
}

func (f *while) TransformCell(c *cells.Cell) error { return f.inner.TransformCell(c) }

func (f *while) FilterRow() (bool, error) {
	out, err := f.inner.FilterRow()
	f.done = f.done || out
	return out, err
}

func (f *while) HasFilterRow() bool { return true }
func (f *while) FamilyEssential(family []byte) bool {
	return f.inner.FamilyEssential(family)
}
