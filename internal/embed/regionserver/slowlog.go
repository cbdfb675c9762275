package regionserver

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// SlowLog says that a server keeps calls that were slow or answered much
// (hbase.regionserver.slowlog.buffer.enabled).
type SlowLog struct {
	// Slow is hbase.ipc.warn.response.time, Large
	// hbase.ipc.warn.response.size in bytes; 0 means HBase's 10 s and 100 MiB,
	// negative none.
	Slow  time.Duration
	Large int64
	// Size is how many calls are remembered
	// (hbase.regionserver.slowlog.ringbuffer.size); 0 means 256.
	Size int
}

func (l SlowLog) withDefaults() SlowLog {
	if l.Slow == 0 {
		l.Slow = 10 * time.Second
	}
	if l.Large == 0 {
		l.Large = 100 << 20
	}
	if l.Size <= 0 {
		l.Size = 256
	}
	return l
}

// slowLog is the ring of a server's slow and large calls. Safe for concurrent
// use; nil keeps nothing.
type slowLog struct {
	size int
	mu   sync.Mutex
	ring []*pb.SlowLogPayload // oldest first
}

func newSlowLog(o *SlowLog) *slowLog {
	if o == nil {
		return nil
	}
	return &slowLog{size: o.withDefaults().Size}
}

// outliers has an RPC server tell the log of its calls; nil for none.
func (l *slowLog) outliers(o *SlowLog) *rpcserver.Outliers {
	if l == nil {
		return nil
	}
	d := o.withDefaults()
	return &rpcserver.Outliers{Slow: d.Slow, Large: d.Large, Record: l.record}
}

func (l *slowLog) record(x *rpcserver.Outlier) {
	p := payload(x)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) == l.size {
		copy(l.ring, l.ring[1:])
		l.ring = l.ring[:l.size-1]
	}
	l.ring = append(l.ring, p)
}

// clear forgets everything and says whether there was a log to clear.
func (l *slowLog) clear() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring = nil
	return true
}

// answer gives the newest calls that a request asks for; large chooses those that
// answered much.
func (l *slowLog) answer(q *pb.SlowLogResponseRequest, large bool) *pb.SlowLogResponses {
	out := &pb.SlowLogResponses{}
	if l == nil {
		return out
	}
	of := pb.SlowLogPayload_SLOW_LOG
	if large {
		of = pb.SlowLogPayload_LARGE_LOG
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.ring) - 1; i >= 0 && uint32(len(out.SlowLogPayloads)) < q.GetLimit(); i-- {
		if p := l.ring[i]; (p.GetType() == of || p.GetType() == pb.SlowLogPayload_ALL) && chosen(p, q) {
			out.SlowLogPayloads = append(out.SlowLogPayloads, p)
		}
	}
	return out
}

// chosen says whether a request's filters choose a call: all of those that are
// set, or with OR, which is the default, any of them.
func chosen(p *pb.SlowLogPayload, q *pb.SlowLogResponseRequest) bool {
	filters, matches := 0, 0
	filter := func(value string, ok func() bool) {
		if value == "" {
			return
		}
		if filters++; ok() {
			matches++
		}
	}
	filter(q.GetRegionName(), func() bool { return p.GetRegionName() == q.GetRegionName() })
	filter(q.GetTableName(), func() bool { return strings.HasPrefix(p.GetRegionName(), q.GetTableName()) })
	filter(q.GetClientAddress(), func() bool {
		address := p.GetClientAddress()
		host := address
		if i := strings.LastIndexByte(address, ':'); i > 0 {
			host = address[:i]
		}
		return q.GetClientAddress() == address || q.GetClientAddress() == host
	})
	filter(q.GetUserName(), func() bool { return p.GetUserName() == q.GetUserName() })
	if q.FilterByOperator != nil && q.GetFilterByOperator() == pb.SlowLogResponseRequest_AND {
		return matches == filters
	}
	return filters == 0 || matches > 0
}

// payload describes a call as HBase's SlowLogQueueService does.
func payload(x *rpcserver.Outlier) *pb.SlowLogPayload {
	p := &pb.SlowLogPayload{
		StartTime: new(x.Begun.UnixMilli()), ProcessingTime: new(int32(x.Took.Milliseconds())), QueueTime: new(int32(x.Queue.Milliseconds())),
		ResponseSize: new(x.Bytes), ClientAddress: new(x.Call.Conn.Remote()), ServerClass: new("HRegionServer"), MethodName: new(x.Call.Method),
		UserName: new(x.Call.Conn.User()), RegionName: new(""), Param: new(""), Type: pb.SlowLogPayload_SLOW_LOG.Enum(),
		MultiGets: new(int32(0)), MultiMutations: new(int32(0)), MultiServiceCalls: new(int32(0)), BlockBytesScanned: new(int64(0)), FsReadTime: new(int64(0)),
	}
	switch {
	case x.Slow && x.Large:
		p.Type = pb.SlowLogPayload_ALL.Enum()
	case x.Large:
		p.Type = pb.SlowLogPayload_LARGE_LOG.Enum()
	}
	class := ""
	if m, ok := x.In.(proto.Message); ok {
		class = javaClass(m.ProtoReflect().Descriptor())
	}
	p.CallDetails = new(x.Call.Method + "(" + class + ")")
	region := func(spec *pb.RegionSpecifier) string {
		*p.RegionName = cells.Quote(spec.GetValue())
		return "region= " + *p.RegionName
	}
	switch in := x.In.(type) {
	case *pb.ScanRequest:
		region(in.GetRegion())
		*p.Param = shortText(in.ProtoReflect())
	case *pb.GetRequest:
		*p.Param = region(in.GetRegion()) + ", row= " + cells.Quote(in.GetGet().GetRow())
	case *pb.MutateRequest:
		*p.Param = region(in.GetRegion()) + ", row= " + cells.Quote(in.GetMutation().GetRow())
	case *pb.MultiRequest:
		n := 0
		for _, ra := range in.GetRegionAction() {
			n += len(ra.GetAction())
			for _, a := range ra.GetAction() {
				switch {
				case a.Mutation != nil:
					*p.MultiMutations++
				case a.Get != nil:
					*p.MultiGets++
				case a.ServiceCall != nil:
					*p.MultiServiceCalls++
				}
			}
		}
		if len(in.GetRegionAction()) > 0 {
			*p.Param = fmt.Sprintf("%s, for %d action(s)", region(in.GetRegionAction()[0].GetRegion()), n)
		}
	case *pb.CoprocessorServiceRequest:
		*p.Param = "coprocessorService= " + in.GetCall().GetServiceName() + ":" + in.GetCall().GetMethodName()
	default:
		*p.Param = "class " + class
	}
	return p
}

// javaClass is the name of the Java class of a message.
func javaClass(d protoreflect.MessageDescriptor) string {
	file := d.ParentFile().Path()
	file = strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".proto")
	outer := ""
	for part := range strings.SplitSeq(file, "_") {
		if part != "" {
			outer += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return "org.apache.hadoop.hbase.shaded.protobuf.generated." + outer + "Protos$" + string(d.Name())
}

// shortText writes a message on one line as Java's TextFormat does.
func shortText(m protoreflect.Message) string {
	var parts []string
	fields := m.Descriptor().Fields()
	one := func(f protoreflect.FieldDescriptor, v protoreflect.Value) {
		name := string(f.Name())
		switch f.Kind() {
		case protoreflect.MessageKind, protoreflect.GroupKind:
			parts = append(parts, name+" { "+shortText(v.Message())+" }")
		case protoreflect.EnumKind:
			text := fmt.Sprint(v.Enum())
			if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
				text = string(e.Name())
			}
			parts = append(parts, name+": "+text)
		case protoreflect.BytesKind:
			parts = append(parts, name+": \""+javaEscape(v.Bytes())+"\"")
		case protoreflect.StringKind:
			parts = append(parts, name+": \""+javaEscape([]byte(v.String()))+"\"")
		default:
			parts = append(parts, fmt.Sprintf("%s: %v", name, v.Interface()))
		}
	}
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) {
			continue
		}
		if !f.IsList() {
			one(f, m.Get(f))
			continue
		}
		for l, j := m.Get(f).List(), 0; j < l.Len(); j++ {
			one(f, l.Get(j))
		}
	}
	return strings.Join(parts, " ")
}

// javaEscape escapes bytes as TextFormat does: in C's way, others in octal.
func javaEscape(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		switch {
		case c == '\a':
			s.WriteString(`\a`)
		case c == '\b':
			s.WriteString(`\b`)
		case c == '\f':
			s.WriteString(`\f`)
		case c == '\n':
			s.WriteString(`\n`)
		case c == '\r':
			s.WriteString(`\r`)
		case c == '\t':
			s.WriteString(`\t`)
		case c == '\v':
			s.WriteString(`\v`)
		case c == '\\' || c == '\'' || c == '"':
			s.WriteByte('\\')
			s.WriteByte(c)
		case c >= 0x20 && c < 0x7f:
			s.WriteByte(c)
		default:
			fmt.Fprintf(&s, `\%03o`, c)
		}
	}
	return s.String()
}
