package readers

import (
	"time"
)

// Stamp is a time as a log line gives it.
type Stamp struct {
	// Milli is milliseconds since 1970, read as if the line's zone were UTC
	// unless it names an offset.
	Milli int64
	// Date and Year say whether the line had them; without a date only the time
	// of day counts, without a year the year is 1970.
	Date, Year bool
	// Zoned says that the line named its offset.
	Zoned bool
}

// Time returns the stamp as a time in UTC.
func (s Stamp) Time() time.Time { return time.UnixMilli(s.Milli).UTC() }

// String is RFC 3339 with milliseconds, without what the line did not have.
func (s Stamp) String() string {
	switch {
	case s.Zoned:
		return s.Time().Format("2006-01-02T15:04:05.000Z")
	case s.Year:
		return s.Time().Format("2006-01-02T15:04:05.000")
	case s.Date:
		return s.Time().Format("01-02T15:04:05.000")
	}
	return s.Time().Format("15:04:05.000")
}

// cursor reads digits and literals; after a failure it stays failed.
type cursor struct {
	b  []byte
	at int
	ok bool
}

func (c *cursor) digits(lo, hi int) int {
	v, n := 0, 0
	for c.at < len(c.b) && n < hi && c.b[c.at] >= '0' && c.b[c.at] <= '9' {
		v = v*10 + int(c.b[c.at]-'0')
		c.at, n = c.at+1, n+1
	}
	if n < lo {
		c.ok = false
	}
	return v
}

func (c *cursor) lit(set string) byte {
	if c.ok && c.at < len(c.b) {
		for i := 0; i < len(set); i++ {
			if c.b[c.at] == set[i] {
				c.at++
				return set[i]
			}
		}
	}
	c.ok = false
	return 0
}

func (c *cursor) peek() byte {
	if c.at < len(c.b) {
		return c.b[c.at]
	}
	return 0
}

// clock reads h:m:s with an optional fraction.
func (c *cursor) clock() (ms int64) {
	h := c.digits(1, 2)
	c.lit(":")
	m := c.digits(2, 2)
	c.lit(":")
	s := c.digits(2, 2)
	if h > 23 || m > 59 || s > 60 {
		c.ok = false
	}
	ms = int64(h)*3600000 + int64(m)*60000 + int64(s)*1000
	if p := c.peek(); c.ok && (p == ',' || p == '.') && c.at+1 < len(c.b) && c.b[c.at+1] >= '0' && c.b[c.at+1] <= '9' {
		c.at++
		start := c.at
		v := c.digits(1, 9)
		for n := c.at - start; n != 3; {
			if n < 3 {
				v, n = v*10, n+1
			} else {
				v, n = v/10, n-1
			}
		}
		ms += int64(v)
	}
	return ms
}

// zone reads Z, +hh:mm, +hhmm, with an optional blank before the sign.
func (c *cursor) zone() (offset int64, zoned bool) {
	switch p := c.peek(); p {
	case 'Z':
		c.at++
		return 0, true
	case '+', '-':
		d := cursor{b: c.b, at: c.at + 1, ok: true}
		h := d.digits(2, 2)
		if d.peek() == ':' {
			d.at++
		}
		m := d.digits(2, 2)
		if !d.ok || h > 18 || m > 59 {
			return 0, false
		}
		c.at = d.at
		offset = int64(h)*3600000 + int64(m)*60000
		if p == '-' {
			offset = -offset
		}
		return offset, true
	}
	return 0, false
}

func month(b []byte) int {
	if len(b) < 3 {
		return 0
	}
	k := string([]byte{lower(b[0]), lower(b[1]), lower(b[2])})
	for i, n := range [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"} {
		if k == n {
			return i + 1
		}
	}
	return 0
}

func date(y, m, d int) int64 { return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).UnixMilli() }

func goodDate(m, d int) bool { return m >= 1 && m <= 12 && d >= 1 && d <= 31 }

// ParseStamp reads a time at the start of b, in any of the forms log4j, logback,
// slf4j-simple, syslog, Docker, Go and Java programs write, with an opening
// bracket before it or not. n is what it took.
func ParseStamp(b []byte) (s Stamp, n int, ok bool) {
	skip := 0
	for skip < len(b) && skip < 2 && (b[skip] == '[' || b[skip] == '(' || b[skip] == '<') {
		skip++
	}
	c := cursor{b: b, at: skip, ok: true}
	if len(b) < skip+8 {
		return Stamp{}, 0, false
	}
	switch p := b[skip]; {
	case p >= '0' && p <= '9':
		s, ok = numericStamp(&c)
	case p >= 'A' && p <= 'Z' && month(b[skip:]) > 0 && b[skip+3] == ' ':
		s, ok = syslogStamp(&c)
	case p >= 'A' && p <= 'Z' && weekday(b[skip:]):
		s, ok = javaStamp(&c)
	}
	if !ok {
		return Stamp{}, 0, false
	}
	if p := c.peek(); skip > 0 && (p == ']' || p == ')' || p == '>') {
		c.at++
	}
	return s, c.at, true
}

func numericStamp(c *cursor) (Stamp, bool) {
	start := c.at
	first := c.digits(1, 4)
	width := c.at - start
	switch sep := c.peek(); {
	case width == 4 && (sep == '-' || sep == '/' || sep == '.'): // 2019-07-18, 2016/02/29
		c.at++
		m := c.digits(1, 2)
		c.lit("-/.")
		d := c.digits(1, 2)
		c.lit(" T_:")
		ms := c.clock()
		offset, zoned := c.zone()
		if !c.ok || !goodDate(m, d) {
			return Stamp{}, false
		}
		return Stamp{Milli: date(first, m, d) + ms - offset, Date: true, Year: true, Zoned: zoned}, true
	case width == 2 && sep == '/': // 16/04/13 as yy/MM/dd
		c.at++
		m := c.digits(2, 2)
		c.lit("/")
		d := c.digits(2, 4)
		c.lit(" T")
		ms := c.clock()
		if !c.ok {
			return Stamp{}, false
		}
		y := 2000 + first
		if d > 99 { // dd/MM/yyyy
			y, d = d, first
		}
		if !goodDate(m, d) {
			return Stamp{}, false
		}
		return Stamp{Milli: date(y, m, d) + ms, Date: true, Year: true}, true
	case width == 2 && sep == '-': // 11-21 19:16:27 or 21-11-2016 19:16:27
		c.at++
		d := c.digits(2, 2)
		m, y, year := first, 1970, false
		if c.peek() == '-' {
			c.at++
			y, m, d, year = c.digits(4, 4), d, first, true
		}
		c.lit(" T")
		ms := c.clock()
		if !c.ok || !goodDate(m, d) {
			return Stamp{}, false
		}
		return Stamp{Milli: date(y, m, d) + ms, Date: true, Year: year}, true
	case width <= 2 && sep == ' ' && month(c.b[min(c.at+1, len(c.b)):]) > 0: // 03 Mar 18:17:56
		m := month(c.b[c.at+1:])
		c.at += 4
		c.lit(" ")
		y, year := 1970, false
		if d := (cursor{b: c.b, at: c.at, ok: true}); d.digits(4, 4) > 1900 && d.ok && d.peek() == ' ' {
			y, year = c.digits(4, 4), true
			c.lit(" ")
		}
		ms := c.clock()
		if !c.ok || !goodDate(m, first) {
			return Stamp{}, false
		}
		return Stamp{Milli: date(y, m, first) + ms, Date: true, Year: year}, true
	case width <= 2 && sep == ':': // 14:39:20.304
		c.at = start
		ms := c.clock()
		if !c.ok {
			return Stamp{}, false
		}
		if p := c.peek(); p != ' ' && p != ']' && p != '\t' && p != 0 {
			return Stamp{}, false
		}
		return Stamp{Milli: ms}, true
	}
	return Stamp{}, false
}

func syslogStamp(c *cursor) (Stamp, bool) { // Jul  2 03:04:05
	m := month(c.b[c.at:])
	c.at += 4
	for c.peek() == ' ' {
		c.at++
	}
	d := c.digits(1, 2)
	if c.peek() == ',' { // java.util.logging: Jul 2, 2016 3:04:05 AM
		c.at++
		c.lit(" ")
		y := c.digits(4, 4)
		c.lit(" ")
		ms := c.clock()
		if !c.ok || !goodDate(m, d) {
			return Stamp{}, false
		}
		if c.at+2 < len(c.b) && c.b[c.at] == ' ' && c.b[c.at+1] == 'P' && ms < 12*3600000 {
			ms += 12 * 3600000
		}
		return Stamp{Milli: date(y, m, d) + ms, Date: true, Year: true}, true
	}
	c.lit(" ")
	ms := c.clock()
	if !c.ok || !goodDate(m, d) {
		return Stamp{}, false
	}
	return Stamp{Milli: date(1970, m, d) + ms, Date: true}, true
}

func weekday(b []byte) bool {
	if len(b) < 20 || b[3] != ' ' {
		return false
	}
	switch string(b[:3]) {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		return true
	}
	return false
}

// javaStamp reads what java.util.Date prints: Wed Aug 10 14:55:21 EDT 2016. The
// name of the zone is skipped: names are ambiguous.
func javaStamp(c *cursor) (Stamp, bool) {
	c.at += 4
	m := month(c.b[c.at:])
	c.at += 3
	c.lit(" ")
	if c.peek() == ' ' {
		c.at++
	}
	d := c.digits(1, 2)
	c.lit(" ")
	ms := c.clock()
	c.lit(" ")
	for i := 0; i < 10 && c.peek() != ' ' && c.peek() != 0; i++ {
		c.at++
	}
	zoneEnd := c.at
	c.lit(" ")
	y := c.digits(4, 4)
	if !c.ok || m == 0 || !goodDate(m, d) {
		return Stamp{}, false
	}
	utc := zoneEnd >= 3 && (string(c.b[zoneEnd-3:zoneEnd]) == "UTC" || string(c.b[zoneEnd-3:zoneEnd]) == "GMT")
	return Stamp{Milli: date(y, m, d) + ms, Date: true, Year: true, Zoned: utc}, true
}
