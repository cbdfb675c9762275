package rpc

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session is one connection as a scripted server sees it.
type session struct {
	t      testing.TB
	conn   net.Conn
	r      *bufio.Reader
	header *pb.ConnectionHeader
	comp   *wire.Compressor
	wmu    sync.Mutex
	buf    []byte
	in     []byte
}

// hello reads preamble and header.
func hello(t testing.TB, conn net.Conn) (*session, error) {
	s := &session{t: t, conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
	if _, err := wire.ReadPreamble(s.r); err != nil {
		return nil, err
	}
	h, err := wire.ReadConnectionHeader(s.r)
	if err != nil {
		return nil, err
	}
	kind, err := wire.CompressionByClass(h.GetCellBlockCompressorClass())
	if err != nil {
		return nil, err
	}
	s.header = h
	s.comp, err = wire.NewCompressor(kind, 0)
	return s, err
}

// next reads a request; it aliases a buffer that next uses again.
func (s *session) next(r *wire.ReceivedRequest) error {
	var err error
	if s.in, err = wire.ReadFrame(s.r, 0, s.in[:0]); err != nil {
		return err
	}
	return wire.DecodeRequest(s.in, r)
}

func (s *session) answer(id uint32, result wire.Marshaler, block []byte) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	packed, err := s.comp.Compress(nil, block)
	if err != nil {
		return err
	}
	if s.buf, err = wire.AppendResponse(s.buf[:0], id, result, packed); err != nil {
		return err
	}
	_, err = s.conn.Write(s.buf)
	return err
}

func (s *session) throw(id uint32, e *wire.RemoteError) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	_, err := s.conn.Write(wire.AppendException(nil, id, e))
	return err
}

// echo answers every Get with its row as the value of a cell in the block.
func echo(s *session) error {
	var r wire.ReceivedRequest
	var get pb.GetRequest
	result := &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: proto.Int32(1)}}
	var block []byte
	for {
		if err := s.next(&r); err != nil {
			return err
		}
		get.Reset()
		if err := get.UnmarshalVT(r.Param); err != nil {
			return err
		}
		var err error
		if block, err = wire.KeyValueCodec.AppendCell(block[:0], &cells.Cell{Row: get.Get.Row, Family: []byte("f"), Type: cells.Put, Value: get.Get.Row}); err != nil {
			return err
		}
		if err := s.answer(r.CallID, result, block); err != nil {
			return err
		}
	}
}

// onTCP serves each connection with script, on loopback, until the test ends.
func onTCP(t testing.TB, script func(*session) error) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, script)
	return l.Addr().String()
}

func serve(t testing.TB, l net.Listener, script func(*session) error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				s, err := hello(t, conn)
				if err == nil {
					err = script(s)
				}
				if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrUnexpectedEOF) && !isReset(err) {
					t.Errorf("server: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
}

func isReset(err error) bool {
	var op *net.OpError
	var plain tls.RecordHeaderError
	return errors.As(err, &op) || errors.As(err, &plain)
}

// onPipe runs script at the other end of an in-memory stream, for synctest.
func onPipe(t testing.TB, script func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			script(server)
		}()
		return client, nil
	}
}

func config(addr string) Config {
	return Config{Addr: addr, Service: "ClientService", EffectiveUser: "alice"}
}

func dial(t testing.TB, cfg Config) *Conn {
	t.Helper()
	c, err := Dial(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func getRequest(row string) *pb.GetRequest {
	return &pb.GetRequest{
		Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte("t1,,1700000000000.43ae7364b4a555b93267937f9bc49ec1.")},
		Get:    &pb.Get{Row: []byte(row)},
	}
}

// get does a Get and gives the value of its one cell.
func get(ctx context.Context, c *Conn, row string) (string, error) {
	var result pb.GetResponse
	call := Call{Method: "Get", Param: getRequest(row), Result: &result}
	if err := c.Do(ctx, &call); err != nil {
		return "", err
	}
	list, err := c.Codec().DecodeCells(call.ResultCells, nil)
	if err != nil {
		return "", err
	}
	if n := int(result.GetResult().GetAssociatedCellCount()); n != 1 || len(list) != 1 {
		return "", errors.New("not one cell")
	}
	return string(list[0].Value), nil
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
