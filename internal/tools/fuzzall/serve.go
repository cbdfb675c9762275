package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// The cluster under attack is a process of its own, so that its memory is its
// own and a panic in it is seen. It answers each line on its standard input with
// one on its standard output, and ends with its input.

// fuzzTable is the table that requests are about.
const fuzzTable = "fuzz"

// picture is what the driver knows of the cluster.
type picture struct {
	Server, Master, ZooKeeper, Control string
	Regions, Encoded                   []string // of fuzzTable
	Goroutines, Servers                int
}

// Commands of the driver.
const (
	cmdLook  = "look"  // collect garbage, then tell
	cmdRenew = "renew" // give the cluster its first shape, so that what was stored does not count
)

func serve(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := minihbase.Start(ctx, minihbase.Options{InMemory: true, Servers: 2})
	if err != nil {
		return err
	}
	defer c.Close()
	enc := json.NewEncoder(out)
	tell := func() error {
		p := picture{Server: c.RegionServers()[0], Master: c.Master(), ZooKeeper: c.ZooKeeper(), Control: c.Control(), Goroutines: runtime.NumGoroutine(), Servers: len(c.RegionServers())}
		regions, err := c.Regions(fuzzTable)
		if err != nil {
			return err
		}
		for _, r := range regions {
			p.Regions, p.Encoded = append(p.Regions, r.Name), append(p.Encoded, r.Encoded)
		}
		return enc.Encode(p)
	}
	if err := renew(ctx, c); err != nil {
		return err
	}
	if err := tell(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case cmdLook:
			debug.FreeOSMemory()
		case cmdRenew:
			if err := renew(ctx, c); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown command %q", lines.Text())
		}
		if err := tell(); err != nil {
			return err
		}
	}
	return nil
}

// renew gives the cluster its first shape. The attack goes on meanwhile and may undo a step before the next is done; then it starts over.
func renew(ctx context.Context, c *minihbase.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var errs []error
	for range 20 {
		err := renewOnce(ctx, c)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
		pause(ctx, 100*time.Millisecond)
	}
	return errors.Join(errs...)
}

// renewOnce resets the cluster, removes foreign znodes, and makes the table again.
func renewOnce(ctx context.Context, c *minihbase.Cluster) error {
	if err := c.Reset(ctx); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	z := c.ZooKeeperServer()
	names, err := z.Children("/")
	if err != nil {
		return err
	}
	for _, n := range names {
		if n != "hbase" && n != "zookeeper" {
			if err := z.DeleteTree("/" + n); err != nil {
				return err
			}
		}
	}
	// The first server holds every region, since requests go there.
	if err := c.CreateTable(ctx, fuzzTable, []string{"f", "g"}, []byte("m")); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	regions, err := c.Regions(fuzzTable)
	if err != nil {
		return err
	}
	for _, r := range regions {
		if r.Index != 0 {
			if err := c.MoveRegion(ctx, r.Encoded, 0); err != nil {
				return fmt.Errorf("move: %w", err)
			}
		}
	}
	return nil
}

// memory reads a process's resident bytes, now and at their highest.
func memory(pid int) (now, peak int64, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kb int64
		if n, _ := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kb); n == 1 {
			peak = kb << 10
		}
		if n, _ := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kb); n == 1 {
			now = kb << 10
		}
	}
	if peak == 0 {
		return 0, 0, fmt.Errorf("process %d has no figures for its memory", pid)
	}
	return now, peak, nil
}
