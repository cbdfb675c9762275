//go:build interop && long

package conformance

import (
	"testing"

	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// TestJavaVectors26 proves the Java runner: real HBase 2.6.4 must answer as
// recorded.
func TestJavaVectors26(t *testing.T) {
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
	// The program itself is small.
	t.Setenv("HEAP", "768m")
	javaPlays(t, c.ZooKeeper(), nil)
}
