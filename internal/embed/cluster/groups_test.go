package cluster

import (
	"slices"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestGroups(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t", "g", "p")
	k := masterClient(t, c)
	exec := func(method string, q wire.Marshaler, a wire.Unmarshaler) error {
		t.Helper()
		b := make([]byte, q.SizeVT())
		if _, err := q.MarshalToSizedBufferVT(b); err != nil {
			t.Fatal(err)
		}
		var out pb.CoprocessorServiceResponse
		_, err := k.Call("ExecMasterService", &pb.CoprocessorServiceRequest{
			Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte{}},
			Call:   &pb.CoprocessorServiceCall{Row: []byte{}, ServiceName: new("RSGroupAdminService"), MethodName: &method, Request: b},
		}, &out)
		if err != nil {
			return err
		}
		return a.UnmarshalVT(out.GetValue().GetValue())
	}
	if err := exec("AddRSGroup", &pb.AddRSGroupRequest{RSGroupName: new("g")}, &pb.AddRSGroupResponse{}); err != nil {
		t.Fatal(err)
	}
	server := c.Addresses()[0]
	h, p, _ := meta.ParseAddress(server)
	sn := &pb.ServerName{HostName: &h, Port: new(uint32(p))}
	refused := func(what string, err error, class string) {
		t.Helper()
		if r := remote(err); r == nil || r.Class != class || !r.DoNotRetry {
			t.Errorf("%s: %v", what, err)
		}
	}
	const no = wire.ClassConstraint
	refused("a group twice", exec("AddRSGroup", &pb.AddRSGroupRequest{RSGroupName: new("g")}, &pb.AddRSGroupResponse{}), wire.ClassDoNotRetryIO)
	refused("tables to a group without servers", exec("MoveTables", &pb.MoveTablesRequest{TargetGroup: new("g"), TableName: []*pb.TableName{nameProto("t")}}, &pb.MoveTablesResponse{}), no)
	refused("an unknown group", exec("MoveServers", &pb.MoveServersRequest{TargetGroup: new("none"), Servers: []*pb.ServerName{sn}}, &pb.MoveServersResponse{}), no)
	refused("removing default", exec("RemoveRSGroup", &pb.RemoveRSGroupRequest{RSGroupName: new("default")}, &pb.RemoveRSGroupResponse{}), no)
	refused("an unknown service method", exec("Nothing", &pb.RemoveRSGroupRequest{RSGroupName: new("x")}, &pb.RemoveRSGroupResponse{}), wire.ClassUnknownProtocol)

	// Moving a server takes other groups' regions off it.
	if err := exec("MoveServers", &pb.MoveServersRequest{TargetGroup: new("g"), Servers: []*pb.ServerName{sn}}, &pb.MoveServersResponse{}); err != nil {
		t.Fatal(err)
	}
	for _, l := range metaScan(t, c, table("t")) {
		if l.Server.Address() == server {
			t.Errorf("region %s is still on the server of group g", l.Region.String())
		}
	}
	// Moving a table takes its regions there; data comes along.
	if err := put(t, find(t, c, table("t"), "a"), "a", "1"); err != nil {
		t.Fatal(err)
	}
	if err := exec("MoveTables", &pb.MoveTablesRequest{TargetGroup: new("g"), TableName: []*pb.TableName{nameProto("t")}}, &pb.MoveTablesResponse{}); err != nil {
		t.Fatal(err)
	}
	for _, l := range metaScan(t, c, table("t")) {
		if l.Server.Address() != server {
			t.Errorf("region %s is on %s", l.Region.String(), l.Server)
		}
	}
	if v, err := get(t, find(t, c, table("t"), "a"), "a"); err != nil || v != "1" {
		t.Errorf("get: %q, %v", v, err)
	}
	other, _ := c.ServerName(1)
	_, err := k.Call("MoveRegion", &pb.MoveRegionRequest{Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(c.Regions(table("t"), 0)[0].Encoded)}, DestServerName: other.ToProto()}, &pb.MoveRegionResponse{})
	refused("a region to another group's server", err, no)
	refused("removing a group with tables", exec("RemoveRSGroup", &pb.RemoveRSGroupRequest{RSGroupName: new("g")}, &pb.RemoveRSGroupResponse{}), no)
	refused("the last server of a group with tables", exec("MoveServers", &pb.MoveServersRequest{TargetGroup: new("default"), Servers: []*pb.ServerName{sn}}, &pb.MoveServersResponse{}), no)

	// 3.x asks the master itself; hbase:rsgroup is readable.
	var info pb.GetRSGroupInfoOfTableResponse
	if _, err := k.Call("GetRSGroupInfoOfTable", &pb.GetRSGroupInfoOfTableRequest{TableName: nameProto("t")}, &info); err != nil || info.GetRSGroupInfo().GetName() != "g" {
		t.Errorf("group of t: %v, %v", info.GetRSGroupInfo(), err)
	}
	var list pb.ListRSGroupInfosResponse
	if _, err := k.Call("ListRSGroupInfos", &pb.ListRSGroupInfosRequest{}, &list); err != nil || len(list.RSGroupInfo) != 2 || len(list.RSGroupInfo[0].Servers) != 2 || len(list.RSGroupInfo[1].Servers) != 1 {
		t.Errorf("groups: %v, %v", list.RSGroupInfo, err)
	}
	loc := find(t, c, meta.RSGroupTable, "g")
	row := client(t, loc.Server.Address(), "ClientService")
	cs, err := row.Call("Get", &pb.GetRequest{Region: spec(&loc.Region), Get: &pb.Get{Row: []byte("g")}}, &pb.GetResponse{})
	if err != nil || len(cs) != 1 || string(cs[0].Family) != "m" || string(cs[0].Qualifier) != "i" {
		t.Errorf("hbase:rsgroup: %v, %v", cs, err)
	}
	// A table made with the group's name in its descriptor opens there.
	s := schema("u", "f")
	s.Attributes = []*pb.BytesBytesPair{{First: []byte(catalog.GroupAttribute), Second: []byte("g")}}
	if err := mustMaster(t, c).CreateTable(t.Context(), s, [][]byte{[]byte("m")}); err != nil {
		t.Fatal(err)
	}
	for _, l := range metaScan(t, c, table("u")) {
		if l.Server.Address() != server {
			t.Errorf("region of u is on %s", l.Server)
		}
	}
	// The group's only server dies: its regions wait, others' don't.
	if err := c.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := c.StartServer(0); err != nil {
		t.Fatal(err)
	}
	name, _ := c.ServerName(0)
	eventually(t, "regions back in their group", func() bool {
		for _, r := range slices.Concat(c.Regions(table("t"), 0), c.Regions(table("u"), 0)) {
			if r.Server != name.String() {
				return false
			}
		}
		return true
	})
}

func TestBalance(t *testing.T) {
	c := start(t, Options{Servers: 1})
	create(t, c, "t", "b", "c", "d", "e", "f")
	for range 2 {
		if _, err := c.AddServer(); err != nil {
			t.Fatal(err)
		}
	}
	m := mustMaster(t, c)
	plan, err := m.Balance(t.Context(), "", false, true)
	if err != nil || plan.Planned == 0 || plan.Done != 0 {
		t.Errorf("dry run: %+v, %v", plan, err)
	}
	done, err := m.Balance(t.Context(), "", false, false)
	if err != nil || done.Done != plan.Planned {
		t.Errorf("run: %+v, %v", done, err)
	}
	n := map[string]int{}
	for _, r := range c.Regions(meta.TableName{}, 0) {
		n[r.Server]++
	}
	for s, k := range n {
		if k < 2 || k > 3 {
			t.Errorf("%s holds %d of 8 regions", s, k)
		}
	}
	again, err := m.Balance(t.Context(), "", false, false)
	if err != nil || again.Planned != 0 {
		t.Errorf("balanced twice: %+v, %v", again, err)
	}
	k := masterClient(t, c)
	var before pb.SetBalancerRunningResponse
	if _, err := k.Call("SetBalancerRunning", &pb.SetBalancerRunningRequest{On: new(false)}, &before); err != nil || !before.GetPrevBalanceValue() {
		t.Errorf("switch: %v, %v", before.GetPrevBalanceValue(), err)
	}
	var off pb.BalanceResponse
	if _, err := k.Call("Balance", &pb.BalanceRequest{}, &off); err != nil || off.GetBalancerRan() {
		t.Errorf("balance while off: %v, %v", off.GetBalancerRan(), err)
	}
	// A decommissioned server is emptied and stays empty.
	if _, err := k.Call("DecommissionRegionServers", &pb.DecommissionRegionServersRequest{ServerName: []*pb.ServerName{mustName(t, c, 1).ToProto()}, Offload: new(true)}, &pb.DecommissionRegionServersResponse{}); err != nil {
		t.Fatal(err)
	}
	create(t, c, "u", "m")
	for _, r := range c.Regions(meta.TableName{}, 0) {
		if r.Index == 1 {
			t.Errorf("region %s is on the decommissioned server", r.Name)
		}
	}
	var list pb.ListDecommissionedRegionServersResponse
	if _, err := k.Call("ListDecommissionedRegionServers", &pb.ListDecommissionedRegionServersRequest{}, &list); err != nil || len(list.ServerName) != 1 || meta.ServerFromProto(list.ServerName[0]) != mustName(t, c, 1) {
		t.Errorf("decommissioned: %v, %v", list.ServerName, err)
	}
}

func mustName(t testing.TB, c *Cluster, i int) meta.ServerName {
	t.Helper()
	n, err := c.ServerName(i)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
