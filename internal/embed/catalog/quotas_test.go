package catalog

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func TestQuotasAndPeers(t *testing.T) {
	kv, now := &memKV{}, int64(7)
	c := open(t, kv, &now)
	err := c.Update(func(tx *Tx) error {
		AddQuotaTable(tx)
		AddQuotaTable(tx)
		for _, k := range [][2]string{{"u.b", "s.t"}, {"u.b", "s"}, {"t.t", "s"}, {"n.x", "s"}, {"exceedThrottleQuota", "s"}} {
			tx.SetQuota(k[0], k[1], []byte(k[0]+k[1]))
		}
		tx.SetQuota("n.x", "s", nil)
		tx.SetSetting("switch.other", "1")
		for _, id := range []string{"2", "1"} {
			tx.PutPeer(&pb.ReplicationPeerDescription{Id: &id, State: &pb.ReplicationState{State: pb.ReplicationState_DISABLED.Enum()}, Config: &pb.ReplicationPeer{}})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// What a restart finds is the same.
	for _, c := range []*Catalog{c, open(t, kv, &now)} {
		view := c.Virtual(QuotaTable)
		for _, tt := range []struct {
			start    string
			reversed bool
			want     string
		}{
			{"", false, "exceedThrottleQuota/s t.t/s u.b/s,s.t"},
			{"t", false, "t.t/s u.b/s,s.t"},
			{"t.t", true, "t.t/s exceedThrottleQuota/s"},
			{"v", false, ""},
		} {
			var start []byte
			if tt.start != "" {
				start = []byte(tt.start)
			}
			var got []string
			for row := range view.Rows(start, tt.reversed, 0) {
				var qs []string
				for _, cell := range row {
					if !bytes.Equal(cell.Row, row[0].Row) || string(cell.Value) != string(cell.Row)+string(cell.Qualifier) || string(cell.Family) != "q" || cell.Timestamp <= 0 {
						t.Errorf("cell %+v", cell)
					}
					qs = append(qs, string(cell.Qualifier))
				}
				got = append(got, string(row[0].Row)+"/"+strings.Join(qs, ","))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("from %q, reversed %v: %v, want %s", tt.start, tt.reversed, got, tt.want)
			}
		}
		s := c.State()
		if got := string(s.Quota("u.b", "s.t")); got != "u.bs.t" || s.Quota("n.x", "s") != nil {
			t.Errorf("%q, %q", got, s.Quota("n.x", "s"))
		}
		var ids []string
		for p := range s.Peers() {
			ids = append(ids, p.GetId())
		}
		if !slices.Equal(ids, []string{"1", "2"}) || s.Peer("3") != nil || s.Peer("2").GetState().GetState() != pb.ReplicationState_DISABLED {
			t.Errorf("peers %v, %v", ids, s.Peer("2"))
		}
	}
	err = c.Update(func(tx *Tx) error {
		tx.ClearQuotas()
		tx.ClearPeers()
		return nil
	})
	if s := c.State(); err != nil || s.Quota("u.b", "s") != nil || s.Peer("1") != nil || s.Setting("switch.other") != "1" {
		t.Errorf("after clearing: %v, %v, %v", err, s.Quota("u.b", "s"), s.Peer("1"))
	}
}
