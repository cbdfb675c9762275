package shell

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// run runs a line and gives what it prints.
func run(t *testing.T, s *Shell, line string) string {
	t.Helper()
	var out bytes.Buffer
	s.Out = &out
	if err := s.Run(t.Context(), line); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out.String()
}

// Commands that name servers, whose ports no transcript can know.
func TestServerCommands(t *testing.T) {
	s := &Shell{Client: open(t), Quiet: true}
	live := strings.Fields(run(t, s, "list_liveservers"))
	if len(live) != 6 || live[0] != "SERVERNAME" || live[4] != "3" {
		t.Fatalf("live servers: %q", live)
	}
	first, _, _ := strings.Cut(strings.Replace(live[1], ",", ":", 1), ",")
	second, _, _ := strings.Cut(strings.Replace(live[2], ",", ":", 1), ",")
	for _, line := range []string{
		"create 't', 'f', SPLITS => ['m']",
		"create_namespace 'ns'",
		"create 'ns:u', 'f'",
		"add_rsgroup 'g'",
		"move_servers_tables_rsgroup 'g', ['" + first + "'], ['t']",
	} {
		run(t, s, line)
	}
	if got := run(t, s, "get_server_rsgroup '"+first+"'"); !strings.HasPrefix(got, "g\n") {
		t.Errorf("group of %s: %s", first, got)
	}
	if got := run(t, s, "list_regions 't', '"+live[1]+"'"); !strings.Contains(got, "2 row(s)") {
		t.Errorf("regions of the group's server:\n%s", got)
	}
	if got := run(t, s, "list_regions 't', {SERVER_NAME => '"+live[2]+"'}"); !strings.Contains(got, "0 row(s)") {
		t.Errorf("regions of another server:\n%s", got)
	}
	if got := run(t, s, "list_regions 't', {LOCALITY_THRESHOLD => 0}"); !strings.Contains(got, "row(s)") {
		t.Errorf("regions by locality:\n%s", got)
	}
	run(t, s, "move_servers_namespaces_rsgroup 'g', ['"+second+"'], ['ns']")
	if got := run(t, s, "get_namespace_rsgroup 'ns'") + run(t, s, "get_table_rsgroup 'ns:u'"); got != "g\n1 row(s)\ng\n1 row(s)\n" {
		t.Errorf("groups of the namespace and its table: %q", got)
	}
	run(t, s, "stop_regionserver '"+live[3]+"'")
	if err := s.Run(t.Context(), "stop_regionserver 'nohost:1'"); err == nil {
		t.Error("a server that is not there was stopped")
	}
}

func TestWhoAmI(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for want, opt := range map[string]hbase.Option{
		"ann (auth:SIMPLE)\n":                          hbase.WithUser("ann"),
		"ann (auth:PROXY) via gateway (auth:SIMPLE)\n": hbase.WithProxyUser("ann", "gateway"),
	} {
		client, err := hbase.Open(t.Context(), c.Address(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, &Shell{Client: client, Quiet: true}, "whoami"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		client.Close()
	}
}
