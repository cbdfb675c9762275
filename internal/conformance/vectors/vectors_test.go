package vectors_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/conformance/vectors"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t *testing.T, folder string) []*vectors.Theme {
	t.Helper()
	themes, err := vectors.Load(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return themes
}

func start(t *testing.T, clock *minihbase.Clock) *minihbase.Cluster {
	t.Helper()
	// One server, as the recorded cluster had: a raw Multi of two regions needs
	// both in one place.
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1, Servers: 1, Events: -1, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// play plays all cases on the embedded cluster: those that wait on one whose
// clock stands and is moved on.
func play(t *testing.T, themes []*vectors.Theme, differs map[string]string) (plain, timed *vectors.Report) {
	plain = vectors.Run(t, start(t, nil).Address(), themes, vectors.Options{
		Embedded: true, Differs: differs, AsJava: vectors.AsJava(),
		Only: func(_ string, c *vectors.Case) bool { return !c.Timed() },
	})
	clock := new(minihbase.Clock)
	clock.Freeze(time.Time{})
	timed = vectors.Run(t, start(t, clock).Address(), themes, vectors.Options{
		Embedded: true, Differs: differs, AsJava: vectors.AsJava(), Clock: clock, Workers: 1,
		Only: func(_ string, c *vectors.Case) bool { return c.Timed() },
	})
	return plain, timed
}

// TestRecorded plays what was recorded from HBase 2.6.4, all of it.
func TestRecorded(t *testing.T) {
	themes := load(t, "../../../testdata/vectors")
	plain, timed := play(t, themes, vectors.Different())
	t.Logf("%v", plain)
	t.Logf("waiting: %v", timed)
	if n := plain.Played + timed.Played; n != 929 {
		t.Errorf("%d cases were played, 929 are recorded", n)
	}
	for _, list := range []map[string]string{vectors.Different(), vectors.AsJava()} {
		if names := vectors.Unused(list, themes); len(names) > 0 {
			t.Errorf("no such cases: %v", names)
		}
	}
}

// TestDocumented looks for every difference on the page that tells of them.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../docs/design/embedded.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []map[string]string{vectors.Different(), vectors.DifferentRules()} {
		for name := range list {
			if !bytes.Contains(b, []byte("`"+name+"`")) {
				t.Errorf("docs/design/embedded.md does not tell of %s", name)
			}
		}
	}
}

// TestRules plays cases of our own, whose answers were recorded from HBase 2.6.4
// by this runner (interop/conformance): what no case of the first collection
// shows.
func TestRules(t *testing.T) {
	themes := load(t, "../../../testdata/rules")
	plain, timed := play(t, themes, vectors.DifferentRules())
	t.Logf("%v", plain)
	t.Logf("waiting: %v", timed)
	if names := vectors.Unused(vectors.DifferentRules(), themes); len(names) > 0 {
		t.Errorf("no such cases: %v", names)
	}
}
