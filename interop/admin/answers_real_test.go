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
