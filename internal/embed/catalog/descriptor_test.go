package catalog

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func schema(table string, families ...*pb.ColumnFamilySchema) *pb.TableSchema {
	return &pb.TableSchema{
		TableName:      &pb.TableName{Namespace: []byte("default"), Qualifier: []byte(table)},
		ColumnFamilies: families,
	}
}

func family(name string, attributes ...string) *pb.ColumnFamilySchema {
	f := &pb.ColumnFamilySchema{Name: []byte(name)}
	for i := 0; i+1 < len(attributes); i += 2 {
		f.Attributes = append(f.Attributes, pair(attributes[i], attributes[i+1]))
	}
	return f
}

// What HBase 2.6.4 answers for a descriptor with one attribute set, as
// recorded on the wire, with an unknown attribute kept behind it.
func TestNormalSchema(t *testing.T) {
	in := schema("t", family("g"), family("f", "VERSIONS", "2", "VERSIONS", "3", "own", "x"))
	in.Configuration = []*pb.NameStringPair{{Name: new("hbase.some.key"), Value: new("1")}}
	in.ColumnFamilies[1].Configuration = []*pb.NameStringPair{{Name: new("hbase.other.key"), Value: new("2")}}
	out := NormalSchema(in)
	var got []string
	for _, a := range out.Attributes {
		got = append(got, string(a.First)+"="+string(a.Second))
	}
	want := []string{"IS_META=false", "hbase.store.file-tracker.impl=DEFAULT", "hbase.some.key=1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table attributes: %s", diff)
	}
	f := out.ColumnFamilies[0]
	if string(f.Name) != "f" || string(out.ColumnFamilies[1].Name) != "g" {
		t.Error("families are not sorted by name")
	}
	got = nil
	for _, a := range f.Attributes {
		got = append(got, string(a.First)+"="+string(a.Second))
	}
	want = strings.Fields("INDEX_BLOCK_ENCODING=NONE VERSIONS=3 KEEP_DELETED_CELLS=FALSE DATA_BLOCK_ENCODING=NONE TTL=2147483647 MIN_VERSIONS=0 REPLICATION_SCOPE=0 BLOOMFILTER=ROW IN_MEMORY=false COMPRESSION=NONE BLOCKCACHE=true BLOCKSIZE=65536 own=x")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("family attributes: %s", diff)
	}
	if f.Configuration[0].GetValue() != "2" {
		t.Error("the family's configuration is lost")
	}
	if len(out.Configuration) != 0 {
		t.Error("the table's configuration is not folded into its attributes")
	}
	if !SameSchema(out, NormalSchema(out)) {
		t.Error("a normal schema changes when made normal again")
	}
}

// Classes, flags and words as a real 2.6.4 answered.
func TestChecks(t *testing.T) {
	withTable := func(k, v string) *pb.TableSchema {
		s := schema("t", family("f"))
		s.Attributes = append(s.Attributes, pair(k, v))
		return s
	}
	twice := schema("t", family("f"), family("f"))
	badNS := schema("t", family("f"))
	badNS.TableName.Namespace = []byte("errors-bad")
	bypass := withTable(sanityKey, "false")
	bypass.ColumnFamilies[0].Attributes = append(bypass.ColumnFamilies[0].Attributes, pair("TTL", "0"))
	const io, dnr = cells.ClassIOException, cells.ClassDoNotRetry
	for _, c := range []struct {
		name     string
		s        *pb.TableSchema
		class    string
		contains string
	}{
		{"fine", schema("t", family("f", "VERSIONS", "0")), "", ""},
		{"dot", schema(".errors", family("f")), io, "Illegal first character <46> at 0. User-space table qualifiers can only start with 'alphan"},
		{"empty", schema("", family("f")), io, "Table qualifier must not be empty"},
		{"slash", schema("errors/x", family("f")), io, "Illegal character code:47, </> at 6. User-space table qualifiers may only contain 'alphanu"},
		{"space", schema("errors bad", family("f")), io, "Illegal character code:32, < > at 6."},
		{"namespace", badNS, io, "Illegal character <-> at 6. Namespaces may only contain 'alphanumeric characters' from any"},
		{"family dot", schema("t", family(".f")), io, "Column Family names cannot start with a period: .f"},
		{"family colon", schema("t", family("f:g")), io, "Illegal character <58>. Column Family names cannot contain control characters or colons: f"},
		{"family slash", schema("t", family("f/g")), io, "Illegal character <47>."},
		{"family control", schema("t", family("f\x01")), io, "Illegal character <1>."},
		{"family empty", schema("t", family("")), io, "Column Family name can not be empty"},
		{"family recovered", schema("t", family("recovered.edits")), io, "Column Family name cannot be: recovered.edits"},
		{"family long", schema("t", family(strings.Repeat("f", 128))), io, "127"},
		{"family twice", twice, io, "Family 'f' already exists so cannot be added"},
		{"no family", schema("t"), dnr, "Table should have at least one column family. Set hbase.table.sanity.checks to false at co"},
		{"versions", schema("t", family("f", "VERSIONS", "-1")), dnr, "Min versions for column family f must be less than the Max versions. Set hbase.table.sanit"},
		{"min above max", schema("t", family("f", "VERSIONS", "1", "MIN_VERSIONS", "2")), dnr, "Min versions for column family f must be less than the Max versions."},
		{"min", schema("t", family("f", "MIN_VERSIONS", "-1")), dnr, "Min versions for column family f  must be positive. Set hbase.table.sanity.checks to false"},
		{"ttl", schema("t", family("f", "TTL", "0")), dnr, "TTL for column family f must be positive. Set hbase.table.sanity.checks to false at conf o"},
		{"blocksize", schema("t", family("f", "BLOCKSIZE", "1")), dnr, "Block size for column family f  must be between 1K and 16MB. Set hbase.table.sanity.checks"},
		{"scope", schema("t", family("f", "REPLICATION_SCOPE", "5")), dnr, "Replication scope for column family f is 5 which is invalid. Set hbase.table.sanity.checks"},
		{"compression", schema("t", family("f", "COMPRESSION", "NOSUCH")), dnr, "No enum constant org.apache.hadoop.hbase.io.compress.Compression.Algorithm.NOSUCH Set hbas"},
		{"bloom", schema("t", family("f", "BLOOMFILTER", "NOSUCH")), dnr, "Failed to get bloom filter param Set hbase.table.sanity.checks to false at conf or table d"},
		{"not a number", schema("t", family("f", "VERSIONS", "many")), dnr, "VERSIONS"},
		{"max filesize", withTable("MAX_FILESIZE", "100"), dnr, "MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" (100) is too small, whic"},
		{"flushsize", withTable("MEMSTORE_FLUSHSIZE", "100"), dnr, "MEMSTORE_FLUSHSIZE for table descriptor or \"hbase.hregion.memstore.flush.size\" (100) is to"},
		{"replication", withTable("REGION_REPLICATION", "0"), dnr, "Table region replication should be at least one. Set hbase.table.sanity.checks to false at"},
		{"replicas", withTable("REGION_REPLICATION", "17"), dnr, "unsupported: REGION_REPLICATION 17"},
		{"bypassed", bypass, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckShape(c.s)
			if err == nil {
				err = CheckSane(c.s)
			}
			if c.class == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *cells.Exception
			if !errors.As(err, &e) || e.Class != c.class || e.DoNotRetry != (c.class == dnr) || !strings.Contains(e.Message, c.contains) {
				t.Errorf("got %v, want %s with %q", err, c.class, c.contains)
			}
		})
	}
}

func TestStoreSchema(t *testing.T) {
	s := schema("t", family("f", "VERSIONS", "3", "TTL", "60"))
	s.Attributes = []*pb.BytesBytesPair{pair("READONLY", "true"), pair("DURABILITY", "ASYNC_WAL"), pair("hbase.hstore.time.to.purge.deletes", "1000")}
	out, err := StoreSchema(NormalSchema(s))
	if err != nil {
		t.Fatal(err)
	}
	f := out.Family([]byte("f"))
	if f == nil || f.MaxVersions != 3 || f.TTL != 60_000 || !out.ReadOnly || out.Durability != cells.AsyncWAL || out.PurgeDeletesAfter.Milliseconds() != 1000 {
		t.Errorf("got %+v", out)
	}
}
