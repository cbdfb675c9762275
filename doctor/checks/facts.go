package checks

import (
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/doctor/readers"
)

// Kind is what a fact states.
type Kind uint8

// Kinds of facts. The comments name the fields used besides Server and Class.
const (
	_                 Kind = iota
	CallTimedOut           // Timeout, Duration, Table, Row, Region; Class: the cause given, if any
	Progress               // Tries, Limit, Started, Table, Region: "Call exception, tries="
	Exhausted              // Limit: "Failed after attempts="
	Attempt                // At of the line, Started (epoch), Pause, Limit, Class
	AsyncBatch             // Tries, Limit, Table, Wait, Elapsed, Class
	NotServing             // Region
	Moved                  // Limit: sequence number
	Opening                // Region
	WrongRegion            // Region
	Unresolved             // Server.Host
	Refused                // Server, Addr
	FailedServer           // Server, Addr: local fast failure
	NoRoute                // Server
	ConnectTimeout         // Server, Addr, Timeout
	RPCTimeout             // Wait, Timeout
	QueueFull              //
	MemstoreFull           // Size, Limit, Region
	RowLockBusy            // Wait
	ScannerUnknown         //
	ScannerGap             // Duration, Timeout
	ScannerMissing         //
	ScannerOrder           //
	ScannerClosed          // on close, benign
	LookupLock             // Wait
	MasterBusy             //
	MasterGone             //
	Stuck                  // Table, Region, Class: state
	ParentMissing          // Path
	NoNode                 // Path
	ZKSilent               // Session, Wait: client read or connect timeout
	ZKExpired              // Session, Timeout: said by the server
	ZKExpiredClient        // Session: heard by the client
	ZKInvalid              // Session: reconnect refused, seen by the server
	ZKRenew                // Session, Addr
	ZKEstablished          // Session, Timeout, Server: seen by the client
	ZKGranted              // Session, Timeout: seen by the server
	ZKOpening              // Server, Addr
	ZKConnError            // Session, Class
	ZKClosed               // Session: by the client itself
	ZKLoss                 // Path, Quorum
	ZKQuorum               // Quorum, Timeout: a client being made
	ZKTooMany              // Addr, Limit
	ZKUserLevel            // Path: noise
	Pause                  // Duration, Limit: a process stood still
	KerberosNoTGT          // Class: layer
	KerberosRelogin        //
	KerberosPrincipal      //
	KerberosClock          //
	CoprocessorFault       // Class: coprocessor; Table
	ClientGone             // Addr, Method
	SlowResponse           // Duration, Method, Addr
	YouAreDead             //
	Abort                  //
	OtherFault             // Class: id of a simple fault
	ThriftConnect          // Server
	OwnError               // an error text of this project's client
	Setting                // Class: name, Path: value
	Hint                   // Class: release, Path: why
	HugeRegions            // Limit: number of regions
	StaleGateway           // words of an incident report
	Kylin                  //
	MasterReady            // initialization completed
)

// Server is a region server or another endpoint.
type Server struct {
	Host  string
	Port  int
	Start int64 // start code, milliseconds since 1970; 0 if not given
}

// Known says whether anything of it is.
func (s Server) Known() bool { return s.Host != "" || s.Port != 0 }

// String is host:port, with what is known.
func (s Server) String() string {
	switch {
	case s.Port == 0:
		return s.Host
	case s.Host == "":
		return fmt.Sprintf(":%d", s.Port)
	case strings.Contains(s.Host, ":"):
		return fmt.Sprintf("[%s]:%d", s.Host, s.Port)
	}
	return fmt.Sprintf("%s:%d", s.Host, s.Port)
}

// Fact is one statement of a log entry. Times are milliseconds.
type Fact struct {
	Kind  Kind
	File  string
	Line  int // from 1
	Stamp readers.Stamp
	Has   bool
	Text  string
	Level string // of the entry: FATAL, ERROR, WARN, INFO, DEBUG, TRACE or ""

	Server  Server
	Addr    string // numeric address
	Class   string
	Table   string
	Row     string
	Region  string // full name
	Encoded string
	Session uint64
	Path    string
	Quorum  string
	Method  string

	Timeout, Duration, Started, Pause, Wait, Elapsed, Size, Limit, Tries int64
	// HasRow says that a row was named, be it empty.
	HasRow bool
	// Retries says that Limit counts retries, not attempts.
	Retries bool
}

func (f *Fact) evidence() finding.Evidence {
	e := finding.Evidence{File: f.File, Line: f.Line, Text: f.Text}
	if f.Has {
		e.Time = f.Stamp.String()
	}
	return e
}

// at is the fact's time; false if its entry had none.
func (f *Fact) at() (int64, bool) { return f.Stamp.Milli, f.Has }

func (f *Fact) meta() bool {
	return f.Table == "hbase:meta" || f.Table == ".META." || strings.HasPrefix(f.Region, "hbase:meta,") || strings.HasPrefix(f.Region, ".META.,") || strings.HasPrefix(f.Table, "-ROOT-")
}

// Case is all that is known when judgement begins.
type Case struct {
	Facts []Fact
	// Counts counts facts by kind, those not kept included.
	Counts   map[Kind]int
	Settings []readers.Property
	Dumps    []DumpSummary
	// Version is the release given by the operator, "" to infer it.
	Version string
	// Context are facts about the incident that no log holds.
	Context []string
}

// per kind and subject this many facts are kept, and this many in all.
const (
	keepPerSubject = 40
	keepFacts      = 8000
)

// Collector gathers facts with bounded memory: of a flood of equal facts the
// first and the newest are kept, and all are counted.
type Collector struct {
	Case Case
	per  map[string]int
}

// Add takes a fact.
func (c *Collector) Add(f Fact) {
	if c.per == nil {
		c.per = make(map[string]int)
		c.Case.Counts = make(map[Kind]int)
	}
	c.Case.Counts[f.Kind]++
	key := fmt.Sprintf("%d|%s|%s|%s|%x", f.Kind, f.Server.Host, f.Table, f.Class, f.Session)
	if len(key) > 160 {
		key = key[:160]
	}
	n := c.per[key]
	if n >= keepPerSubject || len(c.Case.Facts) >= keepFacts {
		if n < keepPerSubject {
			return
		}
		// The newest takes the place of the last one kept.
		for i := len(c.Case.Facts) - 1; i >= max(0, len(c.Case.Facts)-200); i-- {
			g := &c.Case.Facts[i]
			if g.Kind == f.Kind && g.Server.Host == f.Server.Host && g.Session == f.Session && g.Table == f.Table {
				*g = f
				return
			}
		}
		return
	}
	if len(c.per) < 4*keepFacts {
		c.per[key] = n + 1
	}
	c.Case.Facts = append(c.Case.Facts, f)
}
