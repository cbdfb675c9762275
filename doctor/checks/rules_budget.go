package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/doctor/readers"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// outlast is how long a region move is taken to last when nothing says: what a
// retry budget must survive.
const outlast = 10000

func (j *judge) budgets() {
	j.callTimeouts()
	j.progress()
	j.attempts()
	j.batches()
	j.rpcTimeouts()
	j.exhausted()
}

// maxAttempts is how many attempts a call can have made at most: as printed, as
// configured, or by default.
func (j *judge) maxAttempts() int {
	n := int64(retry.Attempts(j.v, retry.JavaDefaults(j.v).Retries)) + 1
	if v, ok := j.get("hbase.client.retries.number"); ok {
		n = int64(retry.Attempts(j.v, int(min(v, 100000)))) + 1
	}
	if !j.known {
		n = max(n, 36)
	}
	for _, k := range []Kind{Exhausted, Progress, Attempt} {
		for _, f := range j.by[k] {
			n = max(n, f.Limit)
		}
	}
	return int(min(n, 400))
}

func place2(f *Fact) string {
	s := f.Table
	if s == "" {
		s, _, _ = regionParts(f.Region)
	}
	if f.Server.Known() {
		if s != "" {
			s += " on "
		}
		s += f.Server.String()
	}
	if s == "" {
		s = "a call"
	}
	return s
}

// callTimeouts: "callTimeout=..., callDuration=...".
func (j *judge) callTimeouts() {
	keys, groups := groupBy(j.by[CallTimedOut], func(f *Fact) string { return fmt.Sprint(f.Timeout, f.Table, f.Server) })
	if len(keys) > 100 {
		keys = keys[:100]
	}
	for _, k := range keys {
		g := groups[k]
		j.callTimeout(g)
	}
}

func (j *judge) callTimeout(g []*Fact) {
	x := g[0]
	f := finding.Finding{Severity: finding.Error, Confidence: finding.Likely, Subject: place2(x), Count: len(g), Evidence: evidence(g...), Fields: callFields(x)}
	if x.Duration < x.Timeout {
		return
	}
	pause := j.pause()
	fits := fitsOfTimeout(j.v, pause, x.Timeout, x.Duration, j.maxAttempts(), j.starts()...)
	if len(fits) == 0 { // no pause this long: the release waits differently
		return
	}
	b, _ := best(fits)
	f.Numbers = append(f.Numbers, num("call_timeout", x.Timeout, "ms", "as printed"), num("call_duration", x.Duration, "ms", "elapsed + the next pause, which did not fit any more"))
	if j.neverPossible(&f, x, pause) {
		j.add(f)
		j.add(finding.Finding{ID: "STALE_LOCATION_NOT_REFRESHED", Severity: finding.Error, Confidence: finding.Likely, Subject: place2(x), Count: len(g), Evidence: evidence(x),
			Cause: fmt.Sprintf("the client keeps the location %s: a client of this line corrects its cache only when it retries, and it never does", x.Server),
			Fix:   []string{"the fix of RETRY_NEVER_POSSIBLE; until then a restart of the client clears the cache"}, Fields: callFields(x)})
		return
	}
	var fast []Fit
	for _, t := range fits {
		if t.fast() && !j.slowReason(x) {
			fast = append(fast, t)
		}
	}
	if len(fast) > 0 {
		lo, hi := fast[0].Attempts, fast[0].Attempts
		var conv []string
		for _, t := range fast {
			lo, hi = min(lo, t.Attempts), max(hi, t.Attempts)
			conv = append(conv, t.Convention)
			f.Numbers = append(f.Numbers, num("rpc_time_"+t.Convention, t.RPC, "ms", fmt.Sprintf("%d - %d: what is left for all calls, and for jitter of up to %d", x.Duration, t.Slept+t.Next, jitter(t.Slept+t.Next))))
		}
		made := fmt.Sprint(lo)
		if hi > lo {
			made = fmt.Sprintf("%d..%d", lo, hi)
		}
		f.ID = "RETRY_BUDGET_FAST_FAIL"
		f.Fields["attempts_made"], f.Fields["convention"] = made, strings.Join(conv, " or ")
		f.Cause = fmt.Sprintf("every attempt failed at once: %s attempts in about %s, nearly all of it pauses, until the next pause (%s) did not fit into %s", made, Seconds(roundTo(b.Elapsed, 100)), Seconds(b.Next), Seconds(x.Timeout))
		f.Numbers = append(f.Numbers, finding.Number{Name: "attempts_made", Value: made, Formula: "the most pauses whose sum explains the duration"},
			num("elapsed", fast[0].Elapsed, "ms", fmt.Sprintf("%d - next pause %d", x.Duration, fast[0].Next)), num("next_sleep", fast[0].Next, "ms", "the pause that did not fit"))
		f.Fix = []string{fmt.Sprintf("look at names and ports: make %s resolvable and reachable from where the client runs, with the cluster's hbase-site.xml on the client", orUnknown(x.Server.String(), "the server"))}
		f.Not = []string{"increase the timeout: more of the same failures would fit", "the server was slow"}
		j.printed(&f)
		f.Plots = append(f.Plots, j.retryPlot(x, fast[0], pause))
		if (randomPort(x.Server.Port) || containerID(x.Server.Host)) && !loopback(x.Server.Host, "") {
			j.containerServer(x)
		}
	} else {
		f.ID = "RETRY_BUDGET_SLOW_RPC"
		f.Fields["convention"] = b.Convention
		n, each := j.slowAttempts(x, pause)
		if x.Duration > 2*x.Timeout {
			n = 0
			f.Notes = append(f.Notes, fmt.Sprintf("the call lasted %.1f times its budget: lookups in hbase:meta inside it have budgets of their own (hbase.client.meta.operation.timeout, hbase.client.scanner.timeout.period) and are not cut short before HBASE-27490", float64(x.Duration)/float64(x.Timeout)))
		}
		made := fmt.Sprintf("1..%d", b.Attempts)
		if n > 0 {
			made = fmt.Sprint(n)
		}
		f.Fields["attempts_made"] = made
		f.Cause = fmt.Sprintf("the calls themselves used the time: at least %s of %s went into them, not into pauses", Seconds(b.RPC), Seconds(x.Duration))
		if n == 0 && j.slowReason(x) {
			f.Cause = fmt.Sprintf("calls were sent and not answered in time, until the next try no longer fitted into %s; at most %d attempts", Seconds(x.Timeout), b.Attempts)
		}
		if n > 0 {
			f.Cause = fmt.Sprintf("the calls themselves used the time: %d call(s) of about %s each", n, Seconds(each))
			f.Numbers = append(f.Numbers, num("time_per_call", each, "ms", fmt.Sprintf("(%d - pauses) / %d", x.Duration, n)))
		}
		f.Numbers = append(f.Numbers, finding.Number{Name: "attempts_made", Value: made, Formula: "from the fewest to the most pauses that fit"}, num("rpc_time", b.RPC, "ms", fmt.Sprintf("%d - %d ms of pauses (%s, %d attempts), at least", x.Duration, b.Slept+b.Next, b.Convention, b.Attempts)))
		f.Fix = []string{fmt.Sprintf("look at the server %s: responseTooSlow, pauses, full queues, a hot or stuck region, and at what the call asks of it (a filter that skips many rows, huge rows)", x.Server)}
		f.Not = []string{"names or ports: calls that cannot connect fail at once"}
		if each >= 9500 && each <= 10600 || each >= 19500 && each <= 20600 {
			f.Notes = append(f.Notes, fmt.Sprintf("about %s a call is also what a connect to a filtered port takes", Seconds(roundTo(each, 1000))))
			f.Rivals = append(f.Rivals, finding.Rival{ID: "PORT_UNREACHABLE", Text: "connects that get no answer", Separates: "whether the client's host can open the server's port at all"})
		}
		if j.slowReason(x) {
			f.Confidence = finding.Certain
			f.Notes = append(f.Notes, "the exception names a call that was sent and not answered within its limit")
		}
		if n == 1 && j.rpcAtLeast(x.Timeout) {
			f.Notes = append(f.Notes, "one slow RPC can use the whole budget: hbase.rpc.timeout is not below the operation timeout")
		}
	}
	j.add(f)
}

// slowReason says that the report itself, or another line of its entry, names a
// call that was sent and not answered: then the arithmetic of pauses fits by
// chance.
func (j *judge) slowReason(x *Fact) bool {
	if strings.Contains(x.Class, "CallTimeoutException") || strings.Contains(x.Class, "waitTime=") || strings.Contains(x.Class, "millistimeoutwhilewaiting") {
		return true
	}
	for _, f := range j.by[RPCTimeout] {
		if f.File == x.File && f.Line >= x.Line && f.Line-x.Line < 60 && f.Stamp == x.Stamp {
			return true
		}
	}
	return false
}

func (j *judge) rpcAtLeast(timeout int64) bool {
	v, ok := j.get("hbase.rpc.timeout")
	return ok && v >= timeout
}

func roundTo(v, unit int64) int64 { return (v + unit/2) / unit * unit }

func callFields(x *Fact) map[string]string {
	m := map[string]string{"table": x.Table}
	if x.HasRow {
		m["row"] = x.Row
	}
	if x.Server.Known() {
		m["server"] = x.Server.String()
	}
	if x.Server.Start > 0 {
		m["startcode"] = fmt.Sprintf("%d (%s)", x.Server.Start, (readers.Stamp{Milli: x.Server.Start, Date: true, Year: true, Zoned: true}).String())
	}
	if x.Region != "" {
		_, start, ts := regionParts(x.Region)
		m["region"] = cut(x.Region, 200)
		m["region_start_key"] = cut(start, 100)
		if ts > 1e11 {
			m["region_id"] = fmt.Sprintf("%d (%s)", ts, (readers.Stamp{Milli: ts, Date: true, Year: true, Zoned: true}).String())
		}
		if x.Encoded != "" {
			m["region_encoded"] = x.Encoded
		}
	}
	if x.Class != "" {
		m["reason"] = cut(x.Class, 160)
	}
	return m
}

// neverPossible recognises the 0.98 form: the give-up test added the whole rpc
// timeout, so the first failure was the last.
func (j *judge) neverPossible(f *finding.Finding, x *Fact, pause int64) bool {
	rpc, configured := j.get("hbase.rpc.timeout")
	op := x.Timeout
	affected := !j.known || j.v.Major == 0 && j.v.Minor == 98
	excess := x.Duration - op
	if !affected {
		return false
	}
	if configured {
		if rpc+pause <= op || x.Duration-rpc < pause || x.Duration-rpc > pause+jitter(pause)+5000 {
			return false
		}
	} else {
		// Without the setting: a duration just one pause above a budget so long that
		// no RPC timeout comes near it.
		if op < 600000 || excess < pause || excess > pause+jitter(pause)+100 {
			return false
		}
		rpc = op
	}
	f.ID, f.Severity = "RETRY_NEVER_POSSIBLE", finding.Critical
	cost := x.Duration - rpc - pause
	f.Cause = fmt.Sprintf("retries can never happen: hbase.rpc.timeout=%d leaves no room within hbase.client.operation.timeout=%d, so the call gave up at its first failure, about %s after it began; the %s-minute figure is not elapsed time", rpc, op, Seconds(max(cost, 0)), minutes(op))
	f.Confidence = finding.Certain
	f.Numbers = append(f.Numbers,
		num("elapsed_and_first_sleep", x.Duration-rpc, "ms", fmt.Sprintf("%d - rpc timeout %d = elapsed + first pause", x.Duration, rpc)),
		num("elapsed", cost, "ms", fmt.Sprintf("%d - pause %d (up to %d with jitter): what the only attempt cost", x.Duration-rpc, pause, pause+jitter(pause))),
		num("attempts_made", 1, "", "the give-up test of 0.98.21-0.98.24 is elapsed + rpc timeout + next pause > operation timeout"),
		num("retries_made", 0, "", ""),
		num("largest_rpc_timeout_with_a_retry", op-pause-1, "ms", fmt.Sprintf("below %d - %d", op, pause)))
	fix := op / 10
	f.Fix = []string{fmt.Sprintf("set hbase.rpc.timeout well below hbase.client.operation.timeout, e.g. %d", fix), "or use a client of 1.0 or later, whose test leaves the rpc timeout out"}
	f.Not = []string{fmt.Sprintf("the server was slow for %s minutes", minutes(op)), "increase the timeout", "increase the number of retries: no number of them helps"}
	if retries, ok := j.get("hbase.client.retries.number"); ok {
		s := scheduleOf(j.v, pause, 0)
		total := s.sum(int(retries) - 1)
		room := op - fix
		end := "the attempt limit, not the clock, ends it"
		if total > room {
			end = "the clock ends it"
		}
		f.Numbers = append(f.Numbers, num("after_fix_room", room, "ms", fmt.Sprintf("%d - %d: elapsed + next pause may reach this", op, fix)), num("after_fix_sleeps", total, "ms", fmt.Sprintf("sum of %d pauses (start-0): %s", retries-1, end)))
	}
	f.Evidence = append(f.Evidence, j.settingEvidence("hbase.rpc.timeout", "hbase.client.operation.timeout", "hbase.client.retries.number")...)
	if !configured {
		f.Confidence = finding.Likely
		f.Notes = append(f.Notes, "hbase.rpc.timeout is not in the input; the duration is one pause above the budget, which fits hbase.rpc.timeout = hbase.client.operation.timeout on 0.98")
		f.Rivals = []finding.Rival{{ID: "RETRY_BUDGET_SLOW_RPC", Text: "a client of 1.0 or later whose single RPC used the whole budget", Separates: "the client's release, its hbase.rpc.timeout, and whether the caller waited milliseconds or " + minutes(op) + " minutes"}}
	} else if !j.known {
		f.Notes = append(f.Notes, "the release is not in the input; from 1.0 on the same settings mean one slow RPC can use the whole budget")
	}
	if len(j.by[Kylin]) > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("Kylin: with kylin.storage.hbase.coprocessor-timeout-seconds unset the endpoint deadline is 0.9 x hbase.rpc.timeout: %d ms now, %d ms after the fix", rpc*9/10, fix*9/10))
	}
	return true
}

func minutes(ms int64) string {
	if ms%60000 == 0 {
		return fmt.Sprint(ms / 60000)
	}
	return fmt.Sprintf("%.1f", float64(ms)/60000)
}

// slowAttempts finds a number of calls of a usual timeout's length that
// explains a duration.
func (j *judge) slowAttempts(x *Fact, pause int64) (n int, each int64) {
	fewest := 1
	if w, ok := number(x.Class, "waitTime="); ok && w < x.Timeout*9/10 {
		fewest = 2 // one call cannot have taken it all
	}
	candidates := []int64{j.getOr("hbase.rpc.timeout", 60000), 60000, x.Timeout, 20000, 10000}
	for _, st := range j.starts() {
		s := scheduleOf(j.v, pause, st)
		for k := 1; k <= 60; k++ {
			left := x.Duration - s.sum(k)
			if left <= 0 || k > 1 && s.sum(k-1) > x.Timeout {
				break
			}
			if k < fewest {
				continue
			}
			per := left / int64(k)
			for _, c := range candidates {
				if c > 0 && per >= c && per-c <= c/50+500 {
					return k, per
				}
			}
		}
	}
	return 0, 0
}

// printed says what "attempts=36" is.
func (j *judge) printed(f *finding.Finding) {
	for _, e := range j.by[Exhausted] {
		if e.Limit > 0 && e.Class == "" {
			f.Fields["printed_attempts"] = fmt.Sprint(e.Limit)
			s := scheduleOf(j.v, j.pause(), 0)
			f.Notes = append(f.Notes, fmt.Sprintf("attempts=%d is the limit, not the number made: that many would need at least %s of pauses", e.Limit, Seconds(s.sum(int(min(e.Limit, 1000))-1))))
			return
		}
	}
}

// containerServer adds that the name itself is suspicious.
func (j *judge) containerServer(x *Fact) {
	if len(j.by[Unresolved]) > 0 {
		return
	}
	f := finding.Finding{ID: "STALE_REGION_LOCATION", Severity: finding.Warning, Confidence: finding.Possible, Subject: place2(x), Count: 1, Evidence: evidence(x), Fields: callFields(x),
		Cause:  fmt.Sprintf("the location %s looks like that of a container that may be gone: after a restart neither name nor port hold", x.Server),
		Fix:    []string{"fixed host name and published, fixed port for the server (hbase.regionserver.port)"},
		Rivals: []finding.Rival{{ID: "NAME_UNRESOLVABLE", Text: "the name never resolved outside the container's network", Separates: "resolve it where the client runs"}}}
	if containerID(x.Server.Host) {
		f.Fields["hint"] = "12 hex digits: looks like a container id"
	}
	if randomPort(x.Server.Port) {
		f.Notes = append(f.Notes, fmt.Sprintf("port %d is from the range that systems give out at random", x.Server.Port))
	}
	j.add(f)
}

// retryPlot draws the attempts and pauses of a fit.
func (j *judge) retryPlot(x *Fact, t Fit, pause int64) finding.Plot {
	st := int(t.Convention[len(t.Convention)-1] - '0')
	s := scheduleOf(j.v, pause, st)
	p := finding.Plot{Kind: "retry", Title: "Attempts of " + place2(x)}
	var at int64
	call := max(t.RPC/int64(max(t.Attempts, 1)), 1)
	for n := 1; n <= t.Attempts; n++ {
		p.Spans = append(p.Spans, finding.Span{From: at, To: at + call, Class: "call"})
		p.Marks = append(p.Marks, finding.Mark{At: at + call, Class: "fail", Label: fmt.Sprintf("attempt %d", n)})
		at += call
		if n < t.Attempts {
			p.Spans = append(p.Spans, finding.Span{From: at, To: at + s.sleep(n), Class: "sleep", Label: Seconds(s.sleep(n))})
			at += s.sleep(n)
		}
	}
	p.Spans = append(p.Spans, finding.Span{From: at, To: at + t.Next, Class: "gap", Label: "next pause, not taken"})
	p.Marks = append(p.Marks, finding.Mark{At: x.Timeout, Class: "limit", Label: "operation timeout"})
	return p
}

// progress: "Call exception, tries=...".
func (j *judge) progress() {
	keys, groups := groupBy(j.by[Progress], func(f *Fact) string { return f.Table + f.Server.String() })
	if len(keys) > 100 {
		keys = keys[:100]
	}
	for _, k := range keys {
		g := groups[k]
		x := g[0]
		for _, f := range g {
			if f.Tries >= x.Tries {
				x = f
			}
		}
		if x.Started == 0 {
			continue
		}
		pause := j.pause()
		fits := fitOfStart(j.v, pause, x.Tries, x.Started, j.starts()...)
		_, configured := j.get("hbase.client.pause")
		if b, ok := best(fits); !configured && (!ok || b.RPC > b.Slept/20+2000) {
			// Another pause may fit like a glove.
			for _, p := range [...]int64{20, 50, 200, 500, 1000} {
				for _, t := range fitOfStart(j.v, p, x.Tries, x.Started, j.starts()...) {
					if t.RPC <= jitter(t.Slept)+300 && t.Slept > 0 && len(g) > 1 && j.fitsAll(g, p, t.Convention) {
						fits, pause = []Fit{t}, p
					}
				}
			}
		}
		b, ok := best(fits)
		if !ok {
			continue
		}
		if !b.fast() {
			b = j.slowFit(fits, x)
		}
		f := finding.Finding{Severity: finding.Error, Confidence: finding.Likely, Subject: place2(x), Count: len(g), Evidence: evidence(x), Fields: callFields(x)}
		f.Fields["convention"] = b.Convention
		s := scheduleOf(j.v, pause, int(b.Convention[len(b.Convention)-1]-'0'))
		total := s.sum(int(min(x.Limit, 1000)) - 1)
		f.Numbers = append(f.Numbers, num("tries", x.Tries, "", "pauses taken so far"), num("started", x.Started, "ms", "as printed"),
			num("slept", b.Slept, "ms", fmt.Sprintf("sum of %d pauses at pause=%d, %s; up to %d with jitter", x.Tries, pause, b.Convention, b.Slept+jitter(b.Slept))),
			num("rpc_time", b.RPC, "ms", fmt.Sprintf("%d - %d", x.Started, b.Slept)))
		for _, st := range j.starts() {
			o := scheduleOf(j.v, pause, st)
			if o.String() != b.Convention {
				f.Numbers = append(f.Numbers, num("slept_"+o.String(), o.sum(int(min(x.Tries, 1000))), "ms", "the other convention, which does not fit"))
			}
		}
		if x.Limit > 0 {
			f.Numbers = append(f.Numbers, num("will_go_on_for", total, "ms", fmt.Sprintf("sum of %d pauses, without the calls", x.Limit-1)))
		}
		perCall := b.RPC / (x.Tries + 1)
		if b.fast() || perCall < 150 {
			f.ID = "RETRY_BUDGET_FAST_FAIL"
			f.Cause = fmt.Sprintf("in progress: every attempt fails at once; %d attempts in %s, of which %s were pauses (%s); it will go on for %s", x.Tries+1, Seconds(x.Started), Seconds(b.Slept), b.Convention, Seconds(total))
			f.Fix = []string{fmt.Sprintf("look at names and ports: is %s resolvable and reachable from where the client runs?", orUnknown(x.Server.String(), "the server"))}
			f.Not = []string{"increase the timeout or the retries", "the server was slow"}
			if len(j.by[ZKEstablished]) > 0 {
				f.Notes = append(f.Notes, "ZooKeeper is fine: a session was established")
			}
		} else {
			f.ID = "RETRY_BUDGET_SLOW_RPC"
			f.Cause = fmt.Sprintf("in progress: the calls themselves take the time, about %s each", Seconds(roundTo(perCall, 10)))
			f.Numbers = append(f.Numbers, num("time_per_call", perCall, "ms", fmt.Sprintf("%d / %d attempts", b.RPC, x.Tries+1)))
			f.Fix = []string{fmt.Sprintf("look at the server %s: pauses, queues, slow disk", x.Server)}
			f.Not = []string{"names: they resolve, or the attempts would fail at once"}
			if perCall >= 9000 && perCall <= 10600 || perCall >= 19000 && perCall <= 20600 {
				f.Rivals = append(f.Rivals, finding.Rival{ID: "PORT_UNREACHABLE", Text: "connects that get no answer take as long", Separates: "whether the client's host can open the server's port"})
			}
		}
		if quiet(g) && !j.failed() {
			// The client logs progress as information, and tells no end: it may have
			// succeeded. Long ones deserve an error.
			if x.Started < 30000 {
				f.Severity = finding.Warning
			}
		}
		j.add(f)
	}
}

// slowFit chooses a convention when calls took time: the one whose time per
// call is the limit that the text prints, else that of the release.
func (j *judge) slowFit(fits []Fit, x *Fact) Fit {
	var limit int64
	for _, f := range j.by[RPCTimeout] {
		if f.File == x.File && f.Line >= x.Line-2 && f.Line <= x.Line+60 {
			limit = max(limit, f.Wait)
		}
	}
	pick := fits[0]
	for _, t := range fits {
		per, best := t.RPC/(x.Tries+1), pick.RPC/(x.Tries+1)
		if limit > 0 && abs(per-limit) < abs(best-limit) {
			pick = t
		}
	}
	return pick
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

func (j *judge) fitsAll(g []*Fact, pause int64, conv string) bool {
	for _, f := range g {
		ok := false
		for _, t := range fitOfStart(j.v, pause, f.Tries, f.Started, j.starts()...) {
			if t.Convention == conv && t.RPC <= jitter(t.Slept)+500 {
				ok = true
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// attempts: the list a RetriesExhaustedException carries.
func (j *judge) attempts() {
	keys, groups := groupBy(j.by[Attempt], func(f *Fact) string { return fmt.Sprint(f.Started) })
	reported := 0
	for _, k := range keys {
		g := groups[k]
		x := g[0]
		if x.Started == 0 || x.Limit == 0 || x.Pause == 0 {
			continue
		}
		if reported++; reported > 30 {
			break
		}
		zone := int64(0)
		var offsets []int64
		var zoned bool
		for _, f := range g {
			if !f.Has {
				continue
			}
			d := f.Stamp.Milli - x.Started
			if len(offsets) == 0 && !f.Stamp.Zoned {
				zone = floorTo(d+1000, 15*60000) // lines may have whole seconds only
				zoned = true
			}
			offsets = append(offsets, d-zone)
		}
		slices.Sort(offsets)
		conv, shift := fitOffsets(j.v, x.Pause, offsets, j.starts())
		st := 0
		if conv >= 0 {
			st = conv
		}
		s := scheduleOf(j.v, x.Pause, st)
		total := s.sum(int(min(x.Limit, 1000)) - 1)
		need := 1
		for s.sum(need) < outlast && need < 1000 {
			need++
		}
		f := finding.Finding{ID: "RETRY_BUDGET_SHORT", Severity: finding.Error, Confidence: finding.Certain, Subject: attemptSubject(g), Count: len(g), Evidence: evidence(g...),
			Fields: map[string]string{"max_attempts": fmt.Sprint(x.Limit), "pause": fmt.Sprint(x.Pause)},
			Cause:  fmt.Sprintf("all %d attempts fit into %s of pauses, less than a region move takes", x.Limit, Seconds(total)),
			Fix:    []string{fmt.Sprintf("to outlast a move of %s at pause=%d, allow at least %d attempts: %d pauses are %s, %d are %s", Seconds(outlast), x.Pause, need+1, need, Seconds(s.sum(need)), need-1, Seconds(s.sum(need-1)))},
			Not:    []string{"the region is lost: it was on its way"},
			Numbers: []finding.Number{num("total_sleep", total, "ms", fmt.Sprintf("sum of %d pauses at pause=%d", x.Limit-1, x.Pause)), num("max_attempts", x.Limit, "", "as printed"),
				num("attempts_to_outlast_10s", int64(need+1), "", fmt.Sprintf("%d pauses = %d ms >= %d", need, s.sum(need), outlast))}}
		if conv >= 0 {
			f.Fields["convention"] = s.String()
			f.Numbers = append(f.Numbers, finding.Number{Name: "offsets", Value: fmt.Sprint(offsets), Unit: "ms", Formula: fmt.Sprintf("from globalStartTime; the pauses fit %s, first line shown is attempt %d", s, shift+1)})
		}
		f.Numbers = append(f.Numbers, finding.Number{Name: "started", Value: (readers.Stamp{Milli: x.Started, Date: true, Year: true, Zoned: true}).String(), Formula: "globalStartTime"})
		if zoned && zone != 0 {
			f.Numbers = append(f.Numbers, finding.Number{Name: "zone", Value: fmt.Sprintf("%+.4g h", float64(zone)/3600000), Formula: "line time - globalStartTime, to the quarter of an hour"})
		}
		if x.Limit == 1 {
			f.Cause = "one attempt in total: nothing is tried again, so a location that is out of date, as after a move, fails the call"
		}
		local, moving := 0, 0
		for _, a := range g {
			if strings.Contains(a.Class, "FailedServerException") || strings.Contains(a.Class, "failedserverslist") {
				local++
			}
			if strings.Contains(a.Class, "RegionMoved") || strings.Contains(a.Class, "NotServingRegion") || strings.Contains(a.Class, "RegionOpening") || strings.Contains(a.Class, "isnotonline") {
				moving++
			}
		}
		if local > 0 {
			f.Echoes = append(f.Echoes, finding.Echo{ID: "FAILED_SERVER_LIST", Text: fmt.Sprintf("%d of the %d attempts listed (limit %d) were answered from the local failed-server list (2 s), they never touched the network", local, len(g), x.Limit)})
		}
		if len(j.by[Moved]) > 0 && len(j.by[NotServing]) > 0 {
			f.Notes = append(f.Notes, "the server the region had moved to answered \"not online\": it had not opened it yet")
		}
		switch {
		case total >= outlast && len(j.by[CallTimedOut]) > 0:
			continue // told better there
		case total >= outlast:
			spent := int64(0)
			if len(offsets) > 0 {
				spent = offsets[len(offsets)-1]
			}
			f.ID = "RETRY_BUDGET_FAST_FAIL"
			f.Cause = fmt.Sprintf("all %d attempts were used up in about %s; each failed at once", x.Limit, Seconds(roundTo(max(spent, total), 100)))
			if spent > total+total/50+fastCalls*2 {
				f.ID = "RETRY_BUDGET_SLOW_RPC"
				f.Cause = fmt.Sprintf("all %d attempts were used up; of %s only %s were pauses, the calls took the rest", x.Limit, Seconds(spent), Seconds(total))
			}
			f.Fix = []string{"see the cause of the attempts: names, ports, or a region that is open nowhere"}
			f.Not = []string{"increase the retries before the cause is known"}
			f.Confidence = finding.Likely
		case moving == 0 && local == 0 && len(g) > 0 && !strings.Contains(g[0].Class, "Connect"):
			f.Severity = finding.Warning
		}
		j.add(f)
	}
}

func floorTo(v, unit int64) int64 {
	q := v / unit
	if v%unit < 0 {
		q--
	}
	return q * unit
}

func attemptSubject(g []*Fact) string {
	for _, f := range g {
		if i := strings.Index(f.Class, "hbase:meta"); i >= 0 {
			return "hbase:meta"
		}
	}
	return "a call"
}

// fitOffsets finds the convention whose pauses explain the times between
// attempts; shift is how many attempts come before the first one shown.
func fitOffsets(v retry.Version, pause int64, offsets []int64, starts []int) (conv, shift int) {
	if len(offsets) < 2 {
		return -1, 0
	}
	for _, st := range starts {
		s := scheduleOf(v, pause, st)
		for sh := 0; sh < 20; sh++ {
			ok := true
			for i := 1; i < len(offsets) && ok; i++ {
				d, want := offsets[i]-offsets[i-1], s.sleep(sh+i)
				ok = d >= want-2 && d <= want+jitter(want)+max(60, want/20)
			}
			if ok && (offsets[0] >= s.sum(sh)-2 && offsets[0] <= s.sum(sh)+jitter(s.sum(sh))+500) {
				return st, sh
			}
		}
	}
	return -1, 0
}

// batches: AsyncProcess lines whose cause has no verdict of its own.
func (j *judge) batches() {
	var rest []*Fact
	for _, f := range j.by[AsyncBatch] {
		if !strings.Contains(f.Class, "CallQueueTooBig") && !strings.Contains(f.Class, "queueisfull") {
			rest = append(rest, f)
		}
	}
	if len(rest) == 0 {
		return
	}
	x := rest[len(rest)-1]
	for _, f := range rest {
		if f.Tries > x.Tries {
			x = f
		}
	}
	f := finding.Finding{ID: "BATCH_RETRYING", Severity: finding.Warning, Confidence: finding.Likely, Subject: place2(x), Count: len(rest), Evidence: evidence(rest...),
		Cause: fmt.Sprintf("a batch is at attempt %d of %d: %s", x.Tries, x.Limit, cut(x.Class, 120)), Fix: []string{"see the cause of the attempts"}, Fields: map[string]string{"table": x.Table, "server": x.Server.String()}}
	j.batchNumbers(&f, x)
	j.add(f)
}

// rpcTimeouts: single calls that ran into their time limit.
func (j *judge) rpcTimeouts() {
	g := j.by[RPCTimeout]
	if len(g) == 0 || j.has("RETRY_BUDGET_SLOW_RPC") {
		return
	}
	hosts := map[string]bool{}
	for _, f := range g {
		if f.Server.Known() {
			hosts[f.Server.String()] = true
		}
	}
	x := g[0]
	f := finding.Finding{ID: "RETRY_BUDGET_SLOW_RPC", Severity: finding.Error, Confidence: finding.Likely, Subject: orUnknown(strings.Join(sorted(hosts), ", "), "a call"), Count: len(g), Evidence: evidence(g...),
		Cause:   fmt.Sprintf("calls were sent and not answered within %s", Seconds(max(x.Timeout, x.Wait))),
		Fix:     []string{"look at the server: responseTooSlow, pauses, queue length, a stuck or hot region", "and at what the call asks of it"},
		Not:     []string{"names or ports: the connection stood"},
		Numbers: []finding.Number{num("waited", x.Wait, "ms", "as printed"), num("timeout", x.Timeout, "ms", "hbase.rpc.timeout, or what was left of the operation's time")}}
	if quiet(g) && !j.failed() {
		f.Severity = finding.Warning
	}
	j.add(f)
}

// exhausted: nothing but the count is known.
func (j *judge) exhausted() {
	g := j.by[Exhausted]
	if len(g) == 0 || len(j.out) > 0 && slices.ContainsFunc(j.out, func(f finding.Finding) bool { return f.Severity >= finding.Error }) {
		return
	}
	x := g[0]
	s := scheduleOf(j.v, j.pause(), 0)
	total := s.sum(int(min(x.Limit, 1000)) - 1)
	f := finding.Finding{ID: "RETRIES_EXHAUSTED", Severity: finding.Error, Confidence: finding.Possible, Subject: place2(x), Count: len(g), Evidence: evidence(g...),
		Cause:   "a call gave up; the input does not show what its attempts met with",
		Fix:     []string{"give the whole exception: the list of attempts and the innermost cause decide"},
		Numbers: []finding.Number{num("limit", x.Limit, "attempts", "as printed: the limit, not the number made"), num("least_time", total, "ms", "pauses of that many attempts")}}
	if x.Class == "lookup" {
		f.Cause = "the place of a region could not be looked up: hbase:meta, its place in ZooKeeper, or the server behind it was not reachable"
		f.Numbers = nil
	}
	if total < outlast && x.Limit > 1 {
		f.ID = "RETRY_BUDGET_SHORT"
		f.Cause = fmt.Sprintf("all %d attempts fit into %s of pauses, less than a region move takes", x.Limit, Seconds(total))
	}
	j.add(f)
}

// own: error texts of this project's client.
func (j *judge) own() {
	for i, x := range j.by[OwnError] {
		if i >= 20 {
			return
		}
		f := finding.Finding{Severity: finding.Error, Confidence: finding.Certain, Subject: place2(x), Count: 1, Evidence: evidence(x), Fields: map[string]string{"table": x.Table, "client": "holdfast"},
			Numbers: []finding.Number{num("elapsed", x.Elapsed, "ms", "as printed"), num("attempts", x.Tries, "", "made"), num("calling", x.Duration, "ms", "time inside calls"), num("waiting", x.Wait, "ms", "pauses"), num("locating", x.Started, "ms", "lookups")}}
		switch {
		case x.Class == "unknown":
			f.ID = "OUTCOME_UNKNOWN"
			f.Cause = "a request was sent, its answer was lost, and repeating it could do harm: it may or may not have been executed"
			f.Fix = []string{"read the row before deciding"}
			f.Not = []string{"the request failed"}
		case x.Class == "attempts":
			f.ID = "RETRY_BUDGET_SHORT"
			f.Cause = fmt.Sprintf("the attempt limit of %d was reached after %s", x.Tries, Seconds(x.Elapsed))
			f.Fix = []string{"let the deadline end the operation rather than a count"}
		case x.Duration*2 > x.Elapsed:
			f.ID = "RETRY_BUDGET_SLOW_RPC"
			f.Cause = fmt.Sprintf("the calls themselves used the time: %s of %s", Seconds(x.Duration), Seconds(x.Elapsed))
			f.Fix = []string{"look at the server"}
		default:
			f.ID = "RETRY_BUDGET_FAST_FAIL"
			f.Cause = fmt.Sprintf("every attempt failed soon: of %s, %s were pauses and %s lookups", Seconds(x.Elapsed), Seconds(x.Wait), Seconds(x.Started))
			f.Fix = []string{"the cause stands at the end of the error text: names, ports, or a region that is open nowhere"}
			f.Not = []string{"the server was slow"}
		}
		j.add(f)
	}
}
