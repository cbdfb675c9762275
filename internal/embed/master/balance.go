package master

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// BalanceResult is what a run of the balancer did.
type BalanceResult struct {
	// Ran is false if the balancer is off, or regions were in transition and
	// that was not to be ignored.
	Ran bool
	// Planned moves, and those carried out.
	Planned, Done int
}

// transfer is one planned move.
type transfer struct {
	region string
	to     meta.ServerName
}

// Balance evens out the number of regions per server within every group (or
// the one named), moving regions of the tables that are most uneven first.
func (m *Master) Balance(ctx context.Context, group string, ignoreTransition, dryRun bool) (BalanceResult, error) {
	s := m.state()
	if !m.isOn(settingBalancerOff) {
		return BalanceResult{}, nil
	}
	if !ignoreTransition {
		if anyRegion(s, meta.TableName{}, (*catalog.Region).InTransition) {
			return BalanceResult{}, nil
		}
	}
	groups := []string{group}
	if group == "" {
		groups = []string{catalog.DefaultGroup}
		for g := range s.Groups() {
			groups = append(groups, g.Name)
		}
	}
	if !dryRun {
		if err := m.settleAllReplicas(ctx); err != nil {
			return BalanceResult{}, err
		}
	}
	out := BalanceResult{Ran: true}
	for _, g := range groups {
		plan := m.plan(s, g)
		if m.cfg.BalancerLog && !dryRun {
			m.noteBalance(s, g, plan)
		}
		for _, t := range plan {
			out.Planned++
			if dryRun {
				continue
			}
			if err := m.Move(ctx, t.region, t.to); err != nil {
				if ctx.Err() != nil {
					return out, ctx.Err()
				}
				// The region has changed since the plan was made.
				continue
			}
			out.Done++
		}
	}
	return out, nil
}

// plan finds moves that even out the regions of one group's tables over its
// servers: first each table by itself, then the whole.
func (m *Master) plan(s *catalog.State, group string) []transfer {
	draining := m.draining(s)
	var servers []meta.ServerName
	for _, rs := range m.cfg.Servers.Live() {
		if a := rs.Name().Address(); rs.Alive() && s.GroupOfServer(a) == group && !slices.Contains(draining, a) {
			servers = append(servers, rs.Name())
		}
	}
	if len(servers) < 2 {
		return nil
	}
	// Numbers of regions by server and table, so that a move costs as many steps
	// as there are servers and tables, however many regions there are.
	count := map[meta.ServerName]int{}
	held := map[meta.ServerName]map[meta.TableName]int{}
	for _, n := range servers {
		held[n] = map[meta.TableName]int{}
	}
	inGroup := map[meta.TableName]bool{}
	for t := range s.Tables() {
		inGroup[t.Name] = s.GroupOfTable(t) == group
	}
	movable := func(r *catalog.Region) bool {
		return r.State == pb.RegionState_OPEN && held[r.Server] != nil && inGroup[r.Info.Table]
	}
	var tables []meta.TableName
	seen := map[meta.TableName]bool{}
	for range s.Select(meta.TableName{}, func(r *catalog.Region) bool {
		if movable(r) {
			if !seen[r.Info.Table] {
				seen[r.Info.Table] = true
				tables = append(tables, r.Info.Table)
			}
			held[r.Server][r.Info.Table]++
			count[r.Server]++
		}
		return false
	}) {
	}
	// What is to leave a server, by table: the servers to go to.
	leaving := map[meta.ServerName]map[meta.TableName][]meta.ServerName{}
	planned := 0
	for {
		most := slices.MaxFunc(servers, func(a, b meta.ServerName) int { return cmp.Compare(count[a], count[b]) })
		least := slices.MinFunc(servers, func(a, b meta.ServerName) int { return cmp.Compare(count[a], count[b]) })
		if count[most]-count[least] < 2 {
			break
		}
		// Of the fuller server's regions, one of the table that is most uneven
		// between the two; hbase:meta last.
		table := slices.MaxFunc(tables, func(a, b meta.TableName) int {
			uneven := func(t meta.TableName) int {
				n := held[most][t]
				switch {
				case n == 0:
					return -2 << 30
				case t == meta.MetaTable:
					return -1 << 30
				}
				return n - held[least][t]
			}
			return cmp.Compare(uneven(a), uneven(b))
		})
		held[most][table]--
		held[least][table]++
		count[most]--
		count[least]++
		if leaving[most] == nil {
			leaving[most] = map[meta.TableName][]meta.ServerName{}
		}
		leaving[most][table] = append(leaving[most][table], least)
		planned++
	}
	out := make([]transfer, 0, planned)
	var to meta.ServerName
	for r := range s.Select(meta.TableName{}, func(r *catalog.Region) bool {
		if !movable(r) {
			return false
		}
		list := leaving[r.Server][r.Info.Table]
		if len(list) == 0 {
			return false
		}
		to = list[0]
		leaving[r.Server][r.Info.Table] = list[1:]
		return true
	}) {
		out = append(out, transfer{r.Encoded, to})
	}
	return out
}

// decommission marks servers so that no region is opened on them, and with
// offload moves what they hold away.
func (m *Master) decommission(ctx context.Context, addresses []string, offload bool) error {
	if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		all := append(m.draining(&tx.State), addresses...)
		tx.SetSetting(settingDraining, strings.Join(slices.Compact(slices.Sorted(slices.Values(all))), "\n"))
		return nil
	}); err != nil {
		return err
	}
	if offload {
		return m.settleAll(ctx)
	}
	return nil
}

func (m *Master) recommission(address string) error {
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		left := slices.DeleteFunc(m.draining(&tx.State), func(a string) bool { return a == address })
		tx.SetSetting(settingDraining, strings.Join(left, "\n"))
		return nil
	})
}

// Drain moves every region off a server before it is stopped. Regions that
// have nowhere to go stay.
func (m *Master) Drain(ctx context.Context, rs host.RegionServer) {
	name := rs.Name()
	for r := range m.state().Select(meta.TableName{}, func(r *catalog.Region) bool { return r.Server == name && r.State == pb.RegionState_OPEN }) {
		if err := m.Move(ctx, r.Encoded, meta.ServerName{}); err != nil {
			m.log.Warn("region stays on a server that stops", "region", r.Encoded, "server", name.String(), "err", err)
		}
	}
	if err := m.settleAllReplicas(ctx); err != nil {
		m.log.Warn("replicas stay on a server that stops", "server", name.String(), "err", err)
	}
}

// RenameDraining lets the list of decommissioned servers follow servers whose
// address has changed.
func RenameDraining(tx *catalog.Tx, rename func([]string) ([]string, bool)) {
	if list, changed := rename(strings.Fields(tx.Setting(settingDraining))); changed {
		tx.SetSetting(settingDraining, strings.Join(list, "\n"))
	}
}
