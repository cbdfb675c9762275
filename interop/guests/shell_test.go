//go:build interop

package guests

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/interop/peers"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// record rewrites the transcripts in testdata by what the shell prints now.
var record = flag.Bool("record", false, "rewrite the recorded transcripts")

// TestShell compares what the real shell prints on the embedded cluster with
// what it printed on real HBase, line by line.
func TestShell(t *testing.T) { testShell(t, 1) }

// TestShellServers does so for what takes several servers.
func TestShellServers(t *testing.T) { testShell(t, 3) }

// testShell runs the scripts for so many servers, all in one shell.
func testShell(t *testing.T, servers int) {
	c, err := minihbase.Start(context.Background(), minihbase.Options{InMemory: true, Servers: servers, Quotas: servers == 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	var list []script
	for _, s := range scripts {
		if s.servers == servers {
			list = append(list, s)
		}
	}
	printed, err := peers.Shell(t, c.ZooKeeper(), joined(t, list), peers.Interactive)
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			got := cut(t, s, printed)
			if *record {
				write(t, s.embedded(), got)
			}
			if diff := cmp.Diff(normalize(read(t, s.real())), normalize(got)); diff != "" {
				t.Errorf("the shell prints otherwise than on real HBase (- real, + embedded):\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
