package cells

import (
	"bytes"
	"math"
	"slices"
)

// arrival judges cells under NEW_VERSION_BEHAVIOR: a marker hides only what
// was written (by sequence number) before it, and a version is gone once
// MaxVersions others with a larger timestamp had been written before a later
// marker could make room (NewVersionBehaviorTracker in HBase).
//
// Time is cut into eras by the column's DeleteColumn and DeleteFamily markers:
// an era ends with its marker's sequence number, the last one never. In each
// era a cell that existed then takes a place among its versions.
type arrival struct {
	max     int
	family  []era // from the family's head, kept for every column of the row
	column  []era // the present column's, ascending by seq
	qual    []byte
	hasQual bool
	last    struct {
		ts   int64
		seq  uint64
		typ  Type
		have bool
	}
}

// era is the time up to a marker that hides all versions up to ts.
type era struct {
	seq uint64
	ts  int64
	// Markers of single versions inside the era.
	versions []versionMarker
	// parts count the versions that existed before each version marker and,
	// last, at the era's end.
	parts []part
}

type versionMarker struct {
	ts  int64
	seq uint64
}

// part is the state just before the marker with sequence number seq.
type part struct {
	seq  uint64
	puts []uint64 // sequence numbers of versions counted, ascending
}

const endOfTime = math.MaxUint64

func newArrival(maxVersions int) *arrival {
	a := &arrival{max: maxVersions}
	a.reset()
	return a
}

func newEra(seq uint64, ts int64) era {
	return era{seq: seq, ts: ts, parts: []part{{seq: endOfTime}}}
}

func (a *arrival) reset() {
	a.family = append(a.family[:0], newEra(endOfTime, math.MinInt64))
	a.column = a.column[:0]
	a.hasQual, a.last.have = false, false
}

// enter notes the cell's column; if it is another write of the version just
// seen, it returns that one's sequence number.
func (a *arrival) enter(c *Cell) (newer uint64) {
	newColumn := !a.hasQual || !bytes.Equal(a.qual, c.Qualifier)
	if newColumn {
		a.qual = append(a.qual[:0], c.Qualifier...)
		a.hasQual = true
		a.column = a.column[:0]
		for i := range a.family {
			a.column = append(a.column, a.family[i].clone())
		}
	} else if a.last.have && !a.last.typ.IsDelete() && a.last.typ == c.Type && a.last.ts == c.Timestamp {
		return a.last.seq
	}
	a.last.ts, a.last.seq, a.last.typ, a.last.have = c.Timestamp, c.Seq, c.Type, true
	return endOfTime
}

func (e *era) clone() era {
	d := era{seq: e.seq, ts: e.ts, versions: slices.Clone(e.versions)}
	for _, p := range e.parts {
		d.parts = append(d.parts, part{seq: p.seq, puts: slices.Clone(p.puts)})
	}
	return d
}

func (a *arrival) add(c *Cell) {
	switch c.Type {
	case DeleteFamily, DeleteFamilyVersion:
		// Markers of the family come before every column but one without a
		// qualifier, with which they mix: it sees them too.
		if c.Type == DeleteFamily {
			a.family = insertEra(a.family, newEra(c.Seq, c.Timestamp))
		} else {
			eraOf(a.family, c.Seq).addVersion(c)
		}
		if a.hasQual {
			if c.Type == DeleteFamily {
				a.column = insertEra(a.column, newEra(c.Seq, c.Timestamp))
			} else {
				eraOf(a.column, c.Seq).addVersion(c)
			}
		}
	case DeleteColumn:
		a.enter(c)
		a.column = insertEra(a.column, newEra(c.Seq, c.Timestamp))
	case Delete:
		a.enter(c)
		eraOf(a.column, c.Seq).addVersion(c)
	}
}

func insertEra(eras []era, e era) []era {
	at, found := slices.BinarySearchFunc(eras, e.seq, func(e era, seq uint64) int { return cmpUint(e.seq, seq) })
	if found { // two markers of one write: the wider one holds
		if eras[at].ts < e.ts {
			eras[at].ts = e.ts
		}
		return eras
	}
	return slices.Insert(eras, at, e)
}

// eraOf is the era in which sequence number seq falls; the last has no end.
func eraOf(eras []era, seq uint64) *era {
	at, _ := slices.BinarySearchFunc(eras, seq, func(e era, seq uint64) int { return cmpUint(e.seq, seq) })
	return &eras[at]
}

func (e *era) addVersion(c *Cell) {
	e.versions = append(e.versions, versionMarker{c.Timestamp, c.Seq})
	at, found := slices.BinarySearchFunc(e.parts, c.Seq, func(p part, seq uint64) int { return cmpUint(p.seq, seq) })
	if found {
		return
	}
	// Versions already counted (newer timestamps) that existed then.
	n, _ := slices.BinarySearch(e.parts[at].puts, c.Seq)
	e.parts = slices.Insert(e.parts, at, part{seq: c.Seq, puts: slices.Clone(e.parts[at].puts[:n])})
}

// hides judges a put, and counts it where it existed.
func (a *arrival) hides(c *Cell) bool {
	newer := a.enter(c)
	first, _ := slices.BinarySearchFunc(a.column, c.Seq, func(e era, seq uint64) int { return cmpUint(e.seq, seq) })
	for i := first; i < len(a.column); i++ {
		e := &a.column[i]
		deleted := uint64(endOfTime)
		for _, v := range e.versions {
			if v.ts == c.Timestamp && v.seq >= c.Seq {
				deleted = min(deleted, v.seq)
			}
		}
		until := min(newer, deleted)
		for j := range e.parts {
			p := &e.parts[j]
			if p.seq < c.Seq {
				continue
			}
			if p.seq > until {
				break
			}
			if len(p.puts) >= a.max {
				return true
			}
			at, found := slices.BinarySearch(p.puts, c.Seq)
			if !found {
				p.puts = slices.Insert(p.puts, at, c.Seq)
			}
		}
		if deleted < endOfTime || c.Timestamp <= e.ts {
			return true
		}
	}
	return newer < endOfTime
}

func cmpUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
