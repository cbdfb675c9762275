package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Bounds on the text of a server that is kept in an error.
const (
	maxClassText   = 256
	maxMessageText = 4 << 10
	// maxThrottleWait caps the wait a text may ask for. Real servers ask for
	// seconds; anything longer than a day is no advice worth waiting for.
	maxThrottleWait = 24 * time.Hour
)

// RemoteError is an exception a server answered with, or is to answer with.
// It is a value: nobody changes it after it was made.
type RemoteError struct {
	// Class is the full Java class name, as the server sent it.
	Class string
	// Message is the exception's own text, without class and stack trace, cut
	// to a few kilobytes.
	Message string
	// DoNotRetry: the class is a DoNotRetryIOException, or the server says so.
	DoNotRetry bool
	// Overloaded: the server sheds load; wait longer than usual.
	Overloaded bool
	// Moved is set by a RegionMovedException that says where to.
	Moved *MovedTo
	// ThrottleWait is how long a throttling exception asks to wait; 0 = it
	// does not say.
	ThrottleWait time.Duration
}

// MovedTo is where a region went.
type MovedTo struct {
	Host      string
	Port      int
	StartCode uint64 // 0 = not said
	SeqNum    int64  // open sequence number of the region there; -1 = not said
}

// Error gives simple class name and message.
func (e *RemoteError) Error() string {
	if e.Message == "" {
		return e.Short()
	}
	return e.Short() + ": " + e.Message
}

// Short is the class name without its package.
func (e *RemoteError) Short() string {
	if i := strings.LastIndexByte(e.Class, '.'); i >= 0 && i+1 < len(e.Class) {
		return e.Class[i+1:]
	}
	if e.Class == "" {
		return "exception without a class"
	}
	return e.Class
}

// Is makes errors.Is match any RemoteError of the same class:
// errors.Is(err, &RemoteError{Class: ClassTableNotFound}).
func (e *RemoteError) Is(target error) bool {
	t, ok := target.(*RemoteError)
	return ok && t.Class == e.Class && (t.Message == "" || t.Message == e.Message)
}

// Fatal says whether the exception ends the whole connection.
func (e *RemoteError) Fatal() bool { return ClassIsFatal(e.Class) }

// NewRemoteError makes an exception to answer with. DoNotRetry and Overloaded
// follow from the class.
func NewRemoteError(class, message string) *RemoteError {
	e := &RemoteError{Class: class, Message: message}
	e.complete()
	return e
}

// NewRegionMoved makes the exception that sends clients elsewhere.
func NewRegionMoved(to MovedTo) *RemoteError {
	return &RemoteError{Class: ClassRegionMoved, Moved: &to, Message: to.text()}
}

// text is HBase's wording, which Java clients parse.
func (m *MovedTo) text() string {
	return fmt.Sprintf("Region moved to: hostname=%s port=%d startCode=%d. As of locationSeqNum=%d.",
		m.Host, m.Port, m.StartCode, m.SeqNum)
}

// NewThrottling makes the exception of an exceeded quota; what is HBase's text
// up to the wait, such as "number of requests exceeded".
func NewThrottling(what string, wait time.Duration) *RemoteError {
	wait = max(wait, 0)
	return &RemoteError{Class: ClassRpcThrottling, ThrottleWait: wait, Message: what + waitMark + formatWait(wait)}
}

// complete fills what follows from class and message.
func (e *RemoteError) complete() {
	e.DoNotRetry = e.DoNotRetry || classDoesNotRetry(e.Class)
	e.Overloaded = e.Overloaded || classIsOverload(e.Class)
	switch e.Class {
	case ClassRpcThrottling, ClassThrottling:
		if e.ThrottleWait == 0 {
			e.ThrottleWait = parseWait(e.Message)
		}
	case ClassRegionMoved:
		if e.Moved == nil {
			e.Moved = parseMoved(e.Message)
		}
	}
}

// ParseException reads the exception of a response header.
func ParseException(x *pb.ExceptionResponse) *RemoteError {
	e := &RemoteError{
		Class:      cutText(x.GetExceptionClassName(), maxClassText),
		DoNotRetry: x.GetDoNotRetry(),
		Overloaded: x.GetServerOverloaded(),
	}
	e.Message = parseTrace(e.Class, x.GetStackTrace())
	e.complete()
	if e.Class == ClassRegionMoved {
		// The fields are meant for us, the text adds start code and sequence.
		host, port := x.GetHostname(), int(x.GetPort())
		if m := e.Moved; host != "" && port > 0 && port < 1<<16 && len(host) <= maxHost {
			if m == nil || m.Host != host || m.Port != port {
				e.Moved = &MovedTo{Host: strings.Clone(host), Port: port, SeqNum: -1}
			}
		}
	}
	return e
}

// ParseNamed reads an exception out of a multi's results.
func ParseNamed(p *pb.NameBytesPair) *RemoteError {
	e := &RemoteError{Class: cutText(p.GetName(), maxClassText)}
	text := p.GetValue()
	if len(text) > maxTraceScan {
		text = text[:maxTraceScan]
	}
	e.Message = parseTrace(e.Class, string(text))
	e.complete()
	return e
}

// Exception is the form that goes into a response header.
func (e *RemoteError) Exception() *pb.ExceptionResponse {
	class, trace := e.Class, e.trace()
	x := &pb.ExceptionResponse{ExceptionClassName: &class, StackTrace: &trace}
	dnr := e.DoNotRetry
	x.DoNotRetry = &dnr
	if e.Moved != nil {
		host, port := e.Moved.Host, int32(e.Moved.Port)
		x.Hostname, x.Port = &host, &port
	}
	if e.Overloaded {
		yes := true
		x.ServerOverloaded = &yes
	}
	return x
}

// Named is the form that goes into a multi's results.
func (e *RemoteError) Named() *pb.NameBytesPair {
	class := e.Class
	return &pb.NameBytesPair{Name: &class, Value: []byte(e.trace())}
}

// frame is the one frame of the stack traces that are sent. Java programs tell
// by it that an exception is a server's and not their own client's.
const frame = "\n\tat holdfast.Server.call(Unknown Source)"

// trace is a Java stack trace.
func (e *RemoteError) trace() string {
	if e.Message == "" {
		return e.Class + frame
	}
	return e.Class + ": " + e.Message + frame
}

// maxTraceScan bounds how far a stack trace is looked through: its first lines
// hold the message.
const maxTraceScan = 16 << 10

// parseTrace takes the message out of a Java stack trace: what stands between
// "class: " and the first frame. A text that does not start with the class is
// the message itself.
func parseTrace(class, trace string) string {
	if len(trace) > maxTraceScan {
		trace = trace[:maxTraceScan]
	}
	if rest, ok := strings.CutPrefix(trace, class); ok && class != "" {
		switch {
		case strings.HasPrefix(rest, ": "):
			trace = rest[2:]
		case rest == "", rest[0] == '\n', rest[0] == '\r':
			trace = rest
		}
	}
	if strings.HasPrefix(trace, "\tat ") {
		return ""
	}
	for _, end := range []string{"\n\tat ", "\r\n\tat ", "\nCaused by: ", "\n\t... "} {
		if i := strings.Index(trace, end); i >= 0 {
			trace = trace[:i]
		}
	}
	return cutText(strings.TrimSpace(trace), maxMessageText)
}

// cutText copies a text, cut at a character's edge, valid UTF-8.
func cutText(s string, limit int) string {
	if len(s) > limit {
		at := limit
		for at > 0 && at > limit-utf8.UTFMax && !utf8.RuneStart(s[at]) {
			at--
		}
		s = s[:at]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
		if len(s) > limit {
			return cutText(s, limit)
		}
	}
	return strings.Clone(s)
}

const maxHost = 255

// parseMoved reads the text of a RegionMovedException, nil if it is not that.
func parseMoved(s string) *MovedTo {
	host, s, ok := fieldOf(s, "hostname=", " ")
	if !ok || host == "" || len(host) > maxHost {
		return nil
	}
	portText, s, ok := fieldOf(s, "port=", " ")
	if !ok {
		return nil
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return nil
	}
	m := &MovedTo{Host: strings.Clone(host), Port: int(port), SeqNum: -1}
	codeText, s, ok := fieldOf(s, "startCode=", ".")
	if !ok {
		return m
	}
	if m.StartCode, err = strconv.ParseUint(codeText, 10, 64); err != nil {
		m.StartCode = 0
		return m
	}
	if seqText, _, ok := fieldOf(s, "locationSeqNum=", "."); ok {
		if seq, err := strconv.ParseInt(seqText, 10, 64); err == nil {
			m.SeqNum = seq
		}
	}
	return m
}

// fieldOf finds what stands between key and end, and what follows.
func fieldOf(s, key, end string) (value, rest string, ok bool) {
	_, s, ok = strings.Cut(s, key)
	if !ok {
		return "", "", false
	}
	return strings.Cut(s, end)
}

// waitMark stands before the wait in the text of a throttling exception.
const waitMark = " - wait "

// parseWait reads the wait out of the text of a throttling exception. 2.6
// writes "... exceeded - wait 1hr, 2mins, 3sec, 4ms", older servers
// "... - wait 1hrs, 2mins, 3sec" (whole seconds, so a wait below one second
// reads as "0sec"), 1.x with fractions in places ("wait 0.50sec").
// 0 = no wait found.
func parseWait(s string) time.Duration {
	i := strings.LastIndex(s, waitMark)
	if i < 0 {
		return 0
	}
	s = s[i+len(waitMark):]
	var sum time.Duration
	for {
		digits := 0
		for digits < len(s) && (s[digits] >= '0' && s[digits] <= '9' || s[digits] == '.') {
			digits++
		}
		if digits == 0 || digits > 18 {
			return sum
		}
		n, err := strconv.ParseFloat(s[:digits], 64)
		if err != nil {
			return sum
		}
		s = strings.TrimLeft(s[digits:], " ")
		letters := 0
		for letters < len(s) && (s[letters] >= 'a' && s[letters] <= 'z') {
			letters++
		}
		unit := unitOf(s[:letters])
		if unit == 0 {
			return sum
		}
		if n >= float64(maxThrottleWait/unit) {
			return maxThrottleWait
		}
		sum = min(sum+time.Duration(n*float64(unit)), maxThrottleWait)
		s = strings.TrimLeft(s[letters:], ", ")
	}
}

func unitOf(word string) time.Duration {
	switch word {
	case "ms", "msec", "millis", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	}
	return 0
}

// formatWait writes a wait as 2.6 servers do; other versions' clients skip the
// parts they do not know.
func formatWait(d time.Duration) string {
	ms := d.Milliseconds()
	hours, minutes, seconds := ms/3600000, ms/60000%60, ms/1000%60
	var s strings.Builder
	if hours > 0 {
		fmt.Fprintf(&s, "%dhr%s, ", hours, plural(hours))
	}
	if minutes > 0 {
		fmt.Fprintf(&s, "%dmin%s, ", minutes, plural(minutes))
	}
	if seconds > 0 {
		fmt.Fprintf(&s, "%dsec, ", seconds)
	}
	fmt.Fprintf(&s, "%dms", ms%1000)
	return s.String()
}

func plural(n int64) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// quote shows bytes of a peer in a text, printable ASCII as it is.
func quote(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		if c >= ' ' && c <= '~' && c != '\\' {
			s.WriteByte(c)
		} else {
			fmt.Fprintf(&s, `\x%02X`, c)
		}
	}
	return s.String()
}
