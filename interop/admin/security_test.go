package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// as opens a client of another user.
func (c *cluster) as(t *testing.T, user string) *hbase.Client {
	t.Helper()
	client, err := hbase.Open(c.context(t), c.address, hbase.WithUser(user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// values reads a row's values through a client.
func values(t *testing.T, client *hbase.Client, c *cluster, table string, change func(*hbase.Get)) (string, error) {
	t.Helper()
	tab, err := client.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	g := hbase.NewGet("r")
	if change != nil {
		change(g)
	}
	res, err := tab.Get(c.context(t), g)
	if err != nil {
		return "", err
	}
	var out []string
	for _, cell := range res.Cells {
		out = append(out, string(cell.Value))
	}
	return strings.Join(out, " "), nil
}

func TestPermissions(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		table := c.table(t)
		scope := admin.Scope{Table: table}
		grant := admin.Permission{User: "bob", Scope: scope, Actions: admin.Read | admin.Write}
		if c.name == "embedded" {
			for what, err := range map[string]error{
				"grant": c.adm.Grant(ctx, grant, false), "revoke": c.adm.Revoke(ctx, grant), "list": second(c.adm.Permissions(ctx, scope, "")),
				"has": second(c.adm.HasPermissions(ctx, "bob", grant)), "check": c.adm.CheckPermissions(ctx, grant),
			} {
				if !errors.Is(err, hbase.ErrUnsupported) {
					t.Errorf("%s: %v, want ErrUnsupported", what, err)
				}
			}
			if caps, err := c.adm.SecurityCapabilities(ctx); err != nil || !slices.Equal(caps, []admin.Capability{admin.SimpleAuthentication}) {
				t.Errorf("capabilities %v, %v", caps, err)
			}
			return
		}
		caps, err := c.adm.SecurityCapabilities(ctx)
		if want := []admin.Capability{admin.SimpleAuthentication, admin.Authorization, admin.CellAuthorization, admin.CellVisibility}; err != nil || !slices.Equal(caps, want) {
			t.Errorf("capabilities %v, %v; want %v", caps, err, want)
		}
		bob := c.as(t, "bob")
		put := func(client *hbase.Client) error {
			tab, err := client.Table(table)
			if err != nil {
				t.Fatal(err)
			}
			return tab.Put(ctx, hbase.NewPut("r").Set("f", "q", []byte("v")))
		}
		if err := put(bob); !errors.Is(err, hbase.ErrAccessDenied) {
			t.Errorf("bob writes: %v", err)
		}
		if err := bob.Admin().CheckPermissions(ctx, grant); !errors.Is(err, hbase.ErrAccessDenied) {
			t.Errorf("bob's check: %v", err)
		}
		if err := c.adm.Grant(ctx, grant, false); err != nil {
			t.Fatal(err)
		}
		// Region servers learn of it by ZooKeeper.
		c.eventually(t, "bob's permission", func() bool { return put(bob) == nil })
		c.eventually(t, "bob's check", func() bool { return bob.Admin().CheckPermissions(ctx, grant) == nil })
		if err := c.adm.Grant(ctx, admin.Permission{User: "bob", Scope: scope, Actions: admin.Exec}, true); err != nil {
			t.Error(err)
		}
		column := admin.Permission{User: "@staff", Scope: admin.Scope{Table: table, Family: "f", Qualifier: "q"}, Actions: admin.Read}
		everything := admin.Permission{User: "ann", Actions: admin.Create}
		namespace := admin.Permission{User: "ann", Scope: admin.Scope{Namespace: "default"}, Actions: admin.Read | admin.Manage}
		for _, p := range []admin.Permission{column, everything, namespace} {
			if err := c.adm.Grant(ctx, p, false); err != nil {
				t.Fatal(err)
			}
		}
		list := func(sc admin.Scope, user string, want ...admin.Permission) {
			t.Helper()
			got, err := c.adm.Permissions(ctx, sc, user)
			if err != nil {
				t.Error(err)
			}
			for _, w := range want {
				if !slices.Contains(got, w) {
					t.Errorf("%v: %v lacks %v", sc, got, w)
				}
			}
			if user != "" && len(got) != len(want) {
				t.Errorf("%v of %s: %v, want %v", sc, user, got, want)
			}
		}
		bobs := admin.Permission{User: "bob", Scope: scope, Actions: admin.Read | admin.Write | admin.Exec}
		list(scope, "", bobs, column)
		list(scope, "bob", bobs)
		list(admin.Scope{}, "", everything)
		list(admin.Scope{Namespace: "default"}, "", namespace)
		c.eventually(t, "what bob may do", func() bool {
			has, err := c.adm.HasPermissions(ctx, "bob", admin.Permission{Scope: scope, Actions: admin.Read}, admin.Permission{Scope: scope, Actions: admin.Manage}, everything)
			return err == nil && slices.Equal(has, []bool{true, false, false})
		})
		if err := c.adm.Revoke(ctx, admin.Permission{User: "bob", Scope: scope, Actions: admin.Exec}); err != nil {
			t.Error(err)
		}
		list(scope, "bob", grant)
		for _, p := range []admin.Permission{{User: "bob", Scope: scope}, column, everything, namespace} {
			p.Actions = 0
			if err := c.adm.Revoke(ctx, p); err != nil {
				t.Error(err)
			}
		}
		c.eventually(t, "bob's permission gone", func() bool { return errors.Is(put(bob), hbase.ErrAccessDenied) })

		// A cell of its own: bob may read that one, and no other.
		tab, err := c.client.Table(table)
		if err != nil {
			t.Fatal(err)
		}
		his := hbase.NewPut("r").Set("f", "bobs", []byte("his"))
		his.ACL = hbase.ACL{"bob": admin.Read}
		if err := tab.Put(ctx, his); err != nil {
			t.Fatal(err)
		}
		if got, err := values(t, bob, c, table, nil); got != "his" || err != nil {
			t.Errorf("bob reads %q, %v", got, err)
		}
		if got, err := values(t, c.client, c, table, nil); got != "his v" || err != nil {
			t.Errorf("the superuser reads %q, %v", got, err)
		}
	})
}

func TestVisibilityLabels(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		table := c.table(t)
		if c.name == "embedded" {
			for what, err := range map[string]error{
				"add": c.adm.AddLabels(ctx, "A"), "list": second(c.adm.ListLabels(ctx, "")), "set": c.adm.SetAuths(ctx, "bob", "A"),
				"get": second(c.adm.GetAuths(ctx, "bob")), "clear": c.adm.ClearAuths(ctx, "bob", "A"),
			} {
				if !errors.Is(err, hbase.ErrUnsupported) {
					t.Errorf("%s: %v, want ErrUnsupported", what, err)
				}
			}
			return
		}
		if err := c.adm.AddLabels(ctx, "SECRET", "TOP", "ODD LABEL&"); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.AddLabels(ctx, "MORE", "TOP"); err == nil || exception(err) != "LabelAlreadyExistsException" || !strings.Contains(err.Error(), `"TOP"`) || strings.Contains(err.Error(), `"MORE"`) {
			t.Errorf("a label twice: %v", err)
		}
		labels, err := c.adm.ListLabels(ctx, "")
		slices.Sort(labels)
		if err != nil || !slices.Equal(labels, []string{"MORE", "ODD LABEL&", "SECRET", "TOP"}) {
			t.Errorf("%q, %v", labels, err)
		}
		if labels, err := c.adm.ListLabels(ctx, "S.*"); err != nil || !slices.Equal(labels, []string{"SECRET"}) {
			t.Errorf("%q, %v", labels, err)
		}
		if err := c.adm.SetAuths(ctx, "bob", "SECRET", "MORE"); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.SetAuths(ctx, "bob", "UNHEARD"); exception(err) != "InvalidLabelException" {
			t.Errorf("no such label: %v", err)
		}
		if auths, err := c.adm.GetAuths(ctx, "bob"); err != nil || len(auths) != 2 {
			t.Errorf("%q, %v", auths, err)
		}
		if err := c.adm.Grant(ctx, admin.Permission{User: "bob", Scope: admin.Scope{Table: table}, Actions: admin.Read}, false); err != nil {
			t.Fatal(err)
		}
		tab, err := c.client.Table(table)
		if err != nil {
			t.Fatal(err)
		}
		for q, expression := range map[string]string{"1": "", "2": "SECRET", "3": "TOP", "4": "SECRET & !MORE", "5": "(TOP|MORE)&SECRET", "6": hbase.QuoteLabel("ODD LABEL&") + "|SECRET"} {
			p := hbase.NewPut("r").Set("f", q, []byte(q))
			p.Visibility = expression
			// Labels reach the region servers by ZooKeeper.
			c.eventually(t, "a cell with "+expression, func() bool { return tab.Put(ctx, p) == nil })
		}
		bob := c.as(t, "bob")
		c.eventually(t, "what bob sees", func() bool {
			got, err := values(t, bob, c, table, nil)
			return err == nil && got == "1 2 5 6"
		})
		for want, auths := range map[string][]string{"1": {"TOP"}, "1 2 4 6": {"SECRET"}, "1 2 5 6": {"SECRET", "MORE", "TOP"}} {
			if got, err := values(t, bob, c, table, func(g *hbase.Get) { g.Authorizations = auths }); got != want || err != nil {
				t.Errorf("bob with %q sees %q, %v; want %q", auths, got, err, want)
			}
		}
		if err := c.adm.ClearAuths(ctx, "bob", "SECRET"); err != nil {
			t.Error(err)
		}
		c.eventually(t, "what bob sees no more", func() bool {
			got, err := values(t, bob, c, table, nil)
			return err == nil && got == "1"
		})
		// A delete hides only what has its expression.
		d := hbase.NewDelete("r").Column("f", "2")
		d.Visibility = "TOP"
		if err := tab.Delete(ctx, d); err != nil {
			t.Error(err)
		}
		if got, err := values(t, c.client, c, table, func(g *hbase.Get) { g.Column("f", "2") }); got != "2" || err != nil {
			t.Errorf("after a delete with another expression %q, %v", got, err)
		}
		d.Visibility = "SECRET"
		if err := tab.Delete(ctx, d); err != nil {
			t.Error(err)
		}
		if got, err := values(t, c.client, c, table, func(g *hbase.Get) { g.Column("f", "2") }); got != "" || err != nil {
			t.Errorf("after a delete with its expression %q, %v", got, err)
		}
	})
}

func TestGroupSettings(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		table := c.table(t)
		if c.name == "2.6.4" {
			// Its jar of groups is not among those of this test.
			if err := c.adm.AddRSGroup(ctx, "gs"); !errors.Is(err, hbase.ErrUnsupported) {
				t.Errorf("groups: %v, want ErrUnsupported", err)
			}
			return
		}
		if err := c.adm.AddRSGroup(ctx, "gs"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.adm.RemoveRSGroup(context.WithoutCancel(ctx), "gs") }) // the test's own context has ended by then
		if err := c.adm.SetRSGroupConfig(ctx, "gs", map[string]string{"a": "b"}); err != nil {
			t.Error(err)
		}
		if g, ok, err := c.adm.RSGroup(ctx, "gs"); !ok || err != nil || len(g.Configuration) != 1 || g.Configuration["a"] != "b" {
			t.Errorf("%+v, %v, %v", g, ok, err)
		}
		if err := c.adm.SetRSGroupConfig(ctx, "gs", nil); err != nil {
			t.Error(err)
		}
		if ts, err := c.adm.RSGroupTables(ctx, "gs"); len(ts) != 0 || err != nil {
			t.Errorf("%v, %v", ts, err)
		}
		ts, err := c.adm.RSGroupTables(ctx, admin.DefaultRSGroup)
		if err != nil || !slices.ContainsFunc(ts, func(n hbase.TableName) bool { return n.String() == table }) {
			t.Errorf("%v, %v", ts, err)
		}
		ns := c.fresh("gns")
		if err := c.adm.CreateNamespace(ctx, admin.Namespace{Name: ns, Configuration: map[string]string{"hbase.rsgroup.name": "gs"}}); err != nil {
			t.Fatal(err)
		}
		if names, _, err := c.adm.RSGroupConfigured(ctx, "gs"); err != nil || !slices.Equal(names, []string{ns}) {
			t.Errorf("%v, %v", names, err)
		}
		if err := c.adm.DeleteNamespace(ctx, ns); err != nil {
			t.Error(err)
		}
		if _, err := c.adm.RSGroupTables(ctx, "unheard"); c.name != "embedded" && err == nil {
			t.Error("tables of no group")
		}
		if err := c.adm.MoveServersAndTablesToRSGroup(ctx, "gs", []string{"nohost:1"}, []string{table}); err == nil {
			t.Error("a server that is not there was moved")
		}
	})
}
