package meta

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"
)

// TableName names a table. The zero value names no table.
type TableName struct {
	// Namespace is never empty in a valid name; "default" is left out of the
	// text form.
	Namespace string
	Qualifier string
}

// System names.
const (
	DefaultNamespace = "default"
	SystemNamespace  = "hbase"
)

// The system tables a client meets.
var (
	MetaTable      = TableName{SystemNamespace, "meta"}
	NamespaceTable = TableName{SystemNamespace, "namespace"}
	RSGroupTable   = TableName{SystemNamespace, "rsgroup"}
)

// ErrIllegalName is wrapped by every error about a malformed name.
var ErrIllegalName = errors.New("illegal name")

// ParseTableName reads "qualifier" or "namespace:qualifier" and checks the
// characters as HBase's TableName.isLegalFullyQualifiedTableName does.
func ParseTableName(s string) (TableName, error) {
	ns, q, ok := strings.Cut(s, ":")
	if !ok {
		ns, q = DefaultNamespace, s
	}
	t := TableName{ns, q}
	if err := CheckNamespace(ns); err != nil {
		return t, fmt.Errorf("table %q: %w", s, err)
	}
	if err := checkQualifier(q); err != nil {
		return t, fmt.Errorf("table %q: %w", s, err)
	}
	return t, nil
}

// CheckNamespace says whether s may name a namespace.
func CheckNamespace(s string) error {
	if s == "" {
		return fmt.Errorf("%w: namespace is empty", ErrIllegalName)
	}
	for _, r := range s {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return fmt.Errorf("%w: %q in namespace %q (letters, digits and _ are allowed)", ErrIllegalName, r, s)
		}
	}
	return nil
}

func checkQualifier(s string) error {
	if s == "" {
		return fmt.Errorf("%w: table qualifier is empty", ErrIllegalName)
	}
	if s[0] == '.' || s[0] == '-' {
		return fmt.Errorf("%w: %q starts with %q", ErrIllegalName, s, s[0])
	}
	if s == "zookeeper" {
		return fmt.Errorf("%w: %q is reserved", ErrIllegalName, s)
	}
	for _, r := range s {
		if r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return fmt.Errorf("%w: %q in table qualifier %q (letters, digits, _ - . are allowed)", ErrIllegalName, r, s)
		}
	}
	return nil
}

// String gives the text form: "ns:qualifier", without a default namespace.
func (t TableName) String() string {
	if t.Namespace == DefaultNamespace || t.Namespace == "" {
		return t.Qualifier
	}
	return t.Namespace + ":" + t.Qualifier
}

// IsSystem says whether the table belongs to HBase itself.
func (t TableName) IsSystem() bool { return t.Namespace == SystemNamespace }

// IsZero says whether t names no table.
func (t TableName) IsZero() bool { return t.Qualifier == "" }

// Compare orders table names as HBase does: by namespace, then qualifier.
func (t TableName) Compare(u TableName) int {
	if c := cmp.Compare(t.Namespace, u.Namespace); c != 0 {
		return c
	}
	return cmp.Compare(t.Qualifier, u.Qualifier)
}

// ServerName is one incarnation of a server process: a new start code at the
// same address is another server.
type ServerName struct {
	Host string
	Port int
	// StartCode is the process start in milliseconds; 0 when unknown.
	StartCode uint64
}

// Address gives "host:port", the form stored in info:server.
func (s ServerName) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// String gives "host,port,startcode".
func (s ServerName) String() string {
	return s.Host + "," + strconv.Itoa(s.Port) + "," + strconv.FormatUint(s.StartCode, 10)
}

// IsZero says whether s names no server.
func (s ServerName) IsZero() bool { return s.Host == "" && s.Port == 0 }

// ParseServerName reads "host,port,startcode".
func ParseServerName(text string) (ServerName, error) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 || parts[0] == "" {
		return ServerName{}, fmt.Errorf("%w: server %q is not host,port,startcode", ErrIllegalName, text)
	}
	port, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil {
		return ServerName{}, fmt.Errorf("%w: server %q: port %q", ErrIllegalName, text, parts[1])
	}
	code, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return ServerName{}, fmt.Errorf("%w: server %q: start code %q", ErrIllegalName, text, parts[2])
	}
	return ServerName{parts[0], int(port), code}, nil
}

// ParseAddress reads "host:port" as stored in info:server.
func ParseAddress(text string) (host string, port int, err error) {
	h, p, err := net.SplitHostPort(text)
	if err != nil || h == "" {
		return "", 0, fmt.Errorf("%w: address %q is not host:port", ErrIllegalName, text)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%w: address %q: port %q", ErrIllegalName, text, p)
	}
	return h, int(n), nil
}

// CompareRows orders rows of hbase:meta (MetaCellComparator): by the table
// part up to the first comma, then by the start key between first and last
// comma, then by what follows. Plain byte order would misplace start keys that
// hold commas or bytes below the comma.
func CompareRows(a, b []byte) int {
	i, j := bytes.IndexByte(a, ','), bytes.IndexByte(b, ',')
	ta, tb := a, b
	if i >= 0 {
		ta = a[:i]
	}
	if j >= 0 {
		tb = b[:j]
	}
	if c := bytes.Compare(ta, tb); c != 0 {
		return c
	}
	if i < 0 || j < 0 {
		// A row without a comma (a table's state) precedes the regions.
		return cmp.Compare(min(i, 0), min(j, 0))
	}
	ka, ia := startAndID(a, i)
	kb, ib := startAndID(b, j)
	if c := bytes.Compare(ka, kb); c != 0 {
		return c
	}
	return bytes.Compare(ia, ib)
}

// startAndID cuts what follows the first comma (at i) at the last one. A row
// with one comma has no id, and HBase then compares the whole row in its place:
// "t," sorts behind "t,,1600000000000.".
func startAndID(row []byte, i int) (start, id []byte) {
	last := bytes.LastIndexByte(row, ',')
	if last == i {
		return row[i+1:], row
	}
	return row[i+1 : last], row[last+1:]
}
