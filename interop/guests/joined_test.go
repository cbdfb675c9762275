//go:build interop

package guests

import (
	"fmt"
	"strings"
	"testing"
)

// boundary is a command between two scripts that one shell runs.
func boundary(s script) string { return fmt.Sprintf("'script %s'", s.name) }

// joined are the commands of several scripts as one.
func joined(t *testing.T, list []script) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(boundary(s) + "\n" + read(t, s.file()))
	}
	return b.String()
}

// cut gives a script's part of what the shell printed for several.
func cut(t *testing.T, s script, printed string) string {
	t.Helper()
	_, rest, ok := strings.Cut(printed, fmt.Sprintf("hbase> %s\n=> %q\n", boundary(s), "script "+s.name))
	if !ok {
		t.Fatalf("the shell did not come to %s:\n%s", s.name, printed)
	}
	mine, _, _ := strings.Cut(rest, "hbase> 'script ")
	return mine
}
