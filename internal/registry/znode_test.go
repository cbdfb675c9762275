package registry

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

// recorded is a meta-region-server znode as HBase writes it: header with a
// writer id of 20 bytes, rs1.example:16020, state OPEN.
const recorded = "ff000000146d61737465723a31363030300000000000000000" + "504255460a170a0b7273312e6578616d706c6510947d1880d095ffbc3110001803"

func unhex(s string) []byte { b, _ := hex.DecodeString(s); return b }

func header(body []byte) []byte {
	return append(append([]byte{0xFF, 0, 0, 0, 3}, "abc"...), body...)
}

func withMagic(m interface{ MarshalVT() ([]byte, error) }) []byte {
	b, _ := m.MarshalVT()
	return append([]byte("PBUF"), b...)
}

var rs1 = meta.ServerName{Host: "rs1.example", Port: 16020, StartCode: 1700000000000}

func TestDecodeMetaServer(t *testing.T) {
	server, state, err := decodeMetaServer(unhex(recorded))
	if err != nil || server != rs1 || state != pb.RegionState_OPEN {
		t.Errorf("recorded: %v %v %v", server, state, err)
	}
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"no header", withMagic(&pb.MetaRegionServer{Server: rs1.ToProto()}), ""},
		{"no magic", header([]byte("hello")), "does not begin with PBUF"},
		{"header cut off", []byte{0xFF, 0, 0}, "header cut off"},
		{"id too long", []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1}, "writer id of 4294967295 bytes"},
		{"garbage", header([]byte("PBUF\xff\xff\xff")), "not HBase data"},
		{"no server", withMagic(&pb.MetaRegionServer{Server: &pb.ServerName{HostName: new("")}}), "server"},
	} {
		server, state, err := decodeMetaServer(tc.data)
		if tc.want == "" {
			if err != nil || server != rs1 || state != pb.RegionState_OPEN {
				t.Errorf("%s: %v %v %v", tc.name, server, state, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestDecodeClusterID(t *testing.T) {
	for _, tc := range []struct {
		data []byte
		want string
		ok   bool
	}{
		{header(withMagic(&pb.ClusterId{ClusterId: new("6f4a-1")})), "6f4a-1", true},
		{[]byte("0f0e-old-text"), "0f0e-old-text", true},
		{[]byte("two words"), "", false},
		{header(nil), "", false},
	} {
		id, err := decodeClusterID(tc.data)
		if id != tc.want || (err == nil) != tc.ok {
			t.Errorf("%q: %q, %v", tc.data, id, err)
		}
	}
}

// fakeZK is a tree with faults.
type fakeZK struct {
	nodes  map[string][]byte
	err    error
	closed bool
}

func (f *fakeZK) get(_ context.Context, path string) ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	data, ok := f.nodes[path]
	if !ok {
		return nil, errNoNode
	}
	return data, nil
}

func (f *fakeZK) children(_ context.Context, path string) ([]string, error) {
	if f.err != nil {
		return nil, f.err
	}
	seen := map[string]bool{}
	var names []string
	prefix := strings.TrimSuffix(path, "/") + "/"
	for p := range f.nodes {
		rest, ok := strings.CutPrefix(p, prefix)
		if name, _, _ := strings.Cut(rest, "/"); ok && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

func (f *fakeZK) trouble() error { return f.err }

func (f *fakeZK) close() { f.closed = true }

func hbaseTree(parent string) map[string][]byte {
	return map[string][]byte{
		"/zookeeper":                   nil,
		parent:                         nil,
		parent + "/hbaseid":            header(withMagic(&pb.ClusterId{ClusterId: new("id-1")})),
		parent + "/rs":                 nil,
		parent + "/backup-masters":     nil,
		parent + "/meta-region-server": unhex(recorded),
		parent + "/master":             header(withMagic(&pb.Master{Master: rs1.ToProto()})),
	}
}

func overTree(nodes map[string][]byte) *zkRegistry {
	return newZKRegistry("/hbase", []string{"zk1:2181"}, func() (zkConn, error) { return &fakeZK{nodes: nodes}, nil })
}

func TestZooKeeperRegistry(t *testing.T) {
	ctx := t.Context()
	r := overTree(hbaseTree("/hbase"))
	if s, err := r.MetaLocation(ctx); err != nil || s != rs1 {
		t.Errorf("meta: %v %v", s, err)
	}
	if s, err := r.ActiveMaster(ctx); err != nil || s != rs1 {
		t.Errorf("master: %v %v", s, err)
	}
	if id, err := r.ClusterID(ctx); err != nil || id != "id-1" {
		t.Errorf("id: %v %v", id, err)
	}
	if r.String() != "hbase://zk1:2181/hbase" {
		t.Errorf("prints as %s", r)
	}
	r.Close()
	if _, err := r.ClusterID(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestZooKeeperRegistrySaysWhatIsWrong(t *testing.T) {
	edit := func(f func(map[string][]byte)) map[string][]byte {
		n := hbaseTree("/hbase")
		f(n)
		return n
	}
	for _, tc := range []struct {
		name  string
		nodes map[string][]byte
		want  []string
		check func(error) bool
	}{
		{"another parent", hbaseTree("/hbase-unsecure"), []string{"znode /hbase in ZooKeeper zk1:2181", "did you mean /hbase-unsecure?"},
			func(err error) bool { var z *ZNodeError; return errors.As(err, &z) && z.Missing && Permanent(err) }},
		{"parent one level down", hbaseTree("/prod/hbase"), []string{"did you mean /prod/hbase?"}, nil},
		{"no HBase at all", map[string][]byte{"/zookeeper": nil, "/kafka": nil, "/kafka/brokers": nil}, []string{"no HBase has its znodes here"},
			func(err error) bool { return !strings.Contains(err.Error(), "did you mean") }},
		{"meta not assigned", edit(func(n map[string][]byte) { delete(n, "/hbase/meta-region-server") }), []string{"hbase:meta", "never been assigned"},
			func(err error) bool { var y *NotYetError; return errors.As(err, &y) && !Permanent(err) }},
		{"meta opening", edit(func(n map[string][]byte) {
			n["/hbase/meta-region-server"] = withMagic(&pb.MetaRegionServer{Server: rs1.ToProto(), State: pb.RegionState_OPENING.Enum()})
		}), []string{"OPENING on rs1.example,16020,1700000000000"}, func(err error) bool { var y *NotYetError; return errors.As(err, &y) }},
		{"empty", edit(func(n map[string][]byte) { n["/hbase/meta-region-server"] = nil }), []string{"/hbase/meta-region-server", "empty"},
			func(err error) bool { var z *ZNodeError; return errors.As(err, &z) && z.Empty }},
		{"not HBase's", edit(func(n map[string][]byte) { n["/hbase/meta-region-server"] = []byte(`{"leader":1}`) }), []string{"not HBase data", "leader"},
			func(err error) bool { return errors.Is(err, ErrZNode) && Permanent(err) }},
	} {
		_, err := overTree(tc.nodes).MetaLocation(t.Context())
		if err == nil {
			t.Errorf("%s: no error", tc.name)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", tc.name, err, w)
			}
		}
		if tc.check != nil && !tc.check(err) {
			t.Errorf("%s: %#v", tc.name, err)
		}
	}
	nodes := hbaseTree("/hbase")
	delete(nodes, "/hbase/master")
	var y *NotYetError
	if _, err := overTree(nodes).ActiveMaster(t.Context()); !errors.As(err, &y) || !strings.Contains(err.Error(), "no master is active") {
		t.Errorf("no master: %v", err)
	}
}

func TestZooKeeperRegistryReplacesAnExpiredSession(t *testing.T) {
	var conns []*fakeZK
	r := newZKRegistry("/hbase", []string{"zk1:2181"}, func() (zkConn, error) {
		conns = append(conns, &fakeZK{nodes: hbaseTree("/hbase")})
		return conns[len(conns)-1], nil
	})
	defer r.Close()
	if _, err := r.ClusterID(t.Context()); err != nil {
		t.Fatal(err)
	}
	conns[0].err = errSessionOver
	if _, err := r.ClusterID(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(conns) != 2 || !conns[0].closed || conns[1].closed {
		t.Errorf("%d sessions, first closed %v", len(conns), conns[0].closed)
	}
}

func FuzzZNodes(f *testing.F) {
	spoil.Add(f, unhex(recorded))
	spoil.Add(f, []byte{0xFF, 0, 0, 0, 1})
	spoil.Add(f, header(withMagic(&pb.Master{Master: rs1.ToProto()})))
	spoil.Add(f, header(withMagic(&pb.ClusterId{ClusterId: new("x")})))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, _, err := decodeMetaServer(b); err == nil && s.Host == "" {
			t.Error("no host and no error")
		}
		if s, err := decodeMaster(b); err == nil && s.Host == "" {
			t.Error("no host and no error")
		}
		_, _ = decodeClusterID(b)
	})
}
