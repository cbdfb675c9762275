package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// ProblemKind says what a problem is about.
type ProblemKind uint8

// The kinds of problems.
const (
	BadEntry    ProblemKind = iota // an entry that does not decode, or contradicts another
	BadRegions                     // regions of a table with a hole or overlap
	BadSnapshot                    // a snapshot that is not complete
	BadCounter                     // a counter behind a number in use
)

// Problem is something wrong with a stored catalog.
type Problem struct {
	Kind        ProblemKind
	Where, What string
}

// Inspect reads a stored catalog that may be damaged: what can be read of it,
// and everything that is wrong. The error is one of reading the KV.
func Inspect(kv KV) (*State, []Problem, error) {
	n := &inspector{}
	s, err := loadEach(checkedKV{kv, n}, func(key string, err error) error {
		n.find(BadEntry, cells.Quote([]byte(key)), "%v", err)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	n.s = s
	n.settings()
	n.ids()
	for t := range s.Tables() {
		n.table(t)
	}
	for r := range s.Regions() {
		if s.Table(r.Info.Table) == nil {
			n.find(BadRegions, r.Encoded, "region %s belongs to no table", cells.QuoteShort(r.Name, 200))
		}
	}
	for p := range s.Snapshots() {
		n.snapshot(p)
	}
	servers := map[string]string{}
	for g := range s.Groups() {
		for _, a := range g.Servers {
			if other, twice := servers[a]; twice {
				n.find(BadEntry, "group "+g.Name, "server %s is in group %s, too", a, other)
			}
			servers[a] = g.Name
		}
	}
	return s, n.problems, nil
}

type inspector struct {
	s        *State
	problems []Problem
}

func (n *inspector) find(kind ProblemKind, where, format string, args ...any) {
	n.problems = append(n.problems, Problem{kind, where, fmt.Sprintf(format, args...)})
}

// checkedKV looks, in passing, whether entries are what their keys say.
type checkedKV struct {
	KV
	n *inspector
}

func (k checkedKV) Iterate() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for e, err := range k.KV.Iterate() {
			if err == nil {
				k.n.entry(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (n *inspector) entry(e Change) {
	if len(e.Key) == 0 {
		n.find(BadEntry, "\"\"", "an entry without a key")
		return
	}
	key := string(e.Key)
	want := key
	switch key[:1] {
	case tablePrefix:
		if t, err := decodeTable(e.Value); err == nil {
			want = tableKey(t.Name)
		}
	case regionPrefix:
		if r, err := decodeRegion(e.Value); err == nil {
			want = regionKey(r)
		}
	case namespacePrefix:
		if ns, err := decodeNamespace(e.Value); err == nil {
			want = namespacePrefix + ns.Name
		}
	case groupPrefix:
		if g, err := decodeGroup(e.Value); err == nil {
			want = groupPrefix + g.Name
		}
	case snapshotPrefix:
		if p, err := decodeSnapshot(e.Value); err == nil {
			want = snapshotPrefix + p.Description.GetName()
		}
	case settingPrefix, awayPrefix, writtenPrefix:
	default:
		n.find(BadEntry, cells.Quote(e.Key), "an entry of no known kind")
	}
	if want != key {
		n.find(BadEntry, cells.Quote(e.Key), "the entry is that of %s", cells.Quote([]byte(want)))
	}
}

// settings looks at the numbers among the settings.
func (n *inspector) settings() {
	for name, value := range n.s.Settings() {
		if strings.HasPrefix(name, "counter.") {
			if _, err := strconv.ParseUint(value, 10, 64); err != nil {
				n.find(BadCounter, name, "%q is not a number", value)
			}
		}
	}
}

// ids looks at who owns which key space.
func (n *inspector) ids() {
	owners, last := map[uint32]string{}, n.s.Counter(counterTableID)
	own := func(id uint32, name string) {
		if other, twice := owners[id]; twice {
			n.find(BadEntry, name, "its table id %d is that of %s, too", id, other)
		}
		owners[id] = name
		if uint64(id) > last {
			n.find(BadCounter, counterTableID, "%s has table id %d, but the last one given is %d", name, id, last)
		}
	}
	for t := range n.s.Tables() {
		name := "table " + t.Name.String()
		switch system := t.Name.Namespace == meta.SystemNamespace && (&Catalog{}).Virtual(t.Name) != nil; {
		case system && !t.Virtual():
			n.find(BadEntry, name, "a rendered table has table id %d", t.ID)
		case !system && t.Virtual():
			n.find(BadEntry, name, "it has no table id")
		case !t.Virtual():
			own(t.ID, name)
		}
	}
	for p := range n.s.Snapshots() {
		name := "snapshot " + p.Description.GetName()
		if p.DataID == 0 {
			n.find(BadSnapshot, name, "it has no data")
			continue
		}
		own(p.DataID, name)
	}
}

func (n *inspector) table(t *Table) {
	name := "table " + t.Name.String()
	if n.s.Namespace(t.Name.Namespace) == nil {
		n.find(BadEntry, name, "its namespace does not exist")
	}
	if _, err := StoreSchema(t.Schema); err != nil {
		n.find(BadEntry, name, "its descriptor: %v", err)
	}
	if t.Name == meta.MetaTable {
		return // its region is made anew at every start
	}
	last := n.s.Counter(counterRegionID)
	var live []*Region
	for r := range n.s.RegionsOf(t.Name) {
		if r.Info.ID > last && t.Formula == nil {
			n.find(BadCounter, counterRegionID, "region %s of %s has id %d, but the last one given is %d", r.Encoded, name, r.Info.ID, last)
		}
		if r.Info.Split && (r.SplitA == nil || r.SplitB == nil) {
			n.find(BadRegions, name, "region %s was split, but into what is not said", r.Encoded)
		}
		if !r.Parent() {
			live = append(live, r)
		}
	}
	slices.SortStableFunc(live, func(a, b *Region) int {
		return cmp.Or(bytes.Compare(a.Info.Start, b.Info.Start), cmp.Compare(a.Info.ID, b.Info.ID))
	})
	if len(live) == 0 {
		n.find(BadRegions, name, "it has no region")
		return
	}
	end := []byte{}
	for i, r := range live {
		c := bytes.Compare(end, r.Info.Start)
		if i > 0 && len(end) == 0 {
			c = 1 // the one before reaches to the end
		}
		switch {
		case c < 0:
			n.find(BadRegions, name, "a hole from %s to %s, where region %s begins", cells.Quote(end), cells.Quote(r.Info.Start), r.Encoded)
		case c > 0:
			n.find(BadRegions, name, "region %s begins at %s, before the one before it ends at %s", r.Encoded, cells.Quote(r.Info.Start), cells.Quote(end))
		}
		end = r.Info.End
	}
	if len(end) != 0 {
		n.find(BadRegions, name, "a hole from %s to the end", cells.Quote(end))
	}
}

func (n *inspector) snapshot(p *Snapshot) {
	name := "snapshot " + p.Description.GetName()
	if p.Description.GetTable() == "" {
		n.find(BadSnapshot, name, "it does not say of which table it is")
	}
	if _, err := StoreSchema(p.Schema); err != nil {
		n.find(BadSnapshot, name, "its descriptor: %v", err)
	}
	if len(p.Schema.GetColumnFamilies()) == 0 {
		n.find(BadSnapshot, name, "its descriptor has no families")
	}
	if len(p.Starts) == 0 || len(p.Starts[0]) != 0 {
		n.find(BadSnapshot, name, "no region begins at the beginning")
	}
	for i := 1; i < len(p.Starts); i++ {
		if bytes.Compare(p.Starts[i-1], p.Starts[i]) >= 0 {
			n.find(BadSnapshot, name, "region %d begins at %s, not behind %s", i, cells.Quote(p.Starts[i]), cells.Quote(p.Starts[i-1]))
		}
	}
}
