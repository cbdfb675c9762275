//go:build interop && long

package guests

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// TestShellRealHBase: the recorded transcripts are what the shell prints on
// real clusters; with -record, they become that.
func TestShellRealHBase(t *testing.T) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			set, site := peers.HBase26, ""
			if s.on != "2.6.4" {
				set = peers.HBase24
			}
			if s.servers == 1 {
				site = "<property><name>hbase.quota.enabled</name><value>true</value></property>"
			}
			c, err := peers.Open(set, s.servers, site)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			printed, err := peers.Shell(t, c.ZooKeeper(), joined(t, []script{s}), peers.Interactive)
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			got := cut(t, s, printed)
			if *record {
				write(t, s.real(), got)
			}
			if diff := cmp.Diff(normalize(read(t, s.real())), normalize(got)); diff != "" {
				t.Errorf("the shell prints otherwise than recorded (- recorded, + now):\n%s", diff)
			}
		})
	}
}
