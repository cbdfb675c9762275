package admin

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// ThrottleType is what a throttle counts (HBase's quotas.ThrottleType).
type ThrottleType int32

// HBase's throttle types. Capacity units (1 KB of data each, by default) need
// HBase 2.2, the atomic ones and the handler time 2.6.
const (
	RequestNumber        = ThrottleType(pb.ThrottleType_REQUEST_NUMBER)
	RequestSize          = ThrottleType(pb.ThrottleType_REQUEST_SIZE)
	WriteNumber          = ThrottleType(pb.ThrottleType_WRITE_NUMBER)
	WriteSize            = ThrottleType(pb.ThrottleType_WRITE_SIZE)
	ReadNumber           = ThrottleType(pb.ThrottleType_READ_NUMBER)
	ReadSize             = ThrottleType(pb.ThrottleType_READ_SIZE)
	RequestCapacityUnit  = ThrottleType(pb.ThrottleType_REQUEST_CAPACITY_UNIT)
	WriteCapacityUnit    = ThrottleType(pb.ThrottleType_WRITE_CAPACITY_UNIT)
	ReadCapacityUnit     = ThrottleType(pb.ThrottleType_READ_CAPACITY_UNIT)
	AtomicReadSize       = ThrottleType(pb.ThrottleType_ATOMIC_READ_SIZE)
	AtomicRequestNumber  = ThrottleType(pb.ThrottleType_ATOMIC_REQUEST_NUMBER)
	AtomicWriteSize      = ThrottleType(pb.ThrottleType_ATOMIC_WRITE_SIZE)
	RequestHandlerMillis = ThrottleType(pb.ThrottleType_REQUEST_HANDLER_USAGE_MS)
)

// String gives HBase's name, such as WRITE_SIZE.
func (t ThrottleType) String() string { return pb.ThrottleType(t).String() }

// ParseThrottleType reads HBase's name of a type.
func ParseThrottleType(name string) (ThrottleType, error) {
	n, ok := pb.ThrottleType_value[strings.ToUpper(name)]
	if !ok {
		return 0, invalid("throttle", "type "+strconv.Quote(name), "is none of HBase's, such as REQUEST_NUMBER")
	}
	return ThrottleType(n), nil
}

// QuotaScope says over what a throttle's limit counts.
type QuotaScope int32

// HBase's scopes. ClusterScope divides the limit by the number of region
// servers, or by the share of the table's regions a server has (HBase 2.2+).
const (
	MachineScope = QuotaScope(pb.QuotaScope_MACHINE) // every region server by itself
	ClusterScope = QuotaScope(pb.QuotaScope_CLUSTER)
)

// String gives HBase's name.
func (s QuotaScope) String() string { return pb.QuotaScope(s).String() }

// Throttle limits requests, bytes or capacity units in a time. Servers delay
// nothing: they refuse what is too much with RpcThrottlingException, which
// names the wait, and the client waits that long.
type Throttle struct {
	Type ThrottleType
	// Limit is how many requests, bytes, capacity units (of handler time:
	// milliseconds) are allowed in Per; at least 1.
	Limit int64
	// Per is one of HBase's units: a second, a minute, an hour, or 24 hours
	// (it knows smaller ones too, down to a nanosecond). Default: a second.
	Per time.Duration
	// Scope is MachineScope unless set.
	Scope QuotaScope
}

// ParseThrottle reads a limit as HBase's shell writes it: a whole number, its
// unit (req; B, K, M, G, T, P for bytes; CU for capacity units), a slash, and
// sec, min, hour or day: "10req/sec", "100M/min", "1CU/sec". Of is REQUEST
// (the default if empty), READ or WRITE.
func ParseThrottle(of, limit string) (Throttle, error) {
	object := "limit " + strconv.Quote(limit)
	lower := strings.ToLower(limit)
	amount, unit, ok := strings.Cut(lower, "/")
	digits := strings.TrimLeft(amount, "0123456789")
	kind, per := amount[len(amount)-len(digits):], time.Duration(0)
	for _, u := range timeUnits() {
		if u.text == unit && u.shell {
			per = u.d
		}
	}
	n, err := strconv.ParseInt(amount[:len(amount)-len(kind)], 10, 64)
	switch {
	case !ok || kind == "" || per == 0 || err != nil:
		return Throttle{}, invalid("throttle", object, `is not like "10req/sec", "100M/min" or "1CU/hour"`)
	case n <= 0:
		return Throttle{}, invalid("throttle", object, "must be greater than 0")
	}
	suffix := "_SIZE"
	switch kind {
	case "req":
		suffix = "_NUMBER"
	case "cu":
		suffix = "_CAPACITY_UNIT"
	default:
		if n, err = scaleSize(n, kind); err != nil {
			return Throttle{}, invalid("throttle", object, err.Error())
		}
	}
	t, err := ParseThrottleType(cmp.Or(of, "REQUEST") + suffix)
	if err != nil {
		return Throttle{}, err
	}
	return Throttle{Type: t, Limit: n, Per: per, Scope: MachineScope}, nil
}

// ParseSize reads a number of bytes as HBase's shell writes it: "1500",
// "10M", "2T"; the units are powers of 1024.
func ParseSize(text string) (int64, error) {
	lower := strings.ToLower(text)
	unit := strings.TrimLeft(lower, "0123456789")
	n, err := strconv.ParseInt(lower[:len(lower)-len(unit)], 10, 64)
	if err == nil && unit != "" {
		n, err = scaleSize(n, unit)
	}
	if err != nil {
		return 0, invalid("size", strconv.Quote(text), `is not like "1500", "10M" or "2T"`)
	}
	return n, nil
}

func scaleSize(n int64, unit string) (int64, error) {
	at := strings.Index("bkmgtp", unit)
	if at < 0 || len(unit) != 1 {
		return 0, fmt.Errorf("has the unknown unit %q", unit)
	}
	shift := 10 * at
	if n > 1<<62>>shift {
		return 0, fmt.Errorf("is more than an int64 holds")
	}
	return n << shift, nil
}

// sizeText is how HBase prints bytes: two decimals and the largest unit that
// fits.
func sizeText(n int64) string {
	for i, unit := range "PTGMK" {
		if one := int64(1) << (50 - 10*i); n >= one {
			return fmt.Sprintf("%.2f%c", float64(n)/float64(one), unit)
		}
	}
	return fmt.Sprintf("%.2fB", float64(n))
}

type timeUnit struct {
	unit  pb.TimeUnit
	d     time.Duration
	text  string
	shell bool // the shell takes it in limits
}

func timeUnits() []timeUnit {
	return []timeUnit{
		{pb.TimeUnit_NANOSECONDS, time.Nanosecond, "nsec", false},
		{pb.TimeUnit_MICROSECONDS, time.Microsecond, "usec", false},
		{pb.TimeUnit_MILLISECONDS, time.Millisecond, "msec", false},
		{pb.TimeUnit_SECONDS, time.Second, "sec", true},
		{pb.TimeUnit_MINUTES, time.Minute, "min", true},
		{pb.TimeUnit_HOURS, time.Hour, "hour", true},
		{pb.TimeUnit_DAYS, 24 * time.Hour, "day", true},
	}
}

// String prints the throttle as HBase's list_quotas does.
func (t Throttle) String() string {
	amount := sizeText(t.Limit)
	switch t.Type {
	case RequestNumber, WriteNumber, ReadNumber, AtomicRequestNumber:
		amount = strconv.FormatInt(t.Limit, 10) + "req"
	case RequestCapacityUnit, WriteCapacityUnit, ReadCapacityUnit:
		amount = strconv.FormatInt(t.Limit, 10) + "CU"
	case RequestHandlerMillis:
		amount = strconv.FormatInt(t.Limit, 10) + "ms"
	}
	per := t.Per.String()
	for _, u := range timeUnits() {
		if u.d == t.Per {
			per = u.text
		}
	}
	return fmt.Sprintf("TYPE => THROTTLE, THROTTLE_TYPE => %v, LIMIT => %s/%s, SCOPE => %v", t.Type, amount, per, cmp.Or(t.Scope, MachineScope))
}

func (t Throttle) toProto() (*pb.ThrottleRequest, error) {
	const op = "set quota"
	if _, ok := pb.ThrottleType_name[int32(t.Type)]; !ok {
		return nil, invalid(op, "throttle", fmt.Sprintf("has the type %d, which is none of HBase's", t.Type))
	}
	if t.Limit <= 0 {
		return nil, invalid(op, "throttle", fmt.Sprintf("has the limit %d; it must be greater than 0", t.Limit))
	}
	scope := cmp.Or(t.Scope, MachineScope)
	if scope != MachineScope && scope != ClusterScope {
		return nil, invalid(op, "throttle", fmt.Sprintf("has the scope %d", t.Scope))
	}
	for _, u := range timeUnits() {
		if u.d == cmp.Or(t.Per, time.Second) {
			return &pb.ThrottleRequest{Type: pb.ThrottleType(t.Type).Enum(), TimedQuota: &pb.TimedQuota{
				TimeUnit: u.unit.Enum(), SoftLimit: new(uint64(t.Limit)), Scope: pb.QuotaScope(scope).Enum(),
			}}, nil
		}
	}
	return nil, invalid(op, "throttle", fmt.Sprintf("is per %v; HBase knows a second, a minute, an hour, 24 hours", t.Per))
}

// throttlesFromProto lists a row's throttles in the order of HBase's
// QuotaSettingsFactory.
func throttlesFromProto(p *pb.Throttle) []Throttle {
	var out []Throttle
	for _, e := range []struct {
		t ThrottleType
		q *pb.TimedQuota
	}{
		{RequestNumber, p.GetReqNum()}, {RequestSize, p.GetReqSize()},
		{WriteNumber, p.GetWriteNum()}, {WriteSize, p.GetWriteSize()},
		{ReadNumber, p.GetReadNum()}, {ReadSize, p.GetReadSize()},
		{RequestCapacityUnit, p.GetReqCapacityUnit()}, {ReadCapacityUnit, p.GetReadCapacityUnit()},
		{WriteCapacityUnit, p.GetWriteCapacityUnit()},
		{AtomicReadSize, p.GetAtomicReadSize()}, {AtomicWriteSize, p.GetAtomicWriteSize()},
		{AtomicRequestNumber, p.GetAtomicReqNum()}, {RequestHandlerMillis, p.GetReqHandlerUsageMs()},
	} {
		if e.q == nil {
			continue
		}
		t := Throttle{Type: e.t, Limit: int64(e.q.GetSoftLimit()), Scope: QuotaScope(e.q.GetScope())}
		for _, u := range timeUnits() {
			if u.unit == e.q.GetTimeUnit() {
				t.Per = u.d
			}
		}
		out = append(out, t)
	}
	return out
}

// errNotSupported says what this server lacks.
func errNotSupported(op, object, what string, cause error) error {
	return fault.Wrap(op, object, fmt.Errorf("%w: %s: %w", fault.ErrUnsupported, what, cause))
}
