package cluster

import (
	"bytes"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// AddRule adds a rule behind the others. The location of one that makes
// hbase:meta name a wrong server may be given in any form FindServer takes; a
// server that is none of ours is host,port,startcode.
func (c *Cluster) AddRule(r chaos.Rule) (uint64, error) {
	if r.Action != chaos.MetaStale {
		return c.rules.Add(r)
	}
	if r.Location != "" {
		name, err := meta.ParseServerName(r.Location)
		if err != nil {
			i, err := c.FindServer(r.Location)
			if err != nil {
				return 0, fmt.Errorf("%w: location: %w", chaos.ErrBadRule, err)
			}
			if name, err = c.ServerName(i); err != nil {
				return 0, fmt.Errorf("%w: location: %w", chaos.ErrBadRule, err)
			}
		}
		r.Location = name.String()
	}
	return c.rules.AddWith(r, c.catalog.State())
}

// lie is what hbase:meta shows in place of a region, as the rules want it.
func (c *Cluster) lie(s *catalog.State, r *catalog.Region, behind []byte) []*catalog.Region {
	truth := []*catalog.Region{r}
	if !c.rules.Lying() {
		return truth
	}
	var only chaos.Action
	if behind != nil {
		if meta.CompareRows(overlapping(r, r.Info.End).Name, behind) < 0 {
			return nil
		}
		truth, only = nil, chaos.MetaOverlap
	}
	rule, picture, ok := c.rules.Lie(chaos.Region{Table: r.Info.Table.String(), Encoded: r.Encoded, Start: r.Info.Start, End: r.Info.End}, only)
	if !ok {
		return truth
	}
	switch rule.Action {
	case chaos.MetaHole:
		return nil
	case chaos.MetaNoServer:
		x := *r
		x.Server, x.Target, x.OpenSeq, x.Replicas = meta.ServerName{}, meta.ServerName{}, meta.NoSeqNum, nil
		return []*catalog.Region{&x}
	case chaos.MetaStale:
		if rule.Location == "" {
			old, ok := picture.(*catalog.State)
			if !ok {
				return truth
			}
			if x := old.Region(r.Encoded); x != nil {
				return []*catalog.Region{x}
			}
			return nil
		}
		name, err := meta.ParseServerName(rule.Location)
		if err != nil {
			return truth // AddRule has parsed it before
		}
		x := *r
		x.Server, x.Target = name, name
		return []*catalog.Region{&x}
	case chaos.MetaOverlap:
		if r.Parent() {
			return truth
		}
		end := rule.End
		if len(end) == 0 {
			end = endBehind(s, r)
		}
		return append(truth, overlapping(r, end))
	}
	return truth
}

// overlapping makes a region that begins where r does, and is younger.
func overlapping(r *catalog.Region, end []byte) *catalog.Region {
	x := catalog.NewRegion(meta.Region{Table: r.Info.Table, Start: r.Info.Start, End: end, ID: r.Info.ID + 1}, r.StateTime)
	x.State, x.Server, x.Target, x.OpenSeq = pb.RegionState_OPEN, r.Server, r.Target, r.OpenSeq
	return x
}

// endBehind is where the region behind r ends.
func endBehind(s *catalog.State, r *catalog.Region) []byte {
	if len(r.Info.End) == 0 {
		return nil
	}
	if next := s.Holding(r.Info.Table, r.Info.End); next != nil && !bytes.Equal(next.Name, r.Name) {
		return next.Info.End
	}
	return nil
}
