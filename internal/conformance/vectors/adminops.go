package vectors

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// The admin operations, through hbase/admin.

// attributesOf hands out a descriptor's attributes in order.
func attributesOf(v any, set func(name, value string)) {
	o, _ := v.(object)
	for _, k := range sorted(o) {
		set(k, fmt.Sprint(o[k]))
	}
}

func familyOf(name string, attributes any) *admin.FamilyDescriptor {
	f := admin.NewFamily(string(data(name)))
	attributesOf(attributes, func(k, v string) { f.Set(k, v) })
	return f
}

// descriptor makes a table's schema; splits come with it.
func descriptor(d object) (*admin.TableDescriptor, [][]byte) {
	t := admin.NewTable(text(d, "name"))
	families, _ := d["families"].(object)
	for _, name := range sorted(families) {
		t.Add(familyOf(name, families[name]))
	}
	attributesOf(d["attributes"], func(k, v string) { t.Set(k, v) })
	var splits [][]byte
	for _, s := range list(d, "splits") {
		splits = append(splits, data(s))
	}
	return t, splits
}

func (r *runner) tableName(s object) string {
	if v, ok := s["table"].(string); ok {
		return v
	}
	return r.tab
}

// regionOf finds the encoded name of the table's region that holds a row.
func (r *runner) regionOf(s object, row any) (string, error) {
	l, err := r.locate(r.tableName(s), data(row))
	if err != nil {
		return "", err
	}
	return l.Region.EncodedName(), nil
}

func (r *runner) playAdmin(s object) (any, error) {
	a, table := r.client(s).Admin(), r.tableName(s)
	value := func(v any, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return object{"value": v}, nil
	}
	switch s["op"] {
	case "createTable":
		d, _ := s["descriptor"].(object)
		t, splits := descriptor(d)
		return done(a.CreateTable(r.ctx, t, splits...))
	case "createTableRange":
		d, _ := s["descriptor"].(object)
		t, _ := descriptor(d)
		start, end := data(s["startKey"]), data(s["endKey"])
		if integer(s["regions"]) != 3 {
			return nil, errInexpressible
		}
		return done(a.CreateTable(r.ctx, t, start, end))
	case "deleteTable":
		return done(a.DeleteTable(r.ctx, table))
	case "disableTable":
		return done(a.DisableTable(r.ctx, table))
	case "enableTable":
		return done(a.EnableTable(r.ctx, table))
	case "truncateTable":
		return done(a.TruncateTable(r.ctx, table, flag(s, "preserveSplits")))
	case "modifyTable":
		d, _ := s["descriptor"].(object)
		t, _ := descriptor(d)
		return done(a.ModifyTable(r.ctx, t))
	case "addFamily":
		return done(a.AddFamily(r.ctx, table, familyOf(text(s, "family"), s["attributes"])))
	case "modifyFamily":
		return done(a.ModifyFamily(r.ctx, table, familyOf(text(s, "family"), s["attributes"])))
	case "deleteFamily":
		return done(a.DeleteFamily(r.ctx, table, text(s, "family")))
	case "tableExists":
		return value(a.TableExists(r.ctx, table))
	case "isTableEnabled":
		return value(a.IsEnabled(r.ctx, table))
	case "isTableDisabled":
		return value(a.IsDisabled(r.ctx, table))
	case "isTableAvailable":
		return value(r.available(a, table))
	case "describeTable":
		t, err := a.Describe(r.ctx, table)
		if err != nil {
			return nil, err
		}
		return object{"value": described(t)}, nil
	case "listTables":
		names, err := a.ListTables(r.ctx, text(s, "regex"), flag(s, "includeSystem"))
		return value(texts(names), err)
	case "listTablesByNamespace":
		names, err := a.NamespaceTables(r.ctx, text(s, "namespace"))
		return value(texts(names), err)
	case "createNamespace":
		return done(a.CreateNamespace(r.ctx, admin.Namespace{Name: text(s, "namespace")}))
	case "deleteNamespace":
		return done(a.DeleteNamespace(r.ctx, text(s, "namespace")))
	case "describeNamespace":
		n, err := a.DescribeNamespace(r.ctx, text(s, "namespace"))
		if err != nil {
			return nil, err
		}
		config := object{}
		for k, v := range n.Configuration {
			config[k] = v
		}
		return object{"value": object{"name": n.Name, "configuration": config}}, nil
	case "listNamespaces":
		names, err := a.NamespaceNames(r.ctx)
		re, rerr := regexp.Compile("^(?:" + text(s, "regex") + ")$")
		if rerr != nil {
			return nil, rerr
		}
		out := []any{}
		for _, n := range names {
			if re.MatchString(n) {
				out = append(out, n)
			}
		}
		return value(out, err)
	case "regions":
		return value(r.regions(a, table))
	case "metaRows":
		return value(r.metaRows(table))
	case "split":
		region, err := r.regionOf(s, s["regionOf"])
		if err != nil {
			return nil, err
		}
		return done(a.SplitRegion(r.ctx, region, data(s["splitRow"])))
	case "merge":
		var regions []string
		for _, row := range list(s, "regionsOf") {
			region, err := r.regionOf(s, row)
			if err != nil {
				return nil, err
			}
			regions = append(regions, region)
		}
		return done(a.MergeRegions(r.ctx, regions, flag(s, "force")))
	case "move":
		region, err := r.regionOf(s, s["regionOf"])
		if err != nil {
			return nil, err
		}
		return done(a.MoveRegion(r.ctx, region, hbase.ServerName{}))
	case "unassignAssign":
		region, err := r.regionOf(s, s["regionOf"])
		if err != nil {
			return nil, err
		}
		if err := a.UnassignRegion(r.ctx, region); err != nil {
			return nil, err
		}
		return done(a.AssignRegion(r.ctx, region))
	case "flush":
		if f := text(s, "family"); f != "" {
			return done(a.FlushFamily(r.ctx, table, f))
		}
		return done(a.Flush(r.ctx, table))
	case "compact":
		return done(r.compact(a, table, int(max(1, integer(s["untilFiles"])))))
	case "majorCompact":
		return done(r.majorCompact(a, table, text(s, "family")))
	case "storeFiles":
		n := uint32(0)
		loads, err := a.TableMetrics(r.ctx, table)
		for _, l := range loads {
			n += l.StoreFiles
		}
		return value(n, err)
	case "snapshot":
		return done(a.Snapshot(r.ctx, text(s, "name"), table, admin.SnapshotOptions{}))
	case "cloneSnapshot":
		return done(a.CloneSnapshot(r.ctx, text(s, "name"), text(s, "to"), admin.CloneOptions{}))
	case "restoreSnapshot":
		return done(a.RestoreSnapshot(r.ctx, text(s, "name"), admin.RestoreOptions{}))
	case "deleteSnapshot":
		return done(a.DeleteSnapshot(r.ctx, text(s, "name")))
	case "listSnapshots":
		snapshots, err := a.ListSnapshots(r.ctx, text(s, "regex"))
		out := []any{}
		for _, x := range snapshots {
			out = append(out, x.Name+" "+x.Table.String())
		}
		return value(out, err)
	}
	r.bad("operation %v is not known", s["op"])
	return nil, nil
}

func texts(names []admin.TableName) []any {
	out := []any{}
	for _, n := range names {
		out = append(out, n.String())
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

func described(t *admin.TableDescriptor) object {
	all := func(attributes, configuration map[string]string) object {
		o := object{}
		for k, v := range attributes {
			o[k] = v
		}
		for k, v := range configuration {
			o["configuration:"+k] = v
		}
		return o
	}
	families := object{}
	for _, f := range t.Families {
		families[f.Name] = all(f.Attributes, f.Configuration)
	}
	return object{"name": t.Name.String(), "attributes": all(t.Attributes, t.Configuration), "families": families}
}

// available says whether the table is enabled and every region has a server.
func (r *runner) available(a *admin.Admin, table string) (bool, error) {
	ok, err := a.TableExists(r.ctx, table)
	if err != nil || !ok {
		return false, err
	}
	if ok, err = a.IsEnabled(r.ctx, table); err != nil || !ok {
		return false, err
	}
	regions, err := a.Regions(r.ctx, table)
	for _, l := range regions {
		ok = ok && l.Server != (hbase.ServerName{})
	}
	return ok, err
}

func (r *runner) regions(a *admin.Admin, table string) ([]any, error) {
	regions, err := a.Regions(r.ctx, table)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, l := range regions {
		name := l.Region.Name()
		o := object{"startKey": raw(l.Region.Start), "endKey": raw(l.Region.End),
			"encodedIsMd5OfTableStartId": strings.Contains(string(name), "."+l.Region.EncodedName()),
			"nameEndsWithDotEncodedDot":  strings.HasSuffix(string(name), "."+l.Region.EncodedName()+".")}
		if l.Region.Offline {
			o["offline"] = true
		}
		if l.Region.Split {
			o["split"] = true
		}
		out = append(out, o)
	}
	return out, nil
}

// metaRows reads hbase:meta as a table.
func (r *runner) metaRows(table string) (object, error) {
	metaTable, err := r.clients.plain.Table("hbase:meta")
	if err != nil {
		return nil, err
	}
	state, err := metaTable.Get(r.ctx, hbase.NewGet(table).Column("table", "state"))
	if err != nil {
		return nil, err
	}
	out := object{"tableState": nil}
	if v := state.Value("table", "state"); v != nil {
		out["tableState"] = raw(v)
	}
	rows := []any{}
	name, err := hbase.ParseTableName(table)
	if err != nil {
		return nil, err
	}
	for res, err := range metaTable.Scan(r.ctx, hbase.NewScanRange(meta.FirstRow(name), meta.StopRow(name)).Family("info")).Rows() {
		if err != nil {
			return nil, err
		}
		columns := []any{}
		for _, c := range res.Cells {
			columns = append(columns, raw(c.Qualifier))
		}
		rows = append(rows, object{"columns": columns, "state": raw(res.Value("info", "state"))})
	}
	out["regions"] = rows
	return out, nil
}

// compact asks for a minor compaction and waits until no store has more than
// files files.
func (r *runner) compact(a *admin.Admin, table string, files int) error {
	if err := a.Compact(r.ctx, table, ""); err != nil {
		return err
	}
	return r.await("compact", func(ctx context.Context) (bool, error) {
		state, err := a.CompactionState(ctx, table)
		if err != nil || state != admin.NotCompacting {
			return false, err
		}
		loads, err := a.TableMetrics(ctx, table)
		return err == nil && !slices.ContainsFunc(loads, func(l admin.RegionLoad) bool { return int(l.StoreFiles) > files }), err
	})
}

// majorCompact asks for a major compaction and waits until it shows: each store
// has one file, and the oldest of a region's files is of the compaction. A
// single family's compaction shows nowhere on a real cluster; there it gets
// time.
func (r *runner) majorCompact(a *admin.Admin, table, family string) error {
	loads, err := a.TableMetrics(r.ctx, table)
	if err != nil {
		return err
	}
	before := make(map[string]time.Time)
	for _, l := range loads {
		before[string(l.Name)] = l.LastMajorCompaction
	}
	if !r.o.Embedded {
		// The times have a resolution of a millisecond.
		r.pause(15 * time.Millisecond)
	}
	if err := a.MajorCompact(r.ctx, table, family); err != nil {
		return err
	}
	if r.o.Embedded {
		return r.await("major compaction", func(ctx context.Context) (bool, error) {
			state, err := a.CompactionState(ctx, table)
			return state == admin.NotCompacting, err
		})
	}
	if family != "" {
		r.pause(1500 * time.Millisecond)
	}
	return r.await("major compaction", func(ctx context.Context) (bool, error) {
		state, err := a.CompactionState(ctx, table)
		if err != nil || state != admin.NotCompacting {
			return false, err
		}
		loads, err := a.TableMetrics(ctx, table)
		return err == nil && !slices.ContainsFunc(loads, func(l admin.RegionLoad) bool {
			return family == "" && l.StoreFiles > 0 && (l.StoreFiles > l.Stores || !l.LastMajorCompaction.After(before[string(l.Name)]))
		}), err
	})
}

// await asks until the answer is yes.
func (r *runner) await(what string, f func(context.Context) (bool, error)) error {
	for {
		ok, err := f(r.ctx)
		if ok || err != nil {
			return err
		}
		r.pause(10 * time.Millisecond)
		if err := r.ctx.Err(); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

// pause waits in real time.
func (r *runner) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.ctx.Done():
	}
}
