package doctor

import (
	"cmp"
	"slices"

	"github.com/holdfast-hbase/holdfast/doctor/checks"
	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// minOffset is the smallest difference of clocks that is worth correcting:
// below it the order of client and server lines of one event is in doubt anyway.
const minOffset = 1500

// clockOffsets estimates how far the clocks of files differ, by ZooKeeper
// sessions that the client and the server side log being made, and moves the
// server side's times. It returns what it moved.
func clockOffsets(c *checks.Case) map[string]int64 {
	type point struct {
		file string
		at   int64
	}
	client, server := map[uint64]point{}, map[uint64]point{}
	for i := range c.Facts {
		f := &c.Facts[i]
		if !f.Has || !f.Stamp.Date || f.Session == 0 {
			continue
		}
		switch f.Kind {
		case checks.ZKEstablished:
			client[f.Session] = point{f.File, f.Stamp.Milli}
		case checks.ZKGranted:
			server[f.Session] = point{f.File, f.Stamp.Milli}
		}
	}
	diffs := map[string][]int64{}
	for id, s := range server {
		if cl, ok := client[id]; ok && cl.file != s.file {
			diffs[s.file] = append(diffs[s.file], cl.at-s.at)
		}
	}
	moved := map[string]int64{}
	for file, d := range diffs {
		slices.Sort(d)
		m := d[len(d)/2]
		if m > -minOffset && m < minOffset {
			continue
		}
		moved[file] = -m
		for i := range c.Facts {
			if f := &c.Facts[i]; f.File == file && f.Has {
				f.Stamp.Milli += m
			}
		}
	}
	return moved
}

const maxTimeline = 400

// timeline merges the facts of all inputs by time, not by place: lines of
// threads that woke at once stand out of order.
func timeline(c *checks.Case) []finding.Moment {
	var out []finding.Moment
	for i := range c.Facts {
		f := &c.Facts[i]
		if !f.Has || f.Kind == checks.Hint || f.Kind == checks.Setting || f.Kind == checks.Kylin {
			continue
		}
		out = append(out, finding.Moment{Time: f.Stamp.String(), Unix: f.Stamp.Milli, File: f.File, Line: f.Line, Kind: f.Kind.String(), Text: f.Text})
	}
	slices.SortStableFunc(out, func(a, b finding.Moment) int { return cmp.Compare(a.Unix, b.Unix) })
	out = slices.CompactFunc(out, func(a, b finding.Moment) bool { return a.File == b.File && a.Line == b.Line })
	if len(out) > maxTimeline {
		out = append(slices.Clone(out[:maxTimeline/2]), out[len(out)-maxTimeline/2:]...)
	}
	return out
}
