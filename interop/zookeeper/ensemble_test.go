//go:build interop

package zookeeper

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// ensemble is a set of real ZooKeeper servers on loopback, one process each, tick 2 s, syncLimit 5.
type ensemble struct {
	t     *testing.T
	lib   string
	ports []int // client ports
	dirs  []string
	procs []*exec.Cmd
}

// startEnsemble starts n servers with fresh data and waits until all serve. They end with the test.
func startEnsemble(t *testing.T, n int) *ensemble {
	t.Helper()
	lib := os.Getenv("HOLDFAST_PEERS_LIB")
	if lib == "" {
		t.Fatal("HOLDFAST_PEERS_LIB is not set: it must name a directory with ZooKeeper's jars (make interop sets it)")
	}
	if jars, _ := filepath.Glob(filepath.Join(lib, "zookeeper-[0-9]*.jar")); len(jars) == 0 {
		t.Fatalf("HOLDFAST_PEERS_LIB=%s holds no zookeeper-*.jar", lib)
	}
	e := &ensemble{t: t, lib: lib, procs: make([]*exec.Cmd, n)}
	ports, err := peers.ReservePorts(3 * n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ports.Release)
	t.Cleanup(func() {
		for i := range e.procs {
			e.kill(i)
		}
	})
	var others strings.Builder
	for i := range n {
		e.ports = append(e.ports, ports.First+i)
		e.dirs = append(e.dirs, t.TempDir())
		if n > 1 {
			fmt.Fprintf(&others, "server.%d=127.0.0.1:%d:%d\n", i+1, ports.First+n+2*i, ports.First+n+2*i+1)
		}
	}
	for i := range n {
		conf := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n%s",
			e.dirs[i], e.ports[i], others.String())
		write(t, filepath.Join(e.dirs[i], "zoo.cfg"), conf)
		write(t, filepath.Join(e.dirs[i], "myid"), fmt.Sprint(i+1))
		e.start(i)
	}
	for i := range n {
		e.wait(i)
	}
	return e
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (e *ensemble) start(i int) {
	e.t.Helper()
	log, err := os.OpenFile(filepath.Join(e.dirs[i], "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		e.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-cp", filepath.Join(e.lib, "*"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(e.dirs[i], "zoo.cfg"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.procs[i] = cmd
}

func (e *ensemble) addr(i int) string { return fmt.Sprintf("127.0.0.1:%d", e.ports[i]) }

func (e *ensemble) addrs() []string {
	var out []string
	for i := range e.ports {
		out = append(out, e.addr(i))
	}
	return out
}

// srvr asks a server how it is; "" if it does not say.
func (e *ensemble) srvr(i int) string {
	c, err := net.DialTimeout("tcp", e.addr(i), time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Second))
	io.WriteString(c, "srvr")
	b, _ := io.ReadAll(c)
	return string(b)
}

func (e *ensemble) wait(i int) {
	e.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if strings.Contains(e.srvr(i), "Mode: ") {
			return
		}
	}
	log, _ := os.ReadFile(filepath.Join(e.dirs[i], "log"))
	e.t.Fatalf("server %d does not serve; its log ends:\n%s", i, log[max(0, len(log)-3000):])
}

// role returns the index of a server with that mode, other than not.
func (e *ensemble) role(mode string, not int) int {
	e.t.Helper()
	for i := range e.procs {
		if i != not && strings.Contains(e.srvr(i), "Mode: "+mode) {
			return i
		}
	}
	e.t.Fatalf("no %s", mode)
	return -1
}

func (e *ensemble) signal(i int, s syscall.Signal) {
	e.t.Helper()
	if err := e.procs[i].Process.Signal(s); err != nil {
		e.t.Fatal(err)
	}
}

// freeze stops a server, and returns when it stands still.
func (e *ensemble) freeze(i int) {
	e.t.Helper()
	e.signal(i, syscall.SIGSTOP)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.procs[i].Process.Pid))
		if err != nil {
			e.t.Fatal(err)
		}
		// Behind the name, which is in parentheses, comes the state.
		if at := strings.LastIndexByte(string(stat), ')'); strings.HasPrefix(string(stat[at:]), ") T") {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("server %d does not stop: %s", i, stat)
		}
	}
}

func (e *ensemble) thaw(i int) { e.t.Helper(); e.signal(i, syscall.SIGCONT) }

// kill is kill -9; a server that is not running is left alone.
func (e *ensemble) kill(i int) {
	if p := e.procs[i]; p != nil {
		p.Process.Kill()
		p.Wait()
		e.procs[i] = nil
	}
}

func ctx(t *testing.T, limit time.Duration) context.Context {
	c, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return c
}
