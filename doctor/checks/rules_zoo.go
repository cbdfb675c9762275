package checks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/doctor/readers"
	"github.com/holdfast-hbase/holdfast/zk"
)

const msec = time.Millisecond

// session is what is known of one ZooKeeper session.
type session struct {
	id                                     uint64
	silent, expired, heard, invalid, renew []*Fact
	established, granted, errs, closed     []*Fact
	timeout                                int64
}

// sessions: lost sessions, by partition or by a stopped process.
func (j *judge) sessions() {
	byID := map[uint64]*session{}
	var ids []uint64
	get := func(id uint64) *session {
		s := byID[id]
		if s == nil {
			s = &session{id: id}
			byID[id] = s
			ids = append(ids, id)
		}
		return s
	}
	for i := range j.c.Facts {
		f := &j.c.Facts[i]
		if f.Session == 0 && f.Kind != ZKExpiredClient {
			continue
		}
		s := get(f.Session)
		switch f.Kind {
		case ZKSilent:
			s.silent = append(s.silent, f)
		case ZKExpired:
			s.expired = append(s.expired, f)
			s.timeout = f.Timeout
		case ZKExpiredClient:
			s.heard = append(s.heard, f)
		case ZKInvalid:
			s.invalid = append(s.invalid, f)
		case ZKRenew:
			s.renew = append(s.renew, f)
		case ZKEstablished:
			s.established = append(s.established, f)
			s.timeout = max(s.timeout, f.Timeout)
		case ZKGranted:
			s.granted = append(s.granted, f)
			s.timeout = max(s.timeout, f.Timeout)
		case ZKConnError:
			s.errs = append(s.errs, f)
		case ZKClosed:
			s.closed = append(s.closed, f)
		}
	}
	reported := 0
	var serverOnly []*Fact
	paused := false
	for _, id := range ids {
		s := byID[id]
		if len(s.expired)+len(s.heard)+len(s.invalid) == 0 {
			continue
		}
		if id == 0 && len(ids) > 1 && j.has("ZK_SESSION_EXPIRED_PAUSE") {
			continue
		}
		clientSide := len(s.silent)+len(s.heard)+len(s.invalid)+len(s.renew) > 0
		if !clientSide && j.pauseFor(s) == nil {
			serverOnly = append(serverOnly, s.expired...)
			continue
		}
		if reported++; reported > 20 {
			break
		}
		if j.lostSession(s) {
			paused = true
		}
	}
	if len(serverOnly) > 0 && reported == 0 {
		j.add(finding.Finding{
			ID: "ZK_SESSION_EXPIRED", Severity: finding.Info, Confidence: finding.Possible, Subject: fmt.Sprintf("%d sessions", len(serverOnly)), Count: len(serverOnly), Evidence: evidence(serverOnly...),
			Cause: "ZooKeeper expired sessions; it does so whenever a client process ends without closing its session",
			Fix:   []string{"only if a process that still ran lost its session: read that process's log of the same minute"},
			Not:   []string{"ZooKeeper is at fault"},
		})
	}
	_ = paused
	j.silences(byID, ids, reported > 0)
	j.zooUnreachable()
}

// pauseFor finds a stop of a process that explains a lost session.
func (j *judge) pauseFor(s *session) *Fact {
	var best *Fact
	timeout := s.timeout
	if timeout == 0 {
		for _, f := range j.by[ZKEstablished] {
			timeout = max(timeout, f.Timeout)
		}
	}
	if timeout == 0 && len(s.silent) > 0 {
		timeout = s.silent[0].Wait * 3 / 2
	}
	for _, p := range j.by[Pause] {
		net := p.Duration - p.Limit
		covers := len(s.silent) > 0 && net >= 5000 && net*2 >= s.silent[0].Wait
		if timeout > 0 && net*3 < timeout*2 && !covers {
			continue
		}
		if timeout == 0 && net < 10000 {
			continue
		}
		if best == nil || net > best.Duration-best.Limit {
			best = p
		}
	}
	return best
}

// lostSession reports one; true if a pause is to blame.
func (j *judge) lostSession(s *session) bool {
	name := fmt.Sprintf("0x%x", s.id)
	if s.id == 0 {
		name = "(id not in the input)"
	}
	all := slices.Concat(s.silent, s.errs, s.expired, s.heard, s.renew, s.invalid)
	f := finding.Finding{Severity: finding.Critical, Confidence: finding.Likely, Subject: "session " + name, Fields: map[string]string{"session": name}, Count: 1}
	timeout := s.timeout
	n := j.ensemble()
	if timeout == 0 && len(s.silent) > 0 {
		timeout = s.silent[0].Wait / 100 * 150 // read timeout is 2/3 of it
		timeout = (timeout + 500) / 1000 * 1000
		f.Notes = append(f.Notes, fmt.Sprintf("the session timeout is not in the input; %s follows from a read timeout of %s", Seconds(timeout), Seconds(s.silent[0].Wait)))
	}
	if timeout > 0 {
		t := zk.StockTimers(time.Duration(timeout)*msec, n)
		f.Numbers = append(f.Numbers, num("session_timeout", timeout, "ms", "negotiated: min(max(asked, server minimum), server maximum)"),
			num("read_timeout", ms(t.Read), "ms", fmt.Sprintf("2/3 x %d", timeout)))
		if n > 0 {
			f.Numbers = append(f.Numbers, num("connect_timeout", ms(t.Connect), "ms", fmt.Sprintf("%d / %d servers", timeout, n)),
				num("dark_ensemble_patience", ms(t.Read)+int64(n)*ms(t.Connect), "ms", fmt.Sprintf("%d + %d x %d: how long the client tries a fully dark ensemble, %.2f x the session timeout", ms(t.Read), n, ms(t.Connect), float64(ms(t.Read)+int64(n)*ms(t.Connect))/float64(timeout))),
				num("fitting_connect_timeout", (timeout-ms(t.Read))/int64(n), "ms", fmt.Sprintf("(%d - %d) / %d: would end exactly at the session timeout", timeout, ms(t.Read), n)))
		}
	}
	if pause := j.pauseFor(s); pause != nil {
		net := pause.Duration - pause.Limit
		f.ID = "ZK_SESSION_EXPIRED_PAUSE"
		f.Cause = fmt.Sprintf("the process stood still for %s, longer than its ZooKeeper session lasts", Seconds(net))
		switch {
		case s.timeout == 0:
			f.Cause = fmt.Sprintf("the process stood still for %s; its ZooKeeper session ran out meanwhile", Seconds(net))
			f.Numbers, f.Notes = nil, nil
		case net <= timeout:
			f.Cause = fmt.Sprintf("the process stood still for %s of a session of %s, which left too little to reconnect", Seconds(net), Seconds(timeout))
		}
		formula := fmt.Sprintf("%d", pause.Duration)
		if pause.Limit > 0 {
			formula = fmt.Sprintf("%d - %d", pause.Duration, pause.Limit)
		}
		f.Numbers = append(f.Numbers, num("pause", net, "ms", formula))
		f.Fix = []string{"find what stopped the process: garbage collection (GC log), a suspended host or virtual machine, swapping", "then give it less heap to collect at once, or a longer session (maxSessionTimeout in zoo.cfg too)"}
		f.Not = []string{"a network fault: the process's own clock proves the stop"}
		if strings.Contains(pause.Class, "no GC") {
			f.Notes = append(f.Notes, "the pause monitor saw no garbage collection: the host stood still (suspended, swapping, stolen CPU)")
		}
		f.Evidence = evidence(append([]*Fact{pause}, all...)...)
		j.add(f)
		return true
	}
	network := ""
	for _, k := range [][]*Fact{j.by[ZKConnError], j.by[NoRoute], j.by[ConnectTimeout]} {
		for _, e := range k {
			switch {
			case e.Kind == NoRoute || e.Class == "NoRouteToHost":
				network = "NoRouteToHost seen"
			case network == "" && (e.Kind == ConnectTimeout && e.Class == "zookeeper" || e.Class == "Connectiontimedout"):
				network = "connect timeouts seen"
			}
		}
	}
	if network == "" && len(s.silent) > 1 {
		network = "connects to several servers went unanswered"
	}
	if network == "" && len(s.silent) == 1 && len(j.by[ZKSilent]) > 1 {
		network = "several connections fell silent"
	}
	if network != "" {
		f.ID = "ZK_SESSION_EXPIRED_NETWORK"
		f.Cause = fmt.Sprintf("network partition between this host and the quorum (%s); the session ran out before it could be renewed", network)
		f.Fix = []string{"find the partition: switches, host network, firewall in that minute", "a connect timeout of (session - read timeout) / servers would try every server before the session ends; this project's ZooKeeper client does so"}
		f.Not = []string{"a stopped process (the collector's log or a \"We slept\" line would show it)"}
	} else {
		f.ID, f.Confidence = "ZK_SESSION_EXPIRED", finding.Possible
		f.Severity = finding.Error
		f.Cause = "the session ran out at the server before the client renewed it; the input does not show why"
		f.Rivals = []finding.Rival{
			{ID: "ZK_SESSION_EXPIRED_PAUSE", Text: "the process stood still (garbage collection, suspension)", Separates: "a \"We slept\" or pause line, or a long collection in the GC log, right before"},
			{ID: "ZK_SESSION_EXPIRED_NETWORK", Text: "the way to the quorum was cut", Separates: "\"have not heard from server\" and failed connects right before, on other hosts too"},
		}
		f.Fix = []string{"read the process's own log and GC log of the minute before"}
	}
	j.sessionTimeline(&f, s, timeout, n)
	f.Evidence = evidence(all...)
	j.add(f)
	return false
}

// ensemble is the number of ZooKeeper servers, as configured or seen; 0 if
// nothing says.
func (j *judge) ensemble() int {
	if s, ok := j.settings["hbase.zookeeper.quorum"]; ok && s.value != "" {
		return strings.Count(s.value, ",") + 1
	}
	servers := 0
	for name := range j.settings {
		if strings.HasPrefix(name, "server.") {
			servers++
		}
	}
	if servers > 0 {
		return servers
	}
	for _, f := range j.by[ZKQuorum] {
		if f.Quorum != "" {
			return strings.Count(f.Quorum, ",") + 1
		}
	}
	// The connect timeout that was measured divides the session timeout.
	var longest int64
	for _, f := range j.by[ZKExpired] {
		longest = max(longest, f.Timeout)
	}
	for _, f := range j.by[ZKSilent] {
		if longest > 0 && f.Wait < longest/2 && f.Wait > 0 {
			for n := int64(2); n <= 9; n++ {
				if c := longest / n; f.Wait >= c && f.Wait <= c+1200 {
					return int(n)
				}
			}
		}
	}
	return 0
}

// tick is tickTime, and whether it is known.
func (j *judge) tick() (int64, bool) {
	for _, k := range [...]string{"tickTime", "hbase.zookeeper.property.tickTime"} {
		if v, ok := j.get(k); ok && v > 0 {
			return v, true
		}
	}
	return 2000, false
}

// sessionTimeline derives what happened when.
func (j *judge) sessionTimeline(f *finding.Finding, s *session, timeout int64, n int) {
	if len(s.silent) == 0 || !s.silent[0].Has || timeout == 0 {
		return
	}
	at := func(t int64) string { return (readers.Stamp{Milli: t, Date: true, Year: true}).String() }
	first := s.silent[0]
	for _, x := range s.silent {
		if x.Has && x.Stamp.Milli < first.Stamp.Milli {
			first = x
		}
	}
	heard := first.Stamp.Milli - first.Wait
	say := func(name, value, formula string) {
		f.Numbers = append(f.Numbers, finding.Number{Name: name, Value: value, Formula: formula})
	}
	say("last_heard", at(heard), fmt.Sprintf("%s - %d ms", at(first.Stamp.Milli), first.Wait))
	deadline := heard + timeout
	say("earliest_expiry", at(deadline), fmt.Sprintf("last heard + %d ms", timeout))
	tick, knownTick := j.tick()
	bucket := ms(zk.ExpiresAt(time.Duration(heard)*msec, time.Duration(timeout)*msec, time.Duration(tick)*msec))
	say("expiry_at_tick", at(bucket), fmt.Sprintf("earliest expiry rounded up to the next tick of %d ms (servers up to 3.4 count ticks on the wall clock)", tick))
	plot := finding.Plot{Kind: "session", Title: "Session " + f.Fields["session"]}
	mark := func(t int64, class, label string) {
		plot.Marks = append(plot.Marks, finding.Mark{At: t - heard, Class: class, Label: label})
	}
	mark(heard, "ok", "last heard")
	plot.Spans = append(plot.Spans, finding.Span{From: 0, To: first.Wait, Class: "silent", Label: "silence until the read timeout"})
	mark(first.Stamp.Milli, "event", "read timeout")
	for _, x := range s.silent {
		if x == first || !x.Has {
			continue
		}
		took := x.Wait
		var open *Fact
		for _, o := range j.by[ZKOpening] {
			if o.Has && o.Stamp.Milli < x.Stamp.Milli && o.Stamp.Milli >= x.Stamp.Milli-x.Wait-2000 && (open == nil || o.Stamp.Milli > open.Stamp.Milli) && (o.Server.Host == x.Server.Host || x.Server.Host == "") {
				open = o
			}
		}
		if open != nil {
			took = x.Stamp.Milli - open.Stamp.Milli
			f.Numbers = append(f.Numbers, num("connect_attempt", took, "ms", fmt.Sprintf("%s - %s, one connect attempt to %s by the clock (logged as %d)", at(x.Stamp.Milli), at(open.Stamp.Milli), open.Server.String(), x.Wait)))
		}
		plot.Spans = append(plot.Spans, finding.Span{From: x.Stamp.Milli - took - heard, To: x.Stamp.Milli - heard, Class: "connect", Label: "connect to " + x.Server.Host})
	}
	for _, x := range s.errs {
		if x.Has {
			mark(x.Stamp.Milli, "fail", x.Class)
		}
	}
	mark(deadline, "limit", "earliest expiry")
	expired := bucket
	for _, x := range s.expired {
		if x.Has {
			expired = x.Stamp.Milli
			say("server_expired", at(expired), "as logged by the server")
			if !knownTick {
				if fit := fittingTicks(deadline, expired); fit != "" {
					f.Notes = append(f.Notes, "the server's expiry at "+at(expired)+" fits a tickTime of "+fit)
				}
			}
			mark(expired, "limit", "expired by the server")
		}
	}
	back := slices.Concat(s.renew, s.invalid)
	for _, x := range back {
		if x.Has {
			late := x.Stamp.Milli - expired
			f.Numbers = append(f.Numbers, num("reconnect_after", x.Stamp.Milli-heard, "ms", fmt.Sprintf("%s - last heard", at(x.Stamp.Milli))), num("too_late_by", late, "ms", fmt.Sprintf("%s - %s", at(x.Stamp.Milli), at(expired))))
			f.Cause += fmt.Sprintf("; the reconnect came %.1f s late", float64(late)/1000)
			mark(x.Stamp.Milli, "fail", "reconnect refused")
			break
		}
	}
	// Others that made it.
	for _, e := range j.by[ZKEstablished] {
		if e.Has && e.Stamp.Milli > heard && e.Stamp.Milli < expired && (e.Session != s.id || len(back) > 0) {
			f.Numbers = append(f.Numbers, num("survivor_margin", deadline-e.Stamp.Milli, "ms", fmt.Sprintf("%s - %s: another session was re-attached in time", at(deadline), at(e.Stamp.Milli))))
			mark(e.Stamp.Milli, "ok", "another session re-attached")
			break
		}
	}
	if asked, ok := j.get("zookeeper.session.timeout"); ok && asked > timeout {
		f.Notes = append(f.Notes, fmt.Sprintf("the %d s session is the limit on the server side, not %d s as configured on the client", timeout/1000, asked/1000))
	} else if timeout == 90000 && !ok {
		f.Notes = append(f.Notes, "the 90 s session is the limit on the server side, not 180 s as a 0.94 client asks by default")
	}
	f.Plots = append(f.Plots, plot)
}

// fittingTicks names the usual tick times whose boundary after the deadline is
// that instant, give or take the log's delay.
func fittingTicks(deadline, expired int64) string {
	var fit []string
	for _, t := range [...]int64{1000, 2000, 3000, 4000, 5000, 6000, 10000} {
		b := ms(zk.ExpiryBucket(time.Duration(deadline)*msec, time.Duration(t)*msec))
		if expired >= b && expired-b < 500 {
			fit = append(fit, fmt.Sprint(t))
		}
	}
	if len(fit) > 4 {
		return ""
	}
	return strings.Join(fit, " or ")
}

// silences: connections lost and found again.
func (j *judge) silences(byID map[uint64]*session, ids []uint64, lost bool) {
	if lost {
		return
	}
	var facts []*Fact
	for _, id := range ids {
		s := byID[id]
		if id != 0 {
			facts = append(append(facts, s.silent...), s.errs...)
		}
	}
	if len(facts) == 0 {
		return
	}
	f := finding.Finding{
		ID: "ZK_CONNECTION_LOST", Severity: finding.Warning, Subject: fmt.Sprintf("%d times", len(facts)), Count: len(facts), Evidence: evidence(facts...),
		Cause: "a ZooKeeper connection broke or fell silent for two thirds of the session timeout; no session was lost in this input",
		Fix:   []string{"if it recurs: the network to that ZooKeeper server, its disk (fsync warnings), pauses of this process"},
		Not:   []string{"the session expired: the client only dropped this connection"},
	}
	if p := j.by[Pause]; len(p) > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("a pause of %s is in the input", Seconds(p[0].Duration-p[0].Limit)))
		f.Evidence = append(f.Evidence, p[0].evidence())
	}
	j.add(f)
}

// zooUnreachable: no session at all.
func (j *judge) zooUnreachable() {
	var facts []*Fact
	hosts := map[string]bool{}
	for _, k := range []Kind{ZKConnError, Refused, ConnectTimeout, NoRoute, ZKLoss} {
		for _, f := range j.by[k] {
			if (k == Refused || k == ConnectTimeout || k == NoRoute) && f.Class != "zookeeper" && f.Server.Port != 2181 {
				continue
			}
			if k == ZKConnError && f.Session != 0 {
				continue
			}
			facts = append(facts, f)
			if f.Server.Known() {
				hosts[f.Server.String()] = true
			}
			for _, h := range strings.Split(f.Quorum, ",") {
				if h != "" {
					hosts[h] = true
				}
			}
		}
	}
	if len(facts) == 0 {
		return
	}
	established := after(append(append([]*Fact{}, j.by[ZKEstablished]...), j.by[ZKGranted]...), facts)
	lost := j.has("ZK_SESSION_EXPIRED_NETWORK") || j.has("ZK_SESSION_EXPIRED_PAUSE")
	if lost {
		return
	}
	f := finding.Finding{
		ID: "ZK_UNREACHABLE", Severity: finding.Error, Subject: strings.Join(sorted(hosts), ","), Count: len(facts), Evidence: evidence(facts...),
		Cause: "no ZooKeeper server could be reached, so the client never learns where HBase is",
		Fix:   []string{"check hbase.zookeeper.quorum and hbase.zookeeper.property.clientPort of the client, and that the port answers from where the client runs"},
		Not:   []string{"HBase itself is at fault: it was never asked"},
	}
	local := len(hosts) > 0
	for h := range hosts {
		name := h
		if i := strings.LastIndexByte(h, ':'); i > 0 {
			name = h[:i]
		}
		if !loopback(name, "") {
			local = false
		}
	}
	if local {
		f.Notes = append(f.Notes, "the only server tried is localhost, which is the default of hbase.zookeeper.quorum: the client has not read the cluster's hbase-site.xml")
		f.Fix = append([]string{"put the cluster's hbase-site.xml (its directory) on the client's class path, or set hbase.zookeeper.quorum"}, f.Fix...)
	}
	if len(j.by[ZKTooMany]) > 0 {
		return
	}
	if established || len(j.by[ZKEstablished]) > 0 && quiet(facts) {
		f.Severity = finding.Warning
		f.Cause = "a ZooKeeper server could not be reached for a while; a session was established in this input"
	} else if quiet(facts) && len(facts) < 3 && !j.failed() && len(j.by[ZKLoss]) == 0 && len(j.by[Pause])+len(j.by[MasterReady]) > 0 {
		f.Severity = finding.Warning
	}
	j.add(f)
}

func sorted(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	if len(out) > 12 {
		out = append(out[:12], "...")
	}
	return out
}

func (j *judge) zooLimits() {
	keys, groups := groupBy(j.by[ZKTooMany], func(f *Fact) string { return f.Addr })
	for _, from := range keys {
		g := groups[from]
		if from == "" && len(keys) > 1 {
			continue
		}
		if g[0].Limit == 0 {
			j.add(finding.Finding{ID: "ZK_TOO_MANY_CONNECTIONS", Severity: finding.Error, Confidence: finding.Likely, Subject: "this client's address", Count: len(g), Evidence: evidence(g...),
				Cause: "ZooKeeper closes new connections at once, as it does when one address holds too many (maxClientCnxns, 60 by default)",
				Fix:   []string{"share one connection per process and close it", "ZooKeeper's log names the address and the limit; cons (four-letter word) lists the connections"},
				Not:   []string{"ZooKeeper is down"}})
			continue
		}
		j.add(finding.Finding{
			ID: "ZK_TOO_MANY_CONNECTIONS", Severity: finding.Error, Confidence: finding.Certain, Subject: from, Count: len(g), Evidence: evidence(g...),
			Cause:   fmt.Sprintf("%s holds %d ZooKeeper connections, the limit for one address; usually a process makes an HBase connection per task and never closes it", from, g[0].Limit),
			Fix:     []string{"share one connection per process (ConnectionFactory.createConnection once) and close it; closing a table does not close its connection", "raising maxClientCnxns only delays it"},
			Not:     []string{"maxClientCnxns is too small"},
			Numbers: []finding.Number{num("max", g[0].Limit, "connections", "maxClientCnxns, per client address and server")},
			Fields:  map[string]string{"from": from},
		})
	}
}

// clamp: asked session timeouts outside the server's limits.
func (j *judge) clamp() {
	asked, ok := j.get("zookeeper.session.timeout")
	why := "zookeeper.session.timeout"
	ev := j.settingEvidence("zookeeper.session.timeout")
	if !ok {
		for _, f := range j.by[ZKQuorum] {
			if f.Timeout > asked {
				asked, ok, why = f.Timeout, true, "asked by the client"
				ev = evidence(f)
			}
		}
	}
	if !ok {
		for _, f := range j.by[Progress] {
			if f.Limit == 31 { // the constant in the code: hbase-default.xml was not loaded, and its session timeout neither
				asked, ok, why = 180000, true, "the constant in the client's code, which holds here because retries=31 is the code's constant too: hbase-default.xml was not loaded"
			}
		}
	}
	if !ok {
		return
	}
	var granted int64
	var src *Fact
	for _, k := range []Kind{ZKEstablished, ZKExpired, ZKGranted} {
		for _, f := range j.by[k] {
			if f.Timeout > 0 && granted == 0 {
				granted, src = f.Timeout, f
			}
		}
	}
	tick, knownTick := j.tick()
	lo, hi := 2*tick, 20*tick
	formula := fmt.Sprintf("20 x tickTime %d", tick)
	if v, ok := j.get("minSessionTimeout"); ok && v > 0 {
		lo = v
	}
	hasMax := false
	for _, k := range [...]string{"maxSessionTimeout", "hbase.zookeeper.property.maxSessionTimeout"} {
		if v, ok := j.get(k); ok && v > 0 {
			hi, formula, hasMax = v, k+" = "+fmt.Sprint(v), true
		}
	}
	effective := ms(zk.Negotiate(time.Duration(asked)*msec, time.Duration(lo)*msec, time.Duration(hi)*msec))
	if granted > 0 && (why != "zookeeper.session.timeout" || !knownTick && !hasMax) {
		effective, formula = granted, "granted by the server, as logged"
	} else if !knownTick && !hasMax {
		return
	}
	if effective == asked {
		return
	}
	if src != nil {
		ev = append(ev, src.evidence())
	}
	j.add(finding.Finding{
		ID: "ZK_TIMEOUT_CLAMPED", Severity: finding.Warning, Confidence: finding.Certain, Subject: "zookeeper.session.timeout", Count: 1,
		Evidence: append(ev, j.settingEvidence("tickTime", "maxSessionTimeout", "minSessionTimeout")...),
		Cause:    fmt.Sprintf("the client asks for a session of %d ms and gets %d ms: the server keeps sessions within its limits and says nothing", asked, effective),
		Fix:      []string{"set maxSessionTimeout in zoo.cfg (not tickTime, which changes every other timing too), or ask for what is granted"},
		Not:      []string{fmt.Sprintf("the %d ms are in force", asked)},
		Numbers: []finding.Number{num("asked", asked, "ms", why), num("effective", effective, "ms", formula),
			num("read_timeout", (effective*2+1)/3, "ms", fmt.Sprintf("2/3 x %d", effective))},
	})
}
