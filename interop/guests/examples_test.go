//go:build interop

package guests

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/interop/upproc"
)

// TestExamples runs the test suites of examples/ in the languages that need the
// binary, as their users do. Go's is one of the ordinary tests.
func TestExamples(t *testing.T) {
	bin := upproc.Build(t)
	for _, tc := range []struct {
		name    string
		command []string
		want    string
	}{
		{"python", []string{"python3", "-m", "unittest", "-v"}, "\nOK"},
		{"node", []string{"node", "--test"}, "# fail 0"},
		{"java", []string{"mvn", "-B", "test"}, "BUILD SUCCESS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// In a copy: compilers leave things behind.
			dir := filepath.Join(t.TempDir(), tc.name)
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", tc.name))); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, tc.command[0], tc.command[1:]...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "HOLDFAST="+bin)
			cmd.WaitDelay = 10 * time.Second
			begin := time.Now()
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), tc.want) {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%v", time.Since(begin).Round(time.Millisecond))
		})
	}
}
