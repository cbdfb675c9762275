package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/internal/registry"
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

const addressHelp = `Addresses:
  hbase://zk1:2181,zk2:2181/hbase   ZooKeeper quorum and znode parent
  hbase+rpc://m1:16000,m2:16000     RPC registry (HBase 2.5+, 3)
  DIR or FILE                       of an hbase-site.xml
  (nothing)                         $HOLDFAST_ADDRESS, then $HBASE_CONF_DIR, then the embedded cluster on 127.0.0.1:2181`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "HBase as its clients live it: embedded cluster, client tools, faults on demand",
		Long: `Holdfast is an HBase client that holds fast while regions move, an embedded
HBase-compatible cluster to run it against, and the tools around both.

Start here:
  holdfast demo                       watch a table survive moves, splits and a kill
  holdfast up --in-memory             a cluster for HBase clients in any language
  holdfast shell                      HBase shell commands

` + addressHelp + `

Exit codes: 0 done, 1 the answer is "no" or the work failed, 2 the command line makes no sense.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          onlyCommands,
		RunE:          func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w; `%s --help` shows the flags", err, cmd.CommandPath())
	})
	root.AddCommand(newUp(), newDemo(), newShell(), newCtl(), newRoute(), newRetry(), newConfig(), newDoctor(), newHFile(), newBulkLoad(), newExport(), newImport(), newFsck(), newVersion())
	return root
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), v)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "holdfast %s %s %s/%s\n", v.Version, v.Go, v.OS, v.Arch)
			return nil
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// outputFlag adds -o text|json.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().VarP(&choice{value: output, allowed: []string{"text", "json"}}, "output", "o", "text or json")
	*output = "text"
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)))
}

// choice is a flag that takes one of a few words.
type choice struct {
	value   *string
	allowed []string
}

func (c *choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c *choice) Type() string { return "string" }

func (c *choice) Set(s string) error {
	for _, a := range c.allowed {
		if s == a {
			*c.value = s
			return nil
		}
	}
	return fmt.Errorf("want one of %v", c.allowed)
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// onlyCommands refuses what is not the name of a command below cmd, and says
// which one may have been meant, be it a level deeper: kill for ctl kill.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	// Among short names everything is two letters away from something.
	cmd.SuggestionsMinimumDistance = min(2, len(args[0])/2)
	for _, near := range cmd.SuggestionsFor(args[0]) {
		return usage("unknown command %q; did you mean `%s %s`?", args[0], cmd.CommandPath(), near)
	}
	for _, c := range cmd.Commands() {
		if below, _, err := c.Find(args[:1]); err == nil && below != c {
			return usage("unknown command %q; did you mean `%s`?", args[0], below.CommandPath())
		}
	}
	return usage("unknown command %q; `%s --help` lists them", args[0], cmd.CommandPath())
}

// argsBetween checks the number of arguments and teaches the command's form.
func argsBetween(lo, hi int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < lo || len(args) > hi {
			return usage("got %d arguments; usage: %s", len(args), cmd.UseLine())
		}
		return nil
	}
}

// address gives the cluster a command talks to.
func address(arg string) (string, error) {
	for _, a := range []string{arg, os.Getenv("HOLDFAST_ADDRESS"), os.Getenv("HBASE_CONF_DIR")} {
		if a != "" {
			return a, nil
		}
	}
	return "hbase://127.0.0.1:2181/hbase", nil
}

// reachable says at once that nothing runs at an address. The client itself
// goes on trying, because a service must outlive its cluster's restart; a
// person who forgot to start one waits for nothing. Only certain answers
// count: whatever is merely slow is left to the client.
func reachable(ctx context.Context, addr string) error {
	a, err := registry.Parse(addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answers := make(chan error, len(a.Servers))
	var last error
	for _, server := range a.Servers {
		go func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
			if err == nil {
				err = conn.Close()
			}
			answers <- err
		}()
	}
	for range a.Servers {
		err := <-answers
		var name *net.DNSError
		if !errors.Is(err, syscall.ECONNREFUSED) && !(errors.As(err, &name) && name.IsNotFound) {
			return nil
		}
		last = err
	}
	return fmt.Errorf("nothing runs at %s: %w; `holdfast up` starts a cluster on this machine", a, last)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// must is for errors that only a programmer can cause, at start-up.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast: internal:", err)
		os.Exit(exitUsage)
	}
}

// isTerminal says whether a person watches f, and may see colours.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

var errInterrupted = errors.New("interrupted")
