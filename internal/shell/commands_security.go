package shell

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func securityCommands() []command {
	return []command{
		{"grant", "security", "grant 'bob', 'RW'\ngrant 'bob', 'RWXCA', 't'\ngrant '@group', 'R', '@ns'\ngrant 'bob', 'R', 't', 'f', 'q'\ngrant 't', {'bob' => 'R', '@group' => 'RW'}, {COLUMNS => 'f', STARTROW => 'a'}",
			"Let a user or @group read (R), write (W), execute (X), create (C) or administer (A): everything, a namespace (@ns), a table, a family or a column. With a hash, write the cells a scan finds again, with permissions of their own.", runGrant},
		{"revoke", "security", "revoke 'bob'\nrevoke 'bob', 't'\nrevoke '@group', '@ns'\nrevoke 'bob', 't', 'f', 'q'",
			"Take away what was granted on exactly that.", runRevoke},
		{"user_permission", "security", "user_permission\nuser_permission 't'\nuser_permission 't.*'\nuser_permission '@ns.*'",
			"List permissions: those on everything, or on the tables, or with @ namespaces, that match a regular expression.", runUserPermission},
		{"list_security_capabilities", "security", "list_security_capabilities", "List the security features the cluster has switched on.", runCapabilities},
		{"add_labels", "visibility labels", "add_labels ['SECRET', 'PUBLIC']", "Make visibility labels.", runAddLabels},
		{"list_labels", "visibility labels", "list_labels\nlist_labels 'S.*'", "List the labels that match a regular expression.", runListLabels},
		{"set_auths", "visibility labels", "set_auths 'bob', ['SECRET', 'PUBLIC']", "Let a user or @group read cells with these labels.", onAuths((*admin.Admin).SetAuths)},
		{"clear_auths", "visibility labels", "clear_auths 'bob', ['SECRET']", "Take labels away from a user or @group.", onAuths((*admin.Admin).ClearAuths)},
		{"get_auths", "visibility labels", "get_auths 'bob'", "List the labels of a user or @group.", runGetAuths},
		{"set_visibility", "visibility labels", "set_visibility 't', 'SECRET|PRIVATE', {COLUMNS => ['f', 'g:q'], STARTROW => 'a'}",
			"Write the cells a scan finds again, with a visibility expression.", runSetVisibility},
	}
}

// capable fails if the cluster says that it lacks a feature. Clusters too old
// to say are asked for the thing itself.
func (s *Shell) capable(ctx context.Context, c admin.Capability, what string) error {
	list, err := s.Client.Admin().SecurityCapabilities(ctx)
	if errors.Is(err, hbase.ErrUnsupported) {
		return nil
	}
	if err == nil && !slices.Contains(list, c) {
		err = errors.New("DISABLED: " + what + " not available")
	}
	return err
}

// scope reads what a permission is about from argument i on.
func (a args) scope(i int) (admin.Scope, error) {
	var sc admin.Scope
	if a.none(i) {
		return sc, nil
	}
	name, err := a.text(i, "table")
	if err != nil {
		return sc, err
	}
	if ns, ok := strings.CutPrefix(name, "@"); ok {
		sc.Namespace = ns
		return sc, nil
	}
	sc.Table = name
	for j, part := range []*string{&sc.Family, &sc.Qualifier} {
		if !a.none(i + 1 + j) {
			if *part, err = a.text(i+1+j, "column"); err != nil {
				return sc, err
			}
		}
	}
	return sc, nil
}

// exists fails if what the scope names is not there; HBase would grant it all
// the same.
func (s *Shell) exists(ctx context.Context, sc admin.Scope) error {
	adm := s.Client.Admin()
	switch {
	case sc.Namespace != "":
		_, err := adm.DescribeNamespace(ctx, sc.Namespace)
		return err
	case sc.Table == "":
		return nil
	}
	d, err := adm.Describe(ctx, sc.Table)
	if err == nil && sc.Family != "" && d.Family(sc.Family) == nil {
		err = errors.New("table " + strconv.Quote(sc.Table) + " has no family " + strconv.Quote(sc.Family))
	}
	return err
}

func runGrant(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(2, 5); err != nil {
		return nil, err
	}
	if users, ok := HashOf(a.list[1]); ok {
		return s.grantCells(ctx, a, users)
	}
	user, err := a.text(0, "user")
	if err != nil {
		return nil, err
	}
	letters, err := a.text(1, "permission")
	if err != nil {
		return nil, err
	}
	actions, err := admin.ParseActions(letters)
	if err != nil {
		return nil, err
	}
	sc, err := a.scope(2)
	if err != nil {
		return nil, err
	}
	if err := s.capable(ctx, admin.Authorization, "access control is"); err != nil {
		return nil, err
	}
	if err := s.exists(ctx, sc); err != nil {
		return nil, err
	}
	// As HBase's shell does: what the user had for that scope is replaced.
	return say(nil), s.Client.Admin().Grant(ctx, admin.Permission{User: user, Scope: sc, Actions: actions}, false)
}

func (s *Shell) grantCells(ctx context.Context, a args, users *Hash) (*answer, error) {
	acl := hbase.ACL{}
	o := &options{a: a, h: users}
	for _, user := range users.Keys {
		actions, err := admin.ParseActions(o.text(user))
		if err != nil {
			return nil, err
		}
		acl[user] = actions
	}
	if o.err != nil {
		return nil, o.err
	}
	return s.rewrite(ctx, a, func(p *hbase.Put) { p.ACL = acl })
}

func runSetVisibility(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(3, 3); err != nil {
		return nil, err
	}
	expression, err := a.text(1, "expression")
	if err != nil {
		return nil, err
	}
	if _, err := hbase.VisibilityLabels(expression); err != nil {
		return nil, err
	}
	return s.rewrite(ctx, a, func(p *hbase.Put) { p.Visibility = expression })
}

// rewrite puts the cells that the scan in argument 2 finds again, each with its
// timestamp and with what change adds. Rows changed meanwhile keep the change:
// it is newer.
func (s *Shell) rewrite(ctx context.Context, a args, change func(*hbase.Put)) (*answer, error) {
	name, err := a.text(0, "table")
	if err != nil {
		return nil, err
	}
	if err := a.count(3, 3); err != nil {
		return nil, err
	}
	o, err := a.options(2, scanOptions()...)
	if err != nil {
		return nil, err
	}
	sc := scanOf(o)
	sc.Limit, sc.MaxVersions = o.count("LIMIT"), o.count("VERSIONS")
	if o.err != nil {
		return nil, o.err
	}
	t, err := s.Client.Table(name)
	if err != nil {
		return nil, err
	}
	rows := 0
	for res, err := range t.Scan(ctx, sc).Rows() {
		if err != nil {
			return nil, err
		}
		p := hbase.NewPut(res.Row).Add(res.Cells...)
		change(p)
		if err := t.Put(ctx, p); err != nil {
			return nil, err
		}
		rows++
	}
	ans := say(rows)
	ans.counted = rows
	return ans, nil
}

// scanOptions are the options of scans that only choose.
func scanOptions() []string {
	return []string{"STARTROW", "STOPROW", "ENDROW", "ROWPREFIXFILTER", "LIMIT", "COLUMN", "COLUMNS", "VERSIONS", "TIMERANGE", "TIMESTAMP", "FILTER", "CACHE"}
}

func runRevoke(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 4); err != nil {
		return nil, err
	}
	user, err := a.text(0, "user")
	if err != nil {
		return nil, err
	}
	sc, err := a.scope(1)
	if err != nil {
		return nil, err
	}
	if err := s.capable(ctx, admin.Authorization, "access control is"); err != nil {
		return nil, err
	}
	if err := s.exists(ctx, sc); err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().Revoke(ctx, admin.Permission{User: user, Scope: sc})
}

func runUserPermission(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 1); err != nil {
		return nil, err
	}
	pattern := ""
	if !a.none(0) {
		var err error
		if pattern, err = a.text(0, "pattern"); err != nil {
			return nil, err
		}
	}
	if err := s.capable(ctx, admin.Authorization, "access control is"); err != nil {
		return nil, err
	}
	scopes, err := s.scopes(ctx, pattern)
	if err != nil {
		return nil, err
	}
	type permissionJSON struct {
		User      string `json:"user"`
		Namespace string `json:"namespace"`
		Table     string `json:"table"`
		Family    string `json:"family"`
		Qualifier string `json:"qualifier"`
		Actions   string `json:"actions"`
	}
	data, rows := []permissionJSON{}, [][]string{}
	for _, sc := range scopes {
		ps, err := s.Client.Admin().Permissions(ctx, sc, "")
		if err != nil {
			return nil, err
		}
		for _, p := range ps {
			ns := p.Scope.Namespace
			if p.Scope.Table != "" {
				t, err := hbase.ParseTableName(p.Scope.Table)
				if err != nil {
					return nil, err
				}
				ns = t.Namespace
			}
			family, qualifier := hbase.Quote([]byte(p.Scope.Family)), hbase.Quote([]byte(p.Scope.Qualifier))
			data = append(data, permissionJSON{p.User, ns, p.Scope.Table, family, qualifier, p.Actions.Letters()})
			rows = append(rows, []string{p.User, ns + "," + p.Scope.Table + "," + family + "," + qualifier + ": [Permission: actions=" + p.Actions.String() + "]"})
		}
	}
	return rowsAnswer(data, []string{"User", "Namespace,Table,Family,Qualifier:Permission"}, rows), nil
}

// scopes are what a pattern of user_permission stands for.
func (s *Shell) scopes(ctx context.Context, pattern string) ([]admin.Scope, error) {
	if pattern == "" {
		return []admin.Scope{{}}, nil
	}
	var out []admin.Scope
	if of, ok := strings.CutPrefix(pattern, "@"); ok {
		re, err := regexp.Compile("^(?:" + of + ")$")
		if err != nil {
			return nil, err
		}
		all, err := s.Client.Admin().ListNamespaces(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range all {
			if re.MatchString(n.Name) {
				out = append(out, admin.Scope{Namespace: n.Name})
			}
		}
		return out, nil
	}
	tables, err := s.Client.Admin().ListTables(ctx, pattern, true)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		out = append(out, admin.Scope{Table: t.String()})
	}
	return out, nil
}

func runCapabilities(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	list, err := s.Client.Admin().SecurityCapabilities(ctx)
	if err != nil {
		return nil, err
	}
	names, quoted := []string{}, []string{}
	for _, c := range list {
		names, quoted = append(names, c.String()), append(quoted, strconv.Quote(c.String()))
	}
	ans := say(names, names...)
	ans.value = "[" + strings.Join(quoted, ", ") + "]"
	return ans, nil
}

// labelArgs reads labels from argument i on: strings, arrays, or both.
func (a args) labelArgs(i int) ([]string, error) {
	var out []string
	for ; i < a.len(); i++ {
		ls, err := a.texts(i, "the labels")
		if err != nil {
			return nil, err
		}
		out = append(out, ls...)
	}
	if len(out) == 0 {
		return nil, a.fail("labels are missing")
	}
	return out, nil
}

func runAddLabels(ctx context.Context, s *Shell, a args) (*answer, error) {
	labels, err := a.labelArgs(0)
	if err != nil {
		return nil, err
	}
	if err := s.capable(ctx, admin.CellVisibility, "visibility labels are"); err != nil {
		return nil, err
	}
	return say(nil), s.Client.Admin().AddLabels(ctx, labels...)
}

func onAuths(call func(*admin.Admin, context.Context, string, ...string) error) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		user, err := a.text(0, "user")
		if err != nil {
			return nil, err
		}
		labels, err := a.labelArgs(1)
		if err != nil {
			return nil, err
		}
		if err := s.capable(ctx, admin.CellVisibility, "visibility labels are"); err != nil {
			return nil, err
		}
		return say(nil), call(s.Client.Admin(), ctx, user, labels...)
	}
}

// quotedLines answers with names as HBase prints bytes.
func quotedLines(names []string) *answer {
	ans := say(names)
	for _, n := range names {
		ans.lines = append(ans.lines, hbase.Quote([]byte(n)))
	}
	return ans
}

func runGetAuths(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	user, err := a.text(0, "user")
	if err != nil {
		return nil, err
	}
	if err := s.capable(ctx, admin.CellVisibility, "visibility labels are"); err != nil {
		return nil, err
	}
	labels, err := s.Client.Admin().GetAuths(ctx, user)
	if err != nil {
		return nil, err
	}
	return quotedLines(labels), nil
}

func runListLabels(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 1); err != nil {
		return nil, err
	}
	pattern := ".*"
	if a.len() > 0 {
		var err error
		if pattern, err = a.text(0, "pattern"); err != nil {
			return nil, err
		}
	}
	if err := s.capable(ctx, admin.CellVisibility, "visibility labels are"); err != nil {
		return nil, err
	}
	labels, err := s.Client.Admin().ListLabels(ctx, pattern)
	if err != nil {
		return nil, err
	}
	return quotedLines(labels), nil
}
