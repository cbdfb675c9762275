package zkserver

import (
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Version is what the server says it is; clients that look at versions see the protocol level of ZooKeeper 3.8.
const Version = "3.8.4-holdfast"

const versionLine = Version + ", built on 2024-02-12 22:16 UTC"

// words are the four-letter words and who answers them. gtmk and stmk, the trace mask, and those of observers are no use here.
var words = map[string]func(*Server, *conn, Fault) string{
	"ruok": func(*Server, *conn, Fault) string { return "imok" },
	"isro": func(_ *Server, _ *conn, f Fault) string {
		if f.Mode == ReadOnly {
			return "ro"
		}
		return "rw"
	},
	"srvr": (*Server).srvr,
	"stat": (*Server).wordStat,
	"cons": func(s *Server, c *conn, _ Fault) string { return s.consLines(c, false) + "\n" },
	"mntr": (*Server).mntr,
	"conf": (*Server).conf,
	"dump": func(s *Server, c *conn, _ Fault) string { return s.dump(c) },
	"envi": func(*Server, *conn, Fault) string { return environment() },
	"wchs": func(s *Server, _ *conn, _ Fault) string {
		conns, paths, total := s.watches.dataCounts()
		return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", conns, paths, total)
	},
	"wchc": func(s *Server, _ *conn, _ Fault) string { return s.watches.byConn() },
	"wchp": func(s *Server, _ *conn, _ Fault) string { return s.watches.bySession() },
	"dirs": func(*Server, *conn, Fault) string { return "datadir_size: 0\nlogdir_size: 0\n" },
	"srst": func(s *Server, _ *conn, _ Fault) string { s.stats = stats{}; return "Server stats reset.\n" },
	"crst": func(s *Server, _ *conn, _ Fault) string {
		for c := range s.conns {
			c.received, c.sentCount = 0, 0
		}
		return "Connection stats reset.\n"
	},
}

// notServing is what a server without a quorum says to most words.
const notServing = "This ZooKeeper instance is not currently serving requests\n"

// word answers a four-letter word and reports whether there was one. The answer is the whole conversation.
func (c *conn) word(w string, f Fault) bool {
	answer := words[w]
	if answer == nil {
		return false
	}
	text := notServing
	switch {
	case w == "isro" && f.Mode == Electing:
		text = "null"
	case f.Mode != Electing || w == "ruok" || w == "envi" || w == "conf":
		c.s.mu.Lock()
		c.received++
		c.s.stats.received++
		text = answer(c.s, c, f)
		c.s.stats.sent++
		c.s.mu.Unlock()
	}
	c.send([]byte(text))
	return true
}

// environment is what a Java process would say of itself, as far as it makes sense here.
func environment() string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, l := range [][2]string{
		{"zookeeper.version", versionLine}, {"host.name", host}, {"java.version", "none: " + runtime.Version()}, {"java.vendor", "none"}, {"java.home", ""},
		{"java.class.path", ""}, {"java.library.path", ""}, {"java.io.tmpdir", os.TempDir()}, {"java.compiler", "<NA>"},
		{"os.name", runtime.GOOS}, {"os.arch", runtime.GOARCH}, {"os.version", ""}, {"user.name", ""}, {"user.home", ""}, {"user.dir", ""},
		{"os.memory.free", mib(m.Sys - m.HeapInuse)}, {"os.memory.max", mib(m.Sys)}, {"os.memory.total", mib(m.Sys)},
	} {
		fmt.Fprintf(&b, "%s=%s\n", l[0], l[1])
	}
	return b.String()
}

func mib(n uint64) string { return fmt.Sprintf("%dMB", n>>20) }

func (s *Server) modeOf(c *conn, f Fault) string {
	switch {
	case f.Mode == ReadOnly:
		return "read-only"
	case len(s.members) == 1:
		return "standalone"
	case c.m.index == s.leader:
		return "leader"
	}
	return "follower"
}

func (s *Server) srvrTail(c *conn, f Fault) string {
	st := s.stats
	avg := 0.0
	if st.latencyCount > 0 {
		avg = ms(st.latencySum) / float64(st.latencyCount)
	}
	return fmt.Sprintf("Latency min/avg/max: %d/%s/%d\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\nZxid: %s\nMode: %s\nNode count: %d\n",
		st.latencyMin.Milliseconds(), average(avg), st.latencyMax.Milliseconds(), st.received, st.sent, len(s.conns), hexZxid(s.zxid), s.modeOf(c, f), s.nodeCount())
}

// nodeCount counts as ZooKeeper does, whose root is in its table under two names.
func (s *Server) nodeCount() int { return len(s.nodes) + 1 }

// shortName is what cons calls an operation.
func shortName(op jute.OpCode) string {
	if name := shortNames[op]; name != "" {
		return name
	}
	return "NA"
}

var shortNames = map[jute.OpCode]string{
	jute.OpPing: "PING", jute.OpCreateSession: "SESS", jute.OpMulti: "MULT", jute.OpMultiRead: "MLTR", jute.OpCreate: "CREA", jute.OpCreate2: "CREA",
	jute.OpCreateContainer: "CREA", jute.OpCreateTTL: "CREA", jute.OpDelete: "DELE", jute.OpDeleteContainer: "DELE", jute.OpSetData: "SETD",
	jute.OpReconfig: "RECO", jute.OpSetACL: "SETA", jute.OpCloseSession: "CLOS", jute.OpSync: "SYNC", jute.OpCheck: "CHEC", jute.OpExists: "EXIS",
	jute.OpGetData: "GETD", jute.OpSetWatches: "SETW", jute.OpSetWatches2: "STW2", jute.OpAddWatch: "ADDW", jute.OpGetACL: "GETA",
	jute.OpGetChildren: "GETC", jute.OpGetChildren2: "GETC", jute.OpGetAllChildrenNumber: "GETACN", jute.OpCheckWatches: "CHKW",
	jute.OpRemoveWatches: "REMW", jute.OpWhoAmI: "HOMI", jute.OpGetEphemerals: "GETE",
}

// average prints a mean as Java does: rounded to four digits, with one at least.
func average(v float64) string {
	text := strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s *Server) srvr(c *conn, f Fault) string {
	return "Zookeeper version: " + versionLine + "\n" + s.srvrTail(c, f)
}

func (s *Server) wordStat(c *conn, f Fault) string {
	return "Zookeeper version: " + versionLine + "\nClients:\n" + s.consLines(c, true) + "\n" + s.srvrTail(c, f)
}

func (s *Server) consLines(self *conn, short bool) string {
	var lines []string
	for c := range s.conns {
		if c.m != self.m {
			continue
		}
		line := fmt.Sprintf(" /%s[%d](queued=0,recved=%d,sent=%d", c.remote, boolInt(c.sess != nil), c.received, c.sentCount)
		if c.sess != nil && !short {
			line += fmt.Sprintf(",sid=%s,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=%s,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
				hexZxid(c.sess.id), shortName(c.lastOp), c.established.UnixMilli(), c.sess.timeout.Milliseconds(), uint32(c.lastXid), hexZxid(c.lastZxid),
				s.elapsed(s.cfg.Now()))
		}
		lines = append(lines, line+")\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *Server) mntr(c *conn, f Fault) string {
	st := s.stats
	avg := 0.0
	if st.latencyCount > 0 {
		avg = ms(st.latencySum) / float64(st.latencyCount)
	}
	ephemerals := 0
	for _, sess := range s.sessions {
		ephemerals += len(sess.ephemerals)
	}
	var b strings.Builder
	line := func(k string, v any) { fmt.Fprintf(&b, "zk_%s\t%v\n", k, v) }
	line("version", versionLine)
	line("server_state", s.modeOf(c, f))
	line("ephemerals_count", ephemerals)
	line("num_alive_connections", len(s.conns))
	line("avg_latency", average(avg))
	line("min_latency", st.latencyMin.Milliseconds())
	line("max_latency", st.latencyMax.Milliseconds())
	line("outstanding_requests", 0)
	line("znode_count", s.nodeCount())
	line("global_sessions", len(s.sessions))
	line("local_sessions", 0)
	line("packets_received", st.received)
	line("packets_sent", st.sent)
	line("watch_count", s.watches.count)
	line("approximate_data_size", s.bytes)
	line("uptime", s.cfg.Now().Sub(s.started).Milliseconds())
	line("auth_failed_count", st.authFailed)
	line("connection_rejected", st.rejected)
	line("stale_sessions_expired", st.expired)
	line("throttled_ops", 0)
	if len(s.members) > 1 && c.m.index == s.leader {
		line("learners", len(s.members)-1)
		line("synced_followers", len(s.members)-1)
	}
	return b.String()
}

func (s *Server) conf(c *conn, _ Fault) string {
	_, port, err := net.SplitHostPort(c.m.Addr())
	if err != nil {
		port = c.m.Addr()
	}
	return fmt.Sprintf("clientPort=%s\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\ntickTime=%d\nmaxClientCnxns=%d\n"+
		"minSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=%d\n",
		port, s.cfg.TickTime.Milliseconds(), s.cfg.MaxConns, s.minSession.Milliseconds(), s.maxSession.Milliseconds(), c.m.index+1)
}

// dump answers "when will my session die": the expiry buckets, who owns which ephemerals, and the member's connections.
func (s *Server) dump(self *conn) string {
	var b strings.Builder
	now := s.cfg.Now()
	expireAt := func(n int, at int64) {
		when := now.Add(time.Duration(at-s.elapsed(now)) * time.Millisecond)
		fmt.Fprintf(&b, "%d expire at %s:\n", n, when.UTC().Format("Mon Jan 02 15:04:05 MST 2006"))
	}
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(s.buckets), len(s.sessions))
	for _, at := range slices.Sorted(maps.Keys(s.buckets)) {
		expireAt(len(s.buckets[at]), at)
		var ids []int64
		for sess := range s.buckets[at] {
			ids = append(ids, sess.id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			fmt.Fprintf(&b, "\t%s\n", hexZxid(id))
		}
	}
	b.WriteString("ephemeral nodes dump:\n")
	owners := slices.DeleteFunc(s.sessionList(), func(sess *session) bool { return len(sess.ephemerals) == 0 })
	fmt.Fprintf(&b, "Sessions with Ephemerals (%d):\n", len(owners))
	for _, sess := range owners {
		fmt.Fprintf(&b, "%s:\n", hexZxid(sess.id))
		for _, p := range slices.Sorted(maps.Keys(sess.ephemerals)) {
			fmt.Fprintf(&b, "\t%s\n", p)
		}
	}
	// Connections expire with their sessions, those without one with the handshake's time.
	byTime, n := map[int64][]string{}, 0
	for c := range s.conns {
		if c.m != self.m {
			continue
		}
		at, id := s.bucketOf(s.elapsed(c.established.Add(s.cfg.HandshakeTimeout))), int64(0)
		if c.sess != nil {
			at, id = c.sess.bucket, c.sess.id
		}
		byTime[at] = append(byTime[at], fmt.Sprintf("\tip: /%s sessionId: %s\n", c.remote, hexZxid(id)))
		n++
	}
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(byTime), n)
	for _, at := range slices.Sorted(maps.Keys(byTime)) {
		expireAt(len(byTime[at]), at)
		slices.Sort(byTime[at])
		b.WriteString(strings.Join(byTime[at], ""))
	}
	return b.String()
}
