package route

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Origin says from whom a route was learned.
type Origin uint8

// The origins, in ascending order of authority.
const (
	FromSnapshot Origin = iota
	FromMetaReplica
	FromMeta
	FromHint
)

// String names the origin.
func (o Origin) String() string {
	switch o {
	case FromSnapshot:
		return "snapshot file"
	case FromMetaReplica:
		return "meta replica"
	case FromMeta:
		return "meta"
	case FromHint:
		return "hint"
	}
	return "invalid"
}

// Route is our belief about one region: its key range and its server. What the
// methods return does not change, except for Valid, Rejected and the times.
// Byte slices returned must not be changed.
//
// It is one heap object of exactly 80 bytes, which is a size class of Go's
// allocator: with a million regions every word counts. Therefore keys are a
// pointer and a 16-bit length (HBase's rows are shorter than 32768 bytes)
// instead of a slice header, neighbours share the key between them, the name
// is rebuilt when needed, and everything that changes lives in one word.
type Route struct {
	// What a lookup reads comes first: objects of this size begin at multiples
	// of 16 bytes, so that the first 16 always lie in one cache line.

	server *health.Server
	// epoch is the server's epoch when the route was learned, truncated. Four
	// thousand million restarts of one incarnation do not occur.
	epoch uint32
	// state: bit 0 rejected, bits 1-2 origin, bit 3 meta's row has been seen
	// (so its replicas are known), bits 8-31 coarse time of the last use (modulo 194 days; ages are far below).
	state    atomic.Uint32
	table    *table
	end      *byte
	start    *byte
	endLen   uint16
	startLen uint16
	// learned is the coarse time of the last confirmation.
	learned atomic.Uint32
	id      uint64
	// openSeq is info:seqnumDuringOpen.
	openSeq int64
	// encoded is the md5 of table,start,id. Not meaningful for hbase:meta.
	encoded [16]byte
}

const (
	stateRejected    = 1
	stateOriginShift = 1
	stateRowSeen     = 1 << 3
	stateUsedShift   = 8
	stateUsedMask    = 1<<24 - 1
)

func (r *Route) startKey() []byte { return unsafe.Slice(r.start, r.startLen) }
func (r *Route) endKey() []byte   { return unsafe.Slice(r.end, r.endLen) }

// Table names the table.
func (r *Route) Table() meta.TableName { return r.table.name }

// Start gives the region's first row (empty: from the beginning).
func (r *Route) Start() []byte { return r.startKey() }

// End gives the first row after the region (empty: to the end).
func (r *Route) End() []byte { return r.endKey() }

// Contains says whether the region holds the row.
func (r *Route) Contains(row []byte) bool {
	return bytes.Compare(r.startKey(), row) <= 0 && r.endsAfter(row)
}

// endsAfter says whether the region ends after row.
func (r *Route) endsAfter(row []byte) bool {
	return r.endLen == 0 || bytes.Compare(row, r.endKey()) < 0
}

// RegionID is the region's creation time in ms.
func (r *Route) RegionID() uint64 { return r.id }

// OpenSeq orders the locations of one region; meta.NoSeqNum if unknown.
func (r *Route) OpenSeq() int64 { return r.openSeq }

// Server gives the server believed to hold the region; nil if meta names none
// (such a route is never valid).
func (r *Route) Server() *health.Server { return r.server }

// Epoch is the server's epoch captured when the route was learned, modulo
// 2^32.
func (r *Route) Epoch() uint64 { return uint64(r.epoch) }

// Encoded gives the encoded region name: 32 hex digits.
func (r *Route) Encoded() string { return string(r.AppendEncoded(nil)) }

// AppendEncoded appends the encoded region name. Requests may carry it as
// ENCODED_REGION_NAME, except for hbase:meta.
func (r *Route) AppendEncoded(b []byte) []byte {
	if r.table.isMeta {
		return append(b, meta.MetaEncodedName...)
	}
	return hex.AppendEncode(b, r.encoded[:])
}

// Name gives the full region name, made anew by each call.
func (r *Route) Name() []byte {
	return r.AppendName(make([]byte, 0, len(r.table.text)+int(r.startLen)+48))
}

// AppendName appends the full region name, which is also the region's row in
// hbase:meta: table,start,id.encoded. (hbase:meta,,1 for hbase:meta itself).
func (r *Route) AppendName(b []byte) []byte {
	if r.table.isMeta {
		return append(b, meta.MetaRegionName...)
	}
	b = appendBase(b, r.table.text, r.startKey(), r.id)
	b = append(b, '.')
	b = hex.AppendEncode(b, r.encoded[:])
	return append(b, '.')
}

// appendBase appends the part of a region name that is hashed.
func appendBase(b []byte, table string, start []byte, id uint64) []byte {
	b = append(b, table...)
	b = append(b, ',')
	b = append(b, start...)
	b = append(b, ',')
	return strconv.AppendUint(b, id, 10)
}

// Region gives the identity as meta knows it.
func (r *Route) Region() meta.Region {
	return meta.Region{Table: r.table.name, ID: r.id, Start: r.startKey(), End: r.endKey()}
}

// Origin says from whom the route was learned.
func (r *Route) Origin() Origin { return Origin(r.state.Load() >> stateOriginShift & 3) }

// Age is the time since the route was last confirmed by its origin, to the
// second.
func (r *Route) Age() time.Duration {
	return time.Duration(r.table.cache.now.Load()-r.learned.Load()) * time.Second
}

// Valid says whether nothing is known against the route: its server has not
// disowned the region, and no hard evidence against the server came up since.
func (r *Route) Valid() bool {
	// A route without a server is rejected from the start.
	return r.state.Load()&stateRejected == 0 && uint32(r.server.Epoch()) == r.epoch
}

// Rejected says whether the route's server has disowned the region, or meta
// says that it serves it no (or not yet).
func (r *Route) Rejected() bool { return r.state.Load()&stateRejected != 0 }

// reject says whether nobody has done so before.
func (r *Route) reject() bool { return r.state.Or(stateRejected)&stateRejected == 0 }

// touch notes the use. It writes once a second, so that readers on many cores
// do not fight for the cache line.
func (r *Route) touch(now uint32) {
	s := r.state.Load()
	if now = now & stateUsedMask; s>>stateUsedShift != now {
		// A lost race loses one second of precision.
		r.state.CompareAndSwap(s, s&(1<<stateUsedShift-1)|now<<stateUsedShift)
	}
}

// idle is the time since the last use in seconds.
func (r *Route) idle(now uint32) uint32 {
	return (now - r.state.Load()>>stateUsedShift) & stateUsedMask
}

// sameRegion says whether both are beliefs about one region.
func (r *Route) sameRegion(o *Route) bool { return r.id == o.id && r.encoded == o.encoded }

// String is for traces and errors.
func (r *Route) String() string {
	server := "no server"
	if r.server != nil {
		server = r.server.Name().String()
	}
	s := fmt.Sprintf("%s [%s, %s) on %s, seq %d", r.Encoded(), cells.QuoteShort(r.startKey(), 40), cells.QuoteShort(r.endKey(), 40), server, r.openSeq)
	if !r.Valid() {
		s += " (invalid)"
	}
	return s
}

// keyArena hands out key storage. Keys of a page lie together in blocks of a
// few, which saves the allocator's rounding; the blocks are small, so that a
// surviving route does not keep a page alive.
type keyArena struct {
	buf  []byte
	left int // keys expected
}

const keysPerBlock = 16

// blockKeys: of so many routes learned together the keys go into blocks at once;
// of fewer, only those that are not a neighbour's.
const blockKeys = 4

// adopt is add for keys that are only now known not to be a neighbour's.
func (a *keyArena) adopt(key *byte, n uint16) *byte {
	a.left = keysPerBlock
	key, _ = a.add(unsafe.Slice(key, n))
	return key
}

func (a *keyArena) add(key []byte) (*byte, uint16) {
	if len(key) == 0 {
		return nil, 0
	}
	if len(a.buf)+len(key) > cap(a.buf) {
		a.buf = make([]byte, 0, len(key)*max(min(a.left, keysPerBlock), 1))
	}
	at := len(a.buf)
	a.buf = append(a.buf, key...)
	a.left--
	return &a.buf[at], uint16(len(key))
}

// makeRoutes makes routes of locations in ascending order of their start keys.
// Locations with keys that HBase does not allow are left out.
func (t *table) makeRoutes(locs []meta.Location, origin Origin) []*Route {
	routes := make([]*Route, 0, len(locs))
	arena := keyArena{left: len(locs) + 1}
	if len(locs) < blockKeys {
		arena.left = 0 // neighbours in the index may hold these keys already
	}
	now := t.cache.now.Load()
	var name []byte
	for i := range locs {
		l := &locs[i]
		if len(l.Region.Start) > cells.MaxRowLength || len(l.Region.End) > cells.MaxRowLength {
			continue
		}
		r := &Route{table: t, id: l.Region.ID, openSeq: l.SeqNum}
		if n := len(routes); n > 0 && bytes.Equal(routes[n-1].endKey(), l.Region.Start) {
			r.start, r.startLen = routes[n-1].end, routes[n-1].endLen
		} else {
			r.start, r.startLen = arena.add(l.Region.Start)
		}
		r.end, r.endLen = arena.add(l.Region.End)
		name = appendBase(name[:0], t.text, l.Region.Start, l.Region.ID)
		r.encoded = md5.Sum(name)
		state := uint32(origin)<<stateOriginShift | (now&stateUsedMask)<<stateUsedShift
		if origin == FromMeta || origin == FromMetaReplica {
			state |= stateRowSeen
		}
		if !l.Server.IsZero() {
			r.server = t.cache.cfg.Servers.Get(l.Server)
			r.epoch = uint32(r.server.Epoch())
		}
		if r.server == nil || !isOpen(l.State) || !r.server.Usable() {
			state |= stateRejected
		}
		r.state.Store(state)
		r.learned.Store(now)
		routes = append(routes, r)
	}
	return routes
}

// confirmed notes that origin has said the same of the route (again).
func (r *Route) confirmed(at uint32, origin Origin) {
	r.learned.Store(at)
	for {
		s := r.state.Load()
		n := s
		if origin == FromMeta || origin == FromMetaReplica {
			n |= stateRowSeen
		}
		if origin > Origin(s>>stateOriginShift&3) {
			n = n&^(3<<stateOriginShift) | uint32(origin)<<stateOriginShift
		}
		if n == s || r.state.CompareAndSwap(s, n) {
			return
		}
	}
}

// isOpen says whether a region in this state (info:state) is being served
// where info:server says. Before HBase 2 there is no such column.
func isOpen(state string) bool { return state == "" || state == "OPEN" }

// opening makes a route to the server that opens the region, nil if meta names
// none that is of use. It is a hint: the region may not be there for a while,
// or ever. old is what is known of the region now.
func (n *Route) opening(l *meta.Location, old *Route) *Route {
	if l.Opener.IsZero() {
		return nil
	}
	s := n.table.cache.cfg.Servers.Get(l.Opener)
	if !s.Usable() {
		return nil
	}
	return n.leadTo(s, max(n.openSeq, old.openSeq), FromHint)
}

// restamp makes a copy of the route that is valid as of now.
func (r *Route) restamp() *Route { return r.leadTo(r.server, r.openSeq, r.Origin()) }

// leadTo makes a copy of the route that leads to a server, valid as of now.
func (r *Route) leadTo(s *health.Server, openSeq int64, origin Origin) *Route {
	now := r.table.cache.now.Load()
	n := &Route{
		table: r.table, server: s, start: r.start, end: r.end, id: r.id, openSeq: openSeq,
		encoded: r.encoded, startLen: r.startLen, endLen: r.endLen, epoch: uint32(s.Epoch()),
	}
	n.state.Store(uint32(origin)<<stateOriginShift | r.state.Load()&stateRowSeen | (now&stateUsedMask)<<stateUsedShift)
	n.learned.Store(now)
	return n
}
