package checks

import (
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/readers"
)

func retryWords() []word {
	return []word{
		{"callTimeout=", readCallTimeout},
		{"Callexception,tries=", readProgress},
		{"Failedafterattempts=", readExhausted},
		{"RpcRetryingCaller{globalStartTime=", readAttempt},
		{"trackingstarted", readAsync},
		{"waitTime=", readWaitTime},
		{"millistimeoutwhilewaitingforchannel", readMillis},
		{"Failedtogetresultwithintimeout,timeout=", func(x *extraction, at int) {
			f := x.fact(RPCTimeout, at)
			f.Timeout, _, _ = intAt(x.s, at)
			f.Wait = f.Timeout
		}},
		{"Can'tgetthelocation", simple(Exhausted, "lookup")},
		{"NonRecoverableException:Toomanyattempts", simple(Exhausted, "asynchbase")},
		{"Unabletofindregionfor", func(x *extraction, at int) {
			f := x.fact(Exhausted, at)
			f.Class = "Unable to find region"
			w := window(x.s, at, 600)
			if i := strings.Index(w, "after"); i >= 0 {
				f.Limit, _, _ = intAt(w, i+5)
			}
		}},
	}
}

// place reads row, table, region and server as the Java client prints them.
func place(f *Fact, w string) {
	if i := strings.Index(w, "row'"); i >= 0 {
		r := w[i+4:]
		if j := strings.Index(r, "'ontable'"); j >= 0 && j < 4096 {
			f.Row, f.HasRow = cut(r[:j], 200), true
			t := r[j+9:]
			if k := strings.IndexByte(t, '\''); k >= 0 && k < 300 {
				f.Table = t[:k]
			}
		}
	}
	if i := strings.Index(w, "atregion="); i >= 0 {
		r := w[i+9:]
		if j := strings.Index(r, ",hostname="); j >= 0 && j < 8192 {
			f.Region = r[:j]
			f.Encoded = encoded(f.Region)
			f.Server, _ = serverName(r, j+10)
		} else {
			f.Region = cut(r, 300)
		}
	} else if srv, ok := findServer(w, "hostname="); ok {
		f.Server = srv
	}
}

func readCallTimeout(x *extraction, at int) {
	timeout, next, ok := intAt(x.s, at)
	if !ok {
		return
	}
	w := window(x.s, next, 12000)
	// The next report of the same entry is another fact.
	if i := strings.Index(w, "callTimeout="); i >= 0 {
		w = w[:i]
	}
	i := strings.Index(w, "callDuration=")
	if i < 0 || i > 40 {
		return
	}
	duration, end, ok := intAt(w, i+13)
	if !ok {
		return
	}
	f := x.fact(CallTimedOut, at)
	f.Timeout, f.Duration = timeout, duration
	place(f, w[end:])
	reason := strings.TrimPrefix(w[end:], ":")
	if j := strings.Index(reason, "row'"); j >= 0 {
		reason = reason[:j]
	}
	if j := strings.Index(reason, "atorg.apache."); j > 0 {
		reason = reason[:j]
	}
	f.Class = cut(reason, 300)
}

func readProgress(x *extraction, at int) {
	tries, next, ok := intAt(x.s, at)
	if !ok {
		return
	}
	w := window(x.s, next, 12000)
	f := x.fact(Progress, at)
	f.Tries = tries
	f.Limit, _ = number(window(w, 0, 40), "retries=")
	f.Started, _ = number(window(w, 0, 80), "started=")
	if i := strings.Index(w, "msg="); i >= 0 {
		msg := w[i+4:]
		if j := strings.Index(msg, "details="); j >= 0 {
			msg = msg[:j]
		} else if j := strings.Index(msg, "row'"); j >= 0 {
			msg = msg[:j]
		}
		f.Class = cut(strings.TrimRight(msg, ","), 300)
	}
	place(f, w)
}

func readExhausted(x *extraction, at int) {
	v, _, ok := intAt(x.s, at)
	if !ok {
		return
	}
	f := x.fact(Exhausted, at)
	f.Limit = v
}

// readAttempt reads one line of an exception's list of attempts.
func readAttempt(x *extraction, at int) {
	f := x.fact(Attempt, at)
	v, next, ok := intAt(x.s, at)
	if ok && v > 1e11 {
		f.Started = v
	} else if s, n, ok := readers.ParseStamp([]byte(window(x.s, at, 30))); ok {
		f.Started, next = s.Milli, at+n
	}
	w := window(x.s, next, 700)
	f.Pause, _ = number(window(w, 0, 60), "pause=")
	var isRetries bool
	if f.Limit, isRetries = number(window(w, 0, 90), "retries="); !isRetries {
		f.Limit, _ = number(window(w, 0, 90), "maxAttempts=")
	}
	if i := strings.Index(w, "},"); i >= 0 {
		f.Class = cut(w[i+2:], 400)
		if j := strings.Index(f.Class, "RpcRetryingCaller{"); j > 30 {
			f.Class = f.Class[:j-24]
		}
	}
	f.Stamp, f.Has = readers.Stamp{}, false
	_, line := x.e.LineAt(at - 1)
	if i := strings.Index(string(line), "RpcRetryingCaller"); i > 0 {
		p := strings.TrimRight(string(line[:i]), ", ")
		for _, n := range [...]int{24, 28, 29, 30, 23} {
			if len(p) >= n {
				if s, used, ok := readers.ParseStamp([]byte(p[len(p)-n:])); ok && used == n {
					f.Stamp, f.Has = s, true
					break
				}
			}
		}
	}
}

// readAsync reads "#id, table=t, attempt=12/35 failed 121 ops, last exception:
// ... on SERVER, tracking started DATE, retrying after 20145 ms".
func readAsync(x *extraction, at int) {
	b := before(x.s, at, 3000)
	i := strings.LastIndex(b, "attempt=")
	if i < 0 {
		return
	}
	f := x.fact(AsyncBatch, at)
	var next int
	f.Tries, next, _ = intAt(b, i+8)
	if next < len(b) && b[next] == '/' {
		f.Limit, _, _ = intAt(b, next+1)
	}
	if j := strings.LastIndex(b[:i], "table="); j >= 0 {
		f.Table, _ = text(b[j:], "table=", ",", 200)
	}
	if j := strings.Index(b[i:], "lastexception"); j >= 0 {
		f.Class = cut(strings.TrimLeft(b[i+j+13:], "=:"), 300)
	}
	for j := 0; ; {
		k := strings.Index(b[j:], "on")
		if k < 0 {
			break
		}
		j += k + 2
		if srv, ok := serverName(b, j); ok {
			f.Server = srv
		}
	}
	w := window(x.s, at, 200)
	f.Wait, _ = number(w, "retryingafter")
	// "tracking started Wed Apr 13 12:45:01 CST 2016": in the zone of the log itself.
	_, line := x.e.LineAt(at - 1)
	if j := strings.Index(string(line), "tracking started "); j >= 0 && f.Has {
		if s, _, ok := readers.ParseStamp(line[j+len("tracking started "):]); ok {
			if d := f.Stamp.Milli - s.Milli; d >= 0 && d < 24*3600000 {
				f.Elapsed = d
			}
		}
	}
}

func readWaitTime(x *extraction, at int) {
	v, next, ok := intAt(x.s, at)
	if !ok {
		return
	}
	w := window(x.s, next, 80)
	timeout, has := number(w, "rpcTimeout=")
	if !has {
		// newer text, older misspelling
		for _, k := range [...]string{"operationTimeout=", "rpcTimetout=", "imeout="} {
			if timeout, has = number(w, k); has {
				break
			}
		}
	}
	if !has && !strings.Contains(w, "expired") {
		return
	}
	f := x.fact(RPCTimeout, at)
	f.Wait, f.Timeout = v, timeout
	if srv, addr, ok := endpoint(afterWord(before(x.s, at, 500), "Callto"), 0); ok {
		f.Server, f.Addr = srv, addr
	}
}

// afterWord is what follows the last occurrence of w.
func afterWord(s, w string) string {
	if i := strings.LastIndex(s, w); i >= 0 {
		return s[i+len(w):]
	}
	return ""
}

// readMillis reads "60000 millis timeout while waiting for channel to be ready
// for read. ch : java.nio...[connected local=... remote=host/ip:port]".
func readMillis(x *extraction, at int) {
	b := before(x.s, at-len("millistimeoutwhilewaitingforchannel"), 9)
	i := len(b)
	for i > 0 && isDigit(b[i-1]) {
		i--
	}
	v, _, _ := intAt(b, i)
	w := window(x.s, at, 400)
	k := RPCTimeout
	if strings.Contains(window(w, 0, 60), "readyforconnect") {
		k = ConnectTimeout
	}
	f := x.fact(k, at)
	f.Timeout, f.Wait = v, v
	if j := strings.Index(w, "remote="); j >= 0 {
		f.Server, f.Addr, _ = endpoint(w, j+7)
	}
}
