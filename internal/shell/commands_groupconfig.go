package shell

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

func groupConfigCommands() []command {
	return []command{
		{"alter_rsgroup_config", "rsgroups", "alter_rsgroup_config 'g', {METHOD => 'set', 'KEY' => 'value'}\nalter_rsgroup_config 'g', {METHOD => 'unset', NAME => 'KEY'}", "Set or unset settings of a group.", runAlterGroupConfig},
		{"show_rsgroup_config", "rsgroups", "show_rsgroup_config 'g'", "Print a group's settings.", runShowGroupConfig},
	}
}

func runAlterGroupConfig(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 100); err != nil {
		return nil, err
	}
	name, err := a.text(0, "group")
	if err != nil {
		return nil, err
	}
	adm := s.Client.Admin()
	g, ok, err := adm.RSGroup(ctx, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("there is no rsgroup %q", name)
	}
	config := maps.Clone(g.Configuration)
	if config == nil {
		config = map[string]string{}
	}
	for i := 1; i < a.len(); i++ {
		h, ok := HashOf(a.list[i])
		if !ok {
			return nil, a.fail("argument %d must be a hash with a METHOD", i+1)
		}
		o := &options{a: a, h: h}
		switch o.text("METHOD") {
		case "set":
			for _, k := range h.Keys {
				if k != "METHOD" {
					config[k] = o.text(k)
				}
			}
		case "unset":
			if !o.has("NAME") {
				return nil, a.fail("unset needs a NAME")
			}
			delete(config, o.text("NAME"))
		default:
			return nil, a.fail("the METHOD is 'set' or 'unset'")
		}
		if o.err != nil {
			return nil, o.err
		}
	}
	return say(nil), adm.SetRSGroupConfig(ctx, name, config)
}

func runShowGroupConfig(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
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
	var rows [][]string
	for _, k := range slices.Sorted(maps.Keys(g.Configuration)) {
		rows = append(rows, []string{k, g.Configuration[k]})
	}
	// The quotes are in the heads HBase's shell prints.
	return rowsAnswer(g.Configuration, []string{"'KEY'", "'VALUE'"}, rows), nil
}
