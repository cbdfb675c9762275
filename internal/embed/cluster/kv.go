package cluster

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
)

// Prefixes of the store's catalog keys.
const (
	catalogPrefix = "c/"
	znodePrefix   = "z"
)

// catalogKV lets the catalog write to the store.
type catalogKV struct{ s *store.Store }

func (k catalogKV) Apply(changes []catalog.Change) error {
	kvs := make([]store.KV, len(changes))
	for i, c := range changes {
		kvs[i] = store.KV{Key: append([]byte(catalogPrefix), c.Key...), Value: c.Value, Delete: c.Delete}
	}
	return k.s.Apply(kvs)
}

func (k catalogKV) Iterate() iter.Seq2[catalog.Change, error] {
	return func(yield func(catalog.Change, error) bool) {
		var failed error
		for key, value := range k.s.Iterate([]byte(catalogPrefix), &failed) {
			if !yield(catalog.Change{Key: key[len(catalogPrefix):], Value: value}, nil) {
				return
			}
		}
		if failed != nil {
			yield(catalog.Change{}, failed)
		}
	}
}

// znodes keeps the persistent znodes of others in the store: HBase's own, below
// parent, are made anew at every start.
type znodes struct {
	s      *store.Store
	parent string
}

func (z *znodes) ours(path string) bool {
	return path == z.parent || strings.HasPrefix(path, z.parent+"/")
}

// Persist stores the changes of one write.
func (z *znodes) Persist(_ int64, changes []zkserver.Change) error {
	var kvs []store.KV
	for _, c := range changes {
		// The root changes with every start, by our own nodes; all it would
		// keep is its counter of children.
		if z.ours(c.Path) || c.Path == "/" {
			continue
		}
		kv := store.KV{Key: []byte(znodePrefix + c.Path), Delete: c.Node == nil}
		if c.Node != nil {
			b, err := json.Marshal(c.Node)
			if err != nil {
				return err
			}
			kv.Value = b
		}
		kvs = append(kvs, kv)
	}
	if len(kvs) == 0 {
		return nil
	}
	return z.s.Apply(kvs)
}

// restore reads what Persist has stored.
func (z *znodes) restore() ([]zkserver.Node, error) {
	var out []zkserver.Node
	var failed error
	for key, value := range z.s.Iterate([]byte(znodePrefix), &failed) {
		var n zkserver.Node
		if err := json.Unmarshal(value, &n); err != nil {
			return nil, err
		}
		if !z.ours(string(key[len(znodePrefix):])) {
			out = append(out, n)
		}
	}
	return out, failed
}
