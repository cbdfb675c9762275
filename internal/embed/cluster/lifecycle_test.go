package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// eventually waits for a condition that background work brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not so within a minute: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func event(t testing.TB, c *Cluster, method string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.events.Wait(ctx, eventlog.Filter{Kind: eventlog.Cluster, Method: method}, 0, 1); err != nil {
		t.Fatalf("no event %q: %v", method, err)
	}
}

func index(t testing.TB, c *Cluster, l meta.Location) int {
	t.Helper()
	i, err := c.FindServer(l.Server.String())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// away moves hbase:meta off a server that a test wants to break alone.
func away(t testing.TB, c *Cluster, i int) {
	t.Helper()
	if at, err := c.FindServer("meta"); err != nil || at == i {
		if err := c.Move(t.Context(), meta.MetaEncodedName, (i+1)%len(c.Servers())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKillAndRestart(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t", "m")
	l := find(t, c, table("t"), "a")
	if err := put(t, l, "a", "1"); err != nil {
		t.Fatal(err)
	}
	i := index(t, c, l)
	away(t, c, i)
	k := client(t, l.Server.Address(), "ClientService")
	if _, err := k.Call("Get", &pb.GetRequest{Region: spec(&l.Region), Get: &pb.Get{Row: []byte("a")}}, &pb.GetResponse{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(i); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the killed server's connection still reads: %v", err)
	}
	if nc, err := net.Dial("tcp", l.Server.Address()); err == nil {
		nc.Close()
		t.Error("the killed server still accepts connections")
	}
	if c.zk.Exists(c.path("rs", l.Server.String())) {
		t.Error("the killed server's znode is still there")
	}
	event(t, c, "recovered")
	n := find(t, c, table("t"), "a")
	if n.Server == l.Server || n.SeqNum <= l.SeqNum {
		t.Errorf("after the kill: %+v, before: %+v", n, l)
	}
	if v, err := get(t, n, "a"); err != nil || v != "1" {
		t.Errorf("get: %q, %v", v, err)
	}
	if err := c.Kill(i); err == nil {
		t.Error("a dead server can be killed")
	}
	var st pb.GetClusterStatusResponse
	if _, err := masterClient(t, c).Call("GetClusterStatus", &pb.GetClusterStatusRequest{}, &st); err != nil {
		t.Fatal(err)
	}
	if d := st.GetClusterStatus().GetDeadServers(); len(d) != 1 || meta.ServerFromProto(d[0]) != l.Server || len(st.GetClusterStatus().GetLiveServers()) != 2 {
		t.Errorf("status: dead %v, %d alive", d, len(st.GetClusterStatus().GetLiveServers()))
	}

	if err := c.StartServer(i); err != nil {
		t.Fatal(err)
	}
	again, err := c.ServerName(i)
	if err != nil || again.Address() != l.Server.Address() || again.StartCode <= l.Server.StartCode {
		t.Errorf("restarted as %s, was %s (%v)", again, l.Server, err)
	}
	if !c.zk.Exists(c.path("rs", again.String())) {
		t.Error("no znode after the restart")
	}
	// The new incarnation knows nothing of the region until it is moved there.
	o := n
	o.Server = again
	if _, err := get(t, o, "a"); remote(err) == nil || remote(err).Class != wire.ClassNotServingRegion {
		t.Errorf("get on the restarted server: %v", err)
	}
	if err := c.Move(t.Context(), n.Region.EncodedName(), i); err != nil {
		t.Fatal(err)
	}
	if v, err := get(t, find(t, c, table("t"), "a"), "a"); err != nil || v != "1" {
		t.Errorf("get after moving back: %q, %v", v, err)
	}
}

// With a session timeout and a recovery delay, a death takes as long to be
// noticed as asked for, and what clients see meanwhile is what a real cluster
// shows.
func TestDeathTakesItsTime(t *testing.T) {
	c := start(t, Options{SessionTimeout: 100 * time.Millisecond, RecoveryDelay: 100 * time.Millisecond})
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	i := index(t, c, l)
	away(t, c, i)
	at := time.Now()
	if err := c.Kill(i); err != nil {
		t.Fatal(err)
	}
	znode := c.path("rs", l.Server.String())
	if !c.zk.Exists(znode) && time.Since(at) < 100*time.Millisecond {
		t.Error("the znode goes before the session timeout")
	}
	eventually(t, "znode gone", func() bool { return !c.zk.Exists(znode) })
	if d := time.Since(at); d < 100*time.Millisecond {
		t.Errorf("znode gone after %v", d)
	}
	if n := find(t, c, table("t"), "a"); n.Server != l.Server && time.Since(at) < 200*time.Millisecond {
		t.Errorf("meta names %s before the recovery delay is over", n.Server)
	}
	event(t, c, "recovered")
	if d := time.Since(at); d < 200*time.Millisecond {
		t.Errorf("recovered after %v", d)
	}
	if n := find(t, c, table("t"), "a"); n.Server == l.Server {
		t.Error("meta still names the dead server")
	}
}

// A restart before anybody has noticed the death is the proof of it.
func TestRestartBeforeNotice(t *testing.T) {
	c := start(t, Options{SessionTimeout: time.Hour})
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	i := index(t, c, l)
	away(t, c, i)
	if err := c.Kill(i); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServer(i); err != nil {
		t.Fatal(err)
	}
	event(t, c, "recovered")
	if n := find(t, c, table("t"), "a"); n.Server == l.Server {
		t.Errorf("meta still names %s", n.Server)
	}
	if c.zk.Exists(c.path("rs", l.Server.String())) {
		t.Error("the old incarnation's znode is still there")
	}
}

func TestMetaServerDies(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t")
	before, seq := c.MetaLocation()
	i, err := c.FindServer("meta")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(i); err != nil {
		t.Fatal(err)
	}
	event(t, c, "recovered")
	after, seq2 := c.MetaLocation()
	if after == before || seq2 <= seq {
		t.Fatalf("meta at %s (%d), before at %s (%d)", after, seq2, before, seq)
	}
	if got := metaZNode(t, c); got != after {
		t.Errorf("znode says %s", got)
	}
	if len(metaScan(t, c, table("t"))) != 1 {
		t.Error("meta lost the table")
	}
	// A move is seen the same way.
	if err := c.Move(t.Context(), meta.MetaEncodedName, -1); err != nil {
		t.Fatal(err)
	}
	moved, _ := c.MetaLocation()
	if moved == after || metaZNode(t, c) != moved {
		t.Errorf("meta moved to %s, znode says %s", moved, metaZNode(t, c))
	}
}

// metaZNode reads the znode as a client does.
func metaZNode(t testing.TB, c *Cluster) meta.ServerName {
	t.Helper()
	var p pb.MetaRegionServer
	znode(t, c, c.path("meta-region-server"), &p)
	if p.GetState() != pb.RegionState_OPEN {
		t.Errorf("meta's znode state is %s", p.GetState())
	}
	return meta.ServerFromProto(p.GetServer())
}

func znode(t testing.TB, c *Cluster, path string, m wire.Unmarshaler) {
	t.Helper()
	b, _, err := c.zk.Get(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 9 || b[0] != 0xff {
		t.Fatalf("%s: %q has no header", path, b)
	}
	n := int(b[1])<<24 | int(b[2])<<16 | int(b[3])<<8 | int(b[4])
	if n < 1 || n > 65_000 || len(b) < 5+n+4 {
		t.Fatalf("%s: id of %d bytes", path, n)
	}
	body, ok := bytes.CutPrefix(b[5+n:], []byte("PBUF"))
	if !ok {
		t.Fatalf("%s: no PBUF", path)
	}
	if err := m.UnmarshalVT(body); err != nil {
		t.Fatal(err)
	}
}

func TestZNodes(t *testing.T) {
	c := start(t, Options{Servers: 2, BackupMasters: 1})
	create(t, c, "t")
	var id pb.ClusterId
	znode(t, c, "/hbase/hbaseid", &id)
	if id.GetClusterId() != c.ClusterID() || len(id.GetClusterId()) != 36 {
		t.Errorf("cluster id %q", id.GetClusterId())
	}
	var m pb.Master
	znode(t, c, "/hbase/master", &m)
	if meta.ServerFromProto(m.GetMaster()) != c.ActiveMaster() {
		t.Errorf("master znode %v", &m)
	}
	if _, st, _ := c.zk.Get("/hbase/master"); st.EphemeralOwner == 0 {
		t.Error("the master's znode is not ephemeral")
	}
	rs, _ := c.zk.Children("/hbase/rs")
	if len(rs) != 2 {
		t.Errorf("rs: %v", rs)
	}
	var info pb.RegionServerInfo
	znode(t, c, "/hbase/rs/"+rs[0], &info)
	if v := info.GetVersionInfo(); v.GetVersion() != "2.6.4" || v.GetVersionMajor() != 2 || v.GetVersionMinor() != 6 {
		t.Errorf("version info %v", v)
	}
	backup, _ := c.zk.Children("/hbase/backup-masters")
	if len(backup) != 1 {
		t.Errorf("backup masters: %v", backup)
	}
	var up pb.ClusterUp
	znode(t, c, "/hbase/running", &up)
	eventually(t, "table's znode", func() bool { return c.zk.Exists("/hbase/table/t") })
	var ts pb.DeprecatedTableState
	znode(t, c, "/hbase/table/t", &ts)
	if ts.GetState() != pb.DeprecatedTableState_ENABLED {
		t.Errorf("table state %v", ts.GetState())
	}
	if err := mustMaster(t, c).DropTable(t.Context(), table("t")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "table's znode gone", func() bool { return !c.zk.Exists("/hbase/table/t") })
	// Every znode that clients read has content.
	if _, err := mustStat(c, "/hbase/namespace/default"); err != nil {
		t.Error(err)
	}
}

func mustStat(c *Cluster, path string) (int, error) {
	b, _, err := c.zk.Get(path)
	if err == nil && len(b) == 0 {
		err = fmt.Errorf("%s is empty", path)
	}
	return len(b), err
}

func TestStopGivesHints(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	i := index(t, c, l)
	k := client(t, l.Server.Address(), "ClientService")
	done := make(chan error, 1)
	// A rule holds one call, so that the stop has something to wait for.
	id, err := c.rules.Add(holdPuts())
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- put(t, l, "a", "1") }()
	if err := c.rules.Wait(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(t.Context(), i) }()
	event(t, c, "move")
	_, err = k.Call("Get", &pb.GetRequest{Region: spec(&l.Region), Get: &pb.Get{Row: []byte("a")}}, &pb.GetResponse{})
	if r := remote(err); r == nil || r.Moved == nil && r.Class != wire.ClassRegionServerStopped {
		t.Errorf("get on a server that stops: %v", err)
	}
	if err := c.rules.Remove(id); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil && remote(err) == nil {
		t.Errorf("the call that was running: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if n := find(t, c, table("t"), "a"); n.Server == l.Server {
		t.Error("the region is still there")
	}
	if c.zk.Exists(c.path("rs", l.Server.String())) {
		t.Error("znode of a stopped server")
	}
}

// A paused server that misses its session is declared dead, and finds out when
// it is resumed.
func TestPauseBeyondSession(t *testing.T) {
	c := start(t, Options{SessionTimeout: 50 * time.Millisecond})
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	i := index(t, c, l)
	away(t, c, i)
	if err := c.Pause(i); err != nil {
		t.Fatal(err)
	}
	event(t, c, "recovered")
	if n := find(t, c, table("t"), "a"); n.Server == l.Server {
		t.Error("the region was not moved")
	}
	if err := c.Resume(i); err != nil {
		t.Fatal(err)
	}
	if s := c.Servers()[i]; s.State != Dead {
		t.Errorf("resumed as %s", s.State)
	}
}

// One that is resumed in time goes on.
func TestPauseWithinSession(t *testing.T) {
	// A loaded machine may not be in time at the first try.
	for timeout := 50 * time.Millisecond; ; timeout *= 4 {
		c := start(t, Options{SessionTimeout: timeout})
		at := time.Now()
		if err := c.Pause(1); err != nil {
			t.Fatal(err)
		}
		if err := c.Resume(1); err != nil {
			t.Fatal(err)
		}
		if time.Since(at) >= timeout {
			continue
		}
		time.Sleep(2 * timeout)
		if s := c.Servers()[1]; s.State != Running || !c.zk.Exists(c.path("rs", s.Name)) {
			t.Errorf("a short pause killed the server: %+v", s)
		}
		return
	}
}

func TestExpireSession(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	i := index(t, c, l)
	away(t, c, i)
	if err := c.Expire(i); err != nil {
		t.Fatal(err)
	}
	event(t, c, "recovered")
	if n := find(t, c, table("t"), "a"); n.Server == l.Server {
		t.Error("the region was not moved")
	}
}

func TestMasterFailover(t *testing.T) {
	c := start(t, Options{BackupMasters: 1})
	create(t, c, "t")
	first := c.ActiveMaster()
	backup := c.MasterSlots()[1]
	if backup.Active || !backup.Running {
		t.Fatalf("backup master is %+v", backup)
	}
	k := client(t, backup.Address, "MasterService")
	if _, err := k.Call("IsMasterRunning", &pb.IsMasterRunningRequest{}, &pb.IsMasterRunningResponse{}); remote(err) == nil || remote(err).Class != wire.ClassServerNotRunningYet || remote(err).DoNotRetry {
		t.Errorf("the backup answers %v", err)
	}
	if err := c.KillMaster(0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "backup takes over", func() bool { n := c.ActiveMaster(); return !n.IsZero() && n != first })
	var p pb.Master
	eventually(t, "master's znode", func() bool { return c.zk.Exists("/hbase/master") })
	znode(t, c, "/hbase/master", &p)
	if meta.ServerFromProto(p.GetMaster()) != c.ActiveMaster() {
		t.Errorf("znode names %v", p.GetMaster())
	}
	create(t, c, "u")

	// Without any master data is served, and what dies meanwhile is taken care
	// of by the next one.
	if err := c.StopMaster(1); err != nil {
		t.Fatal(err)
	}
	if n := c.ActiveMaster(); !n.IsZero() || c.zk.Exists("/hbase/master") {
		t.Errorf("active master %s", n)
	}
	l := find(t, c, table("t"), "a")
	if err := put(t, l, "a", "1"); err != nil {
		t.Errorf("put without a master: %v", err)
	}
	i := index(t, c, l)
	if err := c.Kill(i); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Master(); !errors.Is(err, ErrNoMaster) {
		t.Errorf("Master: %v", err)
	}
	if err := c.StartMaster(0); err != nil {
		t.Fatal(err)
	}
	if n := c.ActiveMaster(); n.Address() != first.Address() || n.StartCode <= first.StartCode {
		t.Errorf("restarted as %s, was %s", n, first)
	}
	eventually(t, "region open again", func() bool {
		n, _ := c.MetaLocation()
		r, err := c.Locate(table("t"), []byte("a"))
		return n != (meta.ServerName{}) && n != l.Server && err == nil && r.Server != l.Server.String()
	})
	if v, err := get(t, find(t, c, table("t"), "a"), "a"); err != nil || v != "1" {
		t.Errorf("get: %q, %v", v, err)
	}
}

// All servers die; regions wait for one to come back.
func TestNoServers(t *testing.T) {
	c := start(t, Options{Servers: 2})
	create(t, c, "t", "m")
	l := find(t, c, table("t"), "a")
	if err := put(t, l, "a", "1"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := c.Kill(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.StartServer(1); err != nil {
		t.Fatal(err)
	}
	name, _ := c.ServerName(1)
	eventually(t, "all regions on the one server", func() bool {
		for _, r := range c.Regions(meta.TableName{}, 0) {
			if r.Server != name.String() || r.State != "OPEN" {
				return false
			}
		}
		return true
	})
	if v, err := get(t, find(t, c, table("t"), "a"), "a"); err != nil || v != "1" {
		t.Errorf("get: %q, %v", v, err)
	}
}

// A gap makes transitions visible: hbase:meta says OPENING, the target answers
// RegionOpening, and it all ends well.
func TestTransitionGap(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	i := index(t, c, l)
	away(t, c, i)
	to := (i + 1) % 3
	c.controls.SetTransitionGap(150 * time.Millisecond)
	done := make(chan error, 1)
	go func() { done <- c.Move(t.Context(), l.Region.EncodedName(), to) }()
	target, _ := c.ServerName(to)
	eventually(t, "OPENING in meta", func() bool { return find(t, c, table("t"), "a").State == "OPENING" })
	n := find(t, c, table("t"), "a")
	if n.Server != l.Server {
		t.Errorf("while opening, meta names %s; the old server is %s", n.Server, l.Server)
	}
	n.Server = target
	if _, err := get(t, n, "a"); remote(err) == nil || remote(err).Class != wire.ClassRegionOpening {
		t.Errorf("the target answers %v", err)
	}
	if _, err := get(t, l, "a"); remote(err) == nil || remote(err).Moved == nil {
		t.Errorf("the source answers %v", err)
	}
	var st pb.GetClusterStatusResponse
	if _, err := masterClient(t, c).Call("GetClusterStatus", &pb.GetClusterStatusRequest{Options: []pb.Option{pb.Option_REGIONS_IN_TRANSITION}}, &st); err != nil {
		t.Fatal(err)
	}
	if r := st.GetClusterStatus().GetRegionsInTransition(); len(r) != 1 || r[0].GetRegionState().GetState() != pb.RegionState_OPENING {
		t.Errorf("regions in transition: %v", r)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, n, "a"); err != nil {
		t.Error(err)
	}
	// A split leaves a parent and closed daughters to be seen.
	go func() { done <- mustMaster(t, c).Split(context.Background(), l.Region.EncodedName(), []byte("m")) }()
	eventually(t, "daughters in meta", func() bool { return len(metaScan(t, c, table("t"))) == 3 })
	locs := metaScan(t, c, table("t"))
	if !locs[0].Region.Split || !locs[0].Region.Offline || locs[0].State != "SPLIT" || locs[1].State != "CLOSED" || locs[1].SeqNum != 1 || !locs[1].Server.IsZero() {
		t.Errorf("while splitting: %+v", locs)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c.controls.SetTransitionGap(0)
	if _, err := get(t, find(t, c, table("t"), "z"), "z"); err != nil {
		t.Error(err)
	}
}

func TestSplitAndMerge(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	for _, r := range []string{"b", "k", "r"} {
		if err := put(t, l, r, r); err != nil {
			t.Fatal(err)
		}
	}
	m := mustMaster(t, c)
	if err := m.Split(t.Context(), l.Region.EncodedName(), []byte("k")); err != nil {
		t.Fatal(err)
	}
	locs := metaScan(t, c, table("t"))
	if len(locs) != 3 || !locs[0].Region.Split || !locs[0].Region.Offline || locs[1].Region.ID <= locs[0].Region.ID || locs[1].Region.ID != locs[2].Region.ID ||
		string(locs[1].Region.End) != "k" || string(locs[2].Region.Start) != "k" {
		t.Fatalf("after the split: %+v", locs)
	}
	if _, err := get(t, l, "b"); remote(err) == nil || remote(err).Class != wire.ClassNotServingRegion {
		t.Errorf("the parent answers %v", err)
	}
	for _, r := range []string{"b", "k", "r"} {
		if v, err := get(t, find(t, c, table("t"), r), r); err != nil || v != r {
			t.Errorf("get %s: %q, %v", r, v, err)
		}
	}
	// The janitor removes the parent.
	k := masterClient(t, c)
	var scan pb.RunCatalogScanResponse
	if _, err := k.Call("RunCatalogScan", &pb.RunCatalogScanRequest{}, &scan); err != nil || scan.GetScanResult() != 1 {
		t.Errorf("catalog scan: %d, %v", scan.GetScanResult(), err)
	}
	if n := len(metaScan(t, c, table("t"))); n != 2 {
		t.Errorf("%d rows after cleaning", n)
	}
	// In the middle, found by the store.
	low := find(t, c, table("t"), "r")
	if err := put(t, low, "x", "x"); err != nil {
		t.Fatal(err)
	}
	if err := m.Split(t.Context(), low.Region.EncodedName(), nil); err != nil {
		t.Fatal(err)
	}
	var names []string
	var top uint64
	for _, l := range metaScan(t, c, table("t")) {
		top = max(top, l.Region.ID)
		if !l.Region.Split {
			names = append(names, l.Region.EncodedName())
		}
	}
	if len(names) != 3 {
		t.Fatalf("%d regions", len(names))
	}
	if err := m.Merge(t.Context(), names); err != nil {
		t.Fatal(err)
	}
	locs = metaScan(t, c, table("t"))
	if len(locs) != 1 || locs[0].Region.ID <= top || len(locs[0].Region.Start)+len(locs[0].Region.End) != 0 {
		t.Fatalf("after the merge: %+v", locs)
	}
	merged := c.Catalog().Region(locs[0].Region.EncodedName())
	if len(merged.Merged) != 3 {
		t.Errorf("merge marks: %v", merged.Merged)
	}
	for _, r := range []string{"b", "k", "r", "x"} {
		if v, err := get(t, locs[0], r); err != nil || v != r {
			t.Errorf("get %s: %q, %v", r, v, err)
		}
	}
}
