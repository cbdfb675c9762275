//go:build linux || darwin

package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The two sets of jars.
const (
	HBase24 = "full"   // 2.4.17: servers, client, shell
	HBase26 = "server" // 2.6.4: servers and client
)

// RegionServers is how many region servers a cluster has.
const RegionServers = 3

// Cluster is a running HBase: ZooKeeper, a master and three region servers, one
// process each.
type Cluster struct {
	Set string
	// Dir is the cluster's own directory: conf, logs, and data, which goes when
	// it is closed.
	Dir   string
	t     testing.TB
	env   []string
	ports *Ports
	zk    int
	// rs is the first region server's port less one.
	rs int
}

// Script is the path of the script that runs the peers.
func Script() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "hbase")
}

// Dir is where a set's jars are; it fails the test if they have not been
// fetched.
func Dir(t testing.TB, set string) string {
	t.Helper()
	dir, err := dirOf(set)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func dirOf(set string) (string, error) {
	base := os.Getenv("HOLDFAST_PEERS")
	if base == "" {
		return "", errors.New("HOLDFAST_PEERS is not set: run these tests with make interop (or interop/run -run NAME PACKAGE)")
	}
	dir := filepath.Join(base, set)
	if _, err := os.Stat(filepath.Join(dir, "lib-"+set)); err != nil {
		return "", fmt.Errorf("the jars of set %q are missing: %w", set, err)
	}
	return dir, nil
}

// Start brings a cluster up on free ports with fresh data, and ends it with the
// test. It takes about half a minute.
func Start(t testing.TB, set string) *Cluster {
	t.Helper()
	c, err := Open(set, RegionServers, "")
	if err != nil {
		t.Fatal(err)
	}
	c.t = t
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs of the real cluster: %s", filepath.Join(c.Dir, "logs"))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Open is Start for clusters that several tests share: with a number of region
// servers, and more <property> elements for hbase-site.xml. The caller closes
// it. Its servers cannot be killed or paused.
//
// Every cluster has a directory and ports of its own, so that any number of them
// run side by side, in one process or in several. One that does not come up is
// tried once more: somebody else may have taken a port.
func Open(set string, servers int, site string) (*Cluster, error) {
	c, first := openOnce(set, servers, site)
	if first == nil {
		return c, nil
	}
	c, err := openOnce(set, servers, site)
	if err != nil {
		return nil, errors.Join(first, err)
	}
	return c, nil
}

func openOnce(set string, servers int, site string) (*Cluster, error) {
	jars, err := dirOf(set)
	if err != nil {
		return nil, err
	}
	dir, err := clusterDir(jars, set)
	if err != nil {
		return nil, err
	}
	ports, err := ReservePorts(servers + 3)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Set: set, Dir: dir, ports: ports, zk: ports.First, rs: ports.First + 1}
	c.env = append(os.Environ(),
		"PEERS_DIR="+dir,
		"RS="+strconv.Itoa(servers),
		"ZK_PORT="+strconv.Itoa(c.zk),
		"MASTER_PORT="+strconv.Itoa(c.rs),
		"RS_PORT="+strconv.Itoa(c.rs),
	)
	if site != "" {
		c.env = append(c.env, "EXTRA_SITE="+site)
	}
	if err := c.try("up", set); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// clusterDir makes a directory for one cluster beside the jars' own, with those
// jars in it.
func clusterDir(jars, set string) (string, error) {
	jars, err := filepath.Abs(jars)
	if err != nil {
		return "", err
	}
	all := filepath.Join(filepath.Dir(jars), "clusters")
	if err := os.MkdirAll(all, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(all, set+"-")
	if err != nil {
		return "", err
	}
	if err := os.Symlink(filepath.Join(jars, "lib-"+set), filepath.Join(dir, "lib-"+set)); err != nil {
		return "", err
	}
	// Servers with a web port look for their pages, which no jar has; some
	// servlets do without.
	for _, pages := range []string{"master", "regionserver", "static"} {
		if err := os.MkdirAll(filepath.Join(dir, "conf", "hbase-webapps", pages), 0o755); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// Close ends all processes of the cluster and removes its data; its logs stay.
func (c *Cluster) Close() error {
	err := c.try("down")
	// Processes that are being killed may still write into it.
	for range 50 {
		if os.RemoveAll(filepath.Join(c.Dir, "data")) == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.ports.Release()
	return err
}

// Address is the cluster's address for a Holdfast client.
func (c *Cluster) Address() string {
	return fmt.Sprintf("hbase://%s/hbase", c.ZooKeeper())
}

// ZooKeeper is host:port of the cluster's ZooKeeper.
func (c *Cluster) ZooKeeper() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.zk)) }

// RegionServer is the address of region server n (from 1) as HBase names it.
func (c *Cluster) RegionServer(n int) string {
	return net.JoinHostPort("localhost", strconv.Itoa(c.rs+n))
}

// ServerNumber finds the number of the region server at host:port; 0 if there
// is none.
func (c *Cluster) ServerNumber(address string) int {
	for n := 1; n <= RegionServers; n++ {
		if c.RegionServer(n) == address {
			return n
		}
	}
	return 0
}

// Kill, StartServer, Pause and Resume are kill -9, a new start, SIGSTOP and
// SIGCONT of region server n (from 1).
func (c *Cluster) Kill(n int)        { c.run("kill-rs", strconv.Itoa(n)) }
func (c *Cluster) StartServer(n int) { c.run("start-rs", strconv.Itoa(n)) }
func (c *Cluster) Pause(n int)       { c.run("pause-rs", strconv.Itoa(n)) }
func (c *Cluster) Resume(n int)      { c.run("resume-rs", strconv.Itoa(n)) }

func (c *Cluster) run(args ...string) {
	c.t.Helper()
	if err := c.try(args...); err != nil {
		c.t.Fatal(err)
	}
}

// scriptLimit ends a script that hangs. It is far from what any of them takes, a
// crowded machine included.
const scriptLimit = 8 * time.Minute

func (c *Cluster) try(args ...string) error {
	out, err := runScript(c.env, scriptLimit, nil, args...)
	if err != nil {
		return fmt.Errorf("peers %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Interactive is the argument with which the real shell prints errors as at its
// prompt and goes on; without it, it ends with the first.
const Interactive = "interactive"

// Shell feeds commands to the real HBase shell 2.4.17 against a ZooKeeper and
// gives what it prints.
func Shell(t testing.TB, zookeeper, commands string, args ...string) (string, error) {
	t.Helper()
	host, port, err := net.SplitHostPort(zookeeper)
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PEERS_DIR="+Dir(t, HBase24))
	return runScript(env, scriptLimit, strings.NewReader(commands), append([]string{"shell",
		"hbase.zookeeper.quorum=" + host, "hbase.zookeeper.property.clientPort=" + port}, args...)...)
}

// Java runs a single-file Java program with the client of a set on its class
// path against a ZooKeeper.
func Java(t testing.TB, set, source, zookeeper string, args ...string) (string, error) {
	t.Helper()
	host, port, err := net.SplitHostPort(zookeeper)
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PEERS_DIR="+Dir(t, set))
	return runScript(env, scriptLimit, nil, append([]string{"java", source,
		"hbase.zookeeper.quorum=" + host, "hbase.zookeeper.property.clientPort=" + port}, args...)...)
}

// runScript gives standard output; standard error joins it only on failure.
func runScript(env []string, limit time.Duration, stdin *strings.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, Script(), args...)
	cmd.Env = env
	cmd.WaitDelay = 5 * time.Second
	if stdin != nil {
		cmd.Stdin = stdin
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		tail := errs.String()
		if len(tail) > 4000 {
			tail = "..." + tail[len(tail)-4000:]
		}
		return out.String() + "\nstandard error: " + tail, err
	}
	return out.String(), nil
}

// JavaCommand is the command that runs a single-file Java program with the
// client of a set on its class path against a ZooKeeper; first are its
// arguments before the client's settings.
func JavaCommand(t testing.TB, set, source, zookeeper string, first ...string) *exec.Cmd {
	t.Helper()
	host, port, err := net.SplitHostPort(zookeeper)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"java", source}, first...)
	cmd := exec.Command(Script(), append(args, "hbase.zookeeper.quorum="+host, "hbase.zookeeper.property.clientPort="+port)...)
	cmd.Env = append(os.Environ(), "PEERS_DIR="+Dir(t, set))
	return cmd
}
