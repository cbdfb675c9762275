//go:build interop

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// peer is a client in a process of its own that does what it is told: the
// program in the folder worker, or PeerBench.java.
type peer struct {
	name  string
	short string // for the names of tables
	stdin *bufio.Writer
	out   *bufio.Scanner
	// command makes another process of the kind.
	command func() *exec.Cmd
	end     func()
}

// figures is an answer of a peer.
type figures map[string]any

func (f figures) num(key string) float64 {
	v, _ := f[key].(float64)
	return v
}

// startPeers starts package hbase and Java's two clients on a real cluster.
func startPeers(b *testing.B, c *peers.Cluster) []*peer {
	bin, source := buildWorker(b), javaSource(b)
	java := func(kind string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := peers.JavaCommand(b, peers.HBase26, source, c.ZooKeeper(), kind)
			cmd.Env = append(cmd.Env, "HEAP=1g")
			return cmd
		}
	}
	return []*peer{
		startPeer(b, "Holdfast", "go", func() *exec.Cmd { return exec.Command(bin, c.Address()) }),
		startPeer(b, "Java Table", "java", java("blocking")),
		startPeer(b, "Java AsyncTable", "async", java("async")),
	}
}

// buildWorker compiles the program in the folder worker.
func buildWorker(b *testing.B) string {
	bin := filepath.Join(b.TempDir(), "worker")
	build := exec.Command("go", "build", "-tags", "interop", "-o", bin, "./worker")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

func javaSource(b *testing.B) string {
	source, err := filepath.Abs("PeerBench.java")
	if err != nil {
		b.Fatal(err)
	}
	return source
}

func startPeer(b *testing.B, name, short string, command func() *exec.Cmd) *peer {
	cmd := command()
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	log, err := os.Create(filepath.Join(b.TempDir(), short+".log"))
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		in.Close() // which ends it; what is left of its answers is read by nobody
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
	})
	b.Cleanup(end)
	p := &peer{name: name, short: short, command: command, end: end, stdin: bufio.NewWriter(in), out: bufio.NewScanner(out)}
	p.out.Buffer(nil, 1<<20)
	return p
}

// do sends a command and waits for its answer.
func (p *peer) do(b *testing.B, format string, args ...any) figures {
	b.Helper()
	f, err := p.try(fmt.Sprintf(format, args...))
	if err != nil {
		b.Fatalf("%s: %v", p.name, err)
	}
	return f
}

func (p *peer) try(command string) (figures, error) {
	if _, err := fmt.Fprintln(p.stdin, command); err != nil {
		return nil, err
	}
	if err := p.stdin.Flush(); err != nil {
		return nil, err
	}
	for p.out.Scan() {
		if !strings.HasPrefix(p.out.Text(), "{") {
			continue // something Java wrote to where answers go
		}
		var f figures
		if err := json.Unmarshal(p.out.Bytes(), &f); err != nil {
			return nil, fmt.Errorf("%q answered %q: %w", command, p.out.Text(), err)
		}
		if e, ok := f["error"].(string); ok {
			return f, fmt.Errorf("%q: %s", command, e)
		}
		return f, nil
	}
	return nil, fmt.Errorf("%q: the process has ended: %v", command, p.out.Err())
}
