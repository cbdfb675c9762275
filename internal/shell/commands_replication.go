package shell

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func replicationCommands() []command {
	const group = "replication"
	return []command{
		{"add_peer", group, "add_peer '1', CLUSTER_KEY => 'zk1,zk2,zk3:2181:/hbase'\nadd_peer '2', CLUSTER_KEY => 'zk1:2181:/hbase', NAMESPACES => ['ns'], TABLE_CFS => {'t' => ['f'], 'u' => []}, STATE => 'DISABLED', SERIAL => true\nadd_peer '3', ENDPOINT_CLASSNAME => 'org.example.Endpoint', DATA => {'k' => 'v'}, CONFIG => {'c' => 'v'}",
			"Add a cluster to replicate to. With NAMESPACES or TABLE_CFS only those are replicated.", runAddPeer},
		{"remove_peer", group, "remove_peer '1'", "Remove a peer and what waits for it.", onPeer((*admin.Admin).RemovePeer)},
		{"enable_peer", group, "enable_peer '1'", "Replicate to a peer; what was held back follows.", onPeer((*admin.Admin).EnablePeer)},
		{"disable_peer", group, "disable_peer '1'", "Hold back what goes to a peer.", onPeer((*admin.Admin).DisablePeer)},
		{"list_peers", group, "list_peers", "List the peers. ! marks lists of what is not replicated.", runListPeers},
		{"get_peer_config", group, "get_peer_config '1'", "Print a peer's cluster key, endpoint class and settings.", runPeerConfig},
		{"list_peer_configs", group, "list_peer_configs", "Print all peers as get_peer_config does.", runPeerConfigs},
		{"update_peer_config", group, "update_peer_config '1', CONFIG => {'c' => 'v'}, DATA => {'k' => 'v'}", "Change a peer's settings or data; what is not named stays.", runUpdatePeer},
		{"show_peer_tableCFs", group, "show_peer_tableCFs '1'", "Print which families of which tables are replicated to a peer.", runShowTableCFs},
		{"set_peer_tableCFs", group, "set_peer_tableCFs '1', {'t' => ['f'], 'ns:u' => []}", "Say which families of which tables are replicated; [] means all of the table.",
			tableCFsOf(func(c *admin.PeerConfig, t admin.TableCFs) error { c.TableCFs = t; return nil })},
		{"append_peer_tableCFs", group, "append_peer_tableCFs '1', {'t' => ['f']}", "Add to what is replicated.",
			tableCFsOf(func(c *admin.PeerConfig, t admin.TableCFs) error { return c.TableCFs.Append(t) })},
		{"remove_peer_tableCFs", group, "remove_peer_tableCFs '1', {'t' => ['f']}", "Take away from what is replicated.",
			tableCFsOf(func(c *admin.PeerConfig, t admin.TableCFs) error { return c.TableCFs.Remove(t) })},
		{"set_peer_exclude_tableCFs", group, "set_peer_exclude_tableCFs '1', {'t' => ['f']}", "Say what is not replicated to a peer that gets everything else.",
			tableCFsOf(func(c *admin.PeerConfig, t admin.TableCFs) error { c.ExcludeTableCFs = t; return nil })},
		{"append_peer_exclude_tableCFs", group, "append_peer_exclude_tableCFs '1', {'t' => ['f']}", "Add to what is not replicated.",
			tableCFsOf(func(c *admin.PeerConfig, t admin.TableCFs) error { return c.ExcludeTableCFs.Append(t) })},
		{"remove_peer_exclude_tableCFs", group, "remove_peer_exclude_tableCFs '1', {'t' => ['f']}", "Take away from what is not replicated.",
			tableCFsOf(func(c *admin.PeerConfig, t admin.TableCFs) error { return c.ExcludeTableCFs.Remove(t) })},
		{"set_peer_namespaces", group, "set_peer_namespaces '1', ['ns1', 'ns2']", "Say whose tables are replicated.",
			namespacesOf(func(c *admin.PeerConfig, ns []string) { c.Namespaces = ns })},
		{"append_peer_namespaces", group, "append_peer_namespaces '1', ['ns3']", "Add namespaces to be replicated.",
			namespacesOf(func(c *admin.PeerConfig, ns []string) { c.Namespaces = union(c.Namespaces, ns) })},
		{"remove_peer_namespaces", group, "remove_peer_namespaces '1', ['ns3']", "Take namespaces away.",
			namespacesOf(func(c *admin.PeerConfig, ns []string) { c.Namespaces = without(c.Namespaces, ns) })},
		{"set_peer_exclude_namespaces", group, "set_peer_exclude_namespaces '1', ['ns1']", "Say whose tables are not replicated to a peer that gets everything else.",
			namespacesOf(func(c *admin.PeerConfig, ns []string) { c.ExcludeNamespaces = ns })},
		{"append_peer_exclude_namespaces", group, "append_peer_exclude_namespaces '1', ['ns2']", "Add namespaces not to be replicated.",
			namespacesOf(func(c *admin.PeerConfig, ns []string) { c.ExcludeNamespaces = union(c.ExcludeNamespaces, ns) })},
		{"remove_peer_exclude_namespaces", group, "remove_peer_exclude_namespaces '1', ['ns2']", "Take namespaces away from those not replicated.",
			namespacesOf(func(c *admin.PeerConfig, ns []string) { c.ExcludeNamespaces = without(c.ExcludeNamespaces, ns) })},
		{"set_peer_replicate_all", group, "set_peer_replicate_all '1', true", "Replicate everything to a peer but what is excluded, or only what is listed.",
			peerFlag(func(c *admin.PeerConfig, on bool) { c.ReplicateAll = on })},
		{"set_peer_serial", group, "set_peer_serial '1', true", "Keep the order of a region's edits even when it moves.",
			peerFlag(func(c *admin.PeerConfig, on bool) { c.Serial = on })},
		{"set_peer_bandwidth", group, "set_peer_bandwidth '1', 1048576\nset_peer_bandwidth '1'", "Bound what each server ships to a peer, in bytes a second; 0 or nothing lifts the bound.", runPeerBandwidth},
		{"list_replicated_tables", group, "list_replicated_tables\nlist_replicated_tables 'abc.*'", "List the families with a REPLICATION_SCOPE.", runReplicatedTables},
		{"enable_table_replication", group, "enable_table_replication 't'", "Give all families of a table the REPLICATION_SCOPE 1. The table at the peers is yours to make.", tableReplication((*admin.Admin).EnableTableReplication, "enabled")},
		{"disable_table_replication", group, "disable_table_replication 't'", "Give all families of a table the REPLICATION_SCOPE 0.", tableReplication((*admin.Admin).DisableTableReplication, "disabled")},
	}
}

func onPeer(call func(*admin.Admin, context.Context, string) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 1); err != nil {
			return nil, err
		}
		id, err := a.text(0, "peer")
		if err != nil {
			return nil, err
		}
		return say(nil), call(s.Client.Admin(), ctx, id)
	}
}

func runAddPeer(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 2); err != nil {
		return nil, err
	}
	id, err := a.text(0, "peer")
	if err != nil {
		return nil, err
	}
	o, err := a.options(1, "CLUSTER_KEY", "ENDPOINT_CLASSNAME", "CONFIG", "DATA", "TABLE_CFS", "NAMESPACES", "STATE", "SERIAL", "REMOTE_WAL_DIR")
	if err != nil {
		return nil, err
	}
	c := admin.NewPeer(o.text("CLUSTER_KEY"))
	c.Endpoint, c.RemoteWALDir, c.Serial = o.text("ENDPOINT_CLASSNAME"), o.text("REMOTE_WAL_DIR"), o.flag("SERIAL")
	c.Configuration = o.stringMap("CONFIG")
	c.Data = bytesMap(o.stringMap("DATA"))
	if o.has("NAMESPACES") || o.has("TABLE_CFS") {
		c.ReplicateAll, c.Namespaces, c.TableCFs = false, o.texts("NAMESPACES"), o.listMap("TABLE_CFS")
	}
	state := o.text("STATE")
	if o.err != nil {
		return nil, o.err
	}
	return say(nil), s.Client.Admin().AddPeer(ctx, id, c, state != "DISABLED")
}

func bytesMap(m map[string]string) map[string][]byte {
	out := make(map[string][]byte, len(m))
	for k, v := range m {
		out[k] = []byte(v)
	}
	return out
}

func runListPeers(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	peers, err := s.Client.Admin().ListPeers(ctx, "")
	if err != nil {
		return nil, err
	}
	rows := [][]string{}
	for _, p := range peers {
		state := "DISABLED"
		if p.Enabled {
			state = "ENABLED"
		}
		c := &p.Config
		namespaces, tables := strings.Join(c.Namespaces, ";"), c.TableCFs.String()
		if c.ReplicateAll {
			namespaces, tables = "", ""
			if len(c.ExcludeNamespaces) > 0 {
				namespaces = "!" + strings.Join(c.ExcludeNamespaces, ";")
			}
			if len(c.ExcludeTableCFs) > 0 {
				tables = "!" + c.ExcludeTableCFs.String()
			}
		}
		rows = append(rows, []string{p.ID, c.ClusterKey, c.Endpoint, state, strconv.FormatBool(c.ReplicateAll),
			namespaces, tables, strconv.FormatInt(c.Bandwidth, 10), strconv.FormatBool(c.Serial)})
	}
	return rowsAnswer(peers, []string{"PEER_ID", "CLUSTER_KEY", "ENDPOINT_CLASSNAME", "STATE", "REPLICATE_ALL", "NAMESPACES", "TABLE_CFS", "BANDWIDTH", "SERIAL"}, rows), nil
}

func peerConfigLines(c admin.PeerConfig) []string {
	var lines []string
	if c.ClusterKey != "" {
		lines = append(lines, " Cluster Key "+c.ClusterKey)
	}
	if c.Endpoint != "" {
		lines = append(lines, " Replication Endpoint "+c.Endpoint)
	}
	for _, k := range slices.Sorted(maps.Keys(c.Configuration)) {
		lines = append(lines, " "+k+" "+c.Configuration[k])
	}
	return lines
}

func runPeerConfig(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	id, err := a.text(0, "peer")
	if err != nil {
		return nil, err
	}
	c, err := s.Client.Admin().Peer(ctx, id)
	if err != nil {
		return nil, err
	}
	return say(c, peerConfigLines(c)...), nil
}

func runPeerConfigs(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	peers, err := s.Client.Admin().ListPeers(ctx, "")
	if err != nil {
		return nil, err
	}
	ans := say(peers)
	for _, p := range peers {
		ans.lines = append(ans.lines, " PeerId "+p.ID)
		ans.lines = append(ans.lines, peerConfigLines(p.Config)...)
		ans.lines = append(ans.lines, " ")
	}
	return ans, nil
}

// changePeer reads a peer's id and changes its configuration.
func (s *Shell) changePeer(ctx context.Context, a args, change func(*admin.PeerConfig) error) (*answer, error) {
	id, err := a.text(0, "peer")
	if err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().UpdatePeer(ctx, id, change)
}

func runUpdatePeer(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 2); err != nil {
		return nil, err
	}
	o, err := a.options(1, "CONFIG", "DATA")
	if err != nil {
		return nil, err
	}
	config, data := o.stringMap("CONFIG"), o.stringMap("DATA")
	if o.err != nil {
		return nil, o.err
	}
	return s.changePeer(ctx, a, func(c *admin.PeerConfig) error {
		if c.Configuration == nil {
			c.Configuration = map[string]string{}
		}
		maps.Copy(c.Configuration, config)
		if c.Data == nil {
			c.Data = map[string][]byte{}
		}
		maps.Copy(c.Data, bytesMap(data))
		return nil
	})
}

func runShowTableCFs(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	id, err := a.text(0, "peer")
	if err != nil {
		return nil, err
	}
	c, err := s.Client.Admin().Peer(ctx, id)
	if err != nil {
		return nil, err
	}
	text := c.TableCFs.String()
	ans := say(c.TableCFs, text)
	if len(c.TableCFs) > 0 {
		ans.value = strconv.Quote(text)
	}
	return ans, nil
}

func tableCFsOf(change func(*admin.PeerConfig, admin.TableCFs) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(2, 2); err != nil {
			return nil, err
		}
		o := &options{a: a, h: &Hash{}}
		o.h.add("tables", a.list[1])
		tables := o.listMap("tables")
		if o.err != nil {
			return nil, o.err
		}
		return s.changePeer(ctx, a, func(c *admin.PeerConfig) error { return change(c, tables) })
	}
}

func namespacesOf(change func(*admin.PeerConfig, []string)) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(2, 2); err != nil {
			return nil, err
		}
		names, err := a.texts(1, "the namespaces")
		if err != nil {
			return nil, err
		}
		return s.changePeer(ctx, a, func(c *admin.PeerConfig) error { change(c, names); return nil })
	}
}

func peerFlag(change func(*admin.PeerConfig, bool)) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(2, 2); err != nil {
			return nil, err
		}
		on, ok := a.list[1].(bool)
		if !ok {
			return nil, a.fail("true or false is needed")
		}
		return s.changePeer(ctx, a, func(c *admin.PeerConfig) error { change(c, on); return nil })
	}
}

func runPeerBandwidth(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	var bandwidth int64
	if a.len() > 1 {
		var err error
		if bandwidth, err = a.integer(1, "bandwidth"); err != nil {
			return nil, err
		}
	}
	return s.changePeer(ctx, a, func(c *admin.PeerConfig) error { c.Bandwidth = bandwidth; return nil })
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func runReplicatedTables(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 1); err != nil {
		return nil, err
	}
	pattern := ""
	if a.len() > 0 {
		var err error
		if pattern, err = a.text(0, "pattern"); err != nil {
			return nil, err
		}
	}
	tables, err := s.Client.Admin().ListReplicatedTables(ctx, pattern)
	if err != nil {
		return nil, err
	}
	rows := [][]string{}
	for _, t := range tables {
		for _, f := range t.Families {
			kind := "UNKNOWN"
			switch f.Scope {
			case 1:
				kind = "GLOBAL"
			case 2:
				kind = "SERIAL"
			}
			rows = append(rows, []string{t.Table.String() + ":" + f.Name, kind})
		}
	}
	return rowsAnswer(tables, []string{"TABLE:COLUMNFAMILY", "ReplicationType"}, rows), nil
}

func tableReplication(call func(*admin.Admin, context.Context, string) error, done string) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 1); err != nil {
			return nil, err
		}
		table, err := a.text(0, "table")
		if err != nil {
			return nil, err
		}
		if err := call(s.Client.Admin(), ctx, table); err != nil {
			return nil, err
		}
		return say(nil, "The replication of table '"+table+"' successfully "+done), nil
	}
}
