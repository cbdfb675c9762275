package checks

import (
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// Entities lists the names in a case that redaction must replace.
func Entities(c *Case) finding.Entities {
	var e finding.Entities
	seen := map[string]bool{}
	add := func(list *[]string, v string) {
		v = strings.TrimSpace(v)
		if len(v) < 2 || seen[v] || len(seen) > 50000 {
			return
		}
		seen[v] = true
		*list = append(*list, v)
	}
	host := func(h string) {
		if !loopback(h, "") && !numeric(h) {
			add(&e.Hosts, h)
		}
	}
	for i := range c.Facts {
		f := &c.Facts[i]
		host(f.Server.Host)
		if f.Addr != "" && !strings.HasPrefix(f.Addr, "127.") {
			add(&e.Addrs, f.Addr)
		}
		if f.Table != "" && !strings.HasPrefix(f.Table, "hbase:") && f.Table != ".META." {
			add(&e.Tables, f.Table)
		}
		if table, start, _ := regionParts(f.Region); table != "" && !f.meta() {
			add(&e.Tables, table)
			add(&e.Rows, start)
		}
		if f.Row != "" {
			add(&e.Rows, f.Row)
			if f.meta() { // TABLE,ROW,99999999999999
				if t, r, ok := strings.Cut(f.Row, ","); ok {
					add(&e.Tables, t)
					if i := strings.LastIndexByte(r, ','); i > 0 {
						add(&e.Rows, r[:i])
					}
				}
			}
		}
		hosts(f.Quorum, host)
	}
	for _, p := range c.Settings {
		switch {
		case strings.Contains(p.Name, "quorum"), strings.HasPrefix(p.Name, "server."), strings.Contains(p.Name, "hostname"):
			hosts(p.Value, host)
		}
	}
	return e
}

func hosts(list string, add func(string)) {
	for _, h := range strings.Split(list, ",") {
		h, _, _ = strings.Cut(strings.TrimSpace(h), ":")
		if h != "" && !strings.ContainsAny(h, "/@") {
			add(h)
		}
	}
}
