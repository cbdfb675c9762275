package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/shell"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func newRoute() *cobra.Command {
	cmd := &cobra.Command{Use: "route", Short: "the client's routing, made visible", Args: onlyCommands, RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() }}
	cmd.AddCommand(newRouteExplain())
	return cmd
}

func newRouteExplain() *cobra.Command {
	var (
		output  string
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "explain [ADDRESS] TABLE ROW",
		Short: "which region, which server, how known, and what each step cost",
		Long: `Locates a row as the client does, asks the region's server for it, and prints
every step: where hbase:meta is, what it says, which server answered, and what
the client would do with each failure. The row may hold \xHH for a byte.

` + addressHelp,
		Example: `  holdfast route explain orders user-17
  holdfast route explain hbase://127.0.0.1:2181/hbase orders user-17
  holdfast route explain conf/ 'ns:t' 'a\x00b' -o json`,
		Args: argsBetween(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			arg := ""
			if len(args) == 3 {
				arg, args = args[0], args[1:]
			}
			addr, err := address(arg)
			if err != nil {
				return err
			}
			table, err := meta.ParseTableName(args[0])
			if err != nil {
				return usage("%w", err)
			}
			row, err := rowArgument(args[1])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := reachable(ctx, addr); err != nil {
				return err
			}
			e, err := explain(ctx, addr, table, row)
			if e != nil {
				if output == "json" {
					err = errors.Join(err, writeJSON(cmd.OutOrStdout(), e))
				} else {
					e.print(cmd.OutOrStdout())
				}
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "give up after so long")
	outputFlag(cmd, &output)
	return cmd
}

// rowArgument reads a row as a person types it on a command line.
func rowArgument(text string) ([]byte, error) {
	c, err := shell.Parse(`row "` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		return nil, usage("row %q: %w", text, err)
	}
	s, _ := c.Args[0].(shell.String)
	return []byte(s), nil
}

// explanation is what route explain prints.
type explanation struct {
	Table   string     `json:"table"`
	Row     string     `json:"row"`
	Region  string     `json:"region,omitempty"`
	Encoded string     `json:"encoded,omitempty"`
	Start   string     `json:"start"`
	End     string     `json:"end"`
	Server  string     `json:"server,omitempty"`
	OpenSeq int64      `json:"openSeq"`
	Origin  string     `json:"origin,omitempty"`
	Exists  bool       `json:"rowExists"`
	Meta    string     `json:"meta,omitempty"`
	Steps   []stepLine `json:"steps"`
	Error   string     `json:"error,omitempty"`

	text string
}

type stepLine struct {
	AtMs     float64 `json:"atMs"`
	TookMs   float64 `json:"tookMs"`
	What     string  `json:"what"`
	Server   string  `json:"server,omitempty"`
	Error    string  `json:"error,omitempty"`
	Decision string  `json:"decision,omitempty"`
}

// steps collects what the loop does. Attempts of the meta reader come from
// other goroutines.
type steps struct {
	begin time.Time
	mu    sync.Mutex
	list  []stepLine
}

func (s *steps) add(at time.Time, took time.Duration, l stepLine) {
	l.AtMs = float64(at.Sub(s.begin).Microseconds()) / 1000
	l.TookMs = float64(took.Microseconds()) / 1000
	s.mu.Lock()
	s.list = append(s.list, l)
	s.mu.Unlock()
}

func (s *steps) AttemptStart(ctx context.Context, _ session.Attempt) context.Context { return ctx }

func (s *steps) AttemptEnd(_ context.Context, a session.Attempt, r session.AttemptResult) {
	l := stepLine{What: a.Method, Server: a.Server.String(), Decision: r.Decision.String()}
	if !a.Table.IsZero() {
		l.What += " on " + a.Table.String()
	}
	if a.Region != "" {
		l.What += " region " + a.Region
	}
	if r.Err != nil {
		l.Error = r.Err.Error()
	}
	s.add(a.Start, r.Took, l)
}

func (s *steps) Failure(_ context.Context, f session.Failure) {
	l := stepLine{What: "nothing sent", Error: f.Err.Error(), Decision: f.Decision.String()}
	if !f.Server.IsZero() {
		l.Server = f.Server.String()
	}
	s.add(f.At, 0, l)
}

func (s *steps) Waited(_ context.Context, w session.Wait) {
	s.add(w.Start, w.Took, stepLine{What: "wait (" + w.Class + ")"})
}

func explain(ctx context.Context, addr string, table meta.TableName, row []byte) (*explanation, error) {
	trace := &steps{begin: time.Now()}
	core, err := session.Open(ctx, session.Config{Address: addr, Hooks: []any{trace}})
	if err != nil {
		return nil, err
	}
	defer core.Close()
	e := &explanation{Table: table.String(), Row: cells.Quote(row)}
	if server, err := core.Registry().MetaLocation(ctx); err == nil {
		e.Meta = server.String()
	}
	trace.add(trace.begin, time.Since(trace.begin), stepLine{What: "ask the registry where hbase:meta is", Server: e.Meta})
	var result pb.GetResponse
	_, err = core.CallRegion(ctx, &session.RegionCall{
		Table: table, Row: row, Method: "Get", Op: "route explain", Result: &result, Idempotency: session.Safe,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			return &pb.GetRequest{
				Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: region},
				Get:    &pb.Get{Row: row, ExistenceOnly: new(true)},
			}, nil
		},
	})
	x := core.Routes().Explain(table, row)
	if x.Known {
		e.Region, e.Encoded = x.Region.String(), x.Name
		e.Start, e.End = cells.Quote(x.Region.Start), cells.Quote(x.Region.End)
		e.OpenSeq, e.Origin = x.OpenSeq, x.Origin.String()
		if !x.Server.IsZero() {
			e.Server = x.Server.String()
		}
	}
	e.Exists = result.GetResult().GetExists()
	e.Steps, e.text = trace.list, x.String()
	if err != nil {
		e.Error = err.Error()
	}
	return e, err
}

func (e *explanation) print(w io.Writer) {
	fmt.Fprint(w, e.text)
	if e.Error == "" {
		fmt.Fprintf(w, "the row exists: %v\n", e.Exists)
	}
	fmt.Fprintln(w, "\nsteps")
	for _, s := range e.Steps {
		fmt.Fprintf(w, "  %8.2f ms  +%.2f ms  %s", s.AtMs, s.TookMs, s.What)
		if s.Server != "" {
			fmt.Fprintf(w, "  at %s", s.Server)
		}
		if s.Error != "" {
			fmt.Fprintf(w, "\n                      %s", s.Error)
			if s.Decision != "" {
				fmt.Fprintf(w, " -> %s", s.Decision)
			}
		}
		fmt.Fprintln(w)
	}
}
