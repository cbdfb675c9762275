package minihbase_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// losing is a cluster with a table of two regions, on servers 0 and 1, whose
// clock stands: what is not synced stays so.
type losing struct {
	*testing.T
	*minihbase.Cluster
	client *hbase.Client
	tab    *hbase.Table
}

func newLosing(t *testing.T, o minihbase.Options) *losing {
	o.Clock = &minihbase.Clock{}
	c, err := minihbase.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	o.Clock.Freeze(o.Clock.Now())
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := client.Admin().CreateTable(t.Context(), admin.NewTable("t", admin.NewFamily("f")), []byte("m")); err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	l := &losing{t, c, client, tab}
	l.move("a", 0)
	l.move("z", 1)
	return l
}

func (l *losing) move(row string, to int) {
	l.Helper()
	r, err := l.Locate("t", []byte(row))
	if err == nil && r.Index != to {
		err = l.MoveRegion(l.Context(), r.Encoded, to)
	}
	if err != nil {
		l.Fatal(err)
	}
}

func (l *losing) put(row string, d hbase.Durability) {
	l.Helper()
	p := hbase.NewPut(row).Set("f", "q", []byte("v"))
	p.Durability = d
	if err := l.tab.Put(l.Context(), p); err != nil {
		l.Fatal(err)
	}
}

// rows gives the keys that are there.
func (l *losing) rows() string {
	l.Helper()
	var keys []string
	for r, err := range l.tab.Scan(l.Context(), hbase.NewScan()).Rows() {
		if err != nil {
			l.Fatal(err)
		}
		keys = append(keys, string(r.Row))
	}
	return strings.Join(keys, " ")
}

func (l *losing) want(what, want string) {
	l.Helper()
	if got := l.rows(); got != want {
		l.Errorf("%s: rows %q, want %q", what, got, want)
	}
}

// lostEvents counts the cells that events tell of.
func (l *losing) lostEvents() (n int) {
	events, _ := l.Events().Query(minihbase.EventFilter{Method: "lose"}, 0, 0)
	for _, e := range events {
		var k int
		if _, err := fmt.Sscan(e.Detail, &k); err != nil {
			l.Errorf("event %+v: %v", e, err)
		}
		n += k
	}
	return n
}

func TestLoseUnsynced(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    minihbase.Options
		do   func(l *losing) error
		want string
		lost int
	}{
		{"a plain kill loses nothing", minihbase.Options{}, func(l *losing) error {
			return l.KillRegionServer(0)
		}, "a1 a2 a3 a4 z1 z2", 0},
		{"a kill that loses", minihbase.Options{}, func(l *losing) error {
			return l.KillAndLose(0)
		}, "a1 a2 z1 z2", 2},
		{"after a flush", minihbase.Options{}, func(l *losing) error {
			if err := l.client.Admin().Flush(l.Context(), "t"); err != nil {
				return err
			}
			return l.KillAndLose(0)
		}, "a1 a2 a3 a4 z1 z2", 0},
		{"after a move", minihbase.Options{}, func(l *losing) error {
			l.move("a", 2)
			return l.KillAndLose(2)
		}, "a1 a2 a3 a4 z1 z2", 0},
		{"after a split", minihbase.Options{}, func(l *losing) error {
			r, err := l.Locate("t", []byte("a"))
			if err == nil {
				err = l.Split(l.Context(), r.Encoded, []byte("a2"))
			}
			if err != nil {
				return err
			}
			return l.KillAndLose(0)
		}, "a1 a2 a3 a4 z1 z2", 0},
		{"after a stop", minihbase.Options{LoseUnsynced: true}, func(l *losing) error {
			return l.StopRegionServer(l.Context(), 0)
		}, "a1 a2 a3 a4 z1 z2", 0},
		{"after a second", minihbase.Options{}, func(l *losing) error {
			l.Clock().Advance(1e9)
			return l.KillAndLose(0)
		}, "a1 a2 a3 z1 z2", 1},
		{"after a synced write", minihbase.Options{}, func(l *losing) error {
			l.put("b", hbase.SyncWAL)
			return l.KillAndLose(0)
		}, "a1 a2 a3 b z1 z2", 1},
		{"a cluster that loses", minihbase.Options{LoseUnsynced: true}, func(l *losing) error {
			return l.KillRegionServer(0)
		}, "a1 a2 z1 z2", 2},
		{"an expired session", minihbase.Options{LoseUnsynced: true}, func(l *losing) error {
			return l.ExpireSession(0)
		}, "a1 a2 z1 z2", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLosing(t, tt.o)
			l.put("a1", hbase.SyncWAL)
			l.put("a2", hbase.UseDefault)
			l.put("a3", hbase.AsyncWAL)
			l.put("a4", hbase.SkipWAL)
			l.put("z1", hbase.SkipWAL)
			l.put("z2", hbase.UseDefault)
			l.want("before", "a1 a2 a3 a4 z1 z2")
			if err := tt.do(l); err != nil {
				t.Fatal(err)
			}
			l.want("after", tt.want)
			if n := l.lostEvents(); n != tt.lost {
				t.Errorf("events tell of %d cells, want %d", n, tt.lost)
			}
		})
	}
}

func TestLoseUnsyncedControl(t *testing.T) {
	c, k := controlled(t, minihbase.Options{})
	for _, path := range []string{"stop", "start", "pause", "resume", "hang", "slow", "expire", "reset-connections"} {
		resp, err := http.Post(c.Control()+"/"+path, "application/json", strings.NewReader(`{"server":"0","loseUnsynced":true}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	if err := k.KillAndLose(t.Context(), "master"); code(err) != http.StatusBadRequest {
		t.Errorf("master: %v", err)
	}
	if err := k.KillAndLose(context.Background(), "0"); err != nil {
		t.Error(err)
	}
	if state := c.Servers()[0].State; state != "dead" {
		t.Errorf("server 0 is %s", state)
	}
}
