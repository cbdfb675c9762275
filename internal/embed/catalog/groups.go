package catalog

import (
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// ToProto renders the group with the tables given.
func (g *Group) ToProto(tables []meta.TableName) *pb.RSGroupInfo {
	return groupProto(g.Name, g.Servers, tables, g.Config)
}

// groupProto renders a group; its servers carry no start code, as in HBase.
func groupProto(name string, servers []string, tables []meta.TableName, config []*pb.NameStringPair) *pb.RSGroupInfo {
	p := &pb.RSGroupInfo{Name: new(name), Configuration: sortedPairs(config)}
	for _, t := range tables {
		p.Tables = append(p.Tables, t.ToProto())
	}
	for _, a := range servers {
		host, port, err := meta.ParseAddress(a)
		if err != nil {
			continue
		}
		p.Servers = append(p.Servers, &pb.ServerName{HostName: new(host), Port: new(uint32(port))})
	}
	return p
}

// TablesOfGroup gives the tables a group hosts, by name text.
func (s *State) TablesOfGroup(group string) []meta.TableName {
	var out []meta.TableName
	for t := range s.Tables() {
		if s.GroupOfTable(t) == group {
			out = append(out, t.Name)
		}
	}
	return out
}

// GroupInfo renders a group, "default" included; live are the addresses of the
// servers alive, of which "default" holds those no other group names. It is
// nil when there is no such group.
func (s *State) GroupInfo(name string, live []string) *pb.RSGroupInfo {
	if name == DefaultGroup {
		var servers []string
		for _, a := range live {
			if s.GroupOfServer(a) == DefaultGroup {
				servers = append(servers, a)
			}
		}
		return groupProto(name, servers, s.TablesOfGroup(name), nil)
	}
	g := s.Group(name)
	if g == nil {
		return nil
	}
	return g.ToProto(s.TablesOfGroup(name))
}
