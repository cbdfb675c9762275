package route

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// The snapshot file, for a warm start without reading hbase:meta. All numbers
// of the frame are big-endian.
//
//	magic    8 bytes  "HFROUTE" and a zero
//	version  u16      1
//	length   u32      of the body
//	body              zstd, one or more frames
//	crc      u32      CRC-32C of everything before it
//
// The body, decompressed, is a sequence of uvarints and of strings, which are a
// uvarint length and so many bytes:
//
//	address  string   of the cluster, as Save was told
//	id       string   of the cluster, empty if it was not known
//	created  uvarint  ms since 1970
//	mark     uvarint  timestamp up to which changes of hbase:meta were seen, 0 unknown
//	servers  uvarint  then for each: host string, port, start code
//	tables   uvarint  then for each: name string, routes uvarint, and the routes
//	                  in ascending order
//
// A route is
//
//	flags    uvarint  1: it starts where the route before it ends; else 0
//	start    key      not with flags 1
//	end      key
//	id       zigzag   the difference to the id of the route before
//	open     zigzag   the same of the open sequence number
//	server   uvarint  its number in the list
//
// and a key the number of bytes it shares with the key before it, a uvarint,
// and a string of the rest. The md5 of the region's name is left out: it would
// be most of the file, and is quickly made.
const (
	snapshotMagic   = "HFROUTE\x00"
	snapshotVersion = 1
	snapshotHead    = len(snapshotMagic) + 2 + 4

	// maxSnapshot bounds the file: a million regions need less than 20 MB.
	maxSnapshot = 1 << 29
	// snapshotIdle is how long, in seconds, loaded routes seem not to have been
	// used: long enough that a server's death does not make us
	// read the rows of thousands that nobody uses, short enough that they are
	// not forgotten soon.
	snapshotIdle = 2 * plannedUse
)

// Why a snapshot is not used; *SnapshotError matches them with errors.Is.
var (
	// ErrSnapshotDamaged: it is not a snapshot, or not a whole one.
	ErrSnapshotDamaged = errors.New("damaged")
	// ErrSnapshotVersion: it was written by a later version.
	ErrSnapshotVersion = errors.New("of a later version")
	// ErrSnapshotForeign: it belongs to another cluster.
	ErrSnapshotForeign = errors.New("of another cluster")
	// ErrSnapshotSize: it is larger than the cache may become.
	ErrSnapshotSize = errors.New("too large")
)

// SnapshotError says that a snapshot of routes cannot be used. The cache is as
// it was before.
type SnapshotError struct {
	Err    error // one of the errors above
	Detail string
}

func (e *SnapshotError) Error() string {
	return "route snapshot: " + e.Err.Error() + ": " + e.Detail
}

// Unwrap gives Err.
func (e *SnapshotError) Unwrap() error { return e.Err }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Cluster says whose routes are in a snapshot.
type Cluster struct {
	// Address is how the cluster is found; compared if one of the IDs is not
	// known.
	Address string
	// ID is the cluster's own, empty if it is not known.
	ID string
}

func (a Cluster) same(b Cluster) bool {
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID
	}
	return a.Address == b.Address
}

func (a Cluster) String() string {
	s := cells.QuoteShort([]byte(a.Address), 100)
	if a.ID != "" {
		s += " (" + cells.QuoteShort([]byte(a.ID), 100) + ")"
	}
	return s
}

// Snapshot describes a snapshot that was written or read.
type Snapshot struct {
	// Routes is how many were written, or taken in.
	Routes  int
	Cluster Cluster
	Created time.Time
}

// Save writes the valid routes for Load. cluster says whose they are.
func (c *Cache) Save(w io.Writer, cluster Cluster) (Snapshot, error) {
	info := Snapshot{Cluster: cluster, Created: time.Now()}
	if len(cluster.Address) > maxClusterText || len(cluster.ID) > maxClusterText {
		return info, &SnapshotError{ErrSnapshotSize, "the cluster's address"}
	}
	s := saver{}
	if watch := c.watcher; watch.well(time.Now()) {
		s.mark = watch.mark.Load() // before the routes are looked at
	}
	z, err := zstd.NewWriter(&s.body, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return info, err
	}
	s.z = bufio.NewWriterSize(z, 64<<10)
	info.Routes = s.write(c, info)
	if err := cmp.Or(s.z.Flush(), z.Close()); err != nil {
		return info, err
	}
	if s.body.Len() > maxSnapshot {
		return info, &SnapshotError{ErrSnapshotSize, fmt.Sprintf("%d bytes", s.body.Len())}
	}
	head := append(make([]byte, 0, snapshotHead), snapshotMagic...)
	head = binary.BigEndian.AppendUint16(head, snapshotVersion)
	head = binary.BigEndian.AppendUint32(head, uint32(s.body.Len()))
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, s.body.Bytes())
	for _, b := range [][]byte{head, s.body.Bytes(), binary.BigEndian.AppendUint32(nil, sum)} {
		if _, err := w.Write(b); err != nil {
			return info, err
		}
	}
	return info, nil
}

// saver writes a snapshot's body. A bufio.Writer keeps its first error to the
// end.
type saver struct {
	body bytes.Buffer
	z    *bufio.Writer
	num  [binary.MaxVarintLen64]byte
	mark int64
}

func (s *saver) uvarint(v uint64) { s.z.Write(s.num[:binary.PutUvarint(s.num[:], v)]) }
func (s *saver) varint(v int64)   { s.z.Write(s.num[:binary.PutVarint(s.num[:], v)]) }
func (s *saver) bytes(b []byte)   { s.uvarint(uint64(len(b))); s.z.Write(b) }
func (s *saver) text(t string)    { s.uvarint(uint64(len(t))); s.z.WriteString(t) }

// key writes a key relative to the one before.
func (s *saver) key(key, before []byte) {
	n := 0
	for n < len(key) && n < len(before) && key[n] == before[n] {
		n++
	}
	s.uvarint(uint64(n))
	s.bytes(key[n:])
}

func (s *saver) write(c *Cache, info Snapshot) (n int) {
	s.text(info.Cluster.Address)
	s.text(info.Cluster.ID)
	s.uvarint(uint64(info.Created.UnixMilli()))
	s.uvarint(uint64(max(s.mark, 0)))

	// The roots do not change, but validity does: what is saved is decided
	// once.
	type saved struct {
		t      *table
		routes []*Route
	}
	var tables []saved
	numbers := make(map[*health.Server]uint64)
	var servers []*health.Server
	left := c.cfg.MaxRoutes
	for _, t := range *c.tables.Load() {
		if t.isMeta {
			continue
		}
		root := t.root.Load()
		x := saved{t, make([]*Route, 0, root.n)}
		for _, ch := range root.chunks {
			for _, r := range ch.routes {
				if left == 0 || !r.Valid() {
					continue
				}
				left--
				if _, ok := numbers[r.server]; !ok {
					numbers[r.server] = uint64(len(servers))
					servers = append(servers, r.server)
				}
				x.routes = append(x.routes, r)
			}
		}
		if len(x.routes) > 0 {
			tables = append(tables, x)
		}
	}
	slices.SortFunc(tables, func(a, b saved) int { return a.t.name.Compare(b.t.name) })

	s.uvarint(uint64(len(servers)))
	for _, x := range servers {
		name := x.Name()
		s.text(name.Host)
		s.uvarint(uint64(name.Port))
		s.uvarint(name.StartCode)
	}
	s.uvarint(uint64(len(tables)))
	for _, x := range tables {
		s.text(x.t.text)
		s.uvarint(uint64(len(x.routes)))
		var end []byte
		var id, seq int64
		for i, r := range x.routes {
			if i > 0 && len(end) > 0 && bytes.Equal(r.startKey(), end) {
				s.uvarint(1)
			} else {
				s.uvarint(0)
				s.key(r.startKey(), end)
			}
			s.key(r.endKey(), r.startKey())
			s.varint(int64(r.id) - id)
			s.varint(r.openSeq - seq)
			s.uvarint(numbers[r.server])
			end, id, seq = r.endKey(), int64(r.id), r.openSeq
		}
		n += len(x.routes)
	}
	return n
}

// Load takes in the routes of a snapshot of the same cluster, with the lowest
// authority there is. A route that has become wrong costs one failed call.
// If the snapshot was made by a cache that watched hbase:meta, and this one
// does, what has changed in between is read first thing. An error that is not
// r's is a *SnapshotError; then nothing has been taken in.
func (c *Cache) Load(r io.Reader, cluster Cluster) (Snapshot, error) {
	damaged := func(format string, args ...any) error {
		return &SnapshotError{ErrSnapshotDamaged, fmt.Sprintf(format, args...)}
	}
	head := make([]byte, snapshotHead)
	if _, err := io.ReadFull(r, head); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return Snapshot{}, damaged("it is shorter than its head")
		}
		return Snapshot{}, err
	}
	if string(head[:len(snapshotMagic)]) != snapshotMagic {
		return Snapshot{}, damaged("it does not begin like one")
	}
	if v := binary.BigEndian.Uint16(head[len(snapshotMagic):]); v != snapshotVersion {
		return Snapshot{}, &SnapshotError{ErrSnapshotVersion, fmt.Sprintf("%d, this is %d", v, snapshotVersion)}
	}
	n := int64(binary.BigEndian.Uint32(head[snapshotHead-4:]))
	if n > maxSnapshot {
		return Snapshot{}, &SnapshotError{ErrSnapshotSize, fmt.Sprintf("%d bytes", n)}
	}
	// Grows as it comes: the length may be a lie.
	var body bytes.Buffer
	if _, err := io.Copy(&body, io.LimitReader(r, n+4)); err != nil {
		return Snapshot{}, err
	}
	if int64(body.Len()) != n+4 {
		return Snapshot{}, damaged("%d bytes of %d", body.Len(), n+4)
	}
	b := body.Bytes()
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, b[:n])
	if got := binary.BigEndian.Uint32(b[n:]); got != sum {
		return Snapshot{}, damaged("checksum %08x, should be %08x", got, sum)
	}
	// Twice: nothing is taken in before all of it has been read.
	check := loader{cache: c, cluster: cluster}
	if err := check.run(b[:n]); err != nil {
		return Snapshot{}, err
	}
	take := loader{cache: c, cluster: cluster, take: true}
	if err := take.run(b[:n]); err != nil {
		return Snapshot{}, err
	}
	if w := c.watcher; w != nil && take.mark > 0 {
		w.resume.Store(take.mark)
	}
	take.info.Routes = take.taken
	return take.info, nil
}

// loader reads a snapshot's body. After the first error every read gives zero.
type loader struct {
	cache   *Cache
	cluster Cluster
	take    bool // publish what is read

	in      *bufio.Reader
	err     error
	info    Snapshot
	mark    int64
	servers []meta.ServerName
	routes  int // announced
	taken   int
	keys    []byte // of the page being read
	page    []meta.Location
}

func (l *loader) run(body []byte) error {
	z, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	l.in = bufio.NewReaderSize(z, 64<<10)
	l.read()
	if l.err == nil {
		return nil
	}
	if e, ok := errors.AsType[*SnapshotError](l.err); ok {
		return e
	}
	return &SnapshotError{ErrSnapshotDamaged, l.err.Error()}
}

func (l *loader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

func (l *loader) uvarint() uint64 {
	if l.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(l.in)
	l.err = err
	return v
}

func (l *loader) varint() int64 {
	if l.err != nil {
		return 0
	}
	v, err := binary.ReadVarint(l.in)
	l.err = err
	return v
}

// count reads a number of things of which there may be so many.
func (l *loader) count(what string, most int) int {
	v := l.uvarint()
	if v > uint64(most) {
		l.fail("%d %s, at most %d are possible", v, what, most)
		return 0
	}
	return int(v)
}

// append reads n bytes.
func (l *loader) append(dst []byte, n int) []byte {
	if l.err != nil || n == 0 {
		return dst
	}
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	_, l.err = io.ReadFull(l.in, dst[at:])
	return dst
}

func (l *loader) text(what string, most int) string {
	return string(l.append(nil, l.count("bytes of a "+what, most)))
}

// key reads a key relative to the one before. It is good until the page has
// been taken.
func (l *loader) key(before []byte) []byte {
	shared := l.count("shared bytes", len(before))
	rest := l.count("bytes of a key", cells.MaxRowLength-shared)
	if l.err != nil || shared+rest == 0 {
		return nil
	}
	at := len(l.keys)
	l.keys = l.append(append(l.keys, before[:shared]...), rest)
	return l.keys[at:len(l.keys):len(l.keys)]
}

const (
	maxClusterText = 1 << 14
	maxHost        = 1 << 10
	maxTableText   = 1 << 12
	maxServers     = 1 << 20
	maxTables      = 1 << 20
)

func (l *loader) read() {
	l.info.Cluster = Cluster{Address: l.text("cluster's address", maxClusterText), ID: l.text("cluster's id", maxClusterText)}
	if l.err == nil && !l.cluster.same(l.info.Cluster) {
		l.err = &SnapshotError{ErrSnapshotForeign, fmt.Sprintf("%v, this is %v", l.info.Cluster, l.cluster)}
	}
	l.info.Created = time.UnixMilli(int64(l.uvarint()))
	l.mark = int64(l.uvarint())
	for range l.count("servers", maxServers) {
		s := meta.ServerName{Host: l.text("host", maxHost), Port: l.count("as port", 1<<16-1), StartCode: l.uvarint()}
		if l.err == nil && (s.Host == "" || s.StartCode == 0) {
			l.fail("a server without a name")
		}
		if l.err != nil {
			return
		}
		l.servers = append(l.servers, s)
	}
	for range l.count("tables", maxTables) {
		name, err := meta.ParseTableName(l.text("table's name", maxTableText))
		if l.err == nil {
			l.err = err
		}
		if l.err == nil && name == meta.MetaTable {
			l.fail("routes of hbase:meta")
		}
		if l.err != nil {
			return
		}
		l.table(name)
	}
	if l.err == nil {
		if _, err := l.in.ReadByte(); err != io.EOF {
			l.fail("something follows the last route (%v)", err)
		}
	}
}

// table reads a table's routes.
func (l *loader) table(name meta.TableName) {
	n := l.uvarint()
	if n > uint64(l.cache.cfg.MaxRoutes-l.routes) {
		if l.err == nil {
			l.err = &SnapshotError{ErrSnapshotSize, fmt.Sprintf("more than %d routes", l.cache.cfg.MaxRoutes)}
		}
		return
	}
	l.routes += int(n)
	var end []byte
	var id, seq int64
	for i := range n {
		flags := l.uvarint()
		start := end
		switch {
		case flags == 0:
			start = l.key(end)
		case flags > 1 || i == 0 || len(end) == 0:
			l.fail("flags %d", flags)
		}
		if l.err == nil && i > 0 && (len(end) == 0 || bytes.Compare(start, end) < 0) {
			l.fail("routes that overlap")
		}
		end = l.key(start)
		if l.err == nil && len(end) > 0 && bytes.Compare(start, end) >= 0 {
			l.fail("a route that ends before it starts")
		}
		id += l.varint()
		seq += l.varint()
		s := l.count("as server", max(len(l.servers)-1, 0))
		if l.err == nil && len(l.servers) == 0 {
			l.fail("a route without servers")
		}
		if l.err != nil {
			return
		}
		l.page = append(l.page, meta.Location{
			Region: meta.Region{Table: name, ID: uint64(id), Start: start, End: end},
			Server: l.servers[s], SeqNum: seq, State: "OPEN",
		})
		if len(l.page) == pageSize {
			end = l.turn(name, end)
		}
	}
	l.turn(name, nil)
}

// turn takes the page in, if that is wanted, and begins another. The routes
// have keys of their own; end is what the next page begins with.
func (l *loader) turn(name meta.TableName, end []byte) []byte {
	if l.take && len(l.page) > 0 {
		l.publish(name)
	}
	end = bytes.Clone(end)
	l.page, l.keys = l.page[:0], l.keys[:0]
	return end
}

func (l *loader) publish(name meta.TableName) {
	c := l.cache
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	t := c.tableFor(name)
	c.mu.Unlock()
	now := c.now.Load()
	age := uint32(min(max(time.Since(l.info.Created), 0)/time.Second, 1<<30))
	routes := t.makeRoutes(l.page, FromSnapshot)
	for _, r := range routes {
		r.learned.Store(now - age)
		r.state.Store(r.state.Load()&(1<<stateUsedShift-1) | (now-snapshotIdle)&stateUsedMask<<stateUsedShift)
	}
	added, removed := t.publish(routes)
	l.taken += len(added)
	c.settled(t, added, removed)
}

// ForgetSnapshot drops the routes that are known from a snapshot only: it has
// turned out to be another cluster's.
func (c *Cache) ForgetSnapshot() {
	for _, t := range *c.tables.Load() {
		removed := t.remove(0, len(t.root.Load().chunks)+1, func(r *Route) bool { return r.Origin() == FromSnapshot })
		c.settled(t, nil, removed)
	}
}
