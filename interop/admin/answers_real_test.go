//go:build interop && long

package admin

import (
	"flag"
	"os"
	"testing"

	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// record rewrites the recorded answers by those given now.
var record = flag.Bool("record", false, "rewrite the recorded answers")

// TestAnswersRealHBase: the recorded answers are those of HBase 2.6.4.
func TestAnswersRealHBase(t *testing.T) {
	c, err := peers.Open(peers.HBase26, 2, "<property><name>hbase.quota.enabled</name><value>true</value></property>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	got := play(t, c.Address())
	if *record {
		if err := os.WriteFile(answersFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, answersFile, got)
}

// TestThrottlesRealHBase: the recorded refusals are those of HBase 2.6.4.
func TestThrottlesRealHBase(t *testing.T) {
	c, err := peers.Open(peers.HBase26, 1, "<property><name>hbase.quota.enabled</name><value>true</value></property>"+
		"<property><name>hbase.quota.refresh.period</name><value>500</value></property>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	got := playThrottles(t, c.Address())
	if *record {
		if err := os.WriteFile(throttlesFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, throttlesFile, got)
}

// TestSpaceRealHBase: the recorded refusals are those of HBase 2.6.4.
func TestSpaceRealHBase(t *testing.T) {
	site := "<property><name>hbase.quota.enabled</name><value>true</value></property>"
	// Who counts, who compares and who enforces look every minute or less often.
	for _, chore := range []string{"master.quotas.observer", "regionserver.quotas.fs.utilization", "regionserver.quotas.region.size.reporting", "regionserver.quotas.policy.refresher"} {
		for _, what := range []string{"period", "delay"} {
			site += "<property><name>hbase." + chore + ".chore." + what + "</name><value>500</value></property>"
		}
	}
	c, err := peers.Open(peers.HBase26, 1, site)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	got := playSpace(t, c.Address())
	if *record {
		if err := os.WriteFile(spaceFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, spaceFile, got)
}

// TestSlowLogRealHBase: the recorded slow log is that of HBase 2.6.4.
func TestSlowLogRealHBase(t *testing.T) {
	c, err := peers.Open(peers.HBase26, 1, "<property><name>hbase.regionserver.slowlog.buffer.enabled</name><value>true</value></property>"+
		"<property><name>hbase.ipc.warn.response.time</name><value>-1</value></property><property><name>hbase.ipc.warn.response.size</name><value>1</value></property>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	got := playSlowLog(t, c.Address())
	if *record {
		if err := os.WriteFile(slowLogFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, slowLogFile, got)
}
