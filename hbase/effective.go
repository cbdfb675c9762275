package hbase

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/registry"
)

// Setting is one effective setting, and where its value comes from.
type Setting struct {
	// Name is what an address may call it, after the question mark.
	Name string `json:"name"`
	// Value is the effective value, Default what it is if nothing says
	// otherwise.
	Value   string `json:"value"`
	Default string `json:"default"`
	// Source is "default", "option" (the program), "address", "environment
	// NAME", or "FILE: KEY" for a property of hbase-site.xml.
	Source string `json:"source"`
	// Property is the property of hbase-site.xml that sets it, empty if there
	// is none.
	Property string `json:"property,omitempty"`
	// Doc says what it does.
	Doc string `json:"doc"`
}

// IgnoredProperty is a property of an hbase-site.xml that is known and has no
// effect here, and why.
type IgnoredProperty = registry.IgnoredProperty

// origin is what a configuration was made from.
type origin struct {
	address *registry.Address
	env     string            // the environment variable that held the address
	before  map[string]string // the values before the program's options
}

// setting describes a field of Config.
type setting struct {
	name, doc string
	get       func(c *Config) string
}

func settings() []setting {
	dur := func(name, doc string, f func(c *Config) time.Duration) setting {
		return setting{name, doc, func(c *Config) string { return f(c).String() }}
	}
	num := func(name, doc string, f func(c *Config) int64) setting {
		return setting{name, doc, func(c *Config) string { return strconv.FormatInt(f(c), 10) }}
	}
	return []setting{
		{"user", "effective user of every call", func(c *Config) string { return c.User }},
		{"real-user", "the user who authenticates, if it acts for another", func(c *Config) string { return c.RealUser }},
		dur("operation-timeout", "bound of an operation whose context ends later or never", func(c *Config) time.Duration { return c.OperationTimeout }),
		dur("rpc-timeout", "bound of one attempt", func(c *Config) time.Duration { return c.RPCTimeout }),
		dur("scanner-timeout", "bound of one step of a scanner, retries included", func(c *Config) time.Duration { return c.ScannerTimeout }),
		dur("connect-timeout", "bound of one dial", func(c *Config) time.Duration { return c.ConnectTimeout }),
		dur("idle-timeout", "an unused connection is closed after this", func(c *Config) time.Duration { return c.IdleTimeout }),
		dur("ping-after", "a server that owes answers and is silent for so long is pinged", func(c *Config) time.Duration { return c.PingAfter }),
		dur("session-timeout", "ZooKeeper session asked for", func(c *Config) time.Duration { return c.SessionTimeout }),
		dur("procedure-timeout", "bound of the wait for a master's procedure", func(c *Config) time.Duration { return c.ProcedureTimeout }),
		num("max-attempts", "requests of one operation; 0: time alone bounds it", func(c *Config) int64 { return int64(c.MaxAttempts) }),
		num("max-in-flight", "calls in flight to one server", func(c *Config) int64 { return int64(c.MaxInFlight) }),
		num("max-waiting-per-server", "callers that wait for a server that does not answer; 0: no bound", func(c *Config) int64 { return int64(c.MaxWaitingPerServer) }),
		dur("replica-after", "how long a timeline read waits for the primary", func(c *Config) time.Duration { return c.ReplicaAfter }),
		dur("scan-replica-after", "how long a timeline scan waits for the primary", func(c *Config) time.Duration { return c.ScanReplicaAfter }),
		{"hedged-reads", "slow reads are sent a second time", func(c *Config) string { return strconv.FormatBool(c.HedgedReads) }},
		dur("meta-watch", "how often hbase:meta is asked what has changed; 0: never", func(c *Config) time.Duration { return c.MetaWatch }),
		{"meta-replicas", "replicas of hbase:meta answer what need not be the latest", func(c *Config) string { return strconv.FormatBool(c.MetaReplicas) }},
		{"route-snapshot", "file in which routes are kept; empty: none", func(c *Config) string { return c.RouteSnapshot }},
		dur("route-snapshot-every", "how often that file is written", func(c *Config) time.Duration { return c.RouteSnapshotEvery }),
		num("batch-bytes", "bytes of one Multi request", func(c *Config) int64 { return int64(c.BatchBytes) }),
		num("gets-together", "concurrent Gets of one server that may travel in one request; 1: each goes alone", func(c *Config) int64 { return int64(c.GetsTogether) }),
		num("batch-actions", "actions of one Multi request", func(c *Config) int64 { return int64(c.BatchActions) }),
		num("write-buffer", "bytes a mutator gathers before it sends", func(c *Config) int64 { return int64(c.WriteBuffer) }),
		num("scanner-caching", "results of one scan answer; 0: the size alone bounds it", func(c *Config) int64 { return int64(c.ScannerCaching) }),
		num("scanner-max-result-size", "bytes of one scan answer", func(c *Config) int64 { return c.ScannerMaxResultSize }),
		num("max-cell-size", "bytes of one cell, checked before it is sent; 0: not checked", func(c *Config) int64 { return int64(c.MaxCellSize) }),
		num("max-row-size", "bytes of a row a scan joins from parts", func(c *Config) int64 { return c.MaxRowSize }),
		{"compressor", "compression of cell blocks", func(c *Config) string { return c.Compressor }},
	}
}

func (c *Config) values() map[string]string {
	m := make(map[string]string)
	for _, s := range settings() {
		m[s.name] = s.get(c)
	}
	return m
}

// Effective lists the address and every setting, with its value and where the
// value comes from.
func (c Config) Effective() []Setting {
	given := map[string]registry.Setting{}
	property := map[string]string{}
	fanout := Setting{Name: "fanout", Value: strconv.Itoa(registry.DefaultFanout), Default: strconv.Itoa(registry.DefaultFanout), Source: "default"}
	if a := c.origin.address; a != nil {
		for _, s := range a.Settings {
			given[s.Name] = s
		}
	}
	for _, s := range (&registry.Address{}).Effective() {
		property[s.Name] = s.Key
		if s.Name == "fanout" {
			fanout.Property, fanout.Doc = s.Key, s.Doc
		}
	}
	source := func(name string) string {
		s := given[name]
		switch {
		case s.Source == "":
			return "default"
		case s.Key != "" && s.Source != "address":
			return s.Source + ": " + s.Key
		}
		return s.Source
	}
	address := Setting{Name: "address", Value: c.Address, Source: "option", Doc: "the cluster"}
	if c.origin.env != "" {
		address.Source = "environment " + c.origin.env
	}
	list := []Setting{address}
	defaults := defaultConfig(c.Address)
	for _, f := range settings() {
		s := Setting{Name: f.name, Value: f.get(&c), Default: f.get(&defaults), Source: source(f.name), Property: property[f.name], Doc: f.doc}
		if before, ok := c.origin.before[f.name]; ok && before != s.Value || !ok && s.Value != s.Default {
			s.Source = "option"
		}
		if f.name == "user" && s.Value == "" {
			s.Value, s.Default = "(of the process)", "(of the process)"
			if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
				s.Value, s.Source = name, "environment HADOOP_USER_NAME"
			}
		}
		list = append(list, s)
	}
	if a := c.origin.address; a != nil && a.Options.Fanout > 0 {
		fanout.Value, fanout.Source = strconv.Itoa(a.Options.Fanout), source("fanout")
	}
	return append(list, fanout)
}

// Ignored lists the properties of the hbase-site.xml that are known and have
// no effect.
func (c Config) Ignored() []IgnoredProperty {
	if c.origin.address == nil {
		return nil
	}
	return append([]IgnoredProperty(nil), c.origin.address.Ignored...)
}

// Warnings says which settings do not do what they seem to say.
func (c Config) Warnings() []string {
	var list []string
	if c.RPCTimeout >= c.OperationTimeout {
		list = append(list, fmt.Sprintf(
			"rpc-timeout (%s) is not smaller than operation-timeout (%s): it would leave time for one attempt only, so the first two attempts of an operation get a quarter of its time each and the third the rest (%s, %s, %s)",
			c.RPCTimeout, c.OperationTimeout, c.OperationTimeout/4, c.OperationTimeout/4, c.OperationTimeout/2))
	}
	if c.RPCTimeout >= c.ScannerTimeout {
		list = append(list, fmt.Sprintf(
			"rpc-timeout (%s) is not smaller than scanner-timeout (%s): an attempt of a scanner's step gets half of the step's time (%s)",
			c.RPCTimeout, c.ScannerTimeout, c.ScannerTimeout/2))
	}
	if c.ConnectTimeout >= c.OperationTimeout {
		list = append(list, fmt.Sprintf(
			"connect-timeout (%s) is not smaller than operation-timeout (%s): one server that does not answer dials can use up an operation",
			c.ConnectTimeout, c.OperationTimeout))
	}
	if c.MaxAttempts > 0 {
		list = append(list, fmt.Sprintf(
			"max-attempts (%d) ends operations before their time is used up, also if the failures were quick ones", c.MaxAttempts))
	}
	return list
}

// String prints the effective settings with their sources, one a line, then
// the warnings and the properties without effect.
func (c Config) String() string {
	var b strings.Builder
	list := c.Effective()
	width := 0
	for _, s := range list {
		width = max(width, len(s.Value))
	}
	width = min(width, 40)
	for _, s := range list {
		if s.Name == "real-user" && s.Value == "" {
			continue
		}
		fmt.Fprintf(&b, "%-24s %-*s  %s\n", s.Name, width, s.Value, s.Source)
	}
	if w := c.Warnings(); len(w) > 0 {
		b.WriteString("\nwarnings\n")
		for _, s := range w {
			b.WriteString("  " + s + "\n")
		}
	}
	if ignored := c.Ignored(); len(ignored) > 0 {
		b.WriteString("\nwithout effect here\n")
		for _, p := range ignored {
			fmt.Fprintf(&b, "  %s = %s: %s\n", p.Key, p.Value, p.Why)
		}
	}
	return b.String()
}

// MarshalJSON gives {"settings": [...], "warnings": [...], "ignored": [...]}.
func (c Config) MarshalJSON() ([]byte, error) {
	type ignored struct {
		Property string `json:"property"`
		Value    string `json:"value"`
		Why      string `json:"why"`
	}
	doc := struct {
		Settings []Setting `json:"settings"`
		Warnings []string  `json:"warnings"`
		Ignored  []ignored `json:"ignored"`
	}{Settings: c.Effective(), Warnings: c.Warnings(), Ignored: []ignored{}}
	if doc.Warnings == nil {
		doc.Warnings = []string{}
	}
	for _, p := range c.Ignored() {
		doc.Ignored = append(doc.Ignored, ignored{p.Key, p.Value, p.Why})
	}
	return json.Marshal(doc)
}
