package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

// ctl holds what all of its subcommands share.
type ctl struct {
	control string
	output  string
	timeout time.Duration
}

func newCtl() *cobra.Command {
	c := &ctl{}
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "faults and moves on an embedded cluster",
		Long: `Talks to the control port of a cluster started with holdfast up. Where the
control port is: --control URL, else $HOLDFAST_CONTROL, else 127.0.0.1:16900.

Servers are named by index (0), host:port, host,port,startcode, or "meta" for
the one that holds hbase:meta; masters as master or master:1. Regions are named
by their encoded name, or as TABLE ROW.`,
		Example: `  holdfast ctl status
  holdfast ctl move orders user-17 --to 2
  holdfast ctl kill 0; holdfast ctl start 0
  holdfast ctl rule add --method Get --table orders --action delay --delay 2s --times 5
  holdfast ctl log --follow`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	p := cmd.PersistentFlags()
	p.StringVar(&c.control, "control", "", "the control port: URL or host:port")
	p.DurationVar(&c.timeout, "timeout", time.Minute, "give up after so long")
	p.VarP(&choice{value: &c.output, allowed: []string{"text", "json"}}, "output", "o", "text or json")
	c.output = "text"
	cmd.AddCommand(c.status(), c.regions(), c.kill(), c.move(), c.split(), c.merge(), c.create(), c.drop(), c.generate(), c.replicaLag(), c.group(), c.addServer(), c.counters(), c.balance(), c.reckonSpace(), c.reset(), c.log(), c.clock(), c.rule(), c.zookeeper(), c.master())
	for _, v := range []struct {
		name, about string
		call        func(*control.Client, context.Context, string) error
	}{
		{"stop", "end a server in order; its regions move first", (*control.Client).Stop},
		{"start", "start a server again at its old port", (*control.Client).Start},
		{"pause", "make a region server neither read nor write (SIGSTOP)", (*control.Client).Pause},
		{"hang", "make a region server read and never answer", (*control.Client).Hang},
		{"resume", "undo pause and hang", (*control.Client).Resume},
		{"expire", "end a region server's ZooKeeper session", (*control.Client).Expire},
		{"reset-connections", "reset every connection of a region server", (*control.Client).ResetConnections},
	} {
		cmd.AddCommand(&cobra.Command{Use: v.name + " SERVER", Short: v.about, Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			return nil, v.call(k, ctx, args[0])
		})})
	}
	cmd.AddCommand(&cobra.Command{Use: "slow SERVER DELAY", Short: "delay every answer of a region server; 0s ends that", Args: argsBetween(2, 2), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		d, err := time.ParseDuration(args[1])
		if err != nil {
			return nil, usage("delay: %w", err)
		}
		return nil, k.Slow(ctx, args[0], control.Duration(d))
	})})
	return cmd
}

// do runs a call on the control port and prints what it gives: nothing, a
// value, or with -o json the document.
func (c *ctl) do(call func(context.Context, *control.Client, []string) (any, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		k, err := c.client()
		if err != nil {
			return err
		}
		defer k.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), c.timeout)
		defer cancel()
		v, err := call(ctx, k, args)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("%w; `holdfast up` starts a cluster, --control and $HOLDFAST_CONTROL say where another one's control port is", err)
		}
		if err != nil {
			return err
		}
		if c.output == "json" {
			if v == nil {
				v = map[string]bool{"ok": true}
			}
			return writeJSON(cmd.OutOrStdout(), v)
		}
		return c.print(cmd, v)
	}
}

func (c *ctl) client() (*control.Client, error) {
	for _, a := range []string{c.control, os.Getenv("HOLDFAST_CONTROL"), "127.0.0.1:16900"} {
		if a != "" {
			return control.New(a)
		}
	}
	return nil, nil
}

func (c *ctl) print(cmd *cobra.Command, v any) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	switch v := v.(type) {
	case nil:
		fmt.Fprintln(w, "done")
	case control.Status:
		fmt.Fprintf(w, "address\t%s\nzookeeper\t%s\ncontrol\t%s\ncluster id\t%s\ntables\t%d\nregions\t%d\nhbase:meta on\t%s\n", v.Address, v.ZooKeeper, v.Control, v.ClusterID, v.Tables, v.Regions, v.Meta)
		for _, m := range v.Masters {
			state := "stopped"
			if m.Active {
				state = "active"
			} else if m.Running {
				state = "backup"
			}
			fmt.Fprintf(w, "master:%d\t%s\t%s\n", m.Index, m.Name, state)
		}
		for _, s := range v.Servers {
			fmt.Fprintf(w, "server %d\t%s\t%s\t%d regions\n", s.Index, s.Name, s.State, s.Regions)
		}
	case []control.Region:
		fmt.Fprintln(w, "TABLE\tENCODED\tSTART\tEND\tSTATE\tSERVER")
		for _, r := range v {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Table, r.Encoded, cells.Quote(r.Start), cells.Quote(r.End), r.State, r.Server)
		}
	case control.ZNode:
		fmt.Fprintf(w, "%s\t%s\n", v.Path, cells.Quote(v.Data))
		for _, n := range v.Children {
			fmt.Fprintf(w, "%s/%s\n", strings.TrimSuffix(v.Path, "/"), n)
		}
	case []control.Counter:
		fmt.Fprintln(w, "CALLS\tSERVER\tMETHOD\tTABLE\tOUTCOME")
		for _, n := range v {
			fmt.Fprintf(w, "%d\t%s\t%s.%s\t%s\t%s\n", n.Calls, n.Server, n.Service, n.Method, n.Table, n.Outcome)
		}
	case []control.ZooKeeperMember:
		fmt.Fprintln(w, "MEMBER\tADDRESS\tROLE\tFAULT")
		for _, m := range v {
			role := ""
			if len(v) > 1 {
				if role = "follower"; m.Leader {
					role = "leader"
				}
			}
			b, err := json.Marshal(m.Fault)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", m.Index, m.Address, role, b)
		}
	case []control.RuleStatus:
		fmt.Fprintln(w, "ID\tHITS\tRULE")
		for _, r := range v {
			b, err := json.Marshal(r.Rule)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%d\t%d\t%s\n", r.ID, r.Hits, b)
		}
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", b)
	}
	return w.Flush()
}

func (c *ctl) kill() *cobra.Command {
	var lose bool
	cmd := &cobra.Command{
		Use: "kill SERVER", Short: "end a server as kill -9 does", Args: argsBetween(1, 1),
		Long: `Ends a server as kill -9 does. No write is lost that was answered, unless
--lose-unsynced is given: then those vanish that HBase would lose, ASYNC_WAL
writes since the server's log was last synced (by a write of any region that
asks for it, or after a second) and SKIP_WAL writes since their region's last
flush.`,
		Example: "  holdfast ctl kill 0\n  holdfast ctl kill meta --lose-unsynced",
		RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			if lose {
				return nil, k.KillAndLose(ctx, args[0])
			}
			return nil, k.Kill(ctx, args[0])
		}),
	}
	cmd.Flags().BoolVar(&lose, "lose-unsynced", false, "writes that were not synced or flushed are lost, as on HBase")
	return cmd
}

func (c *ctl) status() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "addresses, servers and their states", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
		return k.Status(ctx)
	})}
}

func (c *ctl) regions() *cobra.Command {
	return &cobra.Command{Use: "regions [TABLE]", Short: "regions and where they are", Args: argsBetween(0, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		return k.Regions(ctx, strings.Join(args, ""))
	})}
}

// regionRef reads ENCODED, or TABLE ROW.
func regionRef(args []string) (control.RegionRef, error) {
	if len(args) == 1 {
		return control.RegionRef{Region: args[0]}, nil
	}
	row, err := rowArgument(args[1])
	return control.RegionRef{Table: args[0], Row: row}, err
}

func (c *ctl) move() *cobra.Command {
	var to string
	cmd := &cobra.Command{Use: "move (REGION | TABLE ROW)", Short: "move a region", Args: argsBetween(1, 2), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		ref, err := regionRef(args)
		if err != nil {
			return nil, err
		}
		r, err := k.Move(ctx, control.MoveRequest{RegionRef: ref, To: to})
		return []control.Region{r}, err
	})}
	cmd.Flags().StringVar(&to, "to", "", "the server to move it to (default: the master's choice)")
	return cmd
}

func (c *ctl) split() *cobra.Command {
	var at string
	cmd := &cobra.Command{Use: "split (REGION | TABLE ROW)", Short: "split a region, at a row or in its middle", Args: argsBetween(1, 2), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		ref, err := regionRef(args)
		if err != nil {
			return nil, err
		}
		key, err := rowArgument(at)
		if err != nil {
			return nil, err
		}
		return nil, k.Split(ctx, control.SplitRequest{RegionRef: ref, At: key})
	})}
	cmd.Flags().StringVar(&at, "at", "", "the row to split at (default: the middle of what is stored)")
	return cmd
}

func (c *ctl) merge() *cobra.Command {
	return &cobra.Command{Use: "merge REGION REGION...", Short: "merge neighbouring regions, named in key order", Args: argsBetween(2, 100), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		return nil, k.Merge(ctx, control.MergeRequest{Regions: args})
	})}
}

func (c *ctl) generate() *cobra.Command {
	var q control.GenerateRequest
	cmd := &cobra.Command{
		Use: "generate TABLE", Short: "make a table whose regions and rows follow a formula and are stored nowhere", Args: argsBetween(1, 1),
		Long: `Makes a table of up to 1,000,000 regions that cost no storage. Region i begins
at the key that --key-format makes of i; its rows are that key and, from the
second on, the key with -00001, -00002, ... behind it; each has the column "q" in
every family. The first write to a region stores its rows; from then on it is a
region like any other.`,
		Example: "  holdfast ctl generate big --regions 300000\n  holdfast ctl generate users --regions 1000 --key-format user%06d --rows 100 --family cf",
		RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			q.Table = args[0]
			return nil, k.GenerateTable(ctx, q)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&q.Regions, "regions", 1000, "number of regions")
	f.StringVar(&q.KeyFormat, "key-format", "", "start keys: a text with one %0Nd or %0Nx (default %08d)")
	f.StringSliceVar(&q.Families, "family", nil, "column families (default f)")
	f.IntVar(&q.Rows, "rows", 0, "rows of each region (0: 10, -1: none)")
	f.IntVar(&q.ValueSize, "value-size", 0, "bytes of each value (0: the row's key)")
	return cmd
}

func (c *ctl) replicaLag() *cobra.Command {
	return &cobra.Command{Use: "replica-lag DURATION", Short: "let secondary replicas show what was there so long ago; 0s ends that", Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		d, err := time.ParseDuration(args[0])
		if err != nil || d < 0 {
			return nil, usage("lag %q is not a duration like 5s", args[0])
		}
		return nil, k.ReplicaLag(ctx, control.Duration(d))
	})}
}

func (c *ctl) balance() *cobra.Command {
	return &cobra.Command{Use: "balance", Short: "even out the number of regions per server", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
		return k.Balance(ctx)
	})}
}

func (c *ctl) reset() *cobra.Command {
	return &cobra.Command{Use: "reset", Short: "drop all tables and undo all disturbances", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
		return nil, k.Reset(ctx)
	})}
}

func (c *ctl) log() *cobra.Command {
	var (
		follow bool
		limit  int
		since  uint64
		filter control.EventFilter
	)
	cmd := &cobra.Command{
		Use: "log", Short: "the event log: every call and every change of the cluster", Args: noArgs,
		Example: "  holdfast ctl log --table orders --failed\n  holdfast ctl log --follow --kind cluster",
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.client()
			if err != nil {
				return err
			}
			defer k.Close()
			show := func(e control.Event) error {
				if c.output == "json" {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(e)
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), eventLine(e))
				return err
			}
			ctx := cmd.Context()
			if follow {
				for e, err := range k.Follow(ctx, filter, since) {
					if err != nil {
						return err
					}
					if err := show(e); err != nil {
						return err
					}
				}
				return nil
			}
			if limit < 0 {
				return usage("--limit %d: 0 or more", limit)
			}
			// Who asks from an event on goes forwards page by page; everybody
			// else wants to see what happened last.
			first, last := 0, limit
			if cmd.Flags().Changed("since") {
				first, last = limit, 0
			}
			events, err := k.Events(ctx, filter, since, first)
			if err != nil {
				return err
			}
			list := events.Events
			if last > 0 {
				list = list[max(0, len(list)-last):]
			}
			for _, e := range list {
				if err := show(e); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on as things happen")
	f.IntVar(&limit, "limit", 200, "at most so many, the newest, or with --since the next (0: all that are remembered)")
	f.Uint64Var(&since, "since", 0, "only events after this sequence number")
	f.StringVar(&filter.Kind, "kind", "", "rpc or cluster")
	f.StringVar(&filter.Table, "table", "", "only this table")
	f.StringVar(&filter.Method, "method", "", "only this method")
	f.StringVar(&filter.Service, "service", "", "only this RPC service")
	f.StringVar(&filter.Server, "server", "", "only the server at this host:port")
	f.StringVar(&filter.Region, "region", "", "only the region of this encoded name")
	f.StringVar(&filter.User, "user", "", "only this user's calls")
	f.StringVar(&filter.Outcome, "outcome", "", "only this outcome: ok, dropped, closed, or an exception's class")
	f.Uint64Var(&filter.Rule, "rule", 0, "only what the rule of this id touched")
	f.BoolVar(&filter.Failed, "failed", false, "only calls that failed")
	return cmd
}

func eventLine(e control.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6d %s %-22s %s", e.Seq, e.Time.Local().Format("15:04:05.000"), e.Server, e.Method)
	for _, s := range []string{e.Table, e.Region, cells.Quote(e.Row), e.Detail} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if e.Latency > 0 {
		fmt.Fprintf(&b, " %s", time.Duration(e.Latency))
	}
	if e.Outcome != "" && e.Outcome != "ok" {
		b.WriteString(" " + e.Outcome)
	}
	if e.Rule != 0 {
		fmt.Fprintf(&b, " (rule %d)", e.Rule)
	}
	return b.String()
}

func (c *ctl) clock() *cobra.Command {
	var q control.ClockRequest
	var advance time.Duration
	var at string
	cmd := &cobra.Command{Use: "clock", Short: "read or change the cluster's clock", Args: noArgs, Example: "  holdfast ctl clock --freeze\n  holdfast ctl clock --at 2030-01-01T00:00:00Z\n  holdfast ctl clock --advance 24h\n  holdfast ctl clock --reset",
		RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			q.Advance = control.Duration(advance)
			if at != "" {
				t, err := time.Parse(time.RFC3339, at)
				if err != nil {
					return nil, usage("--at: %w", err)
				}
				q.At = &t
			}
			return k.Clock(ctx, q)
		})}
	f := cmd.Flags()
	f.BoolVar(&q.Freeze, "freeze", false, "stop it where it stands")
	f.StringVar(&at, "at", "", "stop it at this time, like 2030-01-01T00:00:00Z")
	f.BoolVar(&q.Resume, "resume", false, "let it run on")
	f.BoolVar(&q.Reset, "reset", false, "back to the system's time")
	f.DurationVar(&advance, "advance", 0, "move it ahead")
	return cmd
}

func (c *ctl) rule() *cobra.Command {
	cmd := &cobra.Command{Use: "rule", Short: "rules that make calls slow, lost or failing", Args: onlyCommands, RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() }}
	cmd.AddCommand(c.ruleAdd(),
		&cobra.Command{Use: "list", Short: "list the rules and their hits", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			return k.Rules(ctx)
		})},
		c.onRule("remove", "remove a rule; calls it holds go on", (*control.Client).RemoveRule),
		c.onRule("release", "let the calls go on that a hold rule holds", (*control.Client).ReleaseRule),
		&cobra.Command{Use: "clear", Short: "remove all rules", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			return nil, k.ClearRules(ctx)
		})},
	)
	var hits uint64
	wait := &cobra.Command{Use: "wait ID", Short: "wait until a rule has been hit", Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		id, err := ruleID(args[0])
		if err != nil {
			return nil, err
		}
		_, err = k.WaitRule(ctx, id, hits)
		return nil, err
	})}
	wait.Flags().Uint64Var(&hits, "hits", 1, "so many times")
	cmd.AddCommand(wait)
	return cmd
}

func ruleID(text string) (uint64, error) {
	var id uint64
	if _, err := fmt.Sscan(text, &id); err != nil {
		return 0, usage("rule id %q is not a number", text)
	}
	return id, nil
}

func (c *ctl) onRule(name, about string, call func(*control.Client, context.Context, uint64) error) *cobra.Command {
	return &cobra.Command{Use: name + " ID", Short: about, Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		id, err := ruleID(args[0])
		if err != nil {
			return nil, err
		}
		return nil, call(k, ctx, id)
	})}
}

func (c *ctl) ruleAdd() *cobra.Command {
	var (
		r           control.Rule
		start, stop string
		end         string
		delay, wait time.Duration
		class, text string
	)
	cmd := &cobra.Command{
		Use: "add", Short: "add a rule and print its id", Args: noArgs,
		Long: `Adds a rule. Which calls: --method, --table, --region, --server, --service,
--user, --start-row and --stop-row; which of them: --skip, --every, --times,
--probability; what happens: --action delay, delay-reply, hold, drop-request,
drop-reply (applied, then not answered), fail, fail-after, close, close-after,
truncate, throttle (the answer trickles), corrupt-cells, oversize (an answer
claims to be larger than any client takes).

Lies in hbase:meta choose regions by --table, --region and rows instead of
calls, and are told to whoever reads it: meta-hole (the row is missing),
meta-no-server, meta-stale (the row as it is now, or --location), meta-overlap
(a second region up to --end, or to where the next one ends).`,
		Example: `  holdfast ctl rule add --method Mutate --action drop-reply --times 1
  holdfast ctl rule add --table t --start-row m --action meta-hole
  holdfast ctl rule add --table t --action fail --exception CallQueueTooBigException --probability 0.1`,
		RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			var err error
			if r.StartRow, err = rowArgument(start); err != nil {
				return nil, err
			}
			if r.StopRow, err = rowArgument(stop); err != nil {
				return nil, err
			}
			if r.End, err = rowArgument(end); err != nil {
				return nil, err
			}
			r.Delay = control.Duration(delay)
			if class != "" {
				r.Exception = &control.Exception{Class: class, Message: text, Wait: control.Duration(wait)}
			}
			id, err := k.AddRule(ctx, r)
			return map[string]uint64{"id": id}, err
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Method, "method", "", "RPC method, or several separated by commas")
	f.StringVar(&r.Service, "service", "", "RPC service")
	f.StringVar(&r.Table, "table", "", "table")
	f.StringVar(&r.Region, "region", "", "encoded region name")
	f.StringVar(&r.Server, "server", "", "host:port of a server")
	f.StringVar(&r.User, "user", "", "the caller's user")
	f.StringVar(&start, "start-row", "", "first row")
	f.StringVar(&stop, "stop-row", "", "row behind the last")
	f.StringVar(&r.Name, "name", "", "a name for the listing")
	f.Uint64Var(&r.Skip, "skip", 0, "let so many pass first")
	f.Uint64Var(&r.Every, "every", 0, "then every n-th")
	f.Uint64Var(&r.Times, "times", 0, "so many times (0: for ever)")
	f.Float64Var(&r.Probability, "probability", 0, "with this probability (0: always)")
	f.Uint64Var(&r.Seed, "seed", 0, "seed of the probability")
	f.StringVar(&r.Action, "action", "delay", "what happens")
	f.DurationVar(&delay, "delay", 0, "for delay and delay-reply")
	f.StringVar(&class, "exception", "", "exception class for fail and fail-after")
	f.StringVar(&text, "message", "", "the exception's text")
	f.DurationVar(&wait, "throttle-wait", 0, "the wait a throttling exception asks for")
	f.Int64Var(&r.BytesPerSecond, "bytes-per-second", 0, "for throttle")
	f.Int64Var(&r.Size, "size", 0, "for oversize: the bytes it claims (0: 2^31-1)")
	f.StringVar(&r.Location, "location", "", "for meta-stale: the server the row names")
	f.StringVar(&end, "end", "", "for meta-overlap: where the other region ends")
	return cmd
}

func (c *ctl) zookeeper() *cobra.Command {
	cmd := &cobra.Command{Use: "zk", Short: "faults of the ZooKeeper endpoint", Args: onlyCommands, RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() }}
	cmd.AddCommand(
		c.zkFault(),
		&cobra.Command{Use: "members", Short: "list the members of the ensemble and what is wrong with them", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			return k.ZooKeeperMembers(ctx)
		})},
		&cobra.Command{Use: "mend", Short: "make every member healthy", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			return nil, k.MendZooKeeper(ctx)
		})},
		c.zkStallLeader(),
		&cobra.Command{Use: "sessions", Short: "list the sessions", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			return k.Sessions(ctx)
		})},
		&cobra.Command{Use: "expire-session ID", Short: "end a session as if its time had run out", Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			return nil, k.ExpireSession(ctx, args[0])
		})},
		&cobra.Command{Use: "drop-connections", Short: "close every connection; sessions stay", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			return nil, k.DropZooKeeperConnections(ctx)
		})},
		&cobra.Command{Use: "remove PATH", Short: "remove a znode and what is below it", Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			return nil, k.RemoveZNode(ctx, args[0])
		})},
		&cobra.Command{Use: "get PATH", Short: "show a znode; bytes that are not printable as \\xHH", Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			return k.ZNode(ctx, args[0])
		})},
		&cobra.Command{Use: "set PATH DATA", Short: "write a znode; DATA may hold \\xHH", Args: argsBetween(2, 2), Example: `  holdfast ctl zk set /hbase/meta-region-server '\xFFgarbage'`, RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
			data, err := rowArgument(args[1])
			if err != nil {
				return nil, err
			}
			return nil, k.SetZNode(ctx, control.ZNode{Path: args[0], Data: data})
		})},
		&cobra.Command{Use: "restore", Short: "make HBase's own znodes what they should be", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
			return nil, k.RestoreZNodes(ctx)
		})},
	)
	return cmd
}

func (c *ctl) zkFault() *cobra.Command {
	var fault control.ZooKeeperFault
	var latency time.Duration
	var member int
	cmd := &cobra.Command{Use: "fault MODE", Short: "healthy, frozen, refuse, \"black hole\", hangup, silent, leaderless, electing, read-only", Args: argsBetween(1, 1), RunE: c.do(func(ctx context.Context, k *control.Client, args []string) (any, error) {
		fault.Mode, fault.Latency = args[0], control.Duration(latency)
		if member >= 0 {
			fault.Member = &member
		}
		return nil, k.ZooKeeperFault(ctx, fault)
	})}
	f := cmd.Flags()
	f.IntVar(&member, "member", -1, "the member of the ensemble, counted from 0 (-1: every one)")
	f.DurationVar(&latency, "latency", 0, "every answer comes so much later")
	f.BoolVar(&fault.StallPings, "stall-pings", false, "pings are not answered")
	f.IntVar(&fault.HangAfter, "hang-after", 0, "answer so many requests of a connection, then none")
	f.IntVar(&fault.Truncate, "truncate", 0, "cut answers after so many bytes")
	f.BoolVar(&fault.HalfHandshake, "half-handshake", false, "answer half of the handshake")
	return cmd
}

func (c *ctl) zkStallLeader() *cobra.Command {
	var notice, elect time.Duration
	cmd := &cobra.Command{Use: "stall-leader", Short: "freeze the ensemble's leader; the others notice and elect another", Args: noArgs, RunE: c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
		return nil, k.StallZooKeeperLeader(ctx, control.StallRequest{Notice: new(control.Duration(notice)), Elect: new(control.Duration(elect))})
	})}
	cmd.Flags().DurationVar(&notice, "notice", 10*time.Second, "how long the followers do not notice")
	cmd.Flags().DurationVar(&elect, "elect", 2*time.Second, "how long they then have no leader")
	return cmd
}

func (c *ctl) master() *cobra.Command {
	var gap, delay time.Duration
	var initializing bool
	var class, text, procedure string
	cmd := &cobra.Command{Use: "master", Short: "disturb the master: slow or failing procedures, gaps in transitions, PleaseHold", Args: noArgs}
	cmd.RunE = c.do(func(ctx context.Context, k *control.Client, _ []string) (any, error) {
		var q control.MasterRequest
		if cmd.Flags().Changed("transition-gap") {
			q.TransitionGap = new(control.Duration(gap))
		}
		if cmd.Flags().Changed("procedure-delay") {
			q.ProcedureDelay = new(control.Duration(delay))
		}
		if cmd.Flags().Changed("initializing") {
			q.Initializing = &initializing
		}
		if class != "" {
			q.FailNext, q.FailClass = &control.Exception{Class: class, Message: text}, procedure
		}
		return nil, k.Master(ctx, q)
	})
	f := cmd.Flags()
	f.DurationVar(&gap, "transition-gap", 0, "how long a region stays closed in every transition")
	f.DurationVar(&delay, "procedure-delay", 0, "how much longer every procedure takes")
	f.BoolVar(&initializing, "initializing", false, "answer PleaseHoldException")
	f.StringVar(&class, "fail-next", "", "exception class with which the next procedure ends")
	f.StringVar(&text, "message", "", "that exception's text")
	f.StringVar(&procedure, "of", "", "the next of this class, such as CreateTableProcedure")
	return cmd
}
