package shell

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func groupCommands() []command {
	return []command{
		{"list_rsgroups", "rsgroups", "list_rsgroups", "List region server groups.", runListGroups},
		{"get_rsgroup", "rsgroups", "get_rsgroup 'g'", "Print a group's servers and tables.", runGetGroup},
		{"add_rsgroup", "rsgroups", "add_rsgroup 'g'", "Make an empty group.", onGroup((*admin.Admin).AddRSGroup)},
		{"remove_rsgroup", "rsgroups", "remove_rsgroup 'g'", "Remove an empty group.", onGroup((*admin.Admin).RemoveRSGroup)},
		{"move_servers_rsgroup", "rsgroups", "move_servers_rsgroup 'g', ['host:port']", "Move servers into a group; regions of other groups' tables leave them.", moveToGroup((*admin.Admin).MoveServersToRSGroup)},
		{"move_tables_rsgroup", "rsgroups", "move_tables_rsgroup 'g', ['t']", "Move tables into a group; their regions follow.", moveToGroup((*admin.Admin).MoveTablesToRSGroup)},
		{"move_servers_tables_rsgroup", "rsgroups", "move_servers_tables_rsgroup 'g', ['host:port'], ['t']", "Move servers, then tables, into a group.", runMoveBoth},
		{"move_namespaces_rsgroup", "rsgroups", "move_namespaces_rsgroup 'g', ['ns']", "Move the tables of namespaces into a group, and have new ones made there.", runMoveNamespaces(false)},
		{"move_servers_namespaces_rsgroup", "rsgroups", "move_servers_namespaces_rsgroup 'g', ['host:port'], ['ns']", "Move servers into a group, then the tables of namespaces.", runMoveNamespaces(true)},
		{"remove_servers_rsgroup", "rsgroups", "remove_servers_rsgroup ['host:port']", "Take servers that are dead or decommissioned out of the groups.", runRemoveServers},
		{"rename_rsgroup", "rsgroups", "rename_rsgroup 'old', 'new'", "Rename a group.", runRenameGroup},
		{"get_server_rsgroup", "rsgroups", "get_server_rsgroup 'host:port'", "Print the group of a server.", runServerGroup},
		{"get_namespace_rsgroup", "rsgroups", "get_namespace_rsgroup 'ns'", "Print the group that new tables of a namespace are made in.", runNamespaceGroup},
		{"get_table_rsgroup", "rsgroups", "get_table_rsgroup 't'", "Print the group of a table.", runTableGroup},
		{"balance_rsgroup", "rsgroups", "balance_rsgroup 'g'", "Run the balancer within a group.", runBalanceGroup},
	}
}

func onGroup(call func(*admin.Admin, context.Context, string) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 1); err != nil {
			return nil, err
		}
		group, err := a.text(0, "group")
		if err != nil {
			return nil, err
		}
		return say(nil), call(s.Client.Admin(), ctx, group)
	}
}

func moveToGroup(call func(*admin.Admin, context.Context, string, ...string) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(2, 2); err != nil {
			return nil, err
		}
		group, err := a.text(0, "group")
		if err != nil {
			return nil, err
		}
		names, err := a.texts(1, "the second argument")
		if err != nil {
			return nil, err
		}
		return say(nil), call(s.Client.Admin(), ctx, group, names...)
	}
}

func runListGroups(ctx context.Context, s *Shell, a args) (*answer, error) {
	groups, err := s.Client.Admin().ListRSGroups(ctx)
	if err != nil {
		return nil, err
	}
	ans := &answer{head: []string{"NAME", "SERVER / TABLE"}, counted: len(groups), data: groups}
	for _, g := range groups {
		ans.rows = append(ans.rows, groupRows(g)...)
	}
	return ans, nil
}

func groupRows(g admin.RSGroup) [][]string {
	var rows [][]string
	for _, s := range g.Servers {
		rows = append(rows, []string{g.Name, "server " + s})
	}
	for _, t := range g.Tables {
		rows = append(rows, []string{g.Name, "table " + t.String()})
	}
	if rows == nil {
		rows = [][]string{{g.Name, ""}}
	}
	return rows
}

func runGetGroup(ctx context.Context, s *Shell, a args) (*answer, error) {
	name, err := a.text(0, "group")
	if err != nil {
		return nil, err
	}
	g, ok, err := s.Client.Admin().RSGroup(ctx, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("there is no rsgroup %q", name)
	}
	return &answer{head: []string{"NAME", "SERVER / TABLE"}, rows: groupRows(g), counted: 1, data: g}, nil
}

func runTableGroup(ctx context.Context, s *Shell, a args) (*answer, error) {
	table, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	g, err := s.Client.Admin().RSGroupOfTable(ctx, table)
	if err != nil {
		return nil, err
	}
	ans := say(g.Name, g.Name)
	ans.counted = 1
	return ans, nil
}

func runBalanceGroup(ctx context.Context, s *Shell, a args) (*answer, error) {
	group, err := a.text(0, "group")
	if err != nil {
		return nil, err
	}
	ran, err := s.Client.Admin().BalanceRSGroup(ctx, group)
	return boolAnswer(ran), err
}

func runMoveBoth(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(3, 3); err != nil {
		return nil, err
	}
	group, err := a.text(0, "group")
	if err != nil {
		return nil, err
	}
	servers, err := a.texts(1, "the servers")
	if err != nil {
		return nil, err
	}
	tables, err := a.texts(2, "the tables")
	if err != nil {
		return nil, err
	}
	adm := s.Client.Admin()
	if err := adm.MoveServersToRSGroup(ctx, group, servers...); err != nil {
		return nil, err
	}
	return say(nil), adm.MoveTablesToRSGroup(ctx, group, tables...)
}

// groupSetting is the namespace's setting for the group of its tables.
const groupSetting = "hbase.rsgroup.name"

// runMoveNamespaces moves namespaces, with servers before them if there are
// any. The setting comes first, so that no table made meanwhile stays behind.
func runMoveNamespaces(withServers bool) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		last := 1
		if withServers {
			last = 2
		}
		if err := a.count(last+1, last+1); err != nil {
			return nil, err
		}
		group, err := a.text(0, "group")
		if err != nil {
			return nil, err
		}
		namespaces, err := a.texts(last, "the namespaces")
		if err != nil {
			return nil, err
		}
		adm := s.Client.Admin()
		g, ok, err := adm.RSGroup(ctx, group)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, fmt.Errorf("there is no rsgroup %q", group)
		case len(g.Servers) == 0 && !withServers:
			// Refused before the first namespace says that it is there.
			return nil, fmt.Errorf("the rsgroup %q has no servers", group)
		}
		if withServers {
			servers, err := a.texts(1, "the servers")
			if err != nil {
				return nil, err
			}
			if err := adm.MoveServersToRSGroup(ctx, group, servers...); err != nil {
				return nil, err
			}
		}
		var names []string
		for _, ns := range namespaces {
			n, err := adm.DescribeNamespace(ctx, ns)
			if err != nil {
				return nil, err
			}
			if n.Configuration == nil {
				n.Configuration = map[string]string{}
			}
			n.Configuration[groupSetting] = group
			if err := adm.ModifyNamespace(ctx, n); err != nil {
				return nil, err
			}
			tables, err := adm.NamespaceTables(ctx, ns)
			if err != nil {
				return nil, err
			}
			for _, t := range tables {
				names = append(names, t.String())
			}
		}
		if len(names) == 0 {
			return say(nil), nil
		}
		return say(nil), adm.MoveTablesToRSGroup(ctx, group, names...)
	}
}

func runRemoveServers(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	servers, err := a.texts(0, "the servers")
	if err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().RemoveServersFromRSGroup(ctx, servers...)
}

func runRenameGroup(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 2); err != nil {
		return nil, err
	}
	from, err := a.text(0, "group")
	if err != nil {
		return nil, err
	}
	to, err := a.text(1, "new name")
	if err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().RenameRSGroup(ctx, from, to)
}

func runServerGroup(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	server, err := a.text(0, "server")
	if err != nil {
		return nil, err
	}
	g, ok, err := s.Client.Admin().RSGroupOfServer(ctx, server)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("no rsgroup has the server %q", server)
	}
	return &answer{lines: []string{g.Name}, counted: 1, data: g.Name}, nil
}

func runNamespaceGroup(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	name, err := a.text(0, "namespace")
	if err != nil {
		return nil, err
	}
	n, err := s.Client.Admin().DescribeNamespace(ctx, name)
	if err != nil {
		return nil, err
	}
	group := n.Configuration[groupSetting]
	if group == "" {
		group = admin.DefaultRSGroup
	}
	return &answer{lines: []string{group}, counted: 1, data: group}, nil
}
