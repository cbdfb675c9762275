package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/doctor"
	"github.com/holdfast-hbase/holdfast/doctor/checks"
	"github.com/holdfast-hbase/holdfast/doctor/finding"
	docreport "github.com/holdfast-hbase/holdfast/doctor/report"
)

// Exit codes of doctor besides the common ones.
const (
	exitUnreadable = 3
	exitLive       = 4
)

type doctorFlags struct {
	output   string
	html     string
	hbase    string
	failOn   string
	redact   bool
	timeline bool
	symptoms []string
}

func (d *doctorFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.VarP(&choice{value: &d.output, allowed: []string{"text", "json", "sarif", "junit"}}, "output", "o", "text, json, sarif or junit")
	d.output = "text"
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json", "sarif", "junit"}, cobra.ShellCompDirectiveNoFileComp)))
	f.StringVar(&d.html, "html", "", "also write one self-contained page to `FILE`")
	f.StringVar(&d.hbase, "hbase", "", "release of the client: 0.94, 0.98, 1.x, 2.x, 3.x or a full number; inferred if not given")
	f.Var(&choice{value: &d.failOn, allowed: []string{"info", "warning", "error", "critical", "never"}}, "fail-on", "lowest severity that makes the exit code 1, or never")
	d.failOn = "error"
	f.BoolVar(&d.redact, "redact", false, "replace hosts, addresses, tables and row keys, consistently")
	f.BoolVar(&d.timeline, "timeline", false, "add the merged timeline of all inputs")
}

func newDoctor() *cobra.Command {
	var d doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor [FILE|DIR|-]...",
		Short: "says what happened, from logs, thread dumps and configuration, with the arithmetic",
		Long: `Reads what is at hand - pasted lines, logs of clients, servers, ZooKeeper and
gateways, jstack dumps, hbase-site.xml, zoo.cfg, kylin.properties; mixed,
wrapped, gzipped, with Docker or Kubernetes prefixes - and says what happened,
what would fix it, and what it was not. Root causes come first, consequences
stand under them. Works offline and sends nothing anywhere.

Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 the command line
makes no sense, 3 input unreadable, 4 a live check could not run.`,
		Example: `  pbpaste | holdfast doctor
  holdfast doctor /var/log/hbase conf/ --html report.html
  holdfast doctor client.log.gz hbase-site.xml --hbase 0.98 -o json
  holdfast doctor --symptom affected=one-table --symptom shell=ok --symptom gateway=ok --symptom fresh-client=ok`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && len(d.symptoms) == 0 {
				if isTerminal(os.Stdin) {
					fmt.Fprintln(cmd.ErrOrStderr(), "reading from the terminal; end with Ctrl-D")
				}
				args = []string{"-"}
			}
			return d.run(cmd, args, false)
		},
	}
	d.add(cmd)
	cmd.Flags().StringArrayVar(&d.symptoms, "symptom", nil, "a fact no log holds, `KEY=VALUE`: affected=one-table, shell=ok, fresh-client=ok, gateway=ok, moved=yes, table=T, first-access-ms=N, regions=N, budget-ms=N")
	cmd.AddCommand(newDoctorLint(), newDoctorExplainRetries(), newDoctorExplainSession(), newDoctorChecks(), newDoctorExplain(), newDoctorSchema(), newDoctorLive(), newDoctorReplay())
	return cmd
}

func newDoctorLint() *cobra.Command {
	var d doctorFlags
	cmd := &cobra.Command{
		Use:   "lint DIR|FILE...",
		Short: "configuration of client, server, ZooKeeper and Kylin together",
		Long: `Reads hbase-site.xml, core-site.xml, zoo.cfg and kylin.properties together,
proves what they make impossible, computes effective values, and compares the
time that retries survive with the time a failover takes.`,
		Example: "  holdfast doctor lint /etc/hbase/conf --hbase 0.98",
		Args:    argsBetween(1, 1000),
		RunE:    func(cmd *cobra.Command, args []string) error { return d.run(cmd, args, true) },
	}
	d.add(cmd)
	return cmd
}

func (d *doctorFlags) run(cmd *cobra.Command, args []string, onlyConfig bool) error {
	if d.hbase != "" {
		if _, err := checks.Release(d.hbase); err != nil {
			return usage("%w", err)
		}
	}
	for _, s := range d.symptoms {
		if !strings.Contains(s, "=") {
			return usage("symptom %q: want KEY=VALUE", s)
		}
	}
	inputs, err := doctor.Files(args)
	if err != nil {
		return &exitError{exitUnreadable, err}
	}
	o := doctor.Options{HBase: d.hbase, Symptoms: d.symptoms, Version: version(), Timeline: d.timeline || d.html != "", OnlyConfig: onlyConfig}
	// Half of what a diagnosis may take; past it the collector works harder
	// rather than let the heap double.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(40 << 20))
	if isTerminal(os.Stderr) {
		bar := &progressBar{w: cmd.ErrOrStderr()}
		o.Progress = bar.show
		defer bar.clear()
	}
	r, err := doctor.Diagnose(cmd.Context(), inputs, o)
	if err != nil {
		if errors.Is(err, doctor.ErrUnreadable) {
			return &exitError{exitUnreadable, err}
		}
		return err
	}
	return d.print(cmd, r)
}

// print writes the report everywhere it is wanted and decides the exit code.
func (d *doctorFlags) print(cmd *cobra.Command, r *finding.Report) error {
	worst, any := r.Worst()
	if d.redact {
		var err error
		if r, err = docreport.Redact(r); err != nil {
			return err
		}
	}
	if d.html != "" {
		if err := writeFile(d.html, func(w io.Writer) error { return docreport.HTML(w, r) }); err != nil {
			return err
		}
	}
	w := cmd.OutOrStdout()
	fail := finding.Critical + 1
	if d.failOn != "never" {
		var err error
		if fail, err = finding.ParseSeverity(d.failOn); err != nil {
			return usage("%w", err)
		}
	}
	var err error
	switch d.output {
	case "json":
		err = docreport.JSON(w, r)
	case "sarif":
		err = docreport.SARIF(w, r)
	case "junit":
		err = docreport.JUnit(w, r, fail)
	default:
		err = docreport.Text(w, r, w == io.Writer(os.Stdout) && isTerminal(os.Stdout))
	}
	if err != nil {
		return err
	}
	if any && worst >= fail {
		return &exitError{code: exitNo}
	}
	return nil
}

// writeFile writes beside the target and renames, so that a reader never sees
// half a page.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".holdfast-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// progressBar shows how far long input has been read, ten times a second at
// most, once it takes longer than half a second.
type progressBar struct {
	w     io.Writer
	begun time.Time
	last  time.Time
	shown bool
}

func (p *progressBar) show(name string, done, size int64) {
	now := time.Now()
	if p.begun.IsZero() {
		p.begun = now
	}
	if now.Sub(p.begun) < 500*time.Millisecond || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.shown = now, true
	base := filepath.Base(name)
	if size > 0 && done <= size {
		filled := int(done * 30 / size)
		fmt.Fprintf(p.w, "\r\x1b[K%s%s %3d %% of %d MB  %s", strings.Repeat("#", filled), strings.Repeat(".", 30-filled), done*100/size, size>>20, base)
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[K%d MB  %s", done>>20, base)
}

func (p *progressBar) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
