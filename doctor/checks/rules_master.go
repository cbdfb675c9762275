package checks

import (
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// stuck: regions that stay in transition by the master's own word.
func (j *judge) stuck() {
	keys, groups := groupBy(j.by[Stuck], func(f *Fact) string { return f.Table + " " + f.Encoded })
	if len(keys) > 20 {
		keys = keys[:20]
	}
	for _, k := range keys {
		g := groups[k]
		last := g[len(g)-1]
		subject := strings.TrimSpace(k)
		if subject == "" {
			subject = "a region"
		}
		f := finding.Finding{
			ID: "REGION_IN_TRANSITION", Severity: finding.Error, Confidence: finding.Certain, Subject: subject, Count: len(g), Evidence: evidence(g...),
			Cause:  fmt.Sprintf("the region stays in state %s", last.Class),
			Fix:    []string{"look at the log of the server it is to open on for the reason", "1.x: hbck -fixAssignments; 2.x: HBCK2 assigns REGION"},
			Fields: map[string]string{"state": last.Class, "table": last.Table, "region": last.Encoded},
			Not:    []string{"client retries will help", "increase the client's timeout"},
		}
		if last.Server.Known() {
			f.Cause += " on " + last.Server.String()
			f.Fields["server"] = last.Server.String()
			f.Notes = append(f.Notes, "check that the master can reach that server under the name it registered: "+last.Server.String())
		}
		j.add(f)
	}
}

func (j *judge) master() {
	busy, gone := j.by[MasterBusy], j.by[MasterGone]
	ready := j.by[MasterReady]
	if len(busy) > 0 {
		f := finding.Finding{
			ID: "MASTER_INITIALIZING", Severity: finding.Error, Confidence: finding.Certain, Subject: "master", Count: len(busy), Evidence: evidence(busy...),
			Cause: "the master is up and has not finished initializing",
			Fix:   []string{"wait until the master's log says it has completed initialization, then start the clients again if they gave up", "if it does not end, look for the region the master waits for: hbase:meta and hbase:namespace must be online"},
			Not:   []string{"the client's settings are wrong", "the master is down"},
		}
		for i := range j.out {
			if o := &j.out[i]; o.ID == "REGION_IN_TRANSITION" && strings.HasPrefix(o.Fields["table"], "hbase:") {
				f.Cause = fmt.Sprintf("the master cannot finish initializing because %s stays in state %s", o.Fields["table"], o.Fields["state"])
				f.Fix = append([]string{"get that region open first: the cause is at its server"}, f.Fix...)
			}
		}
		waits := strings.Contains(f.Cause, "stays in state")
		if after(ready, busy) {
			f.Severity = finding.Info
			f.Cause = "the master was asked before it had finished initializing; it finished later"
		} else if (quiet(busy) && !j.failed() || serverStarting(busy)) && !waits {
			f.Severity = finding.Warning
		}
		j.add(f)
	}
	if len(gone) > 0 && len(j.by[Unresolved]) == 0 && len(j.by[ParentMissing]) == 0 && len(j.by[Refused]) == 0 && len(j.by[ZKLoss])+len(j.by[ConnectTimeout])+len(j.by[NoRoute]) == 0 && len(busy) == 0 {
		j.add(finding.Finding{
			ID: "MASTER_NOT_RUNNING", Severity: finding.Error, Subject: "master", Count: len(gone), Evidence: evidence(gone...),
			Cause: "the client found no active master",
			Fix:   []string{"look at the master's log; check that a master is registered under the znode parent the client uses"},
		})
	}
}

// serverStarting: only "not running yet", and only in servers' own logs, where
// it is a server that was asked too early.
func serverStarting(facts []*Fact) bool {
	for _, f := range facts {
		if f.Class != "ServerNotRunningYet" || level(f) == "" {
			return false
		}
	}
	return true
}

// after says whether some fact of a lies after all of b: by time, by place if
// the times do not compare.
func after(a, b []*Fact) bool {
	for _, x := range a {
		ok := true
		for _, y := range b {
			if x.Has && y.Has {
				if x.Stamp.Milli < y.Stamp.Milli {
					ok = false
				}
			} else if x.File != y.File || x.Line < y.Line {
				ok = false
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// parents: znode parent missing or mismatched.
func (j *judge) parents() {
	facts := append([]*Fact{}, j.by[ParentMissing]...)
	for _, f := range j.by[NoNode] {
		if l := level(f); l != "DEBUG" && l != "INFO" {
			facts = append(facts, f)
		}
	}
	if len(facts) == 0 {
		return
	}
	path := ""
	for _, f := range facts {
		if f.Path != "" {
			path = f.Path
		}
	}
	f := finding.Finding{
		ID: "ZNODE_PARENT_MISMATCH", Severity: finding.Error, Confidence: finding.Possible, Subject: "zookeeper.znode.parent", Count: len(facts), Evidence: evidence(facts...),
		Cause: "ZooKeeper answers, and what HBase keeps there is not under the parent that the client uses",
		Fix:   []string{"set zookeeper.znode.parent to the cluster's (Hortonworks: /hbase-unsecure or /hbase-secure), best by giving the client the cluster's hbase-site.xml", "if the parent is right, start the master and read its log"},
		Not:   []string{"ZooKeeper is down: it answered"},
		Rivals: []finding.Rival{
			{ID: "ZNODE_PARENT_MISMATCH", Text: "client and cluster disagree on zookeeper.znode.parent", Separates: "`holdfast doctor live` or zkCli `ls /`: another node than " + orHBase(path) + " has children hbaseid, master, rs"},
			{ID: "MASTER_NOT_RUNNING", Text: "HBase never started, so nothing was written", Separates: "no node of the root has such children"},
		},
	}
	if path != "" {
		f.Fields = map[string]string{"path": path}
	}
	if s, ok := j.settings["zookeeper.znode.parent"]; ok {
		f.Notes = append(f.Notes, "this input sets zookeeper.znode.parent = "+s.value)
		f.Evidence = append(f.Evidence, s.ev)
	}
	if quiet(facts) && !j.failed() && len(j.by[MasterReady])+len(j.by[ZKEstablished]) > 0 {
		f.Severity = finding.Warning
	}
	j.add(f)
}

func orHBase(p string) string {
	if p == "" {
		return "/hbase"
	}
	if i := strings.IndexByte(p[1:], '/'); i > 0 {
		return p[:i+1]
	}
	return p
}
