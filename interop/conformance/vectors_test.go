//go:build interop && long

package conformance

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/conformance/vectors"
	"github.com/holdfast-hbase/holdfast/interop/peers"
)

var record = flag.Bool("record", false, "write down what real HBase answers to the cases of testdata/rules")

// patience is for crowded machines.
const patience = 5 * time.Minute

// TestVectors26 proves the runner of the recorded cases: real HBase 2.6.4, which
// they were recorded from, must answer all of them as recorded.
func TestVectors26(t *testing.T) {
	// One server, as the recorded cluster had; several hundred tables have an
	// arena of 2 MiB each.
	t.Setenv("HEAP", "2500m")
	c, err := peers.Open(peers.HBase26, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	themes, err := vectors.Load(os.DirFS("../../testdata/vectors"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := vectors.Load(os.DirFS("../../testdata/rules"))
	if err != nil {
		t.Fatal(err)
	}
	// Of the rules' own cases, those that need another clock are the embedded
	// cluster's alone.
	o := vectors.Options{Workers: 10, Keep: true, Patience: patience, Record: *record, Only: func(_ string, c *vectors.Case) bool { return !c.Clocked() }}
	t.Logf("rules: %v", vectors.Run(t, c.Address(), rules, o))
	if *record {
		for _, theme := range rules {
			var b bytes.Buffer
			if err := vectors.Write(&b, theme); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("../../testdata/rules/"+theme.Name+".json", b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	report := vectors.Run(t, c.Address(), themes, vectors.Options{Workers: 10, Keep: true, Patience: patience, AsJava: vectors.AsJava(), Differs: vectors.DifferentClient()})
	t.Logf("%v", report)
	if report.Played != 929 {
		t.Errorf("%d cases were played, 929 are recorded", report.Played)
	}
}
