package cluster

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/master"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Fsck checks the directory of a cluster that does not run: see store.Check.
// progress may be nil.
func Fsck(ctx context.Context, dir string, progress func(cells int64, part float64)) (*store.Report, error) {
	return store.Check(ctx, store.CheckOptions{Dir: dir, Catalog: inspect, Progress: progress})
}

// inspect looks at the pairs of the store's catalog space: the catalog's own,
// and znodes.
func inspect(r *store.Report, pairs iter.Seq2[[]byte, []byte]) map[uint32]store.Owner {
	s, problems, err := catalog.Inspect(storedPairs{r, pairs})
	if err != nil {
		r.Find(store.FindCatalog, "catalog", err.Error())
		return nil
	}
	kinds := map[catalog.ProblemKind]string{catalog.BadEntry: store.FindCatalog, catalog.BadRegions: store.FindRegion,
		catalog.BadSnapshot: store.FindSnapshot, catalog.BadCounter: store.FindCounter}
	for _, p := range problems {
		r.Find(kinds[p.Kind], p.Where, p.Where+": "+p.What)
	}
	owners := map[uint32]store.Owner{}
	own := func(id uint32, name string, schema *pb.TableSchema) {
		o := store.Owner{Name: name, Families: map[string]bool{}}
		for _, f := range schema.GetColumnFamilies() {
			o.Families[string(f.GetName())] = true
		}
		owners[id] = o
	}
	for t := range s.Tables() {
		r.Tables++
		if !t.Virtual() {
			own(t.ID, "table "+t.Name.String(), t.Schema)
		}
	}
	r.Regions = s.RegionCount()
	for p := range s.Snapshots() {
		r.Snapshots++
		own(p.DataID, "snapshot "+p.Description.GetName(), p.Schema)
	}
	for name, value := range s.Settings() {
		if text, ok := strings.CutPrefix(name, master.DropFamiliesPrefix); ok {
			id, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				r.Find(store.FindCatalog, name, name+": not a table id")
			} else if o, ok := owners[uint32(id)]; ok {
				o.FamiliesLeaving = map[string]bool{}
				for f := range strings.SplitSeq(value, "\x00") {
					o.FamiliesLeaving[f] = true
				}
				owners[uint32(id)] = o
			}
			continue
		}
		text, ok := strings.CutPrefix(name, master.DropPrefix)
		if !ok {
			continue
		}
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			r.Find(store.FindCatalog, name, name+": not a table id")
			continue
		}
		if o, used := owners[uint32(id)]; used {
			r.Find(store.FindSnapshot, o.Name, o.Name+": its data is marked as incomplete")
			continue
		}
		owners[uint32(id)] = store.Owner{Name: "table id " + text, Leaving: true}
	}
	return owners
}

// storedPairs is the catalog's part of the pairs; the others are looked at in
// passing.
type storedPairs struct {
	r     *store.Report
	pairs iter.Seq2[[]byte, []byte]
}

// Apply is never called: nothing is changed.
func (storedPairs) Apply([]catalog.Change) error { return nil }

func (p storedPairs) Iterate() iter.Seq2[catalog.Change, error] {
	return func(yield func(catalog.Change, error) bool) {
		for key, value := range p.pairs {
			name, ok := strings.CutPrefix(string(key), catalogPrefix)
			switch {
			case ok:
				if !yield(catalog.Change{Key: []byte(name), Value: value}, nil) {
					return
				}
			case strings.HasPrefix(string(key), znodePrefix):
				var n zkserver.Node
				path := strings.TrimPrefix(string(key), znodePrefix)
				if err := json.Unmarshal(value, &n); err != nil {
					p.r.Find(store.FindZNode, path, path+": "+err.Error())
				} else if n.Path != path || !strings.HasPrefix(path, "/") {
					p.r.Find(store.FindZNode, path, path+": the entry is that of "+n.Path)
				}
			default:
				p.r.Find(store.FindCatalog, cells.QuoteShort(key, 64), "an entry of no known kind")
			}
		}
	}
}
