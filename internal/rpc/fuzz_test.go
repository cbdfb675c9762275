package rpc

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// FuzzServer answers a call with whatever comes, and hangs up: the call ends,
// with an answer only if there was one to it, and nothing is left running.
func FuzzServer(f *testing.F) {
	answer, err := wire.AppendResponse(nil, 1, &pb.GetResponse{Result: &pb.Result{Exists: new(true)}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(answer)
	f.Add(append(answer[:len(answer):len(answer)], answer...))
	f.Add(answer[:len(answer)/2])
	f.Add(wire.AppendException(nil, 1, wire.NewRemoteError(wire.ClassNotServingRegion, "x")))
	f.Add(wire.AppendException(nil, 7, wire.NewRemoteError("org.apache.hadoop.hbase.ipc.FatalConnectionException", "x")))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 8, 1})
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0x15, 3, 1, 0, 2, 2, 40}) // TLS
	f.Fuzz(func(t *testing.T, in []byte) {
		server := func(conn net.Conn) {
			s, err := hello(t, conn)
			if err != nil {
				return
			}
			var r wire.ReceivedRequest
			if s.next(&r) == nil {
				conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
				conn.Write(in)
			}
		}
		cfg := config("fuzz:1")
		cfg.Dial = onPipe(t, server)
		c, err := Dial(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		var result pb.GetResponse
		err = c.Do(ctx, &Call{Method: "Get", Param: getRequest("r"), Result: &result})
		if ctx.Err() != nil {
			t.Fatalf("%x: the call did not end: %v", in, err)
		}
		if err == nil && len(in) < 6 {
			t.Fatalf("%x is taken for an answer", in)
		}
	})
}
