package catalog

import (
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// systemSchema makes the descriptor of a rendered table out of its families
// and the attributes in which they differ from the defaults.
func systemSchema(name meta.TableName, attributes [][2]string, families ...[]string) *pb.TableSchema {
	s := &pb.TableSchema{TableName: name.ToProto()}
	for _, a := range attributes {
		s.Attributes = append(s.Attributes, pair(a[0], a[1]))
	}
	for _, f := range families {
		cf := &pb.ColumnFamilySchema{Name: []byte(f[0])}
		for kv := range slices.Chunk(f[1:], 2) {
			cf.Attributes = append(cf.Attributes, pair(kv[0], kv[1]))
		}
		s.ColumnFamilies = append(s.ColumnFamilies, cf)
	}
	return NormalSchema(s)
}

const multiRowMutation = "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|536870911|"

// MetaSchema is the descriptor of hbase:meta.
func MetaSchema() *pb.TableSchema {
	return systemSchema(meta.MetaTable, [][2]string{{"IS_META", "true"}, {"coprocessor$1", multiRowMutation}},
		[]string{meta.FamilyInfo, "VERSIONS", "3", "IN_MEMORY", "true", "BLOCKSIZE", "8192", "BLOOMFILTER", "ROWCOL"},
		[]string{"rep_barrier", "VERSIONS", "2147483647", "IN_MEMORY", "true", "BLOOMFILTER", "ROWCOL"},
		[]string{meta.FamilyTable, "VERSIONS", "3", "IN_MEMORY", "true", "BLOCKSIZE", "8192", "BLOOMFILTER", "ROWCOL"})
}

// NamespaceSchema is the descriptor of hbase:namespace.
func NamespaceSchema() *pb.TableSchema {
	return systemSchema(meta.NamespaceTable, nil,
		[]string{meta.FamilyInfo, "VERSIONS", "10", "IN_MEMORY", "true", "BLOCKSIZE", "8192"})
}

// RSGroupSchema is the descriptor of hbase:rsgroup.
func RSGroupSchema() *pb.TableSchema {
	return systemSchema(meta.RSGroupTable, [][2]string{
		{"SPLIT_POLICY", "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy"},
		{"coprocessor$1", multiRowMutation},
	}, []string{"m"})
}

// Bootstrap adds what every cluster has and this catalog lacks: the namespaces
// default and hbase, hbase:meta with its region, and hbase:namespace.
func Bootstrap(tx *Tx) {
	for _, ns := range []string{meta.DefaultNamespace, meta.SystemNamespace} {
		if tx.Namespace(ns) == nil {
			tx.PutNamespace(&Namespace{Name: ns, Time: tx.Now()})
		}
	}
	if tx.MetaRegion() == nil {
		tx.PutRegion(NewRegion(meta.MetaRegion, tx.Now()))
	}
	if tx.Table(meta.MetaTable) == nil {
		tx.PutTable(&Table{Name: meta.MetaTable, Schema: MetaSchema(), StateTime: tx.Now()})
	}
	if tx.Table(meta.NamespaceTable) == nil {
		addSystemTable(tx, meta.NamespaceTable, NamespaceSchema())
	}
}

// AddRSGroupTable adds hbase:rsgroup if it is not there. It appears with the
// first group, as in HBase it appears when groups are switched on.
func AddRSGroupTable(tx *Tx) (*Region, bool) {
	if tx.Table(meta.RSGroupTable) != nil {
		return nil, false
	}
	return addSystemTable(tx, meta.RSGroupTable, RSGroupSchema()), true
}

func addSystemTable(tx *Tx, name meta.TableName, schema *pb.TableSchema) *Region {
	tx.PutTable(&Table{Name: name, Schema: schema, StateTime: tx.Now()})
	r := NewRegion(meta.Region{Table: name, ID: tx.NextRegionID()}, tx.Now())
	tx.PutRegion(r)
	return r
}
