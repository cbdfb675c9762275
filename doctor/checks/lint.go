package checks

import (
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// lint proves what settings alone imply. It says nothing about settings that
// are not in the input, except where their defaults decide.
func (j *judge) lint() {
	j.lintBudget()
	j.lintKylin()
	j.lintFailover()
	j.lintMeta()
	j.lintScanner()
	j.lintForms()
}

func (j *judge) lintBudget() {
	rpc, set := j.get("hbase.rpc.timeout")
	if !set || j.has("RETRY_NEVER_POSSIBLE") {
		return
	}
	op, opSet := j.get("hbase.client.operation.timeout")
	if !opSet {
		op = ms(retry.JavaDefaults(j.v).OperationTimeout)
		if op == 0 {
			return // unlimited
		}
	}
	pause := j.pause()
	f := finding.Finding{Subject: "hbase.rpc.timeout", Evidence: j.settingEvidence("hbase.rpc.timeout", "hbase.client.operation.timeout"), Confidence: finding.Certain, Count: 1,
		Numbers: []finding.Number{num("rpc_timeout", rpc, "ms", "hbase.rpc.timeout"), num("operation_timeout", op, "ms", map[bool]string{true: "hbase.client.operation.timeout", false: "default of hbase.client.operation.timeout"}[opSet])}}
	old := j.v.Major == 0 && j.v.Minor == 98 && j.known
	switch {
	case rpc+pause > op && (old || rpc >= op):
		f.ID = "RETRY_NEVER_POSSIBLE"
		f.Fix = []string{fmt.Sprintf("set hbase.rpc.timeout well below hbase.client.operation.timeout, e.g. %d", max(op/10, 1))}
		f.Not = []string{"increase the number of retries", "increase the timeout"}
		f.Numbers = append(f.Numbers, num("largest_rpc_timeout_with_a_retry", op-pause-1, "ms", fmt.Sprintf("below %d - first pause %d", op, pause)))
		if old {
			f.Severity = finding.Error
			f.Cause = fmt.Sprintf("retries can never happen: hbase.rpc.timeout=%d is not below hbase.client.operation.timeout=%d, and this client adds the rpc timeout to the time elapsed before it decides to retry", rpc, op)
			f.Notes = append(f.Notes, "0.98.21 to 0.98.24 do so; earlier 0.98 add 2000 ms instead")
		} else {
			f.Severity = finding.Warning
			f.Cause = fmt.Sprintf("one slow RPC can use the whole budget: hbase.rpc.timeout=%d is not below hbase.client.operation.timeout=%d", rpc, op)
			if !j.known {
				f.Notes = append(f.Notes, "on a 0.98 client retries can never happen with these settings")
			}
		}
		j.add(f)
	case rpc > op/2:
		f.ID, f.Severity = "RETRY_ROOM_SMALL", finding.Info
		f.Cause = fmt.Sprintf("at most one full-length retry fits: hbase.rpc.timeout=%d is more than half of hbase.client.operation.timeout=%d", rpc, op)
		f.Fix = []string{"a third of the operation timeout or less lets another server be tried"}
		j.add(f)
	}
}

// lintKylin: Kylin computes timeouts of its own.
func (j *judge) lintKylin() {
	t, ok := j.get("kylin.storage.hbase.coprocessor-timeout-seconds")
	if !ok {
		return
	}
	rpc := j.getOr("hbase.rpc.timeout", ms(retry.JavaDefaults(j.v).RPCTimeout))
	op := j.getOr("hbase.client.operation.timeout", 1200000)
	ev := j.settingEvidence("kylin.storage.hbase.coprocessor-timeout-seconds", "hbase.rpc.timeout")
	if t == 0 {
		j.add(finding.Finding{ID: "KYLIN_ENDPOINT_DEADLINE", Severity: finding.Info, Confidence: finding.Certain, Subject: "kylin.storage.hbase.coprocessor-timeout-seconds", Evidence: ev, Count: 1,
			Cause:   fmt.Sprintf("unset (0): the endpoint's deadline is 0.9 x hbase.rpc.timeout = %d ms, so lowering hbase.rpc.timeout shortens queries too", rpc*9/10),
			Numbers: []finding.Number{num("endpoint_deadline", rpc*9/10, "ms", fmt.Sprintf("0.9 x %d", rpc)), num("endpoint_deadline_at_120000", 108000, "ms", "0.9 x 120000")}})
		return
	}
	effective := max(rpc, t*1100)
	f := finding.Finding{Confidence: finding.Certain, Subject: "kylin.storage.hbase.coprocessor-timeout-seconds", Evidence: ev, Count: 1,
		Numbers: []finding.Number{num("rpc_timeout", effective, "ms", fmt.Sprintf("max(%d, 1.1 x %d s): Kylin raises hbase.rpc.timeout in its own process", rpc, t)), num("operation_timeout", op, "ms", "")}}
	if effective+j.pause() > op {
		f.ID = "RETRY_NEVER_POSSIBLE"
		f.Severity = finding.Error
		f.Cause = fmt.Sprintf("retries can never happen: coprocessor-timeout-seconds=%d makes Kylin use hbase.rpc.timeout=%d, which leaves no room within hbase.client.operation.timeout=%d", t, effective, op)
		f.Fix = []string{fmt.Sprintf("below %d seconds, or raise hbase.client.operation.timeout", (op-j.pause())*10/11/1000)}
		if j.known && !(j.v.Major == 0) {
			f.Severity = finding.Warning
			f.Cause = fmt.Sprintf("one slow RPC can use the whole budget: coprocessor-timeout-seconds=%d makes Kylin use hbase.rpc.timeout=%d, not below hbase.client.operation.timeout=%d", t, effective, op)
		}
		j.out = removeID(j.out, "RETRY_NEVER_POSSIBLE", "hbase.rpc.timeout")
	} else {
		f.ID, f.Severity = "KYLIN_RPC_TIMEOUT_RAISED", finding.Info
		f.Cause = fmt.Sprintf("Kylin uses hbase.rpc.timeout=%d in its own process", effective)
		if effective == rpc {
			return
		}
	}
	j.add(f)
}

func removeID(out []finding.Finding, id, subject string) []finding.Finding {
	kept := out[:0]
	for _, f := range out {
		if f.ID != id || f.Subject != subject {
			kept = append(kept, f)
		}
	}
	return kept
}

// lintFailover compares the whole retry time with how long a crash takes to be
// noticed.
func (j *judge) lintFailover() {
	pause, pset := j.get("hbase.client.pause")
	retries, rset := j.get("hbase.client.retries.number")
	if !pset && !rset {
		return
	}
	def := retry.JavaDefaults(j.v)
	if !pset {
		pause = ms(def.Pause)
	}
	if !rset {
		retries = int64(def.Retries)
	}
	if retries < 0 || retries > 100000 || pause <= 0 || pause > 1e7 {
		return
	}
	attempts := retry.Attempts(j.v, int(retries))
	lo, hi := scheduleOf(j.v, pause, 0).sum(min(attempts, 5000)-1), scheduleOf(j.v, pause, 1).sum(min(attempts, 5000)-1)
	session := j.getOr("zookeeper.session.timeout", 90000)
	if !j.known || j.v.Major > 0 {
		hi = max(lo, hi)
	}
	evid := j.settingEvidence("hbase.client.pause", "hbase.client.retries.number", "zookeeper.session.timeout")
	if hi < session {
		j.add(finding.Finding{ID: "RETRY_BUDGET_VS_FAILOVER", Severity: finding.Warning, Confidence: finding.Certain, Subject: "hbase.client.retries.number", Evidence: evid, Count: 1,
			Cause: fmt.Sprintf("all retries end after %s to %s of pauses, before a crashed server is even noticed (session timeout %s, then log splitting): every client gives up", Seconds(lo), Seconds(hi), Seconds(session)),
			Fix:   []string{"decide which failover time must be survived (ZooKeeper session timeout + log split) and let the pauses sum to more", "or keep the short budget on purpose and retry in the caller"},
			Not:   []string{"one pair of pause and retries is the right one: published advice differs, the totals decide"},
			Numbers: []finding.Number{num("total_start0", lo, "ms", fmt.Sprintf("%d pauses at pause=%d", attempts-1, pause)), num("total_start1", hi, "ms", fmt.Sprintf("%d pauses at pause=%d", attempts-1, pause)),
				num("session_timeout", session, "ms", "zookeeper.session.timeout of the servers, 90000 by default")}})
	} else if hi > 3600000 {
		j.add(finding.Finding{ID: "RETRY_BUDGET_HOURS", Severity: finding.Warning, Confidence: finding.Certain, Subject: "hbase.client.pause", Evidence: evid, Count: 1,
			Cause:   fmt.Sprintf("a call that fails at once goes on for %.1f hours", float64(hi)/3600000),
			Fix:     []string{"lower hbase.client.pause; the longest single pause is 200 x pause"},
			Numbers: []finding.Number{num("total_start1", hi, "ms", fmt.Sprintf("%d pauses at pause=%d", attempts-1, pause)), num("longest_pause", 200*pause, "ms", "200 x pause")}})
	}
}

func (j *judge) lintMeta() {
	op, ok := j.get("hbase.client.operation.timeout")
	if !ok {
		return
	}
	meta, set := j.get("hbase.client.meta.operation.timeout")
	if set || j.known && j.v.Major >= 3 {
		if set && meta > op && (!j.known || j.v.Major >= 1) {
			j.metaUnbounded(op, meta, "as set")
		}
		return
	}
	if op < 1200000 {
		j.metaUnbounded(op, 1200000, "the default; HBASE-28608 lets it follow the operation timeout")
	}
}

func (j *judge) metaUnbounded(op, meta int64, why string) {
	// Releases with a time limit on the lookup lock: 1.7, 2.3.2 and later (HBASE-24956).
	limited := j.known && (j.v.Major == 1 && j.v.Minor >= 7 || j.v.Major >= 2 && j.v.Compare(retry.Version{Major: 2, Minor: 3, Patch: 2}) >= 0)
	f := finding.Finding{ID: "META_LOCK_UNBOUNDED", Severity: finding.Warning, Confidence: finding.Likely, Subject: "hbase.client.meta.operation.timeout", Count: 1,
		Evidence: j.settingEvidence("hbase.client.operation.timeout", "hbase.client.meta.operation.timeout"),
		Cause:    fmt.Sprintf("meta operation timeout %d > operation timeout %d: a user operation can wait far longer than its own limit for the lookup lock", meta, op),
		Fix:      []string{"set hbase.client.meta.operation.timeout to the operation timeout or less"},
		Numbers:  []finding.Number{num("meta_operation_timeout", meta, "ms", why), num("operation_timeout", op, "ms", "hbase.client.operation.timeout")}}
	if j.known && !limited {
		f.Notes = append(f.Notes, "before HBASE-24956 (1.7, 2.3.2) the wait for the lookup lock has no limit at all")
	}
	j.add(f)
}

func (j *judge) lintScanner() {
	lease, ok := j.get("hbase.client.scanner.timeout.period")
	rpc, set := j.get("hbase.rpc.timeout")
	if ok && set && rpc < lease/10 && rpc > 0 {
		j.add(finding.Finding{ID: "SCAN_TIMEOUT_MIX", Severity: finding.Info, Confidence: finding.Certain, Subject: "hbase.rpc.timeout", Count: 1, Evidence: j.settingEvidence("hbase.client.scanner.timeout.period", "hbase.rpc.timeout"),
			Cause: fmt.Sprintf("a next call of a scan gets hbase.rpc.timeout=%d, not hbase.client.scanner.timeout.period=%d, in sync clients up to 2.5: slow fetches end as out-of-order errors", rpc, lease)})
	}
}

// lintForms: values that are not what they should be.
func (j *judge) lintForms() {
	for _, p := range j.c.Settings {
		for _, n := range propertyNames {
			if p.Name != n {
				continue
			}
			if s := j.settings[n]; !s.num && s.value != "" && !strings.Contains(s.value, "${") {
				j.add(finding.Finding{ID: "SETTING_NOT_A_NUMBER", Severity: finding.Error, Confidence: finding.Certain, Subject: n, Count: 1, Evidence: j.settingEvidence(n),
					Cause: fmt.Sprintf("%s = %q is not a number; the client fails to start or falls back to its default", n, cut(s.value, 60)), Fix: []string{"give milliseconds as digits"}})
			}
		}
	}
}

// gateway: reports of incidents that no log holds, given as facts of the form
// key=value (see Symptoms).
func (j *judge) gateway() {
	facts := map[string]string{}
	for _, c := range j.c.Context {
		k, v, _ := strings.Cut(c, "=")
		facts[strings.TrimSpace(strings.ToLower(k))] = strings.TrimSpace(strings.ToLower(v))
	}
	if len(facts) == 0 {
		return
	}
	ok := func(k string) bool { return facts[k] == "ok" || facts[k] == "yes" || facts[k] == "true" }
	first, _, hasFirst := intAt(facts["first-access-ms"], 0)
	regions, _, _ := intAt(facts["regions"], 0)
	if (facts["affected"] == "one-table" || facts["affected"] == "one table") && ok("shell") && ok("gateway") {
		f := finding.Finding{ID: "GATEWAY_STALE_ROUTE", Severity: finding.Error, Confidence: finding.Likely, Subject: orUnknown(facts["table"], "one table"), Count: 1,
			Cause: "the shared gateway keeps routes to the place where the table's regions were before they moved",
			Fix:   []string{"evict that table's cached locations in the gateway (admin endpoint); restart only as a fallback", "retry in the caller", "reduce the number of regions, and look the table up ahead after moves"},
			Not:   []string{"the servers are down: the shell works", "the gateway is down: other tables work", "the table is cold"},
			Notes: []string{"eliminated in order: servers down (the shell works), gateway down (other tables work), cold table (a fresh client is fast)"}}
		if !ok("fresh-client") {
			f.Confidence = finding.Possible
			f.Rivals = []finding.Rival{{ID: "REGION_IN_TRANSITION", Text: "the table's regions are not open", Separates: "whether a fresh client reads the table"}}
		}
		if !ok("moved") {
			f.Notes = append(f.Notes, "a move, balancing or group change within the last hours would confirm it")
		}
		if budget, _, has := intAt(facts["budget-ms"], 0); has && budget > 0 {
			look := first
			if !hasFirst {
				look = 1000
			}
			f.Numbers = append(f.Numbers, num("one_stale_hop", look+100, "ms", fmt.Sprintf("lookup %d + first pause 100, besides the failed call and the call itself", look)), num("hops_that_fit", budget/(look+200)-boolInt(budget%(look+200) == 0), "hops", fmt.Sprintf("of %d ms; two lookups use %d", budget, 2*look)))
		}
		j.add(f)
	}
	if hasFirst && first > 1000 && regions > 300000 {
		j.add(finding.Finding{ID: "META_LOOKUP_SLOW", Severity: finding.Warning, Confidence: finding.Likely, Subject: "hbase:meta", Count: 1,
			Cause:   fmt.Sprintf("a first lookup takes %d ms with %d regions: hbase:meta is large and every cold client pays", first, regions),
			Fix:     []string{"fewer, larger regions", "keep hbase:meta on a server of its own; meta replicas for lookups"},
			Numbers: []finding.Number{num("first_access", first, "ms", "as measured"), num("regions", regions, "", "")}})
	}
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
