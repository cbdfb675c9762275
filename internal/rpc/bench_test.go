package rpc

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64<<10) }

// BenchmarkGet is one caller, one call at a time, against an echo server in
// this process; BenchmarkRawGet is the same frames over a blocking socket, so
// the difference is what this package costs.
func BenchmarkGet(b *testing.B) {
	c := dial(b, config(onTCP(b, echo)))
	param := getRequest("row-0001")
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		var result pb.GetResponse
		call := Call{Method: "Get", Param: param, Result: &result}
		if err := c.Do(ctx, &call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRawGet(b *testing.B) {
	addr := onTCP(b, echo)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	service, user, codec := "ClientService", "alice", wire.KeyValueCodec.ClassName()
	first, err := wire.AppendConnectionHeader(wire.AppendPreamble(nil, wire.AuthSimple), &pb.ConnectionHeader{
		ServiceName: &service, UserInfo: &pb.UserInformation{EffectiveUser: &user}, CellBlockCodecClass: &codec})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Write(first); err != nil {
		b.Fatal(err)
	}
	frame, err := wire.AppendRequest(nil, &wire.Request{CallID: 1, Method: "Get", Timeout: 60000, Param: getRequest("row-0001")})
	if err != nil {
		b.Fatal(err)
	}
	in := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(frame); err != nil {
			b.Fatal(err)
		}
		for n := 0; ; {
			m, err := conn.Read(in[n:])
			if err != nil {
				b.Fatal(err)
			}
			if n += m; n >= 4 && n >= 4+int(in[2])<<8+int(in[3]) {
				break
			}
		}
	}
}

func BenchmarkGet2(b *testing.B)    { parallel(b, 2) }
func BenchmarkGet4(b *testing.B)    { parallel(b, 4) }
func BenchmarkGet64(b *testing.B)   { parallel(b, 64) }
func BenchmarkGet1000(b *testing.B) { parallel(b, 1000) }

func parallel(b *testing.B, callers int) {
	c := dial(b, config(onTCP(b, echo)))
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	var failed atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		param := getRequest("row-0001")
		for p.Next() {
			var result pb.GetResponse
			call := Call{Method: "Get", Param: param, Result: &result}
			if err := c.Do(ctx, &call); err != nil {
				failed.Add(1)
			}
		}
	})
	if n := failed.Load(); n > 0 {
		b.Fatal(n, "failed")
	}
}

func BenchmarkScanBlock(b *testing.B) { // a 2 MiB answer
	block := make([]byte, 2<<20)
	addr := onTCP(b, func(s *session) error {
		var r wire.ReceivedRequest
		for {
			if err := s.next(&r); err != nil {
				return err
			}
			if err := s.answer(r.CallID, nil, block); err != nil {
				return err
			}
		}
	})
	c := dial(b, config(addr))
	b.SetBytes(int64(len(block)))
	b.ReportAllocs()
	for b.Loop() {
		call := Call{Method: "Scan", Param: &pb.ScanRequest{}, Result: &pb.ScanResponse{}}
		if err := c.Do(context.Background(), &call); err != nil || len(call.ResultCells) != len(block) {
			b.Fatal(err)
		}
	}
}

// A Get allocates its answer's buffer and message, no more.
func TestAllocations(t *testing.T) {
	answer, err := wire.AppendResponse(nil, 1, &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: new(int32)}}, make([]byte, 40))
	if err != nil {
		t.Fatal(err)
	}
	addr := onTCP(t, func(s *session) error { // allocates nothing itself
		var r wire.ReceivedRequest
		for {
			if err := s.next(&r); err != nil {
				return err
			}
			// The id is a varint of fixed size here: patch it in.
			answer[4+1+1] = byte(r.CallID)
			if _, err := s.conn.Write(answer); err != nil {
				return err
			}
		}
	})
	c := dial(t, config(addr))
	param := getRequest("r")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	do := func() {
		c.calls.mu.Lock()
		c.calls.lastID &= 63 // ids of one byte
		c.calls.mu.Unlock()
		var result pb.GetResponse
		call := Call{Method: "Get", Param: param, Result: &result}
		if err := c.Do(ctx, &call); err != nil {
			t.Fatal(err)
		}
	}
	do()
	// Call, GetResponse, Result, its count, the body.
	if n := testing.AllocsPerRun(200, do); n > 6 {
		t.Errorf("%v allocations per Get", n)
	} else {
		t.Logf("%v allocations per Get", n)
	}
}
