package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// familyDefaults are the attributes HBase fills in for a family, in the order
// its descriptors carry them.
var familyDefaults = [...][2]string{
	{"INDEX_BLOCK_ENCODING", "NONE"},
	{"VERSIONS", "1"},
	{"KEEP_DELETED_CELLS", "FALSE"},
	{"DATA_BLOCK_ENCODING", "NONE"},
	{"TTL", "2147483647"},
	{"MIN_VERSIONS", "0"},
	{"REPLICATION_SCOPE", "0"},
	{"BLOOMFILTER", "ROW"},
	{"IN_MEMORY", "false"},
	{"COMPRESSION", "NONE"},
	{"BLOCKCACHE", "true"},
	{"BLOCKSIZE", "65536"},
}

// tableDefaults likewise for a table.
var tableDefaults = [...][2]string{
	{"IS_META", "false"},
	{"hbase.store.file-tracker.impl", "DEFAULT"},
}

// Attribute finds a value in a list of attributes; of two equal names the
// later counts, as in HBase.
func Attribute(list []*pb.BytesBytesPair, name string) (string, bool) {
	for _, p := range slices.Backward(list) {
		if string(p.GetFirst()) == name {
			return string(p.GetSecond()), true
		}
	}
	return "", false
}

// SetAttribute gives a copy of the list with the value set; an empty value
// removes the name.
func SetAttribute(list []*pb.BytesBytesPair, name, value string) []*pb.BytesBytesPair {
	out := slices.DeleteFunc(slices.Clone(list), func(p *pb.BytesBytesPair) bool { return string(p.GetFirst()) == name })
	if value != "" {
		out = append(out, pair(name, value))
	}
	return out
}

func pair(name, value string) *pb.BytesBytesPair {
	return &pb.BytesBytesPair{First: []byte(name), Second: []byte(value)}
}

// withDefaults gives the attributes with the defaults first, in their order,
// then the rest as given, each name once.
func withDefaults(list []*pb.BytesBytesPair, defaults [][2]string) []*pb.BytesBytesPair {
	out := make([]*pb.BytesBytesPair, 0, len(list)+len(defaults))
	for _, d := range defaults {
		v, ok := Attribute(list, d[0])
		if !ok {
			v = d[1]
		}
		out = append(out, pair(d[0], v))
	}
	for i, p := range list {
		name := string(p.GetFirst())
		isDefault := slices.ContainsFunc(defaults, func(d [2]string) bool { return d[0] == name })
		repeated := slices.ContainsFunc(list[i+1:], func(q *pb.BytesBytesPair) bool { return bytes.Equal(q.GetFirst(), p.GetFirst()) })
		if !isDefault && !repeated {
			out = append(out, pair(name, string(p.GetSecond())))
		}
	}
	return out
}

// NormalFamily gives the family descriptor as HBase keeps it: defaults filled
// in, unknown attributes and the configuration kept.
func NormalFamily(f *pb.ColumnFamilySchema) *pb.ColumnFamilySchema {
	return &pb.ColumnFamilySchema{
		Name:          bytes.Clone(f.GetName()),
		Attributes:    withDefaults(f.GetAttributes(), familyDefaults[:]),
		Configuration: f.GetConfiguration(),
	}
}

// NormalSchema gives the descriptor as HBase keeps it: families by name,
// defaults filled in, the table's configuration folded into its attributes,
// unknown attributes kept. The argument is not changed.
func NormalSchema(s *pb.TableSchema) *pb.TableSchema {
	attributes := slices.Clone(s.GetAttributes())
	for _, c := range s.GetConfiguration() {
		attributes = append(attributes, pair(c.GetName(), c.GetValue()))
	}
	out := &pb.TableSchema{
		TableName:  meta.TableFromProto(s.GetTableName()).ToProto(),
		Attributes: withDefaults(attributes, tableDefaults[:]),
	}
	for _, f := range s.GetColumnFamilies() {
		out.ColumnFamilies = append(out.ColumnFamilies, NormalFamily(f))
	}
	slices.SortStableFunc(out.ColumnFamilies, func(a, b *pb.ColumnFamilySchema) int { return bytes.Compare(a.GetName(), b.GetName()) })
	return out
}

// StoreSchema gives what storage needs to know of a descriptor.
func StoreSchema(s *pb.TableSchema) (*cells.Schema, error) {
	var families []cells.Family
	for _, f := range s.GetColumnFamilies() {
		cf, err := cells.FamilyFromAttributes(f.GetName(), func(name string) (string, bool) {
			// HBase reads a family's configuration before its attributes.
			for _, c := range f.GetConfiguration() {
				if c.GetName() == name {
					return c.GetValue(), true
				}
			}
			return Attribute(f.GetAttributes(), name)
		})
		if err != nil {
			return nil, err
		}
		families = append(families, cf)
	}
	out := cells.NewSchema(families...)
	get := func(name string) string { v, _ := Attribute(s.GetAttributes(), name); return v }
	out.ReadOnly = strings.EqualFold(get("READONLY"), "true")
	switch strings.ToUpper(get("DURABILITY")) {
	case "SKIP_WAL":
		out.Durability = cells.SkipWAL
	case "ASYNC_WAL":
		out.Durability = cells.AsyncWAL
	case "SYNC_WAL":
		out.Durability = cells.SyncWAL
	case "FSYNC_WAL":
		out.Durability = cells.FsyncWAL
	}
	if n, err := strconv.Atoi(get("hbase.server.keyvalue.maxsize")); err == nil {
		out.MaxCellSize = max(n, 0)
	}
	out.PurgeDeletesAfter = cells.PurgeDelay(get(cells.PurgeDeletesAttribute))
	return out, nil
}

// CheckTableName refuses a name as HBase's server does when it reads one from
// the wire: a plain IOException, since the Java check throws no IOException.
func CheckTableName(p *pb.TableName) (meta.TableName, error) {
	ns, q := string(p.GetNamespace()), string(p.GetQualifier())
	if ns == "" {
		ns = meta.DefaultNamespace
	}
	name := meta.TableName{Namespace: ns, Qualifier: q}
	if err := CheckNamespaceName(ns); err != nil {
		return name, err
	}
	if q == "" {
		return name, cells.IOException("Table qualifier must not be empty")
	}
	if q[0] == '.' || q[0] == '-' {
		return name, cells.IOException(fmt.Sprintf("Illegal first character <%d> at 0. User-space table qualifiers can only start with 'alphanumeric characters' from any language: %s", q[0], q))
	}
	if _, err := meta.ParseTableName(name.Qualifier); err != nil {
		at, r := illegalRune(q, "_-.")
		return name, cells.IOException(fmt.Sprintf("Illegal character code:%d, <%c> at %d. User-space table qualifiers may only contain 'alphanumeric characters' from any language and digits: %s", r, r, at, q))
	}
	return name, nil
}

// CheckNamespaceName refuses an illegal namespace name in HBase's words.
func CheckNamespaceName(ns string) error {
	if ns == "" {
		return cells.IOException("Namespace name must not be empty")
	}
	if meta.CheckNamespace(ns) != nil {
		at, r := illegalRune(ns, "_")
		return cells.IOException(fmt.Sprintf("Illegal character <%c> at %d. Namespaces may only contain 'alphanumeric characters' from any language and digits: %s", r, at, ns))
	}
	return nil
}

func illegalRune(s, allowed string) (int, rune) {
	for i, r := range s {
		if strings.ContainsRune(allowed, r) || meta.CheckNamespace(string(r)) == nil {
			continue
		}
		return i, r
	}
	return 0, 0
}

// CheckFamilyName refuses an illegal family name in HBase's words.
func CheckFamilyName(name []byte) error {
	switch {
	case len(name) == 0:
		return cells.IOException("Column Family name can not be empty")
	case name[0] == '.':
		return cells.IOException("Column Family names cannot start with a period: " + string(name))
	case string(name) == "recovered.edits":
		return cells.IOException("Column Family name cannot be: recovered.edits")
	case len(name) > cells.MaxFamilyLength:
		return cells.IOException("Column Family name length can not be greater than 127: " + cells.QuoteShort(name, 200))
	}
	for _, b := range name {
		if b < ' ' || b == 0x7f || b == ':' || b == '/' || b == '\\' {
			return cells.IOException(fmt.Sprintf("Illegal character <%d>. Column Family names cannot contain control characters or colons: %s", b, name))
		}
	}
	return nil
}

// CheckShape refuses what a descriptor from the wire cannot be: illegal names,
// a family twice.
func CheckShape(s *pb.TableSchema) error {
	if _, err := CheckTableName(s.GetTableName()); err != nil {
		return err
	}
	for i, f := range s.GetColumnFamilies() {
		if err := CheckFamilyName(f.GetName()); err != nil {
			return err
		}
		if slices.ContainsFunc(s.GetColumnFamilies()[:i], func(g *pb.ColumnFamilySchema) bool { return bytes.Equal(f.GetName(), g.GetName()) }) {
			return cells.IOException("Family '" + string(f.GetName()) + "' already exists so cannot be added")
		}
	}
	return nil
}

const sanityKey = "hbase.table.sanity.checks"

func insane(format string, a ...any) error {
	return cells.DoNotRetry(fmt.Sprintf(format, a...) + " Set " + sanityKey + " to false at conf or table descriptor if you want to bypass sanity checks")
}

// CheckSane refuses descriptors whose values make no sense, in the order and
// words of HBase's table sanity checks. A table whose descriptor sets
// hbase.table.sanity.checks to false is only checked for what storage needs.
func CheckSane(s *pb.TableSchema) error {
	if v, _ := Attribute(s.GetAttributes(), sanityKey); !strings.EqualFold(v, "false") {
		if err := checkTableValues(s); err != nil {
			return err
		}
		for _, f := range s.GetColumnFamilies() {
			if err := checkFamilyValues(f); err != nil {
				return err
			}
		}
	}
	if _, err := StoreSchema(s); err != nil {
		return cells.DoNotRetry(err.Error())
	}
	return nil
}

func checkTableValues(s *pb.TableSchema) error {
	number := func(name string, absent int64) (int64, error) {
		return attributeNumber(s.GetAttributes(), name, absent)
	}
	size, err := number("MAX_FILESIZE", 10<<30)
	if err != nil {
		return err
	}
	if size < 2<<20 {
		return insane("MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" (%d) is too small, which might cause over splitting into unmanageable number of regions.", size)
	}
	if size, err = number("MEMSTORE_FLUSHSIZE", 128<<20); err != nil {
		return err
	}
	if size < 1<<20 {
		return insane("MEMSTORE_FLUSHSIZE for table descriptor or \"hbase.hregion.memstore.flush.size\" (%d) is too small, which might cause very frequent flushing.", size)
	}
	for _, f := range s.GetColumnFamilies() {
		for _, name := range []string{"COMPRESSION", "COMPRESSION_COMPACT"} {
			if v, ok := Attribute(f.GetAttributes(), name); ok && !oneOf(v, "NONE", "GZ", "SNAPPY", "LZO", "LZ4", "ZSTD", "BZIP2", "LZMA", "BROTLI") {
				return insane("No enum constant org.apache.hadoop.hbase.io.compress.Compression.Algorithm.%s", v)
			}
		}
	}
	if len(s.GetColumnFamilies()) == 0 {
		return insane("Table should have at least one column family.")
	}
	if v, ok := Attribute(s.GetAttributes(), "DURABILITY"); ok && !oneOf(v, "USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL") {
		return insane("No enum constant org.apache.hadoop.hbase.client.Durability.%s", v)
	}
	n, err := number("REGION_REPLICATION", 1)
	if err != nil {
		return err
	}
	if n < 1 {
		return insane("Table region replication should be at least one.")
	}
	if n > MaxReplication {
		return cells.DoNotRetry(fmt.Sprintf("unsupported: REGION_REPLICATION %d: at most %d replicas of a region", n, MaxReplication))
	}
	return nil
}

func checkFamilyValues(f *pb.ColumnFamilySchema) error {
	name := string(f.GetName())
	var vals [5]int64
	for i, a := range []struct {
		name   string
		absent int64
	}{{"TTL", 2147483647}, {"BLOCKSIZE", 65536}, {"MIN_VERSIONS", 0}, {"VERSIONS", 1}, {"REPLICATION_SCOPE", 0}} {
		n, err := attributeNumber(f.GetAttributes(), a.name, a.absent)
		if err != nil {
			return err
		}
		vals[i] = n
	}
	ttl, block, minimum, maximum, scope := vals[0], vals[1], vals[2], vals[3], vals[4]
	switch {
	case ttl <= 0:
		return insane("TTL for column family %s must be positive.", name)
	case block < 1<<10 || block > 16<<20:
		return insane("Block size for column family %s  must be between 1K and 16MB.", name)
	case minimum < 0:
		return insane("Min versions for column family %s  must be positive.", name)
	case minimum > maximum:
		return insane("Min versions for column family %s must be less than the Max versions.", name)
	case scope < 0 || scope > 1:
		return insane("Replication scope for column family %s is %d which is invalid.", name, scope)
	}
	enum := func(attribute string, values ...string) bool {
		v, ok := Attribute(f.GetAttributes(), attribute)
		return !ok || oneOf(v, values...)
	}
	switch {
	case !enum("BLOOMFILTER", "NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"):
		return insane("Failed to get bloom filter param")
	case !enum("DATA_BLOCK_ENCODING", "NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"):
		v, _ := Attribute(f.GetAttributes(), "DATA_BLOCK_ENCODING")
		return insane("No enum constant org.apache.hadoop.hbase.io.encoding.DataBlockEncoding.%s", v)
	case !enum("KEEP_DELETED_CELLS", "TRUE", "FALSE", "TTL"):
		v, _ := Attribute(f.GetAttributes(), "KEEP_DELETED_CELLS")
		return insane("No enum constant org.apache.hadoop.hbase.KeepDeletedCells.%s", v)
	}
	return nil
}

func oneOf(v string, values ...string) bool {
	return slices.Contains(values, strings.ToUpper(v))
}

func attributeNumber(list []*pb.BytesBytesPair, name string, absent int64) (int64, error) {
	v, ok := Attribute(list, name)
	if !ok {
		return absent, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, cells.DoNotRetry(name + ": For input string: \"" + v + "\"")
	}
	return n, nil
}

// SameSchema says whether two descriptors are equal in content.
func SameSchema(a, b *pb.TableSchema) bool {
	x, errA := a.MarshalVT()
	y, errB := b.MarshalVT()
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// FamilyOf finds a family's descriptor by name, nil if there is none.
func FamilyOf(s *pb.TableSchema, name []byte) *pb.ColumnFamilySchema {
	for _, f := range s.GetColumnFamilies() {
		if bytes.Equal(f.GetName(), name) {
			return f
		}
	}
	return nil
}

// WithFamily gives a copy of the descriptor with the family added or replaced.
func WithFamily(s *pb.TableSchema, f *pb.ColumnFamilySchema) *pb.TableSchema {
	out := WithoutFamily(s, f.GetName())
	out.ColumnFamilies = append(out.ColumnFamilies, f)
	slices.SortFunc(out.ColumnFamilies, func(a, b *pb.ColumnFamilySchema) int { return bytes.Compare(a.GetName(), b.GetName()) })
	return out
}

// WithoutFamily gives a copy of the descriptor without the family.
func WithoutFamily(s *pb.TableSchema, name []byte) *pb.TableSchema {
	out := &pb.TableSchema{TableName: s.GetTableName(), Attributes: s.GetAttributes(), Configuration: s.GetConfiguration()}
	for _, f := range s.GetColumnFamilies() {
		if !bytes.Equal(f.GetName(), name) {
			out.ColumnFamilies = append(out.ColumnFamilies, f)
		}
	}
	return out
}

// AttributeMap gives the table attributes as a map; it is made afresh.
func AttributeMap(s *pb.TableSchema) map[string]string {
	m := make(map[string]string, len(s.GetAttributes()))
	for _, p := range s.GetAttributes() {
		m[string(p.GetFirst())] = string(p.GetSecond())
	}
	return m
}

// sortedPairs gives configuration entries by name.
func sortedPairs(list []*pb.NameStringPair) []*pb.NameStringPair {
	return slices.SortedFunc(slices.Values(list), func(a, b *pb.NameStringPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
}
