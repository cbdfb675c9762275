package hbase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
	"github.com/holdfast-hbase/holdfast/zk"
)

var (
	explainTable  = meta.TableName{Namespace: "default", Qualifier: "t"}
	explainServer = meta.ServerName{Host: "rs1", Port: 16020, StartCode: 7}
)

// ended is how an operation ends because of cause.
func ended(cause error, edit func(*retry.Error)) error {
	e := &retry.Error{
		Op: "put", Table: explainTable, Row: []byte("row-1"), Region: "abcd", Reason: retry.Final,
		Elapsed: 3 * time.Second, Timeout: 3 * time.Second, Attempts: 4, Failures: 4,
		Servers: []string{"rs1,16020,7"},
		Spent: []retry.Spent{
			{Phase: retry.Calling, Time: 600 * time.Millisecond},
			{Phase: retry.Waiting, Class: retry.Transit, Count: 9, Time: 2400 * time.Millisecond},
		},
	}
	if cause != nil {
		e.Causes = []retry.Cause{{After: 2 * time.Second, Attempt: 4, Server: "rs1,16020,7", Err: cause}}
	}
	if edit != nil {
		edit(e)
	}
	return fault.Wrap("put", `table "t"`, e)
}

func deadline(e *retry.Error) { e.Reason = retry.Deadline }

func remote(class, message string) error { return wire.NewRemoteError(class, message) }

func dialError(cause error) error {
	return &rpc.DialError{Addr: "rs1:16020", Phase: rpc.PhaseConnect, Cause: cause}
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name      string
		err       error
		kind      string
		applied   string
		retriable bool
		says      []string
	}{
		{"moved", ended(remote(wire.ClassNotServingRegion, "r"), deadline), "region in transition", "no", true,
			[]string{"the time was up after 3s of 3s", "4 attempts on rs1,16020,7 in 3s of 3s", "waiting: transit 2.4s (80 %, 9 times), calling 600ms (20 %)", "row \"row-1\"", "list_procedures"}},
		{"opening", ended(remote(wire.ClassRegionOpening, ""), deadline), "region in transition", "no", true, nil},
		{"gate", ended(&route.LocateError{Table: explainTable, Err: route.ErrRegionUnavailable}, nil), "region in transition", "no", true, nil},
		{"refused", ended(dialError(syscall.ECONNREFUSED), deadline), "server down", "no", true, []string{"nothing listens at rs1:16020"}},
		{"unknown host", ended(dialError(&net.DNSError{Name: "rs1", IsNotFound: true}), deadline), "name unknown", "no", true, []string{"/etc/hosts"}},
		{"firewall", ended(dialError(rpc.ErrConnectTimeout), deadline), "server unreachable", "no", true, []string{"firewall"}},
		{"other dial", ended(dialError(errors.New("odd")), deadline), "cannot connect", "no", true, nil},
		{"down", ended(&health.DownError{Server: explainServer, Cause: errors.New("x")}, deadline), "server down", "no", true, nil},
		{"frozen", ended(&health.DownError{Server: explainServer, Cause: &session.SilentError{Server: explainServer, For: time.Second}}, deadline), "server frozen", "no", true, []string{"SIGSTOP"}},
		{"stopped", ended(remote(wire.ClassRegionServerStopped, ""), deadline), "server down", "no", true, nil},
		{"own queue", ended(&health.BusyError{Server: explainServer, Queue: 9}, deadline), "own queue full", "no", true, []string{"9 calls"}},
		{"meta", ended(&route.LocateError{Table: explainTable, Failures: 3, Err: context.DeadlineExceeded, Last: dialError(syscall.ECONNREFUSED)}, deadline), "meta unreachable", "no", true,
			[]string{"hbase:meta could not be read: nothing listens at rs1:16020"}},
		{"meta without a reason", ended(&route.LocateError{Table: explainTable, Failures: 3, Err: context.DeadlineExceeded}, deadline), "meta unreachable", "no", true, []string{"route explain"}},
		{"zookeeper", ended(&session.RegistryError{What: "server of hbase:meta", Registry: "hbase://zk1:2181/hbase", Err: &registry.EnsembleError{Attempts: []zk.Attempt{{Host: "zk1:2181"}}}}, deadline), "ZooKeeper unreachable", "no", true,
			[]string{"ruok"}},
		{"not zookeeper", ended(&session.RegistryError{Err: &registry.EnsembleError{Attempts: []zk.Attempt{{Host: "zk1:80", Outcome: zk.OutcomeNotZooKeeper}}}}, deadline), "not ZooKeeper", "no", true, []string{"zk1:80"}},
		{"znode", ended(&session.RegistryError{Err: &registry.ZNodeError{Path: "/nope", Problem: "it is missing", Missing: true, Suggestions: []string{"/hbase"}}}, nil), "znode parent", "no", false, []string{"this ensemble has /hbase"}},
		{"no master", ended(&session.RegistryError{Err: &registry.NotYetError{What: "active master", Where: "/hbase/master", State: "no znode"}}, deadline), "cluster starting", "no", true, []string{"no active master yet"}},
		{"endpoints", ended(&session.RegistryError{Err: &registry.EndpointsError{What: "server of hbase:meta", Endpoints: []registry.EndpointError{{Addr: "m1:1", Err: errors.New("x")}}}}, deadline), "registry unreachable", "no", true, []string{"1 endpoints"}},
		{"registry", ended(&session.RegistryError{What: "active master", Registry: "hbase://zk1", Err: context.DeadlineExceeded}, deadline), "registry unreachable", "no", true, nil},
		{"not hbase", ended(&rpc.NotHBaseError{Addr: "rs1:80", Saw: "an HTTP server"}, deadline), "not HBase", "no", true, []string{"an HTTP server", "16020"}},
		{"no table", fault.Wrap("get", "t", &route.LocateError{Table: explainTable, Err: route.ErrTableNotFound}), "table missing", "no", false, []string{"`list`"}},
		{"no table says the server", ended(remote(wire.ClassTableNotFound, "t"), nil), "table missing", "no", false, nil},
		{"disabled", ended(remote(wire.ClassTableNotEnabled, "t"), nil), "table disabled", "no", false, nil},
		{"throttled", ended(remote(wire.ClassRpcThrottling, "number of requests exceeded - wait 1sec, 0ms"), func(e *retry.Error) { deadline(e); e.NextWait = time.Second }), "quota", "no", true, []string{"asks to wait 1s"}},
		{"space", ended(remote(wire.ClassQuotaExceeded, ""), nil), "space quota", "no", false, nil},
		{"overload", ended(remote(wire.ClassCallQueueTooBig, ""), deadline), "server overloaded", "no", true, nil},
		{"region busy", ended(remote(wire.ClassRegionTooBusy, ""), deadline), "region overloaded", "no", true, nil},
		{"row too big", ended(remote(wire.ClassRowTooBig, ""), nil), "too large", "no", false, nil},
		{"request too big", ended(remote(wire.ClassRequestTooBig, ""), nil), "too large", "no", false, nil},
		{"message too large", ended(&rpc.ConnError{Addr: "rs1:16020", Cause: &wire.TooLargeError{What: "frame", Size: 9, Max: 8}}, nil), "too large", "no", true, nil},
		{"denied", ended(remote(wire.ClassAccessDenied, ""), nil), "access denied", "no", false, nil},
		{"family", ended(remote(wire.ClassNoSuchColumnFamily, ""), nil), "family missing", "no", false, nil},
		{"exists", ended(remote(wire.ClassTableExists, ""), nil), "state of the cluster", "no", false, nil},
		{"master", ended(remote(wire.ClassPleaseHold, ""), deadline), "master not ready", "no", true, nil},
		{"scanner", ended(remote(wire.ClassUnknownScanner, ""), nil), "scanner lost", "no", true, nil},
		{"coprocessor", ended(remote(wire.ClassUnknownProtocol, ""), nil), "coprocessor missing", "no", false, nil},
		{"slow server", ended(remote(wire.ClassTimeoutIO, ""), func(e *retry.Error) { deadline(e); e.MaybeApplied = true }), "slow server", "maybe", true, []string{"HDFS"}},
		{"unsupported there", ended(remote(wire.ClassUnknownService, ""), nil), "not supported by the server", "no", false, nil},
		{"do not retry", ended(remote(wire.ClassDoNotRetryIO, "no"), nil), "refused by the server", "no", false, []string{"DoNotRetryIOException: no"}},
		{"unknown class", ended(remote("com.example.OddException", "odd"), deadline), "server error", "no", true, []string{"OddException: odd"}},
		{"broken", ended(&rpc.ConnError{Addr: "rs1:16020", Cause: rpc.ErrServerClosed, Sent: true}, func(e *retry.Error) { deadline(e); e.MaybeApplied = true }), "connection broke", "maybe", true, nil},
		{"slow answer", ended(context.DeadlineExceeded, func(e *retry.Error) { deadline(e); e.MaybeApplied = true }), "no answer in time", "maybe", true, []string{"rpc-timeout"}},
		{"no attempt", ended(nil, deadline), "no time", "no", true, []string{"operation-timeout"}},
		{"unknown outcome", ended(context.DeadlineExceeded, func(e *retry.Error) {
			e.Reason, e.MaybeApplied, e.Idempotency = retry.OutcomeUnknown, true, retry.Unsafe
		}), "no answer in time", "maybe", false, []string{"read the row first"}},
		{"canceled", ended(context.Canceled, func(e *retry.Error) { e.Reason = retry.Canceled }), "canceled", "no", false, []string{"the caller canceled the call"}},
		{"attempts", ended(remote(wire.ClassRegionTooBusy, ""), func(e *retry.Error) { e.Reason = retry.TooManyAttempts }), "region overloaded", "no", true, []string{"max-attempts was reached"}},
		{"lost read", ended(context.DeadlineExceeded, func(e *retry.Error) { e.Op = "get"; deadline(e); e.MaybeApplied = true }), "no answer in time", "no", true, nil},
		{"invalid", invalid("put", "row", "is empty"), "invalid request", "no", false, []string{"row: is empty"}},
		{"closed", fault.Wrap("get", "t", ErrClosed), "client closed", "no", false, []string{"open another"}},
		{"scanner closed", ErrScannerClosed, "client closed", "no", false, nil},
		{"unreadable", fault.Wrap("increment", "t", &fault.Unreadable{Err: errors.New("x")}), "unreadable answer", "yes", false, []string{"read before you do it again"}},
		{"address", &registry.AddressError{Address: "x", Problems: []string{"no host"}}, "address", "no", false, []string{"no host"}},
		{"unsupported", fmt.Errorf("%w: authentication with Kerberos", session.ErrUnsupported), "unsupported", "no", false, []string{"docs/configuration.md"}},
		{"no replica", ended(&session.NoReplicaError{Region: "abcd", Replica: 2, Tries: 99}, nil), "no such replica", "no", false, nil},
		{"other", errors.New("odd"), "other", "no", false, []string{"odd"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := Explain(test.err)
			text := e.String()
			if e.Kind != test.kind || e.Applied != test.applied || e.Retriable != test.retriable {
				t.Errorf("kind %q, applied %q, retriable %v; want %q, %q, %v", e.Kind, e.Applied, e.Retriable, test.kind, test.applied, test.retriable)
			}
			for _, s := range test.says {
				if !strings.Contains(text, s) {
					t.Errorf("does not say %q", s)
				}
			}
			if n := strings.Count(text, "\n"); n > 14 {
				t.Errorf("%d lines", n)
			}
			if len(e.Next) == 0 && test.name != "other" {
				t.Error("nothing to do next")
			}
			if t.Failed() {
				t.Logf("%v\n%s", test.err, text)
			}
			raw, err := json.Marshal(e)
			var back map[string]any
			if err != nil || json.Unmarshal(raw, &back) != nil || back["kind"] != test.kind || back["advice"] == "" {
				t.Errorf("%v: %s", err, raw)
			}
		})
	}
	if Explain(nil) != nil {
		t.Error("nil is explained")
	}
}

func ExampleExplain() {
	err := ended(wire.NewRemoteError(wire.ClassRegionTooBusy, "Over memstore limit"), deadline)
	fmt.Print(Explain(err))
	// Output:
	// what      region overloaded: the server answered RegionTooBusyException: Over memstore limit; the time was up after 3s of 3s
	// call      put on table t, row "row-1", region abcd
	// tried     4 attempts on rs1,16020,7 in 3s of 3s
	// time      waiting: transit 2.4s (80 %, 9 times), calling 600ms (20 %)
	// failures  4, the last of them:
	//           +2s attempt 4 on rs1,16020,7: RegionTooBusyException: Over memstore limit
	// applied   no
	// again?    it may succeed later, and nothing has been applied
	// next      the region's memstore is full or a row lock is held for long: writes to one region come faster than it flushes
	//           split the region or spread the keys; look at flush and compaction queues
}
