package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// readySchema is the number of the ready file's form: it grows when a field
// changes its meaning, not when one is added.
const readySchema = 1

// readyFile is what --ready-file holds; a part that is off is "" or 0. It is
// described in docs/control-api.md.
type readyFile struct {
	Schema        int        `json:"schema"`
	Version       string     `json:"version"`
	PID           int        `json:"pid"`
	Address       string     `json:"address"`
	ZooKeeper     string     `json:"zookeeper"`
	ZooKeepers    []string   `json:"zookeepers"`
	ZNodeParent   string     `json:"znodeParent"`
	Master        string     `json:"master"`
	RegionServers []string   `json:"regionservers"`
	Thrift        string     `json:"thrift"`
	Thrift2       string     `json:"thrift2"`
	REST          string     `json:"rest"`
	Control       string     `json:"control"`
	Ports         readyPorts `json:"ports"`
}

// readyPorts are the ports of the addresses, for who wants numbers.
type readyPorts struct {
	ZooKeeper     int   `json:"zookeeper"`
	ZooKeepers    []int `json:"zookeepers"`
	Master        int   `json:"master"`
	RegionServers []int `json:"regionservers"`
	Control       int   `json:"control"`
}

func readyOf(c *minihbase.Cluster, znodeParent string) readyFile {
	r := readyFile{
		Schema: readySchema, Version: version(), PID: os.Getpid(),
		Address: c.Address(), ZooKeeper: c.ZooKeeper(), ZooKeepers: c.ZooKeepers(), ZNodeParent: znodeParent, Master: c.Master(), RegionServers: c.RegionServers(), Control: c.Control(),
		Ports: readyPorts{ZooKeeper: portIn(c.ZooKeepers()[0]), Master: portIn(c.Master()), Control: portIn(strings.TrimPrefix(c.Control(), "http://"))},
	}
	for _, a := range r.ZooKeepers {
		r.Ports.ZooKeepers = append(r.Ports.ZooKeepers, portIn(a))
	}
	for _, a := range r.RegionServers {
		r.Ports.RegionServers = append(r.Ports.RegionServers, portIn(a))
	}
	return r
}

// portIn is the port of host:port, 0 of nothing.
func portIn(address string) int {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}

func newUp() *cobra.Command {
	var (
		o      minihbase.Options
		ready  string
		output string
		debug  bool
		free   bool
		life   lifeline
		memory int64
		thrift [3]int
	)
	cmd := &cobra.Command{
		Use:   "up",
		Short: "the embedded cluster, in the foreground",
		Long: `Runs a ZooKeeper endpoint, a master and region servers that unchanged HBase
clients connect to, over one store in a folder or in memory. Ctrl-C closes it
cleanly; kill -9 loses nothing that was acknowledged.

Ports: 0 takes any free port, --free-ports does for all. Region servers and the
members of an ensemble take consecutive ports.

For tests: wait until the ready file is there (it appears whole), read addresses
from it, and let the cluster end with --die-with-parent or --die-with-stdin, so
that a test run that crashes leaves none behind. docs/control-api.md has the
file's form.`,
		Example: `  holdfast up                                  data in ./holdfast-data
  holdfast up --in-memory --servers 5
  holdfast up --in-memory --free-ports --ready-file ready.json --die-with-parent`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, name := range []string{"thrift-port", "thrift2-port", "rest-port"} {
				if cmd.Flags().Changed(name) && thrift[i] != -1 {
					return usage("unsupported: --%s: the gateways are not there yet", name)
				}
			}
			if o.Servers < 1 {
				return usage("--servers %d: at least one", o.Servers)
			}
			if o.ZooKeepers < 1 {
				return usage("--zookeepers %d: at least one", o.ZooKeepers)
			}
			if o.InMemory {
				if cmd.Flags().Changed("dir") {
					return usage("--dir and --in-memory exclude one another")
				}
				o.Dir = ""
			}
			if free {
				for name, port := range map[string]*int{"zk-port": &o.ZooKeeperPort, "master-port": &o.MasterPort, "rs-port": &o.RegionServerPort, "control-port": &o.ControlPort} {
					if !cmd.Flags().Changed(name) {
						*port = 0
					}
				}
			}
			ctx, stop, err := life.follow(cmd.Context(), cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer stop()
			if ready != "" {
				// One that was left behind by a run that crashed would be taken
				// for this one's.
				if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
					return fmt.Errorf("ready file: %w", err)
				}
			}
			level := slog.LevelWarn
			if debug {
				level = slog.LevelDebug
			}
			o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
			defer boundMemory(memory << 20)()
			begin := time.Now()
			c, err := minihbase.Start(ctx, o)
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("%w; does a cluster run already? --free-ports takes any that are free, --zk-port, --master-port, --rs-port and --control-port choose others", err)
			}
			if ended := lifelineEnded(ctx); err != nil && ended != nil {
				return fmt.Errorf("%w before the cluster was ready", ended)
			}
			if err != nil {
				return err
			}
			r := readyOf(c, o.ZNodeParent)
			if ready != "" {
				if err := writeReady(ready, r); err != nil {
					return errors.Join(err, c.Close())
				}
			}
			if output == "json" {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			} else {
				err = printReady(cmd, r, c, o.Dir, time.Since(begin))
			}
			if err != nil {
				return errors.Join(err, c.Close())
			}
			select {
			case <-ctx.Done():
				if ended := lifelineEnded(ctx); ended != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), "holdfast: closing:", ended)
				}
			case <-c.Done():
			}
			if ready != "" {
				// Whoever waits for the file must not find a stale one.
				if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
					return errors.Join(err, c.Close())
				}
			}
			return c.Close()
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "holdfast-data", "folder of the data, made if missing")
	f.BoolVar(&o.InMemory, "in-memory", false, "keep everything in memory")
	f.IntVar(&o.Servers, "servers", 3, "number of region servers")
	f.IntVar(&o.BackupMasters, "backup-masters", 0, "number of backup masters")
	f.IntVar(&o.ZooKeepers, "zookeepers", 1, "number of members of the ZooKeeper ensemble")
	f.IntVar(&o.ZooKeeperPort, "zk-port", 2181, "ZooKeeper's port, an ensemble's first")
	f.IntVar(&o.MasterPort, "master-port", 16000, "the master's port")
	f.IntVar(&o.RegionServerPort, "rs-port", 16020, "the first region server's port")
	f.IntVar(&o.ControlPort, "control-port", 16900, "the control port, always on loopback (-1 = off)")
	f.IntVar(&thrift[0], "thrift-port", -1, "Thrift 1 gateway (not there yet)")
	f.IntVar(&thrift[1], "thrift2-port", -1, "Thrift 2 gateway (not there yet)")
	f.IntVar(&thrift[2], "rest-port", -1, "REST gateway (not there yet)")
	f.StringVar(&o.Advertise, "advertise", "127.0.0.1", "host name under which clients reach the servers")
	f.StringVar(&o.ZNodeParent, "znode-parent", "/hbase", "zookeeper.znode.parent")
	f.BoolVar(&o.Quotas, "quotas", false, "keep and enforce quotas (hbase.quota.enabled)")
	f.IntVar(&o.MaxCalls, "max-calls", 0, "calls in flight of a region server, beyond which it answers CallQueueTooBigException (0 = 32768)")
	f.BoolVar(&o.SlowLog, "slow-log", false, "keep slow and large calls (hbase.regionserver.slowlog.buffer.enabled)")
	f.DurationVar(&o.SlowLogTime, "slow-log-time", 10*time.Second, "what is slow (hbase.ipc.warn.response.time)")
	f.Int64Var(&o.SlowLogBytes, "slow-log-bytes", 100<<20, "what is large (hbase.ipc.warn.response.size)")
	f.BoolVar(&o.BalancerLog, "balancer-log", false, "keep what the balancer decided and rejected (hbase.master.balancer.decision.buffer.enabled, ...rejection...)")
	f.BoolVar(&o.LoseUnsynced, "lose-unsynced", false, "region servers that die lose the ASYNC_WAL and SKIP_WAL writes that HBase would lose")
	f.BoolVar(&o.NoFsync, "no-fsync", false, "acknowledge writes before they are on disk")
	f.Int64Var(&memory, "memory", defaultMemory, "MiB to hold besides the program before garbage is collected ever more often; grows with what must be held (0 = Go's defaults; GOMEMLIMIT or GOGC count instead)")
	f.DurationVar(&o.SessionTimeout, "session-timeout", 0, "how long a killed region server stays in ZooKeeper")
	f.DurationVar(&o.RecoveryDelay, "recovery-delay", 0, "how long a dead server's regions stay closed")
	f.StringVar(&ready, "ready-file", "", "written, all at once, when clients can connect: JSON with pid and addresses")
	f.BoolVar(&free, "free-ports", false, "any free port for every server whose port is not given")
	f.BoolVar(&life.parent, "die-with-parent", false, "end when the process that started this one has ended (not on Windows)")
	f.BoolVar(&life.stdin, "die-with-stdin", false, "end when standard input does: a pipe from the test run closes however that ends")
	f.BoolVar(&debug, "debug", false, "log what the servers do")
	outputFlag(cmd, &output)
	return cmd
}

func printReady(cmd *cobra.Command, r readyFile, c *minihbase.Cluster, dir string, took time.Duration) error {
	where := "data in " + dir
	if dir == "" {
		where = "in memory"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), `ready in %d ms, %s

  address         %s
  zookeeper       %s
  master          %s
  region servers  %s
  control         %s
  console         %s

hbase-site.xml for Java clients:
%s
holdfast shell %s
Ctrl-C closes it.
`, took.Milliseconds(), where, r.Address, r.ZooKeeper, r.Master, joinList(r.RegionServers), orOff(r.Control), orOff(consoleOf(r.Control)), c.SiteXML(), r.Address)
	return err
}

// consoleOf is the page's address for a browser; "" if there is no control port.
func consoleOf(control string) string {
	if control == "" {
		return ""
	}
	return control + "/"
}

func joinList(list []string) string {
	s := ""
	for i, e := range list {
		if i > 0 {
			s += " "
		}
		s += e
	}
	return s
}

func orOff(s string) string {
	if s == "" {
		return "off"
	}
	return s
}

// writeReady makes the file appear whole: readers never see half of it.
func writeReady(path string, r readyFile) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	_, err = tmp.Write(append(b, '\n'))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("ready file: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}
