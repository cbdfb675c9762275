package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

const movedText = "Region moved to: hostname=rs2.example port=16020 startCode=1700000000000. As of locationSeqNum=42."

func TestParseException(t *testing.T) {
	frames := "\n\tat org.apache.hadoop.hbase.regionserver.HRegion.get(HRegion.java:1)\n\tat java.lang.Thread.run(Thread.java:2)\nCaused by: java.lang.Error: x\n"
	tests := []struct {
		name string
		in   *pb.ExceptionResponse
		want *RemoteError
	}{
		{"whole stack", &pb.ExceptionResponse{
			ExceptionClassName: proto.String(ClassNoSuchColumnFamily), DoNotRetry: proto.Bool(true),
			StackTrace: proto.String(ClassNoSuchColumnFamily + ": Column family nope does not exist" + frames),
		}, &RemoteError{Class: ClassNoSuchColumnFamily, Message: "Column family nope does not exist", DoNotRetry: true}},
		{"message of two lines", &pb.ExceptionResponse{
			ExceptionClassName: proto.String(ClassIOException), StackTrace: proto.String(ClassIOException + ": a\nb: c" + frames),
		}, &RemoteError{Class: ClassIOException, Message: "a\nb: c"}},
		{"no message", &pb.ExceptionResponse{
			ExceptionClassName: proto.String(ClassIOException), StackTrace: proto.String(ClassIOException + frames),
		}, &RemoteError{Class: ClassIOException}},
		{"frames alone", &pb.ExceptionResponse{ExceptionClassName: proto.String("a.B"), StackTrace: proto.String("\tat x.y(z)")}, &RemoteError{Class: "a.B"}},
		{"message alone", &pb.ExceptionResponse{ExceptionClassName: proto.String(ClassIOException), StackTrace: proto.String("just text")},
			&RemoteError{Class: ClassIOException, Message: "just text"}},
		{"another class in front", &pb.ExceptionResponse{ExceptionClassName: proto.String("a.B"), StackTrace: proto.String("a.BC: text")},
			&RemoteError{Class: "a.B", Message: "a.BC: text"}},
		{"flag without known class", &pb.ExceptionResponse{ExceptionClassName: proto.String("com.example.Odd"), DoNotRetry: proto.Bool(true), ServerOverloaded: proto.Bool(true)},
			&RemoteError{Class: "com.example.Odd", DoNotRetry: true, Overloaded: true}},
		{"overload class", &pb.ExceptionResponse{ExceptionClassName: proto.String(ClassCallQueueTooBig)}, &RemoteError{Class: ClassCallQueueTooBig, Overloaded: true}},
		{"nothing at all", &pb.ExceptionResponse{}, &RemoteError{}},
		{"moved, fields and text", &pb.ExceptionResponse{
			ExceptionClassName: proto.String(ClassRegionMoved), Hostname: proto.String("rs2.example"), Port: proto.Int32(16020),
			StackTrace: proto.String(ClassRegionMoved + ": " + movedText + frames),
		}, &RemoteError{Class: ClassRegionMoved, Message: movedText, Moved: &MovedTo{Host: "rs2.example", Port: 16020, StartCode: 1700000000000, SeqNum: 42}}},
		{"moved, fields alone", &pb.ExceptionResponse{ExceptionClassName: proto.String(ClassRegionMoved), Hostname: proto.String("h"), Port: proto.Int32(1)},
			&RemoteError{Class: ClassRegionMoved, Moved: &MovedTo{Host: "h", Port: 1, SeqNum: -1}}},
		{"moved, fields and text at odds", &pb.ExceptionResponse{ExceptionClassName: proto.String(ClassRegionMoved), Hostname: proto.String("h"), Port: proto.Int32(1), StackTrace: proto.String(movedText)},
			&RemoteError{Class: ClassRegionMoved, Message: movedText, Moved: &MovedTo{Host: "h", Port: 1, SeqNum: -1}}},
		{"moved, bad port field", &pb.ExceptionResponse{ExceptionClassName: proto.String(ClassRegionMoved), Hostname: proto.String("h"), Port: proto.Int32(-1), StackTrace: proto.String(movedText)},
			&RemoteError{Class: ClassRegionMoved, Message: movedText, Moved: &MovedTo{Host: "rs2.example", Port: 16020, StartCode: 1700000000000, SeqNum: 42}}},
		{"throttled", &pb.ExceptionResponse{ExceptionClassName: proto.String(ClassRpcThrottling), StackTrace: proto.String(ClassRpcThrottling + ": number of requests exceeded - wait 5sec, 250ms" + frames)},
			&RemoteError{Class: ClassRpcThrottling, Message: "number of requests exceeded - wait 5sec, 250ms", ThrottleWait: 5250 * time.Millisecond}},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, ParseException(tt.in)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

func TestParseNamed(t *testing.T) {
	tests := []struct {
		name  string
		class string
		text  string
		want  *RemoteError
	}{
		{"known, do not retry", ClassWrongRegion, ClassWrongRegion + ": Requested row out of range\n\tat x", &RemoteError{Class: ClassWrongRegion, Message: "Requested row out of range"}},
		{"flag from the class", ClassFailedSanityCheck, "x", &RemoteError{Class: ClassFailedSanityCheck, Message: "x", DoNotRetry: true}},
		{"moved", ClassRegionMoved, ClassRegionMoved + ": " + movedText, &RemoteError{Class: ClassRegionMoved, Message: movedText, Moved: &MovedTo{Host: "rs2.example", Port: 16020, StartCode: 1700000000000, SeqNum: 42}}},
		{"unknown keeps its name", "com.example.X", "com.example.X: boo", &RemoteError{Class: "com.example.X", Message: "boo"}},
	}
	for _, tt := range tests {
		p := &pb.NameBytesPair{Name: proto.String(tt.class), Value: []byte(tt.text)}
		if d := cmp.Diff(tt.want, ParseNamed(p)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

func TestParseMovedText(t *testing.T) {
	tests := []struct {
		in   string
		want *MovedTo
	}{
		{movedText, &MovedTo{Host: "rs2.example", Port: 16020, StartCode: 1700000000000, SeqNum: 42}},
		{"Region moved to: hostname=h port=1 startCode=2. As of locationSeqNum=-1.", &MovedTo{Host: "h", Port: 1, StartCode: 2, SeqNum: -1}},
		{"Region moved to: hostname=h port=1 startCode=2", &MovedTo{Host: "h", Port: 1, SeqNum: -1}},
		{"Region moved to: hostname=h port=1 startCode=x. As of locationSeqNum=3.", &MovedTo{Host: "h", Port: 1, SeqNum: -1}},
		{"Region moved to: hostname=h port=1 startCode=2. As of locationSeqNum=y.", &MovedTo{Host: "h", Port: 1, StartCode: 2, SeqNum: -1}},
		{"hostname=::1 port=65535 startCode=1. locationSeqNum=1.", &MovedTo{Host: "::1", Port: 65535, StartCode: 1, SeqNum: 1}},
		{"Region moved to: hostname= port=1 startCode=2.", nil},
		{"Region moved to: hostname=h port=0 startCode=2.", nil},
		{"Region moved to: hostname=h port=70000 startCode=2.", nil},
		{"Region moved to: hostname=h port=1", nil},
		{"Region moved", nil},
		{"", nil},
		{"hostname=" + strings.Repeat("h", 300) + " port=1 startCode=1.", nil},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, parseMoved(tt.in)); d != "" {
			t.Errorf("%q: %s", tt.in, d)
		}
	}
}

// Java programs, and what they print, know a server's exception by its frames.
func TestFrames(t *testing.T) {
	for _, message := range []string{"", "some text"} {
		e := NewRemoteError(ClassIOException, message)
		for _, sent := range []string{e.Exception().GetStackTrace(), string(e.Named().GetValue())} {
			first, rest, _ := strings.Cut(sent, "\n")
			if want := strings.TrimSuffix(ClassIOException+": "+message, ": "); first != want || !strings.HasPrefix(rest, "\tat ") {
				t.Errorf("%q: sent %q", message, sent)
			}
		}
		if got := ParseException(e.Exception()); got.Message != message {
			t.Errorf("%q comes back as %q", message, got.Message)
		}
	}
}

// The texts are what RpcThrottlingException of 2.6 and of 2.4 prints.
func TestParseWait(t *testing.T) {
	ms := time.Millisecond
	tests := []struct {
		in   string
		want time.Duration
	}{
		{"number of requests exceeded - wait 0ms", 0},
		{"number of requests exceeded - wait 250ms", 250 * ms},
		{"write size limit exceeded - wait 5sec, 250ms", 5250 * ms},
		{"x - wait 1min, 5sec, 0ms", 65 * time.Second},
		{"x - wait 1hr, 2mins, 3sec, 4ms", time.Hour + 2*time.Minute + 3004*ms},
		{"x - wait 3hrs, 1min, 1sec, 1ms", 3*time.Hour + 61001*ms},
		{"number of requests exceeded - wait 0sec", 0},
		{"x - wait 1mins, 5sec", 65 * time.Second},
		{"x - wait 1hrs, 2mins, 3sec", time.Hour + 123*time.Second},
		{"x - wait 0.50sec", 500 * ms},
		{"x - wait 2 sec then more text 3sec", 2 * time.Second},
		{"x - wait 25hrs, 1min, 1sec, 1ms", 24 * time.Hour},
		{"x - wait 99999999999999999hrs", 24 * time.Hour},
		{"x - wait 999999999999999999999999sec", 0},
		{"a - wait 1sec - wait 2sec", 2 * time.Second},
		{"x - wait soon", 0},
		{"x - wait 5parsecs", 0},
		{"x - wait ..sec", 0},
		{"no wait here 5sec", 0},
		{"", 0},
	}
	for _, tt := range tests {
		if got := parseWait(tt.in); got != tt.want {
			t.Errorf("%q = %v, want %v", tt.in, got, tt.want)
		}
	}
	for _, d := range []time.Duration{0, 250 * ms, 5250 * ms, 65 * time.Second, time.Hour + 2*time.Minute + 3004*ms, 23*time.Hour + ms} {
		e := NewThrottling("number of requests exceeded", d)
		if got := ParseException(e.Exception()); got.ThrottleWait != d || got.Message != e.Message {
			t.Errorf("%v: came back as %v (%q)", d, got.ThrottleWait, got.Message)
		}
	}
	if got, want := NewThrottling("x", time.Hour+2*time.Minute+3004*ms).Message, "x - wait 1hr, 2mins, 3sec, 4ms"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

func TestServerDirection(t *testing.T) {
	for _, e := range []*RemoteError{
		NewRemoteError(ClassNotServingRegion, "t,,1.x. is not online on h,1,2"),
		NewRemoteError(ClassTableNotFound, "t"),
		NewRemoteError(ClassCallQueueTooBig, "queue full"),
		NewRemoteError(ClassIOException, ""),
		NewRegionMoved(MovedTo{Host: "rs2.example", Port: 16020, StartCode: 1700000000000, SeqNum: 42}),
	} {
		if d := cmp.Diff(e, ParseException(e.Exception())); d != "" {
			t.Errorf("%v over a header: %s", e, d)
		}
		if d := cmp.Diff(e, ParseNamed(e.Named())); d != "" {
			t.Errorf("%v in a multi: %s", e, d)
		}
	}
	if got := NewRegionMoved(MovedTo{Host: "rs2.example", Port: 16020, StartCode: 1700000000000, SeqNum: 42}).Message; got != movedText {
		t.Errorf("moved text %q", got)
	}
	if x := NewRemoteError(ClassIOException, "m").Exception(); x.ServerOverloaded != nil || x.Hostname != nil || x.DoNotRetry == nil || x.GetDoNotRetry() {
		t.Errorf("plain exception %v", x)
	}
}

func TestRemoteErrorAsError(t *testing.T) {
	err := fmt.Errorf("get: %w", NewRemoteError(ClassTableNotFound, "t1"))
	if !errors.Is(err, &RemoteError{Class: ClassTableNotFound}) || errors.Is(err, &RemoteError{Class: ClassTableExists}) {
		t.Error("errors.Is by class")
	}
	if got, want := err.Error(), "get: TableNotFoundException: t1"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	for class, want := range map[string]string{"": "exception without a class", "X": "X", "a.b.": "a.b.", "a.B": "B", "a.B$C": "B$C"} {
		if got := (&RemoteError{Class: class}).Short(); got != want {
			t.Errorf("Short of %q = %q, want %q", class, got, want)
		}
	}
}

func TestTextIsBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	e := ParseException(&pb.ExceptionResponse{ExceptionClassName: &long, StackTrace: &long})
	if len(e.Class) > maxClassText || len(e.Message) > maxMessageText || !utf8.ValidString(e.Class) || !utf8.ValidString(e.Message) {
		t.Errorf("class %d, message %d bytes", len(e.Class), len(e.Message))
	}
	e = ParseNamed(&pb.NameBytesPair{Name: proto.String("a.B"), Value: []byte("\xff\xfe" + long)})
	if len(e.Message) > maxMessageText || !utf8.ValidString(e.Message) {
		t.Errorf("message %d bytes", len(e.Message))
	}
}

func FuzzParseException(f *testing.F) {
	spoil.Add(f, ClassRegionMoved, ClassRegionMoved+": "+movedText+"\n\tat x", "h", int32(1))
	spoil.Add(f, ClassRpcThrottling, "x - wait 1hr, 2mins, 3sec, 4ms", "", int32(0))
	spoil.Add(f, "", "\tat x", "", int32(-1))
	f.Fuzz(func(t *testing.T, class, trace, host string, port int32) {
		e := ParseException(&pb.ExceptionResponse{ExceptionClassName: &class, StackTrace: &trace, Hostname: &host, Port: &port})
		n := ParseNamed(&pb.NameBytesPair{Name: &class, Value: []byte(trace)})
		for _, e := range []*RemoteError{e, n} {
			if len(e.Class) > maxClassText || len(e.Message) > maxMessageText || !utf8.ValidString(e.Message) || !utf8.ValidString(e.Class) {
				t.Fatalf("class %q message %q", e.Class, e.Message)
			}
			if e.ThrottleWait < 0 || e.ThrottleWait > maxThrottleWait {
				t.Fatalf("wait %v", e.ThrottleWait)
			}
			if m := e.Moved; m != nil && (m.Host == "" || m.Port < 1 || m.Port > 65535) {
				t.Fatalf("moved to %+v", m)
			}
			_, _ = e.Error(), e.Exception()
			if _, err := e.Exception().MarshalVT(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
