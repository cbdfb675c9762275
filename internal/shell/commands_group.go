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
		o := &options{a: a, h: &Hash{}}
		o.h.add("the second argument", a.list[1])
		names := o.texts("the second argument")
		if o.err != nil {
			return nil, o.err
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
