package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// run executes the command line and gives what it prints and its exit code.
func run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), exitCode(err)
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		args string
		code int
	}{
		{"version", exitOK},
		{"version -o json", exitOK},
		{"version -o xml", exitUsage},
		{"nonsense", exitUsage},
		{"up --nonsense", exitUsage},
		{"up --in-memory --dir " + dir, exitUsage},
		{"up --in-memory --thrift-port 9090", exitUsage},
		{"up --in-memory --servers 0", exitUsage},
		{"demo --seconds 1", exitUsage},
		{"route explain onlyone", exitUsage},
		{"ctl slow 0 fast", exitUsage},
		{"ctl replica-lag soon", exitUsage},
		{"ctl --control 127.0.0.1:1 status", exitNo},
		{"shell hbase://127.0.0.1:1/hbase?operation-timeout=200ms -n -e list", exitNo},
		{"shell nonsense://x -e list", exitNo},
		{"shell nofile.txt", exitUsage},
		{"shell hbase://127.0.0.1:1 nofile", exitUsage},
		{"shell hbase://127.0.0.1:1 -e list", exitNo},
		{"route explain hbase://127.0.0.1:1 t r", exitNo},
		{"demo --address hbase://127.0.0.1:1", exitNo},
		{"--version", exitOK},
	} {
		if _, code := run(t, strings.Fields(tc.args)...); code != tc.code {
			t.Errorf("holdfast %s: exit code %d, want %d", tc.args, code, tc.code)
		}
	}
}

// TestNearMisses: what was probably meant is named.
func TestNearMisses(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"shelll", "did you mean `holdfast shell`?"},
		{"kill 0", "did you mean `holdfast ctl kill`?"},
		{"ctl kil 0", "did you mean `holdfast ctl kill`?"},
		{"ctl foo", "`holdfast ctl --help` lists them"},
		{"ctl rule ad", "did you mean `holdfast ctl rule add`?"},
		{"nonsense", "`holdfast --help` lists them"},
		{"ctl --control 127.0.0.1:1 status", "`holdfast up` starts a cluster"},
		{"shell nofile.txt", "no file nofile.txt"},
		{"shell hbase://127.0.0.1:1 -e list", "nothing runs at hbase://127.0.0.1:1/hbase"},
	} {
		root := newRoot()
		root.SetOut(&bytes.Buffer{})
		root.SetArgs(strings.Fields(tc.args))
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("holdfast %s: %v, want %q in it", tc.args, err, tc.want)
		}
	}
}

// TestHelpTeaches: every command says what it is for, and those that take
// arguments show how.
func TestHelpTeaches(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s has no description", c.CommandPath())
		}
		for _, s := range c.Commands() {
			walk(s)
		}
	}
	walk(newRoot())
}

// TestUp starts the cluster as the command does and uses every other command
// on it.
func TestUp(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready.json")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		root := newRoot()
		root.SetOut(&bytes.Buffer{})
		root.SetArgs([]string{"up", "--in-memory", "--zk-port", "0", "--master-port", "0", "--rs-port", "0", "--control-port", "0", "--ready-file", ready})
		done <- root.ExecuteContext(ctx)
	}()
	var r readyFile
	for deadline := time.Now().Add(20 * time.Second); ; {
		if b, err := os.ReadFile(ready); err == nil {
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatalf("ready file %s: %v", b, err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("not ready after 20 s")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if r.PID != os.Getpid() || len(r.RegionServers) != 3 || r.Thrift != "" || !strings.HasPrefix(r.Address, "hbase://127.0.0.1:") {
		t.Errorf("ready file %+v", r)
	}
	for _, tc := range []struct{ args, want string }{
		{"shell " + r.Address + " -n -e create|'t','f' -e put|'t','r\\x01','f:q','v' -e scan|'t'", "1 row(s)"},
		{"route explain " + r.Address + " t r", "learned"},
		{"route explain " + r.Address + " t r -o json", `"rowExists": false`},
		{"config " + r.Address, "operation-timeout"},
		{"ctl --control " + r.Control + " status", "running"},
		{"ctl --control " + r.Control + " move t r --to 1", "127.0.0.1"},
		{"ctl --control " + r.Control + " split t r --at m", "done"},
		{"ctl --control " + r.Control + " regions t -o json", `"start": "m"`},
		{"ctl --control " + r.Control + " kill 0", "done"},
		{"ctl --control " + r.Control + " start 0", "done"},
		{"ctl --control " + r.Control + " rule add --method Get --action delay --delay 1ms --times 1", `"id"`},
		{"ctl --control " + r.Control + " rule list", "delay"},
		{"ctl --control " + r.Control + " log --kind cluster", "kill"},
		{"ctl --control " + r.Control + " log --limit 1 --kind cluster --method kill", "kill"},
		{"ctl --control " + r.Control + " log --limit 1 --kind cluster --since 0", "start-master"},
		{"ctl --control " + r.Control + " generate big --regions 2000 --key-format k%05d --family x", "done"},
		{"ctl --control " + r.Control + " regions big", "k01999"},
		{"ctl --control " + r.Control + " replica-lag 2s", "done"},
		{"ctl --control " + r.Control + " clock", "now"},
		{"ctl --control " + r.Control + " clock --at 2030-01-02T03:04:05Z", "2030-01-02T03:04:05Z"},
		{"ctl --control " + r.Control + " clock --reset", "false"},
		{"ctl --control " + r.Control + " create orders --family f,g --replicas 2 k m", "done"},
		{"ctl --control " + r.Control + " regions orders -o json", `"start": "m"`},
		{"ctl --control " + r.Control + " drop orders", "done"},
		{"ctl --control " + r.Control + " group fast --add --server 1", "done"},
		{"ctl --control " + r.Control + " group default --server 1", "done"},
		{"ctl --control " + r.Control + " group fast --remove", "done"},
		{"ctl --control " + r.Control + " add-server", `"index":3`},
		{"ctl --control " + r.Control + " move 1588230740 --to 2", "hbase:meta"},
		{"ctl --control " + r.Control + " log --outcome ok --service MasterService --user " + me() + " --limit 1", "127.0.0.1:"},
		{"ctl --control " + r.Control + " counters", "ClientService."},
		{"ctl --control " + r.Control + " master --fail-next java.io.IOException --message no --of CreateTableProcedure", "done"},
		{"ctl --control " + r.Control + " rule clear", "done"},
		{"ctl --control " + r.Control + " rule add --action meta-hole --table t --start-row m", `"id"`},
		{"ctl --control " + r.Control + " rule add --action meta-overlap --table t --end z\\x00", `"id"`},
		{"ctl --control " + r.Control + " rule add --action meta-stale --table t --location 1", `"id"`},
		{"ctl --control " + r.Control + " rule add --action throttle --bytes-per-second 1000 --table none", `"id"`},
		{"ctl --control " + r.Control + " rule add --action oversize --size 5 --table none", `"id"`},
		{"ctl --control " + r.Control + " rule list", `"end":"z\\x00"`},
		{"ctl --control " + r.Control + " rule clear", "done"},
		{"ctl --control " + r.Control + " zk set /hbase/meta-region-server \\xFFrubbish", "done"},
		{"ctl --control " + r.Control + " zk get /hbase/meta-region-server", "\\xFFrubbish"},
		{"ctl --control " + r.Control + " zk restore", "done"},
		{"ctl --control " + r.Control + " zk get /hbase/meta-region-server", "PBUF"},
		{"ctl --control " + r.Control + " zk fault healthy --latency 1ms", "done"},
		{"ctl --control " + r.Control + " reckon-space", "done"},
		{"ctl --control " + r.Control + " zk members", `{"mode":"healthy","latency":"1ms"}`},
		{"ctl --control " + r.Control + " zk fault leaderless --member 0", "done"},
		{"ctl --control " + r.Control + " zk mend", "done"},
		{"ctl --control " + r.Control + " reset", "done"},
	} {
		args := strings.Fields(tc.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "|", " ")
		}
		out, code := run(t, args...)
		if code != exitOK || !strings.Contains(out, tc.want) {
			t.Errorf("holdfast %s: exit code %d, printed\n%s\nwant %q in it", tc.args, code, out, tc.want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("up ended with %v", err)
	}
	if _, err := os.Stat(ready); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ready file is still there: %v", err)
	}
}

// me is the user whose name clients give.
func me() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// TestUpRefuses: what cannot start says why, at once.
func TestUpRefuses(t *testing.T) {
	dir := t.TempDir()
	c, err := minihbase.Start(t.Context(), minihbase.Options{Dir: dir, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ports := []string{"--zk-port", "0", "--master-port", "0", "--rs-port", "0", "--control-port", "0"}
	if _, code := run(t, append([]string{"up", "--dir", dir}, ports...)...); code != exitNo {
		t.Errorf("a second process on one folder: exit code %d", code)
	}
	if _, code := run(t, append([]string{"up", "--in-memory", "--servers", "-1"}, ports...)...); code != exitUsage {
		t.Errorf("-1 servers: exit code %d", code)
	}
}
