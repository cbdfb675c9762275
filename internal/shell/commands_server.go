package shell

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func serverCommands() []command {
	return []command{
		{"decommission_regionservers", "tools", "decommission_regionservers 'host'\ndecommission_regionservers ['host,port,startcode', 'host:port'], true",
			"Mark region servers as draining, so that they get no regions; true moves those they have away.", runDecommission},
		{"recommission_regionserver", "tools", "recommission_regionserver 'host,port,startcode'\nrecommission_regionserver 'host:port', ['ENCODED_REGIONNAME']", "Take the mark off a region server and move regions to it.", runRecommission},
		{"list_decommissioned_regionservers", "tools", "list_decommissioned_regionservers", "Print the region servers marked as draining.", runListDecommissioned},
		{"list_unknownservers", "tools", "list_unknownservers", "Print servers that hbase:meta names and the master does not know (HBase 2.5 and later).", runListUnknown},
		{"clear_deadservers", "tools", "clear_deadservers\nclear_deadservers 'host,port,startcode'", "Make the master forget dead region servers, all or some; prints those it would not.", runClearDead},
		{"compaction_switch", "tools", "compaction_switch true\ncompaction_switch false, 'host,port,startcode'", "Switch compactions on region servers until they are restarted; prints what it was before.", runCompactionSwitch},
		{"clear_compaction_queues", "tools", "clear_compaction_queues 'host,port,startcode'\nclear_compaction_queues 'host,port,startcode', ['long', 'short']", "Drop what waits in a region server's compaction queues.", runClearQueues},
		{"compact_rs", "tools", "compact_rs 'host,port,startcode'\ncompact_rs 'host,port,startcode', true", "Compact all regions of a region server; true rewrites all their files.", runCompactServer},
		{"clear_block_cache", "tools", "clear_block_cache 't'", "Drop a table's blocks from the block caches.", runClearBlockCache},
		{"wal_roll", "tools", "wal_roll 'host,port,startcode'", "Make a region server begin a new log file.", onServer((*admin.Admin).RollWAL)},
		{"update_config", "configuration", "update_config 'host,port,startcode'", "Make a server, region server or master, read its configuration again.", onServer((*admin.Admin).UpdateConfiguration)},
		{"update_all_config", "configuration", "update_all_config", "Make all servers read their configurations again.", runUpdateAll},
		{"is_in_maintenance_mode", "tools", "is_in_maintenance_mode", "Say whether the master runs in maintenance mode.", askSwitch((*admin.Admin).InMaintenanceMode)},
		{"stop_master", "tools", "stop_master", "Stop the active master; a backup master takes over.", runStopMaster},
		{"close_region", "tools", "close_region 'ENCODED_REGIONNAME'", "HBase's old name of unassign.", runCloseRegion},
		{"processlist", "general", "processlist\nprocesslist 'all'\nprocesslist 'general', 'host,port,startcode'", "Print what the region servers are at (HBase 2.5 and later tell it): tasks that run, or 'all'.", runProcessList},
	}
}

// servers finds live servers by host,port,startcode, host:port, host,port or
// host alone, which HBase's shell takes too.
func (s *Shell) servers(ctx context.Context, names []string) ([]hbase.ServerName, error) {
	live, err := s.Client.Admin().RegionServers(ctx)
	if err != nil {
		return nil, err
	}
	var out []hbase.ServerName
	for _, n := range names {
		n = strings.TrimSpace(n)
		found := false
		for _, sv := range live {
			if n == sv.String() || n == sv.Address() || n == sv.Host || n == sv.Host+","+strconv.Itoa(sv.Port) {
				found = true
				if !slices.Contains(out, sv) {
					out = append(out, sv)
				}
			}
		}
		if !found {
			// One that is down is known by its full name.
			full, err := admin.ParseServerName(n)
			if err != nil {
				return nil, fmt.Errorf("no live region server %q; live are %s", n, joinServers(live))
			}
			out = append(out, full)
		}
	}
	return out, nil
}

func joinServers(list []hbase.ServerName) string {
	names := make([]string, len(list))
	for i, sv := range list {
		names[i] = sv.String()
	}
	return strings.Join(names, " ")
}

// oneServer gives the server argument i names.
func (s *Shell) oneServer(ctx context.Context, a args, i int) (hbase.ServerName, error) {
	name, err := a.text(i, "server")
	if err != nil {
		return hbase.ServerName{}, err
	}
	list, err := s.servers(ctx, []string{name})
	if err != nil {
		return hbase.ServerName{}, err
	}
	if len(list) > 1 {
		return hbase.ServerName{}, fmt.Errorf("%q is several region servers: %s", name, joinServers(list))
	}
	return list[0], nil
}

// onServer makes a command of an admin call on one server.
func onServer(call func(*admin.Admin, context.Context, hbase.ServerName) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 1); err != nil {
			return nil, err
		}
		server, err := s.oneServer(ctx, a, 0)
		if err != nil {
			return nil, err
		}
		return say(nil), call(s.Client.Admin(), ctx, server)
	}
}

// namesAnswer prints servers, one a line, under a heading.
func namesAnswer(head string, list []hbase.ServerName) *answer {
	names := []string{}
	for _, sv := range list {
		names = append(names, sv.String())
	}
	ans := say(names, append([]string{head}, names...)...)
	ans.counted = len(names)
	return ans
}

func runDecommission(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	names, err := a.texts(0, "servers")
	if err != nil {
		return nil, err
	}
	offload := false
	if a.len() > 1 {
		if offload, err = a.boolean(1, 2); err != nil {
			return nil, err
		}
	}
	servers, err := s.servers(ctx, names)
	if err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().DecommissionServers(ctx, servers, offload)
}

func runRecommission(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	name, err := a.text(0, "server")
	if err != nil {
		return nil, err
	}
	var regions []string
	if a.len() > 1 {
		if regions, err = a.texts(1, "regions"); err != nil {
			return nil, err
		}
	}
	adm := s.Client.Admin()
	marked, err := adm.DecommissionedServers(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(marked, func(sv hbase.ServerName) bool {
		return name == sv.String() || name == sv.Address() || name == sv.Host
	})
	if i < 0 {
		return nil, fmt.Errorf("%q is not decommissioned; decommissioned are: %s", name, joinServers(marked))
	}
	return say(nil), adm.RecommissionServer(ctx, marked[i], regions...)
}

func runListDecommissioned(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().DecommissionedServers(ctx)
	if err != nil {
		return nil, err
	}
	return namesAnswer("DECOMMISSIONED REGION SERVERS", list), nil
}

func runListUnknown(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().UnknownServers(ctx)
	if err != nil {
		return nil, err
	}
	return namesAnswer("SERVERNAME", list), nil
}

func runClearDead(ctx context.Context, s *Shell, a args) (*answer, error) {
	var servers []hbase.ServerName
	for i := range a.list {
		names, err := a.texts(i, "servers")
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			sv, err := admin.ParseServerName(n)
			if err != nil {
				return nil, a.fail("%v", err)
			}
			servers = append(servers, sv)
		}
	}
	left, err := s.Client.Admin().ClearDeadServers(ctx, servers...)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, sv := range left {
		names = append(names, sv.String())
	}
	ans := say(names, "true")
	if len(left) > 0 {
		ans = namesAnswer("SERVERNAME", left)
		ans.lines = append([]string{"Some dead server clear failed"}, ans.lines...)
	}
	ans.value = rubyStrings(names)
	return ans, nil
}

func runCompactionSwitch(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 16); err != nil {
		return nil, err
	}
	on, err := args{command: a.command, list: a.list[:1]}.boolean(0, 1)
	if err != nil {
		return nil, err
	}
	var servers []hbase.ServerName
	for i := 1; i < a.len(); i++ {
		names, err := a.texts(i, "servers")
		if err != nil {
			return nil, err
		}
		list, err := s.servers(ctx, names)
		if err != nil {
			return nil, err
		}
		servers = append(servers, list...)
	}
	was, err := s.Client.Admin().SetCompactions(ctx, on, servers...)
	if err != nil {
		return nil, err
	}
	return perServer([]string{"['SERVER'", "'PREV_STATE']"}, was), nil
}

// perServer prints a yes or no of each server.
func perServer(head []string, m map[hbase.ServerName]bool) *answer {
	data, rows := map[string]bool{}, [][]string{}
	for _, sv := range sortedBy(m, hbase.ServerName.String) {
		data[sv.String()] = m[sv]
		rows = append(rows, []string{sv.String(), strconv.FormatBool(m[sv])})
	}
	return rowsAnswer(data, head, rows)
}

func runClearQueues(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	server, err := s.oneServer(ctx, a, 0)
	if err != nil {
		return nil, err
	}
	var queues []string
	if a.len() > 1 {
		if queues, err = a.texts(1, "queues"); err != nil {
			return nil, err
		}
	}
	return say(nil), s.Client.Admin().ClearCompactionQueues(ctx, server, queues...)
}

func runCompactServer(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	server, err := s.oneServer(ctx, a, 0)
	if err != nil {
		return nil, err
	}
	major := false
	if a.len() > 1 {
		if major, err = a.boolean(1, 2); err != nil {
			return nil, err
		}
	}
	return say(nil), s.Client.Admin().CompactServer(ctx, server, major)
}

func runClearBlockCache(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	e, err := s.Client.Admin().ClearBlockCache(ctx, table)
	if err != nil {
		return nil, err
	}
	failed := []string{}
	for region := range e.Failed {
		failed = append(failed, hbase.Quote([]byte(region)))
	}
	slices.Sort(failed)
	return say(map[string]any{"evictedBlocks": e.Blocks, "maxCacheSize": e.MaxCacheBytes, "failedRegions": failed},
		fmt.Sprintf("CacheEvictionStats{evictedBlocks=%d, maxCacheSize=%d, failedRegionsSize=%d, failedRegions=[%s]}", e.Blocks, e.MaxCacheBytes, len(failed), strings.Join(failed, ", "))), nil
}

func runUpdateAll(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().UpdateAllConfigurations(ctx)
}

func runStopMaster(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().StopMaster(ctx)
}

func runCloseRegion(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 2); err != nil {
		return nil, err
	}
	region, err := a.text(0, "region")
	if err != nil {
		return nil, err
	}
	return say(nil, "DEPRECATED!!! Use 'unassign' command instead."), s.Client.Admin().UnassignRegion(ctx, region)
}

func runProcessList(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 2); err != nil {
		return nil, err
	}
	all := false
	var only []hbase.ServerName
	for i := range a.list {
		word, err := a.text(i, "filter")
		if err != nil {
			return nil, err
		}
		switch word {
		case "all":
			all = true
		case "general":
		case "handler", "rpc", "operation":
			return nil, &UnsupportedError{Reason: "processlist '" + word + "': HBase tells these on its web pages only, at /rs-status of a region server"}
		default:
			list, err := s.servers(ctx, []string{word})
			if err != nil {
				return nil, err
			}
			only = append(only, list...)
		}
	}
	st, err := s.Client.Admin().ClusterStatus(ctx)
	if err != nil {
		return nil, err
	}
	data, rows := []map[string]string{}, [][]string{}
	for _, sv := range st.Live {
		if len(only) > 0 && !slices.Contains(only, sv.Server) {
			continue
		}
		for _, task := range sv.Tasks {
			if !all && task.State != "RUNNING" {
				continue
			}
			row := []string{sv.Server.Address(), clock(task.Started), task.State, task.Description, task.Status}
			rows = append(rows, row)
			data = append(data, map[string]string{"server": sv.Server.String(), "started": row[1], "state": row[2], "description": row[3], "status": row[4]})
		}
	}
	if len(rows) == 0 {
		return say(data, "No tasks"), nil
	}
	ans := rowsAnswer(data, []string{"Host", "Start Time", "State", "Description", "Status"}, rows)
	ans.lines = append([]string{fmt.Sprintf("%d tasks as of: %s", len(rows), clock(s.now()))}, ans.lines...)
	return ans, nil
}
