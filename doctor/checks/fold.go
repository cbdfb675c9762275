package checks

import (
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// order is the causal order of verdicts: earlier ones explain later ones.
var order = []string{
	"CLIENT_DEADLOCK", "RETRY_NEVER_POSSIBLE", "COPROCESSOR_ABORT", "ZK_SESSION_EXPIRED_PAUSE", "ZK_SESSION_EXPIRED_NETWORK", "OUT_OF_MEMORY", "DISK_FULL", "HDFS_SAFE_MODE",
	"KERBEROS_CLOCK_SKEW", "KERBEROS_WRONG_PRINCIPAL", "KERBEROS_RELOGIN_LOOP", "KERBEROS_NO_TGT", "VERSION_MISMATCH", "WRONG_PORT_CLASS", "NAME_UNRESOLVABLE", "LOOPBACK_ADVERTISED",
	"ZNODE_PARENT_MISMATCH", "ZK_TOO_MANY_CONNECTIONS", "LOCK_CONVOY_META_LOOKUP", "META_LOCK_TIMEOUT", "META_LOCK_UNBOUNDED", "REGION_IN_TRANSITION", "MASTER_INITIALIZING",
	"SERVER_OVERLOADED_QUEUE", "REGION_TOO_BUSY_MEMSTORE", "STALE_META_LOCATION", "GATEWAY_STALE_ROUTE", "PORT_UNREACHABLE", "ZK_UNREACHABLE", "RETRY_BUDGET_SHORT",
	"REGION_OPENING", "RETRY_BUDGET_FAST_FAIL", "RETRY_BUDGET_SLOW_RPC", "STALE_LOCATION_NOT_REFRESHED", "STALE_REGION_LOCATION",
}

func rank(id string) int {
	if i := slices.Index(order, id); i >= 0 {
		return i
	}
	return len(order)
}

// roots are verdicts that explain why attempts failed, at once or slowly.
func explainsBudget(root, budget *finding.Finding) bool {
	switch root.ID {
	case "NAME_UNRESOLVABLE", "LOOPBACK_ADVERTISED", "PORT_UNREACHABLE", "MASTER_INITIALIZING", "COPROCESSOR_ABORT", "REGION_IN_TRANSITION", "STALE_META_LOCATION",
		"SERVER_OVERLOADED_QUEUE", "REGION_TOO_BUSY_MEMSTORE", "KERBEROS_NO_TGT", "KERBEROS_WRONG_PRINCIPAL", "KERBEROS_CLOCK_SKEW", "KERBEROS_RELOGIN_LOOP", "META_LOCK_TIMEOUT", "VERSION_MISMATCH", "WRONG_PORT_CLASS", "ZNODE_PARENT_MISMATCH", "ZK_UNREACHABLE":
		if root.Severity < finding.Warning {
			return false
		}
		// The same line names both, or the same server.
		if sharesLine(root, budget) {
			return true
		}
		s := budget.Fields["server"]
		if s != "" && (root.Subject == s || root.Fields["server"] == s || root.Fields["host"] != "" && len(s) > len(root.Fields["host"]) && s[:len(root.Fields["host"])] == root.Fields["host"]) {
			return true
		}
		return s == "" && root.Severity >= finding.Error
	}
	return false
}

// sharesLine says that two findings rest on one line.
func sharesLine(a, b *finding.Finding) bool {
	for _, e := range a.Evidence {
		for _, f := range b.Evidence {
			if e.File == f.File && e.Line == f.Line {
				return true
			}
		}
	}
	return false
}

// fold moves consequences under their root causes.
func (j *judge) fold() {
	gone := make([]bool, len(j.out))
	under := func(root, echo int) {
		r, e := &j.out[root], &j.out[echo]
		gone[echo] = true
		r.Echoes = append(r.Echoes, finding.Echo{ID: e.ID, Text: e.Cause})
		for _, n := range e.Numbers {
			if _, dup := r.Number(n.Name); !dup {
				r.Numbers = append(r.Numbers, n)
			}
		}
		for k, v := range e.Fields {
			if r.Fields == nil {
				r.Fields = map[string]string{}
			}
			if _, dup := r.Fields[k]; !dup {
				r.Fields[k] = v
			}
		}
		r.Echoes = append(r.Echoes, e.Echoes...)
		r.Notes = append(r.Notes, e.Notes...)
		r.Plots = append(r.Plots, e.Plots...)
		for _, x := range e.Evidence {
			if len(r.Evidence) < maxEvidence && !slices.Contains(r.Evidence, x) {
				r.Evidence = append(r.Evidence, x)
			}
		}
		r.Severity = max(r.Severity, min(e.Severity, finding.Error))
	}
	find := func(id string) int {
		for i := range j.out {
			if j.out[i].ID == id && !gone[i] {
				return i
			}
		}
		return -1
	}
	// A region the master waits for explains the master's state.
	for i := range j.out {
		e := &j.out[i]
		if gone[i] {
			continue
		}
		switch e.ID {
		case "RETRY_BUDGET_FAST_FAIL", "RETRY_BUDGET_SLOW_RPC", "BATCH_RETRYING", "RETRIES_EXHAUSTED":
			for r := range j.out {
				if r != i && !gone[r] && explainsBudget(&j.out[r], e) {
					under(r, i)
					break
				}
			}
		case "RETRY_BUDGET_SHORT":
			for _, id := range [...]string{"NAME_UNRESOLVABLE", "LOOPBACK_ADVERTISED", "PORT_UNREACHABLE", "MASTER_INITIALIZING", "COPROCESSOR_ABORT", "KERBEROS_NO_TGT", "ZNODE_PARENT_MISMATCH", "ZK_UNREACHABLE", "SERVER_OVERLOADED_QUEUE", "REGION_TOO_BUSY_MEMSTORE", "STALE_META_LOCATION", "RETRY_BUDGET_SLOW_RPC"} {
				if r := find(id); r >= 0 && r != i && (j.out[r].Severity >= finding.Error || j.out[r].Severity > finding.Info && sharesLine(&j.out[r], e)) {
					under(r, i)
					break
				}
			}
		case "PORT_UNREACHABLE":
			if r := find("COPROCESSOR_ABORT"); r >= 0 {
				under(r, i)
			}
		case "ZK_UNREACHABLE":
			if r := find("NAME_UNRESOLVABLE"); r >= 0 && strings.Contains(e.Subject, j.out[r].Subject) {
				under(r, i)
			} else if r := find("WRONG_PORT_CLASS"); r >= 0 {
				// Both stay: the second is the symptom that the operator sees.
				e.Severity = finding.Warning
				e.Notes = append(e.Notes, "follows from WRONG_PORT_CLASS")
			}
		case "MASTER_INITIALIZING":
			for r := range j.out {
				if x := &j.out[r]; x.ID == "REGION_IN_TRANSITION" && x.Fields["table"] == "hbase:namespace" {
					x.Notes = append(x.Notes, "the master's initialization waits for this region")
				}
			}
		}
	}
	kept := j.out[:0]
	for i := range j.out {
		if !gone[i] {
			kept = append(kept, j.out[i])
		}
	}
	j.out = kept
}
