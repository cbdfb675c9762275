package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/doctor/checks"
	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/zk"
)

// Step is one thing that was looked at.
type Step struct {
	What string        `json:"what"`
	Took time.Duration `json:"took_ns"`
	OK   bool          `json:"ok"`
	Text string        `json:"text"`
	// Ran is false if the step could not run, which is no finding.
	Ran bool `json:"ran"`
}

// ErrIncomplete is matched when a step could not run.
var ErrIncomplete = errors.New("a live check could not run")

// Options of Check. Zero values are the defaults.
type Options struct {
	Dial     time.Duration // limit for one connect, default 3 s
	Step     time.Duration // limit for one step, default 15 s
	MaxSkew  time.Duration // default 30 s, as the master's
	MaxTable int           // tables whose regions are compared, default 200
}

// stepper runs the steps and collects what they find.
type stepper struct {
	o     Options
	r     *finding.Report
	steps []Step
	found map[string]bool
}

// Check looks at a cluster. The error matches ErrIncomplete if some step could
// not run; the report and steps are then those of the others.
func Check(ctx context.Context, address string, o Options) (*finding.Report, []Step, error) {
	if o.Dial == 0 {
		o.Dial = 3 * time.Second
	}
	if o.Step == 0 {
		o.Step = 15 * time.Second
	}
	if o.MaxSkew == 0 {
		o.MaxSkew = 30 * time.Second
	}
	if o.MaxTable == 0 {
		o.MaxTable = 200
	}
	a, err := registry.Parse(address)
	if err != nil {
		return nil, nil, err
	}
	s := &stepper{o: o, r: &finding.Report{Schema: finding.SchemaVersion, Tool: "holdfast doctor live", HBase: "unknown", HBaseWhy: "not asked"}, found: map[string]bool{}}
	serving := false
	for _, h := range a.Servers {
		if s.host(ctx, h, a.Kind.String()) && a.ZNodeParent != "" {
			serving = s.ensemble(ctx, h, a) || serving
		}
	}
	if a.ZNodeParent != "" && serving {
		s.parent(ctx, a)
	}
	if a.ZNodeParent != "" && !serving {
		s.steps = append(s.steps, Step{What: "the cluster", Text: "no ZooKeeper server serves, so HBase cannot be found"})
	} else {
		s.cluster(ctx, address)
	}
	for _, st := range s.steps {
		if !st.Ran {
			err = ErrIncomplete
		}
	}
	slices.SortStableFunc(s.r.Findings, func(a, b finding.Finding) int { return int(b.Severity) - int(a.Severity) })
	for i := range s.r.Findings {
		f := &s.r.Findings[i]
		f.Count, f.Explain = 1, "holdfast doctor explain "+f.ID
	}
	return s.r, s.steps, err
}

// run does one step under its limit.
func (s *stepper) run(ctx context.Context, what string, f func(ctx context.Context) (text string, ran bool, err error)) bool {
	ctx, cancel := context.WithTimeout(ctx, s.o.Step)
	defer cancel()
	began := time.Now()
	text, ran, err := f(ctx)
	if err != nil {
		text = err.Error()
	}
	s.steps = append(s.steps, Step{What: what, Took: time.Since(began), OK: err == nil && ran, Text: text, Ran: ran})
	return err == nil && ran
}

func (s *stepper) add(id string, sev finding.Severity, subject, cause string, ev string) {
	if s.found[id+subject] {
		return
	}
	s.found[id+subject] = true
	e, _ := checks.Explain(id)
	f := finding.Finding{ID: id, Severity: sev, Confidence: finding.Certain, Subject: subject, Cause: cause, Fix: e.Fix, Not: e.Not}
	if ev != "" {
		f.Evidence = []finding.Evidence{{File: "live", Text: ev}}
	}
	s.r.Findings = append(s.r.Findings, f)
}

// host resolves a name and connects to its port.
func (s *stepper) host(ctx context.Context, hostPort, what string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	var addrs []string
	if !s.run(ctx, "resolve "+host, func(ctx context.Context) (string, bool, error) {
		var err error
		addrs, err = net.DefaultResolver.LookupHost(ctx, host)
		return strings.Join(addrs, ", "), true, err
	}) {
		s.add("NAME_UNRESOLVABLE", finding.Error, host, fmt.Sprintf("this host cannot resolve the name %s (%s)", host, what), s.steps[len(s.steps)-1].Text)
		return false
	}
	ok := s.run(ctx, "connect to "+hostPort, func(ctx context.Context) (string, bool, error) {
		d := net.Dialer{Timeout: s.o.Dial}
		c, err := d.DialContext(ctx, "tcp", hostPort)
		if err != nil {
			return "", true, err
		}
		remote := c.RemoteAddr().String()
		return remote, true, c.Close()
	})
	if !ok {
		s.add("PORT_UNREACHABLE", finding.Error, hostPort, fmt.Sprintf("%s (%s) does not take connections from here", hostPort, what), s.steps[len(s.steps)-1].Text)
		if p, _ := strconv.Atoi(port); p == 60010 || p == 16010 {
			s.add("WRONG_PORT_CLASS", finding.Error, hostPort, "port "+port+" is that of the HMaster web UI", "")
		}
	}
	return ok
}

// word sends a four-letter word.
func word(ctx context.Context, limit time.Duration, hostPort, w string) (string, error) {
	d := net.Dialer{Timeout: limit}
	c, err := d.DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, w); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(c, 64<<10))
	if len(b) > 0 {
		err = nil
	}
	return string(b), err
}

// ensemble asks one ZooKeeper server whether it serves, and for its limits.
func (s *stepper) ensemble(ctx context.Context, h string, a *registry.Address) bool {
	serves := false
	s.run(ctx, "srvr of "+h, func(ctx context.Context) (string, bool, error) {
		text, err := word(ctx, s.o.Dial, h, "srvr")
		if err != nil {
			s.add("ZK_NOT_SERVING", finding.Error, h, h+" accepts connections and does not answer: the process is stopped or overloaded", err.Error())
			return "", true, err
		}
		i := strings.Index(text, "Mode:")
		if i < 0 {
			if strings.Contains(text, "not in the whitelist") {
				serves = true
				return "srvr is not allowed", true, nil
			}
			if strings.HasPrefix(text, "HTTP/") {
				s.add("WRONG_PORT_CLASS", finding.Error, h, h+" is a web server, not ZooKeeper", firstLine(text))
				return firstLine(text), true, nil
			}
			s.add("ZK_NOT_SERVING", finding.Error, h, h+" accepts connections and does not serve: it has no quorum", firstLine(text))
			return firstLine(text), true, nil
		}
		serves = true
		return firstLine(text[i:]), true, nil
	})
	if !serves {
		return false
	}
	s.run(ctx, "limits of "+h, func(ctx context.Context) (string, bool, error) {
		text, err := word(ctx, s.o.Dial, h, "conf")
		if err != nil || !strings.Contains(text, "tickTime") {
			return "conf is not allowed", true, nil
		}
		v := map[string]int64{}
		for _, l := range strings.Split(text, "\n") {
			if k, x, ok := strings.Cut(strings.TrimSpace(l), "="); ok {
				if n, err := strconv.ParseInt(x, 10, 64); err == nil {
					v[k] = n
				}
			}
		}
		asked := a.Options.SessionTimeout
		if asked == 0 {
			asked = 90 * time.Second // HBase's default since 0.96
		}
		got := zk.Negotiate(asked, time.Duration(v["minSessionTimeout"])*time.Millisecond, time.Duration(v["maxSessionTimeout"])*time.Millisecond)
		if v["maxSessionTimeout"] > 0 && got != asked {
			s.add("ZK_TIMEOUT_CLAMPED", finding.Warning, "zookeeper.session.timeout", fmt.Sprintf("a client that asks for %d ms gets %d ms from %s", asked.Milliseconds(), got.Milliseconds(), h), fmt.Sprintf("tickTime=%d minSessionTimeout=%d maxSessionTimeout=%d", v["tickTime"], v["minSessionTimeout"], v["maxSessionTimeout"]))
		}
		return fmt.Sprintf("tickTime %d, sessions %d to %d ms, %d connections per address", v["tickTime"], v["minSessionTimeout"], v["maxSessionTimeout"], v["maxClientCnxns"]), true, nil
	})
	return true
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return l
}

// parent looks for what HBase keeps in ZooKeeper.
func (s *stepper) parent(ctx context.Context, a *registry.Address) {
	s.run(ctx, "znode parent "+a.ZNodeParent, func(ctx context.Context) (string, bool, error) {
		c, err := zk.Open(ctx, zk.Config{Servers: a.Servers})
		if err != nil {
			return "", false, err
		}
		defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
		like := func(path string) bool {
			kids, _, err := c.Children(ctx, path)
			return err == nil && slices.Contains(kids, "hbaseid") && slices.Contains(kids, "rs")
		}
		if like(a.ZNodeParent) {
			return "holds hbaseid and rs", true, nil
		}
		root, _, err := c.Children(ctx, "/")
		if err != nil {
			s.add("ZK_UNREACHABLE", finding.Error, strings.Join(a.Servers, ","), "no ZooKeeper session could be had", err.Error())
			return "", true, err
		}
		var others []string
		for _, k := range root {
			if p := "/" + k; p != a.ZNodeParent && like(p) {
				others = append(others, p)
			}
		}
		cause := "nothing below the root of ZooKeeper looks like HBase's: HBase never started here"
		if len(others) > 0 {
			cause = fmt.Sprintf("%s does not hold HBase's nodes, and %s does", a.ZNodeParent, strings.Join(others, ", "))
		}
		s.add("ZNODE_PARENT_MISMATCH", finding.Error, a.ZNodeParent, cause, "children of /: "+strings.Join(root, ", "))
		return cause, true, nil
	})
}

// cluster asks the master and the region servers.
func (s *stepper) cluster(ctx context.Context, address string) {
	c, err := hbase.Open(ctx, address)
	if err != nil {
		s.steps = append(s.steps, Step{What: "open the cluster", Text: err.Error()})
		return
	}
	defer c.Close()
	adm := c.Admin()
	var status *admin.ClusterStatus
	if !s.run(ctx, "status from the master", func(ctx context.Context) (string, bool, error) {
		var err error
		if status, err = adm.ClusterStatus(ctx); err != nil {
			return "", false, err
		}
		s.r.HBase, s.r.HBaseWhy = status.Version, "as the master says"
		return fmt.Sprintf("HBase %s, %d servers live, %d dead", status.Version, len(status.Live), len(status.Dead)), true, nil
	}) {
		return
	}
	s.host(ctx, status.Master.Address(), "master")
	now := time.Now()
	holds := map[string]map[string]bool{}
	for _, l := range status.Live {
		name := l.Server.String()
		if !l.Reported.IsZero() {
			if skew := now.Sub(l.Reported); skew < -s.o.MaxSkew || skew > s.o.MaxSkew+time.Minute {
				s.add("CLOCK_SKEW", finding.Warning, name, fmt.Sprintf("the last report of %s bears a time that is %v away from this host's clock", name, skew.Round(time.Second)), "")
			}
		}
		if !s.host(ctx, l.Server.Address(), "region server") {
			continue
		}
		s.run(ctx, "regions of "+name, func(ctx context.Context) (string, bool, error) {
			regions, err := adm.ServerRegions(ctx, l.Server)
			if err != nil {
				return "", false, err
			}
			m := map[string]bool{}
			for i := range regions {
				m[regions[i].EncodedName()] = true
			}
			holds[name] = m
			return fmt.Sprintf("%d open", len(regions)), true, nil
		})
	}
	for _, t := range status.InTransition {
		s.add("REGION_IN_TRANSITION", finding.Warning, fmt.Sprintf("%v", t.Region), "the master lists the region as in transition", fmt.Sprintf("%+v", t))
	}
	tables, err := adm.ListTables(ctx, "", true)
	if err != nil {
		s.steps = append(s.steps, Step{What: "list tables", Text: err.Error()})
		return
	}
	for i, t := range tables {
		if i >= s.o.MaxTable {
			s.r.Notes = append(s.r.Notes, fmt.Sprintf("%d of %d tables compared", s.o.MaxTable, len(tables)))
			break
		}
		s.table(ctx, adm, t, holds)
	}
}

// table compares hbase:meta's rows of one table with each other and with what
// the servers hold.
func (s *stepper) table(ctx context.Context, adm *admin.Admin, t hbase.TableName, holds map[string]map[string]bool) {
	s.run(ctx, "regions of table "+t.String(), func(ctx context.Context) (string, bool, error) {
		regions, err := adm.Regions(ctx, t.String())
		if err != nil {
			return "", false, err
		}
		var end []byte
		wrong, counted := 0, 0
		for i := range regions {
			l := &regions[i]
			r := &l.Region
			if r.Replica != 0 || r.Split {
				continue
			}
			switch c := bytes.Compare(r.Start, end); {
			case counted == 0 && len(r.Start) > 0:
				s.add("META_HOLE", finding.Critical, t.String(), fmt.Sprintf("no region covers the rows before %q", r.Start), "")
			case counted > 0 && (len(end) == 0 || c < 0):
				s.add("META_OVERLAP", finding.Critical, t.String(), fmt.Sprintf("two regions cover the rows from %q", r.Start), r.String())
			case counted > 0 && c > 0:
				s.add("META_HOLE", finding.Critical, t.String(), fmt.Sprintf("no region covers the rows from %q to %q", end, r.Start), "")
			}
			counted++
			end = r.End
			if l.Server.Host == "" {
				continue
			}
			if m, ok := holds[l.Server.String()]; !ok {
				if !s.reachable(l.Server.String()) {
					continue
				}
				s.add("STALE_REGION_LOCATION", finding.Error, r.String(), fmt.Sprintf("hbase:meta places it on %s, which is not among the live servers", l.Server), "")
				wrong++
			} else if !m[r.EncodedName()] && t.String() != "hbase:meta" {
				s.add("STALE_REGION_LOCATION", finding.Warning, r.String(), fmt.Sprintf("hbase:meta places it on %s, which does not have it open; it may just be moving", l.Server), "")
				wrong++
			}
		}
		if counted > 0 && len(end) > 0 {
			s.add("META_HOLE", finding.Critical, t.String(), fmt.Sprintf("no region covers the rows from %q on", end), "")
		}
		return fmt.Sprintf("%d regions, %d not where hbase:meta says", counted, wrong), true, nil
	})
}

// reachable says that the server was not already found unreachable.
func (s *stepper) reachable(server string) bool {
	for _, st := range s.steps {
		if !st.OK && strings.Contains(server, strings.TrimPrefix(st.What, "regions of ")) {
			return false
		}
	}
	return true
}
