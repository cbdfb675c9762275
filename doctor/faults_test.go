package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// TestRecordedFaults: logs of the real Java clients 2.4.17 and 2.6.4 under
// known faults of a cluster, shortened. The name of a file says the fault; the
// doctor is not told.
func TestRecordedFaults(t *testing.T) {
	want := map[string]string{
		"f01-zkrefused":    "ZK_UNREACHABLE",
		"f02-parent":       "ZNODE_PARENT_MISMATCH",
		"f03-zkisrpc":      "WRONG_PORT_CLASS",
		"f04-zkname":       "NAME_UNRESOLVABLE",
		"f05-slow":         "RETRY_BUDGET_SLOW_RPC",
		"f06-paused":       "RETRY_BUDGET_SLOW_RPC",
		"f07-notable":      "TABLE_NOT_FOUND",
		"f08-nofamily":     "FAMILY_NOT_FOUND",
		"f09-notserving":   "RETRY_BUDGET_SHORT",
		"f10-queue":        "SERVER_OVERLOADED_QUEUE",
		"f11-memstore":     "REGION_TOO_BUSY_MEMSTORE",
		"f12-hold":         "MASTER_INITIALIZING",
		"f13-scan-timeout": "RETRY_BUDGET_SLOW_RPC",
		"f14-zkfrozen":     "ZK_UNREACHABLE",
		"f15-zkhangup":     "ZK_UNREACHABLE",
		"f16-opening":      "RETRY_BUDGET_SHORT",
		"f17-denied":       "ACCESS_DENIED",
		"f18-killed":       "PORT_UNREACHABLE",
		"f19-advertised":   "NAME_UNRESOLVABLE",
		"f20-convoy":       "LOCK_CONVOY_META_LOOKUP",
		"ok":               "",
	}
	files, err := os.ReadDir(filepath.Join("testdata", "faults"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
		id, known := want[name[:max(strings.LastIndexByte(name, '-'), 0)]]
		if !known {
			t.Errorf("%s: which fault is it?", f.Name())
			continue
		}
		in, err := Files([]string{filepath.Join("testdata", "faults", f.Name())})
		if err != nil {
			t.Fatal(err)
		}
		r := diagnose(t, "", in...)
		if id != "" && r.Find(id) == nil {
			t.Errorf("%s: no %s", f.Name(), id)
		}
		for _, x := range r.Findings {
			if x.Severity >= finding.Error && x.ID != id {
				t.Errorf("%s: also %s: %s", f.Name(), x.ID, x.Cause)
			}
		}
	}
}
