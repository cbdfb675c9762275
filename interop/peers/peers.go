package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	t   testing.TB
	env []string
	zk  int
	// rs is the first region server's port less one.
	rs int
}

// Script is the path of the script that runs the peers.
func Script() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "hbase")
}

// Dir is where a set's jars, logs and data live; it fails the test if the jars
// have not been fetched.
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
			t.Logf("logs of the real cluster: %s", filepath.Join(Dir(t, set), "logs"))
		}
		c.run("down")
	})
	return c
}

// Open is Start for clusters that several tests share: with a number of region
// servers, and more <property> elements for hbase-site.xml. The caller closes
// it. Its servers cannot be killed or paused.
func Open(set string, servers int, site string) (*Cluster, error) {
	dir, err := dirOf(set)
	if err != nil {
		return nil, err
	}
	base, err := freePorts(servers + 3)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Set: set, zk: base, rs: base + 1}
	c.env = append(os.Environ(),
		"PEERS_DIR="+dir,
		"RS="+strconv.Itoa(servers),
		"ZK_PORT="+strconv.Itoa(c.zk),
		"MASTER_PORT="+strconv.Itoa(base+1),
		"RS_PORT="+strconv.Itoa(c.rs),
	)
	if site != "" {
		c.env = append(c.env, "EXTRA_SITE="+site)
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	for _, sub := range []string{"data", "logs"} {
		if err := os.RemoveAll(filepath.Join(dir, sub)); err != nil {
			return nil, err
		}
	}
	// Servers with a web port look for their pages, which no jar has; some
	// servlets do without.
	for _, pages := range []string{"master", "regionserver", "static"} {
		if err := os.MkdirAll(filepath.Join(dir, "conf", "hbase-webapps", pages), 0o755); err != nil {
			return nil, err
		}
	}
	if err := c.try("up", set); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close ends all processes of the cluster.
func (c *Cluster) Close() error { return c.try("down") }

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

func (c *Cluster) try(args ...string) error {
	out, err := runScript(c.env, 150*time.Second, nil, args...)
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
	return runScript(env, 5*time.Minute, strings.NewReader(commands), append([]string{"shell",
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
	return runScript(env, 5*time.Minute, nil, append([]string{"java", source,
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

// freePorts finds n consecutive free ports below the range from which systems
// take the local ends of outgoing connections, and gives the first.
func freePorts(n int) (int, error) {
	for range 100 {
		base := 20000 + rand.IntN(10000)
		var held []net.Listener
		for i := range n {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(base+i)))
			if err != nil {
				break
			}
			held = append(held, l)
		}
		for _, l := range held {
			l.Close()
		}
		if len(held) == n {
			return base, nil
		}
	}
	return 0, errors.New("no free ports between 20000 and 30000")
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
