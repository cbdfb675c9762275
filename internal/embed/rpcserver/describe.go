package rpcserver

import (
	"bytes"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// describeAny says what a call is about by the usual names of fields, for
// methods without a Describe of their own: a table's name or schema, a region.
func describeAny(c *Call) {
	t := &c.Target
	switch in := c.in.(type) {
	case interface{ GetTableName() *pb.TableName }:
		t.table(in.GetTableName())
	case interface{ GetTableSchema() *pb.TableSchema }:
		t.table(in.GetTableSchema().GetTableName())
	case interface{ GetRegion() *pb.RegionSpecifier }:
		t.region(in.GetRegion())
	}
}

func (t *Target) table(p *pb.TableName) {
	if p != nil {
		t.Table = meta.TableFromProto(p).String()
	}
}

func (t *Target) region(spec *pb.RegionSpecifier) {
	name := spec.GetValue()
	if spec.GetType() == pb.RegionSpecifier_ENCODED_REGION_NAME {
		if len(name) <= 64 {
			t.Region = string(name)
		}
		return
	}
	t.Region, _ = meta.EncodedNameOf(name)
	if i := bytes.IndexByte(name, ','); i > 0 && i <= 512 {
		t.Table = string(name[:i])
	}
}
