package registry

import (
	"fmt"
	"slices"
	"strings"
)

// Use says what becomes of a property of hbase-site.xml.
type Use uint8

const (
	// Places properties say where the cluster is.
	Places Use = iota
	// Sets properties set an option of ours.
	Sets
	// Ignored properties are known and have no effect; Note says why.
	Ignored
	// Refused properties are an error if they ask for what is not there.
	Refused
)

// String names the use.
func (u Use) String() string {
	switch u {
	case Places:
		return "address"
	case Sets:
		return "option"
	case Ignored:
		return "ignored"
	case Refused:
		return "refused"
	}
	return "invalid"
}

// Property is one property of Java's client.
type Property struct {
	Key string
	Use Use
	// Option is the option it sets.
	Option string
	// Unit of the value, as Java writes it.
	Unit string
	// Note says how the value is converted, or why there is no effect.
	Note string

	// refuse gives the reason why a value is refused, "" if it is not.
	refuse func(value string) string
}

// unit of durations in hbase-site.xml.
const (
	unitMillis = "ms, or with a unit: 10s"
	unitMicros = "µs"
)

const (
	notePause = "pauses follow the reason for the failure, with jitter, and not one table for all; `holdfast retry schedule` shows both side by side"
	noteTasks = "requests share one connection per server; the bound is max-in-flight, which busy answers lower by themselves"
	noteKerb  = "only of use with Kerberos, which is refused"
	noteMeta  = "hbase:meta is read within the time of the operations that wait for it, 3 s a read, by as few reads as cover them all"
	noteTCP   = "one connection per server and service, written to and read from without threads of its own"
)

// properties is the table: what every well-known key of a client's
// hbase-site.xml means here. docs/configuration.md is made from it.
func properties() []Property {
	list := []Property{
		{Key: "hbase.client.registry.impl", Use: Places, Note: "ZKConnectionRegistry (default), RpcConnectionRegistry, MasterRegistry; others are refused"},
		{Key: "hbase.zookeeper.quorum", Use: Places, Unit: "hosts", Note: "ports may be given per host; default 127.0.0.1"},
		{Key: "hbase.zookeeper.property.clientPort", Use: Places, Unit: "port", Note: "of the hosts without one; default 2181"},
		{Key: "hbase.client.zookeeper.quorum", Use: Places, Unit: "hosts", Note: "wins over hbase.zookeeper.quorum"},
		{Key: "hbase.client.zookeeper.property.clientPort", Use: Places, Unit: "port", Note: "of hbase.client.zookeeper.quorum"},
		{Key: "zookeeper.znode.parent", Use: Places, Note: "default /hbase"},
		{Key: "hbase.client.bootstrap.servers", Use: Places, Unit: "hosts", Note: "of the RPC registry"},
		{Key: "hbase.masters", Use: Places, Unit: "hosts", Note: "of the RPC registry, if there are no bootstrap servers"},
		{Key: "hbase.master.hostname", Use: Places, Unit: "host", Note: "of the RPC registry, if there are no masters either"},
		{Key: "hbase.master.port", Use: Places, Unit: "port", Note: "of the masters without one; default 16000"},

		{Key: "hbase.client.pause", Use: Ignored, Unit: unitMillis, Note: notePause},
		{Key: "hbase.client.pause.server.overloaded", Use: Ignored, Unit: unitMillis, Note: notePause},
		{Key: "hbase.client.pause.cqtbe", Use: Ignored, Unit: unitMillis, Note: notePause},
		{Key: "hbase.client.retries.number", Use: Ignored, Note: "time bounds an operation, since a number of attempts means another time for each kind of failure; max-attempts bounds their number if you must"},
		{Key: "hbase.client.retries.by.server", Use: Ignored, Note: "every item of a batch has its own pause"},
		{Key: "hbase.client.start.log.errors.counter", Use: Ignored, Note: "nothing is logged per call; errors tell the whole story"},
		{Key: "hbase.client.serverside.retries.multiplier", Use: Ignored, Note: "for clients inside servers"},

		{Key: "hbase.client.meta.operation.timeout", Use: Ignored, Unit: unitMillis, Note: noteMeta},
		{Key: "hbase.client.meta.read.rpc.timeout", Use: Ignored, Unit: unitMillis, Note: noteMeta},
		{Key: "hbase.client.meta.scanner.timeout.period", Use: Ignored, Unit: unitMillis, Note: noteMeta},
		{Key: "hbase.rpc.write.timeout", Use: Ignored, Unit: unitMillis, Note: "rpc-timeout bounds reads and writes alike"},
		{Key: "hbase.rpc.shortoperation.timeout", Use: Ignored, Unit: unitMillis, Note: "for servers"},
		{Key: "hbase.client.use.scanner.timeout.period.for.next.calls", Use: Ignored, Note: "scanner-timeout always bounds a step, with all its attempts"},
		{Key: "hbase.client.sync.wait.timeout.msec", Use: Ignored, Unit: unitMillis, Note: "the context, or the option WithProcedureTimeout, bounds the wait for a procedure"},
		{Key: "hbase.ipc.client.socket.timeout.read", Use: Ignored, Unit: unitMillis, Note: "rpc-timeout bounds a call, ping-after the silence of a server"},
		{Key: "hbase.ipc.client.socket.timeout.write", Use: Ignored, Unit: unitMillis, Note: "rpc-timeout bounds a call, ping-after the silence of a server"},
		{Key: "ipc.socket.timeout", Use: Ignored, Unit: unitMillis, Note: "of HBase 0.94; see connect-timeout"},

		{Key: "hbase.client.primaryCallTimeout.multiget", Use: Ignored, Unit: unitMicros, Note: "replica-after is for batches too"},
		{Key: "hbase.client.meta.replica.scan.timeout", Use: Ignored, Unit: unitMicros, Note: "reads of hbase:meta are not hedged; see meta-replicas"},
		{Key: "hbase.locator.meta.replicas.mode.loadbalance.selector", Use: Ignored, Note: "a replica is chosen at random; see meta-replicas"},

		{Key: "hbase.client.locate.prefetch.limit", Use: Ignored, Note: "how much is read ahead adapts: 1, 16, 128, 1000 regions"},
		{Key: "hbase.client.prefetch.limit", Use: Ignored, Note: "of HBase 0.98; how much is read ahead adapts"},
		{Key: "hbase.client.meta.max.concurrent.locate.per.table", Use: Ignored, Note: "8 reads per table and 32 per client at the most, fewer if hbase:meta is slow"},
		{Key: "hbase.meta.scanner.caching", Use: Ignored, Note: "see hbase.client.locate.prefetch.limit"},
		{Key: "hbase.client.connection.metacache.invalidate-interval.ms", Use: Ignored, Unit: unitMillis, Note: "routes unused for 10 min are forgotten"},
		{Key: "hbase.status.published", Use: Ignored, Note: "dead servers are found out by their connections"},

		{Key: "hbase.client.max.total.tasks", Use: Ignored, Note: noteTasks},
		{Key: "hbase.client.max.perserver.tasks", Use: Ignored, Note: noteTasks},
		{Key: "hbase.client.max.perregion.tasks", Use: Ignored, Note: noteTasks},
		{Key: "hbase.client.perserver.requests.threshold", Use: Ignored, Note: noteTasks},
		{Key: "hbase.client.max.submit.heapsize", Use: Ignored, Unit: "bytes", Note: "batch-bytes bounds a request"},
		{Key: "hbase.client.write.buffer.periodicflush.timeout.ms", Use: Ignored, Unit: unitMillis, Note: "MutatorOptions.FlushInterval, 1 s by default"},
		{Key: "hbase.client.write.buffer.periodicflush.timertick.ms", Use: Ignored, Unit: unitMillis, Note: "the mutator's timer is set for when it is due"},
		{Key: "hbase.client.write.buffer.maxmutations", Use: Ignored, Note: "write-buffer bounds bytes, batch-actions the mutations of a request"},
		{Key: "hbase.client.scanner.async.prefetch", Use: Ignored, Note: "Scan.Prefetch, per scan"},
		{Key: "hbase.client.nonces.enabled", Use: Ignored, Note: "increments and appends always carry nonces"},
		{Key: "hbase.client.backpressure.enabled", Use: Ignored, Note: "a busy server's bound of calls in flight is always lowered"},
		{Key: "hbase.client.statistics.backoff-policy", Use: Ignored, Note: "a busy server's bound of calls in flight is always lowered"},
		{Key: "hbase.client.fast.fail.mode.enabled", Use: Ignored, Note: "calls to a server known to be down always fail fast, within the retry loop"},
		{Key: "hbase.client.metrics.enable", Use: Ignored, Note: "hooks: packages hbaseprom and hbaseotel"},

		{Key: "hbase.client.ipc.pool.size", Use: Ignored, Note: noteTCP},
		{Key: "hbase.client.ipc.pool.type", Use: Ignored, Note: noteTCP},
		{Key: "hbase.rpc.client.impl", Use: Ignored, Note: noteTCP},
		{Key: "hbase.hconnection.threads.max", Use: Ignored, Note: noteTCP},
		{Key: "hbase.htable.threads.max", Use: Ignored, Note: noteTCP},
		{Key: "hbase.ipc.client.tcpnodelay", Use: Ignored, Note: "always on: requests are joined before they are written, not by the kernel"},
		{Key: "hbase.ipc.client.tcpkeepalive", Use: Ignored, Note: "Go's default: on"},
		{Key: "hbase.ipc.client.connect.max.retries", Use: Ignored, Note: "a failed dial is a failed attempt"},
		{Key: "hbase.ipc.client.failed.servers.expiry", Use: Ignored, Unit: unitMillis, Note: "one prober per server finds out when it is back"},
		{Key: "hbase.ipc.client.fallback-to-simple-auth-allowed", Use: Ignored, Note: noteKerb},
		{Key: "hbase.resolve.hostnames.on.failure", Use: Ignored, Note: "names are resolved at every dial"},
		{Key: "hbase.server.compactchecker.interval.multiplier", Use: Ignored, Note: "for servers"},

		{Key: "zookeeper.recovery.retry", Use: Ignored, Note: "ZooKeeper is asked again while somebody waits"},
		{Key: "zookeeper.recovery.retry.intervalmill", Use: Ignored, Unit: unitMillis, Note: "ZooKeeper is asked again while somebody waits"},
		{Key: "zookeeper.registry.async.get.timeout", Use: Ignored, Unit: unitMillis, Note: "the operation's own time bounds it"},
		{Key: "hbase.client.zookeeper.observer.mode", Use: Ignored, Note: "point hbase.client.zookeeper.quorum at the observers"},
		{Key: "zookeeper.znode.metaserver", Use: Refused, Note: "meta-region-server is asked", refuse: only("meta-region-server")},
		{Key: "hbase.zookeeper.property.maxClientCnxns", Use: Ignored, Note: "for ZooKeeper itself; this client opens one session"},

		{Key: "hadoop.security.authentication", Use: Refused, Note: "kerberos is refused", refuse: func(v string) string {
			if strings.EqualFold(v, "kerberos") {
				return "authentication with Kerberos"
			}
			return ""
		}},
		{Key: "hbase.rpc.protection", Use: Refused, Note: "authentication (default); integrity and privacy are refused, since they come with Kerberos", refuse: func(v string) string {
			for part := range strings.SplitSeq(v, ",") {
				if p := strings.TrimSpace(part); strings.EqualFold(p, "authentication") {
					return "" // one of the qualities offered will do
				}
			}
			return "protection " + v
		}},
		{Key: "hbase.client.rpc.codec", Use: Refused, Note: "KeyValueCodec and KeyValueCodecWithTags; other codecs are refused", refuse: func(v string) string {
			switch v[strings.LastIndexByte(v, '.')+1:] {
			case "KeyValueCodec", "KeyValueCodecWithTags":
				return ""
			}
			return "codec " + v
		}},
		{Key: "hbase.client.netty.tls.enabled", Use: Refused, Note: "true is refused", refuse: notTrue("TLS to region servers and masters")},
		{Key: "hbase.zookeeper.property.client.secure", Use: Refused, Note: "true is refused", refuse: notTrue("TLS to ZooKeeper")},
		{Key: "zookeeper.client.secure", Use: Refused, Note: "true is refused", refuse: notTrue("TLS to ZooKeeper")},
		{Key: "hbase.rpc.crypto.encryption.aes.enabled", Use: Refused, Note: "true is refused", refuse: notTrue("AES between client and server")},
		{Key: "hbase.client.keytab.file", Use: Ignored, Note: noteKerb},
		{Key: "hbase.client.keytab.principal", Use: Ignored, Note: noteKerb},
		{Key: "hbase.client.kerberos.principal", Use: Ignored, Note: noteKerb},
		{Key: "hbase.master.kerberos.principal", Use: Ignored, Note: noteKerb},
		{Key: "hbase.regionserver.kerberos.principal", Use: Ignored, Note: noteKerb},
	}
	for _, opt := range optionTable() {
		for i, key := range opt.keys() {
			p := Property{Key: key, Use: Sets, Option: opt.name, Unit: opt.unit(), Note: opt.doc}
			if i > 0 {
				p.Note = fmt.Sprintf("as %s, if that is not set", opt.key)
			}
			if key == "hbase.security.authentication" {
				p.Use, p.Note = Refused, "simple (default); kerberos is refused"
			}
			list = append(list, p)
		}
	}
	return list
}

// Properties lists the known properties of hbase-site.xml, sorted by key.
func Properties() []Property {
	list := properties()
	slices.SortFunc(list, func(a, b Property) int { return strings.Compare(a.Key, b.Key) })
	return list
}

func notTrue(what string) func(string) string {
	return func(v string) string {
		if strings.EqualFold(v, "true") {
			return what
		}
		return ""
	}
}

func only(value string) func(string) string {
	return func(v string) string {
		if v == value {
			return ""
		}
		return "another name than " + value
	}
}

// IgnoredProperty is a property that an hbase-site.xml sets and that has no
// effect here.
type IgnoredProperty struct {
	Key, Value string
	// Why there is no effect.
	Why string
}

// judgeSite refuses what asks for what is not there, and lists what has no
// effect.
func (p *problems) judgeSite(a *Address, get func(...string) (string, string)) {
	for _, prop := range properties() {
		if prop.Use != Ignored && prop.refuse == nil {
			continue
		}
		v, _ := get(prop.Key)
		switch {
		case v == "":
		case prop.Use == Ignored:
			a.Ignored = append(a.Ignored, IgnoredProperty{Key: prop.Key, Value: v, Why: prop.Note})
		default:
			if why := prop.refuse(v); why != "" {
				p.add("unsupported: %s (%s=%s)", why, prop.Key, v)
			}
		}
	}
}
