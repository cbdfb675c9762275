//go:build interop

package conformance

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/conformance/vectors"
	"github.com/holdfast-hbase/holdfast/interop/peers"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// inexpressible are the recorded cases that HBase's client has no words for,
// with the reason: none, since it lends its stubs.
var inexpressible = map[string]string{}

// TestJavaClientRecorded plays the recorded cases on the embedded cluster with
// the client they were recorded with.
func TestJavaClientRecorded(t *testing.T) {
	// One server, as the recorded cluster had.
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1, Servers: 1, Events: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	// What our own client does otherwise is not in play here.
	known := vectors.Different()
	for name := range vectors.DifferentClient() {
		delete(known, name)
	}
	// Retries that end in the recorded error need not be waited for.
	javaPlays(t, c.ZooKeeper(), known, "hbase.client.pause=2", "threads=8")
}

// javaPlays plays all recorded cases with HBase's client: every one of them must
// pass, but for those known to differ, which must not.
func javaPlays(t *testing.T, zookeeper string, known map[string]string, args ...string) {
	t.Helper()
	out, err := peers.JavaProgram(t, peers.HBase26, "recorded", "PlayCases", zookeeper, 15*time.Minute, append(args, "folder=../../testdata/vectors")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var total struct{ Played, Passed, Steps int }
	differing, unsaid := make(map[string]string), make(map[string]string)
	for line := range strings.Lines(out) {
		var r struct{ Case, Outcome, Why string }
		if !strings.HasPrefix(line, "{") {
			continue
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch r.Outcome {
		case "":
			if err := json.Unmarshal([]byte(line), &total); err != nil {
				t.Fatal(err)
			}
		case "inexpressible":
			unsaid[r.Case] = r.Why
		case "differs":
			differing[r.Case] = r.Why
		default:
			t.Errorf("%s: %s", r.Case, r.Why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(differing)) {
		if known[name] == "" {
			t.Errorf("%s: %s", name, differing[name])
		}
	}
	for name, why := range known {
		if differing[name] == "" {
			t.Errorf("%s passes, though it was known not to: %s", name, why)
		}
	}
	if !maps.Equal(unsaid, inexpressible) {
		t.Errorf("not to be expressed: %v, want %v", unsaid, inexpressible)
	}
	if total.Played != 929 || total.Passed+len(differing)+len(unsaid) != total.Played {
		t.Errorf("%d cases played, %d pass, %d differ, %d not expressed; 929 are recorded", total.Played, total.Passed, len(differing), len(unsaid))
	}
	t.Logf("%d cases played with HBase's client, %d pass, %d differ, %d not to be expressed; %d steps", total.Played, total.Passed, len(differing), len(unsaid), total.Steps)
}
