package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const regionName = "t1,,1700000000000.43ae7364b4a555b93267937f9bc49ec1."

func getRequest() *pb.GetRequest {
	return &pb.GetRequest{
		Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(regionName)},
		Get:    &pb.Get{Row: []byte("r1")},
	}
}

var oneCell = cells.Cell{Row: []byte("r1"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 1700000000000, Type: cells.Put, Value: []byte("v1")}

const oneCellHex = "0000001a 00000010 00000002 0002 7231 01 66 71 0000018bcfe56800 04 7631"

// The worked bytes of a SIMPLE connection.
func TestWorkedBytes(t *testing.T) {
	if got := AppendPreamble(nil, AuthSimple); !bytes.Equal(got, unhex(t, "48 42 61 73 00 50")) {
		t.Errorf("preamble = %x", got)
	}
	header, err := AppendConnectionHeader(nil, &pb.ConnectionHeader{
		UserInfo:            &pb.UserInformation{EffectiveUser: proto.String("alice")},
		ServiceName:         proto.String("ClientService"),
		CellBlockCodecClass: proto.String(KeyValueCodec.ClassName()),
	})
	want := unhex(t, "00000045 0a070a05616c696365 120d436c69656e7453657276696365 1a2b6f72672e6170616368652e6861646f6f702e68626173652e636f6465632e4b657956616c7565436f646563")
	if err != nil || !bytes.Equal(header, want) {
		t.Errorf("connection header = %x, %v", header, err)
	}
	back, err := ReadConnectionHeader(bytes.NewReader(header))
	if err != nil || back.GetUserInfo().GetEffectiveUser() != "alice" || back.GetServiceName() != "ClientService" {
		t.Errorf("ReadConnectionHeader = %v, %v", back, err)
	}

	frame, err := AppendRequest(nil, &Request{CallID: 7, Method: "Get", Timeout: 60000, Param: getRequest()})
	want = unhex(t, "0000004e 0d 08071a03476574200138e0d403 3f 0a370801 1233"+hex.EncodeToString([]byte(regionName))+"1204 0a027231")
	if err != nil || !bytes.Equal(frame, want) {
		t.Errorf("request = %x, %v\nwant      %x", frame, err, want)
	}

	block, err := KeyValueCodec.AppendCell(nil, &oneCell)
	if err != nil || !bytes.Equal(block, unhex(t, oneCellHex)) {
		t.Errorf("cell = %x, %v", block, err)
	}
	answer, err := AppendResponse(nil, 7, &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: proto.Int32(1)}}, block)
	want = unhex(t, "0000002a 06 08071a02081e 04 0a021001"+oneCellHex)
	if err != nil || !bytes.Equal(answer, want) {
		t.Errorf("response = %x, %v\nwant       %x", answer, err, want)
	}
	var r Response
	if err := DecodeResponse(answer[4:], &r); err != nil || r.CallID != 7 || r.Exception != nil || !bytes.Equal(r.Cells, block) || !bytes.Equal(r.Result, unhex(t, "0a021001")) {
		t.Errorf("DecodeResponse = %+v, %v", r, err)
	}
	list, err := KeyValueCodec.DecodeCells(r.Cells, nil)
	if d := cmp.Diff([]cells.Cell{oneCell}, list); err != nil || d != "" {
		t.Errorf("cells: %v\n%s", err, d)
	}
}

func TestReadPreamble(t *testing.T) {
	tests := []struct {
		in    string
		want  Preamble
		class string
	}{
		{in: "HBas\x00\x50", want: Preamble{Auth: AuthSimple}},
		{in: "HBas\x00\x51", want: Preamble{Auth: AuthKerberos}},
		{in: "HBas\x00\x52", want: Preamble{Auth: AuthDigest}},
		{in: "HBas\x00\x07", want: Preamble{Auth: 7}},
		{in: "Regist", want: Preamble{Kind: PreambleRegistry}},
		{in: "Securi", want: Preamble{Kind: PreambleSecurity}},
		{in: "HBas\x01\x50", class: ClassWrongVersion},
		{in: "GET / ", class: ClassFatalConnection},
		{in: "\x16\x03\x01\x00\x05\x01", class: ClassFatalConnection},
	}
	for _, tt := range tests {
		got, err := ReadPreamble(iotest.OneByteReader(strings.NewReader(tt.in)))
		var re *RemoteError
		switch {
		case tt.class == "" && (err != nil || got != tt.want):
			t.Errorf("%q: %+v, %v, want %+v", tt.in, got, err, tt.want)
		case tt.class != "" && (!errors.As(err, &re) || re.Class != tt.class || !re.Fatal() || !re.DoNotRetry):
			t.Errorf("%q: %v, want %s", tt.in, err, tt.class)
		}
	}
	_, err := ReadPreamble(strings.NewReader("GET / HTTP"))
	if err == nil || !strings.Contains(err.Error(), "Expected HEADER=HBas but received HEADER=GET ") {
		t.Errorf("bad magic: %v", err)
	}
	if _, err := ReadPreamble(strings.NewReader("HB")); err != io.ErrUnexpectedEOF {
		t.Errorf("short: %v", err)
	}
}

func TestRequestBothWays(t *testing.T) {
	r := &Request{
		CallID: math.MaxInt32, Method: "Multi", Priority: 200, Timeout: 1, Param: &pb.MultiRequest{NonceGroup: proto.Uint64(3)},
		Cells: bytes.Repeat([]byte("x"), 300), Attributes: []*pb.NameBytesPair{{Name: proto.String("a"), Value: []byte("b")}},
		Trace: &pb.RPCTInfo{Headers: map[string]string{"traceparent": "00-1"}},
	}
	frame, err := AppendRequest([]byte("before"), r)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(frame)-len("before"), r.FrameSize(); got != want {
		t.Errorf("frame of %d bytes, FrameSize %d", got, want)
	}
	frame = frame[len("before"):]
	// The header must be what a protobuf library writes.
	wantHeader, err := (&pb.RequestHeader{
		CallId: proto.Uint32(r.CallID), TraceInfo: r.Trace, MethodName: proto.String(r.Method), RequestParam: proto.Bool(true),
		CellBlockMeta: &pb.CellBlockMeta{Length: proto.Uint32(300)}, Priority: proto.Uint32(200), Timeout: proto.Uint32(1), Attribute: r.Attributes,
	}).MarshalVT()
	header, _, cerr := cutDelimited(frame[4:], "header")
	if err != nil || cerr != nil || !bytes.Equal(header, wantHeader) {
		t.Errorf("header = %x, %v\nwant     %x, %v", header, cerr, wantHeader, err)
	}
	body, err := ReadFrame(bufio.NewReader(bytes.NewReader(frame)), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got ReceivedRequest
	if err := DecodeRequest(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.CallID != r.CallID || string(got.Method) != "Multi" || !got.HasParam || got.Priority != 200 || got.Timeout != 1 ||
		!bytes.Equal(got.Cells, r.Cells) || len(got.Attributes) != 1 || got.Trace.GetHeaders()["traceparent"] != "00-1" || !bytes.Equal(got.Param, []byte{0x10, 3}) {
		t.Errorf("DecodeRequest = %+v", got)
	}
}

func TestRequestErrorsLeaveTheBuffer(t *testing.T) {
	dst := []byte("abc")
	got, err := AppendRequest(dst, &Request{Method: "Get", Param: &pb.GetRequest{}})
	if err == nil || string(got) != "abc" {
		t.Errorf("missing required field: %q, %v", got, err)
	}
	if _, err := AppendRequest(nil, &Request{Method: "Get"}); err == nil {
		t.Error("no param: no error")
	}
	got, err = AppendResponse(dst, 1, &pb.BulkLoadHFileResponse{}, nil)
	if err == nil || string(got) != "abc" {
		t.Errorf("response with missing required field: %q, %v", got, err)
	}
}

func TestEmptyAndExceptionResponses(t *testing.T) {
	frame, err := AppendResponse(nil, 0, nil, nil)
	if err != nil || !bytes.Equal(frame, unhex(t, "00000004 02 0800 00")) {
		t.Errorf("empty response = %x, %v", frame, err)
	}
	moved := NewRegionMoved(MovedTo{Host: "h", Port: 16020, StartCode: 5, SeqNum: 9})
	frame = AppendException(nil, PreambleCallID, moved)
	var r Response
	if err := DecodeResponse(frame[4:], &r); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(moved, r.Exception); d != "" || int32(r.CallID) != -1 {
		t.Errorf("call %d\n%s", int32(r.CallID), d)
	}
	if !bytes.Contains(frame, unhex(t, "08ffffffff0f")) {
		t.Errorf("call id -1 is not five bytes: %x", frame)
	}
}

func TestMalformedFrames(t *testing.T) {
	tests := []struct{ name, in string }{
		{"empty", ""},
		{"header longer than frame", "05 0807"},
		{"varint without end", "ffffffffffffffffffff01"},
		{"header is no protobuf", "02 ffff 00"},
		{"result longer than frame", "02 0807 05 01"},
		{"cells not announced", "02 0807 00 aabb"},
		{"cells shorter than announced", "06 08071a020805 00 aa"},
		{"cells longer than announced", "06 08071a020801 00 aabb"},
		{"meta is no protobuf", "05 08071a01ff 00"},
		{"huge block", "0a 08071a0608ffffffff7f 00"},
		{"group", "03 08070b 00"},
	}
	for _, tt := range tests {
		var r Response
		err := DecodeResponse(unhex(t, tt.in), &r)
		var fe *FormatError
		if !errors.As(err, &fe) {
			t.Errorf("response, %s: %v", tt.name, err)
		}
		var q ReceivedRequest
		if err := DecodeRequest(unhex(t, tt.in), &q); err != nil && !errors.As(err, &fe) {
			t.Errorf("request, %s: %v", tt.name, err)
		}
	}
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func TestReadFrameBounds(t *testing.T) {
	big := bytes.Repeat([]byte("y"), 5<<20)
	frame := append([]byte{0, 0x50, 0, 0}, big...)
	for _, r := range []io.Reader{bytes.NewReader(frame), bufio.NewReader(bytes.NewReader(frame)), iotest.HalfReader(bytes.NewReader(frame))} {
		got, err := ReadFrame(r, 0, nil)
		if err != nil || !bytes.Equal(got, big) {
			t.Fatalf("%T: %d bytes, %v", r, len(got), err)
		}
	}
	var tl *TooLargeError
	c := &countingReader{r: bytes.NewReader(frame)}
	if _, err := ReadFrame(c, 5<<20-1, nil); !errors.As(err, &tl) || tl.Size != 5<<20 || c.n != 4 {
		t.Errorf("over the limit: %v after %d bytes", err, c.n)
	}
	var fe *FormatError
	if _, err := ReadFrame(strings.NewReader("\xff\xff\xff\xff"), 0, nil); !errors.As(err, &fe) {
		t.Errorf("negative: %v", err)
	}
	if _, err := ReadFrame(strings.NewReader(""), 0, nil); err != io.EOF {
		t.Errorf("closed between frames: %v", err)
	}
	for _, in := range []string{"\x00", "\x00\x00\x00\x04", "\x00\x00\x00\x04abc"} {
		for _, r := range []io.Reader{strings.NewReader(in), bufio.NewReader(strings.NewReader(in))} {
			if _, err := ReadFrame(r, 0, nil); err != io.ErrUnexpectedEOF {
				t.Errorf("closed within %q: %v", in, err)
			}
		}
	}
	buf := make([]byte, 0, 10)
	got, err := ReadFrame(strings.NewReader("\x00\x00\x00\x03abc"), 0, buf)
	if err != nil || string(got) != "abc" || &got[0] != &buf[:1][0] {
		t.Errorf("buffer not used: %q, %v", got, err)
	}
}

// A length of 200 MiB with nothing behind it must not cost 200 MiB.
func TestLyingLengthIsCheap(t *testing.T) {
	in := append([]byte{0x0c, 0x80, 0, 0}, make([]byte, 3<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ReadFrame(bytes.NewReader(in), 0, nil)
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
	if allocated > 10<<20 {
		t.Errorf("3 MiB sent, %d bytes allocated", allocated)
	}
}
