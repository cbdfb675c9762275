package main

import (
	"math/rand/v2"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// rpcServices are the services by the port that serves them. Each method of
// their descriptors is called.
var rpcServices = []struct {
	name     string
	file     protoreflect.FileDescriptor
	onMaster bool
}{
	{"ClientService", pb.File_internal_pb_proto_client_proto, false},
	{"AdminService", pb.File_internal_pb_proto_admin_proto, false},
	{"ClientMetaService", pb.File_internal_pb_proto_registry_proto, false},
	{"ClientMetaService", pb.File_internal_pb_proto_registry_proto, true},
	{"MasterService", pb.File_internal_pb_proto_master_proto, true},
	{"AdminService", pb.File_internal_pb_proto_admin_proto, true},
}

// ending are the calls that end the cluster, as they should.
var ending = map[string]bool{"Shutdown": true, "StopMaster": true, "StopServer": true}

// filler makes messages of any type: every required field, some of the others,
// filled with what the cluster knows or with noise.
type filler struct {
	r    *rand.Rand
	pic  *picture
	left int // fields that may still be filled, so that no message grows without end
}

// vocabulary is what names and values are made of.
var vocabulary = []string{"fuzz", "default", "hbase", "meta", "f", "g", "q", "r1", "r2", "", "a", "m", "z", "KeyValueCodec", "admin",
	"org.apache.hadoop.hbase.filter.PrefixFilter", "org.apache.hadoop.hbase.filter.FilterList", "org.apache.hadoop.hbase.filter.PageFilter",
	"org.apache.hadoop.hbase.filter.BinaryComparator", "org.apache.hadoop.hbase.filter.RegexStringComparator", "org.apache.hadoop.hbase.filter.FuzzyRowFilter",
	"AggregateService", "MultiRowMutationService", "GetMax", "MutateRows", "org.apache.hadoop.hbase.coprocessor.LongColumnInterpreter",
	"VERSIONS", "TTL", "IS_META", "_ttl", "ttl", "java.lang.String", "/nowhere/f/file", "UTF-8"}

func (f *filler) bytes() []byte {
	switch f.r.IntN(10) {
	case 0, 1, 2:
		if len(f.pic.Regions) > 0 {
			return []byte(pick(f.r, f.pic.Regions...))
		}
	case 3:
		if len(f.pic.Encoded) > 0 {
			return []byte(pick(f.r, f.pic.Encoded...))
		}
	case 4:
		return noise(f.r, f.r.IntN(20))
	}
	return []byte(pick(f.r, vocabulary...))
}

func (f *filler) number() uint64 {
	return pick(f.r, 0, 1, 2, 3, 4, 8, 100, 1<<31-1, 1<<31, 1<<32-1, 1<<62, 1<<63, 1<<64-1, uint64(f.r.IntN(1000)), f.r.Uint64())
}

func (f *filler) message(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i)
		must := d.Cardinality() == protoreflect.Required
		if !must && (depth > 6 || f.left <= 0 || !chance(f.r, 2)) {
			continue
		}
		f.left--
		switch {
		case d.IsMap(): // the trace's headers, which nobody reads
		case d.IsList():
			l := m.Mutable(d).List()
			for range f.r.IntN(4) {
				if d.Kind() == protoreflect.MessageKind {
					f.message(l.AppendMutable().Message(), depth+1)
				} else {
					l.Append(f.scalar(d))
				}
			}
		case d.Kind() == protoreflect.MessageKind:
			if depth <= 12 {
				f.message(m.Mutable(d).Message(), depth+1)
			}
		default:
			m.Set(d, f.scalar(d))
		}
	}
}

func (f *filler) scalar(d protoreflect.FieldDescriptor) protoreflect.Value {
	n := f.number()
	switch d.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n&1 == 0)
	case protoreflect.EnumKind:
		values := d.Enum().Values()
		if chance(f.r, 16) {
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(n)))
		}
		return protoreflect.ValueOfEnum(values.Get(f.r.IntN(values.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(f.bytes()))
	}
	return protoreflect.ValueOfBytes(f.bytes())
}

// encoded is a message as bytes.
type encoded []byte

func (e encoded) SizeVT() int { return len(e) }
func (e encoded) MarshalToSizedBufferVT(dst []byte) (int, error) {
	return copy(dst[len(dst)-len(e):], e), nil
}

// rpcTalk is one conversation with HBase's RPC: preamble and connection header,
// then calls of one service.
func rpcTalk(r *rand.Rand, pic *picture) talk {
	at := 0
	if !chance(r, 3) {
		at = r.IntN(len(rpcServices))
	}
	svc := rpcServices[at]
	t := talk{address: pic.Server, framed: true}
	if svc.onMaster {
		t.address = pic.Master
	}
	codec := pick(r, wire.KeyValueCodec, wire.KeyValueCodec, wire.KeyValueCodecWithTags, wire.CodecNone)
	kind := wire.NoCompression
	h := &pb.ConnectionHeader{ServiceName: &svc.name, UserInfo: &pb.UserInformation{EffectiveUser: proto.String("fuzz")}}
	if name := codec.ClassName(); name != "" {
		h.CellBlockCodecClass = &name
		if chance(r, 2) {
			kind = pick(r, wire.Gzip, wire.Snappy, wire.LZ4, wire.Zstd, wire.Deflate)
			h.CellBlockCompressorClass = proto.String(kind.ClassName())
		}
	}
	if chance(r, 50) {
		h.CellBlockCodecClass, h.CellBlockCompressorClass = proto.String(pick(r, vocabulary...)), proto.String(pick(r, vocabulary...))
	}
	auth := wire.AuthSimple
	switch r.IntN(24) {
	case 0:
		t.hello = wire.AppendRegistryPreamble(nil)
	case 1:
		t.hello = wire.AppendSecurityPreamble(nil)
	case 2:
		auth = wire.AuthKerberos
	}
	t.hello = wire.AppendPreamble(t.hello, auth)
	if auth != wire.AuthSimple {
		token := noise(r, r.IntN(64))
		t.hello = append(t.hello, 0, 0, 0, byte(len(token)))
		t.hello = append(t.hello, token...)
	}
	with, err := wire.AppendConnectionHeader(t.hello, h)
	if err != nil {
		return t
	}
	t.hello = with
	var zip *wire.Compressor
	if kind != wire.NoCompression {
		if zip, err = wire.NewCompressor(kind, 0); err != nil {
			return t
		}
	}
	methods := svc.file.Services().ByName(protoreflect.Name(svc.name)).Methods()
	for id := range uint32(1 + r.IntN(12)) {
		m := methods.Get(r.IntN(methods.Len()))
		if ending[string(m.Name())] {
			continue
		}
		param := rpcParam(r, pic, svc.name, m)
		q := wire.Request{CallID: id + 1, Method: string(m.Name()), Timeout: uint32(1 + r.IntN(1000)), Param: encoded(param)}
		if chance(r, 3) {
			q.Cells = cellBlock(r, codec, zip)
		}
		if frame, err := wire.AppendRequest(nil, &q); err == nil {
			t.frames = append(t.frames, frame)
		}
	}
	return t
}

// newMessage makes an empty message of a type.
func newMessage(d protoreflect.MessageDescriptor) protoreflect.Message {
	if t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName()); err == nil {
		return t.New()
	}
	return dynamicpb.NewMessage(d)
}

// rpcParam makes a request message; the most frequent ones are made to be
// right about the region.
func rpcParam(r *rand.Rand, pic *picture, service string, m protoreflect.MethodDescriptor) []byte {
	f := &filler{r: r, pic: pic, left: 60}
	in := newMessage(m.Input())
	f.message(in, 0)
	if service == "ClientService" && len(pic.Regions) > 0 && !chance(r, 4) {
		if d := in.Descriptor().Fields().ByName("region"); d != nil && d.Kind() == protoreflect.MessageKind && !d.IsList() {
			spec := &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(pick(r, pic.Regions...))}
			in.Set(d, protoreflect.ValueOfMessage(spec.ProtoReflect()))
		}
	}
	b, err := proto.MarshalOptions{AllowPartial: true}.Marshal(in.Interface())
	if err != nil {
		return noise(r, 16)
	}
	return b
}

func cellBlock(r *rand.Rand, codec wire.Codec, zip *wire.Compressor) []byte {
	if codec == wire.CodecNone || chance(r, 4) {
		return noise(r, r.IntN(64))
	}
	var list []cells.Cell
	for range r.IntN(6) {
		list = append(list, cells.Cell{Row: []byte(pick(r, "a", "m", "r1", "z")), Family: []byte(pick(r, "f", "g", "x")), Qualifier: []byte("q"),
			Timestamp: int64(r.Uint64() >> pick(r, 1, 20, 60)), Type: pick(r, cells.Put, cells.Delete, cells.DeleteFamily), Value: noise(r, r.IntN(64))})
	}
	block, err := codec.AppendCells(nil, list)
	if err != nil {
		return nil
	}
	if chance(r, 4) {
		block = spoil(r, block, false)
	}
	if zip != nil {
		if block, err = zip.Compress(nil, block); err != nil {
			return nil
		}
		if chance(r, 4) {
			block = spoil(r, block, false)
		}
	}
	return block
}
