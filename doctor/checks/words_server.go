package checks

import "strings"

func serverWords() []word {
	return []word{
		{"isnotonlineon", readNotOnline},
		{"NotServingRegionException", readNotServing},
		{"Regionmovedto:", readMoved},
		{"RegionOpeningException", readOpening},
		{"WrongRegionException", simple(WrongRegion, "")},
		{"Requestedrowoutofrange", simple(WrongRegion, "")},
		{"cannotresolve", readCannotResolve},
		{"UnknownHostException", readUnknownHost},
		{"nosuchhost", readNoSuchHost},
		{"Nameorservicenotknown", readNameUnknown},
		{"Temporaryfailureinnameresolution", readNameUnknown},
		{"nodenamenorservnameprovided", readNameUnknown},
		{"UnresolvedAddressException", simple(Unresolved, "")},
		{"Connectionrefused", readRefused},
		{"failedserverslist:", readFailedServer},
		{"Noroutetohost", readUnreachable(NoRoute)},
		{"Networkisunreachable", readUnreachable(NoRoute)},
		{"ConnectTimeoutException", readUnreachable(ConnectTimeout)},
		{"connecttimedout", readUnreachable(ConnectTimeout)},
		{"connectiontimedout", readUnreachable(ConnectTimeout)},
		{"i/otimeout", readUnreachable(ConnectTimeout)},
		{"CallQueueTooBigException", simple(QueueFull, "")},
		{"Callqueueisfullon", simple(QueueFull, "")},
		{"Abovememstorelimit", readMemstore},
		{"Overmemstorelimit", readMemstore},
		{"failedtogetalockin", func(x *extraction, at int) {
			f := x.fact(RowLockBusy, at)
			f.Wait, _, _ = intAt(x.s, at)
		}},
		{"UnknownScannerException", simple(ScannerUnknown, "")},
		{"LeaseException", readLease},
		{"mspassedsincethelastinvocation", readScannerGap},
		{"triedtoaccessmissingscanner", simple(ScannerMissing, "")},
		{"OutOfOrderScannerNextException", simple(ScannerOrder, "")},
		{"ignore,probablyalreadyclosed", simple(ScannerClosed, "")},
		{"Failedtogetuserregionlockin", func(x *extraction, at int) {
			f := x.fact(LookupLock, at)
			f.Wait, _, _ = intAt(x.s, at)
		}},
		{"PleaseHoldException", simple(MasterBusy, "")},
		{"Masterisinitializing", simple(MasterBusy, "")},
		{"Masterhascompletedinitialization", simple(MasterReady, "")},
		{"ServerNotRunningYetException", simple(MasterBusy, "ServerNotRunningYet")},
		{"MasterNotRunningException", simple(MasterGone, "")},
		{"STUCKRegion-In-Transition", readStuck},
		{"FAILED_OPEN", readFailedOpen},
		{"NoServerForRegionException", simple(NotServing, "NoServerForRegion")},
		{"Thecoprocessor", readCoprocessor},
		{"theclientwentaway", readClientGone},
		{"respondercallId:", readClientGone},
		{"outputerror", readOutputError},
		{"Masterstartupcannotprogress", readHolding},
		{"responseTooSlow", readSlow},
		{"YouAreDeadException", simple(YouAreDead, "")},
		{"ABORTINGregionserver", simple(Abort, "region server")},
		{"ABORTINGmaster", simple(Abort, "master")},
		{"hb.Connection('", readThrift},
		{"happybase.Connection('", readThrift},
	}
}

func readNotOnline(x *extraction, at int) {
	f := x.fact(NotServing, at)
	f.Server, _ = serverName(x.s, at)
	b := before(x.s, at-len("isnotonlineon"), 1500)
	for _, k := range [...]string{"Region:", "Exception:Region", "Region", "Exception:", ":"} {
		if i := strings.LastIndex(b, k); i >= 0 && i+len(k) < len(b) {
			f.Region = b[i+len(k):]
			break
		}
	}
	if i := strings.Index(f.Region, "hbase:meta,"); i > 0 {
		f.Region = f.Region[i:]
	}
	f.Encoded = encoded(f.Region)
	f.Table, _, _ = regionParts(f.Region)
}

func readNotServing(x *extraction, at int) {
	if strings.Contains(window(x.s, at, 1200), "isnotonlineon") {
		return
	}
	f := x.fact(NotServing, at)
	w := window(x.s, at, 400)
	if v, ok := text(w, "Regionisnotonline:", ";)'\"", 200); ok {
		f.Encoded = cut(v, 32)
	}
	if f.Encoded == "1588230740" {
		f.Table, f.Region = "hbase:meta", "hbase:meta,,1"
	}
	if srv, ok := findServer(w, "on"); ok {
		f.Server = srv
	}
}

func readMoved(x *extraction, at int) {
	w := window(x.s, at, 500)
	f := x.fact(Moved, at)
	if i := strings.Index(w, "hostname="); i >= 0 {
		h := w[i+9:]
		if j := strings.Index(h, "port="); j >= 0 && j < 254 {
			f.Server.Host = h[:j]
			port, _, _ := intAt(h, j+5)
			f.Server.Port = int(min(port, 65535))
		}
	}
	f.Server.Start, _ = number(w, "startCode=")
	f.Limit, _ = number(w, "locationSeqNum=")
}

func readOpening(x *extraction, at int) {
	w := window(x.s, at, 1500)
	f := x.fact(Opening, at)
	if i := strings.Index(w, "isopeningon"); i >= 0 {
		f.Server, _ = serverName(w, i+len("isopeningon"))
		f.Region = w[:i]
		if k := strings.LastIndex(f.Region, ":Region"); k >= 0 {
			f.Region = f.Region[k+len(":Region"):]
		}
		f.Region = strings.TrimPrefix(f.Region, ":")
		f.Encoded = encoded(f.Region)
		f.Table, _, _ = regionParts(f.Region)
	}
	if strings.Contains(before(x.s, at, 400), "org.hbase.async.") || strings.Contains(x.s, "org.hbase.async.RemoteException") {
		f.Class = "asynchbase"
	}
}

func readCannotResolve(x *extraction, at int) {
	f := x.fact(Unresolved, at)
	if srv, ok := serverName(x.s, at); ok {
		f.Server = srv
	} else if srv, _, ok := endpoint(x.s, at); ok {
		f.Server = srv
	} else {
		f.Server.Host = hostAt(x.s, at)
	}
}

func hostAt(s string, i int) string {
	for i < len(s) && (s[i] == ':' || s[i] == '\'' || s[i] == '"') {
		i++
	}
	j := i
	for j < len(s) && isHostByte(s[j]) && j-i < 200 {
		j++
	}
	return strings.Trim(s[i:j], ".")
}

func readUnknownHost(x *extraction, at int) {
	w := window(x.s, at, 300)
	if strings.HasPrefix(w, ":Callto") { // the name stands again at the end
		return
	}
	if strings.HasPrefix(w, ":cannotresolve") || strings.HasPrefix(w, ":java.net.UnknownHostException") {
		return
	}
	f := x.fact(Unresolved, at)
	_, line := x.e.LineAt(at - 1)
	if strings.Contains(x.s, "buildTokenService") || strings.Contains(x.s, "NameNodeProxies") {
		f.Class = "hdfs"
	}
	if i := strings.LastIndex(string(line), "UnknownHostException:"); i >= 0 {
		h := strings.TrimSpace(string(line[i+len("UnknownHostException:"):]))
		h = strings.TrimPrefix(h, "Invalid host name: local host is:")
		if srv, _, ok := endpoint(h, 0); ok {
			f.Server = srv
			return
		}
		f.Server.Host = hostAt(h, 0)
		return
	}
	f.Server.Host = hostAt(w, 0)
}

func readNoSuchHost(x *extraction, at int) { // Go: lookup NAME on 1.2.3.4:53: no such host
	f := x.fact(Unresolved, at)
	b := before(x.s, at, 300)
	if i := strings.LastIndex(b, "lookup"); i >= 0 {
		h := hostAt(b, i+6)
		_, line := x.e.LineAt(at - 1)
		if j := strings.LastIndex(string(line), "lookup "); j >= 0 {
			h = hostAt(string(line), j+7)
		}
		f.Server.Host = h
	}
}

func readNameUnknown(x *extraction, at int) {
	if strings.Contains(before(x.s, at, 400), "UnknownHostException") {
		return
	}
	f := x.fact(Unresolved, at)
	b := before(x.s, at, 320)
	if i := strings.LastIndex(b, "://"); i >= 0 {
		f.Server.Host = hostAt(b, i+3)
	}
}

func readRefused(x *extraction, at int) {
	w := window(x.s, at, 300)
	b := before(x.s, at-len("Connectionrefused"), 500)
	if strings.HasSuffix(b, "causedby:") || strings.Count(x.s, "Connectionrefused") > 50 {
		return
	}
	var srv Server
	var addr string
	ok := false
	if strings.HasPrefix(w, ":") {
		srv, addr, ok = endpoint(w, 1)
		if !ok && strings.HasPrefix(w, ":nofurtherinformation:") {
			srv, addr, ok = endpoint(w, len(":nofurtherinformation:"))
		}
	}
	if !ok {
		if i := strings.LastIndex(b, "Callto"); i >= 0 {
			j := i + 6
			if strings.HasPrefix(b[j:], "address=") {
				j += 8
			}
			srv, addr, ok = endpoint(b, j)
			if !ok && j != i+6 {
				srv, addr, ok = endpoint(b, i+6)
			}
		}
	}
	if !ok { // Go: dial tcp 1.2.3.4:2181: connect: connection refused; zk: [host:port ...]
		for _, k := range [...]string{"dialtcp4", "dialtcp6", "dialtcp", "dial"} {
			if i := strings.LastIndex(b, k); i >= 0 {
				if srv, addr, ok = endpoint(b, i+len(k)); ok {
					break
				}
			}
		}
	}
	if !ok { // Session 0x0 for server host/ip:port, unexpected error
		if i := strings.LastIndex(b, "forserver"); i >= 0 {
			srv, addr, ok = endpoint(b, i+9)
		}
	}
	if !ok { // Could not connect to ('localhost', 9090)
		if i := strings.LastIndex(b, "Couldnotconnectto("); i >= 0 {
			q := strings.Trim(window(b, i+18, 200), "'\"")
			if j := strings.IndexAny(q, "'\""); j > 0 {
				port, _, _ := intAt(strings.TrimLeft(q[j:], "'\","), 0)
				srv, ok = Server{Host: q[:j], Port: int(min(port, 65535))}, true
			}
		}
	}
	f := x.fact(Refused, at)
	f.Server, f.Addr = srv, addr
	if strings.Contains(b, "zookeeper.ClientCnxn") || strings.Contains(b, "SendThread(") || strings.Contains(b, "Session0x") {
		f.Class = "zookeeper"
		if !ok {
			if i := strings.LastIndex(b, "SendThread("); i >= 0 {
				f.Server, f.Addr, _ = endpoint(b, i+len("SendThread("))
			}
		}
	}
}

func readFailedServer(x *extraction, at int) {
	f := x.fact(FailedServer, at)
	f.Server, f.Addr, _ = endpoint(x.s, at)
}

func readUnreachable(k Kind) func(*extraction, int) {
	return func(x *extraction, at int) {
		w := window(x.s, at, 300)
		b := before(x.s, at, 400)
		if k == ConnectTimeout && strings.Contains(b, "org.apache.zookeeper.") && strings.Contains(b, "Client") && strings.Contains(b, "connectiontimedout") {
			return // ZooKeeper 3.9.3's wording for a silent connection
		}
		if k == ConnectTimeout && (strings.Contains(w, "havenotheardfromserver") || strings.HasSuffix(b, "Clientconnectiontimedout")) {
			return
		}
		f := x.fact(k, at)
		var ok bool
		for _, p := range [...]string{":connectiontimedout:", ":", ""} {
			if strings.HasPrefix(w, p) {
				if f.Server, f.Addr, ok = endpoint(w, len(p)); ok {
					break
				}
			}
		}
		if !ok {
			for _, p := range [...]string{"Callto", "dialtcp", "address=", "connectto", "forserver", "remote="} {
				if i := strings.LastIndex(b, p); i >= 0 {
					if f.Server, f.Addr, ok = endpoint(b, i+len(p)); ok {
						break
					}
				}
			}
		}
		if strings.Contains(b, "SendThread(") || strings.Contains(b, "Session0x") || strings.Contains(b, "ClientCnxn") {
			f.Class = "zookeeper"
			if !ok {
				if i := strings.LastIndex(b, "SendThread("); i >= 0 {
					f.Server, f.Addr, _ = endpoint(b, i+len("SendThread("))
				}
			}
		}
	}
}

func readMemstore(x *extraction, at int) {
	w := window(x.s, at, 1500)
	f := x.fact(MemstoreFull, at)
	if v, ok := number(w, "memstoreSize="); ok {
		f.Size = v
	}
	if v, ok := number(w, "blockingMemStoreSize="); ok {
		f.Limit = v
	} else if v, ok := text(w, "limit=", ",", 24); ok {
		f.Limit = bytesOf(v)
	} else if strings.HasPrefix(w, "=") {
		f.Limit = bytesOf(strings.SplitN(w[1:], ",", 2)[0])
	}
	if i := strings.Index(w, "regionName="); i >= 0 {
		r := w[i+11:]
		if j := strings.Index(r, ",server="); j >= 0 {
			f.Region = cut(r[:j], 300)
			f.Server, _ = serverName(r, j+8)
		} else if j := strings.IndexByte(r, ','); j >= 0 {
			f.Region = cut(r[:min(len(r), j+200)], 300)
		}
		f.Table, _, _ = regionParts(f.Region)
	}
}

// bytesOf reads 512M, 512.0M, 536870912.
func bytesOf(v string) int64 {
	n, next, ok := intAt(v, 0)
	if !ok {
		return 0
	}
	if next < len(v) && v[next] == '.' {
		_, next, _ = intAt(v, next+1)
	}
	if next < len(v) {
		switch v[next] {
		case 'K', 'k':
			return n << 10
		case 'M', 'm':
			return n << 20
		case 'G', 'g':
			return n << 30
		}
	}
	return n
}

func readLease(x *extraction, at int) {
	if strings.Contains(before(x.s, at, 600), "robablyalreadyclosed") {
		return
	}
	simple(ScannerUnknown, "lease")(x, at)
}

func readScannerGap(x *extraction, at int) {
	b := before(x.s, at-len("mspassedsincethelastinvocation"), 12)
	i := len(b)
	for i > 0 && isDigit(b[i-1]) {
		i--
	}
	f := x.fact(ScannerGap, at)
	f.Duration, _, _ = intAt(b, i)
	f.Timeout, _ = number(window(x.s, at, 80), "setto")
}

func readStuck(x *extraction, at int) {
	w := window(x.s, at, 600)
	f := x.fact(Stuck, at)
	f.Class, _ = text(w, "rit=", ",", 40)
	f.Server, _ = findServer(w, "location=")
	f.Table, _ = text(w, "table=", ",", 200)
	f.Encoded, _ = text(w, "region=", ",;)", 32)
}

func readFailedOpen(x *extraction, at int) {
	if strings.Contains(before(x.s, at, 200), "STUCKRegion") {
		return
	}
	f := x.fact(Stuck, at)
	f.Class = "FAILED_OPEN"
	f.Server, _ = findServer(window(x.s, at, 300), "server=")
}

func readCoprocessor(x *extraction, at int) {
	w := window(x.s, at, 400)
	i := strings.Index(w, "threw")
	if i <= 0 {
		return
	}
	name := w[:i]
	if !strings.Contains(name, ".") || len(name) > 250 {
		return
	}
	f := x.fact(CoprocessorFault, at)
	f.Class = name
	f.Path = cut(w[i+5:], 200)
}

func readClientGone(x *extraction, at int) {
	for i := range x.out { // two lines of one event
		if x.out[i].Kind == ClientGone && x.out[i].Addr != "" {
			return
		}
	}
	f := x.fact(ClientGone, at)
	w := window(x.s, at-20, 500)
	f.Method, _ = text(w, "methodName:", "s", 60)
	if i := strings.Index(w, "methodName:"); i >= 0 {
		m := w[i+len("methodName:"):]
		if j := strings.Index(m, "size:"); j >= 0 {
			f.Method = m[:j]
		}
	}
	if i := strings.Index(w, "connection:"); i >= 0 {
		srv, addr, _ := endpoint(w, i+len("connection:"))
		f.Addr = addr
		if addr == "" {
			f.Addr = srv.Host
		}
	}
}

func readSlow(x *extraction, at int) {
	w := window(x.s, at, 3000)
	f := x.fact(SlowResponse, at)
	f.Duration, _ = number(w, "\"processingtimems\":")
	f.Wait, _ = number(w, "\"queuetimems\":")
	f.Method, _ = text(w, "\"method\":\"", "\"", 60)
	f.Addr, _ = text(w, "\"client\":\"", "\":", 60)
}

func readThrift(x *extraction, at int) {
	w := window(x.s, at, 300)
	i := strings.IndexAny(w, "'\"")
	if i < 0 {
		return
	}
	f := x.fact(ThriftConnect, at)
	f.Server.Host = w[:i]
	rest := strings.TrimLeft(w[i:], "'\",")
	rest = strings.TrimPrefix(rest, "port=")
	port, _, _ := intAt(rest, 0)
	f.Server.Port = int(min(port, 65535))
	if f.Server.Port == 0 {
		f.Server.Port = 9090
	}
}

// readOutputError reads the form before 1.0: "IPC Server Responder, call
// multi(...) from 192.0.2.1:5: output error".
func readOutputError(x *extraction, at int) {
	b := before(x.s, at, 600)
	if !strings.Contains(b, "IPCServer") && !strings.Contains(b, "RpcServer") && !strings.Contains(b, "rpcserver") {
		return
	}
	for i := range x.out {
		if x.out[i].Kind == ClientGone {
			return
		}
	}
	f := x.fact(ClientGone, at)
	if i := strings.LastIndex(b, "from"); i >= 0 {
		srv, addr, _ := endpoint(b, i+4)
		f.Addr = orUnknown(addr, srv.Host)
	}
	if i := strings.LastIndex(b, "call"); i >= 0 {
		m := b[i+4:]
		if j := strings.IndexByte(m, '('); j > 0 && j < 40 {
			f.Method = m[:j]
		}
	}
}

// readHolding reads "hbase:namespace,,... is NOT online; state={... state=OPEN,
// ..., server=...}; Master startup cannot progress, in holding-pattern ...".
func readHolding(x *extraction, at int) {
	b := before(x.s, at, 900)
	i := strings.LastIndex(b, "isNOTonline")
	if i < 0 {
		x.fact(MasterBusy, at)
		return
	}
	f := x.fact(Stuck, at)
	region := b[:i]
	for _, k := range [...]string{"HMaster:", ":hbase:"} {
		if j := strings.LastIndex(region, k); j >= 0 {
			region = region[j+len(k):]
			if k == ":hbase:" {
				region = "hbase:" + region
			}
			break
		}
	}
	f.Region, f.Encoded = cut(region, 200), encoded(region)
	f.Table, _, _ = regionParts(region)
	f.Class, _ = text(b[i:], "state=", ",;}", 30)
	if strings.HasPrefix(f.Class, "{") {
		if j := strings.LastIndex(b[i:], "state="); j >= 0 {
			f.Class, _ = text(b[i+j:], "state=", ",;}", 30)
		}
	}
	f.Server, _ = findServer(b[i:], "server=")
	x.fact(MasterBusy, at)
}
