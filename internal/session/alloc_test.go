package session

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// echo is a server that answers every Get with the same bytes, over TCP, so
// that what is measured is the client.
func echo(tb testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go serveEcho(nc)
		}
	}()
	tb.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func serveEcho(nc net.Conn) {
	defer nc.Close()
	if _, err := wire.ReadPreamble(nc); err != nil {
		return
	}
	if _, err := wire.ReadConnectionHeader(nc); err != nil {
		return
	}
	result := &pb.GetResponse{Result: &pb.Result{Exists: new(true)}}
	var buf, out []byte
	var req wire.ReceivedRequest
	var err error
	for {
		if buf, err = wire.ReadFrame(nc, 1<<20, buf[:0]); err != nil {
			return
		}
		if wire.DecodeRequest(buf, &req) != nil {
			return
		}
		if out, err = wire.AppendResponse(out[:0], req.CallID, result, nil); err != nil {
			return
		}
		if _, err := nc.Write(out); err != nil && err != io.EOF {
			return
		}
	}
}

type fixedRegistry struct{ meta meta.ServerName }

func (r fixedRegistry) MetaLocation(context.Context) (meta.ServerName, error) { return r.meta, nil }
func (r fixedRegistry) ActiveMaster(context.Context) (meta.ServerName, error) { return r.meta, nil }
func (r fixedRegistry) ClusterID(context.Context) (string, error)             { return "", nil }
func (r fixedRegistry) String() string                                        { return "fixed" }
func (r fixedRegistry) Close() error                                          { return nil }

// hotCall is a Get on hbase:meta itself, whose route needs no lookup in meta.
func hotCall(tb testing.TB) (*Core, *RegionCall) {
	host, port, err := meta.ParseAddress(echo(tb))
	if err != nil {
		tb.Fatal(err)
	}
	core, err := Open(context.Background(), Config{Registry: fixedRegistry{meta.ServerName{Host: host, Port: port, StartCode: 1}}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { core.Close() })
	req := &pb.GetRequest{Region: metaSpecifier(), Get: &pb.Get{Row: []byte("row")}}
	call := &RegionCall{
		Table: meta.MetaTable, Row: []byte("row"), Method: "Get",
		Param: func([]byte, int) (wire.Marshaler, []byte) { return req, nil },
	}
	if _, err := core.CallRegion(context.Background(), call); err != nil {
		tb.Fatal(err)
	}
	return core, call
}

func TestHitPathAllocations(t *testing.T) {
	core, call := hotCall(t)
	ctx := t.Context()
	n := testing.AllocsPerRun(2000, func() {
		if _, err := core.CallRegion(ctx, call); err != nil {
			t.Fatal(err)
		}
	})
	// rpc itself, and the echo server in this process, have some of these.
	t.Logf("%v allocations per call, server included", n)
	if n > 6 {
		t.Errorf("%v allocations per call", n)
	}
}

func BenchmarkLoneCall(b *testing.B) {
	core, call := hotCall(b)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := core.CallRegion(ctx, call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCalls(b *testing.B) {
	core, call := hotCall(b)
	ctx := b.Context()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		own := *call
		for pb.Next() {
			if _, err := core.CallRegion(ctx, &own); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBareCall is BenchmarkLoneCall without the session: what rpc alone
// costs against the same server.
func BenchmarkBareCall(b *testing.B) {
	c, err := rpc.Dial(b.Context(), rpc.Config{Addr: echo(b), Service: ClientService, EffectiveUser: "u"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	call := rpc.Call{Method: "Get", Param: &pb.GetRequest{Region: metaSpecifier(), Get: &pb.Get{Row: []byte("row")}}}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Do(ctx, &call); err != nil {
			b.Fatal(err)
		}
	}
}
