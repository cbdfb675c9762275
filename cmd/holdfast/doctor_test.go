package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func exitCodeOf(err error, out *bytes.Buffer) int {
	if err == nil {
		return exitOK
	}
	if e, ok := err.(*exitError); ok {
		return e.code
	}
	if _, ok := err.(usageError); ok {
		return exitUsage
	}
	out.WriteString(err.Error())
	return exitNo
}

func doctorOut(t *testing.T, want int, args ...string) string {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"doctor"}, args...))
	if got := exitCodeOf(root.ExecuteContext(t.Context()), &out); got != want {
		t.Fatalf("doctor %v: exit code %d, want %d\n%s", args, got, want, out.String())
	}
	return out.String()
}

func TestDoctorExitCodes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	bad := write("bad.log", "callTimeout=60000, callDuration=68118: row 'x' on table 'hbase:meta' at region=hbase:meta,,1.1588230740, hostname=host1.example,16020,1470239773946, seqNum=0\n")
	warn := write("warn.log", "org.apache.hadoop.hbase.UnknownScannerException: Unknown scanner '3732873630208491530'.\n")
	good := write("good.log", "2020-01-01 00:00:00,000 INFO all is well\n")
	site := write("hbase-site.xml", "<configuration><property><name>hbase.rpc.timeout</name><value>1200000</value></property></configuration>")
	doctorOut(t, exitOK, good)
	doctorOut(t, exitOK, warn)
	doctorOut(t, exitNo, warn, "--fail-on", "warning")
	doctorOut(t, exitNo, bad)
	doctorOut(t, exitOK, bad, "--fail-on", "never")
	doctorOut(t, exitUsage, bad, "--hbase", "x")
	doctorOut(t, exitUnreadable, filepath.Join(dir, "missing"))
	doctorOut(t, exitNo, "lint", site, "--hbase", "0.98")
	doctorOut(t, exitOK, "lint", site, "--hbase", "1.x")

	var r finding.Report
	if err := json.Unmarshal([]byte(doctorOut(t, exitNo, bad, "-o", "json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Schema != finding.SchemaVersion || len(r.Findings) != 1 || r.Findings[0].ID != "RETRY_BUDGET_FAST_FAIL" || r.Findings[0].Evidence[0].Line != 1 {
		t.Errorf("got %+v", r)
	}
	page := filepath.Join(dir, "r.html")
	doctorOut(t, exitNo, bad, "--html", page, "--redact")
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("<svg")) {
		t.Errorf("page: %v", err)
	}
}

func TestDoctorExplainsSchedules(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--pause", "100", "--retries", "31"}, []string{"448100", "448000", "428.1 s", "longest pause 20 s", "31 pauses (it counts retries) 448.1 s", "30 pauses (the number counts attempts) 448 s"}},
		{[]string{"--pause", "20", "--retries", "21"}, []string{"45.620 s", "49.6 s", "longest pause 4 s", "every client gives up before failover begins"}},
		{[]string{"--pause", "50", "--retries", "21"}, []string{"114.050 s", "124 s", "longest pause 10 s"}},
		{[]string{"--hbase", "0.98", "--rpc-timeout", "1200000", "--operation-timeout", "1200000"}, []string{"leaves no room for a retry", "1 attempts in 0 ms, ended by the clock: callTimeout=1200000, callDuration=1200100"}},
		{[]string{"--hbase", "1.4.8", "--rpc-timeout", "1200s", "--operation-timeout", "20m", "--retries", "35"}, []string{"35 attempts in 508.1 s, ended by the attempt limit"}},
		{[]string{"--hbase", "0.94", "--pause", "10000", "--retries", "31"}, []string{"1 1 1 2 2 4 4 8 16 32 64"}},
		{[]string{"--hbase", "1.4", "--retries", "1"}, []string{"one attempt in total"}},
		{[]string{"--hbase", "2.x"}, []string{"retries 15 = 16 attempts", "16 attempts in 128.1 s"}},
	} {
		out := doctorOut(t, exitOK, append([]string{"explain-retries"}, c.args...)...)
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("%v does not say %q:\n%s", c.args, w, out)
			}
		}
	}
	out := doctorOut(t, exitOK, "explain-session", "--requested", "180000", "--min", "60000", "--max", "90000", "--ensemble", "5", "--client", "java-3.4")
	for _, w := range []string{"granted                                  90 s", "read timeout                             60 s", "connect timeout per server               18 s", "patience with a dark ensemble           150 s   1.67 x", "connect timeout that would fit            6 s"} {
		if !strings.Contains(out, w) {
			t.Errorf("session does not say %q:\n%s", w, out)
		}
	}
	doctorOut(t, exitOK, "explain-session", "--client", "go")
	doctorOut(t, exitUsage, "explain-session", "--ensemble", "0")
	doctorOut(t, exitUsage, "explain-retries", "--hbase", "7")
	doctorOut(t, exitOK, "explain", "zk-timeout-clamped")
	doctorOut(t, exitUsage, "explain", "NOPE")
	if out := doctorOut(t, exitOK, "checks"); strings.Count(out, "\n") < 50 {
		t.Errorf("checks:\n%s", out)
	}
	doctorOut(t, exitOK, "schema")
}

func TestDoctorReplayRecovers(t *testing.T) {
	m, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, Servers: 2, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.CreateTable(t.Context(), "replay", []string{"f"}, []byte("m")); err != nil {
		t.Fatal(err)
	}
	s := &scene{m}
	for _, f := range []func(context.Context, *replayed) error{s.neverPossible, s.staleGateway} {
		var r replayed
		if err := f(t.Context(), &r); err != nil || !r.OK {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestDoctorLive(t *testing.T) {
	m, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, Servers: 2, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.CreateTable(t.Context(), "t", []string{"f"}, []byte("m")); err != nil {
		t.Fatal(err)
	}
	out := doctorOut(t, exitOK, "live", m.Address(), "-v")
	for _, w := range []string{"Mode: standalone", "holds hbaseid and rs", "2 regions, 0 not where hbase:meta says", "ZK_TIMEOUT_CLAMPED"} {
		if !strings.Contains(out, w) {
			t.Errorf("live does not say %q:\n%s", w, out)
		}
	}
	out = doctorOut(t, exitNo, "live", strings.TrimSuffix(m.Address(), "/hbase")+"/nosuch", "--step-timeout", "3s")
	if !strings.Contains(out, "ZNODE_PARENT_MISMATCH") || !strings.Contains(out, "and /hbase does") {
		t.Errorf("wrong parent:\n%s", out)
	}
	m.ZooKeeperServer().Refuse()
	doctorOut(t, exitNo, "live", m.Address(), "--step-timeout", "3s")
	doctorOut(t, exitUsage, "live", "x://y")
}
