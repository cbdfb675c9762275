package cluster

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// path gives the path of a znode below the parent.
func (c *Cluster) path(parts ...string) string {
	return strings.Join(append([]string{c.opts.ZNodeParent}, parts...), "/")
}

type marshaler interface{ MarshalVT() ([]byte, error) }

// payload frames a znode's content as HBase does: 0xFF, the length of the
// writer's id, the id (a text and eight bytes), PBUF, the message.
func (c *Cluster) payload(m marshaler) []byte {
	body, err := m.MarshalVT()
	if err != nil {
		// Our own messages have their required fields.
		c.log.Error("znode content", "err", err)
	}
	id := append([]byte("master:16000"), 0x68, 0x6f, 0x6c, 0x64, 0x66, 0x61, 0x73, 0x74)
	b := append(make([]byte, 0, 9+len(id)+len(body)), 0xff)
	b = binary.BigEndian.AppendUint32(b, uint32(len(id)))
	b = append(append(b, id...), "PBUF"...)
	return append(b, body...)
}

// put writes a znode, persistent or of the session given.
func (c *Cluster) put(path string, data []byte, owner int64) {
	if err := c.zk.Put(path, data, owner); err != nil {
		c.log.Error("znode not written", "path", path, "err", err)
	}
}

func (c *Cluster) remove(path string) {
	if err := c.zk.DeleteTree(path); err != nil {
		c.log.Error("znode not removed", "path", path, "err", err)
	}
}

// baseZNodes makes what is there from the start.
func (c *Cluster) baseZNodes() {
	c.base = map[string][]byte{
		c.path("hbaseid"): c.payload(&pb.ClusterId{ClusterId: new(c.id)}),
		c.path("running"): c.payload(&pb.ClusterUp{StartDate: new(c.opts.Clock.Now().UTC().Format("Mon Jan 02 15:04:05 UTC 2006"))}),
		// The base of the groups holds the magic alone.
		c.path("rsgroup"): []byte("PBUF"),
	}
	for _, p := range []string{"rs", "backup-masters", "draining", "table", "table-lock", "namespace", "replication/peers", "replication/rs", "splitWAL", "flush-table-proc/acquired", "flush-table-proc/reached", "flush-table-proc/abort", "online-snapshot/acquired", "online-snapshot/reached", "online-snapshot/abort"} {
		c.base[c.path(p)] = nil
	}
	for path, data := range c.base {
		c.put(path, data, 0)
	}
}

func (c *Cluster) serverInfo() []byte {
	empty := ""
	major, minor := versionNumbers(c.opts.HBaseVersion)
	return c.payload(&pb.RegionServerInfo{InfoPort: new(int32(-1)), VersionInfo: &pb.VersionInfo{
		Version: new(c.opts.HBaseVersion), Url: &empty, Revision: &empty, User: &empty, Date: &empty, SrcChecksum: &empty,
		VersionMajor: &major, VersionMinor: &minor,
	}})
}

func versionNumbers(v string) (major, minor uint32) {
	number := func(s string) (n uint32) {
		for _, r := range s {
			if r < '0' || r > '9' {
				break
			}
			n = n*10 + uint32(r-'0')
		}
		return n
	}
	a, rest, _ := strings.Cut(v, ".")
	b, _, _ := strings.Cut(rest, ".")
	return number(a), number(b)
}

// metaZNode tells where hbase:meta is.
func (c *Cluster) metaZNode(n meta.ServerName) {
	c.put(c.path("meta-region-server"), c.metaPayload(n), 0)
}

func (c *Cluster) metaPayload(n meta.ServerName) []byte {
	return c.payload(&pb.MetaRegionServer{Server: n.ToProto(), RpcVersion: new(uint32(0)), State: pb.RegionState_OPEN.Enum()})
}

func (c *Cluster) masterPayload(n meta.ServerName) []byte {
	return c.payload(&pb.Master{Master: n.ToProto(), RpcVersion: new(uint32(0)), InfoPort: new(uint32(0))})
}

// mirror keeps the znodes of tables, namespaces, groups and decommissioned
// servers as the catalog has them, until the cluster ends. They are for old
// clients and tools: nothing waits for them.
func (c *Cluster) mirror() {
	last := map[string]string{}
	var seen *catalog.State
	again := false
	for {
		s, changed := c.catalog.Changed()
		if again || seen == nil || !s.SameBut(seen) {
			next := c.mirrored(s)
			for path := range last {
				if _, ok := next[path]; !ok {
					c.remove(path)
				}
			}
			for path, data := range next {
				if old, ok := last[path]; !ok || old != data {
					c.put(path, []byte(data), 0)
				} else if again {
					c.restore(path, []byte(data), 0)
				}
			}
			last = next
		}
		seen, again = s, false
		select {
		case <-changed:
		case <-c.again:
			again = true
		case <-c.ctx.Done():
			return
		}
	}
}

// mirrored gives the znodes that follow the catalog.
func (c *Cluster) mirrored(s *catalog.State) map[string]string {
	out := map[string]string{}
	for t := range s.Tables() {
		// DeprecatedTableState has the same numbers as TableState.
		out[c.path("table", t.Name.String())] = string(c.payload(&pb.DeprecatedTableState{State: pb.DeprecatedTableState_State(t.State).Enum()}))
	}
	for n := range s.Namespaces() {
		out[c.path("namespace", n.Name)] = string(c.payload(n.ToProto()))
	}
	for g := range s.Groups() {
		out[c.path("rsgroup", g.Name)] = string(c.payload(g.ToProto(s.TablesOfGroup(g.Name))))
	}
	draining := strings.Fields(s.Setting("draining"))
	for _, n := range c.LiveServers() {
		if slices.Contains(draining, n.Address()) {
			out[c.path("draining", n.String())] = ""
		}
	}
	return out
}
