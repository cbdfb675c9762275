package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

func FuzzDecodeRequest(f *testing.F) {
	frame, err := AppendRequest(nil, &Request{CallID: 7, Method: "Get", Timeout: 60000, Priority: 200, Param: getRequest(), Cells: []byte("cells"),
		Attributes: []*pb.NameBytesPair{{Name: proto.String("a")}}, Trace: &pb.RPCTInfo{Headers: map[string]string{"k": "v"}}})
	if err != nil {
		f.Fatal(err)
	}
	spoil.Add(f, frame[4:])
	f.Fuzz(func(t *testing.T, in []byte) {
		keep := bytes.Clone(in)
		var r ReceivedRequest
		err := DecodeRequest(in, &r)
		if !bytes.Equal(in, keep) {
			t.Fatal("input changed")
		}
		var fe *FormatError
		if err != nil && !errors.As(err, &fe) {
			t.Fatalf("untyped error %v", err)
		}
		if err != nil || !r.HasParam {
			return
		}
		again, err := AppendRequest(nil, &Request{CallID: r.CallID, Method: string(r.Method), Timeout: r.Timeout, Priority: r.Priority,
			Param: raw(r.Param), Cells: r.Cells, Attributes: r.Attributes, Trace: r.Trace})
		if err != nil {
			t.Fatal(err)
		}
		var s ReceivedRequest
		if err := DecodeRequest(again[4:], &s); err != nil {
			t.Fatal(err)
		}
		if s.CallID != r.CallID || string(s.Method) != string(r.Method) || s.Timeout != r.Timeout || s.Priority != r.Priority ||
			!bytes.Equal(s.Param, r.Param) || !bytes.Equal(s.Cells, r.Cells) || len(s.Attributes) != len(r.Attributes) {
			t.Fatalf("%+v came back as %+v", r, s)
		}
	})
}

// raw is an already encoded message.
type raw []byte

func (r raw) SizeVT() int { return len(r) }
func (r raw) MarshalToSizedBufferVT(dst []byte) (int, error) {
	return copy(dst[len(dst)-len(r):], r), nil
}

func FuzzDecodeResponse(f *testing.F) {
	ok, err := AppendResponse(nil, 7, &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: proto.Int32(1)}}, []byte("cells"))
	if err != nil {
		f.Fatal(err)
	}
	spoil.Add(f, ok[4:])
	spoil.Add(f, AppendException(nil, 7, NewRegionMoved(MovedTo{Host: "h", Port: 1}))[4:])
	f.Fuzz(func(t *testing.T, in []byte) {
		keep := bytes.Clone(in)
		var r Response
		err := DecodeResponse(in, &r)
		var fe *FormatError
		if err != nil && !errors.As(err, &fe) {
			t.Fatalf("untyped error %v", err)
		}
		if !bytes.Equal(in, keep) {
			t.Fatal("input changed")
		}
		if err == nil && len(r.Result)+len(r.Cells) > len(in) {
			t.Fatal("more out than in")
		}
	})
}

// FuzzStream reads whatever comes as a server and as a client would.
// The short way reads what the general way reads, or leaves it to that.
func FuzzUsualHeader(f *testing.F) {
	spoil.Add(f, []byte{8, 1})
	spoil.Add(f, []byte{8, 0xff, 0xff, 0xff, 0xff, 7, 0x1a, 3, 8, 0x80, 1})
	spoil.Add(f, []byte{8, 5, 0x1a, 2, 8, 0})
	spoil.Add(f, []byte{8, 5, 8, 6})
	f.Fuzz(func(t *testing.T, in []byte) {
		var usual, any ResponseHeader
		if !usual.decodeUsual(in) {
			return
		}
		if err := any.decodeAny(in); err != nil || usual != any {
			t.Fatalf("%x: %+v and %+v, %v", in, usual, any, err)
		}
	})
}

func FuzzStream(f *testing.F) {
	header, err := AppendConnectionHeader(AppendPreamble(nil, AuthSimple), &pb.ConnectionHeader{ServiceName: proto.String("ClientService"), VersionInfo: Version()})
	if err != nil {
		f.Fatal(err)
	}
	spoil.Add(f, header)
	spoil.Add(f, []byte("Regist"))
	spoil.Add(f, []byte("\x00\x00\x00\x02ab\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 1 << 16
		r := bufio.NewReader(bytes.NewReader(in))
		if _, err := ReadPreamble(r); err == nil {
			if _, err := ReadConnectionHeader(r); err != nil {
				return
			}
		}
		total := 0
		for {
			b, err := ReadFrame(r, limit, nil)
			if err != nil {
				if err == io.EOF && total > len(in) {
					t.Fatal("more out than in")
				}
				return
			}
			total += len(b)
			if len(b) > limit {
				t.Fatalf("frame of %d bytes", len(b))
			}
		}
	})
}

func BenchmarkAppendRequest(b *testing.B) {
	r := &Request{CallID: 1 << 20, Method: "Get", Timeout: 60000, Param: getRequest()}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = AppendRequest(buf[:0], r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeRequest(b *testing.B) {
	frame, err := AppendRequest(nil, &Request{CallID: 1 << 20, Method: "Get", Timeout: 60000, Param: getRequest()})
	if err != nil {
		b.Fatal(err)
	}
	var r ReceivedRequest
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeRequest(frame[4:], &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeResponse(b *testing.B) {
	block, _ := KeyValueCodec.AppendCell(nil, &oneCell)
	frame, err := AppendResponse(nil, 7, &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: proto.Int32(1)}}, block)
	if err != nil {
		b.Fatal(err)
	}
	var r Response
	b.ReportAllocs()
	for b.Loop() {
		if err := DecodeResponse(frame[4:], &r); err != nil {
			b.Fatal(err)
		}
	}
}

// The hot paths allocate nothing of their own.
func TestAllocations(t *testing.T) {
	req := &Request{CallID: 1 << 20, Method: "Get", Timeout: 60000, Param: getRequest()}
	frame, err := AppendRequest(nil, req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := AppendResponse(nil, 7, &pb.GetResponse{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 1<<10)
	src := bytes.NewReader(nil)
	br := bufio.NewReader(src)
	var rr ReceivedRequest
	var r Response
	for name, f := range map[string]func(){
		"AppendRequest":  func() { _, _ = AppendRequest(buf, req) },
		"DecodeRequest":  func() { _ = DecodeRequest(frame[4:], &rr) },
		"DecodeResponse": func() { _ = DecodeResponse(answer[4:], &r) },
		"AppendCell":     func() { _, _ = KeyValueCodec.AppendCell(buf, &oneCell) },
		"ReadFrame": func() {
			src.Reset(frame)
			br.Reset(src)
			_, _ = ReadFrame(br, 0, buf)
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
