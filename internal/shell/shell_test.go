package shell

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

var rewrite = flag.Bool("rewrite", false, "write the transcript that was seen")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *hbase.Client {
	t.Helper()
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// volatile is what differs between two runs.
var volatile = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+`), "STAMP"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ENCODED"},
	{regexp.MustCompile(`\b1\d{12}\b`), "MILLIS"},
	{regexp.MustCompile(`127\.0\.0\.1[:,]\d+`), "HOST:PORT"},
	{regexp.MustCompile(`after [\d.]+[mµn]?s( and \d+ fruitless reads?)?`), "after TIME"},
	{regexp.MustCompile(`proc(edure)? \d+`), "procedure N"},
}

// TestSession plays a session on an embedded cluster and compares the
// transcript with the one in testdata (go test -rewrite renews it).
func TestSession(t *testing.T) {
	script, err := os.ReadFile("testdata/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &Shell{Client: open(t), Out: &out, Quiet: true}
	for line := range strings.Lines(string(script)) {
		fmt.Fprintf(&out, "> %s", line)
		if err := s.Run(t.Context(), strings.TrimSpace(line)); err != nil {
			s.PrintError(err)
		}
	}
	got := out.String()
	for _, v := range volatile {
		got = v.re.ReplaceAllString(got, v.to)
	}
	const golden = "testdata/session.golden"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		line := func(l []string) string {
			if i < len(l) {
				return l[i]
			}
			return "(nothing)"
		}
		if line(g) != line(w) {
			t.Fatalf("line %d of the transcript:\n got %q\nwant %q", i+1, line(g), line(w))
		}
	}
}

func TestScriptStops(t *testing.T) {
	client := open(t)
	for _, tc := range []struct {
		stop bool
		want string
	}{{true, "list\n"}, {false, "1 row(s)"}} {
		var out bytes.Buffer
		s := &Shell{Client: client, Out: &out, Quiet: true}
		err := s.Script(t.Context(), strings.NewReader("create 'x', 'f'\nnonsense\nlist\n"), tc.stop)
		var unknown *UnknownCommandError
		if !tc.stop && !errors.As(err, &unknown) {
			t.Errorf("stop %v: %v, want the unknown command", tc.stop, err)
		}
		if strings.Contains(out.String(), "1 row(s)") == tc.stop {
			t.Errorf("stop %v: printed %q", tc.stop, out.String())
		}
		if tc.stop && err == nil {
			t.Error("no error")
		}
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	s := &Shell{Client: open(t), Out: &out, JSON: true}
	script := "create 't', 'f'\nput 't', \"r\\x01\", 'f:q', 'v', 5\nscan 't'\ncount 't'\n"
	if err := s.Script(t.Context(), strings.NewReader(script), true); err != nil {
		t.Fatal(err)
	}
	want := `{"command":"create","result":"t"}
{"command":"put","result":null}
{"command":"scan","result":[{"row":"r\\x01","family":"f","qualifier":"q","timestamp":5,"type":"Put","value":"v"}]}
{"command":"count","result":1}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
