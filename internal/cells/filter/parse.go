package filter

import (
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Parse makes the filter a request carries; nil for nil. Errors are
// *cells.Exception with the class HBase answers.
func Parse(f *pb.Filter) (cells.Filter, error) {
	if f == nil {
		return nil, nil
	}
	return nil, cells.DoNotRetry("unsupported: filter " + f.GetName())
}

// ParseComparator makes the comparator a request carries.
func ParseComparator(c *pb.Comparator) (Comparator, error) {
	return nil, cells.DoNotRetry("unsupported: comparator " + c.GetName())
}

// Comparator judges bytes of a cell against what it was made with.
type Comparator interface {
	// Compare is negative, 0 or positive as the expected value is smaller
	// than, equal to or greater than b (ByteArrayComparable.compareTo).
	Compare(b []byte) (int, error)
	// Value is the expected value's bytes; conditions use nothing else.
	Value() []byte
}
