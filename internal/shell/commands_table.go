package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func tableCommands() []command {
	return []command{
		{"list", "tables", "list\nlist 'user.*'", "List tables, or those whose whole name matches an expression.", runList},
		{"create", "tables", "create 't', 'f1', 'f2'\ncreate 't', {NAME => 'f', VERSIONS => 5, TTL => 86400}\ncreate 't', 'f', SPLITS => ['g', 'n', 't']\ncreate 't', 'f', {NUMREGIONS => 16, SPLITALGO => 'HexStringSplit'}",
			"Make a table. Family options are HBase's attributes: NAME, VERSIONS, TTL, MIN_VERSIONS, KEEP_DELETED_CELLS, COMPRESSION, BLOOMFILTER, IN_MEMORY, BLOCKSIZE, ... Table options: SPLITS, SPLITS_FILE, NUMREGIONS with SPLITALGO (HexStringSplit, UniformSplit), CONFIGURATION, MAX_FILESIZE, READONLY, DURABILITY, ...", runCreate},
		{"describe", "tables", "describe 't'", "Print a table's schema.", runDescribe},
		{"alter", "tables", "alter 't', {NAME => 'f', VERSIONS => 5}\nalter 't', NAME => 'f', METHOD => 'delete'\nalter 't', MAX_FILESIZE => '134217728'",
			"Change a family, add one, delete one (METHOD => 'delete'), or change table attributes.", runAlter},
		{"exists", "tables", "exists 't'", "Say whether a table exists.", runExists},
		{"enable", "tables", "enable 't'", "Open a disabled table.", onTable((*admin.Admin).EnableTable)},
		{"disable", "tables", "disable 't'", "Close a table.", onTable((*admin.Admin).DisableTable)},
		{"is_enabled", "tables", "is_enabled 't'", "Say whether a table is enabled.", askTable((*admin.Admin).IsEnabled)},
		{"is_disabled", "tables", "is_disabled 't'", "Say whether a table is disabled.", askTable((*admin.Admin).IsDisabled)},
		{"drop", "tables", "drop 't'", "Delete a disabled table with its data.", onTable(dropTable)},
		{"truncate", "tables", "truncate 't'", "Empty a table: disables it, empties it, enables it. Its regions become one.", truncate(false)},
		{"truncate_preserve", "tables", "truncate_preserve 't'", "Empty a table and keep its region boundaries.", truncate(true)},
		{"list_namespace", "tables", "list_namespace\nlist_namespace 'app.*'", "List namespaces.", runListNamespace},
		{"create_namespace", "tables", "create_namespace 'ns'\ncreate_namespace 'ns', {'hbase.namespace.quota.maxtables' => '10'}", "Make a namespace.", runCreateNamespace},
		{"describe_namespace", "tables", "describe_namespace 'ns'", "Print a namespace's settings.", runDescribeNamespace},
		{"drop_namespace", "tables", "drop_namespace 'ns'", "Delete an empty namespace.", runDropNamespace},
		{"list_namespace_tables", "tables", "list_namespace_tables 'ns'", "List the tables of a namespace.", runNamespaceTables},
	}
}

// onTable makes a command of an admin call on one table.
func onTable(call func(*admin.Admin, context.Context, string) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 1); err != nil {
			return nil, err
		}
		name, err := a.text(0, "table")
		if err != nil {
			return nil, err
		}
		return say(nil), call(s.Client.Admin(), ctx, name)
	}
}

// dropTable says what to do about a table that is not disabled.
func dropTable(adm *admin.Admin, ctx context.Context, name string) error {
	err := adm.DeleteTable(ctx, name)
	if errors.Is(err, hbase.ErrTableNotDisabled) {
		return fmt.Errorf("table %s is enabled; disable it first: %w", name, err)
	}
	return err
}

func askTable(call func(*admin.Admin, context.Context, string) (bool, error)) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 1); err != nil {
			return nil, err
		}
		name, err := a.text(0, "table")
		if err != nil {
			return nil, err
		}
		yes, err := call(s.Client.Admin(), ctx, name)
		ans := say(yes, strconv.FormatBool(yes))
		ans.value = strconv.FormatBool(yes)
		return ans, err
	}
}

func runList(ctx context.Context, s *Shell, a args) (*answer, error) {
	pattern := ""
	if a.len() > 0 {
		var err error
		if pattern, err = a.text(0, "expression"); err != nil {
			return nil, err
		}
	}
	tables, err := s.Client.Admin().ListTables(ctx, pattern, false)
	if err != nil {
		return nil, err
	}
	ans := &answer{lines: []string{"TABLE"}, counted: len(tables)}
	names := make([]string, 0, len(tables))
	for _, t := range tables {
		names = append(names, t.String())
	}
	ans.lines = append(ans.lines, names...)
	ans.value, ans.data = rubyStrings(names), names
	return ans, nil
}

// rubyStrings prints an array as Ruby's inspect does.
func rubyStrings(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// tableOptions are keys of create and alter that are not attributes.
var tableOptions = []string{"SPLITS", "SPLITS_FILE", "NUMREGIONS", "SPLITALGO", "CONFIGURATION", "METADATA", "OWNER", "NAME", "METHOD"}

func runCreate(ctx context.Context, s *Shell, a args) (*answer, error) {
	name, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	t := admin.NewTable(name)
	var splits [][]byte
	for i := 1; i < a.len(); i++ {
		h, isHash := HashOf(a.list[i])
		if !isHash {
			family, err := a.text(i, "family")
			if err != nil {
				return nil, err
			}
			t.Add(admin.NewFamily(family))
			continue
		}
		o := &options{a: a, h: h}
		if o.has("NAME") {
			f, err := familyOf(o, nil)
			if err != nil {
				return nil, err
			}
			t.Add(f)
			continue
		}
		more, err := splitKeys(o)
		if err != nil {
			return nil, err
		}
		splits = append(splits, more...)
		if err := tableSettings(o, t); err != nil {
			return nil, err
		}
	}
	if len(t.Families) == 0 {
		return nil, a.fail("a table needs at least one column family")
	}
	if err := s.Client.Admin().CreateTable(ctx, t, splits...); err != nil {
		return nil, err
	}
	ans := say(name, "Created table "+name)
	ans.value = "Hbase::Table - " + name
	return ans, nil
}

// familyOf reads {NAME => 'f', ...} over what the family has been so far.
func familyOf(o *options, old *admin.FamilyDescriptor) (*admin.FamilyDescriptor, error) {
	f := old
	if f == nil {
		f = admin.NewFamily(o.text("NAME"))
	}
	for i, k := range o.h.Keys {
		switch k {
		case "NAME", "METHOD":
		case "CONFIGURATION", "METADATA":
			if err := settings(o, k, func(key, v string) {
				if k == "METADATA" {
					f.Set(key, v)
				} else {
					f.Configure(key, v)
				}
			}); err != nil {
				return nil, err
			}
		default:
			if !contains(familyAttributes(), k) {
				return nil, o.a.fail("unknown family option %s%s; settings of your own go into METADATA => {'KEY' => 'value'}", k, didYouMean(k, familyAttributes()))
			}
			v, err := attribute(o, k, o.h.Values[i])
			if err != nil {
				return nil, err
			}
			f.Set(k, v)
		}
	}
	return f, o.err
}

// familyAttributes are the column family attributes HBase 2.6 knows.
func familyAttributes() []string {
	return []string{"VERSIONS", "MIN_VERSIONS", "TTL", "KEEP_DELETED_CELLS", "NEW_VERSION_BEHAVIOR", "COMPRESSION", "COMPRESSION_COMPACT",
		"COMPRESSION_COMPACT_MAJOR", "COMPRESSION_COMPACT_MINOR", "DATA_BLOCK_ENCODING", "INDEX_BLOCK_ENCODING", "BLOOMFILTER", "BLOCKSIZE",
		"BLOCKCACHE", "IN_MEMORY", "IN_MEMORY_COMPACTION", "CACHE_DATA_ON_WRITE", "CACHE_INDEX_ON_WRITE", "CACHE_BLOOMS_ON_WRITE",
		"EVICT_BLOCKS_ON_CLOSE", "PREFETCH_BLOCKS_ON_OPEN", "REPLICATION_SCOPE", "STORAGE_POLICY", "DFS_REPLICATION", "ENCRYPTION",
		"ENCRYPTION_KEY", "IS_MOB", "MOB_THRESHOLD", "MOB_COMPACT_PARTITION_POLICY", "COMPRESS_TAGS"}
}

// attribute prints a value as HBase stores it: text.
func attribute(o *options, key string, v Value) (string, error) {
	switch v := v.(type) {
	case String:
		return string(v), nil
	case Symbol:
		return string(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		if v == math.Trunc(v) {
			return strconv.FormatInt(int64(v), 10), nil
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	}
	return "", o.a.fail("%s must be a string, a number, true or false", key)
}

func settings(o *options, key string, set func(k, v string)) error {
	v, _ := o.h.Get(key)
	h, ok := HashOf(v)
	if !ok {
		return o.a.fail("%s must be a hash: {'key' => 'value'}", key)
	}
	for i, k := range h.Keys {
		text, err := attribute(o, k, h.Values[i])
		if err != nil {
			return err
		}
		set(k, text)
	}
	return nil
}

func tableSettings(o *options, t *admin.TableDescriptor) error {
	for i, k := range o.h.Keys {
		switch {
		case k == "CONFIGURATION":
			if err := settings(o, k, func(key, v string) { t.Configure(key, v) }); err != nil {
				return err
			}
		case k == "METADATA":
			if err := settings(o, k, func(key, v string) { t.Set(key, v) }); err != nil {
				return err
			}
		case !contains(tableOptions, k):
			v, err := attribute(o, k, o.h.Values[i])
			if err != nil {
				return err
			}
			t.Set(k, v)
		}
	}
	return o.err
}

func splitKeys(o *options) ([][]byte, error) {
	var keys [][]byte
	for _, k := range o.texts("SPLITS") {
		keys = append(keys, []byte(k))
	}
	if path := o.text("SPLITS_FILE"); path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		for in := bufio.NewScanner(f); in.Scan(); {
			if line := strings.TrimSpace(in.Text()); line != "" {
				keys = append(keys, []byte(line))
			}
		}
	}
	if n := o.integer("NUMREGIONS", 3, 1<<20); n > 0 {
		switch algo := o.text("SPLITALGO"); algo {
		case "HexStringSplit":
			for i := int64(1); i < n; i++ {
				keys = append(keys, fmt.Appendf(nil, "%08x", uint64(i)*(1<<32)/uint64(n)))
			}
		case "UniformSplit":
			for i := int64(1); i < n; i++ {
				v := uint64(i) * (math.MaxUint64/uint64(n) + 1)
				keys = append(keys, []byte{byte(v >> 56), byte(v >> 48), byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
			}
		default:
			o.bad("SPLITALGO", "HexStringSplit or UniformSplit")
		}
	}
	return keys, o.err
}

func runDescribe(ctx context.Context, s *Shell, a args) (*answer, error) {
	name, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	adm := s.Client.Admin()
	t, err := adm.Describe(ctx, name)
	if err != nil {
		return nil, err
	}
	state, err := adm.TableState(ctx, name)
	if err != nil {
		return nil, err
	}
	ans := &answer{counted: len(t.Families)}
	head, _, _ := strings.Cut(t.String(), "\n")
	ans.lines = []string{"Table " + name + " is " + state.String(), head, "COLUMN FAMILIES DESCRIPTION"}
	families := map[string]map[string]string{}
	for _, f := range t.Families {
		ans.lines = append(ans.lines, f.String(), "")
		families[f.Name] = f.Attributes
	}
	ans.data = map[string]any{"table": name, "state": state.String(), "attributes": t.Attributes, "configuration": t.Configuration, "families": families}
	return ans, nil
}

func runAlter(ctx context.Context, s *Shell, a args) (*answer, error) {
	return alter(ctx, s.Client.Admin(), a)
}

func alter(ctx context.Context, adm *admin.Admin, a args) (*answer, error) {
	name, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	if a.len() < 2 {
		return nil, a.fail("nothing to change is given")
	}
	old, err := adm.Describe(ctx, name)
	if err != nil {
		return nil, err
	}
	t := old.Clone()
	for i := 1; i < a.len(); i++ {
		h, ok := HashOf(a.list[i])
		if !ok {
			family, err := a.text(i, "family")
			if err != nil {
				return nil, err
			}
			h = &Hash{}
			h.add("NAME", String(family))
		}
		o := &options{a: a, h: h}
		family := o.text("NAME")
		switch {
		case o.text("METHOD") == "delete" && family != "":
			kept := t.Families[:0]
			for _, f := range t.Families {
				if f.Name != family {
					kept = append(kept, f)
				}
			}
			if len(kept) == len(t.Families) {
				return nil, a.fail("table %s has no family %s", name, family)
			}
			t.Families = kept
		case family != "":
			f, err := familyOf(o, t.Family(family))
			if err != nil {
				return nil, err
			}
			if t.Family(family) == nil {
				t.Add(f)
			}
		default:
			if err := tableSettings(o, t); err != nil {
				return nil, err
			}
		}
		if o.err != nil {
			return nil, o.err
		}
	}
	return say(nil), adm.ModifyTable(ctx, t)
}

func runExists(ctx context.Context, s *Shell, a args) (*answer, error) {
	name, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	yes, err := s.Client.Admin().TableExists(ctx, name)
	text := "does exist"
	if !yes {
		text = "does not exist"
	}
	ans := say(yes, "Table "+name+" "+text)
	ans.value = strconv.FormatBool(yes)
	return ans, err
}

func truncate(preserve bool) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		name, err := a.text(0, "table")
		if err != nil {
			return nil, err
		}
		adm := s.Client.Admin()
		if on, err := adm.IsEnabled(ctx, name); err != nil {
			return nil, err
		} else if on {
			if err := adm.DisableTable(ctx, name); err != nil {
				return nil, err
			}
		}
		return say(nil), adm.TruncateTable(ctx, name, preserve)
	}
}

func runListNamespace(ctx context.Context, s *Shell, a args) (*answer, error) {
	match := func(string) bool { return true }
	if a.len() > 0 {
		pattern, err := a.text(0, "expression")
		if err != nil {
			return nil, err
		}
		re, err := wholeMatch(pattern)
		if err != nil {
			return nil, a.fail("%v", err)
		}
		match = re.MatchString
	}
	all, err := s.Client.Admin().ListNamespaces(ctx)
	if err != nil {
		return nil, err
	}
	ans := &answer{lines: []string{"NAMESPACE"}}
	names := []string{}
	for _, n := range all {
		if match(n.Name) {
			names = append(names, n.Name)
		}
	}
	ans.lines, ans.counted, ans.data = append(ans.lines, names...), len(names), names
	return ans, nil
}

func runCreateNamespace(ctx context.Context, s *Shell, a args) (*answer, error) {
	name, err := a.text(0, "namespace")
	if err != nil {
		return nil, err
	}
	n := hbaseNamespace(name)
	if a.len() > 1 {
		o := &options{a: a, h: &Hash{}}
		o.h.add("settings", a.list[1])
		if err := settings(o, "settings", func(k, v string) { n.Configuration[k] = v }); err != nil {
			return nil, err
		}
	}
	return say(nil), s.Client.Admin().CreateNamespace(ctx, n)
}

func hbaseNamespace(name string) admin.Namespace {
	return admin.Namespace{Name: name, Configuration: map[string]string{}}
}

func runDescribeNamespace(ctx context.Context, s *Shell, a args) (*answer, error) {
	name, err := a.text(0, "namespace")
	if err != nil {
		return nil, err
	}
	n, err := s.Client.Admin().DescribeNamespace(ctx, name)
	if err != nil {
		return nil, err
	}
	line := "{NAME => '" + n.Name + "'"
	for _, k := range sortedKeys(n.Configuration) {
		line += ", " + k + " => '" + n.Configuration[k] + "'"
	}
	return say(n, "DESCRIPTION", line+"}"), nil
}

func runDropNamespace(ctx context.Context, s *Shell, a args) (*answer, error) {
	name, err := a.text(0, "namespace")
	if err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().DeleteNamespace(ctx, name)
}

func runNamespaceTables(ctx context.Context, s *Shell, a args) (*answer, error) {
	name, err := a.text(0, "namespace")
	if err != nil {
		return nil, err
	}
	tables, err := s.Client.Admin().NamespaceTables(ctx, name)
	if err != nil {
		return nil, err
	}
	ans := &answer{lines: []string{"TABLE"}, counted: len(tables)}
	names := []string{}
	for _, t := range tables {
		names = append(names, hbase.TableName(t).Qualifier)
	}
	ans.lines, ans.data = append(ans.lines, names...), names
	return ans, nil
}
