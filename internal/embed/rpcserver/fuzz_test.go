package rpcserver_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// panicCatcher fails a test when a handler panicked.
type panicCatcher struct{ t testing.TB }

func (p panicCatcher) Enabled(context.Context, slog.Level) bool { return true }
func (p panicCatcher) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		r.Attrs(func(a slog.Attr) bool { p.t.Errorf("%s: %s=%v", r.Message, a.Key, a.Value); return true })
	}
	return nil
}
func (p panicCatcher) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p panicCatcher) WithGroup(string) slog.Handler      { return p }

// FuzzStream throws bytes at a connection, from its first on: nothing panics,
// and the connection's goroutines end with it.
func FuzzStream(f *testing.F) {
	header, err := wire.AppendConnectionHeader(wire.AppendPreamble(nil, wire.AuthSimple), &pb.ConnectionHeader{
		ServiceName: new("ClientService"), CellBlockCodecClass: new(wire.KeyValueCodec.ClassName())})
	if err != nil {
		f.Fatal(err)
	}
	call, err := wire.AppendRequest(append([]byte(nil), header...), &wire.Request{CallID: 1, Method: "Get", Param: get("a"), Timeout: 100})
	if err != nil {
		f.Fatal(err)
	}
	cut := append([]byte(nil), call[:len(call)-3]...)
	big := append(append([]byte(nil), header...), 0x7f, 0xff, 0xff, 0xff, 1, 2, 3)
	empty := append(append([]byte(nil), header...), 0, 0, 0, 0, 0, 0, 0, 0)
	var packed [][]byte
	for _, kind := range []wire.Compression{wire.Gzip, wire.Snappy, wire.LZ4, wire.Zstd, wire.Deflate} {
		zip, err := wire.NewCompressor(kind, 0)
		if err != nil {
			f.Fatal(err)
		}
		block, err := wire.KeyValueCodec.AppendCells(nil, []cells.Cell{{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Type: cells.Put, Value: []byte("value")}})
		if err != nil {
			f.Fatal(err)
		}
		if block, err = zip.Compress(nil, block); err != nil {
			f.Fatal(err)
		}
		b, err := wire.AppendConnectionHeader(wire.AppendPreamble(nil, wire.AuthSimple), &pb.ConnectionHeader{ServiceName: new("ClientService"),
			CellBlockCodecClass: new(wire.KeyValueCodec.ClassName()), CellBlockCompressorClass: new(kind.ClassName()), UserInfo: &pb.UserInformation{EffectiveUser: new("u")}})
		if err != nil {
			f.Fatal(err)
		}
		if b, err = wire.AppendRequest(b, &wire.Request{CallID: 1, Method: "Get", Param: get("a"), Timeout: 100, Priority: 7, Cells: block,
			Attributes: []*pb.NameBytesPair{{Name: new("n"), Value: []byte("v")}}, Trace: &pb.RPCTInfo{Headers: map[string]string{"k": "v"}}}); err != nil {
			f.Fatal(err)
		}
		packed = append(packed, b)
	}
	for _, seed := range packed {
		f.Add(seed)
	}
	for _, seed := range [][]byte{call, cut, big, empty, header, []byte("Regist"), []byte("Securi"), []byte("SecuriHBas\x00\x50"), append([]byte("HBas\x00\x51\x00\x00\x00\x02ab"), header[6:]...), []byte("GET /")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		svc := rpcserver.NewService("ClientService")
		rpcserver.Handle(svc, "Get", func(_ context.Context, c *rpcserver.Call, in *pb.GetRequest) (*pb.GetResponse, error) {
			if _, err := c.Cells(); err != nil {
				return nil, err
			}
			return &pb.GetResponse{Result: &pb.Result{Cell: []*pb.Cell{{Row: in.GetGet().GetRow()}}}}, nil
		}, rpcserver.Inline[*pb.GetRequest](true))
		s := rpcserver.New(rpcserver.Config{Services: []*rpcserver.Service{svc}, ClusterID: func() string { return "id" },
			MaxFrame: 1 << 20, Logger: slog.New(panicCatcher{t})})
		mine, theirs := net.Pipe()
		s.ServeConn(theirs)
		go func() {
			mine.SetWriteDeadline(time.Now().Add(2 * time.Second))
			mine.Write(stream)
			// The answers, if any, are read below; then the end.
			time.Sleep(time.Millisecond)
			mine.Close()
		}()
		io.Copy(io.Discard, mine)
		s.Kill()
		s.Wait()
		if n := len(s.Conns()); n != 0 {
			t.Errorf("%d connections left", n)
		}
	})
}
