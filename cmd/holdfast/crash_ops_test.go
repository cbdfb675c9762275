package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
)

// crashOps change the cluster's shape, or its files, under the writes: one of
// them in each round, again and again until the kill. The name given belongs to
// the one call; load is a directory for it.
var crashOps = []struct {
	name string
	do   func(s *crashState, ctx context.Context, c *hbase.Client, load, name string) error
}{
	{"create", func(s *crashState, ctx context.Context, c *hbase.Client, _, name string) error {
		return s.made("made"+name, 0, c.Admin().CreateTable(ctx, admin.NewTable("made"+name, admin.NewFamily("f")), []byte("m")))
	}},
	{"split", func(s *crashState, ctx context.Context, c *hbase.Client, _, name string) error {
		if err := c.Admin().SplitTable(ctx, crashTable, []byte("3/"+name)); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.splits++
		return nil
	}},
	{"major compaction", func(s *crashState, ctx context.Context, c *hbase.Client, _, _ string) error {
		// The answer comes before the compaction is over.
		return c.Admin().MajorCompact(ctx, crashTable, "")
	}},
	{"snapshot", func(s *crashState, ctx context.Context, c *hbase.Client, _, name string) error {
		n := s.count()
		if err := c.Admin().Snapshot(ctx, "snap"+name, crashTable, admin.SnapshotOptions{}); err != nil {
			return err
		}
		return s.made("of"+name, n, c.Admin().CloneSnapshot(ctx, "snap"+name, "of"+name, admin.CloneOptions{}))
	}},
	{"bulk load", func(s *crashState, ctx context.Context, c *hbase.Client, load, name string) error {
		return s.load(ctx, c, filepath.Join(load, name), bulkPrefix+name)
	}},
	{"merge", func(s *crashState, ctx context.Context, c *hbase.Client, _, name string) error {
		table := "merged" + name
		if err := s.made(table, 0, c.Admin().CreateTable(ctx, admin.NewTable(table, admin.NewFamily("f")), []byte("b"), []byte("c"), []byte("d"))); err != nil {
			return err
		}
		rs, err := c.Admin().Regions(ctx, table)
		for i := 0; err == nil && i < len(rs); i += 2 {
			err = c.Admin().MergeRegions(ctx, []string{rs[i].Region.EncodedName(), rs[i+1].Region.EncodedName()}, false)
		}
		return err
	}},
	{"clone", func(s *crashState, ctx context.Context, c *hbase.Client, _, name string) error {
		adm, snapshot := c.Admin(), "base"+name
		n := s.count()
		err := adm.Snapshot(ctx, snapshot, crashTable, admin.SnapshotOptions{})
		for i := 0; err == nil && i < 5; i++ {
			clone := fmt.Sprintf("clone%s-%d", name, i)
			err = s.made(clone, n, adm.CloneSnapshot(ctx, snapshot, clone, admin.CloneOptions{}))
		}
		return err
	}},
	{"drop and alter", func(s *crashState, ctx context.Context, c *hbase.Client, _, name string) error {
		adm, table := c.Admin(), "brief"+name
		err := adm.CreateTable(ctx, admin.NewTable(table, admin.NewFamily("f"), admin.NewFamily("g")))
		if err != nil {
			return err
		}
		tab, err := c.Table(table)
		for i := 0; err == nil && i < 20; i++ {
			err = tab.Put(ctx, hbase.NewPut(fmt.Sprint("r", i)).Set("f", "q", []byte("v")).Set("g", "q", []byte("v")))
		}
		if err == nil {
			err = adm.DeleteFamily(ctx, table, "g")
		}
		if err == nil {
			err = adm.DisableTable(ctx, table)
		}
		if err == nil {
			err = adm.DeleteTable(ctx, table)
		}
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.gone[table] = true
		}
		return err
	}},
}

// count is how many rows are acknowledged.
func (s *crashState) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order)
}

// made notes a table that was made, unless err says otherwise; it must hold the
// first rows of order.
func (s *crashState) made(table string, rows int, err error) error {
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tables[table] = rows
	}
	return err
}

// verifyTables looks for the tables that were made and dropped, and drops the
// copies, so that the next rounds do not take longer and longer.
func (s *crashState) verifyTables(ctx context.Context, c *hbase.Client) error {
	adm := c.Admin()
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		if ok, err := adm.TableExists(ctx, name); err != nil || !ok {
			return fmt.Errorf("table %s was made and is there: %v, %w", name, ok, err)
		}
		n := s.tables[name]
		if n == 0 {
			continue
		}
		tab, err := c.Table(name)
		if err != nil {
			return err
		}
		found := map[string]bool{}
		for row, err := range tab.Scan(ctx, hbase.NewScan()).Rows() {
			if err != nil {
				return fmt.Errorf("copy %s: %w", name, err)
			}
			found[string(row.Row)] = true
		}
		for _, key := range s.order[:n] {
			if !found[key] {
				return fmt.Errorf("row %q was acknowledged before the copy %s was begun, and is not in it", key, name)
			}
		}
		if err := errors.Join(adm.DisableTable(ctx, name), adm.DeleteTable(ctx, name)); err != nil {
			return err
		}
		delete(s.tables, name)
		s.gone[name] = true
	}
	for name := range s.gone {
		if ok, err := adm.TableExists(ctx, name); err != nil || ok {
			return fmt.Errorf("table %s was dropped and is there: %v, %w", name, ok, err)
		}
	}
	snapshots, err := adm.ListSnapshots(ctx, "")
	for i := range snapshots {
		err = errors.Join(err, adm.DeleteSnapshot(ctx, snapshots[i].Name))
	}
	return err
}

// bulkPrefix begins the keys of loaded rows, bulkRows of each load.
const (
	bulkPrefix = "7/"
	bulkRows   = 2000
)

// load loads rows of two families, all or nothing.
func (s *crashState) load(ctx context.Context, c *hbase.Client, dir, prefix string) error {
	keys := make([]string, bulkRows)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s/%05d", prefix, i)
	}
	for _, column := range [][2]string{{"f", "a"}, {"g", "b"}} {
		if err := writeHFile(filepath.Join(dir, column[0], "file"), column[0], column[1], keys); err != nil {
			return err
		}
	}
	if _, err := c.Admin().BulkLoad(ctx, crashTable, dir); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bulk[prefix] = true
	s.acknowledged(keys...)
	return nil
}

func writeHFile(path, family, qualifier string, keys []string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w, err := hfile.NewWriter(f, hfile.WriterOptions{})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := w.Append(&cells.Cell{Row: []byte(key), Family: []byte(family), Qualifier: []byte(qualifier), Timestamp: 1, Type: cells.Put, Value: []byte("value of " + key)}); err != nil {
			return err
		}
	}
	return w.Close()
}

// churn is a few rows that are put and deleted all the time by one writer, so
// that there is something to compact. Nothing that was deleted may come back.
type churn struct {
	// Per row, the value of the last write that was acknowledged, and of the
	// last one begun; "" for a delete.
	acked, begun map[string]string
	done         int
}

const churnPrefix = "churn"

func newChurn() churn { return churn{acked: map[string]string{}, begun: map[string]string{}} }

func (c *churn) step(ctx context.Context, tab *hbase.Table, n int) error {
	row := fmt.Sprint(churnPrefix, n%30)
	if _, ok := c.begun[row]; !ok {
		c.acked[row] = ""
	}
	var err error
	if n/30%3 == 2 {
		c.begun[row] = ""
		err = tab.Delete(ctx, hbase.NewDelete(row))
	} else {
		c.begun[row] = fmt.Sprint(c.done)
		err = tab.Put(ctx, hbase.NewPut(row).Set("f", "a", []byte(c.begun[row])))
	}
	if err == nil {
		c.acked[row] = c.begun[row]
		c.done++
	}
	return err
}

// check compares the rows found with what they may be; what is there is from
// then on what was acknowledged.
func (c *churn) check(found map[string]string) (wrong []string) {
	for row, want := range c.acked {
		if got := found[row]; got != want && got != c.begun[row] {
			wrong = append(wrong, fmt.Sprintf("%s is %q, last acknowledged was %q, last begun %q", row, got, want, c.begun[row]))
		}
		c.acked[row], c.begun[row] = found[row], found[row]
	}
	return wrong
}
