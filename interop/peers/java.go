//go:build linux || darwin

package peers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// JavaProgram compiles the *.java files of a folder and runs one's main with the
// client of a set on its class path against a ZooKeeper. It gives what that
// prints; it may take limit.
func JavaProgram(t testing.TB, set, folder, main, zookeeper string, limit time.Duration, args ...string) (string, error) {
	t.Helper()
	host, port, err := net.SplitHostPort(zookeeper)
	if err != nil {
		t.Fatal(err)
	}
	dir := Dir(t, set)
	sources, err := filepath.Glob(filepath.Join(folder, "*.java"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no Java in %s (%v)", folder, err)
	}
	classes := t.TempDir()
	jars := filepath.Join(dir, "lib-"+set, "*")
	// Programs that live for seconds are not worth much compiling.
	quick := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}
	javac := append([]string{"-J" + quick[0], "-J" + quick[1], "-proc:none", "-nowarn", "-Xlint:none", "-d", classes, "-cp", jars}, sources...)
	if out, err := exec.Command("javac", javac...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	path := classes + string(os.PathListSeparator) + filepath.Join(dir, "conf") + string(os.PathListSeparator) + jars
	command := append([]string{"java"}, quick...)
	command = append(command, "-cp", path, main, "hbase.zookeeper.quorum="+host, "hbase.zookeeper.property.clientPort="+port)
	env := append(os.Environ(), "PEERS_DIR="+dir)
	return runScript(env, limit, nil, append(command, args...)...)
}
