package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/checks"
	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/doctor/readers"
)

// Options control a diagnosis.
type Options struct {
	// HBase is the client's release ("0.98", "1.x", "2.4.17"); "" infers it.
	HBase string
	// Symptoms are facts no log holds, as key=value.
	Symptoms []string
	// Version of this tool, for the report.
	Version string
	// Progress, if set, hears the name of the input, bytes read so far and its
	// size (0 if unknown). It is called on Diagnose's goroutine and must be fast.
	Progress func(name string, done, size int64)
	// Timeline asks for the merged timeline.
	Timeline bool
	// OnlyConfig reads configuration and skips all else.
	OnlyConfig bool
}

// Input is something to read.
type Input struct {
	Name string
	Size int64 // 0 if unknown
	// Open is called once; the reader is closed by Diagnose.
	Open func() (io.ReadCloser, error)
}

// Files makes inputs of files and directories; "-" is standard input.
func Files(args []string) ([]Input, error) {
	names, err := readers.Expand(args)
	if err != nil {
		return nil, err
	}
	var in []Input
	for _, n := range names {
		if n == "-" {
			in = append(in, Input{Name: "(stdin)", Open: func() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil }})
			continue
		}
		i := Input{Name: n, Open: func() (io.ReadCloser, error) { return os.Open(n) }}
		if info, err := os.Stat(n); err == nil && info.Mode().IsRegular() {
			i.Size = info.Size()
		}
		in = append(in, i)
	}
	return in, nil
}

// Text makes an input of a string.
func Text(name, s string) Input {
	return Input{Name: name, Size: int64(len(s)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }}
}

// ErrUnreadable is matched by the error of a diagnosis none of whose inputs
// could be read.
var ErrUnreadable = errors.New("input unreadable")

const maxDumps = 400

// Diagnose reads all inputs and judges them together. Inputs that cannot be
// read are noted in the report; if none could be, the error matches
// ErrUnreadable. A cancelled context ends it with the context's error.
func Diagnose(ctx context.Context, inputs []Input, o Options) (*finding.Report, error) {
	r := &finding.Report{Schema: finding.SchemaVersion, Tool: "holdfast doctor", Version: o.Version}
	x, err := checks.NewExtractor()
	if err != nil {
		return nil, err
	}
	d := diagnosis{o: o, x: x, report: r}
	var errs []error
	for _, in := range inputs {
		sum, err := d.read(ctx, in)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			sum.Error = err.Error()
			errs = append(errs, fmt.Errorf("%s: %w", in.Name, err))
		}
		r.Inputs = append(r.Inputs, sum)
	}
	if len(errs) > 0 && len(errs) == len(inputs) {
		return r, fmt.Errorf("%w: %w", ErrUnreadable, errors.Join(errs...))
	}
	c := &d.collect.Case
	c.Version, c.Context = o.HBase, o.Symptoms
	offsets := clockOffsets(c)
	for f, ms := range offsets {
		r.Notes = append(r.Notes, fmt.Sprintf("the clock of %s is %+d ms from the others', by sessions that both sides log; its times were moved by that", f, ms))
	}
	slices.Sort(r.Notes)
	v := checks.Judge(c)
	r.Findings, r.HBase, r.HBaseWhy = v.Findings, v.HBase, v.HBaseWhy
	r.Notes = append(r.Notes, v.Notes...)
	if d.sampled > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("of floods of like entries one in 32 was read: %d entries were only counted", d.sampled))
	}
	r.Private = checks.Entities(c)
	if o.Timeline {
		r.Timeline = timeline(c)
	}
	return r, nil
}

type diagnosis struct {
	o       Options
	x       *checks.Extractor
	collect checks.Collector
	report  *finding.Report
	sampled int64
}

func (d *diagnosis) read(ctx context.Context, in Input) (finding.Input, error) {
	sum := finding.Input{Name: in.Name}
	rc, err := in.Open()
	if err != nil {
		return sum, err
	}
	defer rc.Close()
	src, err := readers.Open(rc)
	if err != nil {
		return sum, err
	}
	defer src.Close()
	if src.Packing != "" {
		sum.Kinds = append(sum.Kinds, src.Packing)
	}
	if src.Binary {
		sum.Kinds = append(sum.Kinds, "binary, skipped")
		return sum, nil
	}
	if kind := configKind(in.Name, src.Head); kind != "" {
		sum.Kinds = append(sum.Kinds, kind)
		return sum, d.config(src, in.Name, kind, &sum)
	}
	if d.o.OnlyConfig {
		sum.Kinds = append(sum.Kinds, "not configuration, skipped")
		return sum, nil
	}
	before := len(d.collect.Case.Facts)
	dumps := 0
	dr := readers.DumpReader{Done: func(dump *readers.Dump) {
		dumps++
		if len(d.collect.Case.Dumps) < maxDumps {
			d.collect.Case.Dumps = append(d.collect.Case.Dumps, checks.Summarize(in.Name, dump))
		}
	}}
	quiet := 0
	s := readers.Scanner[checks.Fact]{
		Matcher: d.x.Matcher(),
		Flags:   d.x.DumpFlags(),
		Handle:  func(e *readers.Entry, hits []readers.Hit) []checks.Fact { return d.x.Extract(in.Name, e, hits) },
		Emit: func(base int64, facts []checks.Fact) {
			for _, f := range facts {
				f.Line += int(base)
				d.collect.Add(f)
			}
		},
		Raw: func(block []byte, base int64, flagged bool) {
			if flagged {
				quiet = 0
			} else if quiet++; quiet > 2 && dr.Active() {
				dr.Close()
			}
			if flagged || dr.Active() {
				dr.Feed(block, base)
			}
		},
	}
	if d.o.Progress != nil {
		s.Progress = func(n int64) { d.o.Progress(in.Name, n, in.Size) }
	}
	stats, err := s.Scan(ctx, src)
	dr.Close()
	sum.Bytes, sum.Lines, sum.Entries = stats.Bytes, stats.Lines, stats.Entries
	d.sampled += stats.Sampled
	if len(d.collect.Case.Facts) > before || dumps == 0 {
		sum.Kinds = append(sum.Kinds, "log")
	}
	if dumps > 0 {
		sum.Kinds = append(sum.Kinds, fmt.Sprintf("%d thread dumps", dumps))
	}
	return sum, err
}

// configKind says whether an input is a configuration file, and of which form.
func configKind(name string, head []byte) string {
	trimmed := bytes.TrimLeft(head, "\ufeff \t\r\n")
	base := strings.ToLower(filepath.Base(name))
	hasXML := bytes.HasPrefix(trimmed, []byte("<?xml")) || bytes.HasPrefix(trimmed, []byte("<configuration")) || bytes.HasPrefix(trimmed, []byte("<property>")) || bytes.HasPrefix(trimmed, []byte("<!--"))
	switch {
	case hasXML && (bytes.Contains(head, []byte("<property>")) || bytes.Contains(head, []byte("<configuration"))) && onlyXML(head):
		return "xml"
	case strings.HasSuffix(base, ".properties"), strings.HasPrefix(base, "zoo") && strings.HasSuffix(base, ".cfg"):
		return "properties"
	case strings.HasSuffix(base, ".cfg"), strings.HasSuffix(base, ".conf"):
		if bytes.Contains(head, []byte("tickTime")) || bytes.Contains(head, []byte("kylin.")) || bytes.Contains(head, []byte("hbase.")) {
			return "properties"
		}
	}
	return ""
}

// onlyXML says that nothing but white space follows the last closing tag: a
// paste may have log lines after the configuration.
func onlyXML(head []byte) bool {
	end := bytes.LastIndexByte(head, '>')
	return end >= 0 && (len(head) > 60<<10 || len(bytes.TrimSpace(head[end+1:])) == 0) && !bytes.Contains(head, []byte("\n\tat ")) && !bytes.Contains(head, []byte("callDuration="))
}

func (d *diagnosis) config(r io.Reader, name, kind string, sum *finding.Input) error {
	read := readers.ReadXML
	if kind == "properties" {
		read = readers.ReadProperties
	}
	props, err := read(r, name)
	sum.Entries = int64(len(props))
	d.collect.Case.Settings = append(d.collect.Case.Settings, props...)
	if err != nil && len(props) > 0 {
		d.report.Notes = append(d.report.Notes, fmt.Sprintf("%s is damaged after %d properties: %v", name, len(props), err))
		return nil
	}
	return err
}
