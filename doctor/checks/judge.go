package checks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// judge is the state of one judgement.
type judge struct {
	c        *Case
	v        retry.Version
	release  string // as said: "0.98", "1.x", "unknown"
	why      string
	known    bool // the release is given or stated by the input
	settings map[string]setting
	out      []finding.Finding
	notes    []string
	by       map[Kind][]*Fact
}

type setting struct {
	value string
	n     int64
	num   bool
	ev    finding.Evidence
}

// Verdict is what Judge returns.
type Verdict struct {
	Findings []finding.Finding
	HBase    string
	HBaseWhy string
	Notes    []string
	Version  retry.Version
	Known    bool
}

// Judge draws every conclusion the case allows, root causes first.
func Judge(c *Case) Verdict {
	j := &judge{c: c, by: map[Kind][]*Fact{}}
	for i := range c.Facts {
		f := &c.Facts[i]
		j.by[f.Kind] = append(j.by[f.Kind], f)
	}
	j.collectSettings()
	j.inferVersion()
	for _, rule := range []func(){
		j.kerberos, j.names, j.loopback, j.coprocessor, j.ports, j.wrongPorts, j.stuck, j.master, j.parents, j.sessions, j.zooLimits,
		j.clamp, j.overload, j.memstore, j.scanners, j.lookupLocks, j.regions, j.budgets, j.own, j.clientGone, j.simple, j.noise,
		j.slowServer, j.dumps, j.lint, j.gateway,
	} {
		rule()
	}
	j.fold()
	slices.SortStableFunc(j.out, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(rank(a.ID), rank(b.ID)))
	})
	j.out = crowd(j.out)
	for i := range j.out {
		f := &j.out[i]
		f.Explain = "holdfast doctor explain " + f.ID
		if f.Count == 0 {
			f.Count = max(1, len(f.Evidence))
		}
		if f.Confidence == "" {
			f.Confidence = finding.Likely
		}
	}
	return Verdict{Findings: j.out, HBase: j.release, HBaseWhy: j.why, Notes: j.notes, Version: j.v, Known: j.known}
}

// maxAlike is how many findings of one kind are printed one by one.
const maxAlike = 20

// crowd folds what is left of many findings of one kind into the last that is
// kept: a cluster with a thousand unreachable servers has one fault, not
// a thousand.
func crowd(in []finding.Finding) []finding.Finding {
	at, count := map[string]int{}, map[string]int{}
	var out []finding.Finding
	for _, f := range in {
		count[f.ID]++
		if count[f.ID] <= maxAlike {
			at[f.ID] = len(out)
			out = append(out, f)
			continue
		}
		last := &out[at[f.ID]]
		last.Count += max(f.Count, 1)
		if len(last.Evidence) < 2*maxEvidence {
			last.Evidence = append(last.Evidence, f.Evidence[:min(1, len(f.Evidence))]...)
		}
	}
	for id, n := range count {
		if n > maxAlike {
			f := &out[at[id]]
			f.Notes = append(f.Notes, fmt.Sprintf("and %d more findings of this kind with other subjects; one cause for all is likely", n-maxAlike))
		}
	}
	return out
}

func (j *judge) add(f finding.Finding) *finding.Finding {
	j.out = append(j.out, f)
	return &j.out[len(j.out)-1]
}

func (j *judge) has(id string) bool {
	return slices.ContainsFunc(j.out, func(f finding.Finding) bool { return f.ID == id })
}

func (j *judge) collectSettings() {
	j.settings = map[string]setting{}
	for _, p := range j.c.Settings {
		s := setting{value: p.Value, ev: finding.Evidence{File: p.File, Line: p.Line, Text: p.Name + " = " + cut(p.Value, 120)}}
		if n, next, ok := intAt(p.Value, 0); ok && (next == len(p.Value) || strings.Trim(p.Value[next:], "msLl ") == "") {
			s.n, s.num = n, true
		}
		j.settings[p.Name] = s
	}
	for _, f := range j.by[Setting] {
		if _, ok := j.settings[f.Class]; ok {
			continue
		}
		n, next, ok := intAt(f.Path, 0)
		j.settings[f.Class] = setting{value: f.Path, n: n, num: ok && next == len(f.Path), ev: f.evidence()}
	}
}

// get is a numeric setting.
func (j *judge) get(name string) (int64, bool) {
	s, ok := j.settings[name]
	return s.n, ok && s.num
}

func (j *judge) getOr(name string, def int64) int64 {
	if v, ok := j.get(name); ok {
		return v
	}
	return def
}

func (j *judge) settingEvidence(names ...string) []finding.Evidence {
	var out []finding.Evidence
	for _, n := range names {
		if s, ok := j.settings[n]; ok {
			out = append(out, s.ev)
		}
	}
	return out
}

// inferVersion decides the release: given, named in the text, or recognised by
// class names and message forms.
func (j *judge) inferVersion() {
	if j.c.Version != "" {
		if v, err := Release(j.c.Version); err == nil {
			j.v, j.release, j.why, j.known = v, j.c.Version, "given", true
			return
		}
	}
	votes := map[string]int{}
	var named string
	for _, f := range j.by[Hint] {
		if f.Path == "named" {
			if strings.Count(f.Class, ".") >= 1 && len(f.Class) > len(named) {
				named = f.Class
			}
			continue
		}
		votes[f.Class]++
	}
	pick := func(s, why string) {
		if v, err := Release(s); err == nil {
			j.v, j.release, j.why, j.known = v, s, why, true
		}
	}
	if named != "" {
		pick(named, "named in the input")
		if j.known {
			return
		}
	}
	var limits []int64
	for _, k := range []Kind{Attempt, Exhausted, Progress} {
		for _, f := range j.by[k] {
			limits = append(limits, f.Limit)
		}
	}
	switch {
	case votes["0.94"] > 0:
		pick("0.94", "classes of 0.94 in the text")
	case votes["2.x"] > 0:
		pick("2.x", "classes or message forms that exist from 2.0 on")
	case votes["1.x"] > 0:
		pick("1.x", "class ConnectionManager, which only 1.x has")
	case votes["0.98"] > 0:
		pick("0.98", "class HConnectionManager, which went with 1.0")
	case slices.Contains(limits, 16):
		pick("2.x", "16 attempts is the default of 2.x")
	case votes["1.x+"] > 0 || slices.Contains(limits, 36) || slices.Contains(limits, 35):
		pick("1.x", "attempts=36 or 35 is the default of 0.98 and 1.x")
	default:
		j.v, j.release, j.why = retry.Version{Major: 1, Minor: 4, Patch: 14}, "unknown", "nothing in the input says; tables of 0.96.2 and later assumed"
	}
}

// starts are the index conventions to try: both, and the third of old region
// calls if the release is known to use it.
func (j *judge) starts() []int {
	if j.known && j.c.Version != "" && retry.FirstIndex(j.v, retry.RegionCalls) == 2 {
		return []int{0, 1, 2}
	}
	return []int{0, 1}
}

// pause is hbase.client.pause: as configured, as printed, or the default.
func (j *judge) pause() int64 {
	if v, ok := j.get("hbase.client.pause"); ok && v > 0 {
		return v
	}
	for _, f := range j.by[Attempt] {
		if f.Pause > 0 {
			return f.Pause
		}
	}
	return ms(retry.JavaDefaults(j.v).Pause)
}

// maxEvidence bounds what a finding shows.
const maxEvidence = 5

func evidence(facts ...*Fact) []finding.Evidence {
	var out []finding.Evidence
	seen := map[string]bool{}
	for _, f := range facts {
		if len(out) >= maxEvidence {
			break
		}
		key := fmt.Sprint(f.File, f.Line)
		if seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, f.evidence())
	}
	return out
}

// level is the log level of a fact's entry, "" if it shows none.
func level(f *Fact) string { return f.Level }

// quiet says that all facts stand in lines that their writer logged as
// information: retried, not given up.
func quiet(facts []*Fact) bool {
	for _, f := range facts {
		switch level(f) {
		case "INFO", "DEBUG", "TRACE", "WARN":
		default:
			return false
		}
	}
	return len(facts) > 0
}

func num(name string, v int64, unit, formula string) finding.Number {
	return finding.Number{Name: name, Value: v, Unit: unit, Formula: formula}
}

func numf(name string, v float64, unit, formula string) finding.Number {
	return finding.Number{Name: name, Value: v, Unit: unit, Formula: formula}
}

// groupBy keeps the order of first appearance.
func groupBy(facts []*Fact, key func(*Fact) string) (keys []string, groups map[string][]*Fact) {
	groups = map[string][]*Fact{}
	for _, f := range facts {
		k := key(f)
		if _, ok := groups[k]; !ok {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], f)
	}
	return keys, groups
}

// failed are facts that say an operation ended in an error, not that it was
// tried again.
func (j *judge) failed() bool {
	for _, k := range []Kind{CallTimedOut, Exhausted} {
		for _, f := range j.by[k] {
			if l := level(f); l != "INFO" && l != "DEBUG" && l != "TRACE" {
				return true
			}
		}
	}
	return false
}
