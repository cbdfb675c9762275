package checks

import "strings"

// ownWords read the error texts of this project's own client (package retry:
// Error.Error), which are input like any other.
func ownWords() []word {
	return []word{
		{":deadlineexceededafter", readOwn("deadline")},
		{":attemptsusedupafter", readOwn("attempts")},
		{":outcomeunknownafter", readOwn("unknown")},
		{"dial:refused", readOwnZK(Refused)},
		{"dial:unreachable", readOwnZK(NoRoute)},
		{"dial:blackhole", readOwnZK(ConnectTimeout)},
		{"resolve:unresolved", readOwnZK(Unresolved)},
		{"handshake:acceptedbutsilent", readOwnZK(ZKLoss)},
		{"handshake:hungup", readOwnZK(ZKLoss)},
		{"handshake:notZooKeeper", readOwnZK(OtherFault)},
		{"noHBasehasitsznodeshere", func(x *extraction, at int) {
			f := x.fact(ParentMissing, at)
			if v, ok := text(afterWord(before(x.s, at, 300), "znode"), "", ":i", 100); ok {
				f.Path = hostPath(v)
			}
		}},
	}
}

func readOwn(reason string) func(*extraction, int) {
	return func(x *extraction, at int) {
		d, next, ok := goDuration(x.s, at)
		if !ok {
			return
		}
		f := x.fact(OwnError, at)
		f.Class = reason
		f.Elapsed = d.Milliseconds()
		w := window(x.s, next, 3000)
		if strings.HasPrefix(w, "of") {
			if d, n, ok := goDuration(w, 2); ok {
				f.Timeout, w = d.Milliseconds(), w[n:]
			}
		}
		switch {
		case strings.HasPrefix(w, ",noattempt"):
		case strings.HasPrefix(w, ","):
			if n, k, ok := intAt(w, 1); ok && strings.HasPrefix(w[k:], "attempt") {
				f.Tries = n
			}
		}
		if i := strings.Index(window(w, 0, 30), "on"); i >= 0 {
			f.Server, _ = serverName(w, i+2)
		}
		for _, p := range [...]struct {
			key string
			to  *int64
		}{{"calling", &f.Duration}, {"waiting", &f.Wait}, {"locating", &f.Started}} {
			if i := strings.Index(w, "[time:"); i >= 0 {
				if j := strings.Index(w[i:], p.key); j >= 0 {
					if d, _, ok := goDuration(w, i+j+len(p.key)); ok {
						*p.to = d.Milliseconds()
					}
				}
			}
		}
		f.Path = cut(w, 400)
		b := before(x.s, at, 400)
		if i := strings.LastIndex(b, "row\""); i >= 0 {
			f.HasRow = true
		}
		if i := strings.IndexByte(b, '"'); i >= 0 {
			if j := strings.IndexByte(b[i+1:], '"'); j >= 0 {
				f.Table = b[i+1 : i+1+j]
			}
		}
	}
}

// readOwnZK reads one attempt of the ZooKeeper client's story:
// [host:port dial: refused after 0s].
func readOwnZK(k Kind) func(*extraction, int) {
	return func(x *extraction, at int) {
		b := before(x.s, at, 300)
		i := strings.LastIndexByte(b, '[')
		if i < 0 {
			return
		}
		srv, addr, ok := endpoint(b, i+1)
		if !ok {
			return
		}
		for _, o := range x.out {
			if o.Kind == k && o.Server == srv {
				return // the same server again and again
			}
		}
		f := x.fact(k, at)
		f.Server, f.Addr, f.Class = srv, addr, "zookeeper"
		if k == OtherFault {
			f.Class = "WRONG_PORT_CLASS"
		}
	}
}
