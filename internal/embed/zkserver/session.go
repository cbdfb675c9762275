package zkserver

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// session is guarded by Server.mu.
type session struct {
	id         int64
	timeout    time.Duration // negotiated
	ephemerals map[string]struct{}
	conn       *conn // the connection that owns the session, nil while there is none
	pinned     bool  // an embedder's session: never expires while pinned
	bucket     int64 // elapsed ms at which it expires; 0 while pinned
	createdAt  time.Time
}

// elapsed is the expiry clock in milliseconds.
func (s *Server) elapsed(now time.Time) int64 {
	if s.cfg.WallClockBuckets {
		return now.UnixMilli()
	}
	return now.Sub(s.started).Milliseconds()
}

func (s *Server) bucketOf(ms int64) int64 {
	tick := s.cfg.TickTime.Milliseconds()
	return (ms/tick + 1) * tick
}

// passwordOf derives a session's password from its id, as ZooKeeper does: it guards against mistakes, not against attackers.
func passwordOf(id int64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	sum := sha256.Sum256(append([]byte("holdfast session "), b[:]...))
	return sum[:16]
}

func (s *Server) newSession(timeout time.Duration, pinned bool) *session {
	now := s.cfg.Now()
	if s.nextSession == 0 {
		// Top byte the server's number, 40 bits of start time, low 16 bits a counter.
		s.nextSession = int64(uint64(now.UnixMilli())<<24>>8) | 1<<56
	}
	s.nextSession++
	s.zxid++
	sess := &session{id: s.nextSession, timeout: timeout, ephemerals: map[string]struct{}{}, pinned: pinned, createdAt: now}
	s.sessions[sess.id] = sess
	if !pinned {
		s.schedule(sess, s.elapsed(now))
	}
	return sess
}

// touch records that a client was heard through m. A touch moves the session only if the bucket changes.
func (s *Server) touch(sess *session, m *member) {
	if sess.pinned {
		return
	}
	t := s.elapsed(s.cfg.Now())
	if m != nil && len(s.members) > 1 && m.index != s.leader {
		// A follower hands its touches to the leader every half tick.
		if half := s.cfg.TickTime.Milliseconds() / 2; half > 0 {
			t = (t/half + 1) * half
		}
	}
	s.schedule(sess, t)
}

func (s *Server) schedule(sess *session, touched int64) {
	b := s.bucketOf(touched + sess.timeout.Milliseconds())
	if b == sess.bucket {
		return
	}
	s.unschedule(sess)
	sess.bucket = b
	set := s.buckets[b]
	if set == nil {
		set = map[*session]struct{}{}
		s.buckets[b] = set
		s.wakeExpiry()
	}
	set[sess] = struct{}{}
}

func (s *Server) unschedule(sess *session) {
	if sess.bucket == 0 {
		return
	}
	set := s.buckets[sess.bucket]
	delete(set, sess)
	if len(set) == 0 {
		delete(s.buckets, sess.bucket)
	}
	sess.bucket = 0
}

func (s *Server) wakeExpiry() {
	select {
	case s.expiryWake <- struct{}{}:
	default:
	}
}

// endSession removes a session and its ephemerals in one transaction.
func (s *Server) endSession(sess *session, why string) {
	s.unschedule(sess)
	t := s.begin()
	for _, p := range slices.Sorted(maps.Keys(sess.ephemerals)) {
		t.delete(nil, p, -1)
	}
	delete(s.sessions, sess.id)
	t.commit()
	s.log.Info("session ended", "session", hexZxid(sess.id), "why", why, "timeout", sess.timeout, "zxid", hexZxid(t.zxid))
}

// expire ends a session the way the tracker does: its connection is closed without a word.
func (s *Server) expire(sess *session, why string) {
	c := sess.conn
	s.endSession(sess, why)
	if c != nil {
		c.closeAfterQueue()
	}
}

// CheckExpiry expires every session whose bucket has passed on Config.Now's clock. The server calls it by itself at each
// boundary; only an embedder whose clock jumps needs to.
func (s *Server) CheckExpiry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireDue()
}

// expireDue returns how long until the next bucket is due, or 0 if there is none.
func (s *Server) expireDue() time.Duration {
	if s.expiryPaused {
		return 0
	}
	now := s.elapsed(s.cfg.Now())
	for {
		if len(s.buckets) == 0 {
			return 0
		}
		first := slices.Min(slices.Collect(maps.Keys(s.buckets)))
		if first > now {
			return time.Duration(first-now) * time.Millisecond
		}
		due := slices.Collect(maps.Keys(s.buckets[first]))
		slices.SortFunc(due, func(a, b *session) int { return int(min(max(a.id-b.id, -1), 1)) })
		for _, sess := range due {
			s.expire(sess, "expired")
			s.stats.expired++
		}
		delete(s.buckets, first)
	}
}

// expiryLoop is the session tracker, and sweeps empty containers once a minute.
func (s *Server) expiryLoop() {
	defer s.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	sweep := time.NewTicker(containerSweep)
	defer sweep.Stop()
	for {
		s.mu.Lock()
		wait := s.expireDue()
		s.mu.Unlock()
		if wait == 0 {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-s.done:
			return
		case <-s.expiryWake:
		case <-timer.C:
		case <-sweep.C:
			s.sweepContainers()
		}
	}
}

// containerSweep is ZooKeeper's own interval for removing containers that had children and have none any more.
const containerSweep = time.Minute

func (s *Server) sweepContainers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var empty []string
	for p, n := range s.nodes {
		if n.container && n.created > 0 && len(n.children) == 0 {
			empty = append(empty, p)
		}
	}
	slices.Sort(empty)
	for _, p := range empty {
		t := s.begin()
		if t.delete(nil, p, -1) == jute.OK {
			t.commit()
		}
	}
}

// retrack gives every session a full timeout from now: what a new leader does on taking office.
func (s *Server) retrack() {
	now := s.elapsed(s.cfg.Now())
	for _, sess := range s.sessions {
		if !sess.pinned {
			s.schedule(sess, now)
		}
	}
}

func (s *Server) clampTimeout(ms int32) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	return min(max(d, s.minSession), s.maxSession)
}
