package regionserver

import (
	"bytes"
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// region is one opening of a region on this server. A re-open makes a new
// value: whoever holds the old one finds it closed.
type region struct {
	*host.Region
	table string // text form
	name  string // as printed

	// inside counts the calls at work; closedBit is added when closing begins,
	// after which nobody gets in.
	inside atomic.Int64
	idle   chan struct{} // closed when closing and nobody is inside
	lazy   bool          // opened because a call asked for it; may be let go of
	// mem remembers what a kill of the server would lose; nil for a rendered
	// region.
	mem *store.Memstore

	reads, writes, filtered atomic.Uint64
	lastFlush, lastMajor    atomic.Int64 // ms
	compacting              atomic.Int32 // pb.GetRegionInfoResponse_CompactionState
}

const closedBit = 1 << 40

func (s *Server) newRegion(r *host.Region) *region {
	return &region{Region: r, table: r.Info.Table.String(), name: cells.Quote(r.Name), idle: make(chan struct{}),
		mem: s.wal.Open(r.Table, r.Info.Start, r.Info.End)}
}

// enter begins a call on the region; false means it is closing. leave must
// follow a true.
func (r *region) enter() bool {
	if r.inside.Add(1) >= closedBit {
		r.leave()
		return false
	}
	return true
}

func (r *region) leave() {
	if r.inside.Add(-1) == closedBit {
		close(r.idle)
	}
}

// closing says whether close was called.
func (r *region) closing() bool { return r.inside.Load() >= closedBit }

// close keeps new calls out; idle is closed once those inside have left. It
// must be called once.
func (r *region) close() {
	// The extra one makes sure that it is leave that closes idle, once.
	r.inside.Add(closedBit + 1)
	r.leave()
}

func (r *region) schema() *cells.Schema {
	if r.Virtual != nil {
		return r.Virtual.Schema()
	}
	return r.Table.Schema()
}

// OpenRegion makes the region served; of two openings of one region the one
// with the larger OpenSeq wins.
func (s *Server) OpenRegion(hr *host.Region) {
	r := s.newRegion(hr)
	s.mu.Lock()
	old := s.regions[hr.Encoded]
	if old != nil && old.OpenSeq > hr.OpenSeq {
		s.mu.Unlock()
		r.mem.Close()
		return
	}
	if old != nil {
		s.forget(old)
	}
	s.regions[hr.Encoded] = r
	s.names[string(hr.Name)] = r
	delete(s.opening, hr.Encoded)
	delete(s.moved.places, hr.Encoded)
	s.mu.Unlock()
	if old != nil {
		old.close()
		s.scanners.closeRegion(old)
	}
}

// SetOpening marks a region as being opened, or takes the mark away.
func (s *Server) SetOpening(encoded string, opening bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if opening {
		s.opening[encoded] = true
	} else {
		delete(s.opening, encoded)
	}
}

// CloseRegion stops serving the region: see host.RegionServer.
func (s *Server) CloseRegion(ctx context.Context, encoded string, moved *host.Moved) error {
	now := time.Now()
	s.mu.Lock()
	r := s.regions[encoded]
	if r != nil {
		s.forget(r)
	}
	delete(s.opening, encoded)
	if moved != nil {
		s.moved.add(encoded, *moved, now)
	}
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	r.close()
	s.scanners.closeRegion(r)
	select {
	case <-r.idle:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Regions gives the regions being served, in no particular order.
func (s *Server) Regions() []*host.Region {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*host.Region, 0, len(s.regions))
	for _, r := range s.regions {
		list = append(list, r.Region)
	}
	return list
}

func (s *Server) hosted() []*region {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*region, 0, len(s.regions))
	for _, r := range s.regions {
		list = append(list, r)
	}
	return list
}

// byName finds a hosted region by the name in a request; nil if it is not here.
func (s *Server) byName(name []byte) *region {
	s.mu.RLock()
	r := s.names[string(name)]
	if r == nil {
		// HBase looks at the encoded part of a name only.
		if encoded, ok := meta.EncodedNameOf(name); ok {
			r = s.regions[encoded]
		}
	}
	s.mu.RUnlock()
	if r == nil {
		r = s.resolve(name)
	}
	return r
}

// find is what ClientService does with a region specifier: its type is ignored
// and the value taken for a full name, as in HBase.
func (s *Server) find(spec *pb.RegionSpecifier) (*region, error) {
	name := spec.GetValue()
	if r := s.byName(name); r != nil {
		return r, nil
	}
	encoded, _ := meta.EncodedNameOf(name)
	return nil, s.notHere(encoded, name, cells.QuoteShort(name, 512))
}

// findAny is what AdminService does: both kinds of names are understood.
func (s *Server) findAny(spec *pb.RegionSpecifier) (*region, error) {
	if spec.GetType() == pb.RegionSpecifier_ENCODED_REGION_NAME {
		encoded := string(spec.GetValue())
		s.mu.RLock()
		r := s.regions[encoded]
		s.mu.RUnlock()
		if r == nil {
			r = s.resolve(spec.GetValue())
		}
		if r != nil {
			return r, nil
		}
		return nil, s.notHere(encoded, spec.GetValue(), cells.QuoteShort(spec.GetValue(), 512))
	}
	return s.find(spec)
}

// notHere is the exception for a region that is not served here.
func (s *Server) notHere(encoded string, name []byte, shown string) error {
	s.mu.RLock()
	m, gone := s.moved.places[encoded]
	opening := s.opening[encoded]
	s.mu.RUnlock()
	if gone && time.Since(m.at) <= movedFor {
		return wire.NewRegionMoved(wire.MovedTo{Host: m.To.Host, Port: m.To.Port, StartCode: m.To.StartCode, SeqNum: m.OpenSeq})
	}
	if opening {
		return wire.NewRemoteError(wire.ClassRegionOpening, "Region "+shown+" is opening on "+s.cfg.Name.String())
	}
	if err := s.elsewhere(name, shown); err != nil {
		return err
	}
	return wire.NewRemoteError(wire.ClassNotServingRegion, shown+" is not online on "+s.cfg.Name.String())
}

// gone is notHere for a region that was.
func (s *Server) gone(r *region) error { return s.notHere(r.Encoded, r.Name, r.name) }

// enter finds the region of a call and begins it there.
func (s *Server) enter(spec *pb.RegionSpecifier) (*region, error) {
	return s.enterFound(spec, s.find)
}

// enterFound finds a region and begins a call on it. One that was opened lazily
// may have been let go of in between; then it is opened again.
func (s *Server) enterFound(spec *pb.RegionSpecifier, find func(*pb.RegionSpecifier) (*region, error)) (*region, error) {
	for again := 0; ; again++ {
		r, err := find(spec)
		if err != nil {
			return nil, err
		}
		if r.enter() {
			return r, nil
		}
		if !r.lazy || again == 2 {
			return nil, s.gone(r)
		}
	}
}

// tableOfName takes table and encoded name out of a region name that is not
// served here.
func tableOfName(name []byte) (table, encoded string) {
	encoded, _ = meta.EncodedNameOf(name)
	if i := bytes.IndexByte(name, ','); i > 0 && i <= 512 {
		table = string(name[:i])
	}
	return table, encoded
}

func itoa(n int) string { return strconv.Itoa(n) }
