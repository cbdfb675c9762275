package regionserver

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// maxLazy bounds the lazily opened regions that a server keeps at once: some
// 700 bytes each.
const maxLazy = 20_000

// resolve opens a region that is this server's and was not asked for before,
// named by its full or its encoded name; nil if there is none.
//
// The catalog is asked under the server's lock. Who takes a region away changes
// the catalog first and closes the region here second, under the same lock: so
// either the change is seen here, or the closing sees what is opened here.
func (s *Server) resolve(name []byte) *region {
	if s.cfg.Lazy == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.names[string(name)]; r != nil {
		return r
	}
	if s.stopping.Load() {
		return nil
	}
	res := s.cfg.Lazy.Resolve(s.cfg.Name, name)
	if res.Region == nil {
		return nil
	}
	if r := s.regions[res.Region.Encoded]; r != nil {
		return r
	}
	if s.lazy >= maxLazy {
		s.evict(maxLazy / 8)
	}
	r := s.newRegion(res.Region)
	r.lazy = true
	s.regions[r.Encoded] = r
	s.names[string(r.Name)] = r
	s.lazy++
	return r
}

// evict lets go of some lazily opened regions that nobody is using. Called with
// mu held.
func (s *Server) evict(n int) {
	s.scanners.mu.Lock()
	defer s.scanners.mu.Unlock()
	// A scanner is registered by a call inside its region: of a region without
	// a scanner now, and without a call inside when it is shut, no scanner can
	// come to be.
	scanned := make(map[*region]bool, len(s.scanners.open))
	for _, sc := range s.scanners.open {
		scanned[sc.region] = true
	}
	for _, r := range s.regions {
		if n == 0 {
			return
		}
		if r.lazy && !scanned[r] && r.inside.CompareAndSwap(0, closedBit) {
			close(r.idle)
			s.forget(r)
			n--
		}
	}
}

// forget takes a region out of the maps, to be closed: what was written to it
// is safe from now on. Called with mu held.
func (s *Server) forget(r *region) {
	r.mem.Close()
	delete(s.regions, r.Encoded)
	delete(s.names, string(r.Name))
	if r.lazy {
		s.lazy--
	}
}

// RegionCount is the number of regions being served, without those that are
// opened lazily.
func (s *Server) RegionCount() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.regions) - s.lazy
}

// elsewhere is the exception for a lazily opened region that is not this
// server's at the moment; nil if nothing is known of it.
func (s *Server) elsewhere(name []byte, shown string) error {
	if s.cfg.Lazy == nil {
		return nil
	}
	switch res := s.cfg.Lazy.Resolve(s.cfg.Name, name); {
	case res.Moved != nil:
		m := res.Moved
		return wire.NewRegionMoved(wire.MovedTo{Host: m.To.Host, Port: m.To.Port, StartCode: m.To.StartCode, SeqNum: m.OpenSeq})
	case res.Opening:
		return wire.NewRemoteError(wire.ClassRegionOpening, "Region "+shown+" is opening on "+s.cfg.Name.String())
	}
	return nil
}

// CloseTable closes every region of a table: see host.RegionServer.
func (s *Server) CloseTable(ctx context.Context, table meta.TableName, lazily bool) error {
	s.mu.Lock()
	var closed []*region
	for _, r := range s.regions {
		if r.Info.Table == table && (r.lazy || !lazily) {
			s.forget(r)
			closed = append(closed, r)
		}
	}
	s.mu.Unlock()
	for _, r := range closed {
		r.close()
		s.scanners.closeRegion(r)
	}
	for _, r := range closed {
		select {
		case <-r.idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// movedList remembers for movedFor where regions went.
type movedList struct {
	places map[string]movedRegion
	order  []string // by time; may name what is gone, or came again
}

func (l *movedList) add(encoded string, m host.Moved, now time.Time) {
	for len(l.order) > 0 {
		e := l.order[0]
		if old, ok := l.places[e]; ok {
			if now.Sub(old.at) <= movedFor {
				break
			}
			delete(l.places, e)
		}
		l.order = l.order[1:]
	}
	if l.places == nil {
		l.places = map[string]movedRegion{}
	}
	if _, known := l.places[encoded]; !known {
		l.order = append(l.order, encoded)
	}
	l.places[encoded] = movedRegion{m, now}
}
