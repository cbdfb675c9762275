// Package cells is HBase's cell: its coordinates, its order, and what a reader
// may see of it.
//
// It is pure (no I/O, no clock, no goroutine), so that client tests and the
// embedded server judge visibility by the same code. The order is that of
// HBase's CellComparatorImpl: row, family, qualifier ascending; timestamp,
// type, sequence descending.
//
// Anyone may import it; it imports nothing of ours but internal/pb (for
// filters, in the folder filter).
package cells
