package rpctest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Options of a client; the zero value asks for ClientService with
// KeyValueCodec as a client of HBase 2.6 named "tester".
type Options struct {
	Service    string
	User       string
	NoCodec    bool
	Codec      string // overrules NoCodec
	Compressor string
	// Major and Minor version; NoVersion leaves the version info out.
	Major, Minor int
	NoVersion    bool
}

// Client is one connection. Not safe for concurrent use, except that Send and
// Receive may run in two goroutines.
type Client struct {
	Conn  net.Conn
	r     *bufio.Reader
	codec wire.Codec
	zip   *wire.Compressor
	next  uint32
	buf   []byte
}

// Dial connects to a TCP address.
func Dial(address string, o Options) (*Client, error) {
	nc, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return New(nc, o)
}

// New starts the protocol on a connection.
func New(nc net.Conn, o Options) (*Client, error) {
	if o.Service == "" {
		o.Service = "ClientService"
	}
	if o.User == "" {
		o.User = "tester"
	}
	if o.Major == 0 {
		o.Major, o.Minor = 2, 6
	}
	c := &Client{Conn: nc, r: bufio.NewReader(nc)}
	h := &pb.ConnectionHeader{ServiceName: &o.Service, UserInfo: &pb.UserInformation{EffectiveUser: &o.User}}
	if !o.NoVersion {
		text, major, minor := fmt.Sprintf("%d.%d.0", o.Major, o.Minor), uint32(o.Major), uint32(o.Minor)
		empty := ""
		h.VersionInfo = &pb.VersionInfo{Version: &text, Url: &empty, Revision: &empty, User: &empty, Date: &empty, SrcChecksum: &empty,
			VersionMajor: &major, VersionMinor: &minor}
	}
	if !o.NoCodec {
		c.codec = wire.KeyValueCodec
		name := wire.KeyValueCodec.ClassName()
		h.CellBlockCodecClass = &name
	}
	if o.Codec != "" {
		h.CellBlockCodecClass = &o.Codec
	}
	if o.Compressor != "" {
		h.CellBlockCompressorClass = &o.Compressor
		kind, err := wire.CompressionByClass(o.Compressor)
		if err == nil {
			if c.zip, err = wire.NewCompressor(kind, 0); err != nil {
				return nil, err
			}
		}
	}
	b, err := wire.AppendConnectionHeader(wire.AppendPreamble(nil, wire.AuthSimple), h)
	if err != nil {
		return nil, err
	}
	if _, err := nc.Write(b); err != nil {
		return nil, err
	}
	return c, nil
}

// Request is a call to send. CallID 0 takes the next.
type Request struct {
	CallID  uint32
	Method  string
	Param   wire.Marshaler
	Cells   []cells.Cell
	Timeout time.Duration
}

// Send writes a request and gives its call id.
func (c *Client) Send(q Request) (uint32, error) {
	if q.CallID == 0 {
		c.next++
		q.CallID = c.next
	}
	block, err := c.codec.AppendCells(nil, q.Cells)
	if err != nil {
		return 0, err
	}
	if c.zip != nil {
		if block, err = c.zip.Compress(nil, block); err != nil {
			return 0, err
		}
	}
	r := wire.Request{CallID: q.CallID, Method: q.Method, Param: q.Param, Cells: block, Timeout: uint32(q.Timeout.Milliseconds())}
	if c.buf, err = wire.AppendRequest(c.buf[:0], &r); err != nil {
		return 0, err
	}
	_, err = c.Conn.Write(c.buf)
	return q.CallID, err
}

// Receive reads the next answer.
func (c *Client) Receive() (*wire.Response, error) {
	total, err := wire.ReadTotal(c.r, 0)
	if err != nil {
		return nil, err
	}
	frame, err := wire.ReadBody(c.r, total, nil)
	if err != nil {
		return nil, err
	}
	var resp wire.Response
	if err := wire.DecodeResponse(frame, &resp); err != nil {
		return nil, err
	}
	return &resp, nil
}

// Call sends a request and reads its answer into result; the answer's cells
// come back. An exception is a *wire.RemoteError.
func (c *Client) Call(method string, param wire.Marshaler, result wire.Unmarshaler, cs ...cells.Cell) ([]cells.Cell, error) {
	return c.Do(Request{Method: method, Param: param, Cells: cs}, result)
}

// Do is Call with all options.
func (c *Client) Do(q Request, result wire.Unmarshaler) ([]cells.Cell, error) {
	id, err := c.Send(q)
	if err != nil {
		return nil, err
	}
	resp, err := c.Receive()
	if err != nil {
		return nil, err
	}
	if resp.CallID != id && resp.CallID != wire.PreambleCallID {
		return nil, fmt.Errorf("answer to call %d, want %d", resp.CallID, id)
	}
	if resp.Exception != nil {
		return nil, resp.Exception
	}
	if result != nil {
		if err := result.UnmarshalVT(resp.Result); err != nil {
			return nil, err
		}
	}
	return c.Cells(resp)
}

// Cells decodes an answer's cell block.
func (c *Client) Cells(resp *wire.Response) ([]cells.Cell, error) {
	block := resp.Cells
	if c.zip != nil && len(block) > 0 {
		var err error
		if block, err = c.zip.Decompress(nil, block); err != nil {
			return nil, err
		}
	}
	return c.codec.DecodeCells(block, nil)
}

// Close closes the connection.
func (c *Client) Close() error { return c.Conn.Close() }

// Remote gives the exception in err, nil if there is none.
func Remote(err error) *wire.RemoteError {
	var r *wire.RemoteError
	if errors.As(err, &r) {
		return r
	}
	return nil
}
