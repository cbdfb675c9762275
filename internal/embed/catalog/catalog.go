package catalog

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Change is one durable change: a key set, or taken away when Delete is true.
type Change struct {
	Key, Value []byte
	Delete     bool
}

// KV is the part of the store the catalog writes to: an ordered map of bytes.
type KV interface {
	// Apply makes all changes durable, or none of them.
	Apply([]Change) error
	// Iterate gives all keys and values in key order, and an error last if
	// reading failed. Slices are valid only until the next step.
	Iterate() iter.Seq2[Change, error]
}

// Catalog holds the current State and changes it. Safe for concurrent use.
type Catalog struct {
	kv  KV
	now func() int64

	mu      sync.Mutex // held during an Update
	failed  error      // set when a write failed: what is durable is unknown
	state   atomic.Pointer[State]
	liar    atomic.Pointer[Liar] // nil as long as hbase:meta tells the truth
	changed chan struct{}        // closed and replaced at every publication; guarded by mu
}

// ErrBroken is wrapped by every Update after one whose durable write failed:
// from then on nobody knows what a restart would find, so nothing more is
// accepted.
var ErrBroken = errors.New("catalog: an earlier write failed")

// Open loads the catalog. now gives the wall clock in milliseconds.
func Open(kv KV, now func() int64) (*Catalog, error) {
	c := &Catalog{kv: kv, now: now, changed: make(chan struct{})}
	s, err := load(kv)
	if err != nil {
		return nil, fmt.Errorf("catalog: load: %w", err)
	}
	c.state.Store(s)
	return c, nil
}

// State gives the current picture. It costs one atomic load.
func (c *Catalog) State() *State { return c.state.Load() }

// Changed gives the current picture and a channel that is closed when the next
// one is published.
func (c *Catalog) Changed() (*State, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.State(), c.changed
}

// Update runs f on a transaction and, if f gives no error, makes its durable
// changes so and then publishes all of them at once. Updates run one at a
// time; f must not call Update and should not wait for anything.
func (c *Catalog) Update(f func(*Tx) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return c.failed
	}
	tx := &Tx{State: *c.State(), now: c.now()}
	if err := f(tx); err != nil {
		return err
	}
	if len(tx.changes) > 0 {
		if err := c.kv.Apply(tx.changes); err != nil {
			c.failed = fmt.Errorf("%w: %w", ErrBroken, err)
			return c.failed
		}
	}
	s := tx.State
	c.state.Store(&s)
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// Tx is a picture being changed. Its State methods see the changes made so
// far. It must not be kept after the function it was given to has returned.
type Tx struct {
	State
	now     int64
	changes []Change
	counted bool // held is this transaction's own copy
	// owned and pages are the generated tables, and the pages of theirs, that
	// this transaction has copied and may change.
	owned map[string]*generated
	pages map[*page]bool
}

// count adds n to the regions of the server that holds r.
func (tx *Tx) count(r *Region, n int) {
	if r != nil && !r.Parent() {
		tx.hold(r.Target, n)
	}
}

// hold adds n to the regions of a server.
func (tx *Tx) hold(server meta.ServerName, n int) {
	if server.IsZero() || n == 0 {
		return
	}
	if !tx.counted {
		held := make(map[meta.ServerName]int, len(tx.held)+1)
		maps.Copy(held, tx.held)
		tx.held, tx.counted = held, true
	}
	if tx.held[server] += n; tx.held[server] == 0 {
		delete(tx.held, server)
	}
}

// Now is the time of the transaction, in milliseconds.
func (tx *Tx) Now() int64 { return tx.now }

func (tx *Tx) set(key string, value []byte) {
	tx.changes = append(tx.changes, Change{Key: []byte(key), Value: value})
}

func (tx *Tx) drop(key string) {
	tx.changes = append(tx.changes, Change{Key: []byte(key), Delete: true})
}

// PutTable adds or replaces a table.
func (tx *Tx) PutTable(t *Table) {
	tx.tables = tx.tables.set(t)
	tx.set(tableKey(t.Name), encodeTable(t))
	if t.Formula != nil && tx.generatedOf(t.Name) == nil {
		tx.generated = tx.generated.set(newGenerated(t))
	}
}

// DeleteTable takes a table away, but not its regions, except those that were
// generated.
func (tx *Tx) DeleteTable(t *Table) {
	tx.dropGenerated(t.Name)
	tx.tables = tx.tables.remove(t)
	tx.drop(tableKey(t.Name))
}

// PutRegion adds or replaces a region. Changes of the assignment alone are
// published but not written to the store.
func (tx *Tx) PutRegion(r *Region) {
	if g, i := tx.slotOf(&r.Info); g != nil && !has(g.away, i) {
		if tx.putSlot(g, i, r) {
			return
		}
		tx.hold(g.servers[g.slot(i).target], -1)
		tx.sendAway(g, i)
	}
	old := tx.same(r)
	tx.count(old, -1)
	tx.count(r, 1)
	tx.nameReplicas(old, r)
	if r.Info.Table == meta.MetaTable {
		tx.meta = r
		return
	}
	tx.regions = tx.regions.set(r)
	tx.encoded = tx.encoded.set(r)
	if old == nil || durablyDifferent(old, r) {
		tx.set(regionKey(r), encodeRegion(r))
	}
}

// same gives what the catalog has of a region. It asks by the full name: an
// encoded one that is new would be looked for among all generated regions, for
// which their names have to be reckoned first, a second's work for a million.
func (tx *Tx) same(r *Region) *Region {
	if r.Info.Table == meta.MetaTable {
		return tx.meta
	}
	return tx.RegionNamed(r.Name)
}

// DeleteRegion takes a region away.
func (tx *Tx) DeleteRegion(r *Region) {
	if g, i := tx.slotOf(&r.Info); g != nil && !has(g.away, i) {
		tx.hold(g.servers[g.slot(i).target], -1)
		tx.sendAway(g, i)
		return
	}
	old := tx.same(r)
	tx.count(old, -1)
	tx.nameReplicas(old, nil)
	tx.regions = tx.regions.remove(r)
	tx.encoded = tx.encoded.remove(r)
	tx.drop(regionKey(r))
}

// DeleteRegionsOf takes all regions of a table away; those of a generated table
// go with the table itself.
func (tx *Tx) DeleteRegionsOf(name meta.TableName) {
	for _, r := range slices.Collect(tx.ordinaryOf(name)) {
		tx.DeleteRegion(r)
	}
}

// PutNamespace adds or replaces a namespace.
func (tx *Tx) PutNamespace(n *Namespace) {
	tx.namespaces = tx.namespaces.set(n)
	tx.set(namespacePrefix+n.Name, encodeNamespace(n))
}

// DeleteNamespace takes a namespace away.
func (tx *Tx) DeleteNamespace(name string) {
	tx.namespaces = tx.namespaces.remove(&Namespace{Name: name})
	tx.drop(namespacePrefix + name)
}

// PutGroup adds or replaces a group.
func (tx *Tx) PutGroup(g *Group) {
	tx.groups = tx.groups.set(g)
	tx.set(groupPrefix+g.Name, encodeGroup(g))
}

// DeleteGroup takes a group away.
func (tx *Tx) DeleteGroup(name string) {
	tx.groups = tx.groups.remove(&Group{Name: name})
	tx.drop(groupPrefix + name)
}

// PutSnapshot adds or replaces a snapshot.
func (tx *Tx) PutSnapshot(p *Snapshot) {
	tx.snapshots = tx.snapshots.set(p)
	tx.set(snapshotPrefix+p.Description.GetName(), encodeSnapshot(p))
}

// DeleteSnapshot takes a snapshot away.
func (tx *Tx) DeleteSnapshot(p *Snapshot) {
	tx.snapshots = tx.snapshots.remove(p)
	tx.drop(snapshotPrefix + p.Description.GetName())
}

// SetSetting stores a setting; an empty value removes it.
func (tx *Tx) SetSetting(name, value string) {
	if tx.settings[name] == value {
		return
	}
	m := maps.Clone(tx.settings)
	if m == nil {
		m = map[string]string{}
	}
	if value == "" {
		delete(m, name)
		tx.drop(settingPrefix + name)
	} else {
		m[name] = value
		tx.set(settingPrefix+name, []byte(value))
	}
	tx.settings = m
}

// Counter gives the value of a counter setting, 0 if unset.
func (s *State) Counter(name string) uint64 {
	n, err := strconv.ParseUint(s.Setting(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// SetCounter stores a counter setting.
func (tx *Tx) SetCounter(name string, n uint64) { tx.SetSetting(name, strconv.FormatUint(n, 10)) }

// Names of counter settings.
const (
	counterTableID  = "counter.table"
	counterRegionID = "counter.region"
)

// NextTableID gives a key space number never used before.
func (tx *Tx) NextTableID() uint32 {
	n := tx.Counter(counterTableID) + 1
	tx.SetCounter(counterTableID, n)
	return uint32(n)
}

// NextRegionID gives a region id: the time in milliseconds, but larger than
// every id given before, so that of two regions of one start key the newer one
// always sorts last, whatever the clock does.
func (tx *Tx) NextRegionID() uint64 {
	n := max(uint64(tx.now), tx.Counter(counterRegionID)+1)
	tx.SetCounter(counterRegionID, n)
	return n
}
