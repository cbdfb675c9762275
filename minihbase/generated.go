package minihbase

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// GeneratedTable describes a table whose regions and rows follow a formula and
// are stored nowhere, however many there are: to see what a client does with
// 300,000 regions.
//
// Region i begins at the key that KeyFormat makes of i, the first one at the
// empty key. The region's rows are that key and, from the second on, the key
// with "-00001", "-00002", ... behind it. Each row has the column "q" in every
// family, written when the table was made; its value is the row's key,
// repeated and cut to ValueSize bytes if that is not 0.
//
// Apart from that it is a table like others: its regions move, are balanced,
// split and merged, and open again when their server dies. A region's first
// write stores its rows; from then on it is an ordinary one.
type GeneratedTable struct {
	Name string
	// Families; "f" if there are none.
	Families []string
	// Regions, 1 to 1,000,000.
	Regions int
	// KeyFormat is a text with one verb, %0Nd or %0Nx, N being the number of
	// digits: "%08d" if it is empty.
	KeyFormat string
	// Rows of each region, 0 to 10,000; 0 means 10, -1 none.
	Rows int
	// ValueSize in bytes, up to 64 KiB; 0 is the row's key as it is.
	ValueSize int
}

// GenerateTable makes a generated table. It takes a few milliseconds, whatever
// its size.
func (m *Cluster) GenerateTable(ctx context.Context, g GeneratedTable) error {
	n, err := meta.ParseTableName(g.Name)
	if err != nil {
		return err
	}
	f := &catalog.Formula{Regions: g.Regions, Rows: cmp.Or(g.Rows, 10), ValueSize: g.ValueSize}
	if g.Rows == -1 {
		f.Rows = 0
	}
	if f.Format, err = catalog.ParseKeyFormat(cmp.Or(g.KeyFormat, catalog.DefaultKeyFormat)); err != nil {
		return err
	}
	families := g.Families
	if len(families) == 0 {
		families = []string{"f"}
	}
	if err := m.c.GenerateTable(ctx, n, families, f); err != nil {
		return fmt.Errorf("generate table %s: %w", n, err)
	}
	return nil
}
