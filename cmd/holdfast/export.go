package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/export"
)

// withClient opens the cluster at an address that is optional on the command
// line: args holds it if there is one more than want.
func withClient(cmd *cobra.Command, args []string, want int, use func(ctx context.Context, client *hbase.Client, args []string) error) (err error) {
	arg := ""
	if len(args) > want {
		arg, args = args[0], args[1:]
	}
	addr, err := address(arg)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := reachable(ctx, addr); err != nil {
		return err
	}
	client, err := hbase.Open(ctx, addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return use(ctx, client, args)
}

// progressLine tells a person how far it is.
func progressLine(w io.Writer, verb string) func(export.Progress) {
	begin := time.Now()
	return func(p export.Progress) {
		of := ""
		if p.OfParts > 0 {
			of = fmt.Sprintf("/%d", p.OfParts)
		}
		fmt.Fprintf(w, "%s region %d%s: %d rows, %d cells, %.1f MiB, %.0f cells/s\n", verb, p.Parts, of, p.Totals.Rows, p.Totals.Cells,
			float64(p.Bytes)/(1<<20), float64(p.Totals.Cells)/max(time.Since(begin).Seconds(), 1e-3))
	}
}

type totalsLine struct {
	Table string `json:"table"`
	File  string `json:"file"`
	Rows  int64  `json:"rows"`
	Cells int64  `json:"cells"`
	Sum   string `json:"crc32c"`
}

func printTotals(cmd *cobra.Command, output, verb, table, file string, t export.Totals) error {
	l := totalsLine{Table: table, File: file, Rows: t.Rows, Cells: t.Cells, Sum: fmt.Sprintf("%08x", t.Sum)}
	if output == "json" {
		return writeJSON(cmd.OutOrStdout(), l)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %d rows, %d cells (crc32c %s)\n", verb, l.Rows, l.Cells, l.Sum)
	return err
}

func newExport() *cobra.Command {
	var (
		output      string
		start, stop string
		all, quiet  bool
		since, till string
		o           export.Options
	)
	cmd := &cobra.Command{
		Use:   "export [ADDRESS] TABLE FILE",
		Short: "write a table to a compressed, checksummed file",
		Long: `Scans the table region by region into FILE.part, which becomes FILE when it is
complete. If the export is interrupted, the same command goes on behind the last
whole region. The format is described in docs/export-format.md. Writes that
happen meanwhile may or may not be in the file; tags are not exported.

` + addressHelp,
		Example: `  holdfast export orders orders.export
  holdfast export hbase://127.0.0.1:2181/hbase orders o.export --all-versions
  holdfast export orders o.export --start user-1 --stop user-2 --from 2026-01-01T00:00:00Z`,
		Args: argsBetween(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			for _, bound := range []struct {
				text string
				to   *[]byte
			}{{start, &o.Start}, {stop, &o.Stop}} {
				if bound.text == "" {
					continue
				}
				if *bound.to, err = rowArgument(bound.text); err != nil {
					return err
				}
			}
			for _, bound := range []struct {
				text string
				to   *int64
			}{{since, &o.MinTime}, {till, &o.MaxTime}} {
				if *bound.to, err = timeArgument(bound.text); err != nil {
					return err
				}
			}
			if o.MaxTime != 0 && o.MaxTime <= o.MinTime {
				return usage("--to must be later than --from")
			}
			if all {
				o.Versions = hbase.AllVersions
			}
			if o.Raw && o.Versions == 0 {
				o.Versions = hbase.AllVersions
			}
			if !quiet {
				o.Progress = progressLine(cmd.ErrOrStderr(), "exported")
			}
			return withClient(cmd, args, 2, func(ctx context.Context, client *hbase.Client, args []string) error {
				t, err := export.Run(ctx, client, args[0], args[1], o)
				if err != nil {
					if _, e := os.Stat(args[1] + ".part"); e == nil && ctx.Err() != nil {
						err = fmt.Errorf("%w; the same command goes on with %s.part", err, args[1])
					}
					return err
				}
				return printTotals(cmd, output, "exported", args[0], args[1], t)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&start, "start", "", `first row (\xHH for a byte)`)
	f.StringVar(&stop, "stop", "", "first row left out")
	f.StringVar(&since, "from", "", "cells stamped at or after: ms since 1970, or RFC 3339")
	f.StringVar(&till, "to", "", "cells stamped before")
	f.IntVar(&o.Versions, "versions", 0, "versions of each column (1 unless said)")
	f.BoolVar(&all, "all-versions", false, "every version")
	f.BoolVar(&o.Raw, "raw", false, "delete markers and what they hide, too; every version")
	f.StringArrayVar(&o.Families, "family", nil, "only this family (may be repeated)")
	f.BoolVar(&o.Restart, "restart", false, "begin anew even if FILE.part is there")
	f.BoolVarP(&quiet, "quiet", "q", false, "no progress on standard error")
	outputFlag(cmd, &output)
	return cmd
}

func newImport() *cobra.Command {
	var (
		output string
		quiet  bool
		verify bool
		o      export.ImportOptions
	)
	cmd := &cobra.Command{
		Use:   "import [ADDRESS] FILE [TABLE]",
		Short: "write an exported file into a table",
		Long: `Reads the file to its end and compares every checksum and count before anything
is written, then writes its cells with their timestamps. TABLE is the exported
one unless said. A damaged, incomplete or newer file is refused. Importing twice
changes nothing more.

` + addressHelp,
		Example: `  holdfast import orders.export
  holdfast import orders.export orders_copy --create --check
  holdfast import --verify orders.export`,
		Args: argsBetween(1, 3),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if verify {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				h, _, t, err := export.Verify(f, args[0])
				if err := errors.Join(err, f.Close()); err != nil {
					return err
				}
				return printTotals(cmd, output, "whole:", h.Table, args[0], t)
			}
			if !quiet {
				o.Progress = progressLine(cmd.ErrOrStderr(), "imported")
			}
			// With two arguments the first is the file if there is one.
			want := len(args)
			if len(args) == 3 {
				want = 2
			} else if len(args) == 2 {
				if _, err := os.Stat(args[0]); err != nil {
					want = 1
				} else if st, err := os.Stat(args[1]); err == nil && st.Mode().IsRegular() {
					want = 1
				}
			}
			return withClient(cmd, args, want, func(ctx context.Context, client *hbase.Client, args []string) error {
				if len(args) == 2 {
					o.Table = args[1]
				}
				t, err := export.Import(ctx, client, args[0], &o)
				if err != nil {
					return err
				}
				return printTotals(cmd, output, "imported", o.Table, args[0], t)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Create, "create", false, "make the table if it does not exist, as the exported one was")
	f.BoolVar(&o.Check, "check", false, "read the rows back and compare; the table must hold nothing else there")
	f.BoolVar(&verify, "verify", false, "only read the file and compare its checksums")
	f.BoolVarP(&quiet, "quiet", "q", false, "no progress on standard error")
	outputFlag(cmd, &output)
	return cmd
}

// timeArgument reads a time in ms, or as RFC 3339; "" is 0.
func timeArgument(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	var ms int64
	if n, err := fmt.Sscanf(text+" ", "%d ", &ms); err == nil && n == 1 && fmt.Sprint(ms) == text && ms >= 0 {
		return ms, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, usage("time %q: want ms since 1970, or RFC 3339 as in 2026-01-31T12:00:00Z", text)
	}
	return t.UnixMilli(), nil
}
