package upproc

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Ready is the document `holdfast up --ready-file` writes.
type Ready struct {
	PID           int      `json:"pid"`
	Address       string   `json:"address"`
	ZooKeeper     string   `json:"zookeeper"`
	Master        string   `json:"master"`
	RegionServers []string `json:"regionservers"`
	Control       string   `json:"control"`
}

// Process is a running `holdfast up`.
type Process struct {
	Ready
	// Start is how long it took from exec to the ready file.
	Start time.Duration
	cmd   *exec.Cmd
	done  chan error
}

// Build compiles the binary once per test and gives its path.
func Build(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..")
	bin := filepath.Join(t.TempDir(), "holdfast")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/holdfast")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// Up starts the binary with all ports free and the given flags, and waits until
// it is ready. It is killed with the test if it still runs.
func Up(t testing.TB, bin string, flags ...string) *Process {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	args := append([]string{"up", "--zk-port", "0", "--master-port", "0", "--rs-port", "0", "--control-port", "0", "--ready-file", ready}, flags...)
	p := &Process{cmd: exec.Command(bin, args...), done: make(chan error, 1)}
	var log strings.Builder
	p.cmd.Stdout, p.cmd.Stderr = &log, &log
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { p.Kill() })
	for {
		if b, err := os.ReadFile(ready); err == nil {
			if err := json.Unmarshal(b, &p.Ready); err != nil {
				t.Fatalf("ready file: %v in %s", err, b)
			}
			p.Start = time.Since(begin)
			return p
		}
		select {
		case err := <-p.done:
			p.done <- err
			t.Fatalf("holdfast up ended: %v\n%s", err, log.String())
		case <-time.After(2 * time.Millisecond):
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("holdfast up is not ready after two minutes\n%s", log.String())
		}
	}
}

// Kill is kill -9; it returns when the process has gone.
func (p *Process) Kill() {
	// An error means that it has ended already, which is what is wanted.
	_ = p.cmd.Process.Kill()
	p.done <- <-p.done
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Wait waits for an orderly end.
func (p *Process) Wait(limit time.Duration) error {
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(limit):
		return os.ErrDeadlineExceeded
	}
}

// RSS is the resident memory in bytes; 0 where the system does not tell.
func (p *Process) RSS() int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}
