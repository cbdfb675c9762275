package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/internal/embed/cluster"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
)

func newFsck() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "fsck DIR",
		Short: "check the data of a cluster that does not run",
		Long: `Reads everything in the data directory of an embedded cluster (holdfast up --dir)
and says what is wrong. It changes nothing. The cluster must not run: stop it
first, or copy its directory.

What is checked, and what a finding of that kind means:
  format     the file HOLDFAST says which format this is
  log, file  every block of every file is what was written (checksums); a log
             that ends in the middle of a write is none: that was never answered
  catalog    every table, region, namespace, group and snapshot decodes, has the
             key it should have, and a table id of its own
  region     the regions of each table cover all keys, once
  snapshot   each has a table, families, regions in order, and data of its own
  counter    table ids, region ids and sequence numbers in use lie below those
  sequence   that are given out next
  key, value every cell decodes, its tags too
  table      every cell belongs to a table or snapshot,
  family     and to a family it has
  znode      the stored znodes decode

A finding names the first place; "and N more" counts those like it. Notes are no
damage: what an interrupted drop or load has left, and the next start cleans up.

Exit codes: 0 nothing is wrong, 1 there are findings, or it could not be checked
(a cluster runs on DIR, DIR is no store), 2 the command line makes no sense.`,
		Example: `  holdfast fsck holdfast-data
  holdfast fsck holdfast-data -o json | jq .findings`,
		Args: argsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			errs := cmd.ErrOrStderr()
			r, err := cluster.Fsck(cmd.Context(), args[0], func(cells int64, part float64) {
				fmt.Fprintf(errs, "%d cells, about %.0f %%\n", cells, 100*part)
			})
			if errors.Is(err, store.ErrLocked) {
				return fmt.Errorf("%w; stop the cluster that runs on it first", err)
			}
			if err != nil {
				return err
			}
			if output == "json" {
				err = writeJSON(cmd.OutOrStdout(), r)
			} else {
				err = printReport(cmd.OutOrStdout(), r)
			}
			if err == nil && len(r.Findings) > 0 {
				err = &exitError{code: exitNo}
			}
			return err
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func printReport(out io.Writer, r *store.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		more := ""
		if f.Count > 1 {
			more = fmt.Sprintf(", and %d more", f.Count-1)
		}
		fmt.Fprintf(w, "%s\t%s\n\tat %s%s\n", f.Kind, f.What, f.Where, more)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	what := "nothing is wrong"
	if n := len(r.Findings); n > 0 {
		what = fmt.Sprintf("%d findings", n)
	}
	if !r.Complete {
		what += "; not everything could be read"
	}
	_, err := fmt.Fprintf(out, "%s: %d tables, %d regions, %d snapshots, %d cells, %d bytes, sequence numbers up to %d of %d: %s\n",
		r.Dir, r.Tables, r.Regions, r.Snapshots, r.Cells, r.Bytes, r.MaxSeq, r.SeqLimit, what)
	return err
}
