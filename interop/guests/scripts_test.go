package guests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script is a list of commands of the HBase shell and what it printed for them
// on a real cluster, and on the embedded one.
type script struct {
	// name: the commands are in name.txt, the transcripts in testdata.
	name string
	// servers is how many region servers the script is for.
	servers int
	// on is the release it was recorded on: 2.6.4, or 2.4.17 for what of the
	// shell wants an endpoint of that release.
	on string
}

var scripts = []script{
	{"shell", 1, "2.6.4"},
	{"shell-admin", 3, "2.6.4"},
	{"shell-groups", 3, "2.4.17"},
}

func (s script) file() string     { return s.name + ".txt" }
func (s script) real() string     { return filepath.Join("testdata", s.name+"-"+s.on+".txt") }
func (s script) embedded() string { return filepath.Join("testdata", s.name+"-embedded.txt") }

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestScriptsAreLong: what the transcripts are worth.
func TestScriptsAreLong(t *testing.T) {
	commands := 0
	for _, s := range scripts {
		for line := range strings.Lines(read(t, s.file())) {
			if line = strings.TrimSpace(line); line != "" && line != "y" && !strings.HasPrefix(line, "#") {
				commands++
			}
		}
	}
	if commands < 400 {
		t.Errorf("%d commands", commands)
	}
}
