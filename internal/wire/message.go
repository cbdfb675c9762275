package wire

import "fmt"

// Marshaler is a message that can be written; every message of internal/pb is
// one.
type Marshaler interface {
	SizeVT() int
	// MarshalToSizedBufferVT writes the message to the end of the buffer.
	MarshalToSizedBufferVT([]byte) (int, error)
}

// Unmarshaler is a message that can be read; every message of internal/pb is
// one. UnmarshalVT merges: pass a fresh or reset message.
type Unmarshaler interface {
	UnmarshalVT([]byte) error
}

// Limits on what peers may send. The sizes are in bytes.
const (
	// DefaultMaxFrame is what HBase servers accept in one request
	// (hbase.ipc.max.request.size).
	DefaultMaxFrame = 256 << 20
	// DefaultMaxCellBlock bounds a cell block after decompression.
	DefaultMaxCellBlock = 256 << 20
	// MaxConnectionHeader bounds a connection header.
	MaxConnectionHeader = 1 << 20
	// MaxHeader bounds a request or response header. Java sends whole stack
	// traces in response headers, some tens of kilobytes.
	MaxHeader = 8 << 20
)

// FormatError is input that is not what the protocol says.
type FormatError struct {
	What   string // the part that was being read: "response header", "cell", ...
	Detail string
}

func (e *FormatError) Error() string { return "malformed " + e.What + ": " + e.Detail }

// TooLargeError is a length that passes a limit.
type TooLargeError struct {
	What string
	Size int64
	Max  int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s of %d bytes is larger than the limit of %d", e.What, e.Size, e.Max)
}

func malformed(what, format string, args ...any) error {
	return &FormatError{What: what, Detail: fmt.Sprintf(format, args...)}
}

// appendMessage writes a message of the known size n.
func appendMessage(dst []byte, m Marshaler, n int) ([]byte, error) {
	at := len(dst)
	dst = grow(dst, n)[:at+n]
	w, err := m.MarshalToSizedBufferVT(dst[at:])
	if err != nil {
		return dst[:at], err
	}
	if w != n {
		return dst[:at], fmt.Errorf("message of %d bytes announced %d: changed while it was written", w, n)
	}
	return dst, nil
}

// grow makes room for n more bytes.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	size := max(len(dst)+n, 2*cap(dst))
	if 2*cap(dst) > len(dst)+n && 2*cap(dst) > 1<<20 {
		size = max(len(dst)+n, cap(dst)+cap(dst)/4)
	}
	out := make([]byte, len(dst), size)
	copy(out, dst)
	return out
}
