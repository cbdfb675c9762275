package checks

import (
	"strconv"
	"strings"
	"time"
)

// Functions of this file read fields from squeezed text. All are total: what
// is not there reads as zero, and nothing looks further than its window.

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// intAt reads digits at i.
func intAt(s string, i int) (v int64, next int, ok bool) {
	start := i
	for i < len(s) && isDigit(s[i]) && i-start < 18 {
		v = v*10 + int64(s[i]-'0')
		i++
	}
	return v, i, i > start
}

// window is s from i, at most n bytes.
func window(s string, i, n int) string {
	i = min(max(i, 0), len(s))
	return s[i:min(len(s), i+n)]
}

// before is the n bytes of s that end at i.
func before(s string, i, n int) string {
	i = min(max(i, 0), len(s))
	return s[max(0, i-n):i]
}

// number finds key in s and reads the digits after it.
func number(s, key string) (int64, bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], key)
		if i < 0 {
			return 0, false
		}
		from += i + len(key)
		if v, _, ok := intAt(s, from); ok {
			return v, true
		}
	}
}

// text finds open in s and returns what is between it and the first of ends.
func text(s, open, ends string, limit int) (string, bool) {
	i := strings.Index(s, open)
	if i < 0 {
		return "", false
	}
	v := window(s, i+len(open), limit)
	if j := strings.IndexAny(v, ends); j >= 0 {
		return v[:j], true
	}
	return v, true
}

func isHostByte(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-' || c == '_'
}

// serverName reads host,port,startcode at i.
func serverName(s string, i int) (Server, bool) {
	j := i
	for j < len(s) && isHostByte(s[j]) && j-i < 254 {
		j++
	}
	if j == i || j >= len(s) || s[j] != ',' {
		return Server{}, false
	}
	port, k, ok := intAt(s, j+1)
	if !ok || port > 65535 || k >= len(s) || s[k] != ',' {
		return Server{}, false
	}
	w := window(s, k+1, 13)
	start, _, ok := intAt(w, 0)
	if !ok {
		return Server{}, false
	}
	return Server{s[i:j], int(port), start}, true
}

// findServer finds key in s and reads a server name after it.
func findServer(s, key string) (Server, bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], key)
		if i < 0 {
			return Server{}, false
		}
		from += i + len(key)
		if v, ok := serverName(s, from); ok {
			return v, true
		}
	}
}

// endpoint reads host/1.2.3.4:port, host:port, /1.2.3.4:port, host/<unresolved>:port
// at i. addr is the numeric part.
func endpoint(s string, i int) (srv Server, addr string, ok bool) {
	j := i
	for j < len(s) && isHostByte(s[j]) && j-i < 254 {
		j++
	}
	host := s[i:j]
	if j < len(s) && s[j] == '/' {
		j++
		if strings.HasPrefix(s[j:], "<unresolved>") {
			j += len("<unresolved>")
		} else {
			k := j
			bracket := k < len(s) && s[k] == '['
			if bracket {
				k++
			}
			start := k
			if bracket {
				for k < len(s) && k-j < 64 && s[k] != ']' && (isDigit(s[k]) || s[k] >= 'a' && s[k] <= 'f' || s[k] == ':' || s[k] == '.') {
					k++
				}
			} else if k = start + dotted(s[start:]); k == start {
				k = start + colons(s[start:])
			}
			addr = strings.TrimRight(s[start:k], ":")
			j = start + len(addr)
			if j < len(s) && s[j] == ']' {
				j++
			}
		}
	}
	if j >= len(s) || s[j] != ':' {
		return Server{}, "", false
	}
	w := window(s, j+1, 5)
	port, _, good := intAt(w, 0)
	if !good || port == 0 || port > 65535 {
		return Server{}, "", false
	}
	if host == "" && addr == "" {
		return Server{}, "", false
	}
	if numeric(host) && addr == "" {
		addr = host
	}
	if host == "" {
		host = addr
	}
	return Server{Host: host, Port: int(port)}, addr, true
}

// dotted is the length of an IPv4 address at the start of s, 0 if none.
func dotted(s string) int {
	i, dots := 0, 0
	for i < len(s) && i < 16 && (isDigit(s[i]) || s[i] == '.' && dots < 3) {
		if s[i] == '.' {
			dots++
		}
		i++
	}
	if dots != 3 {
		return 0
	}
	return i
}

// colons is the length of an IPv6 address of eight groups, as Java prints
// them, at the start of s; 0 if none.
func colons(s string) int {
	i, n, group := 0, 0, 0
	for i < len(s) && i < 40 && (isDigit(s[i]) || s[i] >= 'a' && s[i] <= 'f' || s[i] == ':') {
		if s[i] == ':' {
			if n == 7 {
				break
			}
			n, group = n+1, 0
		} else if group++; group > 4 {
			return 0
		}
		i++
	}
	if n != 7 {
		return 0
	}
	return i
}

func numeric(h string) bool {
	if h == "" || strings.Count(h, ".") != 3 {
		return false
	}
	for i := 0; i < len(h); i++ {
		if !isDigit(h[i]) && h[i] != '.' {
			return false
		}
	}
	return true
}

// containerID says whether a host name is 12 hex digits, as Docker names
// containers.
func containerID(h string) bool {
	if len(h) != 12 {
		return false
	}
	for i := 0; i < len(h); i++ {
		if !isDigit(h[i]) && (h[i] < 'a' || h[i] > 'f') {
			return false
		}
	}
	return true
}

func loopback(host, addr string) bool {
	h := strings.ToLower(host)
	return h == "localhost" || strings.HasPrefix(h, "localhost.") || strings.HasPrefix(h, "127.") && numeric(h) || strings.HasPrefix(addr, "127.") || addr == "::1" || addr == "0:0:0:0:0:0:0:1"
}

// encoded is the hash at the end of a region's name.
func encoded(region string) string {
	r := strings.TrimSuffix(region, ".")
	if i := strings.LastIndexByte(r, '.'); i >= 0 && len(r)-i-1 == 32 {
		return r[i+1:]
	}
	if i := strings.LastIndexByte(r, '.'); strings.HasPrefix(r, "hbase:meta,,") && i >= 0 {
		return r[i+1:]
	}
	return ""
}

// regionParts splits a region's name into table, start key and creation time.
func regionParts(region string) (table, start string, ts int64) {
	i := strings.IndexByte(region, ',')
	if i < 0 {
		return "", "", 0
	}
	table = region[:i]
	j := strings.LastIndexByte(region, ',')
	if j > i {
		start = region[i+1 : j]
	}
	ts, _, _ = intAt(region, j+1)
	return table, start, ts
}

// sessionTails are words that follow a session id and begin with letters that
// are hexadecimal digits: without blanks they would be read as part of it.
var sessionTails = []string{"forserver", "forclient", "at/", "closed", "closing", "dueto", "expired", "exceeded", "because", "after", "established", "does", "from", "atorg.", "atjava.", "atsun.", "atcom.", "andattempting"}

// hexSession reads 0x... at i.
func hexSession(s string, i int) (uint64, int, bool) {
	if !strings.HasPrefix(s[min(max(i, 0), len(s)):], "0x") {
		return 0, i, false
	}
	j := i + 2
	for j < len(s) && j-i < 22 && (isDigit(s[j]) || s[j] >= 'a' && s[j] <= 'f') {
		j++
	}
	for k := max(j-6, i+3); k < j; k++ {
		for _, t := range sessionTails {
			if strings.HasPrefix(s[k:], t) {
				j = k
			}
		}
	}
	j = min(j, i+18)
	v, err := strconv.ParseUint(s[i+2:j], 16, 64)
	return v, j, err == nil
}

// findSession finds key and the session id after it.
func findSession(s, key string) uint64 {
	i := strings.Index(s, key)
	if i < 0 {
		return 0
	}
	v, _, _ := hexSession(s, i+len(key))
	return v
}

// goDuration reads what time.Duration prints, at i.
func goDuration(s string, i int) (time.Duration, int, bool) {
	j := i
	for j < len(s) && j-i < 24 && (isDigit(s[j]) || s[j] == '.' || s[j] == 'h' || s[j] == 'm' || s[j] == 's' || s[j] == 'n' || s[j] == 'u' || s[j] == 0xc2 || s[j] == 0xb5) {
		j++
	}
	for j > i {
		if d, err := time.ParseDuration(s[i:j]); err == nil {
			return d, j, true
		}
		j--
	}
	return 0, i, false
}

func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "..."
	}
	return s
}
