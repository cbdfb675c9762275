package pb

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

type vtMessage interface {
	proto.Message
	MarshalVT() ([]byte, error)
	UnmarshalVT([]byte) error
	SizeVT() int
}

// filled sets every field of a message to a value (mostly not the default),
// down to the given depth.
func filled(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Message() != nil && depth == 0 && fd.Cardinality() != protoreflect.Required {
			continue
		}
		switch {
		case fd.IsMap():
			v := protoreflect.ValueOfUint32(7)
			if fd.MapValue().Kind() == protoreflect.StringKind {
				v = protoreflect.ValueOfString("v")
			}
			m.Mutable(fd).Map().Set(protoreflect.ValueOfString("k").MapKey(), v)
		case fd.IsList():
			l := m.Mutable(fd).List()
			for range 2 {
				if fd.Message() != nil {
					e := l.NewElement()
					filled(e.Message(), depth-1)
					l.Append(e)
				} else {
					l.Append(scalar(fd))
				}
			}
		case fd.Message() != nil:
			filled(m.Mutable(fd).Message(), max(depth-1, 0))
		default:
			m.Set(fd, scalar(fd))
		}
	}
}

func scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(-5)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(-6)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1 << 31)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1 << 63)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(1.5)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(2.5)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("text")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 0xff})
	case protoreflect.EnumKind:
		v := fd.Enum().Values()
		return protoreflect.ValueOfEnum(v.Get(v.Len() - 1).Number())
	}
	panic(fmt.Sprint("unexpected kind ", fd.Kind()))
}

func messages(t *testing.T) []protoreflect.MessageType {
	t.Helper()
	var all []protoreflect.MessageType
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if strings.HasPrefix(string(mt.Descriptor().FullName()), "hbase.pb.") {
			all = append(all, mt)
		}
		return true
	})
	if len(all) < 500 {
		t.Fatalf("only %d messages registered", len(all))
	}
	return all
}

// TestEveryMessageBothWays holds the fast methods against the reference
// implementation, for every message with every field set.
func TestEveryMessageBothWays(t *testing.T) {
	for _, mt := range messages(t) {
		name := mt.Descriptor().FullName()
		m, ok := mt.New().Interface().(vtMessage)
		if !ok {
			t.Errorf("%s lacks the VT methods", name)
			continue
		}
		filled(m.ProtoReflect(), 2)
		fast, err := m.MarshalVT()
		if err != nil {
			t.Errorf("%s: MarshalVT: %v", name, err)
			continue
		}
		if len(fast) != m.SizeVT() {
			t.Errorf("%s: SizeVT = %d, encoded %d bytes", name, m.SizeVT(), len(fast))
		}
		slow, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil || !bytes.Equal(fast, slow) {
			t.Errorf("%s: MarshalVT = %x, proto.Marshal = %x, %v", name, fast, slow, err)
		}
		back := mt.New().Interface().(vtMessage)
		if err := back.UnmarshalVT(fast); err != nil || !proto.Equal(m, back) {
			t.Errorf("%s: UnmarshalVT(MarshalVT) differs: %v\n got %v\nwant %v", name, err, back, m)
		}
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	var r MutationProto
	in := append([]byte{0x0a, 2, 'r', '1'}, 0xba, 0x06, 3, 'a', 'b', 'c')
	if err := r.UnmarshalVT(in); err != nil {
		t.Fatal(err)
	}
	out, err := r.MarshalVT()
	if err != nil || !bytes.Equal(out, in) {
		t.Fatalf("out = %x, %v, want %x", out, err, in)
	}
}

// TestServerLoadOfBothLines: number 13 is a map in 2.6 and a counter in 3.0.
func TestServerLoadOfBothLines(t *testing.T) {
	for _, in := range []string{"1803" + "6a050a01611001", "1803" + "6807"} {
		b, _ := hex.DecodeString(in)
		var l ServerLoad
		if err := l.UnmarshalVT(b); err != nil || l.GetUsedHeap_MB() != 3 {
			t.Errorf("%s: heap = %d, %v", in, l.GetUsedHeap_MB(), err)
		}
	}
}

func TestRequiredFieldsAreRequired(t *testing.T) {
	if _, err := (&GetRequest{}).MarshalVT(); err == nil || !strings.Contains(err.Error(), "required field") {
		t.Errorf("MarshalVT of an empty GetRequest: %v", err)
	}
	if err := new(TableName).UnmarshalVT([]byte{0x0a, 1, 'n'}); err == nil || !strings.Contains(err.Error(), "qualifier") {
		t.Errorf("UnmarshalVT without qualifier: %v", err)
	}
}

func TestKnownBytes(t *testing.T) {
	region := []byte("t1,,1700000000000.43ae7364b4a555b93267937f9bc49ec1.")
	tests := []struct {
		name string
		m    vtMessage
		want string
	}{
		{"get request", &GetRequest{
			Region: &RegionSpecifier{Type: RegionSpecifier_REGION_NAME.Enum(), Value: region},
			Get:    &Get{Row: []byte("r1")},
		}, "0a3708011233" + hex.EncodeToString(region) + "12040a027231"},
		{"get response", &GetResponse{Result: &Result{AssociatedCellCount: proto.Int32(1)}}, "0a021001"},
		{"request header", &RequestHeader{
			CallId: proto.Uint32(7), MethodName: proto.String("Get"), RequestParam: proto.Bool(true), Timeout: proto.Uint32(60000),
		}, "08071a03476574200138e0d403"},
		{"response header", &ResponseHeader{CallId: proto.Uint32(7), CellBlockMeta: &CellBlockMeta{Length: proto.Uint32(30)}}, "08071a02081e"},
		{"meta location", &MetaRegionServer{
			Server:     &ServerName{HostName: proto.String("rs1.example"), Port: proto.Uint32(16020), StartCode: proto.Uint64(1700000000000)},
			RpcVersion: proto.Uint32(0), State: RegionState_OPEN.Enum(),
		}, "0a170a0b7273312e6578616d706c6510947d1880d095ffbc3110001803"},
		{"table state", &TableState{State: TableState_DISABLED.Enum()}, "0801"},
	}
	for _, tt := range tests {
		got, err := tt.m.MarshalVT()
		if err != nil || hex.EncodeToString(got) != tt.want {
			t.Errorf("%s = %x, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}
