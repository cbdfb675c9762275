package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// asCommand has the test's own binary be the command: its arguments follow.
const asCommand = "HOLDFAST_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// upArgs starts an in-memory cluster on free ports.
func upArgs(ready string, more ...string) []string {
	return append([]string{"up", "--in-memory", "--free-ports", "--servers", "2", "--ready-file", ready}, more...)
}

// waitReady waits for the ready file.
func waitReady(t *testing.T, path string) (r readyFile) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil {
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatalf("ready file %s: %v", b, err)
			}
			return r
		}
		if time.Now().After(deadline) {
			t.Fatal("not ready after two minutes")
		}
	}
}

// waitGone waits until the ready file has been removed.
func waitGone(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("still there after two minutes")
		}
	}
}

// TestReadyFile: what is in it, and that a stale one is not taken for it. The
// cluster ends with its standard input.
func TestReadyFile(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready.json")
	if err := os.WriteFile(ready, []byte("left behind by a run that crashed"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, lifeline := io.Pipe()
	done := make(chan error, 1)
	root := newRoot()
	var said bytes.Buffer
	root.SetIn(in)
	root.SetOut(&bytes.Buffer{})
	root.SetErr(&said)
	root.SetArgs(upArgs(ready, "--znode-parent", "/h", "--die-with-stdin", "--zookeepers", "2"))
	go func() { done <- root.ExecuteContext(t.Context()) }()
	// The stale file goes before anything else happens.
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(ready); errors.Is(err, os.ErrNotExist) || bytes.HasPrefix(b, []byte("{")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the stale file is still there")
		}
	}
	r := waitReady(t, ready)
	if r.Schema != 1 || r.Version == "" || r.PID != os.Getpid() || r.ZNodeParent != "/h" || r.Address != "hbase://"+r.ZooKeeper+"/h" {
		t.Errorf("ready file %+v", r)
	}
	if len(r.ZooKeepers) != 2 || len(r.Ports.ZooKeepers) != 2 || r.ZooKeeper != strings.Join(r.ZooKeepers, ",") {
		t.Fatalf("ready file %+v", r)
	}
	if len(r.RegionServers) != 2 || len(r.Ports.RegionServers) != 2 || r.Thrift != "" {
		t.Errorf("ready file %+v", r)
	}
	for address, port := range map[string]int{r.ZooKeepers[0]: r.Ports.ZooKeeper, r.ZooKeepers[1]: r.Ports.ZooKeepers[1], r.Master: r.Ports.Master, r.RegionServers[1]: r.Ports.RegionServers[1], strings.TrimPrefix(r.Control, "http://"): r.Ports.Control} {
		if n := portIn(address); n != port || n == 0 {
			t.Errorf("address %q, port %d", address, port)
		}
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			continue
		}
		nc.Close()
	}
	if err := lifeline.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("up ended with %v", err)
	}
	if !strings.Contains(said.String(), "standard input has ended") {
		t.Errorf("it does not say why it ended: %q", said.String())
	}
	waitGone(t, ready)
}

// TestDieWithParent: a shell starts a cluster and goes away; the cluster does,
// too.
func TestDieWithParent(t *testing.T) {
	if runtime.GOOS == "windows" {
		if _, code := run(t, "up", "--in-memory", "--die-with-parent"); code != exitUsage {
			t.Errorf("exit code %d", code)
		}
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready.json")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// The shell waits for a line that never comes, and ends with its input.
	shell := exec.CommandContext(ctx, "sh", append([]string{"-c", `"$@" </dev/null & read line`, "sh", exe}, upArgs(ready, "--die-with-parent")...)...)
	shell.Env = append(os.Environ(), asCommand+"=1")
	input, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	r := waitReady(t, ready)
	if r.PID == os.Getpid() {
		t.Error("it is this process")
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	// read fails at the end of its input, and so does the shell.
	_ = shell.Wait()
	waitGone(t, ready)
}

// TestPortsTaken: a second cluster on the same ports says which one is taken,
// and how to choose others; it leaves no ready file.
func TestPortsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready.json")
	for flag, want := range map[string]string{"--zk-port": "zookeeper", "--master-port": "master 0", "--rs-port": "region server 0", "--control-port": "control port"} {
		root := newRoot()
		root.SetOut(&bytes.Buffer{})
		root.SetArgs(upArgs(ready, flag, port))
		err := root.ExecuteContext(t.Context())
		if err == nil {
			t.Fatalf("%s: it runs on a port that is taken", flag)
		}
		for _, w := range []string{want, port, "in use", "--free-ports"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", flag, err, w)
			}
		}
		if _, err := os.Stat(ready); err == nil {
			t.Errorf("%s: there is a ready file", flag)
		}
	}
}
