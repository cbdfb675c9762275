package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/doctor/live"
)

func newDoctorLive() *cobra.Command {
	var (
		d       doctorFlags
		o       live.Options
		verbose bool
	)
	cmd := &cobra.Command{
		Use:   "live [ADDRESS]",
		Short: "read-only look at a running cluster: names, ports, ZooKeeper, hbase:meta against the servers",
		Long: `Resolves every name, connects to every port, asks each ZooKeeper server whether
it serves and what sessions it grants, looks for HBase's nodes, compares
hbase:meta with itself (holes, overlaps) and with what the servers hold, and
their clocks with this host's. It writes nothing.

Exit codes as of doctor; 4 if a check could not run.

` + addressHelp,
		Example: "  holdfast doctor live hbase://zk1:2181,zk2:2181/hbase",
		Args:    argsBetween(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			arg := ""
			if len(args) > 0 {
				arg = args[0]
			}
			addr, err := address(arg)
			if err != nil {
				return err
			}
			r, steps, err := live.Check(cmd.Context(), addr, o)
			if r == nil {
				return usage("%w", err)
			}
			r.Version = version()
			incomplete := errors.Is(err, live.ErrIncomplete)
			if d.output == "text" {
				for _, s := range steps {
					mark := "ok  "
					if !s.OK {
						mark = "FAIL"
					}
					if !s.Ran {
						mark = "not run"
					}
					if verbose || !s.OK {
						fmt.Fprintf(cmd.OutOrStdout(), "%-7s %-40s %6.0f ms  %s\n", mark, s.What, float64(s.Took)/1e6, s.Text)
					}
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%d steps\n\n", len(steps))
			}
			if err := d.print(cmd, r); err != nil {
				return err
			}
			if incomplete {
				return &exitError{exitLive, live.ErrIncomplete}
			}
			return nil
		},
	}
	d.add(cmd)
	cmd.Flags().DurationVar(&o.Dial, "dial-timeout", 3*time.Second, "limit for one connect")
	cmd.Flags().DurationVar(&o.Step, "step-timeout", 15*time.Second, "limit for one step")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print every step, not only failed ones")
	return cmd
}
