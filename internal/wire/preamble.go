package wire

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// AuthCode is the last byte of the preamble: how the client authenticates.
type AuthCode byte

// The codes HBase itself defines; plug-ins may add others.
const (
	AuthSimple   AuthCode = 80 // no exchange, the header names the user
	AuthKerberos AuthCode = 81 // SASL, GSSAPI
	AuthDigest   AuthCode = 82 // SASL, DIGEST-MD5 with a token
)

// String gives HBase's name of the method.
func (c AuthCode) String() string {
	switch c {
	case AuthSimple:
		return "SIMPLE"
	case AuthKerberos:
		return "KERBEROS"
	case AuthDigest:
		return "DIGEST"
	}
	return fmt.Sprintf("AuthCode(%d)", byte(c))
}

const (
	preambleLength  = 6
	preambleMagic   = "HBas"
	preambleVersion = 0
	// registryPreamble and securityPreamble are the questions of 2.6 and later
	// clients that come in place of a preamble.
	registryPreamble = "Regist"
	securityPreamble = "Securi"
)

// PreambleKind says what the first six bytes of a connection ask for.
type PreambleKind uint8

const (
	// PreambleConnection starts a normal connection.
	PreambleConnection PreambleKind = iota
	// PreambleRegistry asks for the cluster id; the server answers a
	// GetConnectionRegistryResponse with call id PreambleCallID and closes.
	PreambleRegistry
	// PreambleSecurity asks for the server's principal; the server answers a
	// SecurityPreamableResponse, or a SecurityNotEnabledException, with call id
	// PreambleCallID, and waits for the next preamble.
	PreambleSecurity
)

// PreambleCallID is the call id of answers to no call: -1 in Java.
const PreambleCallID = 1<<32 - 1

// Preamble is the start of a connection.
type Preamble struct {
	Kind PreambleKind
	Auth AuthCode // with PreambleConnection
}

// AppendPreamble writes the preamble of a normal connection.
func AppendPreamble(dst []byte, auth AuthCode) []byte {
	dst = append(dst, preambleMagic...)
	return append(dst, preambleVersion, byte(auth))
}

// AppendRegistryPreamble writes the question for the cluster id.
func AppendRegistryPreamble(dst []byte) []byte { return append(dst, registryPreamble...) }

// AppendSecurityPreamble writes the question for the server's principal.
func AppendSecurityPreamble(dst []byte) []byte { return append(dst, securityPreamble...) }

// ReadPreamble reads six bytes. What is no preamble gives the *RemoteError
// (FatalConnectionException, WrongVersionException) to answer with before
// closing. Auth codes are the caller's to judge.
func ReadPreamble(r io.Reader) (Preamble, error) {
	var b [preambleLength]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return Preamble{}, err
	}
	switch string(b[:]) {
	case registryPreamble:
		return Preamble{Kind: PreambleRegistry}, nil
	case securityPreamble:
		return Preamble{Kind: PreambleSecurity}, nil
	}
	if string(b[:4]) != preambleMagic {
		return Preamble{}, NewRemoteError(ClassFatalConnection,
			fmt.Sprintf("Expected HEADER=%s but received HEADER=%s", preambleMagic, quote(b[:4])))
	}
	if b[4] != preambleVersion {
		return Preamble{}, NewRemoteError(ClassWrongVersion,
			fmt.Sprintf("server version %d, client version %d", preambleVersion, b[4]))
	}
	return Preamble{Auth: AuthCode(b[5])}, nil
}

// AppendConnectionHeader writes the header with its length.
func AppendConnectionHeader(dst []byte, h *pb.ConnectionHeader) ([]byte, error) {
	n := h.SizeVT()
	if n > MaxConnectionHeader {
		return dst, &TooLargeError{What: "connection header", Size: int64(n), Max: MaxConnectionHeader}
	}
	dst = binary.BigEndian.AppendUint32(grow(dst, 4+n), uint32(n))
	return appendMessage(dst, h, n)
}

// ReadConnectionHeader reads a header and its length.
func ReadConnectionHeader(r io.Reader) (*pb.ConnectionHeader, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(b[:])
	if n > MaxConnectionHeader {
		return nil, &TooLargeError{What: "connection header", Size: int64(n), Max: MaxConnectionHeader}
	}
	body, err := ReadBody(r, int(n), nil)
	if err != nil {
		return nil, err
	}
	h := new(pb.ConnectionHeader)
	if err := h.UnmarshalVT(body); err != nil {
		return nil, malformed("connection header", "%v", err)
	}
	return h, nil
}
