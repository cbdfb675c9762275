package catalog

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// State is one consistent picture of the catalog; immutable, safe to keep and
// to read from anywhere.
type State struct {
	tables     tree[*Table]  // by name text, which is hbase:meta's order of state rows
	regions    tree[*Region] // in hbase:meta's row order; without hbase:meta's own region
	encoded    tree[*Region] // by encoded name
	generated  tree[*generated]
	replicas   tree[replicaName] // by the replica's encoded name
	namespaces tree[*Namespace]
	groups     tree[*Group]
	snapshots  tree[*Snapshot]
	meta       *Region
	settings   map[string]string // copied on write: a handful of entries
	// held counts the regions by the server that holds or opens them; copied on
	// write: as many entries as servers.
	held map[meta.ServerName]int
}

// Held is how many regions a server holds or opens, hbase:meta's included.
func (s *State) Held(server meta.ServerName) int { return s.held[server] }

func emptyState() *State {
	return &State{
		tables:     newTree(compareTables),
		regions:    newTree(compareRegions),
		encoded:    newTree(compareEncoded),
		generated:  newTree(compareGenerated),
		replicas:   newTree(compareReplicas),
		namespaces: newTree(func(a, b *Namespace) int { return cmp.Compare(a.Name, b.Name) }),
		groups:     newTree(func(a, b *Group) int { return cmp.Compare(a.Name, b.Name) }),
		snapshots:  newTree(compareSnapshots),
	}
}

func compareTables(a, b *Table) int   { return strings.Compare(a.Name.String(), b.Name.String()) }
func compareRegions(a, b *Region) int { return meta.CompareRows(a.Name, b.Name) }
func compareEncoded(a, b *Region) int { return strings.Compare(a.Encoded, b.Encoded) }
func compareSnapshots(a, b *Snapshot) int {
	return strings.Compare(a.Description.GetName(), b.Description.GetName())
}

// Table gives the table of that name, nil if there is none.
func (s *State) Table(name meta.TableName) *Table {
	text := name.String()
	t, _ := s.tables.find(func(t *Table) int { return strings.Compare(t.Name.String(), text) })
	return t
}

// Tables gives all tables, rendered ones included, ordered by name text.
func (s *State) Tables() iter.Seq[*Table] { return s.tables.all() }

// Region gives the region of that encoded name, nil if there is none.
func (s *State) Region(encoded string) *Region {
	if encoded == meta.MetaEncodedName {
		return s.meta
	}
	if r, ok := s.encoded.find(func(r *Region) int { return strings.Compare(r.Encoded, encoded) }); ok {
		return r
	}
	if g, i := s.generatedNamed(encoded, nil); g != nil {
		return g.region(i, g.slot(i))
	}
	return nil
}

// RegionNamed gives the region of that full name, nil if there is none.
func (s *State) RegionNamed(name []byte) *Region {
	if string(name) == meta.MetaRegionName {
		return s.meta
	}
	r, ok := s.regions.find(func(r *Region) int { return meta.CompareRows(r.Name, name) })
	if ok && bytes.Equal(r.Name, name) {
		return r
	}
	if g, i := s.generatedNamed("", name); g != nil {
		return g.region(i, g.slot(i))
	}
	return nil
}

// MetaRegion is the region of hbase:meta.
func (s *State) MetaRegion() *Region { return s.meta }

// Regions gives every region but hbase:meta's own, in hbase:meta's order.
func (s *State) Regions() iter.Seq[*Region] { return s.regionsFrom(nil, false, 0) }

// RegionCount is the number of regions, hbase:meta's own not counted.
func (s *State) RegionCount() int {
	n := s.regions.size
	for g := range s.generated.all() {
		n += g.count()
	}
	return n
}

// AllRegions gives every region, hbase:meta's own first.
func (s *State) AllRegions() iter.Seq[*Region] {
	return func(yield func(*Region) bool) {
		if s.meta != nil && !yield(s.meta) {
			return
		}
		s.Regions()(yield)
	}
}

// RegionsOf gives a table's regions in key order, parents of splits included.
func (s *State) RegionsOf(name meta.TableName) iter.Seq[*Region] {
	if name == meta.MetaTable {
		return func(yield func(*Region) bool) {
			if s.meta != nil {
				yield(s.meta)
			}
		}
	}
	first := meta.FirstRow(name)
	return func(yield func(*Region) bool) {
		for r := range s.regionsFrom(first, false, 0) {
			if r.Info.Table != name || !yield(r) {
				return
			}
		}
	}
}

// Namespace gives the namespace, nil if there is none.
func (s *State) Namespace(name string) *Namespace {
	n, _ := s.namespaces.find(func(n *Namespace) int { return cmp.Compare(n.Name, name) })
	return n
}

// Namespaces gives all namespaces by name.
func (s *State) Namespaces() iter.Seq[*Namespace] { return s.namespaces.all() }

// Group gives a group other than "default", nil if there is none.
func (s *State) Group(name string) *Group {
	g, _ := s.groups.find(func(g *Group) int { return cmp.Compare(g.Name, name) })
	return g
}

// Groups gives the groups other than "default", by name.
func (s *State) Groups() iter.Seq[*Group] { return s.groups.all() }

// HasGroup says whether a group of that name exists, "default" included.
func (s *State) HasGroup(name string) bool { return name == DefaultGroup || s.Group(name) != nil }

// GroupOfServer gives the group of a server address ("host:port"): the one
// that names it, else "default".
func (s *State) GroupOfServer(address string) string {
	for g := range s.Groups() {
		if slices.Contains(g.Servers, address) {
			return g.Name
		}
	}
	return DefaultGroup
}

// GroupOfTable gives the group whose servers may host the table: where it was
// moved to, else what its descriptor says, else what its namespace says, else
// "default". A group that no longer exists counts as "default".
func (s *State) GroupOfTable(t *Table) string {
	for _, g := range []string{t.Group, attributeOr(t, GroupAttribute), s.namespaceSetting(t.Name.Namespace, GroupAttribute)} {
		if g != "" && s.HasGroup(g) {
			return g
		}
	}
	return DefaultGroup
}

func attributeOr(t *Table, name string) string {
	v, _ := t.Attribute(name)
	return v
}

func (s *State) namespaceSetting(ns, name string) string {
	if n := s.Namespace(ns); n != nil {
		return n.Setting(name)
	}
	return ""
}

// Snapshot gives the snapshot of that name, nil if there is none.
func (s *State) Snapshot(name string) *Snapshot {
	p, _ := s.snapshots.find(func(p *Snapshot) int { return strings.Compare(p.Description.GetName(), name) })
	return p
}

// Snapshots gives all snapshots by name.
func (s *State) Snapshots() iter.Seq[*Snapshot] { return s.snapshots.all() }

// Setting gives a stored setting ("" if unset): cluster id, switches, the
// addresses the servers had.
func (s *State) Setting(name string) string { return s.settings[name] }

// Settings gives the names and values of all settings.
func (s *State) Settings() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for k, v := range s.settings {
			if !yield(k, v) {
				return
			}
		}
	}
}

// SameBut says whether two pictures differ in nothing but regions and
// snapshots. It costs a few comparisons.
func (s *State) SameBut(o *State) bool {
	return s.tables.root == o.tables.root && s.namespaces.root == o.namespaces.root &&
		s.groups.root == o.groups.root && maps.Equal(s.settings, o.settings)
}
