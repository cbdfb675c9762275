//go:build interop

package bench

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// raw is the floor: one blocking socket and one frame, built by hand and sent
// again and again.
type raw struct {
	conn  net.Conn
	frame []byte
	in    []byte
}

func newRaw(b *testing.B, loc admin.RegionLocation) *raw {
	r, err := dialRaw(loc)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// dialRaw makes one that gets the row.
func dialRaw(loc admin.RegionLocation) (*raw, error) {
	// get{row}
	return dialRawCall(loc, "Get", field(nil, 1, []byte(row)))
}

// dialRawIncrement makes one that increments a column of the row.
func dialRawIncrement(loc admin.RegionLocation) (*raw, error) {
	// mutation{row, INCREMENT, column_value{family, qualifier_value{qualifier, value}}}
	cell := field(field(nil, 1, []byte("raw")), 2, binary.BigEndian.AppendUint64(nil, 1))
	mutation := append(field(nil, 1, []byte(row)), 2<<3, 1)
	mutation = field(mutation, 3, field(field(nil, 1, []byte("f")), 2, cell))
	return dialRawCall(loc, "Mutate", mutation)
}

// field appends a length-delimited protobuf field.
func field(dst []byte, number int, v []byte) []byte {
	dst = append(dst, byte(number<<3|2))
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return append(dst, v...)
}

// dialRawCall makes one for a method whose request is the region and one message.
func dialRawCall(loc admin.RegionLocation, method string, what []byte) (*raw, error) {
	conn, err := net.Dial("tcp", loc.Server.Address())
	if err != nil {
		return nil, err
	}
	// ConnectionHeader: user_info{effective_user}, service_name,
	// cell_block_codec_class, version_info (so that the answer's cells come in
	// a cell block, as they do for the client).
	version := field(nil, 1, []byte("2.6.4"))
	for n := 2; n <= 6; n++ {
		version = field(version, n, []byte("-"))
	}
	version = append(version, 7<<3, 2, 8<<3, 6)
	header := field(nil, 1, field(nil, 1, []byte("bench")))
	header = field(header, 2, []byte("ClientService"))
	header = field(header, 3, []byte("org.apache.hadoop.hbase.codec.KeyValueCodec"))
	header = field(header, 5, version)
	hello := append([]byte("HBas"), 0, 80)
	hello = binary.BigEndian.AppendUint32(hello, uint32(len(header)))
	if _, err := conn.Write(append(hello, header...)); err != nil {
		conn.Close()
		return nil, err
	}
	// The request: region{type REGION_NAME, value}, and the message.
	region := loc.Region
	param := field(nil, 1, field([]byte{1 << 3, 1}, 2, region.Name()))
	param = field(param, 2, what)
	// RequestHeader: call_id 1, method_name, request_param true, timeout.
	request := field([]byte{1 << 3, 1}, 3, []byte(method))
	request = append(request, 4<<3, 1, 7<<3)
	request = binary.AppendUvarint(request, 60000)
	body := binary.AppendUvarint(nil, uint64(len(request)))
	body = append(body, request...)
	body = binary.AppendUvarint(body, uint64(len(param)))
	body = append(body, param...)
	r := &raw{conn: conn, in: make([]byte, 64<<10)}
	r.frame = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	return r, nil
}

func (r *raw) do() error {
	_, err := r.roundTrip()
	return err
}

func (r *raw) roundTrip() (int, error) {
	if _, err := r.conn.Write(r.frame); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(r.conn, r.in[:4]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(r.in))
	_, err := io.ReadFull(r.conn, r.in[4:4+n])
	return 4 + n, err
}

// answerSize checks that the frame is answered with the row and gives the size.
func (r *raw) answerSize(b *testing.B) int {
	n, err := r.roundTrip()
	if err != nil {
		b.Fatal(err)
	}
	if n < 100 {
		b.Fatalf("the raw Get was answered with %d bytes", n)
	}
	return n
}

func (r *raw) close() { r.conn.Close() }
