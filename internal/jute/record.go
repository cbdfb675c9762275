package jute

// ConnectRequest opens a conversation. It has no header.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	TimeoutMs       int32
	SessionID       int64 // 0 asks for a new session
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool // the readOnly byte is on the wire; clients before 3.4 do not send it
}

func (m *ConnectRequest) Encode(w *Writer) {
	w.Int(m.ProtocolVersion)
	w.Long(m.LastZxidSeen)
	w.Int(m.TimeoutMs)
	w.Long(m.SessionID)
	w.Buffer(m.Password)
	if m.HasReadOnly {
		w.Bool(m.ReadOnly)
	}
}

func (m *ConnectRequest) Decode(r *Reader) {
	m.ProtocolVersion = r.Int()
	m.LastZxidSeen = r.Long()
	m.TimeoutMs = r.Int()
	m.SessionID = r.Long()
	m.Password = r.Buffer()
	if m.HasReadOnly = len(r.Rest()) > 0; m.HasReadOnly {
		m.ReadOnly = r.Bool()
	}
}

// ConnectResponse answers a ConnectRequest. It has no header. TimeoutMs <= 0 means there is no such session.
type ConnectResponse struct {
	ProtocolVersion int32
	TimeoutMs       int32
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool // present only if the request carried the byte
}

func (m *ConnectResponse) Encode(w *Writer) {
	w.Int(m.ProtocolVersion)
	w.Int(m.TimeoutMs)
	w.Long(m.SessionID)
	w.Buffer(m.Password)
	if m.HasReadOnly {
		w.Bool(m.ReadOnly)
	}
}

func (m *ConnectResponse) Decode(r *Reader) {
	m.ProtocolVersion = r.Int()
	m.TimeoutMs = r.Int()
	m.SessionID = r.Long()
	m.Password = r.Buffer()
	if m.HasReadOnly = len(r.Rest()) > 0; m.HasReadOnly {
		m.ReadOnly = r.Bool()
	}
}

// RequestHeader precedes every request once the session is up.
type RequestHeader struct {
	Xid int32
	Op  OpCode
}

func (m *RequestHeader) Encode(w *Writer) {
	w.Int(m.Xid)
	w.Int(int32(m.Op))
}

func (m *RequestHeader) Decode(r *Reader) {
	m.Xid = r.Int()
	m.Op = OpCode(r.Int())
}

// ReplyHeader precedes every reply and every event. A body follows only if Err is OK.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Err  Code
}

// ReplyHeaderSize is the length of an encoded ReplyHeader: a shorter frame from a server is never valid.
const ReplyHeaderSize = 16

func (m *ReplyHeader) Encode(w *Writer) {
	w.Int(m.Xid)
	w.Long(m.Zxid)
	w.Int(int32(m.Err))
}

func (m *ReplyHeader) Decode(r *Reader) {
	m.Xid = r.Int()
	m.Zxid = r.Long()
	m.Err = Code(r.Int())
}

// Stat is a node's metadata. Times are milliseconds since 1970.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64 // session id, 0 for a node that is not ephemeral
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// StatSize is the length of an encoded Stat.
const StatSize = 68

func (m *Stat) Encode(w *Writer) {
	w.Long(m.Czxid)
	w.Long(m.Mzxid)
	w.Long(m.Ctime)
	w.Long(m.Mtime)
	w.Int(m.Version)
	w.Int(m.Cversion)
	w.Int(m.Aversion)
	w.Long(m.EphemeralOwner)
	w.Int(m.DataLength)
	w.Int(m.NumChildren)
	w.Long(m.Pzxid)
}

func (m *Stat) Decode(r *Reader) {
	m.Czxid = r.Long()
	m.Mzxid = r.Long()
	m.Ctime = r.Long()
	m.Mtime = r.Long()
	m.Version = r.Int()
	m.Cversion = r.Int()
	m.Aversion = r.Int()
	m.EphemeralOwner = r.Long()
	m.DataLength = r.Int()
	m.NumChildren = r.Int()
	m.Pzxid = r.Long()
}

// ACL is one entry of an access control list.
type ACL struct {
	Perms  int32
	Scheme string
	ID     string
}

// OpenACL lets anybody do anything; it is what a create without an ACL of its own uses.
func OpenACL() []ACL { return []ACL{{Perms: PermAll, Scheme: "world", ID: "anyone"}} }

// EncodeACLs appends a vector of ACL entries.
func EncodeACLs(w *Writer, acls []ACL) {
	w.Int(int32(len(acls)))
	for i := range acls {
		w.Int(acls[i].Perms)
		w.String(acls[i].Scheme)
		w.String(acls[i].ID)
	}
}

// DecodeACLs reads a vector of ACL entries.
func DecodeACLs(r *Reader) []ACL {
	n := r.Count(12)
	if n == 0 {
		return nil
	}
	out := make([]ACL, 0, n)
	for range n {
		a := ACL{Perms: r.Int(), Scheme: r.String(), ID: r.String()}
		if r.err != nil {
			return nil
		}
		out = append(out, a)
	}
	return out
}

// WatcherEvent is the body of a notification.
type WatcherEvent struct {
	Type  EventType
	State int32
	Path  string
}

func (m *WatcherEvent) Encode(w *Writer) {
	w.Int(int32(m.Type))
	w.Int(m.State)
	w.String(m.Path)
}

func (m *WatcherEvent) Decode(r *Reader) {
	m.Type = EventType(r.Int())
	m.State = r.Int()
	m.Path = r.String()
}

// CreateRequest is the body of create, create2, createContainer and, with a TTL behind it, createTTL.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
	TTLMs int64 // createTTL only
}

func (m *CreateRequest) Encode(w *Writer, op OpCode) {
	w.String(m.Path)
	w.Buffer(m.Data)
	EncodeACLs(w, m.ACL)
	w.Int(m.Flags)
	if op == OpCreateTTL {
		w.Long(m.TTLMs)
	}
}

func (m *CreateRequest) Decode(r *Reader, op OpCode) {
	m.Path = r.String()
	m.Data = r.Buffer()
	m.ACL = DecodeACLs(r)
	m.Flags = r.Int()
	if op == OpCreateTTL {
		m.TTLMs = r.Long()
	}
}

// PathVersion is the body of delete and check. Version -1 matches any.
type PathVersion struct {
	Path    string
	Version int32
}

func (m *PathVersion) Encode(w *Writer) {
	w.String(m.Path)
	w.Int(m.Version)
}

func (m *PathVersion) Decode(r *Reader) {
	m.Path = r.String()
	m.Version = r.Int()
}

// PathWatch is the body of exists, getData, getChildren and getChildren2.
type PathWatch struct {
	Path  string
	Watch bool
}

func (m *PathWatch) Encode(w *Writer) {
	w.String(m.Path)
	w.Bool(m.Watch)
}

func (m *PathWatch) Decode(r *Reader) {
	m.Path = r.String()
	m.Watch = r.Bool()
}

// SetDataRequest is the body of setData. Version -1 matches any.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

func (m *SetDataRequest) Encode(w *Writer) {
	w.String(m.Path)
	w.Buffer(m.Data)
	w.Int(m.Version)
}

func (m *SetDataRequest) Decode(r *Reader) {
	m.Path = r.String()
	m.Data = r.Buffer()
	m.Version = r.Int()
}

// SetACLRequest is the body of setACL. Version -1 matches any.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

func (m *SetACLRequest) Encode(w *Writer) {
	w.String(m.Path)
	EncodeACLs(w, m.ACL)
	w.Int(m.Version)
}

func (m *SetACLRequest) Decode(r *Reader) {
	m.Path = r.String()
	m.ACL = DecodeACLs(r)
	m.Version = r.Int()
}

// PathMode is the body of addWatch (mode), checkWatches and removeWatches (watcher type).
type PathMode struct {
	Path string
	Mode int32
}

func (m *PathMode) Encode(w *Writer) {
	w.String(m.Path)
	w.Int(m.Mode)
}

func (m *PathMode) Decode(r *Reader) {
	m.Path = r.String()
	m.Mode = r.Int()
}

// SetWatches re-arms watches after a reconnect. The last two lists travel only in setWatches2.
type SetWatches struct {
	RelativeZxid int64
	Data         []string
	Exist        []string
	Child        []string
	Persistent   []string
	Recursive    []string
}

func (m *SetWatches) Encode(w *Writer, op OpCode) {
	w.Long(m.RelativeZxid)
	w.Strings(m.Data)
	w.Strings(m.Exist)
	w.Strings(m.Child)
	if op == OpSetWatches2 {
		w.Strings(m.Persistent)
		w.Strings(m.Recursive)
	}
}

func (m *SetWatches) Decode(r *Reader, op OpCode) {
	m.RelativeZxid = r.Long()
	m.Data = r.Strings()
	m.Exist = r.Strings()
	m.Child = r.Strings()
	if op == OpSetWatches2 {
		m.Persistent = r.Strings()
		m.Recursive = r.Strings()
	}
}

// AuthPacket is the body of auth.
type AuthPacket struct {
	Type   int32
	Scheme string
	Auth   []byte
}

func (m *AuthPacket) Encode(w *Writer) {
	w.Int(m.Type)
	w.String(m.Scheme)
	w.Buffer(m.Auth)
}

func (m *AuthPacket) Decode(r *Reader) {
	m.Type = r.Int()
	m.Scheme = r.String()
	m.Auth = r.Buffer()
}
