package checks

import "strings"

// Properties that are read wherever they stand: in XML, as key=value, in prose.
var propertyNames = []string{
	"hbase.rpc.timeout", "hbase.rpc.read.timeout", "hbase.rpc.write.timeout", "hbase.client.operation.timeout", "hbase.client.meta.operation.timeout",
	"hbase.client.retries.number", "hbase.client.pause", "hbase.client.scanner.timeout.period", "hbase.client.scanner.caching",
	"hbase.regionserver.lease.period", "zookeeper.session.timeout", "zookeeper.recovery.retry", "hbase.zookeeper.property.maxSessionTimeout",
	"hbase.zookeeper.property.tickTime", "hbase.zookeeper.property.clientPort", "hbase.zookeeper.property.maxClientCnxns",
	"kylin.storage.hbase.coprocessor-timeout-seconds", "hbase.regionserver.handler.count", "hbase.ipc.server.max.callqueue.size",
}

func settingWords() []word {
	var words []word
	for _, p := range propertyNames {
		words = append(words, word{p, readSetting(p)})
	}
	for _, p := range [...]string{"tickTime", "minSessionTimeout", "maxSessionTimeout", "maxClientCnxns"} {
		words = append(words, word{p, readZooSetting(p)})
	}
	for _, p := range [...]string{"zookeeper.znode.parent", "hbase.zookeeper.quorum"} {
		words = append(words, word{p, readTextSetting(p)})
	}
	return append(words,
		word{"hbase-client-", readJar}, word{"HBase0.9", readRelease(3)}, word{"HBase1.", readRelease(2)}, word{"HBase2.", readRelease(2)},
		word{"HBasev1.", readRelease(2)}, word{"HBasev2.", readRelease(2)},
		word{"HConnectionManager$HConnectionImplementation", hint("0.98")},
		word{"client.ConnectionManager$HConnectionImplementation", hint("1.x")},
		word{"client.ConnectionImplementation", hint("2.x")},
		word{"RpcRetryingCallerImpl", hint("2.x")},
		word{"maxAttempts=", hint("2.x")},
		word{"ReadOnlyZKClient", hint("2.x")},
		word{"RpcRetryingCallerWithReadReplicas", hint("1.x+")},
		word{"HBaseServer$Responder", hint("0.94")},
		word{"-ROOT-,,0", hint("0.94")},
	)
}

func hint(release string) func(*extraction, int) {
	return func(x *extraction, at int) {
		f := x.fact(Hint, at)
		f.Class = release
	}
}

func readRelease(back int) func(*extraction, int) {
	return func(x *extraction, at int) {
		v := window(x.s, at-back, 10)
		j := 0
		for j < len(v) && (isDigit(v[j]) || v[j] == '.') {
			j++
		}
		f := x.fact(Hint, at)
		f.Class = strings.TrimRight(v[:j], ".")
		f.Path = "named"
	}
}

func readJar(x *extraction, at int) {
	v := window(x.s, at, 12)
	j := 0
	for j < len(v) && (isDigit(v[j]) || v[j] == '.') {
		j++
	}
	if r := strings.TrimRight(v[:j], "."); strings.Contains(r, ".") {
		f := x.fact(Hint, at)
		f.Class, f.Path = r, "named"
	}
}

// commented says that offset at lies inside an XML comment or behind a hash.
func commented(x *extraction, at int) bool {
	b := before(x.s, at, 8<<10)
	if o := strings.LastIndex(b, "<!--"); o >= 0 && !strings.Contains(b[o:], "-->") {
		return true
	}
	_, line := x.e.LineAt(at - 1)
	l := strings.TrimSpace(string(line))
	return strings.HasPrefix(l, "#")
}

// valueAfter is the value that follows a property's name.
func valueAfter(w string) (string, bool) {
	switch {
	case strings.HasPrefix(w, "</name><value>"):
		return text(w, "</name><value>", "<", 300)
	case strings.HasPrefix(w, "="):
		v := w[1:]
		if j := strings.IndexAny(v, "<,;)]}'\""); j >= 0 {
			v = v[:j]
		}
		return v, true
	case strings.HasPrefix(w, ":"), strings.HasPrefix(w, "'"), strings.HasPrefix(w, "\""):
		v := strings.TrimLeft(w, ":'\"=,")
		if j := strings.IndexAny(v, "<,;)]}'\""); j >= 0 {
			v = v[:j]
		}
		return v, true
	}
	return "", false
}

func readSetting(name string) func(*extraction, int) {
	return func(x *extraction, at int) {
		v, ok := valueAfter(window(x.s, at, 320))
		if !ok || commented(x, at) {
			return
		}
		n, next, ok := intAt(v, 0)
		if !ok {
			return
		}
		_ = next
		f := x.fact(Setting, at)
		f.Class, f.Limit, f.Path = name, n, digits(v)
	}
}

func digits(v string) string {
	j := 0
	for j < len(v) && j < 18 && isDigit(v[j]) {
		j++
	}
	return v[:j]
}

// readZooSetting also reads what a server logs: "tickTime set to 3000",
// "Created server with tickTime 2000 minSessionTimeout 4000 ...".
func readZooSetting(name string) func(*extraction, int) {
	return func(x *extraction, at int) {
		w := window(x.s, at, 40)
		logged := false
		switch {
		case strings.HasPrefix(w, "="):
			w = w[1:]
		case strings.HasPrefix(w, "setto"):
			w, logged = w[5:], true
		case strings.HasPrefix(w, "</name><value>"):
			w = w[len("</name><value>"):]
		case w != "" && isDigit(w[0]) && (strings.Contains(x.s, "Createdserverwith") || strings.Contains(x.s, "tickTime2000") || strings.Contains(x.s, "ZooKeeperServer")):
			logged = true
		default:
			return
		}
		if n, _, ok := intAt(w, 0); ok && !commented(x, at) && !strings.HasSuffix(before(x.s, at-len(name), 30), "zookeeper.property.") {
			f := x.fact(Setting, at)
			f.Class, f.Limit, f.Path = name, n, digits(w)
			if logged {
				f.Method = "logged"
			}
		}
	}
}

func readTextSetting(name string) func(*extraction, int) {
	return func(x *extraction, at int) {
		w := window(x.s, at, 320)
		if !strings.HasPrefix(w, "</name>") || commented(x, at) {
			return
		}
		if v, ok := valueAfter(w); ok {
			f := x.fact(Setting, at)
			f.Class, f.Path = name, cut(v, 200)
		}
	}
}
