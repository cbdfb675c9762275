//go:build interop

package zookeeper

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
)

// ask4 sends a four-letter word and gives what comes back.
func ask4(t *testing.T, addr, word string) string {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(nc, word); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(nc)
	if err != nil {
		t.Fatalf("%s: %v after %q", word, err, b)
	}
	return string(b)
}

// moments are what differs between any two servers, or any two moments of one.
var moments = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`3\.8\.4-\w+`), "3.8.4-BUILD"},
	{regexp.MustCompile(`0x[0-9a-f]{8,}`), "SESSION"},
	{regexp.MustCompile(`(?m)^([\w.]+=).*`), "$1"}, // envi, conf: the names are the contract
	{regexp.MustCompile(`\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}`), "DATE"},
	// The connection of the word before may or may not be gone yet.
	{regexp.MustCompile(`(?m)^ /[\d.]+:\d+\[\d+\]\(queued=\d+,recved=\d+,sent=0\)\n`), ""},
	{regexp.MustCompile(`\[\d+\]\(queued=\d+`), "[N](queued=N"}, // what the server's selector waits for
	{regexp.MustCompile(`(?m)^\d+ expire at .*\n(\tip: /[\d.]+:\d+ sessionId: 0x0\n)+`), ""},
	{regexp.MustCompile(`(?m)^Connections: \d+$`), "Connections: N"},
	{regexp.MustCompile(`Connections Sets.*`), "Connections Sets"},
	{regexp.MustCompile(`(?m)^0 expire at .*\n`), ""}, // a set that everybody has left stays in the list for a while
	{regexp.MustCompile(`Sets \(\d+\)`), "Sets (N)"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`(est|lresp)=\d+`), "$1=N"},
	{regexp.MustCompile(`(min|avg|max)lat=\d+`), "${1}lat=N"},
	{regexp.MustCompile(`llat=\d+`), "llat=N"},
	{regexp.MustCompile(`min/avg/max: \d+/[\d.]+/\d+`), "min/avg/max: N"},
	{regexp.MustCompile(`_size: \d+`), "_size: N"},
	{regexp.MustCompile(`Sent: \d+`), "Sent: N"}, // real ZooKeeper counts some time after it has sent
}

// TestWords compares what both servers say to the four-letter words, with one client's session, ephemeral node and watches to tell of.
func TestWords(t *testing.T) {
	e := startEnsemble(t, 1)
	s, err := zkserver.Start(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	said := func(addr string) map[string]string {
		ask4(t, addr, "srst") // counts begin anew
		c, session, err := gozk.Connect([]string{addr}, 30*time.Second, gozk.WithLogger(quiet{}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for c.State() != gozk.StateHasSession {
			<-session
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err = c.Create("/w", []byte("abc"), 0, gozk.WorldACL(gozk.PermAll))
		must(err)
		_, err = c.Create("/w/e", []byte("x"), gozk.FlagEphemeral, gozk.WorldACL(gozk.PermAll))
		must(err)
		_, _, _, err = c.GetW("/w")
		must(err)
		_, _, _, err = c.ChildrenW("/w")
		must(err)
		_, _, _, err = c.ExistsW("/missing")
		must(err)
		out := map[string]string{}
		for _, word := range []string{"ruok", "isro", "srvr", "stat", "cons", "dump", "conf", "envi", "wchs", "wchc", "wchp", "dirs", "mntr", "crst", "srst"} {
			text := ask4(t, addr, word)
			for _, m := range moments {
				text = m.re.ReplaceAllString(text, m.to)
			}
			lines := strings.Split(text, "\n")
			switch word {
			case "mntr":
				lines = monitored(lines)
			case "stat", "cons", "wchc", "wchp": // in the order of hash tables
				slices.Sort(lines)
			}
			out[word] = strings.Join(lines, "\n")
		}
		return out
	}
	if diff := cmp.Diff(said(e.addr(0)), said(s.Addr())); diff != "" {
		t.Errorf("the words' answers differ (- real, + embedded):\n%s", diff)
	}
}

// monitored picks the figures of mntr that monitoring looks at and that say something here, with their values as far as those are the same in both.
func monitored(lines []string) []string {
	var out []string
	for _, l := range lines {
		name, value, _ := strings.Cut(l, "\t")
		switch name {
		case "zk_packets_received", "zk_version", "zk_server_state", "zk_ephemerals_count", "zk_znode_count", "zk_global_sessions", "zk_local_sessions",
			"zk_watch_count", "zk_outstanding_requests", "zk_auth_failed_count", "zk_connection_rejected", "zk_throttled_ops", "zk_approximate_data_size":
			out = append(out, fmt.Sprintf("%s\t%s", name, value))
		case "zk_avg_latency", "zk_min_latency", "zk_max_latency", "zk_packets_sent", "zk_num_alive_connections", "zk_uptime", "zk_stale_sessions_expired":
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
