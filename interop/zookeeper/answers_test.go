//go:build interop

package zookeeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// talk is one raw connection whose answers are written down.
type talk struct {
	t       *testing.T
	nc      net.Conn
	session int64
	xid     int32
	lines   []string
}

func newTalk(t *testing.T, addr string) *talk {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	c := &talk{t: t, nc: nc}
	c.write(func(w *jute.Writer) {
		(&jute.ConnectRequest{TimeoutMs: 30000, Password: make([]byte, 16), HasReadOnly: true}).Encode(w)
	})
	var resp jute.ConnectResponse
	f, err := c.read()
	if err != nil {
		t.Fatal(err)
	}
	resp.Decode(jute.NewReader(f))
	c.session = resp.SessionID
	c.lines = append(c.lines, fmt.Sprintf("connected for %d ms, readOnly %v %v", resp.TimeoutMs, resp.HasReadOnly, resp.ReadOnly))
	return c
}

func (c *talk) write(parts ...func(*jute.Writer)) {
	c.t.Helper()
	var w jute.Writer
	mark := w.BeginFrame()
	for _, p := range parts {
		p(&w)
	}
	w.EndFrame(mark)
	c.nc.Write(w.Bytes()) // a connection that has ended shows when reading
}

// errUnanswered stands for a request that the server keeps to itself.
var errUnanswered = errors.New("unanswered")

// read returns the next frame, or io.EOF if the server closed.
func (c *talk) read() ([]byte, error) {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(2 * time.Second))
	f, err := jute.ReadFrame(c.nc, 1<<20)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return nil, io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errUnanswered
	case err != nil:
		c.t.Fatal(err)
	}
	return f, nil
}

// mask replaces what differs between any two servers: the session's id and times.
func (c *talk) mask(b []byte) string {
	id := binary.BigEndian.AppendUint64(nil, uint64(c.session))
	now := time.Now().UnixMilli()
	var out strings.Builder
	for i := 0; i < len(b); {
		if bytes.HasPrefix(b[i:], id) {
			out.WriteString("<session>")
			i += 8
			continue
		}
		if i+8 <= len(b) && !bytes.Contains(b[i:min(len(b), i+15)], id) {
			if v := int64(binary.BigEndian.Uint64(b[i:])); v > now-86_400_000 && v < now+86_400_000 {
				out.WriteString("<time>")
				i += 8
				continue
			}
		}
		fmt.Fprintf(&out, "%02x", b[i])
		i++
	}
	return out.String()
}

// ask sends a request and writes down everything up to its answer.
func (c *talk) ask(name string, op jute.OpCode, body func(*jute.Writer)) {
	c.t.Helper()
	c.xid++
	xid := c.xid
	switch op {
	case jute.OpPing:
		xid = jute.XidPing
	case jute.OpAuth:
		xid = jute.XidAuth
	}
	if body == nil {
		body = func(*jute.Writer) {}
	}
	c.write((&jute.RequestHeader{Xid: xid, Op: op}).Encode, body)
	for {
		f, err := c.read()
		if err != nil {
			c.lines = append(c.lines, fmt.Sprintf("%s: %v", name, err))
			return
		}
		if len(f) > 20 && (op == jute.OpGetChildren || op == jute.OpGetChildren2) && int32(binary.BigEndian.Uint32(f)) == xid {
			f = inOrder(f)
		}
		c.lines = append(c.lines, name+": "+c.mask(f))
		if len(f) >= 4 && int32(binary.BigEndian.Uint32(f)) == xid {
			return
		}
	}
}

// inOrder sorts the names in an answer to getChildren, which real ZooKeeper gives in the order of its hash table.
func inOrder(f []byte) []byte {
	r := jute.NewReader(f[16:])
	names := r.Strings()
	slices.Sort(names)
	w := jute.NewWriter(nil)
	w.Raw(f[:16])
	w.Strings(names)
	w.Raw(r.Rest())
	return w.Bytes()
}

func create(path, data string, flags int32, acl ...jute.ACL) func(*jute.Writer) {
	if acl == nil {
		acl = jute.OpenACL()
	}
	return func(w *jute.Writer) {
		(&jute.CreateRequest{Path: path, Data: []byte(data), ACL: acl, Flags: flags}).Encode(w, jute.OpCreate)
	}
}

func read(path string, watch bool) func(*jute.Writer) {
	return (&jute.PathWatch{Path: path, Watch: watch}).Encode
}
func set(path, data string, version int32) func(*jute.Writer) {
	return (&jute.SetDataRequest{Path: path, Data: []byte(data), Version: version}).Encode
}
func at(path string, version int32) func(*jute.Writer) {
	return (&jute.PathVersion{Path: path, Version: version}).Encode
}
func mode(path string, m int32) func(*jute.Writer) {
	return (&jute.PathMode{Path: path, Mode: m}).Encode
}
func text(s string) func(*jute.Writer) { return func(w *jute.Writer) { w.String(s) } }
func multi(ops ...jute.Op) func(*jute.Writer) {
	return func(w *jute.Writer) { jute.EncodeMulti(w, ops) }
}

func script(t *testing.T, addr string) []string {
	c := newTalk(t, addr)
	open := jute.OpenACL()
	step := func(name string, op jute.OpCode, body func(*jute.Writer)) { t.Helper(); c.ask(name, op, body) }
	step("ping", jute.OpPing, nil)
	step("create", jute.OpCreate, create("/a", "one", 0))
	step("create again", jute.OpCreate, create("/a", "", 0))
	step("create orphan", jute.OpCreate, create("/x/y", "", 0))
	step("create bad path", jute.OpCreate, create("/a//b", "", 0))
	step("create bad flags", jute.OpCreate, create("/f", "", 77))
	step("create no ACL", jute.OpCreate, func(w *jute.Writer) { (&jute.CreateRequest{Path: "/n"}).Encode(w, jute.OpCreate) })
	step("create bad ACL", jute.OpCreate, create("/n", "", 0, jute.ACL{Perms: 31, Scheme: "nonsense", ID: "x"}))
	step("create auth ACL without auth", jute.OpCreate, create("/n", "", 0, jute.ACL{Perms: 31, Scheme: "auth"}))
	step("create2", jute.OpCreate2, create("/a/b", "", 0))
	step("ephemeral", jute.OpCreate2, create("/a/e", "x", 1))
	step("child of ephemeral", jute.OpCreate, create("/a/e/f", "", 0))
	step("sequential", jute.OpCreate, create("/a/s-", "", 2))
	step("sequential in directory form", jute.OpCreate, create("/a/", "", 3))
	step("container", jute.OpCreateContainer, create("/box", "", 4))
	step("ttl", jute.OpCreateTTL, func(w *jute.Writer) {
		(&jute.CreateRequest{Path: "/ttl", ACL: open, Flags: 5, TTLMs: 1000}).Encode(w, jute.OpCreateTTL)
	})
	step("null data", jute.OpCreate, func(w *jute.Writer) { (&jute.CreateRequest{Path: "/null", ACL: open}).Encode(w, jute.OpCreate) })
	step("get null", jute.OpGetData, read("/null", false))
	step("get", jute.OpGetData, read("/a", false))
	step("get missing", jute.OpGetData, read("/nope", true))
	step("get bad path", jute.OpGetData, read("nope", false))
	step("exists", jute.OpExists, read("/a", false))
	step("exists missing", jute.OpExists, read("/later", true))
	step("exists ephemeral", jute.OpExists, read("/a/e", false))
	step("exists container", jute.OpExists, read("/box", false))
	step("set wrong version", jute.OpSetData, set("/a", "x", 9))
	step("set", jute.OpSetData, set("/a", "two", 0))
	step("set missing", jute.OpSetData, set("/nope", "", -1))
	step("watch data", jute.OpGetData, read("/a", true))
	step("watch again", jute.OpExists, read("/a", true))
	step("watch children", jute.OpGetChildren2, read("/null", true))
	step("set watched", jute.OpSetData, set("/a", "three", -1))
	step("create below watched", jute.OpCreate, create("/null/k", "", 0))
	step("children", jute.OpGetChildren, read("/null", false))
	step("children2", jute.OpGetChildren2, read("/null", true))
	step("delete with children", jute.OpDelete, at("/null", -1))
	step("delete wrong version", jute.OpDelete, at("/null/k", 4))
	step("delete child", jute.OpDelete, at("/null/k", 0))
	step("watch to be deleted", jute.OpGetData, read("/null", true))
	step("watch children to be deleted", jute.OpGetChildren, read("/null", true))
	step("delete watched", jute.OpDelete, at("/null", -1))
	step("delete missing", jute.OpDelete, at("/null", -1))
	step("delete root", jute.OpDelete, at("/", -1))
	step("create awaited", jute.OpCreate, create("/later", "", 0))
	step("sync", jute.OpSync, text("/a"))
	step("multi", jute.OpMulti, multi(
		jute.Op{Code: jute.OpCheck, Path: "/a", Version: 2}, jute.Op{Code: jute.OpCreate, Path: "/m", Data: []byte("m"), ACL: open},
		jute.Op{Code: jute.OpSetData, Path: "/m", Data: []byte("n"), Version: 0}, jute.Op{Code: jute.OpCreate2, Path: "/m/x", ACL: open},
		jute.Op{Code: jute.OpDelete, Path: "/m/x", Version: -1}))
	step("after multi", jute.OpGetData, read("/m", false))
	step("multi fails", jute.OpMulti, multi(
		jute.Op{Code: jute.OpSetData, Path: "/m", Data: []byte("o"), Version: -1}, jute.Op{Code: jute.OpCreate, Path: "/m/y", ACL: open},
		jute.Op{Code: jute.OpCheck, Path: "/m", Version: 55}, jute.Op{Code: jute.OpDelete, Path: "/m", Version: -1}))
	step("after failed multi", jute.OpGetData, read("/m", false))
	step("empty multi", jute.OpMulti, multi())
	step("multi read", jute.OpMultiRead, multi(
		jute.Op{Code: jute.OpGetData, Path: "/m"}, jute.Op{Code: jute.OpGetChildren, Path: "/box"}, jute.Op{Code: jute.OpGetData, Path: "/nope"}))
	step("get ACL", jute.OpGetACL, text("/a"))
	step("set ACL wrong version", jute.OpSetACL, (&jute.SetACLRequest{Path: "/m", ACL: open, Version: 8}).Encode)
	step("auth", jute.OpAuth, (&jute.AuthPacket{Scheme: "digest", Auth: []byte("u:p")}).Encode)
	step("create mine", jute.OpCreate, create("/mine", "", 0, jute.ACL{Perms: 31, Scheme: "auth"}))
	step("get my ACL", jute.OpGetACL, text("/mine"))
	step("set ACL", jute.OpSetACL, (&jute.SetACLRequest{Path: "/m", ACL: []jute.ACL{{Perms: jute.PermRead, Scheme: "world", ID: "anyone"}}, Version: 0}).Encode)
	step("set without permission", jute.OpSetData, set("/m", "", -1))
	step("create without permission", jute.OpCreate, create("/m/z", "", 0))
	step("get ACL of what is not mine", jute.OpGetACL, text("/m"))
	step("whoami", jute.OpWhoAmI, nil)
	step("ephemerals", jute.OpGetEphemerals, text("/a/e"))
	step("number of children", jute.OpGetAllChildrenNumber, text("/a"))
	step("add watch", jute.OpAddWatch, mode("/w", 0))
	step("create under persistent watch", jute.OpCreate, create("/w", "", 0))
	step("create child under persistent watch", jute.OpCreate, create("/w/c", "", 0))
	step("set under persistent watch", jute.OpSetData, set("/w", "x", -1))
	step("check watch", jute.OpCheckWatches, mode("/w", 3))
	step("remove watch", jute.OpRemoveWatches, mode("/w", 3))
	step("remove watch again", jute.OpRemoveWatches, mode("/w", 3))
	step("add recursive watch", jute.OpAddWatch, mode("/w", 1))
	step("create under recursive watch", jute.OpCreate, create("/w/d", "", 0))
	step("set under recursive watch", jute.OpSetData, set("/w/d", "x", -1))
	step("delete under recursive watch", jute.OpDelete, at("/w/d", -1))
	step("add watch of no mode", jute.OpAddWatch, mode("/w", 9))
	step("set watches", jute.OpSetWatches, func(w *jute.Writer) {
		(&jute.SetWatches{RelativeZxid: 1, Data: []string{"/a"}, Exist: []string{"/never"}, Child: []string{"/gone"}}).Encode(w, jute.OpSetWatches)
	})
	step("create what was awaited", jute.OpCreate, create("/never", "", 0))
	step("reserved node", jute.OpGetChildren, read("/zookeeper", false))
	step("close", jute.OpCloseSession, nil)
	step("after close", jute.OpPing, nil)

	d := newTalk(t, addr)
	d.ask("ephemeral of the closed session", jute.OpExists, read("/a/e", false))
	d.ask("node of another identity", jute.OpGetData, read("/mine", false))
	d.ask("ACL of another identity", jute.OpGetACL, text("/mine"))
	d.ask("auth of an unknown scheme", jute.OpAuth, (&jute.AuthPacket{Scheme: "x", Auth: []byte("y")}).Encode)
	d.ask("after a failed auth", jute.OpPing, nil)
	lines := append(c.lines, d.lines...)
	// Each of these may cost the connection.
	short := func(w *jute.Writer) { w.Int(100) }
	for _, op := range []jute.OpCode{jute.OpGetData, jute.OpExists, jute.OpGetChildren2, jute.OpCreate, jute.OpDelete, jute.OpSetData, jute.OpMulti, jute.OpMultiRead,
		jute.OpSetWatches, jute.OpAddWatch, jute.OpRemoveWatches, jute.OpSync, jute.OpGetACL, jute.OpSetACL, jute.OpAuth, jute.OpGetEphemerals, jute.OpGetAllChildrenNumber} {
		x := newTalk(t, addr)
		x.ask(fmt.Sprintf("%v cut short", op), op, short)
		x.ask("ping after it", jute.OpPing, nil)
		lines = append(lines, x.lines...)
	}
	x := newTalk(t, addr)
	x.ask("multi of reads", jute.OpMulti, multi(jute.Op{Code: jute.OpGetData, Path: "/a"}))
	x.ask("ping after it", jute.OpPing, nil)
	lines = append(lines, x.lines...)
	x = newTalk(t, addr)
	x.ask("unknown operation", 77, nil)
	x.ask("ping after it", jute.OpPing, nil)
	lines = append(lines, x.lines...)
	x = newTalk(t, addr)
	x.ask("multi with a bad path", jute.OpMulti, multi(jute.Op{Code: jute.OpCreate, Path: "/a//", ACL: open}, jute.Op{Code: jute.OpDelete, Path: "/a", Version: -1}))
	x.ask("multi with bad flags", jute.OpMulti, multi(jute.Op{Code: jute.OpCreate, Path: "/q", ACL: open, Flags: 44}))
	x.ask("multi with a TTL", jute.OpMulti, multi(jute.Op{Code: jute.OpCreateTTL, Path: "/q", ACL: open, Flags: 5, TTLMs: 5}))
	x.ask("container by create", jute.OpCreate, create("/q1", "", 4))
	x.ask("persistent by createContainer", jute.OpCreateContainer, create("/q2", "", 0))
	x.ask("delete of a reserved node", jute.OpDelete, at("/zookeeper/quota", -1))
	x.ask("create of a reserved node", jute.OpCreate, create("/zookeeper/x", "", 0))
	x.ask("exists of the root", jute.OpExists, read("/", false))
	x.ask("whole tree", jute.OpGetAllChildrenNumber, text("/"))
	x.ask("sync of nothing", jute.OpSync, text("nowhere"))
	x.ask("ephemerals of nobody", jute.OpGetEphemerals, text("/"))
	x.ask("ACL of a missing node", jute.OpGetACL, text("/gone"))
	x.ask("set ACL of the root", jute.OpSetACL, (&jute.SetACLRequest{Path: "/", ACL: open, Version: -1}).Encode)
	x.ask("sasl", jute.OpSASL, func(w *jute.Writer) { w.Buffer([]byte("x")) })
	x.ask("ping after it", jute.OpPing, nil)
	lines = append(lines, x.lines...)
	lines = append(lines, watchScript(t, addr)...)
	return append(lines, oddScript(t, addr)...)
}

// watchScript is about watches of several kinds on one path, and about taking them away.
func watchScript(t *testing.T, addr string) []string {
	c := newTalk(t, addr)
	step := func(name string, op jute.OpCode, body func(*jute.Writer)) { t.Helper(); c.ask(name, op, body) }
	step("watched node", jute.OpCreate, create("/ww", "", 0))
	step("its child", jute.OpCreate, create("/ww/k", "", 0))
	for _, typ := range []int32{1, 2, 3, 4, 5, 9, 0} {
		step(fmt.Sprint("check without a watch ", typ), jute.OpCheckWatches, mode("/ww", typ))
	}
	step("data watch", jute.OpGetData, read("/ww", true))
	for _, typ := range []int32{1, 2, 3, 4, 5} {
		step(fmt.Sprint("check of a data watch ", typ), jute.OpCheckWatches, mode("/ww", typ))
	}
	step("child watch too", jute.OpGetChildren, read("/ww", true))
	for _, typ := range []int32{1, 2, 3, 4, 5} {
		step(fmt.Sprint("check of both ", typ), jute.OpCheckWatches, mode("/ww", typ))
	}
	step("remove the child watch", jute.OpRemoveWatches, mode("/ww", 1))
	step("remove it again", jute.OpRemoveWatches, mode("/ww", 1))
	step("change children", jute.OpCreate, create("/ww/l", "", 0))
	step("change data", jute.OpSetData, set("/ww", "1", -1))
	step("data watch on the missing", jute.OpExists, read("/wx", true))
	step("remove it", jute.OpRemoveWatches, mode("/wx", 2))
	step("remove with a bad path", jute.OpRemoveWatches, mode("wx//", 2))
	step("check with a bad path", jute.OpCheckWatches, mode("wx//", 2))
	step("add with a bad path", jute.OpAddWatch, mode("wx//", 0))
	for _, m := range []int32{0, 1} {
		step(fmt.Sprint("persistent ", m), jute.OpAddWatch, mode("/ww", m))
		for _, typ := range []int32{1, 2, 3, 4, 5} {
			step(fmt.Sprint("check of it ", typ), jute.OpCheckWatches, mode("/ww", typ))
		}
		step("one-shot data watch on top", jute.OpGetData, read("/ww", true))
		step("data once", jute.OpSetData, set("/ww", "2", -1))
		step("data twice", jute.OpSetData, set("/ww", "3", -1))
		step("child's data", jute.OpSetData, set("/ww/k", "3", -1))
		step("new child", jute.OpCreate, create(fmt.Sprint("/ww/m", m), "", 0))
		step("persistent again", jute.OpAddWatch, mode("/ww", m))
		step("one-shot child watch on top", jute.OpGetChildren, read("/ww", true))
		step("child once", jute.OpCreate, create(fmt.Sprint("/ww/n", m), "", 0))
		step("child twice", jute.OpCreate, create(fmt.Sprint("/ww/o", m), "", 0))
		step("data after that", jute.OpSetData, set("/ww", "4", -1))
		step("remove all", jute.OpRemoveWatches, mode("/ww", 3))
		step("remove all again", jute.OpRemoveWatches, mode("/ww", 3))
		step("data without a watch", jute.OpSetData, set("/ww", "5", -1))
		step("child without a watch", jute.OpCreate, create(fmt.Sprint("/ww/p", m), "", 0))
	}
	step("persistent after one-shot: one-shot", jute.OpGetData, read("/ww", true))
	step("persistent after one-shot: persistent", jute.OpAddWatch, mode("/ww", 0))
	step("data once", jute.OpSetData, set("/ww", "6", -1))
	step("data twice", jute.OpSetData, set("/ww", "7", -1))
	step("recursive over persistent", jute.OpAddWatch, mode("/ww", 1))
	step("child of it", jute.OpCreate, create("/ww/q", "", 0))
	step("grandchild", jute.OpCreate, create("/ww/q/r", "", 0))
	step("recursive on the child too", jute.OpAddWatch, mode("/ww/q", 1))
	step("told once", jute.OpSetData, set("/ww/q/r", "1", -1))
	step("multi under a recursive watch", jute.OpMulti, multi(jute.Op{Code: jute.OpDelete, Path: "/ww/q/r", Version: -1}, jute.Op{Code: jute.OpDelete, Path: "/ww/q", Version: -1}))
	step("set watches of every kind", jute.OpSetWatches2, func(w *jute.Writer) {
		(&jute.SetWatches{RelativeZxid: 1, Data: []string{"/ww", "/gone"}, Exist: []string{"/ww", "/gone2"}, Child: []string{"/ww/k", "/gone3"},
			Persistent: []string{"/pp"}, Recursive: []string{"/rr"}}).Encode(w, jute.OpSetWatches2)
	})
	step("persistent set by it", jute.OpCreate, create("/pp", "", 0))
	step("recursive set by it", jute.OpCreate, create("/rr", "", 0))
	step("recursive set by it, below", jute.OpCreate, create("/rr/x", "", 0))
	step("exist set by it", jute.OpCreate, create("/gone2", "", 0))
	return c.lines
}

// oddScript is what clients do seldom.
func oddScript(t *testing.T, addr string) []string {
	c := newTalk(t, addr)
	reconfig := func(w *jute.Writer) { w.String("server.9=h:1:2"); w.String(""); w.String(""); w.Long(-1) }
	c.ask("reconfig", jute.OpReconfig, reconfig)
	c.ask("reconfig cut short", jute.OpReconfig, func(w *jute.Writer) { w.String("x") })
	c.ask("config", jute.OpGetData, read("/zookeeper/config", true))
	c.ask("set config", jute.OpSetData, set("/zookeeper/config", "x", -1))
	c.ask("quota node", jute.OpGetData, read("/zookeeper/quota", false))
	c.ask("root's data", jute.OpGetData, read("/", false))
	c.ask("set the root's data", jute.OpSetData, set("/", "x", -1))
	c.ask("ephemeral one", jute.OpCreate, create("/odd-e", "", 1))
	c.ask("ephemeral in a multi", jute.OpMulti, multi(jute.Op{Code: jute.OpCreate, Path: "/odd-m", ACL: jute.OpenACL(), Flags: 1}, jute.Op{Code: jute.OpCreate, Path: "/odd-s-", ACL: jute.OpenACL(), Flags: 3}))
	c.ask("ephemerals below a prefix", jute.OpGetEphemerals, text("/odd-e"))
	c.ask("ephemerals of nothing", jute.OpGetEphemerals, text("/nope"))
	c.ask("whole container chain", jute.OpCreateContainer, create("/odd-box", "", 4))
	c.ask("child of a container", jute.OpCreate, create("/odd-box/x", "", 0))
	c.ask("ACL digest of bad form", jute.OpCreate, create("/bad", "", 0, jute.ACL{Perms: 31, Scheme: "digest", ID: "nocolon"}))
	c.ask("ACL ip", jute.OpCreate, create("/odd-ip", "", 0, jute.ACL{Perms: 31, Scheme: "ip", ID: "127.0.0.0/8"}))
	c.ask("read by ip", jute.OpGetData, read("/odd-ip", false))
	c.ask("ACL ip of bad form", jute.OpCreate, create("/bad", "", 0, jute.ACL{Perms: 31, Scheme: "ip", ID: "300.1.1.1"}))
	c.ask("ACL of two", jute.OpCreate, create("/odd-two", "", 0, jute.ACL{Perms: 1, Scheme: "world", ID: "anyone"}, jute.ACL{Perms: 2, Scheme: "ip", ID: "127.0.0.1"}))
	c.ask("write by the second", jute.OpSetData, set("/odd-two", "x", -1))
	c.ask("delete by neither", jute.OpSetACL, (&jute.SetACLRequest{Path: "/odd-two", ACL: jute.OpenACL(), Version: -1}).Encode)
	c.ask("world of bad form", jute.OpCreate, create("/bad", "", 0, jute.ACL{Perms: 31, Scheme: "world", ID: "me"}))
	c.ask("auth by ip", jute.OpAuth, (&jute.AuthPacket{Scheme: "ip", Auth: []byte("x")}).Encode)
	c.ask("multi read of what is not mine", jute.OpMultiRead, multi(jute.Op{Code: jute.OpGetData, Path: "/mine"}, jute.Op{Code: jute.OpGetChildren, Path: "/odd-two"}))
	c.ask("large data", jute.OpCreate, create("/odd-big", strings.Repeat("x", 900_000), 0))
	c.ask("large data, stat", jute.OpExists, read("/odd-big", false))
	c.ask("ping", jute.OpPing, nil)
	c.ask("request too large", jute.OpSetData, set("/odd-big", strings.Repeat("x", 1_100_000), -1))
	return c.lines
}

// TestSameAnswers sends one script of requests to real ZooKeeper and to the embedded server and compares the answers byte by byte, zxids included.
func TestSameAnswers(t *testing.T) {
	e := startEnsemble(t, 1)
	s, err := zkserver.Start(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want, got := script(t, e.addr(0)), script(t, s.Addr())
	for i := range max(len(want), len(got)) {
		var a, b string
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if a != b {
			t.Errorf("line %d:\nreal     %s\nembedded %s", i, a, b)
		}
	}
}
