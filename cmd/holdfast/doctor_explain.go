package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/doctor/checks"
	docreport "github.com/holdfast-hbase/holdfast/doctor/report"
)

// millis is a flag in HBase's unit: bare numbers are milliseconds; 90s, 2m work too.
type millis int64

func (m *millis) String() string { return fmt.Sprint(int64(*m)) }
func (m *millis) Type() string   { return "ms" }
func (m *millis) Set(s string) error {
	if d, err := time.ParseDuration(s); err == nil && strings.Trim(s, "0123456789") != "" {
		*m = millis(d.Milliseconds())
		return nil
	}
	var v int64
	if _, err := fmt.Sscanf(s, "%d", &v); err != nil || fmt.Sprint(v) != s || v < 0 {
		return fmt.Errorf("want milliseconds (60000) or a duration (60s)")
	}
	*m = millis(v)
	return nil
}

func newDoctorExplainRetries() *cobra.Command {
	var (
		output, hbase  string
		pause, rpc, op millis
		retries        int64
	)
	cmd := &cobra.Command{
		Use:   "explain-retries",
		Short: "a retry schedule, attempt by attempt, in both index conventions",
		Long: `Computes when a Java client of a release tries again, how long all attempts
last, and whether the clock or the count ends them. The tables are those that
this project's own client tests itself against.`,
		Example: `  holdfast doctor explain-retries --pause 50 --retries 21 --hbase 0.98
  holdfast doctor explain-retries --rpc-timeout 1200000 --operation-timeout 1200000 --hbase 0.98`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := checks.ExplainRetries(hbase, int64(pause), retries, int64(rpc), int64(op))
			if err != nil {
				return usage("%w", err)
			}
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), t)
			}
			printRetries(cmd.OutOrStdout(), t)
			return nil
		},
	}
	outputFlag(cmd, &output)
	f := cmd.Flags()
	f.Var(&pause, "pause", "hbase.client.pause; the release's default if 0")
	f.Int64Var(&retries, "retries", -1, "hbase.client.retries.number; the release's default if negative")
	f.Var(&rpc, "rpc-timeout", "hbase.rpc.timeout; the release's default if 0")
	f.Var(&op, "operation-timeout", "hbase.client.operation.timeout; the release's default if 0")
	f.StringVar(&hbase, "hbase", "0.98", "release: 0.94, 0.98, 1.x, 2.x, 3.x or a full number")
	return cmd
}

func printRetries(w io.Writer, t checks.RetryTable) {
	op := "unlimited"
	if t.OperationTimeout > 0 {
		op = checks.Seconds(t.OperationTimeout)
	}
	fmt.Fprintf(w, "HBase %s: pause %d ms, retries %d = %d attempts, rpc timeout %s, operation timeout %s\n", t.HBase, t.Pause, t.Retries, t.Attempts, checks.Seconds(t.RPCTimeout), op)
	fmt.Fprintf(w, "multipliers %v, the last repeats; longest pause %s; region calls of this release use %s\n\n", t.Multipliers, checks.Seconds(t.LongestPause), t.Convention)
	fmt.Fprintf(w, "%8s", "attempt")
	for _, c := range t.Columns {
		fmt.Fprintf(w, "  %10s %10s", c.Convention, "sum")
	}
	fmt.Fprintln(w)
	for _, s := range t.Steps {
		fmt.Fprintf(w, "%8d", s.Attempt)
		for i := range s.Sleep {
			fmt.Fprintf(w, "  %10d %10d", s.Sleep[i], s.Sum[i])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, c := range t.Columns {
		fmt.Fprintf(w, "%s: %d pauses (the number counts attempts) %s; %d pauses (it counts retries) %s; jitter adds up to %s\n", c.Convention, max(t.Retries-1, 0), checks.Seconds(c.IfAttempts), max(t.Retries, 1), checks.Seconds(c.IfRetries), checks.Seconds(c.Jitter))
	}
	for _, e := range t.Ends {
		fmt.Fprintf(w, "if %s: %d attempts in %s, ended by %s\n", e.Case, e.Attempts, checks.Seconds(e.Total), e.By)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
}

func newDoctorExplainSession() *cobra.Command {
	var (
		output, client          string
		requested, lo, hi, tick millis
		ensemble                int
	)
	requested, tick = 90000, 2000
	cmd := &cobra.Command{
		Use:   "explain-session",
		Short: "the timers of a ZooKeeper session and what fits into it",
		Long: `Computes what a server grants, when the client drops a silent connection, how
long it tries each server, when the server expires the session, and how many
unreachable servers a client survives.`,
		Example: "  holdfast doctor explain-session --requested 180000 --min 60000 --max 90000 --ensemble 5 --client java-3.4",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := checks.ExplainSession(int64(requested), int64(lo), int64(hi), int64(tick), ensemble, client)
			if err != nil {
				return usage("%w", err)
			}
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), t)
			}
			printSession(cmd.OutOrStdout(), t)
			return nil
		},
	}
	outputFlag(cmd, &output)
	f := cmd.Flags()
	f.Var(&requested, "requested", "zookeeper.session.timeout of the client")
	f.Var(&lo, "min", "minSessionTimeout of the servers; 2 ticks if 0")
	f.Var(&hi, "max", "maxSessionTimeout of the servers; 20 ticks if 0")
	f.Var(&tick, "tick", "tickTime of the servers")
	f.IntVar(&ensemble, "ensemble", 3, "number of servers")
	f.Var(&choice{value: &client, allowed: []string{"java-3.4", "java-3.9", "go"}}, "client", "java-3.4, java-3.9, or go: this project's")
	client = "java-3.9"
	return cmd
}

func printSession(w io.Writer, t checks.SessionTable) {
	row := func(name string, v int64, why string) {
		fmt.Fprintf(w, "%-34s %10s   %s\n", name, checks.Seconds(v), why)
	}
	row("requested", t.Requested, "")
	row("granted", t.Negotiated, fmt.Sprintf("min(max(%d, %d), %d)", t.Requested, t.Min, t.Max))
	row("ping", t.Ping, "")
	row("read timeout", t.Read, "silence after which the client drops the connection")
	row("left then", t.Left, fmt.Sprintf("%d - %d", t.Negotiated, t.Read))
	row("connect timeout per server", t.Connect, fmt.Sprintf("of %d servers", t.Ensemble))
	fmt.Fprintf(w, "%-34s %10d   \n", "whole attempts that fit", t.Fit)
	row("patience with a dark ensemble", t.Patience, fmt.Sprintf("%.2f x the session", float64(t.Patience)/float64(t.Negotiated)))
	row("connect timeout that would fit", t.FitConnect, fmt.Sprintf("%d / %d servers", t.Left, t.Ensemble))
	row("server expires after at least", t.ExpiryMin, "from the last packet heard")
	row("server expires after at most", t.ExpiryMax, fmt.Sprintf("up to one tick of %d later", t.Tick))
	if t.ClientSays > 0 {
		row("client declares expiry after", t.ClientSays, "")
	}
	for _, n := range t.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, s := range t.SourceLines {
		fmt.Fprintf(w, "source: %s (%s)\n", s.Rule, s.Source)
	}
}

func newDoctorChecks() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "checks", Short: "list of all verdicts", Args: noArgs, Example: "  holdfast doctor checks",
		RunE: func(cmd *cobra.Command, args []string) error {
			list := checks.Catalog()
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), list)
			}
			for _, e := range list {
				fmt.Fprintf(cmd.OutOrStdout(), "%-30s %-9s %s\n", e.ID, e.Severity, e.Meaning)
			}
			return nil
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func newDoctorExplain() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "explain ID", Short: "one verdict: what it means, how it is decided, how to confirm and fix it", Args: argsBetween(1, 1), Example: "  holdfast doctor explain RETRY_NEVER_POSSIBLE",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, e := range checks.Catalog() {
				ids = append(ids, e.ID)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e, ok := checks.Explain(args[0])
			if !ok {
				return usage("no verdict %q; `holdfast doctor checks` lists them", args[0])
			}
			w := cmd.OutOrStdout()
			if output == "json" {
				return writeJSON(w, e)
			}
			fmt.Fprintf(w, "%s (%s at most)\n\nmeaning   %s\ndecided   %s\nconfirm   %s\n", e.ID, e.Severity, e.Meaning, e.Decided, e.Confirm)
			for _, f := range e.Fix {
				fmt.Fprintf(w, "fix       %s\n", f)
			}
			for _, n := range e.Not {
				fmt.Fprintf(w, "not       %s\n", n)
			}
			return nil
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func newDoctorSchema() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "the JSON Schema of -o json", Args: noArgs, RunE: func(cmd *cobra.Command, args []string) error {
		_, err := cmd.OutOrStdout().Write(docreport.Schema)
		return err
	}}
}
