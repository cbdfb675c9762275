package host

import (
	"iter"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Region is one region as a region server hosts it. It is immutable: a move, an
// alter or a re-open makes a new value with a larger OpenSeq.
type Region struct {
	Info meta.Region
	// Encoded and Name are Info's encoded and full name, computed once.
	Encoded string
	Name    []byte
	// Table holds the rows of an ordinary region; nil for a virtual one.
	Table *store.Table
	// Virtual renders the rows of a system table; nil for an ordinary region.
	Virtual VirtualTable
	// OpenSeq is the sequence number at opening (seqnumDuringOpen in
	// hbase:meta). It grows each time a region is opened.
	OpenSeq int64
	// Attributes are the table's descriptor values (READONLY, DURABILITY,
	// ...), as text; shared and never changed.
	Attributes map[string]string
}

// ReadOnly says whether the table refuses writes (READONLY=true).
func (r *Region) ReadOnly() bool { return r.Attributes["READONLY"] == "true" }

// VirtualTable is a table whose rows are rendered at read time from the
// catalog: hbase:meta, hbase:namespace, hbase:rsgroup. All methods are safe
// for concurrent use and each call of Rows sees one consistent state.
type VirtualTable interface {
	// Schema names the families and their versions.
	Schema() *cells.Schema
	// Compare orders rows: meta.CompareRows for hbase:meta, bytes.Compare else.
	Compare(a, b []byte) int
	// Rows gives whole rows, cells in HBase's order, beginning with the first
	// row at or after start (reversed: at or before start). A nil start means
	// the table's first row (reversed: its last). It ends when the consumer
	// stops or rows run out. The cells may be kept but not changed.
	Rows(start []byte, reversed bool) iter.Seq[[]cells.Cell]
}

// Moved says where a region went when it was closed for a move; the closing
// server answers RegionMovedException with it for a while.
type Moved struct {
	To      meta.ServerName
	OpenSeq int64
}
