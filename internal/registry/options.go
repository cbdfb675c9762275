package registry

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options are the client's settings as far as an address or an hbase-site.xml
// can carry them. A zero field was not set.
type Options struct {
	User string

	OperationTimeout time.Duration
	RPCTimeout       time.Duration
	ScannerTimeout   time.Duration
	ConnectTimeout   time.Duration
	IdleTimeout      time.Duration
	PingAfter        time.Duration
	SessionTimeout   time.Duration

	// ReplicaAfter and MetaWatch: see hbase.Config.
	ReplicaAfter     time.Duration
	ScanReplicaAfter time.Duration
	MetaWatch        time.Duration

	HedgedReads, MetaReplicas bool

	MaxAttempts         int
	MaxInFlight         int
	MaxWaitingPerServer int
	GetsTogether        int
	BatchBytes          int
	BatchActions        int
	Fanout              int

	MaxCellSize          int
	WriteBuffer          int
	ScannerCaching       int
	ScannerMaxResultSize int

	Compressor string
	// Authentication is "simple" (or empty) or "kerberos".
	Authentication string
}

// Setting is one option with its value and where it came from.
type Setting struct {
	// Name is the query parameter, Key the property of hbase-site.xml (empty
	// if there is none).
	Name, Key string
	// Value is written as it was given.
	Value string
	// Source is "address", the file the value was read from, or "default".
	Source string
	// Doc says what the option does, with unit and range.
	Doc string
}

// option describes one setting: one row of the table below.
type option struct {
	name, key string
	doc       string
	def       string
	// set parses the value; xml tells that it is written as in hbase-site.xml
	// (plain milliseconds, Java class names).
	set func(o *Options, value string, xml bool) error
}

// DefaultOptions in words: what a zero field means. They are applied by
// internal/session and internal/registry, not by parsing.
const (
	DefaultOperationTimeout = time.Minute
	DefaultRPCTimeout       = 10 * time.Second
	DefaultScannerTimeout   = time.Minute
	DefaultConnectTimeout   = 5 * time.Second
	DefaultIdleTimeout      = 2 * time.Minute
	DefaultPingAfter        = 2 * time.Second
	DefaultSessionTimeout   = 30 * time.Second
	DefaultMaxInFlight      = 4096
	DefaultBatchBytes       = 4 << 20
	DefaultBatchActions     = 2048
	DefaultGetsTogether     = 64
	DefaultFanout           = 2
	DefaultReplicaAfter     = 10 * time.Millisecond
	DefaultScanReplicaAfter = time.Second

	DefaultMaxCellSize          = 10 << 20
	DefaultWriteBuffer          = 2 << 20
	DefaultScannerMaxResultSize = 2 << 20
)

func optionTable() []option {
	return []option{
		{"user", "", "effective user of every call", "the operating system's user",
			func(o *Options, v string, _ bool) error { o.User = v; return nil }},
		duration("operation-timeout", "hbase.client.operation.timeout", "bound of an operation whose context has no deadline", DefaultOperationTimeout,
			time.Millisecond, func(o *Options) *time.Duration { return &o.OperationTimeout }),
		duration("rpc-timeout", "hbase.rpc.timeout", "bound of one attempt", DefaultRPCTimeout,
			time.Millisecond, func(o *Options) *time.Duration { return &o.RPCTimeout }),
		duration("scanner-timeout", "hbase.client.scanner.timeout.period", "bound of one open, next or renewal of a scanner, retries included", DefaultScannerTimeout,
			time.Millisecond, func(o *Options) *time.Duration { return &o.ScannerTimeout }),
		duration("connect-timeout", "hbase.ipc.client.socket.timeout.connect", "bound of one dial", DefaultConnectTimeout,
			time.Millisecond, func(o *Options) *time.Duration { return &o.ConnectTimeout }),
		duration("idle-timeout", "hbase.ipc.client.connection.minIdleTimeBeforeClose", "an unused connection is closed after this", DefaultIdleTimeout,
			time.Second, func(o *Options) *time.Duration { return &o.IdleTimeout }),
		duration("ping-after", "", "a server that owes answers and is silent for so long is pinged, and given as long again", DefaultPingAfter,
			time.Millisecond, func(o *Options) *time.Duration { return &o.PingAfter }),
		micros(duration("replica-after", "hbase.client.primaryCallTimeout.get", "how long a read that any replica may answer waits for the primary", DefaultReplicaAfter,
			time.Microsecond, func(o *Options) *time.Duration { return &o.ReplicaAfter })),
		micros(duration("scan-replica-after", "hbase.client.replicaCallTimeout.scan", "how long a scan that any replica may answer waits for the primary", DefaultScanReplicaAfter,
			time.Microsecond, func(o *Options) *time.Duration { return &o.ScanReplicaAfter })),
		boolean("hedged-reads", "", "slow reads are sent a second time", func(o *Options) *bool { return &o.HedgedReads }),
		replicaMode(boolean("meta-replicas", "hbase.locator.meta.replicas.mode", "replicas of hbase:meta answer what need not be the latest; LoadBalance and HedgedRead both mean true", func(o *Options) *bool { return &o.MetaReplicas })),
		duration("meta-watch", "", "how often hbase:meta is asked what has changed; without it, never", 0,
			100*time.Millisecond, func(o *Options) *time.Duration { return &o.MetaWatch }),
		duration("session-timeout", "zookeeper.session.timeout", "ZooKeeper session asked for", DefaultSessionTimeout,
			time.Second, func(o *Options) *time.Duration { return &o.SessionTimeout }),
		integer("max-attempts", "", "requests sent for one operation; 0 = bounded by time only", 0, 0, math.MaxInt32,
			func(o *Options) *int { return &o.MaxAttempts }),
		integer("max-in-flight", "", "calls in flight to one server", DefaultMaxInFlight, 1, 1<<20,
			func(o *Options) *int { return &o.MaxInFlight }),
		integer("max-waiting-per-server", "", "callers that wait for one server that does not answer, before more are turned away; 0 = no bound", 0, 0, 1<<20,
			func(o *Options) *int { return &o.MaxWaitingPerServer }),
		integer("batch-bytes", "hbase.client.max.perrequest.heapsize", "bytes of one Multi request", DefaultBatchBytes, 1<<10, 1<<28,
			func(o *Options) *int { return &o.BatchBytes }),
		integer("batch-actions", "hbase.client.max.perrequest.rows", "actions of one Multi request", DefaultBatchActions, 1, 1<<20,
			func(o *Options) *int { return &o.BatchActions }),
		integer("gets-together", "", "concurrent Gets of one server that may travel in one request, if callers wait less for it; 1 = each goes alone", DefaultGetsTogether, 1, DefaultGetsTogether,
			func(o *Options) *int { return &o.GetsTogether }),
		unchecked(integer("max-cell-size", "hbase.client.keyvalue.maxsize", "bytes of one cell, checked before it is sent", DefaultMaxCellSize, 1, 1<<30,
			func(o *Options) *int { return &o.MaxCellSize })),
		integer("write-buffer", "hbase.client.write.buffer", "bytes a mutator gathers before it sends", DefaultWriteBuffer, 1<<10, 1<<30,
			func(o *Options) *int { return &o.WriteBuffer }),
		unbounded(integer("scanner-caching", "hbase.client.scanner.caching", "results of one scan answer; 0 or 2147483647 = the size alone bounds it", 0, 0, math.MaxInt32,
			func(o *Options) *int { return &o.ScannerCaching })),
		integer("scanner-max-result-size", "hbase.client.scanner.max.result.size", "bytes of one scan answer", DefaultScannerMaxResultSize, 1, 1<<30,
			func(o *Options) *int { return &o.ScannerMaxResultSize }),
		integer("fanout", "hbase.client.bootstrap.hedged.fanout", "endpoints asked at a time by the RPC registry", DefaultFanout, 1, 64,
			func(o *Options) *int { return &o.Fanout }),
		{"compressor", "hbase.client.rpc.compressor", "compression of cell blocks: none, gzip, snappy, lz4 or zstd", "none", setCompressor},
		{"authentication", "hbase.security.authentication", "simple or kerberos", "simple",
			func(o *Options, v string, _ bool) error {
				v = strings.ToLower(v)
				if v != "simple" && v != "kerberos" {
					return fmt.Errorf("%q is neither simple nor kerberos", v)
				}
				o.Authentication = v
				return nil
			}},
	}
}

var compressors = map[string]string{
	"org.apache.hadoop.io.compress.GzipCodec":      "gzip",
	"org.apache.hadoop.io.compress.SnappyCodec":    "snappy",
	"org.apache.hadoop.io.compress.Lz4Codec":       "lz4",
	"org.apache.hadoop.io.compress.ZStandardCodec": "zstd",
}

func setCompressor(o *Options, v string, _ bool) error {
	if short, ok := compressors[v]; ok {
		v = short
	}
	switch v {
	case "", "none", "gzip", "snappy", "lz4", "zstd":
		o.Compressor = v
		return nil
	}
	return fmt.Errorf("%q is not one of none, gzip, snappy, lz4, zstd", v)
}

func duration(name, key, doc string, def, min time.Duration, field func(*Options) *time.Duration) option {
	return option{name, key, fmt.Sprintf("%s (at least %s)", doc, min), def.String(), func(o *Options, v string, xml bool) error {
		d, err := parseDuration(v, xml)
		if err != nil {
			return err
		}
		if xml { // what Java's client takes is no error here
			longest := maxSiteDuration
			switch name {
			case "connect-timeout", "session-timeout", "replica-after", "scan-replica-after":
				longest = time.Hour
			}
			if d <= 0 {
				d = longest // Java: for ever
			}
			d = max(min, d)
			if d > longest {
				d = longest
			}
		}
		if d < min {
			return fmt.Errorf("%q is less than %s", v, min)
		}
		*field(o) = d
		return nil
	}}
}

// parseDuration reads "1m30s"; in hbase-site.xml also plain milliseconds.
func parseDuration(v string, xml bool) (time.Duration, error) {
	if xml {
		if ms, err := strconv.ParseInt(v, 10, 64); err == nil {
			if ms > math.MaxInt64/int64(time.Millisecond) {
				ms = math.MaxInt64 / int64(time.Millisecond)
			}
			return time.Duration(ms) * time.Millisecond, nil
		}
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 500ms, 10s or 2m", v)
	}
	return d, nil
}

// keys gives the properties of hbase-site.xml that set the option, the first
// one that is set wins.
func (o *option) keys() []string {
	switch o.name {
	case "rpc-timeout":
		return []string{o.key, "hbase.rpc.read.timeout"}
	case "scanner-timeout":
		return []string{o.key, "hbase.regionserver.lease.period"} // HBase 0.94
	case "meta-replicas":
		return []string{o.key, "hbase.meta.replicas.use"} // HBase before 2.4
	case "idle-timeout":
		return []string{o.key, "hbase.ipc.client.connection.maxidletime"} // HBase 0.98
	}
	if o.key == "" {
		return nil
	}
	return []string{o.key}
}

// unit is how Java writes the option's value.
func (o *option) unit() string {
	switch {
	case strings.HasSuffix(o.name, "replica-after"):
		return unitMicros
	case strings.HasSuffix(o.name, "-timeout"):
		return unitMillis
	case o.name == "batch-bytes", o.name == "write-buffer", strings.HasSuffix(o.name, "-size"):
		return "bytes"
	}
	return ""
}

func boolean(name, key, doc string, field func(*Options) *bool) option {
	return option{name, key, doc, "false", func(o *Options, v string, _ bool) error {
		b, err := strconv.ParseBool(strings.ToLower(v))
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		*field(o) = b
		return nil
	}}
}

// replicaMode makes the modes of Java's locator mean true or false.
func replicaMode(opt option) option {
	set := opt.set
	opt.set = func(o *Options, v string, xml bool) error {
		switch strings.ToLower(v) {
		case "none":
			v = "false"
		case "loadbalance", "hedgedread":
			v = "true"
		}
		return set(o, v, xml)
	}
	return opt
}

// micros makes an option whose plain numbers in hbase-site.xml are
// microseconds.
func micros(opt option) option {
	set := opt.set
	opt.set = func(o *Options, v string, xml bool) error {
		if n, err := strconv.ParseInt(v, 10, 64); xml && err == nil {
			v = (time.Duration(min(n, math.MaxInt64/int64(time.Microsecond))) * time.Microsecond).String()
		}
		return set(o, v, xml)
	}
	return opt
}

// maxSiteDuration is the longest time taken over from an hbase-site.xml.
const maxSiteDuration = 24 * time.Hour

func clip(n, lo, hi int) int { return max(lo, min(n, hi)) }

// unchecked makes a size of 0 or less in hbase-site.xml mean the largest.
func unchecked(opt option) option {
	set := opt.set
	opt.set = func(o *Options, v string, xml bool) error {
		if n, err := strconv.Atoi(v); xml && err == nil && n <= 0 {
			v = strconv.Itoa(math.MaxInt32)
		}
		return set(o, v, xml)
	}
	return opt
}

// unbounded makes Java's largest number mean "no bound", which is our 0.
func unbounded(opt option) option {
	set := opt.set
	opt.set = func(o *Options, v string, xml bool) error {
		if v == strconv.Itoa(math.MaxInt32) {
			v = "0"
		}
		return set(o, v, xml)
	}
	return opt
}

func integer(name, key, doc string, def, min, max int, field func(*Options) *int) option {
	return option{name, key, fmt.Sprintf("%s (%d to %d)", doc, min, max), strconv.Itoa(def), func(o *Options, v string, xml bool) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", v)
		}
		if xml { // what Java's client takes is no error here
			n = clip(n, min, max)
		}
		if n < min || n > max {
			return fmt.Errorf("%d is not between %d and %d", n, min, max)
		}
		*field(o) = n
		return nil
	}}
}

// Known lists the names of the options an address may carry, sorted.
func Known() []string {
	var names []string
	for _, opt := range optionTable() {
		names = append(names, opt.name)
	}
	slices.Sort(names)
	return names
}
