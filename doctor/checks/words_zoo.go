package checks

import (
	"strconv"
	"strings"
)

func zooWords() []word {
	return []word{
		{"havenotheardfromserverin", readZKSilent},
		{"Expiringsession", readExpiring},
		{"Sessionestablishmentcomplete", readEstablished},
		{"Establishedsession", readGranted},
		{"attemptingtorenewsession", readRenew},
		{"Invalidsession", readInvalid},
		{"Unabletoreconnect", readExpiredClient},
		{"SessionExpiredException", readExpiredClient},
		{"hasexpired,closingsocketconnection", readExpiredClient},
		{"receivedexpiredfromZooKeeper", readExpiredClient},
		{"theconnectionclosesimmediately", func(x *extraction, at int) { x.fact(ZKTooMany, at) }},
		{"Openingsocketconnectiontoserver", readOpeningSocket},
		{"unexpectederror,closingsocketconnection", readConnError},
		{"closingsocketconnectionandattemptingreconnect", readConnError},
		{"Toomanyconnectionsfrom", readTooMany},
		{"ConnectionLossfor", readLoss},
		{"code=CONNECTIONLOSS", readLoss},
		{"isnotinZooKeeper", readParentMissing},
		{"znodedata==null", func(x *extraction, at int) { x.fact(ParentMissing, at).Class = "master" }},
		{"NoNodefor/", readNoNode},
		{"Gotuser-levelKeeperException", readUserLevel},
		{"Initiatingclientconnection,connectString=", readInitiating},
		{"Weslept", readSlept},
		{"pauseofapproximately", readPause},
		{"applicationthreadswerestopped:", readStopped},
		{"FullGC", readFullGC},
		{"Session:0x", readZKClosed},
		{"Initiatingcloseofsession", readZKClosed},
		{"notbeenabletoconnecttozookeeper", simple(ZKLoss, "")},
		{"notcurrentlyservingrequests", simple(ZKLoss, "not serving")},
	}
}

func readZKSilent(x *extraction, at int) {
	v, _, ok := intAt(x.s, at)
	if !ok {
		return
	}
	f := x.fact(ZKSilent, at)
	f.Wait = v
	f.Session = findSession(window(x.s, at, 80), "sessionid")
	if f.Session == 0 {
		f.Session = findSession(before(x.s, at, 300), "Session")
	}
	b := before(x.s, at, 400)
	if i := strings.LastIndex(b, "SendThread("); i >= 0 {
		f.Server, f.Addr, _ = endpoint(b, i+len("SendThread("))
	}
}

func readExpiring(x *extraction, at int) {
	id, next, ok := hexSession(x.s, at)
	if !ok {
		return
	}
	f := x.fact(ZKExpired, at)
	f.Session = id
	f.Timeout, _ = number(window(x.s, next, 40), "timeoutof")
}

func readEstablished(x *extraction, at int) {
	w := window(x.s, at, 300)
	f := x.fact(ZKEstablished, at)
	if i := strings.Index(w, "onserver"); i >= 0 {
		f.Server, f.Addr, _ = endpoint(w, i+8)
		if f.Server.Host == "" {
			f.Server.Host = hostAt(w, i+8)
		}
	}
	f.Session = findSession(w, "sessionid=")
	f.Timeout, _ = number(w, "negotiatedtimeout=")
	if strings.Contains(before(x.s, at, 300), "ClientCnxn.readConnectResult") {
		f.Class = "asynchbase"
	}
}

func readGranted(x *extraction, at int) {
	id, next, ok := hexSession(x.s, at)
	if !ok {
		return
	}
	f := x.fact(ZKGranted, at)
	f.Session = id
	f.Timeout, _ = number(window(x.s, next, 60), "negotiatedtimeout")
}

func readRenew(x *extraction, at int) {
	f := x.fact(ZKRenew, at)
	f.Session, _, _ = hexSession(x.s, at)
	w := window(x.s, at, 80)
	if i := strings.Index(w, "at/"); i >= 0 {
		_, f.Addr, _ = endpoint(w, i+2)
	}
}

func readInvalid(x *extraction, at int) {
	id, next, ok := hexSession(x.s, at)
	if !ok {
		return
	}
	f := x.fact(ZKInvalid, at)
	f.Session = id
	w := window(x.s, next, 80)
	if i := strings.Index(w, "forclient/"); i >= 0 {
		_, f.Addr, _ = endpoint(w, i+9)
	}
}

func readExpiredClient(x *extraction, at int) {
	w, b := window(x.s, at, 200), before(x.s, at, 300)
	if strings.HasSuffix(b, "exceptitisaSessionExpiredException") {
		return // how 3.5 and later say that they reconnect
	}
	for _, o := range x.out {
		if o.Kind == ZKExpiredClient {
			return // one exception, several words
		}
	}
	f := x.fact(ZKExpiredClient, at)
	f.Session = findSession(w, "session")
	if f.Session == 0 {
		f.Session = findSession(w, "sessionid")
	}
	if f.Session == 0 {
		if i := strings.LastIndex(b, "0x"); i >= 0 {
			f.Session, _, _ = hexSession(b, i)
		}
	}
}

func readOpeningSocket(x *extraction, at int) {
	f := x.fact(ZKOpening, at)
	f.Server, f.Addr, _ = endpoint(x.s, at)
}

func readConnError(x *extraction, at int) {
	b, w := before(x.s, at, 500), window(x.s, at, 300)
	for _, o := range x.out {
		if o.Kind == ZKConnError || o.Kind == ZKSilent {
			return
		}
	}
	if strings.Contains(b, "havenotheardfromserverin") {
		return
	}
	f := x.fact(ZKConnError, at)
	if i := strings.LastIndex(b, "ession0x"); i >= 0 {
		f.Session, _, _ = hexSession(b, i+6)
	} else {
		f.Session = findSession(b, "sessionid")
	}
	if i := strings.LastIndex(b, "SendThread("); i >= 0 {
		f.Server, f.Addr, _ = endpoint(b, i+len("SendThread("))
	}
	if i := strings.LastIndex(b, "forserver"); i >= 0 && !strings.HasPrefix(b[i:], "forservernull") {
		if s, a, ok := endpoint(b, i+9); ok {
			f.Server, f.Addr = s, a
		}
	}
	for _, c := range [...]string{"NoRouteToHost", "Connectionrefused", "ConnectException", "Connectionresetbypeer", "Brokenpipe", "EndOfStream", "UnresolvedAddress", "UnknownHost", "likelyserverhasclosedsocket", "Connectiontimedout"} {
		if strings.Contains(w, c) || strings.Contains(b, c) {
			f.Class = c
			break
		}
	}
}

func readTooMany(x *extraction, at int) {
	f := x.fact(ZKTooMany, at)
	w := window(x.s, at, 80)
	f.Addr = strings.TrimRight(strings.TrimPrefix(w[:max(0, strings.IndexAny(w+"m", "m"))], "/"), "-")
	if i := strings.Index(f.Addr, "-"); i >= 0 {
		f.Addr = f.Addr[:i]
	}
	f.Limit, _ = number(w, "maxis")
}

func readLoss(x *extraction, at int) {
	f := x.fact(ZKLoss, at)
	b, w := before(x.s, at, 700), window(x.s, at, 200)
	if strings.HasPrefix(w, "/") {
		f.Path = hostPath(w)
	}
	if i := strings.LastIndex(b, "failedforget"); i >= 0 {
		if j := strings.Index(b[i:], "/"); j >= 0 {
			f.Path = hostPath(b[i+j:])
		}
		if j := strings.LastIndex(b[:i], "to"); j >= 0 {
			f.Quorum = b[j+2 : i]
		}
	}
	if f.Quorum == "" {
		if i := strings.LastIndex(b, "ReadOnlyZKClient-"); i >= 0 {
			f.Quorum, _ = text(b[i:], "ReadOnlyZKClient-", "@]", 400)
		}
	}
	f.Tries, _ = number(w, "retries=")
}

func hostPath(s string) string {
	j := 0
	for j < len(s) && j < 120 && (isHostByte(s[j]) || s[j] == '/' || s[j] == ':') {
		j++
	}
	return s[:j]
}

func readParentMissing(x *extraction, at int) {
	b := before(x.s, at-len("isnotinZooKeeper"), 200)
	f := x.fact(ParentMissing, at)
	if i := strings.LastIndex(b, "node"); i >= 0 {
		f.Path = hostPath(strings.TrimLeft(b[i+4:], "'\""))
	}
}

// readNoNode keeps only paths that HBase itself writes: other programs miss
// nodes of their own.
func readNoNode(x *extraction, at int) {
	if strings.Contains(before(x.s, at, 500), "user-levelKeeperException") {
		return
	}
	_, line := x.e.LineAt(at - 1)
	path := ""
	if i := strings.Index(string(line), "NoNode for "); i >= 0 {
		path = hostPath(string(line[i+len("NoNode for "):]))
	} else {
		path = hostPath(x.s[at-1:])
	}
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "hbaseid", "master", "meta-region-server", "root-region-server", "rs", "draining", "table":
	default:
		if strings.Count(path, "/") != 1 || !strings.Contains(path, "hbase") && !strings.Contains(x.s, "hadoop.hbase") {
			return
		}
	}
	f := x.fact(NoNode, at)
	f.Path = path
}

func readUserLevel(x *extraction, at int) {
	f := x.fact(ZKUserLevel, at)
	f.Path, _ = text(window(x.s, at, 400), "ErrorPath:", "E", 120)
}

func readInitiating(x *extraction, at int) {
	f := x.fact(ZKQuorum, at)
	w := window(x.s, at, 1000)
	if i := strings.Index(w, "sessionTimeout="); i >= 0 {
		f.Quorum = cut(w[:i], 400)
		f.Timeout, _ = number(w[i:], "sessionTimeout=")
	}
}

func readZKClosed(x *extraction, at int) {
	var id uint64
	w := window(x.s, at-2, 60)
	if v, next, ok := hexSession(w, 0); ok {
		if !strings.HasPrefix(w[next:], "closed") {
			return
		}
		id = v
	} else {
		return
	}
	f := x.fact(ZKClosed, at)
	f.Session = id
}

func readSlept(x *extraction, at int) {
	v, next, ok := intAt(x.s, at)
	if !ok {
		return
	}
	f := x.fact(Pause, at)
	f.Duration = v
	f.Limit, _ = number(window(x.s, next, 40), "insteadof")
	f.Class = "sleeper"
}

func readPause(x *extraction, at int) {
	v, _, ok := intAt(x.s, at)
	if !ok {
		return
	}
	f := x.fact(Pause, at)
	f.Duration, f.Class = v, "pause monitor"
	if strings.Contains(window(x.s, at, 300), "NoGCsdetected") {
		f.Class = "pause monitor, no GC"
	}
}

// minPause is the shortest stop of a GC log that is kept.
const minPause = 3000

func seconds(s string) int64 {
	j := 0
	for j < len(s) && j < 20 && (isDigit(s[j]) || s[j] == '.') {
		j++
	}
	v, err := strconv.ParseFloat(s[:j], 64)
	if err != nil || v < 0 || v > 1e7 {
		return 0
	}
	return int64(v * 1000)
}

func readStopped(x *extraction, at int) {
	if v := seconds(window(x.s, at, 20)); v >= minPause {
		f := x.fact(Pause, at)
		f.Duration, f.Class = v, "safepoint"
	}
}

func readFullGC(x *extraction, at int) {
	w := window(x.s, at, 600)
	if i := strings.Index(w, "real="); i >= 0 {
		if v := seconds(w[i+5:]); v >= minPause {
			f := x.fact(Pause, at)
			f.Duration, f.Class = v, "full GC"
		}
		return
	}
	if i := strings.Index(w, "secs]"); i > 0 {
		j := i
		for j > 0 && (isDigit(w[j-1]) || w[j-1] == '.') {
			j--
		}
		if v := seconds(w[j:i]); v >= minPause {
			f := x.fact(Pause, at)
			f.Duration, f.Class = v, "full GC"
		}
	}
}
