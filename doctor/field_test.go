package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// TestFieldForms: forms of faults as programs of many releases print them,
// typed by hand. The first finding must be the verdict; "" means none at
// warning or above.
func TestFieldForms(t *testing.T) {
	want := map[string]string{
		"p01": "ZK_UNREACHABLE", "p02": "RETRY_BUDGET_SLOW_RPC", "p03": "RETRY_BUDGET_SLOW_RPC", "p04": "REGION_IN_TRANSITION", "p05": "ZNODE_PARENT_MISMATCH", "p06": "ZK_UNREACHABLE",
		"p07": "SERVER_DECLARED_DEAD", "p08": "ZK_SESSION_EXPIRED_PAUSE", "p09": "NAME_UNRESOLVABLE", "p10": "PORT_UNREACHABLE", "p11": "PORT_UNREACHABLE", "p12": "REGION_TOO_BUSY_MEMSTORE",
		"p13": "REGION_TOO_BUSY_LOCK", "p14": "KERBEROS_WRONG_PRINCIPAL", "p15": "KERBEROS_NO_TGT", "p16": "KERBEROS_NO_TGT", "p17": "ZK_UNREACHABLE", "p18": "VERSION_MISMATCH",
		"p19": "PORT_UNREACHABLE", "p20": "SERVER_SLOW", "p21": "THROTTLED", "p22": "CLOCK_SKEW", "p23": "WRONG_PORT_CLASS", "p24": "OUT_OF_MEMORY", "p25": "RETRIES_EXHAUSTED",
		"p26": "RETRY_BUDGET_SHORT", "p27": "ZK_TIMEOUT_CLAMPED", "p28": "PORT_UNREACHABLE", "p29": "RETRY_BUDGET_SLOW_RPC", "p30": "BATCH_RETRYING", "p31": "PORT_UNREACHABLE", "p32": "ZK_CONNECTION_LOST",
		"q01": "CLIENT_GONE", "q02": "ZK_TOO_MANY_CONNECTIONS", "q03": "REGION_IN_TRANSITION", "q04": "PORT_IN_USE", "q05": "ZK_SESSION_EXPIRED", "q06": "WRONG_PORT_CLASS", "q07": "VERSION_MISMATCH",
		"q08": "VERSION_MISMATCH", "q09": "KERBEROS_NO_TGT", "q10": "SCANNER_SEQ_OUT_OF_ORDER", "q11": "SCANNER_LEASE_EXPIRED", "q12": "NAME_UNRESOLVABLE", "q13": "PORT_UNREACHABLE", "q14": "ZK_UNREACHABLE",
		"q15": "STALE_META_LOCATION", "q16": "NAME_UNRESOLVABLE", "q17": "REGION_TOO_BUSY_MEMSTORE", "q18": "RETRIES_EXHAUSTED", "q19": "HDFS_SAFE_MODE", "q20": "LOCK_CONVOY_META_LOOKUP",
		"r01": "PORT_UNREACHABLE", "r02": "RETRY_BUDGET_SLOW_RPC", "r03": "ZK_SESSION_EXPIRED_PAUSE", "r04": "RETRY_NEVER_POSSIBLE", "r05": "REGION_IN_TRANSITION", "r06": "PORT_UNREACHABLE",
		"r07": "ZK_SESSION_EXPIRED_PAUSE", "r08": "NAME_UNRESOLVABLE", "r09": "RETRY_BUDGET_FAST_FAIL", "r10": "ZK_CONNECTION_LOST", "r11": "COPROCESSOR_ABORT", "r12": "RETRY_BUDGET_SLOW_RPC",
	}
	files, err := filepath.Glob(filepath.Join("testdata", "field", "*.log"))
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files for %d verdicts, %v", len(files), len(want), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".log")
		r := diagnose(t, "", Text(name, string(b)))
		got := ""
		if len(r.Findings) > 0 && r.Findings[0].Severity >= finding.Warning {
			got = r.Findings[0].ID
		}
		if got != want[name] {
			t.Errorf("%s: first is %q, want %q\n%s", name, got, want[name], b)
		}
	}
}

// TestOwnTexts: errors of this project's own clients.
func TestOwnTexts(t *testing.T) {
	for text, want := range map[string]string{
		`cluster status: deadline exceeded after 15s of 15s, no attempt: find the active master through hbase://zk1:2181/hbase: context deadline exceeded [time: working 20µs, locating 14.9s, waiting 59ms (meta unavailable, 2 times); before: +5s: read znode /hbase/master: zk: get "/hbase/master": context deadline exceeded after 5s; connecting, no session (asking for 30s); last attempts: [zk1:2181 dial: refused after 0s] [zk1:2181 dial: refused after 0s]]`: "ZK_UNREACHABLE",
		`zk: get "/hbase/master": context deadline exceeded after 5s; connecting, no session (asking for 30s); last attempts: [zk1.example:2181 resolve: unresolved after 2ms]`:                                                                         "NAME_UNRESOLVABLE",
		`cluster status: failed after 820µs, no attempt: find the active master through hbase://127.0.0.1:33719/other: znode /other in ZooKeeper 127.0.0.1:33719: missing: no HBase has its znodes here (zookeeper.znode.parent); did you mean /hbase?`: "ZNODE_PARENT_MISMATCH",
		`increment "t" row "r" region 0123: outcome unknown after 1.2s, 1 attempt on host1.example,16020,1498697123335: connection reset by peer`:                                                                                                       "OUTCOME_UNKNOWN",
		`put "t" row "r": attempts used up after 310ms, 3 attempts on host1.example,16020,1498697123335: NotServingRegionException: t,,1 is not online [time: calling 2ms, waiting 300ms (region unavailable, 2 times)]`:                                "RETRY_BUDGET_SHORT",
	} {
		r := diagnose(t, "", Text("x", text))
		if len(r.Findings) == 0 || r.Find(want) == nil {
			t.Errorf("no %s: %+v\n%s", want, r.Findings, text)
		}
	}
}
