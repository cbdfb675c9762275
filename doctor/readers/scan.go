package readers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	blockSize = 1 << 20
	// firstBlock is smaller: most inputs are pasted lines.
	firstBlock = 64 << 10
	tailLimit  = 256 << 10 // how far back a block looks for an entry's start
)

// Scanner looks for words in a stream and hands out the entries that hold any.
type Scanner[T any] struct {
	Matcher *Matcher
	// Handle judges one entry; hits are those in e.Squeezed, ordered. It runs on
	// several goroutines at once. Line numbers in e count from the block's start:
	// Emit gets what to add.
	Handle func(e *Entry, hits []Hit) []T
	// Emit gets Handle's results, in the order of the input, on the caller's
	// goroutine.
	Emit func(base int64, results []T)
	// Raw, if set, sees every block in order on the caller's goroutine before
	// its results; flagged says that a word of Flags is in it.
	Raw func(block []byte, base int64, flagged bool)
	// Flags are words for Raw.
	Flags map[int]bool
	// Progress, if set, hears of bytes read; it must be fast.
	Progress func(bytes int64)
}

// Stats counts what a scan saw.
type Stats struct {
	Bytes, Lines, Entries int64
	// Sampled counts entries not looked at because thousands of the same shape
	// had been.
	Sampled int64
}

type job[T any] struct {
	data    []byte
	results []T
	lines   int64
	entries int64
	flagged bool
	done    chan struct{}
}

// After sampleAfter entries with the same set of words in a block's order, one
// in sampleEvery is looked at.
const (
	sampleAfter = 4000
	sampleEvery = 32
)

// Scan reads r to its end. Its error is the reader's or the context's.
func (s *Scanner[T]) Scan(ctx context.Context, r io.Reader) (Stats, error) {
	workers := min(max(runtime.GOMAXPROCS(0), 1), 4)
	jobs := make(chan *job[T])
	pending := make([]*job[T], 0, workers+1)
	var shapes shapeCounter
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			w := worker[T]{s: s, shapes: &shapes}
			for j := range jobs {
				w.run(j)
				close(j.done)
			}
		})
	}
	defer wg.Wait()
	defer close(jobs)

	var stats Stats
	var free [][]byte
	finish := func() {
		j := pending[0]
		pending = append(pending[:0], pending[1:]...)
		<-j.done
		if s.Raw != nil {
			s.Raw(j.data, stats.Lines, j.flagged)
		}
		if len(j.results) > 0 {
			s.Emit(stats.Lines, j.results)
		}
		stats.Lines += j.lines
		stats.Entries += j.entries
		free = append(free, j.data[:0])
	}
	var carry []byte
	size := firstBlock
	for {
		if err := ctx.Err(); err != nil {
			for len(pending) > 0 {
				finish()
			}
			return stats, err
		}
		var buf []byte
		if n := len(free); n > 0 {
			buf, free = free[n-1], free[:n-1]
		} else {
			buf = make([]byte, 0, size+size/4)
		}
		buf = append(buf[:0], carry...)
		have := len(buf)
		buf = slices.Grow(buf, size)
		n, err := io.ReadFull(r, buf[have:have+size])
		buf = buf[:have+n]
		size = blockSize
		stats.Bytes += int64(n)
		if s.Progress != nil {
			s.Progress(stats.Bytes)
		}
		last := err != nil
		cut := len(buf)
		if !last {
			cut = cutAt(buf)
		}
		carry = append(carry[:0], buf[cut:]...)
		if cut > 0 {
			j := &job[T]{data: buf[:cut], done: make(chan struct{})}
			for len(pending) > workers {
				finish()
			}
			pending = append(pending, j)
			jobs <- j
		}
		if last {
			for len(pending) > 0 {
				finish()
			}
			stats.Sampled = shapes.skipped.Load()
			if errors.Is(err, io.EOF) || truncatedIsEnd(err) {
				err = nil
			}
			return stats, err
		}
	}
}

// truncatedIsEnd: io.ReadFull reports a short last block as ErrUnexpectedEOF,
// and so does a compressed stream that was cut off. Both are an end.
func truncatedIsEnd(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// cutAt finds where a block can end: before the last line that begins an
// entry, else after the last line end, else anywhere.
func cutAt(b []byte) int {
	limit := max(0, len(b)-tailLimit)
	end := bytes.LastIndexByte(b, '\n') + 1
	if end == 0 {
		return len(b)
	}
	// The last, incomplete line may be a header cut short; look at whole lines.
	for at := end; at > limit; {
		start := bytes.LastIndexByte(b[:at-1], '\n') + 1
		if start < limit {
			break
		}
		if start > 0 && peel(b[start:at-1]).head {
			return start
		}
		at = start
		if at == 0 {
			break
		}
	}
	return end
}

// shapeCounter counts entries by which words they hold, to sample floods.
type shapeCounter struct {
	seen    [1 << 12]atomic.Uint32
	skipped atomic.Int64
}

func (c *shapeCounter) skip(shape uint32) bool {
	n := c.seen[shape&(1<<12-1)].Add(1)
	if n > sampleAfter && n%sampleEvery != 0 {
		c.skipped.Add(1)
		return true
	}
	return false
}

type worker[T any] struct {
	s      *Scanner[T]
	shapes *shapeCounter
	first  []Hit
	second []Hit
	inner  []Hit
	buf    []byte
	entry  Entry
}

func (w *worker[T]) run(j *job[T]) {
	b := j.data
	w.first, w.second = w.s.Matcher.findFast(b, w.first[:0], w.second[:0])
	hits := append(w.first, w.second...)
	w.first = hits
	at, lineNo := 0, int64(0) // lineNo is that of offset at
	done := 0                 // offset up to which entries have been handed out
	for i := 0; i < len(hits); i++ {
		h := hits[i]
		if w.s.Flags[h.Word] {
			j.flagged = true
		}
		if h.End <= done {
			continue
		}
		start := entryStart(b, h.End-1, done)
		end := entryEnd(b, h.End)
		shape := uint32(2166136261)
		for k := i; k < len(hits) && hits[k].End <= end; k++ {
			shape = (shape ^ uint32(hits[k].Word)) * 16777619
		}
		done = end
		if w.shapes.skip(shape) {
			continue
		}
		lineNo += int64(bytes.Count(b[at:start], []byte{'\n'}))
		at = start
		j.results = w.entries(b[start:end], int(lineNo), j.results)
		j.entries++
	}
	j.lines = lineNo + int64(bytes.Count(b[at:], []byte{'\n'}))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		j.lines++
	}
}

// entryStart goes back from at to the line that begins the entry, not before
// floor.
func entryStart(b []byte, at, floor int) int {
	lines := 0
	for {
		start := bytes.LastIndexByte(b[floor:at], '\n') + 1 + floor
		if start == floor {
			return floor
		}
		eol := start + indexOr(b[start:], '\n')
		l := peel(b[start:eol])
		if l.head {
			return start
		}
		lines++
		if lines > maxEntryLines || at-start > maxEntry {
			return start
		}
		at = start - 1
		if at < floor {
			return floor
		}
	}
}

// entryEnd goes on from at to the line that begins the next entry.
func entryEnd(b []byte, at int) int {
	begin := at
	for lines := 0; ; lines++ {
		eol := at + indexOr(b[at:], '\n')
		if eol >= len(b) {
			return len(b)
		}
		next := eol + 1
		if next >= len(b) || lines > maxEntryLines || next-begin > maxEntry {
			return next
		}
		nextEOL := next + indexOr(b[next:], '\n')
		l := peel(b[next:nextEOL])
		if l.head {
			return next
		}
		at = next
	}
}

func indexOr(b []byte, c byte) int {
	if i := bytes.IndexByte(b, c); i >= 0 {
		return i
	}
	return len(b)
}

// entries cuts a stretch of lines into entries and hands them out.
func (w *worker[T]) entries(b []byte, lineNo int, results []T) []T {
	e := &w.entry
	e.lines, e.Has, e.Stamp = e.lines[:0], false, Stamp{}
	flush := func() {
		if len(e.lines) == 0 {
			return
		}
		w.buf = e.squeeze(w.buf)
		w.inner = w.s.Matcher.Find(w.buf, w.inner[:0])
		if len(w.inner) > 0 {
			results = append(results, w.s.Handle(e, w.inner)...)
		}
		e.lines, e.Has, e.Stamp = e.lines[:0], false, Stamp{}
	}
	for len(b) > 0 {
		n := indexOr(b, '\n')
		l := peel(b[:n])
		b = b[min(n+1, len(b)):]
		if l.head {
			flush()
		}
		if l.has && !e.Has {
			e.Stamp, e.Has = l.stamp, true
		}
		text := l.text
		for {
			cut := embeddedHead(text, 1)
			if cut < 0 {
				break
			}
			e.lines = append(e.lines, entryLine{lineNo, text[:cut]})
			flush()
			text = text[cut:]
			e.Stamp, _, e.Has = ParseStamp(text)
		}
		e.lines = append(e.lines, entryLine{lineNo, text})
		lineNo++
	}
	flush()
	return results
}
