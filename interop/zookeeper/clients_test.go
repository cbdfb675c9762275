//go:build interop

package zookeeper

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// guestsDir fetches the clients that others wrote, once.
func guestsDir(t *testing.T) string {
	t.Helper()
	peers := os.Getenv("HOLDFAST_PEERS")
	if peers == "" {
		t.Fatal("HOLDFAST_PEERS is not set: run these tests with make interop (or interop/run -run NAME PACKAGE)")
	}
	dir := filepath.Join(peers, "zookeeper-guests")
	if out, err := exec.CommandContext(ctx(t, 5*time.Minute), "guests/fetch", dir).CombinedOutput(); err != nil {
		t.Fatalf("guests/fetch: %v\n%s", err, out)
	}
	return dir
}

// both runs a script on real ZooKeeper and on the embedded cluster's endpoint at one time and compares what it prints, line by line.
func both(t *testing.T, e *ensemble, script func(ctx context.Context, addr string) (string, error)) {
	t.Helper()
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	limit := ctx(t, 3*time.Minute)
	var out [2]string
	var errs [2]error
	var wg sync.WaitGroup
	for i, addr := range []string{e.addr(0), c.ZooKeeper()} {
		wg.Go(func() { out[i], errs[i] = script(limit, addr) })
	}
	wg.Wait()
	for i, on := range []string{"real ZooKeeper", "the embedded endpoint"} {
		if errs[i] != nil {
			t.Fatalf("on %s: %v\n%s", on, errs[i], out[i])
		}
	}
	lines := strings.Split(strings.TrimSpace(out[0]), "\n")
	if diff := cmp.Diff(lines, strings.Split(strings.TrimSpace(out[1]), "\n")); diff != "" {
		t.Errorf("answers differ (- real, + embedded):\n%s", diff)
	}
	t.Logf("%d lines compared", len(lines))
}

// command runs a program and gives its standard output; standard error joins it if it fails.
func command(ctx context.Context, stdin string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String() + "\nstandard error: " + errs.String(), err
	}
	return out.String(), nil
}

// TestClients has clients that others wrote, unchanged, do what they can on both servers, and compares all they hear: results, error codes, every field of
// every Stat (zxids relative to the first node's, times within bounds), and the order of events.
func TestClients(t *testing.T) {
	e := startEnsemble(t, 1)
	dir := guestsDir(t)
	t.Run("go-zookeeper", func(t *testing.T) {
		both(t, e, func(ctx context.Context, addr string) (string, error) { return goScript(ctx, addr) })
	})
	t.Run("kazoo", func(t *testing.T) {
		both(t, e, func(ctx context.Context, addr string) (string, error) {
			return command(ctx, "", "env", "PYTHONPATH="+filepath.Join(dir, "kazoo"), "python3", "guests/guest.py", addr)
		})
	})
	t.Run("Curator", func(t *testing.T) {
		both(t, e, func(ctx context.Context, addr string) (string, error) {
			return command(ctx, "", "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", filepath.Join(dir, "curator", "*"), "guests/CuratorGuest.java", addr)
		})
	})
	t.Run("zkCli", func(t *testing.T) {
		commands, err := os.ReadFile("guests/zkcli.txt")
		if err != nil {
			t.Fatal(err)
		}
		both(t, e, func(ctx context.Context, addr string) (string, error) {
			return zkCli(ctx, filepath.Join(e.lib, "*"), addr, string(commands))
		})
	})
}

// zkCli feeds commands to ZooKeeperMain, the program behind zkCli.sh, and puts what differs between any two runs aside.
func zkCli(ctx context.Context, classes, addr, commands string) (string, error) {
	cmd := exec.CommandContext(ctx, "java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dzookeeper.jline.disable=true", "-cp", classes,
		"org.apache.zookeeper.ZooKeeperMain", "-server", addr, "-waitforconnection")
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = strings.NewReader(commands)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out // errors are printed there
	if err := cmd.Run(); err != nil {
		return out.String(), err
	}
	text, told := apart(out.String())
	text += "events:\n" + told
	base := int64(0)
	for i, v := range volatile {
		text = v.re.ReplaceAllStringFunc(text, func(s string) string {
			if i > 0 {
				return v.re.ReplaceAllString(s, v.to)
			}
			m := v.re.FindStringSubmatch(s)
			zxid, err := strconv.ParseInt(m[2], 16, 64)
			if err != nil || zxid == 0 {
				return s
			}
			if base == 0 {
				base = zxid
			}
			return fmt.Sprintf("%sZxid = %+d", m[1], zxid-base)
		})
	}
	return text, nil
}

// apart sorts lists and takes events out, since what the event thread prints falls anywhere among the answers. They keep their own order.
func apart(text string) (answers, events string) {
	for line := range strings.Lines(text) {
		list, ok := strings.CutPrefix(strings.TrimSpace(line), "[")
		switch {
		case strings.HasPrefix(line, "WatchedEvent state:Closed "):
			// What the client tells itself at its end, if it still comes to it.
		case strings.HasPrefix(line, "WatchedEvent "):
			events += line
		case strings.HasPrefix(line, "WATCHER::") || strings.TrimSpace(line) == "":
		case ok:
			names := strings.Split(strings.TrimSuffix(list, "]"), ", ")
			slices.Sort(names)
			answers += fmt.Sprintln(names)
		default:
			answers += line
		}
	}
	return answers, events
}

var volatile = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`([cmp])Zxid = 0x([0-9a-f]+)`), ""},
	{regexp.MustCompile(`([cm])time = .*`), "${1}time = TIME"},
	{regexp.MustCompile(`ephemeralOwner = 0x[0-9a-f]{6,}`), "ephemeralOwner = SESSION"},
	{regexp.MustCompile(`(?m)^.*(log4j|SLF4J).*\n`), ""},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "SERVER"},
}

// goScript is what go-zookeeper can do.
func goScript(ctx context.Context, addr string) (string, error) {
	var out strings.Builder
	c, session, err := gozk.Connect([]string{addr}, 10*time.Second, gozk.WithLogger(quiet{}))
	if err != nil {
		return "", err
	}
	defer c.Close()
	for c.State() != gozk.StateHasSession {
		select {
		case <-session:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	open := gozk.WorldACL(gozk.PermAll)
	base := int64(0)
	say := func(name string, err error, values ...any) {
		fmt.Fprintf(&out, "%s:", name)
		for _, v := range values {
			switch v := v.(type) {
			case *gozk.Stat:
				if v == nil {
					fmt.Fprint(&out, " no stat")
					continue
				}
				owner := fmt.Sprint(v.EphemeralOwner)
				if v.EphemeralOwner == c.SessionID() {
					owner = "me"
				}
				fmt.Fprintf(&out, " stat(c%d m%d p%d v%d cv%d av%d owner=%s len=%d kids=%d times=%v)", v.Czxid-base, v.Mzxid-base, v.Pzxid-base,
					v.Version, v.Cversion, v.Aversion, owner, v.DataLength, v.NumChildren, time.Since(time.UnixMilli(v.Ctime)).Abs() < 10*time.Minute && v.Mtime >= v.Ctime)
			case []byte:
				fmt.Fprintf(&out, " %q", v)
			default:
				fmt.Fprintf(&out, " %v", v)
			}
		}
		fmt.Fprintf(&out, " %v\n", err)
	}
	p, err := c.Create("/go", []byte("one"), 0, open)
	if _, stat, err := c.Get("/go"); err == nil {
		base = stat.Czxid
	}
	say("create", err, p)
	for _, n := range []struct {
		path  string
		flags int32
	}{{"/go", 0}, {"/none/x", 0}, {"/go/a", 0}, {"/go/e", gozk.FlagEphemeral}, {"/go/e/f", 0}, {"/go/s-", gozk.FlagSequence}, {"/go/s-", gozk.FlagEphemeralSequential}, {"/go//b", 0}} {
		p, err := c.Create(n.path, []byte("x"), n.flags, open)
		say("create "+n.path, err, p)
	}
	p, err = c.CreateContainer("/go/box", nil, gozk.FlagTTL-1, open)
	say("container", err, p)
	p, err = c.CreateTTL("/go/ttl", nil, gozk.FlagTTL, open, time.Second)
	say("ttl", err, p)
	data, stat, err := c.Get("/go/a")
	say("get", err, data, stat)
	_, _, err = c.Get("/go/none")
	say("get missing", err)
	ok, stat, err := c.Exists("/go/e")
	say("exists", err, ok, stat)
	stat, err = c.Set("/go/a", []byte("two"), 0)
	say("set", err, stat)
	_, err = c.Set("/go/a", nil, 0)
	say("set stale", err)
	kids, stat, err := c.Children("/go")
	slices.Sort(kids)
	say("children", err, kids, stat)
	say("delete full", c.Delete("/go", -1))
	say("delete stale", c.Delete("/go/a", 9))
	p, err = c.Sync("/go")
	say("sync", err, p)

	// Watches.
	_, _, ew, err := c.GetW("/go/a")
	say("watch", err)
	_, _, cw, err := c.ChildrenW("/go")
	say("watch children", err)
	_, _, xw, err := c.ExistsW("/go/later")
	say("watch missing", err)
	_, err = c.Set("/go/a", []byte("three"), -1)
	say("set watched", err)
	_, err = c.Create("/go/later", nil, 0, open)
	say("create awaited", err)
	for _, w := range []<-chan gozk.Event{ew, cw, xw} {
		select {
		case ev := <-w:
			fmt.Fprintf(&out, "event: %v %v %s\n", ev.Type, ev.State, ev.Path)
		case <-ctx.Done():
			return out.String(), ctx.Err()
		}
	}

	// Transactions.
	res, err := c.Multi(&gozk.CheckVersionRequest{Path: "/go/a", Version: 2}, &gozk.CreateRequest{Path: "/go/m", Data: []byte("m"), Acl: open},
		&gozk.SetDataRequest{Path: "/go/m", Data: []byte("n"), Version: 0}, &gozk.DeleteRequest{Path: "/go/later", Version: -1})
	say("multi", err)
	for _, r := range res {
		say("multi result", r.Error, r.String, r.Stat)
	}
	res, err = c.Multi(&gozk.SetDataRequest{Path: "/go/m", Data: []byte("o"), Version: -1}, &gozk.CheckVersionRequest{Path: "/go/m", Version: 9}, &gozk.DeleteRequest{Path: "/go/m", Version: -1})
	say("failing multi", err)
	for _, r := range res {
		say("failing multi result", r.Error)
	}

	// Identities.
	digest := gozk.DigestACL(gozk.PermAll, "user", "secret")
	p, err = c.Create("/go/mine", []byte("m"), 0, digest)
	say("create for somebody", err, p)
	_, _, err = c.Get("/go/mine")
	say("read without auth", err)
	say("auth", c.AddAuth("digest", []byte("user:secret")))
	data, _, err = c.Get("/go/mine")
	say("read with auth", err, data)
	acls, stat, err := c.GetACL("/go/mine")
	say("acl", err, acls, stat)
	stat, err = c.SetACL("/go/mine", open, 0)
	say("set acl", err, stat)
	_, err = c.SetACL("/go/mine", gozk.AuthACL(gozk.PermRead), 7)
	say("set acl stale", err)
	_, err = c.IncrementalReconfig([]string{"server.9=localhost:1:2"}, nil, -1)
	say("reconfig", err)
	lock := gozk.NewLock(c, "/go/lock", open)
	say("lock", lock.Lock())
	say("unlock", lock.Unlock())
	for _, ok := range gozk.FLWRuok([]string{addr}, 5*time.Second) {
		say("ruok", nil, ok)
	}
	return out.String(), nil
}

// quiet keeps go-zookeeper's log out of the test's output.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
