package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func newBulkLoad() *cobra.Command {
	var (
		output string
		o      admin.BulkLoadOptions
		quiet  bool
	)
	cmd := &cobra.Command{
		Use:   "bulkload [ADDRESS] TABLE DIR",
		Short: "load the HFiles in DIR/FAMILY/ into a table",
		Long: `Groups the HFiles DIR/FAMILY/FILE by region, cuts those that reach over several,
and gives each region its files in one call, which takes all or none of them.
The region servers must see DIR under the same path. As with HBase's tool the
files are gone afterwards, unless --copy is given; names that begin with _ or .
are passed over.

` + addressHelp,
		Example: `  holdfast bulkload orders /data/hfiles
  holdfast bulkload hbase://127.0.0.1:2181/hbase ns:t ./out --copy`,
		Args: argsBetween(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !quiet {
				o.Progress = func(r admin.BulkLoadResult) {
					fmt.Fprintf(cmd.ErrOrStderr(), "loaded %d regions, %d cells\n", r.Regions, r.Cells)
				}
			}
			return withClient(cmd, args, 2, func(ctx context.Context, client *hbase.Client, args []string) error {
				res, err := client.Admin().BulkLoadWith(ctx, args[0], args[1], o)
				if output == "json" {
					return errors.Join(err, writeJSON(cmd.OutOrStdout(), struct {
						Files   int   `json:"files"`
						Split   int   `json:"split"`
						Regions int   `json:"regions"`
						Cells   int64 `json:"cells"`
					}{res.Files, res.Split, res.Regions, res.Cells}))
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%d files (%d of them cut), %d cells into %d regions of %s\n", res.Files, res.Split, res.Cells, res.Regions, args[0])
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Copy, "copy", false, "leave the files where they are")
	f.IntVar(&o.Parallel, "parallel", 4, "regions loaded at a time")
	f.BoolVarP(&quiet, "quiet", "q", false, "no progress on standard error")
	outputFlag(cmd, &output)
	return cmd
}
