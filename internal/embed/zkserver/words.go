package zkserver

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// Version is what the server says it is; clients that look at versions see the protocol level of ZooKeeper 3.8.
const Version = "3.8.4-holdfast"

const builtOn = "2024-02-12 22:16 UTC"

// word answers a four-letter word and reports whether there was one. The answer is the whole conversation.
func (c *conn) word(w string, f Fault) bool {
	s := c.s
	answer := s.wordTable()[w]
	if answer == nil {
		return false
	}
	var text string
	switch {
	case w == "ruok":
		text = "imok"
	case w == "isro" && f.Mode == ReadOnly:
		text = "ro"
	case w == "isro" && f.Mode == Electing:
		text = "null"
	case f.Mode == Electing && w != "envi" && w != "conf":
		text = "This ZooKeeper instance is not currently serving requests\n"
	default:
		s.mu.Lock()
		text = answer(c, f)
		s.mu.Unlock()
	}
	c.send([]byte(text))
	return true
}

func (s *Server) wordTable() map[string]func(*conn, Fault) string {
	return map[string]func(*conn, Fault) string{
		"ruok": func(*conn, Fault) string { return "imok" },
		"isro": func(*conn, Fault) string { return "rw" },
		"srvr": s.srvr,
		"stat": s.wordStat,
		"cons": func(c *conn, _ Fault) string { return s.consLines(c, false) + "\n" },
		"mntr": s.mntr,
		"conf": s.conf,
		"dump": func(*conn, Fault) string { return s.dump() },
		"envi": func(*conn, Fault) string {
			return "Environment:\nzookeeper.version=" + Version + ", built on " + builtOn + "\n"
		},
		"wchs": func(*conn, Fault) string {
			conns, paths, total := s.watches.counts()
			return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", conns, paths, total)
		},
		"dirs": func(*conn, Fault) string { return "datadir_size: 0\nlogdir_size: 0\n" },
		"srst": func(*conn, Fault) string { s.stats = stats{}; return "Server stats reset.\n" },
		"crst": func(*conn, Fault) string {
			for c := range s.conns {
				c.received, c.sentCount = 0, 0
			}
			return "Connection stats reset.\n"
		},
	}
}

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
	return fmt.Sprintf("Latency min/avg/max: %d/%.4g/%d\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\nZxid: %s\nMode: %s\nNode count: %d\n",
		st.latencyMin.Milliseconds(), avg, st.latencyMax.Milliseconds(), st.received, st.sent, len(s.conns), hexZxid(s.zxid), s.modeOf(c, f), len(s.nodes))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s *Server) srvr(c *conn, f Fault) string {
	return "Zookeeper version: " + Version + ", built on " + builtOn + "\n" + s.srvrTail(c, f)
}

func (s *Server) wordStat(c *conn, f Fault) string {
	return "Zookeeper version: " + Version + ", built on " + builtOn + "\nClients:\n" + s.consLines(c, true) + "\n" + s.srvrTail(c, f)
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
				hexZxid(c.sess.id), c.lastOp, c.established.UnixMilli(), c.sess.timeout.Milliseconds(), uint32(c.lastXid), hexZxid(c.lastZxid),
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
	_, _, watches := s.watches.counts()
	var b strings.Builder
	line := func(k string, v any) { fmt.Fprintf(&b, "zk_%s\t%v\n", k, v) }
	line("version", Version+", built on "+builtOn)
	line("server_state", s.modeOf(c, f))
	line("avg_latency", fmt.Sprintf("%.4f", avg))
	line("min_latency", st.latencyMin.Milliseconds())
	line("max_latency", st.latencyMax.Milliseconds())
	line("packets_received", st.received)
	line("packets_sent", st.sent)
	line("num_alive_connections", len(s.conns))
	line("outstanding_requests", 0)
	line("znode_count", len(s.nodes))
	line("watch_count", watches)
	line("ephemerals_count", ephemerals)
	line("approximate_data_size", s.bytes)
	line("global_sessions", len(s.sessions))
	line("local_sessions", 0)
	line("uptime", s.cfg.Now().Sub(s.started).Milliseconds())
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

// dump answers "when will my session die": the expiry buckets and who owns which ephemerals.
func (s *Server) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(s.buckets), len(s.sessions))
	now := s.cfg.Now()
	for _, at := range slices.Sorted(maps.Keys(s.buckets)) {
		when := now.Add(time.Duration(at-s.elapsed(now)) * time.Millisecond)
		fmt.Fprintf(&b, "%d expire at %s:\n", len(s.buckets[at]), when.UTC().Format("Mon Jan 02 15:04:05 MST 2006"))
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
	n := 0
	for _, sess := range s.sessionList() {
		if len(sess.ephemerals) > 0 {
			n++
		}
	}
	fmt.Fprintf(&b, "Sessions with Ephemerals (%d):\n", n)
	for _, sess := range s.sessionList() {
		if len(sess.ephemerals) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s:\n", hexZxid(sess.id))
		for _, p := range slices.Sorted(maps.Keys(sess.ephemerals)) {
			fmt.Fprintf(&b, "\t%s\n", p)
		}
	}
	b.WriteString("Connections dump:\n")
	return b.String()
}
