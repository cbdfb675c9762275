package route

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// watcher follows the changes of hbase:meta, so that routes are right before
// somebody uses them: one time-range scan per interval, over the rows of the
// tables that routes are held for.
//
// Time. The scan goes from mark on, a timestamp of the master's clock; ours is
// never compared with it. A cell is written a little after it was stamped, and
// two may come in the wrong order. So the mark moves up to a timestamp only
// with a scan that began watchOverlap (of our time) after that timestamp was
// first seen: what was stamped before it has come by then, or is lost to us and
// costs one failed call. Once nothing happens any more, mark is past the newest
// cell, and HBase need not look into any of its files: an idle scan costs it
// next to nothing, and one round trip.
//
// Only its own goroutine touches what is not atomic.
type watcher struct {
	cache    *Cache
	source   ChangeSource
	interval time.Duration

	mark   atomic.Int64 // everything before it has been seen; 0: not known
	resume atomic.Int64 // mark of a snapshot that has been loaded; 0: none
	good   atomic.Int64 // when the last complete poll began, ns since the cache did; 0: never
	tops   []top        // newer timestamps seen, and when; ascending

	// suspect is set when servers disown regions together, of which the next
	// poll ought to tell; blind when it did not. refound is when a mark was last
	// looked for because of that.
	suspect, blind atomic.Bool
	refound        time.Time
}

// top is a timestamp that was the newest, first seen by a poll that ended at.
type top struct {
	ts int64
	at time.Time
}

const (
	// watchOverlap is how late a cell may become visible after cells that were
	// stamped later. Below a second, a slow put of the master is missed now and
	// then; at ten, a mass move is read ten times instead of two or three.
	watchOverlap = 2 * time.Second
	// watchPage is the rows of one read: about 700 KB.
	watchPage = 1000
	// watchLook is the rows of a read that only looks for timestamps.
	watchLook = 100
	// watchPause bounds the time between polls while meta is troubled.
	watchPause = 30 * time.Second
	// watchShare: a poll that took t is followed by a pause of at least
	// watchShare*t, so that a meta that is slow to scan is not kept busy.
	watchShare = 3
	// watchLeast is what a poll may read in any case before catching up is
	// given up as dearer than the failed calls it would save.
	watchLeast = 10 * watchPage
	// watchRefind is how often a mark is looked for that seems to be wrong.
	watchRefind = time.Minute
)

// WatchStats tells what the watching of hbase:meta has cost and brought. All
// zero without Config.WatchInterval.
type WatchStats struct {
	// Polls counts the scans that were completed, in one read or several;
	// Reads the reads, Failed those that failed.
	Polls, Reads, Failed int64
	// Rows and Bytes count what hbase:meta answered, as cell blocks.
	Rows, Bytes int64
	// Published counts routes that were replaced ahead of traffic, Disowned
	// those that are known to be closed where they were.
	Published, Disowned int64
	// Lost counts the times when too much had changed to catch up with, Blind
	// those when regions moved and hbase:meta had nothing new to tell: its clock
	// has gone back behind the mark.
	Lost, Blind int64
	// Mark is the timestamp (ms, the master's clock) up to which all changes
	// have been seen; 0 if none is known.
	Mark int64
	// Last is the time since the last complete poll began; 0 if there was none.
	Last time.Duration
}

type watchCounters struct {
	polls, reads, failed, rows, bytes, published, disowned, lost, blind atomic.Int64
}

func (c *Cache) watchStats() WatchStats {
	n := &c.stats.watch
	s := WatchStats{
		Polls: n.polls.Load(), Reads: n.reads.Load(), Failed: n.failed.Load(), Rows: n.rows.Load(), Bytes: n.bytes.Load(),
		Published: n.published.Load(), Disowned: n.disowned.Load(), Lost: n.lost.Load(), Blind: n.blind.Load(),
	}
	if w := c.watcher; w != nil {
		s.Mark = w.mark.Load()
		if at := w.good.Load(); at != 0 {
			s.Last = time.Since(c.began) - time.Duration(at)
		}
	}
	return s
}

// well says whether there is a watcher, whether it is up to date, and whether
// there is no reason to doubt that.
func (w *watcher) well(now time.Time) bool {
	if w == nil || w.blind.Load() {
		return false
	}
	at := w.good.Load()
	return at != 0 && now.Sub(w.cache.began)-time.Duration(at) < 3*w.interval
}

// watch is the watcher's goroutine.
func (w *watcher) watch() {
	c := w.cache
	defer c.wg.Done()
	wait, failures := w.interval, 0
	for {
		// Between 3/4 and 5/4: a fleet of clients spreads out.
		if pause(c.ctx, time.Duration((0.75+c.cfg.Rand()/2)*float64(wait))) != nil {
			return
		}
		began := time.Now()
		err := w.poll(began)
		if err == nil {
			failures = 0
			wait = max(w.interval, watchShare*time.Since(began))
			continue
		}
		if c.ctx.Err() != nil {
			return
		}
		c.stats.watch.failed.Add(1)
		if failures++; failures == 1 {
			c.cfg.Logger.Warn("hbase:meta cannot be watched for changes", "err", err)
		}
		wait = min(w.interval<<min(failures, 16), max(watchPause, w.interval))
	}
}

// errNoProgress: an answer that ends where it began.
var errNoProgress = errors.New("hbase:meta's scan of changes does not get on")

// poll reads what has changed since the mark.
func (w *watcher) poll(began time.Time) error {
	c := w.cache
	start, stop := c.watched()
	if start == nil {
		// Nothing is held that could become wrong.
		w.mark.Store(0)
		w.tops = nil
		return nil
	}
	if at := w.resume.Swap(0); at > 0 && (w.mark.Load() == 0 || at < w.mark.Load()) {
		w.mark.Store(at)
		w.tops = nil
	}
	if w.mark.Load() == 0 {
		return w.findMark(start, stop)
	}
	coarse := c.now.Load()
	suspect := w.suspect.Swap(false)
	since, newest, rows := w.mark.Load(), int64(0), 0
	enough := max(watchLeast, 2*int(c.routes.Load()))
	for row := start; row != nil; {
		ch, err := w.read(ChangeScan{Since: since, StartRow: row, StopRow: stop, Limit: watchPage, Wanted: c.holds})
		if err != nil {
			return err
		}
		if ch.Next != nil && meta.CompareRows(ch.Next, row) <= 0 {
			return errNoProgress
		}
		c.apply(ch.Locations, coarse)
		newest = max(newest, ch.Newest)
		row = ch.Next
		if rows += ch.Rows; rows > enough && row != nil {
			c.stats.watch.lost.Add(1)
			w.mark.Store(0)
			w.tops = nil
			return nil
		}
	}
	w.advance(began, newest)
	w.looked(began, rows, suspect)
	c.stats.watch.polls.Add(1)
	w.good.Store(max(int64(began.Sub(c.began)), 1))
	return nil
}

// looked judges after a complete poll whether it can be believed. A region is
// disowned after meta has been told of its closing, so if several have been
// and there is nothing new, what is new has timestamps from before the mark: a
// clock has gone back, or one that was ahead has stamped a cell. The mark is
// found anew then, which helps unless that cell is still there; and until a
// poll brings something, others look after mass moves.
func (w *watcher) looked(began time.Time, rows int, suspect bool) {
	switch {
	case rows > 0:
		w.blind.Store(false)
	case suspect:
		w.blind.Store(true)
		w.cache.stats.watch.blind.Add(1)
		if w.refound.IsZero() || began.Sub(w.refound) >= watchRefind {
			w.refound = began
			w.mark.Store(0)
			w.tops = nil
		}
	}
}

// advance moves the mark after a complete poll.
func (w *watcher) advance(began time.Time, newest int64) {
	for len(w.tops) > 0 && began.Sub(w.tops[0].at) >= watchOverlap {
		w.mark.Store(max(w.mark.Load(), w.tops[0].ts+1))
		w.tops = w.tops[1:]
	}
	if n := len(w.tops); newest >= w.mark.Load() && (n == 0 || newest > w.tops[n-1].ts) {
		w.tops = append(w.tops, top{newest, time.Now()})
	}
}

// findMark finds a timestamp that meta has told of and after which little has
// changed. The own clock only says where to look first; it may be wrong by any
// amount.
//
// Looking back 10 minutes, then 80, and so on, the first scan that finds
// anything gives a first mark: the newest timestamp of its page. If the page was
// full there may be much more that is newer, which the next poll would have to
// read, say when a cluster was started and its regions opened one after the
// other. So we look ahead of the mark, 10 minutes, 80, until there is nothing,
// and halve the time between down to a second. An empty answer costs HBase
// nothing, since its files and its memory know the time range of their cells,
// and the others are short.
func (w *watcher) findMark(start, stop []byte) error {
	look := func(since int64) (Changes, error) {
		row := start
		for {
			ch, err := w.read(ChangeScan{
				Since: since, StartRow: row, StopRow: stop, Limit: watchLook,
				Wanted: func([]byte) bool { return false },
			})
			if err != nil || ch.Newest > 0 || ch.Next == nil {
				return ch, err
			}
			if meta.CompareRows(ch.Next, row) <= 0 {
				return ch, errNoProgress
			}
			row = ch.Next // it ended early, with nothing found so far
		}
	}
	const step = 10 * 60 * 1000 // ms
	now := time.Now().UnixMilli()
	var found Changes
	var err error
	for back := int64(step); ; back *= 8 {
		since := max(now-back, 0)
		if found, err = look(since); err != nil {
			return err
		}
		if found.Newest > 0 {
			break
		}
		if since == 0 {
			return nil // not one cell; next time perhaps
		}
	}
	lo, hi := found.Newest, int64(0)
	for ahead := int64(step); found.Next != nil && (hi == 0 || hi-lo > 1000); {
		mid := lo + ahead
		if hi != 0 {
			mid = lo + (hi-lo)/2
		}
		ch, err := look(mid)
		if err != nil {
			return err
		}
		switch {
		case ch.Newest == 0:
			hi = mid
		case ch.Newest < lo:
			return nil // it changes under our hands; next time
		default:
			lo, found, ahead = max(lo+1, ch.Newest), ch, ahead*8
		}
	}
	w.mark.Store(lo + 1)
	w.tops = nil
	return nil
}

// read is one read, behind everybody else.
func (w *watcher) read(scan ChangeScan) (Changes, error) {
	c := w.cache
	if err := c.acquire(c.ctx, background); err != nil {
		return Changes{}, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.ReadTimeout)
	ch, err := w.source.ScanChanges(ctx, scan)
	cancel()
	c.release(background, began, err)
	n := &c.stats.watch
	n.reads.Add(1)
	n.rows.Add(int64(ch.Rows))
	n.bytes.Add(int64(ch.Bytes))
	return ch, err
}

// watched gives the range of meta's rows from the first to the last table that
// routes are held for; nil if there is none.
func (c *Cache) watched() (start, stop []byte) {
	for _, t := range *c.tables.Load() {
		if t.isMeta || t.root.Load().n == 0 {
			continue
		}
		lo, hi := meta.FirstRow(t.name), meta.StopRow(t.name)
		if start == nil || meta.CompareRows(lo, start) < 0 {
			start = lo
		}
		if stop == nil || meta.CompareRows(hi, stop) > 0 {
			stop = hi
		}
	}
	return start, stop
}

// holds says whether there are routes of the table.
func (c *Cache) holds(table []byte) bool {
	name, err := meta.ParseTableName(string(table))
	if err != nil {
		return false
	}
	t := c.lookupTable(name)
	return t != nil && !t.isMeta && t.root.Load().n > 0
}

// apply takes changed rows into the index: those of regions that touch known
// ones. Learning regions that nobody has asked for is not its business. since
// is the coarse time of the reading's beginning.
func (c *Cache) apply(changes []Change, since uint32) {
	for len(changes) > 0 {
		name := changes[0].Region.Table
		n := 1
		for n < len(changes) && changes[n].Region.Table == name {
			n++
		}
		if t := c.lookupTable(name); t != nil && !t.isMeta {
			c.applyTo(t, changes[:n], since)
		}
		changes = changes[n:]
	}
}

func (c *Cache) applyTo(t *table, changes []Change, since uint32) {
	root := t.root.Load()
	var open []meta.Location
	for i := range changes {
		l := changes[i].Location
		if changes[i].NameOnly {
			r := root.floor(l.Region.Start)
			if r == nil || r.id != l.Region.ID || !bytes.Equal(r.startKey(), l.Region.Start) {
				continue
			}
			l.Region = r.Region()
		}
		switch {
		case l.Region.Split, l.Region.Offline, isGone(l.State):
			t.disown(root, &l.Region, since)
		case isOpen(l.State) && !l.Server.IsZero() && root.meets(&l.Region):
			open = append(open, l)
		}
	}
	open = t.ascending(open, false)
	routes := t.makeRoutes(open, FromMeta)
	for _, n := range routes {
		// They are not used by being learned: what nobody uses is to be
		// forgotten in spite of its moving about.
		if o := root.floor(n.startKey()); o != nil && o.endsAfter(n.startKey()) {
			n.state.Store(n.state.Load()&(1<<stateUsedShift-1) | o.state.Load()&^(1<<stateUsedShift-1))
		}
	}
	added, removed := t.publish(routes)
	t.noteReplicas(open)
	c.settled(t, added, removed)
	c.stats.watch.published.Add(int64(len(added)))
}

// isGone says whether a region in this state is certainly not served where its
// row says. While it is closing, or about to be split or merged, it is, up to a
// moment that its server knows best.
func isGone(state string) bool {
	switch state {
	case "CLOSED", "ABNORMALLY_CLOSED", "OPENING", "FAILED_OPEN", "OFFLINE", "SPLIT", "MERGED":
		return true
	}
	return false
}

// disown rejects the route of a region that meta says is closed, so that its
// callers wait at its gate instead of asking a server that has given it up.
// A route learned since the reading began may be better than what was read, and
// a hint names a place that meta has not heard of.
func (t *table) disown(root *root, region *meta.Region, since uint32) {
	r := root.floor(region.Start)
	if r == nil || r.id != region.ID || !bytes.Equal(r.startKey(), region.Start) ||
		!r.Valid() || r.Origin() == FromHint || int32(r.learned.Load()-since) >= 0 {
		return
	}
	r.reject()
	t.cache.stats.watch.disowned.Add(1)
}

// meets says whether the region overlaps one that is known.
func (r *root) meets(region *meta.Region) bool {
	k := r.seek(region.Start, false)
	if prev := r.get(k); prev != nil && prev.endsAfter(region.Start) {
		return true
	}
	next := r.get(r.next(k))
	return next != nil && (len(region.End) == 0 || bytes.Compare(next.startKey(), region.End) < 0)
}
