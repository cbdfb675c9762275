package readers

import (
	"bytes"
	"encoding/json"
)

// line is one physical line with what carriers put around it taken off.
type line struct {
	text  []byte // inner text; aliases the input unless it was JSON
	stamp Stamp
	has   bool // stamp is valid
	// head says that the line begins a log entry.
	head bool
	// partial says that the carrier cut a long line here (CRI flag P).
	partial bool
}

// continues says that inner text belongs to the entry before, whatever the
// carrier's own time stamp says.
func continues(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	return b[0] == '\t' || b[0] == ' ' || bytes.HasPrefix(b, []byte("at ")) || bytes.HasPrefix(b, []byte("Caused by")) || bytes.HasPrefix(b, []byte("... "))
}

// peel takes carriers off a line: carriage return, colour, Docker's JSON, CRI,
// docker compose, kubectl prefixes, syslog, JSON logging, logrus.
func peel(raw []byte) line {
	b := bytes.TrimSuffix(raw, []byte{'\r'})
	b = skipColour(b)
	var l line
	carried := false
	for range 3 { // carriers nest: kubectl --prefix --timestamps of JSON
		switch {
		case len(b) > 8 && b[0] == '{' && b[1] != '}':
			inner, stamp, has, ok := peelJSON(b)
			if !ok {
				break
			}
			if has {
				l.stamp, l.has = stamp, true
			}
			b, carried = inner.text, true
			if !inner.whole { // Docker's: the inner line has a form of its own
				continue
			}
			l.head = true
		case bytes.HasPrefix(b, []byte("[pod/")):
			if i := bytes.IndexByte(b, ']'); i > 0 && i < 300 {
				b = bytes.TrimPrefix(b[i+1:], []byte{' '})
				continue
			}
		default:
			if rest, ok := peelCompose(b); ok {
				b = skipColour(rest)
				continue
			}
			stamp, n, ok := ParseStamp(b)
			if !ok {
				break
			}
			rest := b[n:]
			if !l.has || stamp.Year || !carried { // the program's own clock, if it has a date
				l.stamp, l.has = stamp, true
			}
			if inner, partial, ok := peelCRI(rest); ok {
				l.partial, carried = partial, true
				b = inner
				continue
			}
			if inner := bytes.TrimPrefix(rest, []byte{' '}); stamp.Zoned && !carried && len(inner) < len(rest) {
				// kubectl --timestamps: the program's own line follows.
				if _, _, ok := ParseStamp(inner); ok || continues(inner) {
					b, carried = inner, true
					continue
				}
			}
			if inner, ok := peelSyslog(rest); ok && !stamp.Year {
				if _, _, ok := ParseStamp(inner); ok || continues(inner) {
					b, carried = inner, true
					continue
				}
			}
			// "TIME, RpcRetryingCaller{...}, cause" is a line of an exception's list of
			// attempts, not an entry.
			l.head = !bytes.HasPrefix(rest, []byte(", ")) && !bytes.Equal(rest, []byte(","))
		}
		break
	}
	if !l.head && len(b) > 6 && b[4] == '[' && (bytes.HasPrefix(b, []byte("ERRO[")) || bytes.HasPrefix(b, []byte("WARN[")) || bytes.HasPrefix(b, []byte("INFO[")) || bytes.HasPrefix(b, []byte("DEBU["))) {
		l.head = true
	}
	if !l.head && len(b) > 30 && (bytes.HasPrefix(b, []byte("time=\"")) || bytes.HasPrefix(b, []byte("time=2")) || bytes.HasPrefix(b, []byte("ts="))) {
		v := bytes.Trim(b[bytes.IndexByte(b, '=')+1:min(len(b), 45)], "\"")
		if s, _, ok := ParseStamp(v); ok {
			l.stamp, l.has = s, true
		}
		l.head = true
	}
	if !l.head {
		for _, p := range [...]string{"ERROR: ", "FATAL ", "ERROR [", "WARN [", "WARN  [", "INFO [", "INFO  ["} {
			if bytes.HasPrefix(b, []byte(p)) {
				l.head = true
			}
		}
	}
	l.text = b
	return l
}

func skipColour(b []byte) []byte {
	for len(b) > 2 && b[0] == 0x1b && b[1] == '[' {
		i := 2
		for i < len(b) && i < 20 && (b[i] >= '0' && b[i] <= '9' || b[i] == ';') {
			i++
		}
		if i >= len(b) {
			return b
		}
		b = b[i+1:]
	}
	return b
}

// peelCompose takes off "service_1  | ".
func peelCompose(b []byte) ([]byte, bool) {
	for i, c := range b[:min(len(b), 64)] {
		switch {
		case c == '|' && i > 1 && b[i-1] == ' ' && i+1 < len(b) && b[i+1] == ' ':
			return b[i+2:], true
		case c == ' ', c == '-', c == '_', c == '.', c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == 0x1b, c == '[', c == ';':
		default:
			return nil, false
		}
	}
	return nil, false
}

// peelCRI takes off " stdout F ".
func peelCRI(b []byte) (inner []byte, partial, ok bool) {
	for _, p := range [...]string{" stdout ", " stderr "} {
		if bytes.HasPrefix(b, []byte(p)) && len(b) > len(p) {
			flag := b[len(p)]
			if (flag == 'F' || flag == 'P') && (len(b) == len(p)+1 || b[len(p)+1] == ' ' || b[len(p)+1] == ':') {
				return b[min(len(b), len(p)+2):], flag == 'P', true
			}
		}
	}
	return nil, false, false
}

// peelSyslog takes off " host program[pid]: ".
func peelSyslog(b []byte) ([]byte, bool) {
	i := bytes.Index(b[:min(len(b), 160)], []byte(": "))
	if i < 3 || bytes.Count(b[:i], []byte{' '}) > 2 {
		return nil, false
	}
	return b[i+2:], true
}

type jsonLine struct {
	text  []byte
	whole bool // the object is one log entry; otherwise it carries one line of another log
}

// textKeys are where loggers put words, in the order in which they read best.
var textKeys = []string{"level", "severity", "logger", "logger_name", "loggerName", "thread", "thread_name", "message", "msg", "textPayload", "error", "err", "exception", "stack_trace", "stackTrace", "stack", "throwable", "exc_info", "log", "event"}

var timeKeys = []string{"@timestamp", "timestamp", "time", "ts", "date", "asctime", "instant"}

// peelJSON reads a line that is a JSON object.
func peelJSON(b []byte) (out jsonLine, stamp Stamp, has, ok bool) {
	if len(b) > maxEntry {
		return jsonLine{}, Stamp{}, false, false
	}
	var obj map[string]any
	if err := json.Unmarshal(b, &obj); err != nil {
		return jsonLine{}, Stamp{}, false, false
	}
	for _, k := range timeKeys {
		switch v := obj[k].(type) {
		case string:
			stamp, _, has = ParseStamp([]byte(v))
		case float64: // seconds or milliseconds since 1970
			if v > 1e9 && v < 4e12 {
				if v < 1e11 {
					v *= 1000
				}
				stamp, has = Stamp{Milli: int64(v), Date: true, Year: true, Zoned: true}, true
			}
		}
		if has {
			break
		}
	}
	if s, isText := obj["log"].(string); isText && obj["message"] == nil && obj["msg"] == nil {
		return jsonLine{text: bytes.TrimRight([]byte(s), "\r\n")}, stamp, has, true
	}
	var text bytes.Buffer
	appendText(&text, obj, 0)
	if text.Len() == 0 {
		return jsonLine{}, Stamp{}, false, false
	}
	return jsonLine{text: text.Bytes(), whole: true}, stamp, has, true
}

func appendText(w *bytes.Buffer, obj map[string]any, depth int) {
	for _, k := range textKeys {
		switch v := obj[k].(type) {
		case string:
			if w.Len() > 0 {
				w.WriteByte(' ')
			}
			w.WriteString(v)
		case map[string]any:
			if depth < 4 {
				appendText(w, v, depth+1)
			}
		}
	}
	for _, k := range [...]string{"class", "exception_class", "exception_message", "stacktrace", "name"} {
		if v, ok := obj[k].(string); ok {
			w.WriteByte(' ')
			w.WriteString(v)
		}
	}
}
