package regionserver

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// rowScanner is a scanner over a table of the store or a virtual one.
type rowScanner interface {
	Next(dst []cells.Cell, lim *cells.Limits) ([]cells.Cell, cells.State, error)
	FilterDone() bool
	LastRow() []byte
	// Pause lets go of what must not be held between calls.
	Pause() error
	Close() error
	ReadPoint() uint64
}

var _ rowScanner = (*store.Scanner)(nil)

// virtualScanner reads a virtual table. It sees one state of the catalog from
// its opening to its end.
type virtualScanner struct {
	*cells.Scanner
	src *cells.RowsSource
}

func (v *virtualScanner) Pause() error      { return nil }
func (v *virtualScanner) Close() error      { v.src.Close(); return nil }
func (v *virtualScanner) ReadPoint() uint64 { return 1 }

// scanner is an open scanner. Between calls it rests in the registry; a call
// takes it out (busy) and has it to itself.
type scanner struct {
	id         uint64
	region     *region
	in         rowScanner
	batch      int
	maxBytes   int64
	needCursor bool
	meter      meter
	// paid is the charge of the call that has the scanner.
	paid *charge
	// Lists for the next page to use again.
	cells   []cells.Cell
	results []span
	// partialRow is the row of the last Result given out if that was partial.
	partialRow []byte

	// Guarded by the registry's lock.
	nextSeq uint64
	busy    bool
	expires time.Time
}

// scanners is the registry of open scanners. One timer, running only while
// there are scanners, ends those whose lease has passed.
type scanners struct {
	lease time.Duration
	most  int
	high  uint64 // upper half of the ids: another incarnation's are unknown here

	mu     sync.Mutex
	open   map[uint64]*scanner
	last   uint32
	timer  *time.Timer
	closed bool
	// gone remembers scanners that ended in order, with the call number that
	// is answered with nothing; goneIDs is a ring of its keys.
	gone    map[uint64]goneScanner
	goneIDs []uint64
	goneAt  int
}

type goneScanner struct {
	seq uint64
	at  time.Time
}

// maxGone bounds how many closed scanners are remembered.
const maxGone = 4096

func newScanners(name meta.ServerName, lease time.Duration, most int) *scanners {
	h := fnv.New32a()
	fmt.Fprint(h, name)
	return &scanners{lease: lease, most: most, high: uint64(h.Sum32()&0x7fffffff) << 32,
		open: make(map[uint64]*scanner), gone: make(map[uint64]goneScanner)}
}

// add registers a new scanner as busy and gives it its id.
func (t *scanners) add(s *scanner) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return wire.NewRemoteError(wire.ClassRegionServerStopped, "server is stopping")
	}
	if len(t.open) >= t.most {
		return wire.NewRemoteError(wire.ClassRegionTooBusy, fmt.Sprintf("%d scanners are open", len(t.open)))
	}
	t.last++
	s.id, s.busy = t.high|uint64(t.last), true
	t.open[s.id] = s
	return nil
}

// take finds a scanner for a call and has its region checked by still; see
// HBase's getRegionScanner for the order of the checks. errGone stands for a
// scanner that has ended and is asked once more in order.
func (t *scanners) take(id uint64, seq *uint64, still func(*region) error) (*scanner, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[id]
	if s != nil && !s.busy && !time.Now().Before(s.expires) {
		t.end(s)
		s = nil
	}
	name := strconv.FormatUint(id, 10)
	if s == nil {
		g, ok := t.gone[id]
		if !ok || time.Since(g.at) > t.lease {
			return nil, wire.NewRemoteError(wire.ClassUnknownScanner, "Unknown scanner '"+name+"'. This can happen due to any of the following reasons: "+
				"a) Scanner id given is wrong, b) Scanner lease expired because of long wait between consecutive client checkins, "+
				"c) Server may be closing down, d) RegionServer restart during upgrade.\n"+
				"If the issue is due to reason (b), a possible fix would be increasing the value of 'hbase.client.scanner.timeout.period' configuration.")
		}
		var got uint64
		if seq != nil {
			got = *seq
		}
		if got != g.seq {
			return nil, wire.NewRemoteError(wire.ClassOutOfOrderScannerNext, fmt.Sprintf(
				"Expected nextCallSeq for closed request: %d But the nextCallSeq got from client: %d", g.seq, got))
		}
		return nil, errGone
	}
	if err := still(s.region); err != nil {
		if !s.busy {
			t.end(s)
		}
		return nil, err
	}
	if s.busy {
		return nil, wire.NewRemoteError(wire.ClassLease, "lease '"+name+"' does not exist")
	}
	if seq != nil {
		if *seq != s.nextSeq {
			return nil, wire.NewRemoteError(wire.ClassOutOfOrderScannerNext, fmt.Sprintf(
				"Expected nextCallSeq: %d But the nextCallSeq got from client: %d", s.nextSeq, *seq))
		}
		s.nextSeq++
	}
	s.busy = true
	return s, nil
}

// errGone: the scanner has ended; answer nothing.
var errGone = fmt.Errorf("scanner has ended")

// give returns a scanner to rest until its next call, with a new lease.
func (t *scanners) give(s *scanner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.busy = false
	if t.closed {
		t.end(s)
		return
	}
	s.expires = time.Now().Add(t.lease)
	if t.timer == nil {
		t.timer = time.AfterFunc(t.lease, t.sweep)
	}
}

// unread is give for a call that was refused before it had read anything: the
// next one has its number again.
func (t *scanners) unread(s *scanner, numbered bool) {
	if numbered {
		t.mu.Lock()
		s.nextSeq--
		t.mu.Unlock()
	}
	t.give(s)
}

// finish ends a busy scanner; remember says that it ended in order.
func (t *scanners) finish(s *scanner, remember bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(s)
	if !remember {
		return
	}
	if len(t.goneIDs) < maxGone {
		t.goneIDs = append(t.goneIDs, s.id)
	} else {
		delete(t.gone, t.goneIDs[t.goneAt])
		t.goneIDs[t.goneAt] = s.id
		t.goneAt = (t.goneAt + 1) % maxGone
	}
	// HBase expects one more than the next number here.
	t.gone[s.id] = goneScanner{s.nextSeq + 1, time.Now()}
}

// end is called with the lock held, on a scanner nobody uses.
func (t *scanners) end(s *scanner) {
	delete(t.open, s.id)
	// All there is to fail is letting go of memory.
	_ = s.in.Close()
}

// sweep ends the scanners whose lease has passed.
func (t *scanners) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = nil
	if t.closed {
		return
	}
	now := time.Now()
	var next time.Duration = -1
	for _, s := range t.open {
		if s.busy {
			next = max(next, t.lease)
			continue
		}
		left := s.expires.Sub(now)
		if left <= 0 {
			t.end(s)
			continue
		}
		if next < 0 || left < next {
			next = left
		}
	}
	if next >= 0 {
		t.timer = time.AfterFunc(max(next, t.lease/64), t.sweep)
	}
}

// closeRegion lets go of what the scanners of a closed region hold. They stay
// known, so that their next call learns that the region has gone.
func (t *scanners) closeRegion(r *region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.open {
		if s.region == r && !s.busy {
			_ = s.in.Close()
		}
	}
}

// close ends all scanners but those a call is using; these end with their
// call.
func (t *scanners) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	for _, s := range t.open {
		if !s.busy {
			t.end(s)
		}
	}
}
