package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// zkOps are all operations, those a client has no business to send included.
var zkOps = []jute.OpCode{
	jute.OpCreate, jute.OpDelete, jute.OpExists, jute.OpGetData, jute.OpSetData, jute.OpGetACL, jute.OpSetACL, jute.OpGetChildren, jute.OpSync,
	jute.OpPing, jute.OpGetChildren2, jute.OpCheck, jute.OpMulti, jute.OpCreate2, jute.OpReconfig, jute.OpCheckWatches, jute.OpRemoveWatches,
	jute.OpCreateContainer, jute.OpDeleteContainer, jute.OpCreateTTL, jute.OpMultiRead, jute.OpAuth, jute.OpSetWatches, jute.OpSASL,
	jute.OpGetEphemerals, jute.OpGetAllChildrenNumber, jute.OpSetWatches2, jute.OpAddWatch, jute.OpWhoAmI,
	jute.OpCreateSession, jute.OpCloseSession, jute.OpError, jute.OpNotify, 77, 108, -77,
}

var fourLetters = []string{"ruok", "stat", "srvr", "mntr", "conf", "cons", "dump", "envi", "isro", "wchs", "wchc", "wchp", "crst", "srst", "dirs", "gtmk", "stmk", "icfg", "kill"}

func zkPath(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return pick(r, "", "/", "//", "/fuzz//x", "/fuzz/.", "/fuzz/..", "nowhere", "/fuzz/", "/\x00", "/\xff\xfe", "/zookeeper/quota", "/zookeeper/config", "/hbase")
	case 1:
		return string(noise(r, r.IntN(12)))
	case 2, 3:
		return "/fuzz"
	}
	return fmt.Sprintf("/fuzz/%c", 'a'+rune(r.IntN(8)))
}

func zkPaths(r *rand.Rand) []string {
	var out []string
	for range r.IntN(5) {
		out = append(out, zkPath(r))
	}
	return out
}

func zkACL(r *rand.Rand) []jute.ACL {
	switch r.IntN(6) {
	case 0:
		return []jute.ACL{{Perms: int32(r.Uint32()), Scheme: pick(r, "digest", "auth", "ip", "world", "x509", "no"), ID: pick(r, "", "u:p", "anyone", "127.0.0.1/8", "1.2.3.4/99", "x")}}
	case 1:
		return nil
	}
	return jute.OpenACL()
}

func zkVersion(r *rand.Rand) int32 { return pick(r, -1, -1, -1, 0, 1, int32(r.Uint32())) }

func zkCreate(r *rand.Rand) jute.CreateRequest {
	return jute.CreateRequest{Path: zkPath(r), Data: noise(r, r.IntN(40)), ACL: zkACL(r), Flags: int32(r.IntN(9)) - 1, TTLMs: int64(r.Uint64() >> pick(r, 0, 40))}
}

func zkMulti(r *rand.Rand) []jute.Op {
	var ops []jute.Op
	for range r.IntN(7) {
		c := zkCreate(r)
		ops = append(ops, jute.Op{Code: pick(r, jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL, jute.OpDelete, jute.OpSetData, jute.OpCheck, jute.OpGetData, jute.OpGetChildren),
			Path: c.Path, Data: c.Data, ACL: c.ACL, Flags: c.Flags, TTLMs: c.TTLMs, Version: zkVersion(r), Watch: chance(r, 2)})
	}
	return ops
}

// zkBody writes the body of an operation.
func zkBody(r *rand.Rand, w *jute.Writer, op jute.OpCode) {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		c := zkCreate(r)
		c.Encode(w, op)
	case jute.OpDelete, jute.OpCheck:
		(&jute.PathVersion{Path: zkPath(r), Version: zkVersion(r)}).Encode(w)
	case jute.OpSetData:
		(&jute.SetDataRequest{Path: zkPath(r), Data: noise(r, r.IntN(200)), Version: zkVersion(r)}).Encode(w)
	case jute.OpSetACL:
		(&jute.SetACLRequest{Path: zkPath(r), ACL: zkACL(r), Version: zkVersion(r)}).Encode(w)
	case jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2:
		(&jute.PathWatch{Path: zkPath(r), Watch: chance(r, 2)}).Encode(w)
	case jute.OpMulti, jute.OpMultiRead:
		jute.EncodeMulti(w, zkMulti(r))
	case jute.OpCheckWatches, jute.OpRemoveWatches, jute.OpAddWatch:
		(&jute.PathMode{Path: zkPath(r), Mode: int32(r.IntN(8)) - 1}).Encode(w)
	case jute.OpSetWatches, jute.OpSetWatches2:
		(&jute.SetWatches{RelativeZxid: int64(r.Uint64() >> pick(r, 1, 32, 60)), Data: zkPaths(r), Exist: zkPaths(r), Child: zkPaths(r), Persistent: zkPaths(r), Recursive: zkPaths(r)}).Encode(w, op)
	case jute.OpAuth:
		(&jute.AuthPacket{Scheme: pick(r, "digest", "digest", "digest", "ip", "x509", "no"), Auth: []byte(pick(r, "u:p", "u", "", "a:b:c", string(noise(r, 9))))}).Encode(w)
	case jute.OpGetACL, jute.OpSync, jute.OpGetEphemerals, jute.OpGetAllChildrenNumber, jute.OpDeleteContainer:
		w.String(zkPath(r))
	case jute.OpReconfig:
		w.String(pick(r, "", "server.1=x:1:2"))
		w.String("")
		w.String(pick(r, "", "server.2=y:1:2"))
		w.Long(-1)
	case jute.OpSASL:
		w.Buffer(noise(r, r.IntN(40)))
	default:
		if chance(r, 2) {
			w.Raw(noise(r, r.IntN(40)))
		}
	}
}

// zkTalk is one conversation with ZooKeeper: a handshake, or a four-letter
// word, and requests.
func zkTalk(r *rand.Rand, pic *picture) talk {
	t := talk{address: pic.ZooKeeper, framed: true}
	if chance(r, 20) {
		t.hello = []byte(pick(r, fourLetters...))
		return t
	}
	var w jute.Writer
	mark := w.BeginFrame()
	hello := jute.ConnectRequest{TimeoutMs: pick[int32](r, 4000, 4000, 6000, 0, -1, 1<<31-1), Password: make([]byte, 16), HasReadOnly: !chance(r, 4), ReadOnly: chance(r, 4)}
	if chance(r, 10) {
		hello.SessionID, hello.Password = int64(r.Uint64()), noise(r, pick(r, 16, 0, 3))
	}
	if chance(r, 20) {
		hello.LastZxidSeen = int64(r.Uint64() >> pick(r, 0, 1, 40))
	}
	hello.Encode(&w)
	w.EndFrame(mark)
	t.hello = w.Bytes()
	for xid := range int32(1 + r.IntN(24)) {
		op := pick(r, zkOps...)
		h := jute.RequestHeader{Xid: xid + 1, Op: op}
		switch op {
		case jute.OpPing:
			h.Xid = jute.XidPing
		case jute.OpAuth:
			h.Xid = jute.XidAuth
		}
		var f jute.Writer
		mark := f.BeginFrame()
		h.Encode(&f)
		zkBody(r, &f, op)
		f.EndFrame(mark)
		t.frames = append(t.frames, f.Bytes())
	}
	return t
}
