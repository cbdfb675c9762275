package admin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// TableDescriptor is a table's schema: its families and settings. Attributes
// use HBase's own names and text values (MAX_FILESIZE => "1073741824").
type TableDescriptor struct {
	Name TableName
	// Families by name, in order of name once they come from a server.
	Families []*FamilyDescriptor
	// Attributes of the table; absent means HBase's default.
	Attributes map[string]string
	// Configuration overrides hbase.* settings for this table.
	Configuration map[string]string

	nameErr error
}

// NewTable starts a schema. A malformed name shows when the descriptor is
// used.
func NewTable(name string, families ...*FamilyDescriptor) *TableDescriptor {
	t, err := meta.ParseTableName(name)
	return &TableDescriptor{Name: t, Families: families, nameErr: err}
}

// Set sets a table attribute by HBase's name, for instance MAX_FILESIZE,
// MEMSTORE_FLUSHSIZE, READONLY, DURABILITY, REGION_REPLICATION, SPLIT_POLICY.
func (t *TableDescriptor) Set(name, value string) *TableDescriptor {
	if t.Attributes == nil {
		t.Attributes = map[string]string{}
	}
	t.Attributes[name] = value
	return t
}

// Configure overrides an hbase.* setting for this table.
func (t *TableDescriptor) Configure(key, value string) *TableDescriptor {
	if t.Configuration == nil {
		t.Configuration = map[string]string{}
	}
	t.Configuration[key] = value
	return t
}

// Add adds families.
func (t *TableDescriptor) Add(families ...*FamilyDescriptor) *TableDescriptor {
	t.Families = append(t.Families, families...)
	return t
}

// Family gives the family of that name, nil if there is none.
func (t *TableDescriptor) Family(name string) *FamilyDescriptor {
	for _, f := range t.Families {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Clone copies the descriptor, so that it can be changed for ModifyTable.
func (t *TableDescriptor) Clone() *TableDescriptor {
	c := *t
	c.Attributes, c.Configuration = maps.Clone(t.Attributes), maps.Clone(t.Configuration)
	c.Families = make([]*FamilyDescriptor, len(t.Families))
	for i, f := range t.Families {
		c.Families[i] = f.Clone()
	}
	return &c
}

// String prints the table as the HBase shell describes it: a line for the
// table, and one per family.
func (t *TableDescriptor) String() string {
	var b strings.Builder
	b.WriteString(t.Name.String())
	attributes := maps.Clone(t.Attributes)
	if attributes["IS_META"] == "false" {
		delete(attributes, "IS_META") // what every table but one is
	}
	if len(attributes)+len(t.Configuration) > 0 {
		b.WriteString(", {TABLE_ATTRIBUTES => {")
		writePairs(&b, attributes, nil, tableAttributes(), t.Configuration)
		b.WriteString("}}")
	}
	for _, f := range t.Families {
		b.WriteString("\n" + f.String())
	}
	return b.String()
}

// tableAttributes are the table attributes that have a name of their own in a
// description; all others are metadata.
func tableAttributes() []string {
	return []string{"MAX_FILESIZE", "READONLY", "MEMSTORE_FLUSHSIZE", "COMPACTION_ENABLED", "SPLIT_ENABLED", "MERGE_ENABLED",
		"NORMALIZATION_ENABLED", "DURABILITY", "REGION_REPLICATION", "REGION_MEMSTORE_REPLICATION", "SPLIT_POLICY", "FLUSH_POLICY", "PRIORITY", "IS_META", "OWNER"}
}

// FamilyDescriptor is a column family's schema.
type FamilyDescriptor struct {
	Name string
	// Attributes by HBase's names; absent means HBase's default, see
	// [FamilyDescriptor.Attribute].
	Attributes map[string]string
	// Configuration overrides hbase.* settings for this family.
	Configuration map[string]string
}

// NewFamily starts a family with HBase's defaults.
func NewFamily(name string) *FamilyDescriptor { return &FamilyDescriptor{Name: name} }

// attribute is a name and a value.
type attribute struct{ name, value string }

// familyDefaults are the attributes that HBase's clients write into every
// family, with their defaults, in the order in which the shell shows them.
func familyDefaults() []attribute {
	return []attribute{
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
}

// Forever is the TTL of cells that do not expire.
const Forever time.Duration = 2147483647 * time.Second

// Attribute gives an attribute's value, HBase's default if it is not set, ""
// if it has none.
func (f *FamilyDescriptor) Attribute(name string) string {
	if v, ok := f.Attributes[name]; ok {
		return v
	}
	for _, d := range familyDefaults() {
		if d.name == name {
			return d.value
		}
	}
	return ""
}

// Set sets an attribute by HBase's name.
func (f *FamilyDescriptor) Set(name, value string) *FamilyDescriptor {
	if f.Attributes == nil {
		f.Attributes = map[string]string{}
	}
	f.Attributes[name] = value
	return f
}

// Configure overrides an hbase.* setting for this family.
func (f *FamilyDescriptor) Configure(key, value string) *FamilyDescriptor {
	if f.Configuration == nil {
		f.Configuration = map[string]string{}
	}
	f.Configuration[key] = value
	return f
}

// Versions sets how many versions of a cell are kept. Default 1.
func (f *FamilyDescriptor) Versions(n int) *FamilyDescriptor {
	return f.Set("VERSIONS", strconv.Itoa(n))
}

// MinVersions sets how many versions outlive the TTL. Default 0.
func (f *FamilyDescriptor) MinVersions(n int) *FamilyDescriptor {
	return f.Set("MIN_VERSIONS", strconv.Itoa(n))
}

// TTL sets when cells expire, in whole seconds; [Forever] is the default.
func (f *FamilyDescriptor) TTL(d time.Duration) *FamilyDescriptor {
	return f.Set("TTL", strconv.FormatInt(int64(d/time.Second), 10))
}

// KeepDeleted sets KEEP_DELETED_CELLS: "FALSE" (default), "TRUE" or "TTL".
func (f *FamilyDescriptor) KeepDeleted(mode string) *FamilyDescriptor {
	return f.Set("KEEP_DELETED_CELLS", strings.ToUpper(mode))
}

// Compression sets the files' compression: "NONE" (default), "GZ", "SNAPPY",
// "LZ4", "ZSTD" and others, as the servers have them.
func (f *FamilyDescriptor) Compression(name string) *FamilyDescriptor {
	return f.Set("COMPRESSION", strings.ToUpper(name))
}

// Bloom sets the files' Bloom filter: "ROW" (default), "ROWCOL", "NONE".
func (f *FamilyDescriptor) Bloom(kind string) *FamilyDescriptor {
	return f.Set("BLOOMFILTER", strings.ToUpper(kind))
}

// InMemory gives the family's blocks preference in the cache. Default false.
func (f *FamilyDescriptor) InMemory(on bool) *FamilyDescriptor {
	return f.Set("IN_MEMORY", strconv.FormatBool(on))
}

// BlockSize sets the size of file blocks in bytes. Default 65536.
func (f *FamilyDescriptor) BlockSize(bytes int) *FamilyDescriptor {
	return f.Set("BLOCKSIZE", strconv.Itoa(bytes))
}

// Clone copies the descriptor.
func (f *FamilyDescriptor) Clone() *FamilyDescriptor {
	c := *f
	c.Attributes, c.Configuration = maps.Clone(f.Attributes), maps.Clone(f.Configuration)
	return &c
}

// String prints the family as the HBase shell describes it, defaults included:
// {NAME => 'f', VERSIONS => '1', ...}.
func (f *FamilyDescriptor) String() string {
	var b strings.Builder
	b.WriteString("{NAME => '" + f.Name + "', ")
	writePairs(&b, f.Attributes, familyDefaults(), []string{"NEW_VERSION_BEHAVIOR", "CACHE_DATA_ON_WRITE", "EVICT_BLOCKS_ON_CLOSE",
		"PREFETCH_BLOCKS_ON_OPEN", "IS_MOB", "MOB_THRESHOLD", "STORAGE_POLICY", "ENCRYPTION"}, f.Configuration)
	b.WriteString("}")
	return b.String()
}

// writePairs prints the attributes in HBase's form: those with defaults first,
// set or not, then those of known names, then the rest as METADATA, then the
// configuration.
func writePairs(b *strings.Builder, set map[string]string, defaults []attribute, known []string, conf map[string]string) {
	var parts []string
	pair := func(name, value string) {
		if name == "TTL" && value == "2147483647" {
			value = "FOREVER"
		}
		parts = append(parts, name+" => '"+value+"'")
	}
	rest := maps.Clone(set)
	for _, d := range defaults {
		if v, ok := set[d.name]; ok {
			d.value = v
		}
		pair(d.name, d.value)
		delete(rest, d.name)
	}
	for _, name := range known {
		if v, ok := set[name]; ok {
			pair(name, v)
			delete(rest, name)
		}
	}
	for _, group := range []struct {
		name  string
		pairs map[string]string
	}{{"METADATA", rest}, {"CONFIGURATION", conf}} {
		if len(group.pairs) == 0 {
			continue
		}
		var inner []string
		for _, k := range slices.Sorted(maps.Keys(group.pairs)) {
			inner = append(inner, "'"+k+"' => '"+group.pairs[k]+"'")
		}
		parts = append(parts, group.name+" => {"+strings.Join(inner, ", ")+"}")
	}
	b.WriteString(strings.Join(parts, ", "))
}

// check refuses what no server would take.
func (t *TableDescriptor) check(op string) error {
	if t == nil {
		return invalid(op, "table", "is nil")
	}
	object := ofTable(t.Name)
	if t.nameErr != nil {
		return invalid(op, "table", t.nameErr.Error())
	}
	if _, err := meta.ParseTableName(t.Name.String()); err != nil {
		return invalid(op, object, err.Error())
	}
	if len(t.Families) == 0 {
		return invalid(op, object, "has no column family; a table needs at least one")
	}
	seen := map[string]bool{}
	for _, f := range t.Families {
		if err := f.check(op); err != nil {
			return err
		}
		if seen[f.Name] {
			return invalid(op, object, fmt.Sprintf("has family %q twice", f.Name))
		}
		seen[f.Name] = true
	}
	return nil
}

func (f *FamilyDescriptor) check(op string) error {
	if f == nil {
		return invalid(op, "family", "is nil")
	}
	object := fmt.Sprintf("family %q", f.Name)
	switch {
	case f.Name == "":
		return invalid(op, "family", "has no name")
	case len(f.Name) > 127:
		return invalid(op, object, "has a name longer than 127 bytes")
	case f.Name[0] == '.':
		return invalid(op, object, "starts with a dot")
	case f.Name == "recovered.edits":
		return invalid(op, object, "is a reserved name")
	}
	for _, r := range f.Name {
		if r < ' ' || r == 0x7F || r == ':' || r == '/' || r == '\\' {
			return invalid(op, object, fmt.Sprintf("holds %q; control characters, : / and \\ are not allowed", r))
		}
	}
	for _, n := range []struct {
		name string
		min  int64
	}{{"VERSIONS", 1}, {"MIN_VERSIONS", 0}, {"TTL", 1}, {"BLOCKSIZE", 1}} {
		v := f.Attribute(n.name)
		if got, err := strconv.ParseInt(v, 10, 64); err != nil || got < n.min {
			return invalid(op, object, fmt.Sprintf("%s => %q is not a number of at least %d", n.name, v, n.min))
		}
	}
	return nil
}

// toProto writes families as Java clients do: with every default spelt out.
func (t *TableDescriptor) toProto() *pb.TableSchema {
	p := &pb.TableSchema{
		TableName:     t.Name.ToProto(),
		Attributes:    attributesToProto(sortedPairs(t.Attributes, nil)),
		Configuration: configurationToProto(t.Configuration),
	}
	families := slices.Clone(t.Families)
	slices.SortFunc(families, func(a, b *FamilyDescriptor) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range families {
		p.ColumnFamilies = append(p.ColumnFamilies, f.toProto())
	}
	return p
}

func (f *FamilyDescriptor) toProto() *pb.ColumnFamilySchema {
	return &pb.ColumnFamilySchema{
		Name:          []byte(f.Name),
		Attributes:    attributesToProto(sortedPairs(f.Attributes, familyDefaults())),
		Configuration: configurationToProto(f.Configuration),
	}
}

// sortedPairs gives the attributes with defaults first, set or not, then the
// others by name.
func sortedPairs(set map[string]string, defaults []attribute) []attribute {
	var out []attribute
	for _, d := range defaults {
		if v, ok := set[d.name]; ok {
			d.value = v
		}
		out = append(out, d)
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !slices.ContainsFunc(defaults, func(d attribute) bool { return d.name == name }) {
			out = append(out, attribute{name, set[name]})
		}
	}
	return out
}

func attributesToProto(pairs []attribute) []*pb.BytesBytesPair {
	var out []*pb.BytesBytesPair
	for _, p := range pairs {
		out = append(out, &pb.BytesBytesPair{First: []byte(p.name), Second: []byte(p.value)})
	}
	return out
}

func configurationToProto(m map[string]string) []*pb.NameStringPair {
	var out []*pb.NameStringPair
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, &pb.NameStringPair{Name: new(k), Value: new(m[k])})
	}
	return out
}

func configurationFromProto(ps []*pb.NameStringPair) map[string]string {
	if len(ps) == 0 {
		return nil
	}
	m := make(map[string]string, len(ps))
	for _, p := range ps {
		m[p.GetName()] = p.GetValue()
	}
	return m
}

func attributesFromProto(ps []*pb.BytesBytesPair) map[string]string {
	if len(ps) == 0 {
		return nil
	}
	m := make(map[string]string, len(ps))
	for _, p := range ps {
		m[string(p.GetFirst())] = string(p.GetSecond())
	}
	return m
}

func tableFromProto(p *pb.TableSchema) *TableDescriptor {
	t := &TableDescriptor{
		Name:          meta.TableFromProto(p.GetTableName()),
		Attributes:    attributesFromProto(p.GetAttributes()),
		Configuration: configurationFromProto(p.GetConfiguration()),
	}
	for _, f := range p.GetColumnFamilies() {
		t.Families = append(t.Families, &FamilyDescriptor{
			Name:          string(f.GetName()),
			Attributes:    attributesFromProto(f.GetAttributes()),
			Configuration: configurationFromProto(f.GetConfiguration()),
		})
	}
	return t
}
