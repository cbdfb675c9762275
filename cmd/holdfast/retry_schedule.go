package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/internal/retry"
)

func newRetrySchedule() *cobra.Command {
	var (
		output, release string
		timeout, pause  time.Duration
		rpc             time.Duration
		retries         int
	)
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "how long retries wait, and what an operation's time allows; beside Java's",
		Long: `Prints, for each reason to wait, the n-th wait of an operation and how many waits
its time allows if every attempt fails at once. This client waits by the reason:
a region in transition is asked again after 10 ms, an overloaded server after
100 ms. Every wait is random between half of the figure and the figure, and no
wait begins that does not fit into the time left.

Beside it stands the schedule of HBase's Java client for the given
hbase.client.pause and hbase.client.retries.number: one table for every reason,
and the time it takes until it gives up, if every attempt fails at once and if
none is answered. The settings default to those of the release.`,
		Example: `  holdfast retry schedule
  holdfast retry schedule --timeout 3s --rpc-timeout 60s
  holdfast retry schedule --hbase 1.4.14 --pause 50ms --retries 21 -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := parseRelease(release)
			if err != nil {
				return err
			}
			if timeout <= 0 {
				return usage("--timeout %s is not more than 0", timeout)
			}
			j := retry.JavaDefaults(v)
			f := cmd.Flags()
			if f.Changed("pause") {
				j.Pause = pause
			}
			if f.Changed("retries") {
				j.Retries = retries
			}
			if f.Changed("rpc-timeout") {
				j.RPCTimeout = rpc
			}
			if f.Changed("timeout") {
				j.OperationTimeout = timeout
			}
			if j.Pause <= 0 || j.Retries < 0 || j.Retries > 10_000 || j.RPCTimeout < 0 {
				return usage("--pause must be more than 0, --retries between 0 and 10000, --rpc-timeout not negative")
			}
			s := scheduleOf(v, j, timeout)
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), s)
			}
			s.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time of the operation; Java's default is the release's (20 min)")
	cmd.Flags().StringVar(&release, "hbase", "2.6.4", "release of the Java client")
	cmd.Flags().DurationVar(&pause, "pause", 100*time.Millisecond, "hbase.client.pause")
	cmd.Flags().IntVar(&retries, "retries", 15, "hbase.client.retries.number")
	cmd.Flags().DurationVar(&rpc, "rpc-timeout", time.Minute, "hbase.rpc.timeout")
	outputFlag(cmd, &output)
	return cmd
}

func parseRelease(text string) (v retry.Version, err error) {
	parts := strings.Split(text, ".")
	fields := []*int{&v.Major, &v.Minor, &v.Patch}
	if len(parts) < 2 || len(parts) > 3 {
		return v, usage("--hbase %q is not a release such as 2.6.4", text)
	}
	for i, p := range parts {
		if *fields[i], err = strconv.Atoi(p); err != nil || *fields[i] < 0 {
			return v, usage("--hbase %q is not a release such as 2.6.4", text)
		}
	}
	return v, nil
}

// schedule is what retry schedule prints.
type schedule struct {
	TimeoutMs float64         `json:"timeoutMs"`
	Classes   []scheduleClass `json:"classes"`
	Java      javaSchedule    `json:"java"`
}

type scheduleClass struct {
	Class string `json:"class"`
	// Waits are the upper ends of the first waits; the lower ends are half of
	// them.
	WaitsMs []float64 `json:"waitsMs"`
	// MinAttempts and MaxAttempts fit into the time, if every wait is as long,
	// or as short, as it may be.
	MinAttempts int `json:"minAttempts"`
	MaxAttempts int `json:"maxAttempts"`
}

type javaSchedule struct {
	Release            string    `json:"release"`
	PauseMs            float64   `json:"pauseMs"`
	Retries            int       `json:"retries"`
	RPCTimeoutMs       float64   `json:"rpcTimeoutMs"`
	OperationTimeoutMs float64   `json:"operationTimeoutMs"`
	WaitsMs            []float64 `json:"waitsMs"`
	// Failing at once, and not answered at all.
	Failing javaRun `json:"failing"`
	Silent  javaRun `json:"silent"`
}

type javaRun struct {
	Attempts int     `json:"attempts"`
	TotalMs  float64 `json:"totalMs"`
	Ends     string  `json:"ends"`
}

const shownWaits = 12

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func scheduleOf(v retry.Version, j retry.JavaSettings, timeout time.Duration) schedule {
	s := schedule{TimeoutMs: inMillis(timeout)}
	for c := retry.Relocate; ; c++ {
		plan := c.Schedule()
		if plan.Base <= 0 {
			break
		}
		row := scheduleClass{Class: c.String(), MinAttempts: fits(plan, timeout, 1), MaxAttempts: fits(plan, timeout, 0)}
		for n := range shownWaits {
			row.WaitsMs = append(row.WaitsMs, inMillis(plan.Wait(n, 1)))
		}
		s.Classes = append(s.Classes, row)
	}
	s.Java = javaSchedule{
		Release: fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch), PauseMs: inMillis(j.Pause), Retries: j.Retries,
		RPCTimeoutMs: inMillis(j.RPCTimeout), OperationTimeoutMs: inMillis(j.OperationTimeout),
	}
	for n := range min(shownWaits, retry.Attempts(v, j.Retries)-1) {
		s.Java.WaitsMs = append(s.Java.WaitsMs, inMillis(retry.JavaPause(v, retry.RegionCalls, j.Pause, n+1)))
	}
	run := func(took time.Duration) javaRun {
		r := retry.SimulateJava(v, retry.RegionCalls, j, func(_ int, limit time.Duration) (time.Duration, bool) {
			if took > 0 && limit == 0 {
				return took, false // nothing bounds the call: count it as long as the longest there is
			}
			if took > 0 {
				return limit, false
			}
			return 0, false
		})
		ends := "attempts used up (RetriesExhaustedException)"
		if r.End == retry.JavaTimeout {
			ends = "time used up (callTimeout, callDuration)"
		}
		return javaRun{r.Attempts, inMillis(r.Total), ends}
	}
	s.Java.Failing, s.Java.Silent = run(0), run(24*time.Hour)
	return s
}

// fits counts the attempts that begin within the time if every one fails at
// once.
func fits(plan retry.Schedule, timeout time.Duration, random float64) int {
	const enough = 1_000_000
	var sum time.Duration
	for n := range enough {
		sum += plan.Wait(n, random)
		if sum >= timeout {
			return n + 1
		}
	}
	return enough
}

func (s schedule) print(w io.Writer) {
	list := func(ms []float64) string {
		var parts []string
		for _, m := range ms {
			parts = append(parts, strconv.FormatFloat(m, 'f', -1, 64))
		}
		return strings.Join(parts, " ")
	}
	fmt.Fprintf(w, "this client: waits in ms, each random between half of it and it; attempts that fit into %s\n", time.Duration(s.TimeoutMs*1e6))
	for _, c := range s.Classes {
		fmt.Fprintf(w, "  %-19s %d-%d attempts   %s ...\n", c.Class, c.MinAttempts, c.MaxAttempts, list(c.WaitsMs))
	}
	j := s.Java
	fmt.Fprintf(w, "\nJava %s: waits in ms, plus 0 to 1 %%; pause %s, retries %d, rpc timeout %s, operation timeout %s (0s: none)\n",
		j.Release, time.Duration(j.PauseMs*1e6), j.Retries, time.Duration(j.RPCTimeoutMs*1e6), time.Duration(j.OperationTimeoutMs*1e6))
	more := ""
	if len(j.WaitsMs) == shownWaits {
		more = " ..."
	}
	fmt.Fprintf(w, "  %-19s %s%s\n", "every reason", list(j.WaitsMs), more)
	for _, r := range []struct {
		name string
		run  javaRun
	}{{"each fails at once", j.Failing}, {"none is answered", j.Silent}} {
		fmt.Fprintf(w, "  %-19s %d attempts in %s, then %s\n", r.name, r.run.Attempts, time.Duration(r.run.TotalMs*1e6).Round(time.Millisecond), r.run.Ends)
	}
	if j.Silent.Attempts == 1 {
		fmt.Fprintf(w, "  One lost answer ends the operation: rpc timeout is not smaller than operation timeout. This client leaves time for three attempts then.\n")
	}
}
