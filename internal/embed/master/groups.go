package master

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func constraint(format string, a ...any) error { return refuse(wire.ClassConstraint, format, a...) }

// liveAddresses gives the addresses of the live servers.
func (m *Master) liveAddresses() []string {
	var out []string
	for _, rs := range m.cfg.Servers.Live() {
		out = append(out, rs.Name().Address())
	}
	return out
}

func (m *Master) draining(s *catalog.State) []string {
	return strings.Fields(s.Setting(settingDraining))
}

// AddGroup makes an empty group.
func (m *Master) AddGroup(ctx context.Context, name string) error {
	if name == "" || strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) >= 0 {
		return constraint("RSGroup name should only contain alphanumeric characters")
	}
	var table *catalog.Region
	err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		if tx.HasGroup(name) {
			return refuse(wire.ClassDoNotRetryIO, "Group already exists: %s", name)
		}
		table, _ = catalog.AddRSGroupTable(tx)
		tx.PutGroup(&catalog.Group{Name: name, Time: tx.Now()})
		return nil
	})
	if err != nil {
		return err
	}
	m.event(eventlog.Event{Method: "add-group", Detail: name})
	if table != nil {
		return m.Assign(ctx, table.Encoded)
	}
	return nil
}

// RemoveGroup removes an empty group.
func (m *Master) RemoveGroup(name string) error {
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		g := tx.Group(name)
		if name == catalog.DefaultGroup {
			// Which always has tables, and so is never removed.
			g = &catalog.Group{Name: name}
		}
		if g == nil {
			return constraint("RSGroup %s does not exist", name)
		}
		if n := len(tx.TablesOfGroup(name)); n > 0 {
			return constraint("RSGroup %s has %d tables; you must remove these tables from the rsgroup before the rsgroup can be removed.", name, n)
		}
		if n := len(g.Servers); n > 0 {
			return constraint("RSGroup %s has %d servers; you must remove these servers from the RSGroup before the RSGroup can be removed.", name, n)
		}
		for n := range tx.Namespaces() {
			if n.Setting(catalog.GroupAttribute) == name {
				return constraint("RSGroup %s is referenced by namespace: %s", name, n.Name)
			}
		}
		tx.DeleteGroup(name)
		return nil
	})
}

// MoveToGroup moves servers and tables to a group, and then the regions that
// are no longer where they belong. Either list may be empty, not both.
func (m *Master) MoveToGroup(ctx context.Context, target string, servers []string, tables []meta.TableName) error {
	live := m.liveAddresses()
	err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		if !tx.HasGroup(target) {
			if len(servers) == 0 {
				return constraint("Target %s RSGroup does not exist.", target)
			}
			return constraint("RSGroup does not exist: %s", target)
		}
		if err := moveServers(tx, target, servers, tables, live); err != nil {
			return err
		}
		return moveTables(tx, target, tables, live)
	})
	if err != nil {
		return err
	}
	m.event(eventlog.Event{Method: "move-group", Detail: target + ": " + strings.Join(servers, " ")})
	return m.settleAll(ctx)
}

// moveServers moves servers to a group, and with them go tables.
func moveServers(tx *catalog.Tx, target string, servers []string, tables []meta.TableName, live []string) error {
	if len(servers) == 0 {
		return nil
	}
	source := tx.GroupOfServer(servers[0])
	for _, a := range servers {
		g := tx.GroupOfServer(a)
		if g != source {
			return constraint("Move server request should only come from one source RSGroup. Expecting only %s but contains %s", source, g)
		}
		if g == catalog.DefaultGroup && !slices.Contains(live, a) {
			return constraint("Server %s is either offline or it does not exist.", a)
		}
	}
	if source == target {
		return constraint("Target RSGroup %s is same as source RSGroup", target)
	}
	left := slices.DeleteFunc(serversOf(&tx.State, source, live), func(a string) bool { return slices.Contains(servers, a) })
	switch {
	case len(left) > 0:
	case source == catalog.DefaultGroup:
		return constraint("default RSGroup should keep at least one server")
	case slices.ContainsFunc(tx.TablesOfGroup(source), func(n meta.TableName) bool { return !slices.Contains(tables, n) }):
		return constraint("Cannot leave a RSGroup %s that contains tables without servers to host them.", source)
	}
	if g := tx.Group(source); g != nil {
		c := *g
		c.Servers = slices.DeleteFunc(slices.Clone(g.Servers), func(a string) bool { return slices.Contains(servers, a) })
		c.Time = tx.Now()
		tx.PutGroup(&c)
	}
	if g := tx.Group(target); g != nil {
		c := *g
		c.Servers = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(g.Servers), servers...))))
		c.Time = tx.Now()
		tx.PutGroup(&c)
	}
	return nil
}

func serversOf(s *catalog.State, group string, live []string) []string {
	if g := s.Group(group); g != nil {
		return slices.Clone(g.Servers)
	}
	return slices.DeleteFunc(slices.Clone(live), func(a string) bool { return s.GroupOfServer(a) != catalog.DefaultGroup })
}

func moveTables(tx *catalog.Tx, target string, tables []meta.TableName, live []string) error {
	if len(tables) == 0 {
		return nil
	}
	if len(serversOf(&tx.State, target, live)) == 0 {
		return constraint("Target RSGroup must have at least one server.")
	}
	for _, n := range tables {
		t := tx.Table(n)
		if t == nil {
			return tableNotFound(n)
		}
		c := *t
		c.Group = target
		tx.PutTable(&c)
	}
	return nil
}

// settle moves those of a table's open regions that lie on a server which may
// not host them. The caller holds the table's lock exclusively.
func (m *Master) settle(ctx context.Context, name meta.TableName) error {
	s := m.state()
	t := s.Table(name)
	if t == nil {
		return nil
	}
	servers := m.eligible(s, t)
	if len(servers) == 0 {
		return nil
	}
	// Where a region stays closed for a while they move side by side, as many
	// as HBase's master has workers for procedures.
	workers := 1
	if m.cfg.Controls.transitionGap() > 0 {
		workers = transitionWorkers
	}
	var (
		mu    sync.Mutex
		errs  []error
		limit = make(chan struct{}, workers)
		wg    sync.WaitGroup
		bound = map[meta.ServerName]int{} // on their way, and not yet counted
	)
	for r := range s.Select(name, func(r *catalog.Region) bool {
		return r.State == pb.RegionState_OPEN && !slices.ContainsFunc(servers, func(rs host.RegionServer) bool { return rs.Name() == r.Server })
	}) {
		limit <- struct{}{}
		mu.Lock()
		now := m.state()
		dst := slices.MinFunc(servers, func(a, b host.RegionServer) int {
			return now.Held(a.Name()) + bound[a.Name()] - now.Held(b.Name()) - bound[b.Name()]
		})
		bound[dst.Name()]++
		mu.Unlock()
		move := func() {
			err := m.move(ctx, t, r, dst)
			mu.Lock()
			defer mu.Unlock()
			bound[dst.Name()]--
			if err != nil {
				errs = append(errs, err)
			}
			<-limit
		}
		if workers == 1 {
			move()
			continue
		}
		wg.Go(move)
	}
	wg.Wait()
	return errors.Join(errs...)
}

// transitionWorkers is how many regions of one table move at once
// (hbase.master.procedure.threads).
const transitionWorkers = 16

// settleAll settles every table.
func (m *Master) settleAll(ctx context.Context) error {
	var errs []error
	for t := range m.state().Tables() {
		unlock, err := m.lockTable(ctx, t.Name.String(), true)
		if err != nil {
			return err
		}
		if err := m.settle(ctx, t.Name); err != nil {
			errs = append(errs, err)
		}
		unlock()
	}
	return errors.Join(append(errs, m.settleAllReplicas(ctx))...)
}

// removeServers takes addresses of servers that are gone out of their groups.
func (m *Master) removeServers(addresses []string) error {
	if len(addresses) == 0 {
		return constraint("The set of servers to remove cannot be null or empty.")
	}
	live := m.liveAddresses()
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		for _, a := range addresses {
			if slices.Contains(live, a) {
				return constraint("Server %s is an online server, not allowed to remove.", a)
			}
			if tx.GroupOfServer(a) == catalog.DefaultGroup {
				return constraint("Server %s is not part of any RSGroup but default", a)
			}
		}
		for _, g := range slices.Collect(tx.Groups()) {
			c := *g
			c.Servers = slices.DeleteFunc(slices.Clone(g.Servers), func(a string) bool { return slices.Contains(addresses, a) })
			if len(c.Servers) != len(g.Servers) {
				c.Time = tx.Now()
				tx.PutGroup(&c)
			}
		}
		return nil
	})
}

func (m *Master) renameGroup(from, to string) error {
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		g := tx.Group(from)
		switch {
		case from == catalog.DefaultGroup:
			return constraint("Can't rename default rsgroup")
		case g == nil:
			return constraint("RSGroup %s does not exist", from)
		case tx.HasGroup(to):
			return constraint("Group already exists: %s", to)
		}
		tables := tx.TablesOfGroup(from)
		for n := range tx.Namespaces() {
			if n.Setting(catalog.GroupAttribute) == from {
				c := *n
				c.Config = replacePair(n.Config, catalog.GroupAttribute, to)
				c.Time = tx.Now()
				tx.PutNamespace(&c)
			}
		}
		c := *g
		c.Name, c.Time = to, tx.Now()
		tx.DeleteGroup(from)
		tx.PutGroup(&c)
		for _, n := range tables {
			t := *tx.Table(n)
			if v, ok := t.Attribute(catalog.GroupAttribute); ok && v == from {
				schema := catalog.WithoutFamily(t.Schema, nil)
				schema.Attributes = catalog.SetAttribute(schema.Attributes, catalog.GroupAttribute, to)
				t.Schema = schema
			}
			t.Group = to
			tx.PutTable(&t)
		}
		return nil
	})
}

func replacePair(list []*pb.NameStringPair, name, value string) []*pb.NameStringPair {
	out := slices.DeleteFunc(slices.Clone(list), func(p *pb.NameStringPair) bool { return p.GetName() == name })
	return append(out, &pb.NameStringPair{Name: new(name), Value: new(value)})
}

func (m *Master) configureGroup(name string, config []*pb.NameStringPair) error {
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		g := tx.Group(name)
		if g == nil {
			if name == catalog.DefaultGroup {
				return constraint("configuration of the default RSGroup can't be stored")
			}
			return constraint("RSGroup does not exist: %s", name)
		}
		c := *g
		c.Config, c.Time = config, tx.Now()
		tx.PutGroup(&c)
		return nil
	})
}

// addressesOf reads servers as requests name them: host and port.
func addressesOf(list []*pb.ServerName) []string {
	var out []string
	for _, p := range list {
		s := meta.ServerFromProto(p)
		out = append(out, s.Address())
	}
	return out
}

func tablesOf(list []*pb.TableName) []meta.TableName {
	var out []meta.TableName
	for _, p := range list {
		out = append(out, meta.TableFromProto(p))
	}
	return out
}
