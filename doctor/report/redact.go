package report

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// Redact replaces hosts, addresses, tables, row keys, principals and home
// directories throughout a report, the same name by the same replacement
// everywhere. What stays: class names, numbers, ports, start codes, file base
// names without private parts.
func Redact(r *finding.Report) (*finding.Report, error) {
	d := redactor{names: map[string]string{}}
	for i, t := range r.Private.Tables {
		d.names[t] = fmt.Sprintf("table%d", i+1)
		if ns, q, ok := strings.Cut(t, ":"); ok && len(q) > 1 {
			d.names[q] = fmt.Sprintf("table%d", i+1)
			if len(ns) > 2 {
				d.names[ns] = fmt.Sprintf("ns%d", i+1)
			}
			d.names[t] = fmt.Sprintf("ns%d:table%d", i+1, i+1)
		}
	}
	for i, h := range r.Private.Rows {
		if len(h) > 2 {
			d.names[h] = fmt.Sprintf("row%d", i+1)
		}
	}
	for _, h := range r.Private.Hosts {
		d.host(h)
	}
	for _, a := range r.Private.Addrs {
		d.addr(a)
	}
	for n := range d.names {
		d.order = append(d.order, n)
	}
	// Longest first, so that no name is eaten by a part of it.
	sort.Slice(d.order, func(i, j int) bool {
		if len(d.order[i]) != len(d.order[j]) {
			return len(d.order[i]) > len(d.order[j])
		}
		return d.order[i] < d.order[j]
	})
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, err
	}
	b, err = json.Marshal(d.walk(tree, ""))
	if err != nil {
		return nil, err
	}
	out := &finding.Report{}
	if err := json.Unmarshal(b, out); err != nil {
		return nil, err
	}
	return out, nil
}

type redactor struct {
	names map[string]string
	order []string
	hosts int
	addrs int
}

var (
	ipv4      = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	server    = regexp.MustCompile(`([A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]),(\d{2,5}),(\d{13})`)
	hostPort  = regexp.MustCompile(`\b([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(:\d{2,5})\b`)
	principal = regexp.MustCompile(`\b[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?@[A-Z][A-Z0-9.-]+\b`)
	home      = regexp.MustCompile(`(/home/|/Users/)[^/\s]+`)
	quotedRow = regexp.MustCompile(`row '[^']+'`)
	attempt   = regexp.MustCompile(`\bregion=([^,\s]+),([^\s]*?),(\d{13})`)
)

func (d *redactor) host(h string) string {
	if v, ok := d.names[h]; ok {
		return v
	}
	d.hosts++
	v := fmt.Sprintf("host%d.example", d.hosts)
	d.names[h] = v
	return v
}

func (d *redactor) addr(a string) string {
	if v, ok := d.names[a]; ok {
		return v
	}
	d.addrs++
	v := fmt.Sprintf("192.0.2.%d", d.addrs)
	if d.addrs > 254 {
		v = fmt.Sprintf("198.51.%d.%d", 100+d.addrs/250, d.addrs%250)
	}
	d.names[a] = v
	return v
}

// kept are texts that are never private.
var kept = map[string]bool{"id": true, "severity": true, "confidence": true, "tool": true, "version": true, "explain": true, "class": true, "kind": true, "hbase": true, "unit": true}

func (d *redactor) walk(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = d.walk(x, k)
		}
	case []any:
		for i, x := range v {
			v[i] = d.walk(x, key)
		}
	case string:
		if !kept[key] {
			return d.text(v)
		}
	}
	return v
}

func (d *redactor) text(s string) string {
	for _, n := range d.order {
		s = replaceWord(s, n, d.names[n])
	}
	s = principal.ReplaceAllString(s, "user@REALM")
	s = home.ReplaceAllString(s, "${1}user")
	s = quotedRow.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "row 'row") || strings.HasPrefix(m, "row 'table") {
			return m
		}
		return "row 'row'"
	})
	s = attempt.ReplaceAllString(s, "region=$1,key,$3")
	s = server.ReplaceAllStringFunc(s, func(m string) string {
		p := server.FindStringSubmatch(m)
		if safeHost(p[1]) {
			return m
		}
		return d.host(p[1]) + "," + p[2] + "," + p[3]
	})
	s = ipv4.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "127.") || m == "0.0.0.0" || strings.HasPrefix(m, "192.0.2.") || strings.HasPrefix(m, "198.51.") {
			return m
		}
		return d.addr(m)
	})
	return hostPort.ReplaceAllStringFunc(s, func(m string) string {
		p := hostPort.FindStringSubmatch(m)
		if safeHost(p[1]) || !strings.ContainsAny(p[1], "abcdefghijklmnopqrstuvwxyz") || javaFile(p[1]) {
			return m
		}
		return d.host(p[1]) + p[2]
	})
}

func javaFile(h string) bool {
	for _, e := range [...]string{".java", ".log", ".xml", ".txt", ".out", ".cfg", ".properties", ".go"} {
		if strings.HasSuffix(h, e) {
			return true
		}
	}
	return false
}

func safeHost(h string) bool {
	return h == "localhost" || strings.HasSuffix(h, ".example") || strings.HasPrefix(h, "127.")
}

// replaceWord replaces whole words only: a table "t1" is not a part of "at10".
func replaceWord(s, old, with string) string {
	if old == "" || !strings.Contains(s, old) {
		return s
	}
	word := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
	}
	var b strings.Builder
	for {
		i := strings.Index(s, old)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		end := i + len(old)
		// Text read without blanks runs words together: a name that is not a plain
		// word is replaced wherever it stands.
		ok := len(old) >= 10 || strings.ContainsAny(old, ".:@") || (i == 0 || !word(s[i-1]) || !word(old[0])) && (end == len(s) || !word(s[end]) || !word(old[len(old)-1]))
		b.WriteString(s[:i])
		if ok {
			b.WriteString(with)
		} else {
			b.WriteString(old)
		}
		s = s[end:]
	}
}
