package host

import (
	"context"
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
	// Generated renders the rows of a region of a generated table as long as
	// nobody has written to it; nil for any other region. Table is set, too.
	Generated Generator
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
	// stops or rows run out. Rows without a cell at or after the time since
	// may be left out. The cells may be kept but not changed.
	Rows(start []byte, reversed bool, since int64) iter.Seq[[]cells.Cell]
}

// Generator is a region of a generated table: its rows are rendered until the
// first write puts them into the table's store. All methods are safe for
// concurrent use.
type Generator interface {
	// Stored says whether the rows are in the store.
	Stored() bool
	// Store puts the rows into the store, once; later calls cost little.
	Store(ctx context.Context) error
	// Rows renders them: see VirtualTable.
	Rows(start []byte, reversed bool) iter.Seq[[]cells.Cell]
}

// Lazy finds regions that are opened only when a call asks for them. All
// methods are safe for concurrent use and return at once.
type Lazy interface {
	// Resolve says what a server is to do with a region it does not hold,
	// named by its full or its encoded name.
	Resolve(self meta.ServerName, name []byte) Resolution
	// Holding gives the regions that are the server's to open.
	Holding(self meta.ServerName) []meta.Region
}

// Resolution is what is known about a lazily opened region: at most one of the
// fields is set, and none for a region that is not the server's business.
type Resolution struct {
	Region  *Region // serve it
	Opening bool    // it is on its way here
	Moved   *Moved  // it was here
}

// Moved says where a region went when it was closed for a move; the closing
// server answers RegionMovedException with it for a while.
type Moved struct {
	To      meta.ServerName
	OpenSeq int64
}
