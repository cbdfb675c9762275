package checks

import (
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// ephemeral is the first port that systems give out at random.
const ephemeral = 32768

// randomPort says that a port is one the system picked.
func randomPort(p int) bool { return p >= ephemeral && portName(p) == "" }

// names: what cannot be resolved.
func (j *judge) names() {
	keys, groups := groupBy(j.by[Unresolved], func(f *Fact) string { return f.Server.Host })
	for _, host := range keys {
		if host == "" && len(keys) > 1 {
			continue
		}
		facts := groups[host]
		f := finding.Finding{
			ID: "NAME_UNRESOLVABLE", Severity: finding.Error, Confidence: finding.Certain, Subject: host, Count: len(facts),
			Cause: fmt.Sprintf("the client's host cannot resolve the name %s", host),
			Fix:   []string{"make the name resolve where the client runs (DNS or hosts entry for every master and region server), or let the servers register under names that do (hbase.regionserver.hostname, hbase.master.hostname)"},
			Not:   []string{"the server is slow", "the server is down: its name was never turned into an address"},
		}
		if host == "" {
			f.Subject, f.Cause = "a server", "the client's host cannot resolve a server's name"
		}
		f.Fields = map[string]string{"host": host}
		if strings.HasPrefix(host, "hbase") && len(facts) > 0 && facts[0].Server.Port == 0 && !strings.Contains(host, ".") {
			f.Notes = append(f.Notes, "a bare name without a domain: usually the name of a container or a pod")
		}
		if containerID(host) {
			f.Fields["hint"] = "12 hex digits: looks like a container id"
			f.Notes = append(f.Notes, "12 hex digits: looks like a container id; the server registered under the name its container runtime gave it")
			f.Fix = append(f.Fix, "give the container a fixed host name (docker run --hostname) and publish its ports")
		}
		if facts[0].Class == "hdfs" {
			f.Notes = append(f.Notes, "asked by the HDFS client: the name may be a nameservice of HDFS high availability, which hdfs-site.xml must define on this host's class path")
		}
		if s := facts[0].Server; s.Start > 0 {
			f.Fields["server"] = s.String()
			f.Notes = append(f.Notes, "the name stands with port and start code, so it came from ZooKeeper or hbase:meta: a server did register there")
		}
		if len(j.by[MasterGone]) > 0 {
			f.Not = append(f.Not, "the master is down: ZooKeeper holds a live address with a start code")
			f.Echoes = append(f.Echoes, finding.Echo{ID: "MASTER_NOT_RUNNING", Text: "MasterNotRunningException only wraps the resolver's error"})
		}
		if quiet(facts) && len(facts) < 3 && !j.failed() {
			f.Severity = finding.Warning
		}
		f.Evidence = evidence(facts...)
		j.add(f)
	}
}

func (j *judge) unresolved(host string) bool {
	for _, f := range j.by[Unresolved] {
		if f.Server.Host == host {
			return true
		}
	}
	return false
}

// loopback: names that lead back to the client itself.
func (j *judge) loopback() {
	var facts []*Fact
	for _, k := range []Kind{Refused, FailedServer, ConnectTimeout, CallTimedOut, Progress, AsyncBatch} {
		for _, f := range j.by[k] {
			if f.Class == "zookeeper" || f.Server.Port == 2181 || f.Server.Port == 9090 || f.Server.Port == 0 {
				continue
			}
			if k == CallTimedOut || k == Progress || k == AsyncBatch {
				if f.Server.Start == 0 || !loopback(f.Server.Host, "") || len(j.by[RPCTimeout]) > 0 {
					continue
				}
			}
			if loopback(f.Server.Host, f.Addr) {
				facts = append(facts, f)
			}
		}
	}
	if len(facts) == 0 {
		return
	}
	keys, groups := groupBy(facts, func(f *Fact) string { return f.Server.String() })
	for _, k := range keys {
		g := groups[k]
		f := finding.Finding{
			ID: "LOOPBACK_ADVERTISED", Severity: finding.Error, Subject: k, Count: len(g), Evidence: evidence(g...),
			Fields: map[string]string{"server": k},
			Fix:    []string{"let the server register under a name that other hosts can reach (hbase.regionserver.hostname, hbase.master.hostname; no 127.0.1.1 line for the host's own name in its hosts file), or map the name to its real address on the client"},
			Not:    []string{"the server is overloaded", "increase the timeout"},
		}
		if loopback(g[0].Server.Host, "") {
			f.Cause = fmt.Sprintf("the server registered as %s, so a client on another host connects to itself", g[0].Server.Host)
			f.Rivals = []finding.Rival{{ID: "PORT_UNREACHABLE", Text: "the client runs on the server's own host and the server is simply down", Separates: "whether the client runs on the same host and network namespace as HBase"}}
		} else {
			f.Cause = fmt.Sprintf("%s resolves to %s on the client, which is the client itself", g[0].Server.Host, g[0].Addr)
		}
		if quiet(g) && !j.failed() {
			f.Severity = finding.Warning
		}
		if j.sameHost() && loopback(g[0].Server.Host, "") {
			f.Severity = finding.Info
			f.Notes = append(f.Notes, "ZooKeeper is on loopback as well: client and cluster share a host, where this is how it should be; other hosts could not use this cluster")
		}
		for _, x := range g {
			if x.Kind == FailedServer {
				f.Echoes = append(f.Echoes, finding.Echo{ID: "FAILED_SERVER_LIST", Text: "FailedServerException is the client's own two-second memory of a failed connect; those attempts never touched the network"})
				break
			}
		}
		j.add(f)
	}
}

// sameHost says that the client talks to ZooKeeper on loopback, so it runs on
// the cluster's own host.
func (j *judge) sameHost() bool {
	for _, k := range []Kind{ZKEstablished, ZKOpening} {
		for _, f := range j.by[k] {
			if loopback(f.Server.Host, f.Addr) {
				return true
			}
		}
	}
	return false
}

// ports: resolved, and refused or filtered.
func (j *judge) ports() {
	var facts []*Fact
	for _, k := range []Kind{Refused, ConnectTimeout, NoRoute, FailedServer} {
		for _, f := range j.by[k] {
			if f.Class != "zookeeper" && f.Server.Port != 2181 {
				facts = append(facts, f)
			}
		}
	}
	if len(facts) == 0 {
		return
	}
	// A refusal without an address belongs to the only server named around it.
	only := map[string]*Fact{}
	for _, f := range facts {
		if f.Server.Known() {
			only[f.Server.String()] = f
		}
	}
	for _, k := range []Kind{CallTimedOut, Progress, AsyncBatch} {
		for _, f := range j.by[k] {
			if f.Server.Known() && len(only) == 0 {
				only[f.Server.String()] = f
			}
		}
	}
	for _, f := range facts {
		if !f.Server.Known() && len(only) == 1 {
			for _, o := range only {
				f.Server, f.Addr = o.Server, o.Addr
			}
		}
	}
	keys, groups := groupBy(facts, func(f *Fact) string {
		if f.Server.Port == 0 && f.Server.Host == "" {
			return ""
		}
		return f.Server.String()
	})
	for _, k := range keys {
		g := groups[k]
		if k == "" && (len(keys) > 1 || len(j.by[Unresolved]) > 0) {
			continue
		}
		var refused, filtered, unreachable, echoes int
		for _, f := range g {
			switch f.Kind {
			case Refused:
				refused++
			case ConnectTimeout:
				filtered++
			case NoRoute:
				unreachable++
			case FailedServer:
				echoes++
			}
		}
		srv := g[0].Server
		if refused+filtered+unreachable == 0 && (loopback(srv.Host, g[0].Addr) && !j.sameHost() || len(j.by[CoprocessorFault]) > 0) {
			continue // only the echo, and its cause is named elsewhere
		}
		if refused+filtered+unreachable == 0 && j.unresolved(srv.Host) {
			continue
		}
		f := finding.Finding{ID: "PORT_UNREACHABLE", Severity: finding.Error, Subject: k, Count: len(g), Fields: map[string]string{"server": k}}
		if k == "" {
			f.Subject = "a server"
		}
		name := portName(srv.Port)
		if name != "" {
			f.Fields["service"] = name
		}
		where := f.Subject
		if g[0].Addr != "" && g[0].Addr != srv.Host {
			where += " (" + g[0].Addr + ")"
			f.Fields["address"] = g[0].Addr
		}
		switch {
		case refused > 0:
			f.Confidence = finding.Certain
			f.Cause = fmt.Sprintf("nothing listens on %s: the connection was refused", where)
			f.Fix = []string{"start the server, or publish and open the port it registered under; compare with what the server itself listens on"}
		case unreachable > 0:
			f.Confidence = finding.Certain
			f.Cause = fmt.Sprintf("there is no route from the client to %s", where)
			f.Fix = []string{"repair routing or firewall between client and server; all region servers must be reachable, not only ZooKeeper and the master"}
		case filtered > 0:
			f.Cause = fmt.Sprintf("connecting to %s got no answer: packets are dropped", where)
			f.Fix = []string{"open the port between client and every region server (security group, firewall), or find out whether the host is off"}
		default:
			f.Confidence = finding.Likely
			f.Cause = fmt.Sprintf("connecting to %s failed just before; FailedServerException is only its echo", where)
			f.Fix = []string{"find the first connect error in the lines before: refused, timed out or unresolved"}
		}
		f.Not = []string{"the server is slow", "increase the timeout"}
		if echoes > 0 {
			f.Numbers = append(f.Numbers, num("answered_locally", int64(echoes), "attempts", fmt.Sprintf("%d of the %d failures seen were answered from the local failed-server list (2 s); they never touched the network", echoes, len(g))))
			f.Echoes = append(f.Echoes, finding.Echo{ID: "FAILED_SERVER_LIST", Text: fmt.Sprintf("%d of %d failures were answered from the local failed-server list (2 s), they never touched the network", echoes, len(g))})
		}
		if randomPort(srv.Port) {
			f.Notes = append(f.Notes, fmt.Sprintf("port %d is from the range that systems give out at random: the server picks a new one at each start, so it cannot be published; set hbase.regionserver.port", srv.Port))
		}
		if containerID(srv.Host) {
			f.Notes = append(f.Notes, "the name is 12 hex digits: looks like a container id")
		}
		if srv.Port == 9090 || srv.Port == 9091 {
			f.Notes = append(f.Notes, "9090 is the Thrift server, a process of its own: start it with `hbase thrift start`")
		}
		if quiet(g) && !j.failed() {
			f.Severity = finding.Warning
			f.Notes = append(f.Notes, "all lines are retries that their writer logged as information; it is a fault only if they go on")
		}
		f.Evidence = evidence(g...)
		j.add(f)
	}
}

// knownPorts are the ports that get mixed up.
func portName(p int) string {
	switch p {
	case 2181:
		return "ZooKeeper"
	case 16000, 60000:
		return "HMaster RPC"
	case 16010, 60010:
		return "HMaster web UI"
	case 16020, 60020:
		return "region server RPC"
	case 16030, 60030:
		return "region server web UI"
	case 9090:
		return "Thrift"
	case 9095:
		return "Thrift web UI"
	case 8080, 8085:
		return "REST"
	case 8020, 9000:
		return "HDFS NameNode RPC"
	case 50070, 9870:
		return "HDFS web UI"
	}
	return ""
}

// wrongPorts: right host, port of another service.
func (j *judge) wrongPorts() {
	report := func(srv, port, want, wantPort string, facts []*Fact) {
		f := finding.Finding{
			ID: "WRONG_PORT_CLASS", Severity: finding.Error, Confidence: finding.Likely, Subject: srv, Count: len(facts), Evidence: evidence(facts...),
			Fields: map[string]string{"port": port},
		}
		p := atoi(port)
		f.Cause = fmt.Sprintf("port %s is that of the %s, and a %s client was pointed at it", port, portName(int(p)), want)
		f.Fix = []string{fmt.Sprintf("use the %s port, %s by default", want, wantPort)}
		f.Not = []string{"one node is dead: every host of the list fails alike", "raise retries or timeouts"}
		f.Fields["service"] = portName(int(p))
		j.add(f)
	}
	var zooQuorums []*Fact
	seen := map[string]bool{}
	for _, k := range []Kind{ZKLoss, ZKQuorum, ZKConnError, ZKOpening, Refused, ConnectTimeout} {
		for _, f := range j.by[k] {
			if (k == Refused || k == ConnectTimeout) && f.Class != "zookeeper" {
				continue
			}
			ports := portsOf(f.Quorum)
			if f.Server.Port != 0 {
				ports = append(ports, f.Server.Port)
			}
			for _, p := range ports {
				if n := portName(p); n != "" && p != 2181 {
					zooQuorums = append(zooQuorums, f)
					key := fmt.Sprint(p)
					if !seen[key] {
						seen[key] = true
					}
				}
			}
		}
	}
	for key := range seen {
		subject := ":" + key
		for _, f := range zooQuorums {
			if strings.Contains(f.Quorum, ":"+key) {
				subject = f.Quorum
				break
			}
		}
		report(subject, key, "ZooKeeper", "2181", zooQuorums)
	}
	for _, f := range j.by[ThriftConnect] {
		if n := portName(f.Server.Port); n != "" && n != "Thrift" {
			report(f.Server.String(), fmt.Sprint(f.Server.Port), "Thrift", "9090", []*Fact{f})
		}
	}
	if p, ok := j.get("hbase.zookeeper.property.clientPort"); ok {
		if n := portName(int(p)); n != "" && p != 2181 {
			j.add(finding.Finding{ID: "WRONG_PORT_CLASS", Severity: finding.Error, Subject: "hbase.zookeeper.property.clientPort", Cause: fmt.Sprintf("hbase.zookeeper.property.clientPort = %d is the port of the %s", p, n), Fix: []string{"2181 is ZooKeeper's default port"}, Evidence: j.settingEvidence("hbase.zookeeper.property.clientPort")})
		}
	}
}

func atoi(s string) int64 { v, _, _ := intAt(s, 0); return v }

func portsOf(quorum string) []int {
	var out []int
	for _, h := range strings.Split(quorum, ",") {
		if i := strings.LastIndexByte(h, ':'); i >= 0 {
			if p, _, ok := intAt(h, i+1); ok && p < 65536 {
				out = append(out, int(p))
			}
		}
	}
	return out
}

// kerberos: whose ticket, and which of the ways to lack it.
func (j *judge) kerberos() {
	one := func(k Kind, id, cause string, fix ...string) {
		facts := j.by[k]
		if len(facts) == 0 || j.has(id) {
			return
		}
		layer := ""
		for _, f := range facts {
			if f.Class != "" {
				layer = f.Class
				break
			}
		}
		f := finding.Finding{ID: id, Severity: finding.Error, Confidence: finding.Likely, Subject: layer, Cause: cause, Fix: fix, Count: len(facts), Evidence: evidence(facts...),
			Not: []string{"the password or keytab is wrong: nothing here says so"}, Fields: map[string]string{"layer": layer}}
		if layer == "" {
			f.Subject = "layer not shown"
			f.Notes = append(f.Notes, "HDFS, Thrift and HBase print the same text; the stack frames below it tell which one: org.apache.hadoop.hbase.security is HBase RPC, org.apache.hadoop.ipc.Client is HDFS or YARN, TSasl is Thrift")
		} else {
			f.Notes = append(f.Notes, "decided by the stack frames: this is "+layer)
		}
		j.add(f)
	}
	one(KerberosPrincipal, "KERBEROS_WRONG_PRINCIPAL", "the service principal that the client asks for, or the keytab behind it, is not the server's",
		"compare hbase.master.kerberos.principal and hbase.regionserver.kerberos.principal of the client with the servers'", "check that forward and reverse DNS of the server give the host name in its principal (_HOST)")
	one(KerberosClock, "KERBEROS_CLOCK_SKEW", "the clocks of client, server and KDC differ by more than Kerberos allows (5 minutes)", "synchronise the clocks (NTP, chrony)")
	if len(j.by[KerberosRelogin]) > 0 && (len(j.by[KerberosRelogin]) > 1 || len(j.by[KerberosNoTGT]) > 0) {
		for _, f := range j.by[KerberosRelogin] {
			if strings.Contains(f.Text, "re-login") {
				one(KerberosRelogin, "KERBEROS_RELOGIN_LOOP", "the process logs in again and again without getting a ticket", "log in from a keytab (UserGroupInformation.loginUserFromKeytab) in the user context that opens the connection, and renew it", "check that the ticket cache is not replaced by kinit of somebody else")
				break
			}
		}
	}
	if !j.has("KERBEROS_RELOGIN_LOOP") && !j.has("KERBEROS_WRONG_PRINCIPAL") && !j.has("KERBEROS_CLOCK_SKEW") {
		one(KerberosNoTGT, "KERBEROS_NO_TGT", "the process had no Kerberos ticket when it opened the connection", "log in from a keytab before the connection is made, in the user context (doAs) that makes it", "in cluster mode ship keytab and principal to the workers: a ticket on the submitting host does not travel")
	}
}

// coprocessor: a coprocessor that stops region servers.
func (j *judge) coprocessor() {
	keys, groups := groupBy(j.by[CoprocessorFault], func(f *Fact) string { return f.Class })
	for _, class := range keys {
		g := groups[class]
		short := class[strings.LastIndexByte(class, '.')+1:]
		f := finding.Finding{
			ID: "COPROCESSOR_ABORT", Severity: finding.Critical, Confidence: finding.Likely, Subject: class, Count: len(g), Evidence: evidence(g...),
			Cause:  fmt.Sprintf("the coprocessor %s threw while it was loaded or called, and hbase.coprocessor.abortonerror (default true) stops the server process for that", short),
			Fix:    []string{"make the coprocessor's jar and the file systems it uses readable by the region servers", "to get servers up: hbase.coprocessor.abortonerror=false, or hbase.coprocessor.user.enabled=false, then unset the table's coprocessor attribute"},
			Fields: map[string]string{"class": short, "threw": cut(g[0].Path, 160)},
			Not:    []string{"the network is at fault: refused connections come after the process is gone"},
			Notes:  []string{"the server cannot restart for long while a table that names this coprocessor is assigned to it; the region then takes down the next server"},
		}
		if len(j.by[FailedServer])+len(j.by[Refused]) > 0 {
			f.Echoes = append(f.Echoes, finding.Echo{ID: "PORT_UNREACHABLE", Text: "refused connections and FailedServerException of clients follow from the stopped server"})
		}
		j.add(f)
	}
}
