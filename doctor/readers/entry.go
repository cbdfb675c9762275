package readers

import (
	"bytes"
	"sort"
	"strings"
)

// maxEntry bounds one log entry, its stack trace included.
const maxEntry = 256 << 10

// maxEntryLines bounds the lines of one entry.
const maxEntryLines = 4000

// Entry is one log entry: a line with a time, and the lines after it that have
// none. It is valid only during the call it is handed to; strings taken out of
// it with Clip, Between and the like are copies.
type Entry struct {
	Stamp Stamp
	Has   bool // Stamp is valid
	// Squeezed is the text without blanks and line ends, colour taken off,
	// escaped line ends taken out and typographic quotes made plain.
	Squeezed string

	lines  []entryLine
	starts []int // offset in Squeezed where lines[i] begins
}

type entryLine struct {
	no   int // from 0, relative to the block
	text []byte
}

// Lines is the number of lines.
func (e *Entry) Lines() int { return len(e.lines) }

// index is the line an offset of Squeezed lies in.
func (e *Entry) index(at int) int {
	i := sort.Search(len(e.starts), func(i int) bool { return e.starts[i] > at }) - 1
	return max(i, 0)
}

// LineAt gives number and text of the line an offset of Squeezed lies in.
func (e *Entry) LineAt(at int) (no int, text []byte) {
	if len(e.lines) == 0 {
		return 0, nil
	}
	l := e.lines[e.index(at)]
	return l.no, l.text
}

// Joined is the text with line ends as single blanks, cut to limit bytes.
func (e *Entry) Joined(limit int) string {
	var b strings.Builder
	for _, l := range e.lines {
		if b.Len() >= limit {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		t := bytes.TrimSpace(l.text)
		b.Write(t[:min(len(t), limit-min(limit, b.Len()))])
	}
	return strings.ToValidUTF8(b.String(), "?")
}

// Clip is the readable text around an offset of Squeezed, cut to limit bytes.
func (e *Entry) Clip(at, limit int) string {
	if len(e.lines) == 0 {
		return ""
	}
	i := e.index(at)
	t := e.lines[i].text
	// Where in the raw line the offset lies, near enough: count what squeezing keeps.
	want, pos := at-e.starts[i], 0
	for pos < len(t) && want > 0 {
		if t[pos] != ' ' && t[pos] != '\t' {
			want--
		}
		pos++
	}
	from := 0
	if len(t) > limit && pos > limit*2/3 {
		from = min(pos-limit/2, len(t)-limit)
	}
	end := min(from+limit, len(t))
	s := strings.TrimSpace(string(t[from:end]))
	if end == len(t) && i+1 < len(e.lines) && len(s) < limit/3 && !continues(e.lines[i+1].text) {
		next := bytes.TrimSpace(e.lines[i+1].text)
		s += " " + string(next[:min(len(next), limit-len(s))])
	}
	if from > 0 {
		s = "..." + s
	}
	return clean(s)
}

// clean makes text printable.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// squeeze fills Squeezed and starts from lines.
func (e *Entry) squeeze(buf []byte) []byte {
	buf = buf[:0]
	e.starts = e.starts[:0]
	for _, l := range e.lines {
		e.starts = append(e.starts, len(buf))
		buf = appendSqueezed(buf, l.text)
	}
	e.Squeezed = string(buf)
	return buf
}

func appendSqueezed(buf, t []byte) []byte {
	for i := 0; i < len(t); i++ {
		c := t[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0:
		case c == 0xc2 && i+1 < len(t) && t[i+1] == 0xa0: // no-break space
			i++
		case c == 0x1b && i+1 < len(t) && t[i+1] == '[':
			j := i + 2
			for j < len(t) && j < i+20 && (t[j] >= '0' && t[j] <= '9' || t[j] == ';') {
				j++
			}
			i = j
		case c == '\\' && i+1 < len(t):
			switch t[i+1] {
			case 'n', 't', 'r':
				i++
			case '"', '\'', '\\':
				i++
				if t[i] != '\\' {
					buf = append(buf, t[i])
				} else if i+1 < len(t) && (t[i+1] == 'n' || t[i+1] == 't') {
					i++ // escaped twice
				} else {
					buf = append(buf, '\\')
				}
			default:
				buf = append(buf, c)
			}
		case c == 0xe2 && i+2 < len(t) && t[i+1] == 0x80 && (t[i+2] == 0x98 || t[i+2] == 0x99):
			buf, i = append(buf, '\''), i+2
		case c == 0xe2 && i+2 < len(t) && t[i+1] == 0x80 && (t[i+2] == 0x9c || t[i+2] == 0x9d):
			buf, i = append(buf, '"'), i+2
		default:
			buf = append(buf, c)
		}
	}
	return buf
}

// embeddedHead finds, after offset from, where another log entry begins on the
// same line: a full time with a level or bracket right after it. -1 if none.
func embeddedHead(t []byte, from int) int {
	if len(t) < from+40 {
		return -1
	}
	for at := from; ; {
		i := bytes.IndexByte(t[at:], ':')
		if i < 0 {
			return -1
		}
		if at+i < 13 {
			at += i + 1
			continue
		}
		colon := at + i
		at = colon + 1
		start := colon - 13 // yyyy-mm-dd hh:
		if start < from || t[start] != '2' && t[start] != '1' || t[start+4] != '-' || t[colon-3] != ' ' && t[colon-3] != 'T' {
			continue
		}
		if start > 0 && (t[start-1] >= '0' && t[start-1] <= '9' || t[start-1] == '[') {
			continue
		}
		_, n, ok := ParseStamp(t[start:])
		if !ok || n < 23 {
			continue
		}
		rest := bytes.TrimLeft(t[start+n:], " ")
		for _, p := range [...]string{"[", "INFO", "WARN", "ERROR", "DEBUG", "FATAL", "TRACE"} {
			if bytes.HasPrefix(rest, []byte(p)) {
				return start
			}
		}
	}
}
