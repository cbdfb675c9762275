package checks

import (
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

func (j *judge) overload() {
	facts := append([]*Fact{}, j.by[QueueFull]...)
	hosts := map[string]bool{}
	var batch *Fact
	for _, f := range j.by[AsyncBatch] {
		if strings.Contains(f.Class, "CallQueueTooBig") || strings.Contains(f.Class, "queueisfull") {
			batch = f
			if f.Server.Known() {
				hosts[f.Server.String()] = true
			}
		}
	}
	for _, f := range facts {
		if f.Server.Known() {
			hosts[f.Server.String()] = true
		}
	}
	if len(facts) == 0 && batch == nil {
		return
	}
	f := finding.Finding{
		ID: "SERVER_OVERLOADED_QUEUE", Severity: finding.Error, Confidence: finding.Likely, Subject: strings.Join(sorted(hosts), ", "), Count: max(len(facts), 1), Evidence: evidence(facts...),
		Cause:  "the region server's call queue is full: calls arrive faster than its handlers finish them",
		Fix:    []string{"find the hot region and split or move it; spread the keys", "then look at what handlers wait for (slow disk, blocked flushes) and at hbase.regionserver.handler.count"},
		Not:    []string{"the queue limit (ipc.server.max.callqueue.size) is too small: it is a symptom, and a longer queue only answers later"},
		Fields: map[string]string{},
	}
	if len(hosts) == 1 {
		f.Cause += "; every line names the same server, so it is a hot spot rather than a busy cluster"
		f.Fields["hotspot"] = "single host"
		f.Fields["server"] = f.Subject
	}
	if batch != nil {
		j.batchNumbers(&f, batch)
	}
	j.add(f)
}

// batchNumbers checks the pause of a batch's line against the schedule.
func (j *judge) batchNumbers(f *finding.Finding, b *Fact) {
	pause := j.pause()
	f.Evidence = append(f.Evidence, b.evidence())
	f.Numbers = append(f.Numbers, num("attempt", b.Tries, "", fmt.Sprintf("of %d", b.Limit)))
	for _, st := range j.starts() {
		s := scheduleOf(j.v, pause, st)
		want := s.sleep(int(b.Tries))
		if b.Wait >= want && b.Wait <= want+jitter(want)+1 {
			f.Numbers = append(f.Numbers, num("wait", b.Wait, "ms", fmt.Sprintf("%d x pause %d + %.1f %% jitter, consistent with attempt %d (%s)", want/pause, pause, float64(b.Wait-want)*100/float64(want), b.Tries, s)))
			f.Numbers = append(f.Numbers, num("factor", want/pause, "", "multiplier of the schedule"))
			break
		}
	}
	if b.Elapsed > 0 {
		f.Numbers = append(f.Numbers, num("since_tracking_started", b.Elapsed, "ms", "line time - tracking started"))
	}
}

func (j *judge) memstore() {
	keys, groups := groupBy(j.by[MemstoreFull], func(f *Fact) string { return f.Table + f.Region })
	for _, k := range keys {
		g := groups[k]
		x := g[0]
		f := finding.Finding{
			ID: "REGION_TOO_BUSY_MEMSTORE", Severity: finding.Error, Confidence: finding.Certain, Subject: cut(x.Region, 120), Count: len(g), Evidence: evidence(g...),
			Cause:  "writes arrive faster than the region's memstore is flushed, so the region refuses them above its blocking size",
			Fix:    []string{"pre-split the table so that writes spread over servers", "back off on this error; for bulk imports write HFiles instead", "look at why flushes lag: too many store files (hbase.hstore.blockingStoreFiles), slow HDFS"},
			Not:    []string{"the server lacks memory", "retry at once"},
			Fields: map[string]string{"table": x.Table, "server": x.Server.String()},
		}
		if x.Size > 0 && x.Limit > 0 {
			f.Numbers = append(f.Numbers, numf("ratio", round2(float64(x.Size)/float64(x.Limit)), "x", fmt.Sprintf("%d / %d", x.Size, x.Limit)))
		}
		if x.Limit > 0 {
			f.Numbers = append(f.Numbers, num("blocking_size", x.Limit, "bytes", fmt.Sprintf("flush size %d MiB x 4 if the defaults hold", x.Limit/4>>20)))
		}
		if _, start, _ := regionParts(x.Region); start == "" && x.Region != "" {
			f.Notes = append(f.Notes, "the region's start key is empty: the first or only region of its table")
		}
		j.add(f)
	}
	if g := j.by[RowLockBusy]; len(g) > 0 {
		j.add(finding.Finding{ID: "REGION_TOO_BUSY_LOCK", Severity: finding.Error, Subject: "a region", Count: len(g), Evidence: evidence(g...),
			Cause:   fmt.Sprintf("a handler waited %s for a lock of the region and gave up", Seconds(g[0].Wait)),
			Fix:     []string{"look for a long flush, split, bulk load or many writers of one row on that region"},
			Numbers: []finding.Number{num("wait", g[0].Wait, "ms", "hbase.busy.wait.duration, at most the client's rpc timeout")}})
	}
}

func round2(v float64) float64 { return float64(int64(v*100+0.5)) / 100 }

func (j *judge) scanners() {
	if g := j.by[ScannerOrder]; len(g) > 0 {
		j.add(finding.Finding{ID: "SCANNER_SEQ_OUT_OF_ORDER", Severity: finding.Error, Confidence: finding.Likely, Subject: "scan", Count: len(g), Evidence: evidence(g...),
			Cause: "a next call ran past the client's rpc timeout while the server completed it; the client asked again with the old sequence number and the server had moved on",
			Fix:   []string{"fetch less per call: lower scan caching, set batch or max result size", "raise hbase.rpc.timeout above the slowest next", "HBase 1.1 and later send heartbeats, which avoid it"},
			Not:   []string{"data is lost: the scan failed as a whole"}})
	}
	unknown, gaps, missing := j.by[ScannerUnknown], j.by[ScannerGap], j.by[ScannerMissing]
	if len(unknown)+len(gaps)+len(missing) > 0 {
		f := finding.Finding{ID: "SCANNER_LEASE_EXPIRED", Severity: finding.Warning, Confidence: finding.Likely, Subject: "scanner", Count: len(unknown) + len(gaps) + len(missing),
			Cause: "the client took longer between two calls of a scan than the server keeps an idle scanner",
			Fix:   []string{"fetch fewer rows per call so that their processing stays below the limit, or set Scan.setBatch for very wide rows", "raise hbase.client.scanner.timeout.period on client and servers"},
			Not:   []string{"data is lost: the Java client re-opens the scan at the last row"}}
		limit := j.getOr("hbase.client.scanner.timeout.period", 60000)
		if len(gaps) > 0 {
			g := gaps[0]
			f.Severity = finding.Error
			if g.Timeout > 0 {
				limit = g.Timeout
			}
			f.Confidence = finding.Certain
			f.Numbers = append(f.Numbers, num("gap", g.Duration, "ms", "time since the call before"), num("limit", limit, "ms", "hbase.client.scanner.timeout.period"), num("over", g.Duration-limit, "ms", fmt.Sprintf("%d - %d", g.Duration, limit)))
		}
		rows := int64(50)
		from := "for example"
		if v, ok := j.get("hbase.client.scanner.caching"); ok && v > 0 && v < 1e6 {
			rows, from = v, "hbase.client.scanner.caching"
		}
		f.Numbers = append(f.Numbers, num("time_per_row", limit/rows, "ms", fmt.Sprintf("%d / %d rows per fetch (%s): rows_per_fetch x time_per_row must stay below the limit", limit, rows, from)))
		if len(missing) > 0 {
			f.Notes = append(f.Notes, "seen by the server; scanner ids are signed 64-bit numbers, negative ones are normal")
		}
		if len(unknown) > 3 && !quiet(unknown) {
			f.Severity = finding.Error
			f.Notes = append(f.Notes, "it repeats: one slow place in the data or a client with long pauses")
		} else if len(unknown) > 0 {
			f.Notes = append(f.Notes, "one occurrence is re-opened by the Java client; it matters if it repeats for the same start row")
		}
		f.Evidence = evidence(append(append(append([]*Fact{}, gaps...), unknown...), missing...)...)
		j.add(f)
	}
	if g := j.by[ScannerClosed]; len(g) > 0 {
		j.add(finding.Finding{ID: "SCANNER_ALREADY_CLOSED_BENIGN", Severity: finding.Info, Confidence: finding.Certain, Subject: "scanner", Count: len(g), Evidence: evidence(g...),
			Cause: "a scanner that had expired at the server while idle was closed by the client; data is not affected",
			Fix:   []string{"close scanners early"}, Not: []string{"rows are missing"}})
	}
}

func (j *judge) lookupLocks() {
	g := j.by[LookupLock]
	if len(g) == 0 {
		return
	}
	f := finding.Finding{ID: "META_LOCK_TIMEOUT", Severity: finding.Error, Confidence: finding.Certain, Subject: "hbase:meta lookup", Count: len(g), Evidence: evidence(g...),
		Cause:   "one lock per connection lets only one thread at a time look regions up in hbase:meta, and the others waited too long for it",
		Fix:     []string{"spread the threads over several connections", "keep hbase:meta fast: its server's load, its size, the number of regions", "or a client that looks up without a common lock (the async client, this project's client)"},
		Not:     []string{"a deadlock"},
		Numbers: []finding.Number{num("wait", g[0].Wait, "ms", "hbase.client.meta.operation.timeout, which limits the wait for the lock")},
		Notes:   []string{"the modern form of threads queueing for ever behind a lookup that retries (LOCK_CONVOY_META_LOOKUP)"}}
	j.add(f)
}

// regions: what servers said about regions they do not serve.
func (j *judge) regions() {
	if g := j.by[Opening]; len(g) > 0 {
		f := finding.Finding{ID: "REGION_OPENING", Severity: finding.Warning, Confidence: finding.Certain, Subject: cut(g[0].Region, 160), Count: len(g), Evidence: evidence(g...),
			Cause: "the region was being opened (move, alter, restart); the state is short and retryable",
			Fix:   []string{"retry after a short pause"}, Not: []string{"the location is out of date: it is right, the region is just not open yet"},
			Fields: map[string]string{"table": g[0].Table, "server": g[0].Server.String()}}
		if g[0].Class == "asynchbase" {
			f.Notes = append(f.Notes, "retryable; this client library does not retry it (AsyncHBase before its fix retries only NotServingRegion and RegionMoved)")
			f.Fix = append(f.Fix, "upgrade the client library, or retry in the caller")
		}
		j.add(f)
	}
	if g := j.by[WrongRegion]; len(g) > 0 {
		j.add(finding.Finding{ID: "STALE_REGION_LOCATION", Severity: finding.Error, Confidence: finding.Likely, Subject: "a region", Count: len(g), Evidence: evidence(g...),
			Cause: "the client maps rows to region borders that no longer exist: the region was split or merged since it looked",
			Fix:   []string{"clear the client's region cache, or restart that client"}, Not: []string{"the row is lost"}})
	}
	var meta, user []*Fact
	for _, f := range j.by[NotServing] {
		if f.meta() || strings.HasPrefix(f.Region, "hbase:meta") {
			meta = append(meta, f)
		} else {
			user = append(user, f)
		}
	}
	if len(meta) > 0 && !j.metaMoving() {
		f := finding.Finding{ID: "STALE_META_LOCATION", Severity: finding.Error, Confidence: finding.Likely, Subject: "hbase:meta", Count: len(meta), Evidence: evidence(meta...),
			Cause:  fmt.Sprintf("%s is asked for hbase:meta and does not hold it: its place in ZooKeeper is out of date, or it belongs to another cluster", orUnknown(meta[0].Server.String(), "a server")),
			Fix:    []string{"compare the znode meta-region-server with what the master's UI says", "check zookeeper.znode.parent, and that one name does not lead to two clusters"},
			Not:    []string{"the table does not exist"},
			Fields: map[string]string{"server": meta[0].Server.String()}}
		if quiet(meta) && !j.failed() && level(meta[0]) != "DEBUG" {
			f.Severity = finding.Warning
		}
		j.add(f)
	}
	keys, groups := groupBy(user, func(f *Fact) string {
		if f.Encoded != "" {
			return f.Encoded
		}
		return f.Region
	})
	if len(keys) > 50 {
		keys = keys[:50]
	}
	var singles []*Fact
	for _, k := range keys {
		g := groups[k]
		if j.persists(g) {
			x := g[0]
			f := finding.Finding{ID: "REGION_IN_TRANSITION", Severity: finding.Error, Confidence: finding.Likely, Subject: cut(orUnknown(x.Region, x.Encoded), 160), Count: len(g), Evidence: evidence(g...),
				Cause:  j.stuckCause(x),
				Fix:    []string{"1.x: hbck; 2.x: HBCK2 assigns REGION", "read the master's log for that region"},
				Not:    []string{"client retries will help"},
				Fields: map[string]string{"server": x.Server.String(), "region": x.Encoded}}
			j.add(f)
			continue
		}
		singles = append(singles, g...)
	}
	if len(singles) > 0 && len(j.by[Moved])+len(j.by[Attempt]) == 0 || len(singles) > 0 && !j.hasAttempts() {
		x := singles[0]
		f := finding.Finding{ID: "STALE_REGION_LOCATION", Severity: finding.Error, Confidence: finding.Possible, Subject: cut(orUnknown(x.Region, x.Encoded), 160), Count: len(singles), Evidence: evidence(singles...),
			Cause:  fmt.Sprintf("the client asked %s for a region it does not serve (any more)", orUnknown(x.Server.String(), "a server")),
			Fix:    []string{"normal clients look the region up again at the next attempt; if it goes on, see whether the region is open anywhere: 1.x hbck, 2.x HBCK2 assigns"},
			Fields: map[string]string{"server": x.Server.String(), "region": x.Encoded, "table": x.Table},
			Rivals: []finding.Rival{{ID: "REGION_IN_TRANSITION", Text: "the region is in meta but open nowhere", Separates: "the same region and server again and again over the whole retry schedule, or the master's list of regions in transition"}}}
		if quiet(singles) && !j.failed() {
			f.Severity = finding.Info
			if level(x) == "WARN" {
				f.Severity = finding.Warning
			}
			f.Notes = append(f.Notes, "logged as information: regions on the move answer so for a moment")
		}
		j.add(f)
	}
	if g := j.by[Moved]; len(g) > 0 && !j.hasAttempts() && !j.has("STALE_REGION_LOCATION") {
		f := finding.Finding{ID: "STALE_REGION_LOCATION", Severity: finding.Info, Confidence: finding.Certain, Subject: g[0].Server.String(), Count: len(g), Evidence: evidence(g...),
			Cause:  fmt.Sprintf("the region had moved to %s; the answer carries the new place, so the next attempt goes there", g[0].Server),
			Fields: map[string]string{"moved_to": g[0].Server.String()}}
		if !quiet(g) {
			f.Severity = finding.Warning
		}
		j.add(f)
	}
}

func (j *judge) stuckCause(x *Fact) string {
	if x.Class == "NoServerForRegion" {
		return "hbase:meta names no server for the region, over all tries: it is open nowhere"
	}
	return fmt.Sprintf("%s keeps answering that it does not serve the region, over the whole retry schedule: it is open nowhere", orUnknown(x.Server.String(), "its server"))
}

func orUnknown(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (j *judge) hasAttempts() bool { return len(j.by[Attempt]) > 0 }

// metaMoving: meta was on the move during the attempts seen, which the budget
// rule explains better than a stale location.
func (j *judge) metaMoving() bool {
	return len(j.by[Moved]) > 0 && len(j.by[Attempt]) > 0
}

// persists says whether the same region and server stand in several lines over
// a stretch of time that any normal move is shorter than.
func (j *judge) persists(g []*Fact) bool {
	if g[0].Class == "NoServerForRegion" {
		return len(j.by[Exhausted]) > 0 // the row of hbase:meta names no server, over all tries
	}
	if len(g) < 3 {
		// One line that ends a whole schedule says as much.
		for _, f := range g {
			for _, c := range j.by[CallTimedOut] {
				if c.File == f.File && c.Line == f.Line && c.Timeout >= 30000 {
					return true
				}
			}
		}
		return false
	}
	var lo, hi int64
	same := 0
	for _, f := range g {
		if f.Server == g[0].Server && f.Server.Known() {
			same++
		}
		if t, ok := f.at(); ok {
			if lo == 0 || t < lo {
				lo = t
			}
			hi = max(hi, t)
		}
	}
	return same >= 3 && (hi-lo >= 30000 || lo == 0 && same >= 6 && j.failed())
}

func (j *judge) clientGone() {
	g := j.by[ClientGone]
	if len(g) == 0 {
		return
	}
	x := g[0]
	for _, f := range g {
		if f.Method != "" {
			x = f
			break
		}
	}
	f := finding.Finding{ID: "CLIENT_GONE", Severity: finding.Warning, Confidence: finding.Likely, Subject: orUnknown(x.Addr, "a client"), Count: len(g), Evidence: evidence(g...),
		Cause:  "the client hung up before the server had answered: its hbase.rpc.timeout ended first, or the process ended",
		Fix:    []string{"look for responseTooSlow and pause lines of the server right before; they say what took the time"},
		Not:    []string{"the network broke"},
		Fields: map[string]string{"method": x.Method, "client": x.Addr}}
	if s := j.by[SlowResponse]; len(s) > 0 {
		f.Numbers = append(f.Numbers, num("slow_responses", int64(len(s)), "", "responseTooSlow lines in the input"))
		f.Evidence = append(f.Evidence, s[0].evidence())
	}
	for _, p := range j.by[Pause] {
		f.Numbers = append(f.Numbers, num("pause", p.Duration-p.Limit, "ms", "the server stood still"))
		break
	}
	j.add(f)
}

// slowServer: only if nothing else says why.
func (j *judge) slowServer() {
	if g := j.by[SlowResponse]; len(g) > 0 && len(j.out) == 0 {
		x := g[0]
		for _, f := range g {
			if f.Duration > x.Duration {
				x = f
			}
		}
		j.add(finding.Finding{ID: "SERVER_SLOW", Severity: finding.Warning, Confidence: finding.Certain, Subject: x.Method, Count: len(g), Evidence: evidence(x),
			Cause:   fmt.Sprintf("the server took up to %s for a call (%s), %s of it in the queue", Seconds(x.Duration), orUnknown(x.Method, "unnamed"), Seconds(x.Wait)),
			Fix:     []string{"a long queue: few handlers or a hot region; a long processing time: what the call asks for, disk, collections"},
			Numbers: []finding.Number{num("processing", x.Duration, "ms", "as logged"), num("queued", x.Wait, "ms", "as logged")}})
	}
}

// simple: faults whose name says it.
func (j *judge) simple() {
	keys, groups := groupBy(j.by[OtherFault], func(f *Fact) string { return f.Class })
	for _, id := range keys {
		e, ok := catalog[id]
		if !ok {
			continue
		}
		g := groups[id]
		f := finding.Finding{ID: id, Severity: e.Severity, Confidence: finding.Likely, Subject: cut(orUnknown(g[0].Server.String(), g[0].File), 120), Count: len(g), Evidence: evidence(g...), Cause: e.Meaning, Fix: e.Fix, Not: e.Not}
		if id == "WRONG_PORT_CLASS" {
			f.Cause = "a server got bytes of another protocol: some client was pointed at the wrong port"
			if p := g[0].Path; p != "" {
				f.Notes = append(f.Notes, fmt.Sprintf("the length it read is the text %q: the first bytes of another protocol", p))
			}
		}
		if quiet(g) && f.Severity > finding.Warning && !j.failed() {
			f.Severity = finding.Warning
		}
		j.add(f)
	}
	if g := j.by[YouAreDead]; len(g) > 0 && !j.has("ZK_SESSION_EXPIRED_PAUSE") {
		f := finding.Finding{ID: "SERVER_DECLARED_DEAD", Severity: finding.Error, Confidence: finding.Certain, Subject: "region server", Count: len(g), Evidence: evidence(g...),
			Cause: "the master had declared the region server dead (its ZooKeeper session ran out) and refuses its reports; the server stops itself",
			Fix:   []string{"find why the session ran out: a pause of the process or the network, in the minute before"}}
		if p := j.pauseFor(&session{}); p != nil {
			f.ID, f.Severity = "ZK_SESSION_EXPIRED_PAUSE", finding.Critical
			f.Numbers = append(f.Numbers, num("pause", p.Duration-p.Limit, "ms", fmt.Sprintf("%d - %d", p.Duration, p.Limit)))
			f.Evidence = append(f.Evidence, p.evidence())
			f.Cause = fmt.Sprintf("the process stood still for %s; meanwhile its session ran out and the master declared it dead", Seconds(p.Duration-p.Limit))
		}
		j.add(f)
	}
	var long []*Fact
	for _, p := range j.by[Pause] {
		if p.Duration-p.Limit >= 10000 {
			long = append(long, p)
		}
	}
	if len(long) > 0 && !j.has("ZK_SESSION_EXPIRED_PAUSE") {
		j.add(finding.Finding{ID: "PROCESS_PAUSED", Severity: finding.Warning, Confidence: finding.Certain, Subject: long[0].File, Count: len(long), Evidence: evidence(long...),
			Cause:   fmt.Sprintf("the process stood still for %s", Seconds(long[0].Duration-long[0].Limit)),
			Fix:     []string{"GC log, swapping, suspended host; a ZooKeeper session may not survive the next one"},
			Numbers: []finding.Number{num("pause", long[0].Duration-long[0].Limit, "ms", fmt.Sprintf("%d - %d", long[0].Duration, long[0].Limit))}})
	}
}

// noise: alarming lines that are normal.
func (j *judge) noise() {
	if g := j.by[ZKUserLevel]; len(g) > 0 {
		j.add(finding.Finding{ID: "NOT_A_FAULT", Severity: finding.Info, Confidence: finding.Certain, Subject: "user-level KeeperException", Count: len(g), Evidence: evidence(g...),
			Cause: "ZooKeeper logs that a client asked for a node that is not there (or is there already); HBase does so by design, at the first start above all"})
	}
	var own []*Fact
	for _, f := range j.by[ZKClosed] {
		for _, e := range j.by[ZKEstablished] {
			if e.Session == f.Session && e.Class == "asynchbase" {
				own = append(own, f)
			}
		}
	}
	if len(own) > 0 {
		j.add(finding.Finding{ID: "NOT_A_FAULT", Severity: finding.Info, Confidence: finding.Certain, Subject: fmt.Sprintf("session 0x%x", own[0].Session), Count: len(own), Evidence: evidence(own...),
			Cause: "AsyncHBase opens a short ZooKeeper session only to find hbase:meta and closes it on purpose", Not: []string{"the session expired"}})
	}
}
