package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

func newRetry() *cobra.Command {
	cmd := &cobra.Command{Use: "retry", Short: "the client's retries, made visible", Args: onlyCommands, RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() }}
	cmd.AddCommand(newRetryTrace(), newRetrySchedule())
	return cmd
}

// traced are the calls that can be traced.
var traced = map[string]string{
	"get":       "reads the row",
	"exists":    "asks whether the row exists",
	"put":       "WRITES --value into --column of the row",
	"increment": "ADDS --value (default 1) to the counter in --column of the row",
	"scan":      "reads --limit rows from the row on",
}

func newRetryTrace() *cobra.Command {
	var (
		output, column, value string
		timeout               time.Duration
		limit, times          int
	)
	cmd := &cobra.Command{
		Use:   "trace [ADDRESS] get|exists|put|increment|scan TABLE ROW",
		Short: "make one call and print everything it did: lookups, dials, attempts, decisions, waits",
		Long: `Makes one call with a client of its own, which knows nothing yet, and prints the
timeline: when each step began and how long it took, in milliseconds. Steps of
the client itself (reads of hbase:meta, dials, servers changing their state) are
indented: they would serve all calls of a process. Under a failed step stands
the error and what the client made of it: what it did to the route, to the
server, and how it waits. At the end stand the totals, and, if the call failed,
the error in plain words.

With --times N the call is made N times: from the second on, routes and
connections are known, and only the call itself is left.

get, exists and scan read; put and increment write. The row may hold \xHH for a
byte.

` + addressHelp + `

Exit codes: 0 the call succeeded, 1 it failed, 2 the command line makes no sense.`,
		Example: `  holdfast retry trace get orders user-17
  holdfast retry trace hbase://127.0.0.1:2181/hbase put orders user-17 --column f:q --value hello

  # What retries look like: a cluster, a rule that makes two answers fail, a call
  holdfast up --in-memory
  echo "create 'orders', 'f'" | holdfast shell
  holdfast ctl rule add --method Get --table orders --action fail --exception RegionTooBusyException --times 2
  holdfast retry trace get orders user-17
  holdfast ctl rule add --method Get --table orders --action drop-reply --times 1
  holdfast retry trace get orders user-17 --timeout 3s`,
		Args: argsBetween(3, 4),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 1 || len(args) == 1 && traced[args[0]] != "" {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var list []string
			for name, does := range traced {
				list = append(list, name+"\t"+does)
			}
			return list, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			arg := ""
			if traced[args[0]] == "" || len(args) == 4 {
				arg, args = args[0], args[1:]
			}
			if len(args) != 3 || traced[args[0]] == "" {
				return usage("which call? usage: %s", cmd.UseLine())
			}
			addr, err := address(arg)
			if err != nil {
				return err
			}
			table, err := meta.ParseTableName(args[1])
			if err != nil {
				return usage("%w", err)
			}
			row, err := rowArgument(args[2])
			if err != nil {
				return err
			}
			call, err := tracedCall(args[0], row, column, value, limit)
			if err != nil {
				return err
			}
			if err := reachable(cmd.Context(), addr); err != nil {
				return err
			}
			trace := hbase.NewTrace(10_000)
			failed, err := runTraced(cmd.Context(), addr, trace, table, call, timeout, times)
			if err != nil {
				return err
			}
			if err := printTrace(cmd.OutOrStdout(), output, trace, failed); err != nil {
				return err
			}
			if failed != nil {
				return &exitError{code: exitNo}
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "time for the call, with all its retries")
	cmd.Flags().StringVar(&column, "column", "", "family:qualifier for put and increment")
	cmd.Flags().StringVar(&value, "value", "", "value for put, amount for increment")
	cmd.Flags().IntVar(&limit, "limit", 10, "rows of a scan")
	cmd.Flags().IntVar(&times, "times", 1, "make the call so many times, one after another (1 to 100)")
	outputFlag(cmd, &output)
	return cmd
}

// tracedCall makes the call.
func tracedCall(name string, row []byte, column, value string, limit int) (func(ctx context.Context, t *hbase.Table) error, error) {
	family, qualifier, ok := strings.Cut(column, ":")
	if (name == "put" || name == "increment") && (!ok || family == "") {
		return nil, usage("%s needs --column family:qualifier", name)
	}
	switch name {
	case "get":
		return func(ctx context.Context, t *hbase.Table) error {
			_, err := t.Get(ctx, hbase.NewGet(row))
			return err
		}, nil
	case "exists":
		return func(ctx context.Context, t *hbase.Table) error {
			_, err := t.Exists(ctx, hbase.NewGet(row))
			return err
		}, nil
	case "put":
		return func(ctx context.Context, t *hbase.Table) error {
			return t.Put(ctx, hbase.NewPut(row).Set(family, qualifier, []byte(value)))
		}, nil
	case "increment":
		amount := int64(1)
		if value != "" {
			var err error
			if amount, err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, usage("--value %q is not a whole number", value)
			}
		}
		return func(ctx context.Context, t *hbase.Table) error {
			_, err := t.IncrementColumn(ctx, row, family, qualifier, amount)
			return err
		}, nil
	}
	if limit < 1 {
		return nil, usage("--limit %d is less than 1", limit)
	}
	return func(ctx context.Context, t *hbase.Table) error {
		for _, err := range t.Scan(ctx, &hbase.Scan{Start: row, Limit: limit}).Rows() {
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// runTraced makes the calls; failed is the error of the last one.
func runTraced(ctx context.Context, addr string, trace *hbase.Trace, name meta.TableName, call func(context.Context, *hbase.Table) error, timeout time.Duration, times int) (failed, err error) {
	if times < 1 || times > 100 {
		return nil, usage("--times %d is not between 1 and 100", times)
	}
	client, err := hbase.Open(ctx, addr, hbase.WithHooks(trace))
	if err != nil {
		return nil, err
	}
	ctx = trace.Mark(ctx) // so that the client's end is not part of it
	for range times {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		failed = call(bounded, client.TableOf(name))
		cancel()
	}
	return failed, client.Close()
}

func printTrace(w io.Writer, output string, trace *hbase.Trace, failed error) error {
	if output == "json" {
		raw, err := json.Marshal(trace)
		if err != nil {
			return err
		}
		return writeJSON(w, struct {
			OK          bool               `json:"ok"`
			Trace       json.RawMessage    `json:"trace"`
			Explanation *hbase.Explanation `json:"explanation,omitempty"`
		}{failed == nil, raw, hbase.Explain(failed)})
	}
	_, err := fmt.Fprint(w, "        ms         took\n", trace)
	if failed != nil {
		_, e := fmt.Fprintf(w, "\n%s", hbase.Explain(failed))
		err = errors.Join(err, e)
	}
	return err
}
