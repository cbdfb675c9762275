package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/demo"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func newDemo() *cobra.Command {
	var (
		seconds int
		addr    string
		output  string
		page    string
		workers int
		regions int
		table   string
		delay   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "a table under load survives a move, a split, an rsgroup move and a kill",
		Long: `Starts an embedded cluster in memory and puts a table under load: writers,
counters, readers and a scanner, every operation with a deadline of 3 seconds.
Then a region moves, one splits, the whole table changes its rsgroup and comes
back, and a server is killed. At the end every acknowledged write is looked for.

With --address it does the same to a real cluster, except for the kill: it makes
the table "holdfast_demo" there and drops one of that name first.

Exit code 0 only if nothing was lost, doubled, out of order or failed.`,
		Example: `  holdfast demo
  holdfast demo --seconds 60 -o json
  holdfast demo --address hbase://zk1:2181/hbase`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if seconds < 5 || seconds > 86400 {
				return usage("--seconds %d: 5 to 86400 are possible", seconds)
			}
			ctx := cmd.Context()
			cfg := demo.Config{Table: table, Regions: regions, Length: time.Duration(seconds) * time.Second, Workers: workers}
			closeAll, err := target(ctx, &cfg, addr, delay)
			if err != nil {
				return err
			}
			live := demo.NewLive(os.Stderr, output == "text" && isTerminal(os.Stderr), columns())
			cfg.Progress = live.Show
			run, err := demo.Start(ctx, cfg)
			if err = errors.Join(err, closeAll()); err != nil {
				return err
			}
			return report(cmd, run, output, page)
		},
	}
	f := cmd.Flags()
	f.IntVar(&seconds, "seconds", 15, "how long the load runs")
	f.StringVar(&addr, "address", "", "run against this cluster instead of an embedded one")
	f.StringVar(&page, "html", "holdfast-demo.html", "the page to write (empty: none)")
	f.IntVar(&workers, "workers", 8, "goroutines of each kind")
	f.IntVar(&regions, "regions", 32, "regions of the table")
	f.StringVar(&table, "table", "holdfast_demo", "the table, dropped first if it exists")
	f.DurationVar(&delay, "recovery-delay", 500*time.Millisecond, "how long a killed embedded server's regions stay closed")
	outputFlag(cmd, &output)
	return cmd
}

// target opens what the demo runs on; the function it gives closes it.
func target(ctx context.Context, cfg *demo.Config, addr string, delay time.Duration) (func() error, error) {
	var cluster *minihbase.Cluster
	if addr == "" {
		var err error
		cluster, err = minihbase.Start(ctx, minihbase.Options{InMemory: true, ControlPort: -1, RecoveryDelay: delay})
		if err != nil {
			return nil, err
		}
		addr = cluster.Address()
		cfg.Cluster = &demo.EmbeddedCluster{Cluster: cluster}
	} else if err := reachable(ctx, addr); err != nil {
		return nil, err
	}
	client, err := hbase.Open(ctx, addr)
	if err != nil {
		if cluster != nil {
			err = errors.Join(err, cluster.Close())
		}
		return nil, err
	}
	cfg.Client = client
	if cluster == nil {
		cfg.Cluster = &demo.RealCluster{Admin: client.Admin(), Name: addr}
		return client.Close, nil
	}
	return func() error { return errors.Join(client.Close(), cluster.Close()) }, nil
}

func report(cmd *cobra.Command, run *demo.Run, output, page string) error {
	if page != "" {
		f, err := os.Create(page)
		if err != nil {
			return err
		}
		if err := errors.Join(run.WriteHTML(f), f.Close()); err != nil {
			return err
		}
	}
	if output == "json" {
		if err := run.Verdict.WriteJSON(cmd.OutOrStdout()); err != nil {
			return err
		}
	} else {
		if err := run.Verdict.WriteText(cmd.OutOrStdout()); err != nil {
			return err
		}
		if page != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "picture: %s\n", page)
		}
	}
	if !run.Verdict.OK {
		return &exitError{code: exitNo}
	}
	return nil
}

// columns is the terminal's width, if the shell tells it.
func columns() int {
	n := 0
	// Not a number: the default width.
	_, _ = fmt.Sscan(os.Getenv("COLUMNS"), &n)
	return n
}
