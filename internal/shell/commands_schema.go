package shell

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func schemaCommands() []command {
	return []command{
		{"enable_all", "tables", "enable_all 'user.*'", "Open all tables whose whole name matches an expression.", onMatching("enabled", false, (*admin.Admin).EnableTable)},
		{"disable_all", "tables", "disable_all 'user.*'\ndisable_all 'user.*', {CONFIRM => true}", "Close all tables whose whole name matches an expression. Without CONFIRM they are only listed.", onMatching("disabled", true, (*admin.Admin).DisableTable)},
		{"drop_all", "tables", "drop_all 'user.*'\ndrop_all 'user.*', {CONFIRM => true}", "Delete all tables whose whole name matches an expression, with their data; they must be disabled. Without CONFIRM they are only listed.", onMatching("dropped", true, (*admin.Admin).DeleteTable)},
		{"clone_table_schema", "tables", "clone_table_schema 't', 'new'\nclone_table_schema 't', 'new', false", "Make an empty table with another's schema and region boundaries; false leaves it one region.", runCloneSchema},
		{"alter_namespace", "tables", "alter_namespace 'ns', {METHOD => 'set', 'hbase.namespace.quota.maxtables' => '10'}\nalter_namespace 'ns', {METHOD => 'unset', NAME => 'hbase.namespace.quota.maxtables'}",
			"Set or unset a namespace's settings.", runAlterNamespace},
	}
}

// onMatching makes a command of an admin call on every table that matches. HBase
// asks before it does harm; scripts have nobody to ask, so it takes an option.
func onMatching(done string, harm bool, call func(*admin.Admin, context.Context, string) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(1, 2); err != nil {
			return nil, err
		}
		pattern, err := a.text(0, "expression")
		if err != nil {
			return nil, err
		}
		if pattern == "" {
			return nil, a.fail("the expression is empty")
		}
		o, err := a.options(1, "CONFIRM")
		if err != nil {
			return nil, err
		}
		confirmed := o.flag("CONFIRM")
		if o.err != nil {
			return nil, o.err
		}
		adm := s.Client.Admin()
		tables, err := adm.ListTables(ctx, pattern, false)
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, t := range tables {
			names = append(names, t.String())
		}
		ans := say(names, names...)
		if harm && !confirmed && len(names) > 0 {
			ans.lines = append(ans.lines, fmt.Sprintf("%d tables match. None is %s yet: add {CONFIRM => true}", len(names), done))
			return ans, nil
		}
		for i, name := range names {
			if err := call(adm, ctx, name); err != nil {
				return nil, fmt.Errorf("%d of %d tables %s: %w", i, len(names), done, err)
			}
		}
		ans.lines = append(ans.lines, fmt.Sprintf("%d tables successfully %s", len(names), done))
		return ans, nil
	}
}

func runCloneSchema(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 3); err != nil {
		return nil, err
	}
	from, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	to, err := a.text(1, "new table")
	if err != nil {
		return nil, err
	}
	preserve := true
	if a.len() > 2 {
		var ok bool
		if preserve, ok = a.list[2].(bool); !ok {
			return nil, a.fail("whether to keep region boundaries must be true or false")
		}
	}
	return say(nil), s.Client.Admin().CloneTableSchema(ctx, from, to, preserve)
}

func runAlterNamespace(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 2); err != nil {
		return nil, err
	}
	name, err := a.text(0, "namespace")
	if err != nil {
		return nil, err
	}
	h, ok := HashOf(a.list[1])
	if !ok {
		return nil, a.fail("settings such as {METHOD => 'set', 'key' => 'value'} are needed")
	}
	adm := s.Client.Admin()
	n, err := adm.DescribeNamespace(ctx, name)
	if err != nil {
		return nil, err
	}
	if n.Configuration == nil {
		n.Configuration = map[string]string{}
	}
	o := &options{a: a, h: h}
	switch method := o.text("METHOD"); method {
	case "set":
		for i, k := range h.Keys {
			if k == "METHOD" {
				continue
			}
			v, err := attribute(o, k, h.Values[i])
			if err != nil {
				return nil, err
			}
			n.Configuration[k] = v
		}
	case "unset":
		key := o.text("NAME")
		if key == "" {
			return nil, a.fail("NAME must be the setting to unset")
		}
		delete(n.Configuration, key)
	default:
		o.bad("METHOD", "'set' or 'unset'")
	}
	if o.err != nil {
		return nil, o.err
	}
	return say(nil), adm.ModifyNamespace(ctx, n)
}
