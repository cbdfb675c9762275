package jute

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// framed encodes parts into one frame.
func framed(parts ...func(*Writer)) []byte {
	var w Writer
	mark := w.BeginFrame()
	for _, p := range parts {
		p(&w)
	}
	w.EndFrame(mark)
	return w.Bytes()
}

const zeroPassword = "00000010 00000000000000000000000000000000"

// TestVectors compares what we write with bytes captured between a real client and ZooKeeper 3.8.0.
func TestVectors(t *testing.T) {
	req := func(xid int32, op OpCode) func(*Writer) { h := RequestHeader{xid, op}; return h.Encode }
	rep := func(xid int32, zxid int64, code Code) func(*Writer) {
		h := ReplyHeader{xid, zxid, code}
		return h.Encode
	}
	stat := Stat{Czxid: 2, Mzxid: 2, Ctime: 0x1a22de6076b, Mtime: 0x1a22de6076b, Cversion: 4, DataLength: 5, NumChildren: 4, Pzxid: 6}
	cases := []struct {
		name string
		got  []byte
		want string
	}{
		{"connect", framed((&ConnectRequest{TimeoutMs: 6000, Password: make([]byte, 16), HasReadOnly: true}).Encode),
			"0000002d 00000000 0000000000000000 00001770 0000000000000000 " + zeroPassword + " 00"},
		{"connect without the readOnly byte", framed((&ConnectRequest{TimeoutMs: 6000, Password: make([]byte, 16)}).Encode),
			"0000002c 00000000 0000000000000000 00001770 0000000000000000 " + zeroPassword},
		{"connect with an empty password", framed((&ConnectRequest{TimeoutMs: 6000, Password: []byte{}, HasReadOnly: true}).Encode),
			"0000001d 00000000 0000000000000000 00001770 0000000000000000 00000000 00"},
		{"connected", framed((&ConnectResponse{TimeoutMs: 6000, SessionID: 0x010000078e170000, Password: unhex(t, "7b1cc41becd30fbc510fb4f81594bb9c"), HasReadOnly: true}).Encode),
			"00000025 00000000 00001770 010000078e170000 00000010 7b1cc41becd30fbc510fb4f81594bb9c 00"},
		{"expired", framed((&ConnectResponse{Password: make([]byte, 16), HasReadOnly: true}).Encode),
			"00000025 00000000 00000000 0000000000000000 " + zeroPassword + " 00"},
		{"ping", framed(req(XidPing, OpPing)), "00000008 fffffffe 0000000b"},
		{"pong", framed(rep(XidPing, 12, OK)), "00000010 fffffffe 000000000000000c 00000000"},
		{"auth", framed(req(XidAuth, OpAuth), (&AuthPacket{Scheme: "digest", Auth: []byte("u:p")}).Encode), "0000001d fffffffc 00000064 00000000 00000006 646967657374 00000003 753a70"},
		{"auth failed", framed(rep(XidAuth, 0, ErrAuthFailed)), "00000010 fffffffc 0000000000000000 ffffff8d"},
		{"create", framed(req(1, OpCreate), func(w *Writer) {
			(&CreateRequest{Path: "/v1", Data: []byte("hello"), ACL: OpenACL()}).Encode(w, OpCreate)
		}),
			"00000037 00000001 00000001 00000003 2f7631 00000005 68656c6c6f 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000"},
		{"created", framed(rep(1, 2, OK), func(w *Writer) { w.String("/v1") }), "00000017 00000001 0000000000000002 00000000 00000003 2f7631"},
		{"exists", framed(req(8, OpExists), (&PathWatch{Path: "/nope"}).Encode), "00000012 00000008 00000003 00000005 2f6e6f7065 00"},
		{"absent", framed(rep(8, 7, ErrNoNode)), "00000010 00000008 0000000000000007 ffffff9b"},
		{"getData", framed(req(9, OpGetData), (&PathWatch{Path: "/v1", Watch: true}).Encode), "00000010 00000009 00000004 00000003 2f7631 01"},
		{"data", framed(rep(9, 7, OK), func(w *Writer) { w.Buffer([]byte("hello")) }, stat.Encode),
			"0000005d 00000009 0000000000000007 00000000 00000005 68656c6c6f 0000000000000002 0000000000000002 000001a22de6076b 000001a22de6076b 00000000 00000004 00000000 0000000000000000 00000005 00000004 0000000000000006"},
		{"event", framed(rep(XidNotify, -1, OK), (&WatcherEvent{Type: EventDataChanged, State: StateSyncConnected, Path: "/v1"}).Encode),
			"0000001f ffffffff ffffffffffffffff 00000000 00000003 00000003 00000003 2f7631"},
		{"multi", framed(req(0x12, OpMulti), func(w *Writer) {
			EncodeMulti(w, []Op{{Code: OpCheck, Path: "/v1", Version: 99}, {Code: OpDelete, Path: "/v1/s-", Version: -1}})
		}), "0000003c 00000012 0000000e 0000000d 00 ffffffff 00000003 2f7631 00000063 00000002 00 ffffffff 00000006 2f76312f732d ffffffff ffffffff 01 ffffffff"},
		{"failed multi", framed(rep(0x12, 11, OK), func(w *Writer) {
			EncodeMultiResults(w, []OpResult{{Code: OpError, Err: ErrBadVersion}, {Code: OpError, Err: ErrRuntimeInconsistency}})
		}), "00000033 00000012 000000000000000b 00000000 ffffffff 00 ffffff99 ffffff99 ffffffff 00 fffffffe fffffffe ffffffff 01 ffffffff"},
		{"setWatches", framed(req(XidSetWatches, OpSetWatches), func(w *Writer) {
			(&SetWatches{Data: []string{"/v1"}, Exist: []string{"/v1", "/zz"}, Child: []string{"/"}}).Encode(w, OpSetWatches)
		}), "00000036 fffffff8 00000065 0000000000000000 00000001 00000003 2f7631 00000002 00000003 2f7631 00000003 2f7a7a 00000001 00000001 2f"},
		{"addWatch", framed(req(0x14, OpAddWatch), (&PathMode{Path: "/v1", Mode: WatchPersistentRecursive}).Encode), "00000013 00000014 0000006a 00000003 2f7631 00000001"},
		{"whoAmI", framed(req(0x17, OpWhoAmI)), "00000008 00000017 0000006b"},
		{"close", framed(req(8, OpCloseSession)), "00000008 00000008 fffffff5"},
	}
	for _, c := range cases {
		if want := unhex(t, c.want); !bytes.Equal(c.got, want) {
			t.Errorf("%s:\n got %x\nwant %x", c.name, c.got, want)
		}
	}
}

// record is what every record of the protocol can do.
type record interface {
	Encode(*Writer)
	Decode(*Reader)
}

// opRecord is a record whose form depends on the operation.
type opRecord struct {
	op  OpCode
	enc func(*Writer, OpCode)
	dec func(*Reader, OpCode)
}

func (o opRecord) Encode(w *Writer) { o.enc(w, o.op) }
func (o opRecord) Decode(r *Reader) { o.dec(r, o.op) }

func pairs() map[string][2]any {
	create := &CreateRequest{Path: "/a", Data: []byte{1}, ACL: []ACL{{1, "digest", "u:x"}, {31, "world", "anyone"}}, Flags: 3}
	ttl := &CreateRequest{Path: "/a", ACL: OpenACL(), Flags: 5, TTLMs: 1 << 40}
	sw := &SetWatches{RelativeZxid: 9, Data: []string{"/a", "/b"}, Exist: []string{"/c"}}
	sw2 := &SetWatches{RelativeZxid: 9, Child: []string{""}, Persistent: []string{"/d"}, Recursive: []string{"/"}}
	return map[string][2]any{
		"ConnectRequest":     {&ConnectRequest{LastZxidSeen: -5, TimeoutMs: 1, SessionID: 1 << 60, Password: []byte{1, 2}, HasReadOnly: true, ReadOnly: true}, &ConnectRequest{}},
		"ConnectResponse":    {&ConnectResponse{TimeoutMs: -1, SessionID: -7, Password: []byte{}}, &ConnectResponse{}},
		"RequestHeader":      {&RequestHeader{-4, OpAuth}, &RequestHeader{}},
		"ReplyHeader":        {&ReplyHeader{7, 1 << 50, ErrNoNode}, &ReplyHeader{}},
		"Stat":               {&Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, &Stat{}},
		"WatcherEvent":       {&WatcherEvent{EventDeleted, 3, "/x"}, &WatcherEvent{}},
		"PathVersion":        {&PathVersion{"/x", -1}, &PathVersion{}},
		"PathWatch":          {&PathWatch{"/x", true}, &PathWatch{}},
		"SetDataRequest":     {&SetDataRequest{"/x", nil, 4}, &SetDataRequest{}},
		"SetACLRequest":      {&SetACLRequest{"/x", OpenACL(), 4}, &SetACLRequest{}},
		"PathMode":           {&PathMode{"/x", 1}, &PathMode{}},
		"AuthPacket":         {&AuthPacket{0, "digest", []byte("u:p")}, &AuthPacket{}},
		"MultiHeader":        {&MultiHeader{OpError, true, -1}, &MultiHeader{}},
		"CreateRequest":      {create, &CreateRequest{}},
		"CreateRequest(ttl)": {ttl, &CreateRequest{}},
		"SetWatches":         {sw, &SetWatches{}},
		"SetWatches2":        {sw2, &SetWatches{}},
	}
}

func asRecord(name string, v any) record {
	switch x := v.(type) {
	case *CreateRequest:
		op := OpCreate
		if strings.Contains(name, "ttl") {
			op = OpCreateTTL
		}
		return opRecord{op, x.Encode, x.Decode}
	case *SetWatches:
		op := OpSetWatches
		if name == "SetWatches2" {
			op = OpSetWatches2
		}
		return opRecord{op, x.Encode, x.Decode}
	}
	return v.(record)
}

// TestRoundTripAndTruncation: every record survives a round trip, and every proper prefix of it is an error, never a panic.
func TestRoundTripAndTruncation(t *testing.T) {
	for name, p := range pairs() {
		var w Writer
		asRecord(name, p[0]).Encode(&w)
		r := NewReader(w.Bytes())
		asRecord(name, p[1]).Decode(r)
		if r.Err() != nil || !reflect.DeepEqual(p[0], p[1]) || len(r.Rest()) != 0 {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, r.Err(), p[1], p[0])
		}
		for n := range w.Len() {
			if strings.HasPrefix(name, "Connect") && n == w.Len()-1 {
				continue // the last byte is optional
			}
			r := NewReader(w.Bytes()[:n])
			asRecord(name, p[1]).Decode(r)
			if de := (*DecodeError)(nil); !errors.As(r.Err(), &de) {
				t.Errorf("%s cut to %d bytes: error %v", name, n, r.Err())
			}
		}
	}
}

func TestMultiRoundTrip(t *testing.T) {
	ops := []Op{
		{Code: OpCreate, Path: "/a", Data: []byte("x"), ACL: OpenACL(), Flags: 1},
		{Code: OpCreate2, Path: "/b", ACL: OpenACL()},
		{Code: OpCreateContainer, Path: "/c", ACL: OpenACL(), Flags: 4},
		{Code: OpCreateTTL, Path: "/t", ACL: OpenACL(), Flags: 5, TTLMs: 6},
		{Code: OpDelete, Path: "/d", Version: -1},
		{Code: OpSetData, Path: "/e", Data: []byte{}, Version: 3},
		{Code: OpCheck, Path: "/f", Version: 1},
		{Code: OpGetData, Path: "/g"},
		{Code: OpGetChildren, Path: "/h", Watch: true},
	}
	var w Writer
	EncodeMulti(&w, ops)
	r := NewReader(w.Bytes())
	if got := DecodeMulti(r); r.Err() != nil || !reflect.DeepEqual(got, ops) {
		t.Errorf("%v\n got %+v\nwant %+v", r.Err(), got, ops)
	}
	results := []OpResult{
		{Code: OpCreate, Path: "/a"}, {Code: OpCreate2, Path: "/b", Stat: Stat{Version: 1}}, {Code: OpDelete}, {Code: OpCheck}, {Code: OpSetData, Stat: Stat{Pzxid: 4}},
		{Code: OpGetData, Data: []byte("d")}, {Code: OpGetChildren, Children: []string{"x"}}, {Code: OpError, Err: ErrNoNode}, {Code: OpError},
	}
	w.Reset()
	EncodeMultiResults(&w, results)
	r = NewReader(w.Bytes())
	if got := DecodeMultiResults(r); r.Err() != nil || !reflect.DeepEqual(got, results) {
		t.Errorf("%v\n got %+v\nwant %+v", r.Err(), got, results)
	}
}

// TestHostileLengths: what a length or count says is not believed before the bytes are there.
func TestHostileLengths(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		read func(*Reader)
		ok   bool
	}{
		"null buffer":          {"ffffffff", func(r *Reader) { r.Buffer() }, true},
		"negative buffer":      {"fffffffe", func(r *Reader) { r.Buffer() }, false},
		"huge buffer":          {"7fffffff 00", func(r *Reader) { r.Buffer() }, false},
		"negative string":      {"80000000", func(r *Reader) { _ = r.String() }, false},
		"huge vector":          {"7fffffff 00000000", func(r *Reader) { r.Strings() }, false},
		"negative vector":      {"ffffff00", func(r *Reader) { r.Strings() }, false},
		"null vector":          {"ffffffff", func(r *Reader) { r.Strings() }, true},
		"vector longer by one": {"00000002 00000000", func(r *Reader) { r.Strings() }, false},
		"huge ACL":             {"00ffffff 00000000 00000000 00000000", func(r *Reader) { DecodeACLs(r) }, false},
		"multi of an unknown":  {"00000063 00 ffffffff", func(r *Reader) { DecodeMulti(r) }, false},
		"multi without an end": {"", func(r *Reader) { DecodeMulti(r) }, false},
		"four bytes of header": {"00000001", func(r *Reader) { (&ReplyHeader{}).Decode(r) }, false},
	} {
		r := NewReader(unhex(t, c.in))
		c.read(r)
		if (r.Err() == nil) != c.ok {
			t.Errorf("%s: error %v, want ok=%v", name, r.Err(), c.ok)
		}
	}
}

func TestReadFrame(t *testing.T) {
	big := bytes.Repeat([]byte{7}, 100_000)
	frame := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	for name, in := range map[string][]byte{"empty": {}, "small": {1, 2}, "big": big} {
		got, err := ReadFrame(iotest.OneByteReader(bytes.NewReader(frame(in))), DefaultMaxFrame)
		if err != nil || !bytes.Equal(got, in) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := ReadFrame(bytes.NewReader(nil), 10); err != io.EOF {
		t.Errorf("no bytes: %v", err)
	}
	for _, in := range [][]byte{{0}, {0, 0, 0, 5}, {0, 0, 0, 5, 1}} {
		if _, err := ReadFrame(bytes.NewReader(in), 10); err != io.ErrUnexpectedEOF {
			t.Errorf("%x: %v", in, err)
		}
	}
	for _, in := range [][]byte{{0, 0, 0, 11}, {0xff, 0xff, 0xff, 0xff}, []byte("HTTP/1.1 400")} {
		var fe *FrameError
		if _, err := ReadFrame(bytes.NewReader(in), 10); !errors.As(err, &fe) {
			t.Errorf("%x: %v", in, err)
		}
	}
	if n := testing.AllocsPerRun(10, func() { ReadFrame(bytes.NewReader([]byte{0, 0x0f, 0xff, 0xff}), DefaultMaxFrame) }); n > 8 {
		t.Errorf("%v allocations for a megabyte announced and not sent", n)
	}
}

func TestValidatePath(t *testing.T) {
	for path, want := range map[string]string{
		"/": "", "/a": "", "/a/b-c.d": "", "/a/..b": "", "/a/b..": "", "/...": "", "/ä/漢": "", "/a\U00010000": "",
		"": "empty", "a": "does not start", "/a/": "ends with /", "//": "empty element", "/a//b": "empty element", "/.": "relative", "/a/../b": "relative",
		"/a\x00": "U+0000", "/a\x1f": "U+001F", "/a\u0080": "U+0080", "/a\ue000": "U+E000", "/a\ufff0": "U+FFF0", "/a\xff": "UTF-8",
	} {
		err := ValidatePath(path, false)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	for _, path := range []string{"/", "/a/", "/a"} {
		if err := ValidatePath(path, true); err != nil {
			t.Errorf("sequential %q: %v", path, err)
		}
	}
	if err := ValidatePath("/a//", true); err == nil {
		t.Error(`sequential "/a//" is accepted`)
	}
}

func TestDigestID(t *testing.T) {
	if got, want := DigestID("u:p"), "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzRecords(f *testing.F) {
	names := []string{}
	for name, p := range pairs() {
		names = append(names, name)
		var w Writer
		asRecord(name, p[0]).Encode(&w)
		spoil.Add(f, w.Bytes())
	}
	slices.Sort(names)
	spoil.Add(f, []byte{0, 0, 0, 4})
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, name := range names {
			v := asRecord(name, pairs()[name][1])
			r := NewReader(in)
			v.Decode(r)
			if r.Err() != nil {
				continue
			}
			// What was understood must survive being written again.
			var w Writer
			v.Encode(&w)
			again := asRecord(name, pairs()[name][1])
			r2 := NewReader(w.Bytes())
			again.Decode(r2)
			if r2.Err() != nil {
				t.Fatalf("%s: %v after %+v", name, r2.Err(), v)
			}
		}
	})
}

func FuzzMulti(f *testing.F) {
	var w Writer
	EncodeMulti(&w, []Op{{Code: OpCreate, Path: "/a", ACL: OpenACL()}, {Code: OpCheck, Path: "/b"}})
	spoil.Add(f, w.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(in)
		if ops := DecodeMulti(r); r.Err() == nil {
			var w Writer
			EncodeMulti(&w, ops)
			r2 := NewReader(w.Bytes())
			if again := DecodeMulti(r2); r2.Err() != nil || len(again) != len(ops) {
				t.Fatalf("%v: %d operations became %d", r2.Err(), len(ops), len(again))
			}
		}
		r = NewReader(in)
		DecodeMultiResults(r)
	})
}

func FuzzReadFrame(f *testing.F) {
	spoil.Add(f, []byte{0, 0, 0, 1, 9})
	spoil.Add(f, []byte{0, 15, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		body, err := ReadFrame(bytes.NewReader(in), 1<<16)
		if err == nil && !bytes.Equal(body, in[4:4+len(body)]) {
			t.Fatal("not the bytes that were sent")
		}
	})
}

func FuzzValidatePath(f *testing.F) {
	spoil.Add(f, "/a/b")
	spoil.Add(f, "//")
	f.Fuzz(func(t *testing.T, p string) {
		if ValidatePath(p, false) == nil && p != "/" && ValidatePath(p+"x", true) != nil {
			t.Fatalf("%q is a path and %qx is none", p, p)
		}
	})
}
