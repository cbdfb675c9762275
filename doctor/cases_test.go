package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

type want struct {
	ids   []string          // all must be found
	not   []string          // ids that must not be, at warning or above
	nums  map[string]string // "ID.name": value
	field map[string]string // "ID.name": value
	text  []string          // must stand somewhere in the report
	never []string          // must not
	worst string
	hbase string
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func diagnose(t *testing.T, hbase string, in ...Input) *finding.Report {
	t.Helper()
	r, err := Diagnose(t.Context(), in, Options{HBase: hbase, Timeline: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func check(t *testing.T, r *finding.Report, w want) {
	t.Helper()
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%s(%s) %s", f.ID, f.Severity, f.Cause))
	}
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf(format+"\n  findings: %s", append(args, strings.Join(got, "\n            "))...)
	}
	for _, id := range w.ids {
		id, sev, _ := strings.Cut(id, " ")
		f := r.Find(id)
		if f == nil {
			bad("no %s", id)
		} else if sev != "" && f.Severity.String() != sev {
			bad("%s is %s, want %s", id, f.Severity, sev)
		}
	}
	for _, id := range w.not {
		if f := r.Find(id); f != nil && f.Severity >= finding.Warning {
			bad("%s must not be said", id)
		}
	}
	for k, v := range w.nums {
		id, name, _ := strings.Cut(k, ".")
		f := r.Find(id)
		if f == nil {
			bad("no %s for %s", id, k)
			continue
		}
		n, ok := f.Number(name)
		if !ok || fmt.Sprint(n.Value) != v {
			bad("%s = %v (found %v), want %s; has %v", k, n.Value, ok, v, f.Numbers)
		}
	}
	for k, v := range w.field {
		id, name, _ := strings.Cut(k, ".")
		f := r.Find(id)
		if f == nil || !strings.HasPrefix(f.Fields[name], v) {
			bad("%s: want %q, fields %v", k, v, f)
		}
	}
	text := r.Text()
	text = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\"`, `"`, `\u0026`, "&").Replace(text)
	for _, s := range w.text {
		if !strings.Contains(text, s) {
			bad("the report does not say %q", s)
		}
	}
	for _, s := range w.never {
		if strings.Contains(text, s) {
			bad("the report says %q", s)
		}
	}
	if worst, _ := r.Worst(); w.worst != "" && worst.String() != w.worst {
		bad("worst is %s, want %s", worst, w.worst)
	}
	if w.hbase != "" && r.HBase != w.hbase {
		bad("HBase %s, want %s", r.HBase, w.hbase)
	}
}

func TestPublicCases(t *testing.T) {
	for name, w := range map[string]want{
		"D01": {ids: []string{"RETRY_BUDGET_FAST_FAIL error"}, not: []string{"RETRY_BUDGET_SLOW_RPC"}, never: []string{"increase the timeout"},
			field: map[string]string{"RETRY_BUDGET_FAST_FAIL.attempts_made": "11..12", "RETRY_BUDGET_FAST_FAIL.printed_attempts": "36", "RETRY_BUDGET_FAST_FAIL.table": "hbase:meta"},
			nums:  map[string]string{"RETRY_BUDGET_FAST_FAIL.rpc_time_start-0": "18", "RETRY_BUDGET_FAST_FAIL.rpc_time_start-1": "118", "RETRY_BUDGET_FAST_FAIL.elapsed": "48118"}},
		"D02": {ids: []string{"NAME_UNRESOLVABLE error"}, not: []string{"RETRY_BUDGET_SLOW_RPC", "RETRY_BUDGET_FAST_FAIL"}, field: map[string]string{"NAME_UNRESOLVABLE.host": "aaaabbbbcccc", "NAME_UNRESOLVABLE.hint": "12 hex digits: looks like a container id"},
			nums: map[string]string{"NAME_UNRESOLVABLE.rpc_time_start-1": "1144"}},
		"D03": {ids: []string{"LOOPBACK_ADVERTISED error", "PORT_UNREACHABLE error"}, text: []string{"127.0.0.1"}},
		"D04": {ids: []string{"RETRY_BUDGET_FAST_FAIL", "STALE_REGION_LOCATION"}, field: map[string]string{"RETRY_BUDGET_FAST_FAIL.attempts_made": "7..8"}, nums: map[string]string{"RETRY_BUDGET_FAST_FAIL.next_sleep": "10000"}},
		"D05": {ids: []string{"STALE_META_LOCATION error"}},
		"D06": {ids: []string{"STALE_REGION_LOCATION"}, not: []string{"REGION_IN_TRANSITION"}, text: []string{"HBCK2 assigns"}},
		"D07": {ids: []string{"SERVER_OVERLOADED_QUEUE error"}, field: map[string]string{"SERVER_OVERLOADED_QUEUE.hotspot": "single host", "SERVER_OVERLOADED_QUEUE.server": "host35.example:60020"},
			nums: map[string]string{"SERVER_OVERLOADED_QUEUE.factor": "200", "SERVER_OVERLOADED_QUEUE.since_tracking_started": "78000", "SERVER_OVERLOADED_QUEUE.attempt": "12"}},
		"D08": {ids: []string{"SCANNER_SEQ_OUT_OF_ORDER error"}},
		"D09": {ids: []string{"SCANNER_LEASE_EXPIRED warning"}},
		"D10": {ids: []string{"SCANNER_LEASE_EXPIRED error"}, nums: map[string]string{"SCANNER_LEASE_EXPIRED.gap": "88966", "SCANNER_LEASE_EXPIRED.limit": "60000", "SCANNER_LEASE_EXPIRED.over": "28966", "SCANNER_LEASE_EXPIRED.time_per_row": "1200"}},
		"D11": {ids: []string{"SCANNER_ALREADY_CLOSED_BENIGN info"}, worst: "info"},
		"D12": {ids: []string{"SCANNER_LEASE_EXPIRED warning"}},
		"D13": {ids: []string{"REGION_OPENING warning"}, text: []string{"this client library does not retry it"}},
		"D14": {ids: []string{"NOT_A_FAULT info"}, worst: "info", never: []string{"ZK_SESSION_EXPIRED"}},
		"D15": {ids: []string{"META_LOCK_TIMEOUT error"}, nums: map[string]string{"META_LOCK_TIMEOUT.wait": "10000"}},
		"D16": {ids: []string{"META_LOCK_UNBOUNDED warning"}, text: []string{"meta operation timeout 1200000 > operation timeout 15000"}},
		"D17": {ids: []string{"CLIENT_DEADLOCK critical"}, field: map[string]string{"CLIENT_DEADLOCK.cycle": "AsyncHBase I/O Worker #8 <-> AsyncHBase I/O Worker #67", "CLIENT_DEADLOCK.victims": "AsyncHBase Timer RPC Timeout Timer #3"}},
		"D18": {ids: []string{"RETRY_BUDGET_SHORT error"}, nums: map[string]string{"RETRY_BUDGET_SHORT.total_sleep": "600", "RETRY_BUDGET_SHORT.max_attempts": "4", "RETRY_BUDGET_SHORT.attempts_to_outlast_10s": "9", "RETRY_BUDGET_SHORT.offsets": "[106 310 612]"},
			field: map[string]string{"RETRY_BUDGET_SHORT.convention": "start-0"}, text: []string{"8 pauses are 18.1 s, 7 are 8.1 s", "had not opened it yet"}},
		"D19": {ids: []string{"CLIENT_CONNECTION_CONTENTION info"}, not: []string{"LOCK_CONVOY_META_LOOKUP", "CLIENT_DEADLOCK"}},
		"D20": {ids: []string{"ZK_SESSION_EXPIRED_PAUSE critical"}, not: []string{"ZK_SESSION_EXPIRED_NETWORK"}, nums: map[string]string{"ZK_SESSION_EXPIRED_PAUSE.pause": "10156", "ZK_SESSION_EXPIRED_PAUSE.session_timeout": "10000", "ZK_SESSION_EXPIRED_PAUSE.read_timeout": "6666"}},
		"D21": {ids: []string{"ZK_TIMEOUT_CLAMPED warning"}, nums: map[string]string{"ZK_TIMEOUT_CLAMPED.asked": "90000", "ZK_TIMEOUT_CLAMPED.effective": "40000", "ZK_TIMEOUT_CLAMPED.read_timeout": "26667"}},
		"D22": {ids: []string{"WRONG_PORT_CLASS error", "ZK_UNREACHABLE"}, field: map[string]string{"WRONG_PORT_CLASS.port": "60010", "WRONG_PORT_CLASS.service": "HMaster web UI"}},
		"D23": {ids: []string{"ZNODE_PARENT_MISMATCH error"}, text: []string{"MASTER_NOT_RUNNING"}},
		"D24": {ids: []string{"ZNODE_PARENT_MISMATCH error"}, text: []string{"/hbase-unsecure"}},
		"D25": {ids: []string{"NAME_UNRESOLVABLE error"}, not: []string{"MASTER_NOT_RUNNING"}, field: map[string]string{"NAME_UNRESOLVABLE.host": "host1.example"}},
		"D26": {ids: []string{"PORT_UNREACHABLE error"}, text: []string{"they never touched the network", "07:40:54.096Z", "+3 h"}, field: map[string]string{"PORT_UNREACHABLE.server": "aaaabbbbcccc:38571"}},
		"D27": {ids: []string{"LOOPBACK_ADVERTISED error"}, not: []string{"PORT_UNREACHABLE"}},
		"D28": {ids: []string{"COPROCESSOR_ABORT critical"}, not: []string{"PORT_UNREACHABLE"}, field: map[string]string{"COPROCESSOR_ABORT.class": "IIEndpoint"}},
		"D29": {ids: []string{"KERBEROS_NO_TGT error"}, field: map[string]string{"KERBEROS_NO_TGT.layer": "HBase RPC"}},
		"D30": {ids: []string{"REGION_TOO_BUSY_MEMSTORE error"}, nums: map[string]string{"REGION_TOO_BUSY_MEMSTORE.ratio": "3.76"}, text: []string{"start key is empty"}},
		"D31": {ids: []string{"MASTER_INITIALIZING error", "REGION_IN_TRANSITION error", "NOT_A_FAULT info"}, not: []string{"ZNODE_PARENT_MISMATCH"}, text: []string{"hbase:namespace stays in state OPENING"}},
		"D32": {ids: []string{"MASTER_INITIALIZING error"}, not: []string{"RETRY_BUDGET_SLOW_RPC"}, nums: map[string]string{"MASTER_INITIALIZING.rpc_time_start-1": "1052"}},
		"D33": {ids: []string{"ZK_TOO_MANY_CONNECTIONS error"}, field: map[string]string{"ZK_TOO_MANY_CONNECTIONS.from": "192.0.2.7"}, nums: map[string]string{"ZK_TOO_MANY_CONNECTIONS.max": "60"}},
		"D34": {ids: []string{"STALE_REGION_LOCATION error"}},
		"D35": {ids: []string{"WRONG_PORT_CLASS error"}, field: map[string]string{"WRONG_PORT_CLASS.port": "2181"}},
		"D36": {ids: []string{"CLIENT_GONE warning"}, field: map[string]string{"CLIENT_GONE.method": "Multi", "CLIENT_GONE.client": "192.0.2.139"}},
		"D37": {ids: []string{"RETRY_BUDGET_FAST_FAIL", "ZK_TIMEOUT_CLAMPED warning"}, field: map[string]string{"RETRY_BUDGET_FAST_FAIL.convention": "start-1"},
			nums: map[string]string{"RETRY_BUDGET_FAST_FAIL.slept": "48000", "RETRY_BUDGET_FAST_FAIL.slept_start-0": "38100", "RETRY_BUDGET_FAST_FAIL.will_go_on_for": "448000", "ZK_TIMEOUT_CLAMPED.asked": "180000", "ZK_TIMEOUT_CLAMPED.effective": "90000"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := read(t, name+".txt")
			check(t, diagnose(t, "", Text(name, text)), w)
		})
	}
}

func TestSeedRetryNeverPossible(t *testing.T) {
	line := Text("kylin.log", read(t, "S000.txt"))
	site := Text("hbase-site.xml", read(t, "S000-site.xml"))
	w := want{
		ids:   []string{"RETRY_NEVER_POSSIBLE critical", "STALE_LOCATION_NOT_REFRESHED"},
		text:  []string{"retries can never happen", "hbase.rpc.timeout=1200000", "hbase.client.operation.timeout=1200000", "the 20-minute figure is not elapsed time", "set hbase.rpc.timeout well below hbase.client.operation.timeout, e.g. 120000", "host33.example"},
		never: []string{"server was slow for 20 minutes", "increase the timeout", "increase retries"},
		nums: map[string]string{"RETRY_NEVER_POSSIBLE.call_timeout": "1200000", "RETRY_NEVER_POSSIBLE.call_duration": "1200108", "RETRY_NEVER_POSSIBLE.elapsed_and_first_sleep": "108", "RETRY_NEVER_POSSIBLE.elapsed": "8",
			"RETRY_NEVER_POSSIBLE.attempts_made": "1", "RETRY_NEVER_POSSIBLE.retries_made": "0", "RETRY_NEVER_POSSIBLE.largest_rpc_timeout_with_a_retry": "1199899",
			"RETRY_NEVER_POSSIBLE.after_fix_room": "1080000", "RETRY_NEVER_POSSIBLE.after_fix_sleeps": "508100"},
		field: map[string]string{"STALE_LOCATION_NOT_REFRESHED.table": "NS:KYLIN_XXXXXXXXXX", "STALE_LOCATION_NOT_REFRESHED.region_encoded": "6b1f069c03aa1cfc6649b6762bc79451",
			"STALE_LOCATION_NOT_REFRESHED.server": "host33.example:60020", "STALE_LOCATION_NOT_REFRESHED.startcode": "1551705541907 (2019-03-04T13:19:01.907Z)", "STALE_LOCATION_NOT_REFRESHED.region_id": "1542085088058 (2018-11-13T04:58:08.058Z)", "STALE_LOCATION_NOT_REFRESHED.row": ""},
	}
	check(t, diagnose(t, "0.98", line, site), w)
	r := diagnose(t, "0.98", line, site)
	if f := r.Find("RETRY_NEVER_POSSIBLE"); f != nil && !strings.Contains(strings.Join(f.Notes, " "), "1080000 ms now, 108000 ms after the fix") {
		t.Errorf("Kylin's side is missing: %v", f.Notes)
	}
	// The line alone, whole and wrapped anywhere.
	text := read(t, "S000.txt")
	for width := 40; width < 120; width += 7 {
		var b strings.Builder
		for i, c := range strings.ReplaceAll(strings.TrimSpace(text), "\n", " ") {
			if i > 0 && i%width == 0 {
				b.WriteByte('\n')
			}
			b.WriteRune(c)
		}
		r := diagnose(t, "", Text("paste", b.String()))
		check(t, r, want{ids: []string{"RETRY_NEVER_POSSIBLE critical"}, nums: map[string]string{"RETRY_NEVER_POSSIBLE.elapsed": "8"}})
		if t.Failed() {
			t.Fatalf("wrapped at %d:\n%s", width, b.String())
		}
	}
	// Version gate.
	check(t, diagnose(t, "1.4.8", site), want{ids: []string{"RETRY_NEVER_POSSIBLE warning"}, text: []string{"one slow RPC can use the whole budget"}})
	check(t, diagnose(t, "0.98", site), want{ids: []string{"RETRY_NEVER_POSSIBLE error"}})
	check(t, diagnose(t, "1.4.8", line, site), want{ids: []string{"RETRY_BUDGET_SLOW_RPC"}})
	for _, c := range []struct {
		text, id, sev string
		rpc           string
	}{
		{"kylin.storage.hbase.coprocessor-timeout-seconds=270", "KYLIN_RPC_TIMEOUT_RAISED", "info", "297000"},
		{"kylin.storage.hbase.coprocessor-timeout-seconds=1091", "RETRY_NEVER_POSSIBLE", "error", "1200100"},
		{"kylin.storage.hbase.coprocessor-timeout-seconds=3600", "RETRY_NEVER_POSSIBLE", "error", "3960000"},
	} {
		r := diagnose(t, "0.98", Text("kylin.properties", c.text), Text("hbase-site.xml", `<configuration><property><name>hbase.rpc.timeout</name><value>120000</value></property></configuration>`))
		check(t, r, want{ids: []string{c.id + " " + c.sev}, nums: map[string]string{c.id + ".rpc_timeout": c.rpc}})
	}
	check(t, diagnose(t, "1.x", Text("hbase-site.xml", `<configuration><property><name>hbase.rpc.timeout</name><value>700000</value></property></configuration>`)), want{ids: []string{"RETRY_ROOM_SMALL info"}, worst: "info"})
}

func TestSeedStaleGateway(t *testing.T) {
	r, err := Diagnose(t.Context(), nil, Options{Symptoms: []string{"affected=one-table", "shell=ok", "fresh-client=ok", "gateway=ok", "moved=yes", "first-access-ms=1050", "regions=310000", "budget-ms=3000"}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, want{ids: []string{"GATEWAY_STALE_ROUTE error", "META_LOOKUP_SLOW warning"}, text: []string{"evict", "retry in the caller"}})
}

func TestSeedLockConvoy(t *testing.T) {
	text := read(t, "S002.txt")
	w := want{ids: []string{"LOCK_CONVOY_META_LOOKUP critical"}, not: []string{"CLIENT_DEADLOCK", "LOCK_CONVOY"},
		field: map[string]string{"LOCK_CONVOY_META_LOOKUP.lock": "0x0000000782a936f0", "LOCK_CONVOY_META_LOOKUP.holder": "worker-0", "LOCK_CONVOY_META_LOOKUP.holder_state": "TIMED_WAITING (sleeping)", "LOCK_CONVOY_META_LOOKUP.waiters": "10",
			"LOCK_CONVOY_META_LOOKUP.cause": "RETRY_SLEEP_UNDER_REGION_LOCK", "LOCK_CONVOY_META_LOOKUP.deadlock": "false", "LOCK_CONVOY_META_LOOKUP.sleeps_at": "org.apache.hadoop.hbase.client.RpcRetryingCaller.callWithRetries(RpcRetryingCaller.java:115)"},
		nums: map[string]string{"LOCK_CONVOY_META_LOOKUP.worst_hold": "448000", "LOCK_CONVOY_META_LOOKUP.last_waiter": "4480000", "LOCK_CONVOY_META_LOOKUP.worst_hold_start0": "448100", "LOCK_CONVOY_META_LOOKUP.holders_for_4h": "33", "LOCK_CONVOY_META_LOOKUP.rpc_time_not_included": "1860000"}}
	check(t, diagnose(t, "", Text("jstack.txt", text)), w)
	few := text[:strings.Index(text, `"worker-4"`)]
	check(t, diagnose(t, "", Text("jstack.txt", few)), want{ids: []string{"LOCK_CONVOY_META_LOOKUP warning"}})
	check(t, diagnose(t, "", Text("jstack.txt", text), Text("hbase-site.xml", `<configuration><property><name>hbase.client.pause</name><value>20</value></property><property><name>hbase.client.retries.number</name><value>21</value></property></configuration>`)),
		want{ids: []string{"LOCK_CONVOY_META_LOOKUP critical", "RETRY_BUDGET_VS_FAILOVER warning"}, nums: map[string]string{"LOCK_CONVOY_META_LOOKUP.worst_hold": "49600", "RETRY_BUDGET_VS_FAILOVER.total_start0": "45620", "RETRY_BUDGET_VS_FAILOVER.total_start1": "49600"}})
}

func TestSeedSession(t *testing.T) {
	text := read(t, "S004.txt")
	w := want{ids: []string{"ZK_SESSION_EXPIRED_NETWORK critical"}, not: []string{"ZK_SESSION_EXPIRED_PAUSE"}, never: []string{"GC"},
		nums: map[string]string{"ZK_SESSION_EXPIRED_NETWORK.last_heard": "2016-02-29T00:49:36.769", "ZK_SESSION_EXPIRED_NETWORK.earliest_expiry": "2016-02-29T00:51:06.769", "ZK_SESSION_EXPIRED_NETWORK.expiry_at_tick": "2016-02-29T00:51:08.000",
			"ZK_SESSION_EXPIRED_NETWORK.read_timeout": "60000", "ZK_SESSION_EXPIRED_NETWORK.connect_timeout": "18000", "ZK_SESSION_EXPIRED_NETWORK.dark_ensemble_patience": "150000", "ZK_SESSION_EXPIRED_NETWORK.fitting_connect_timeout": "6000",
			"ZK_SESSION_EXPIRED_NETWORK.connect_attempt": "18019", "ZK_SESSION_EXPIRED_NETWORK.reconnect_after": "108995", "ZK_SESSION_EXPIRED_NETWORK.too_late_by": "17764", "ZK_SESSION_EXPIRED_NETWORK.survivor_margin": "10905"},
		text: []string{"NoRouteToHost seen", "17.8 s late", "the 90 s session is the limit on the server side, not 180 s", "fits a tickTime of 2000"}}
	check(t, diagnose(t, "0.94", Text("zk.log", text)), w)
	// A session id split over two lines, and lines in any order.
	damaged := strings.Replace(text, "for sessionid 0x4511b93876c000b, closing", "for sessionid 0x4511b93\n876c000b, closing", 1)
	lines := strings.SplitAfter(damaged, "\n")
	damaged = strings.Join(append(lines[5:], lines[:5]...), "")
	check(t, diagnose(t, "0.94", Text("zk.log", damaged)), w)
	// With a pause line the verdict turns.
	check(t, diagnose(t, "0.94", Text("zk.log", text+"2016-02-29 00:50:36,900 WARN [regionserver60020] util.Sleeper: We slept 75000ms instead of 3000ms, this is likely due to a long garbage collecting pause\n")),
		want{ids: []string{"ZK_SESSION_EXPIRED_PAUSE critical"}, not: []string{"ZK_SESSION_EXPIRED_NETWORK"}})
}
