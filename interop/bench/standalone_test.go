//go:build interop

package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/interop/peers"
	"github.com/holdfast-hbase/holdfast/interop/upproc"
)

// server is one of the clusters that are compared, a process of its own.
type server struct {
	name    string
	address string // for package hbase
	zk      string // for Java
	pid     int
	clients []*peer
	idle    int64 // resident bytes before any load
}

const (
	standaloneRows  = 200_000
	standaloneTurns = 5
	// standaloneHeap is HBase's -Xmx unless HEAP says otherwise. Without any, the
	// JVM takes a quarter of the machine, and fills it.
	standaloneHeap = "1g"
)

// BenchmarkPeersStandalone puts `holdfast up`, on disk, beside HBase 2.6.4
// standalone in one box, with the same client programs on both (package hbase
// and Java's Table), in turns: Gets, Puts, scans, memory. The client's
// share of the machine is the same on both sides, so besides operations per
// second there is the CPU time that the server takes for 100,000 of them.
//
// Holdfast runs twice: as it is by default, where a Put is answered once it is
// synced to disk, and with --no-fsync, where it is answered when the process
// has logged it. HBase's default is closer to the second: on a local file system
// its log is handed to the operating system and never synced.
//
// STANDALONE_ROUNDS, STANDALONE_SECONDS and HEAP change the number of rounds,
// their length and HBase's heap.
func BenchmarkPeersStandalone(b *testing.B) {
	seconds := cmp.Or(os.Getenv("STANDALONE_SECONDS"), "2")
	turns, err := strconv.Atoi(cmp.Or(os.Getenv("STANDALONE_ROUNDS"), strconv.Itoa(standaloneTurns)))
	if err != nil || turns < 1 {
		b.Fatalf("STANDALONE_ROUNDS: %d, %v", turns, err)
	}
	b.Setenv("HEAP", cmp.Or(os.Getenv("HEAP"), standaloneHeap))
	all := startServers(b)
	for _, s := range all {
		s.idle = s.rss(b)
		s.load(b)
	}
	// HBase compiles, and so does each Java client.
	for range 4 {
		for _, s := range all {
			for _, p := range s.clients {
				for _, command := range []string{"get callers=64 seconds=2 table=t rows=%d", "put callers=64 seconds=2 table=p rows=%d", "scan mode=plain table=t rows=%d"} {
					p.do(b, command, standaloneRows)
				}
			}
		}
	}
	for c, client := range []string{"go", "java"} {
		for _, callers := range []int{1, 16, 64} {
			race(b, fmt.Sprintf("%s: Gets, %d callers", client, callers), all, c, turns,
				fmt.Sprintf("get callers=%d seconds=%s table=t rows=%d", callers, seconds, standaloneRows))
		}
		for _, callers := range []int{1, 16, 64} {
			race(b, fmt.Sprintf("%s: Puts, %d writers", client, callers), all, c, turns,
				fmt.Sprintf("put callers=%d seconds=%s table=p rows=%d", callers, seconds, standaloneRows))
		}
		race(b, client+": scan, cells", all, c, 3*turns, "scan mode=plain table=t")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "memory in MiB (VmRSS; HBase with -Xmx%s)\n  %-20s%10s%10s%10s%14s", os.Getenv("HEAP"), "", "idle", "now", "highest", "HBase/it now")
	for _, s := range all {
		fmt.Fprintf(&text, "\n  %-20s%10d%10d%10d%14.1f", s.name, s.idle>>20, s.rss(b)>>20, s.status(b, "VmHWM:")>>20, float64(all[0].rss(b))/float64(s.rss(b)))
	}
	b.Log(text.String())
	b.ReportMetric(float64(all[0].rss(b))/float64(all[1].rss(b)), "hbase/holdfast-memory")
}

func startServers(b *testing.B) []*server {
	real := startStandalone(b)
	all := []*server{{name: "HBase 2.6.4", address: "hbase://" + real.zk + "/hbase", zk: real.zk, pid: real.pid}}
	bin := upproc.Build(b)
	for _, v := range []struct {
		name  string
		flags []string
	}{{"Holdfast", nil}, {"Holdfast --no-fsync", []string{"--no-fsync"}}} {
		up := upproc.Up(b, bin, append([]string{"--dir", filepath.Join(b.TempDir(), "data")}, v.flags...)...)
		all = append(all, &server{name: v.name, address: up.Address, zk: up.ZooKeeper, pid: up.PID})
	}
	worker := buildWorker(b)
	source := javaSource(b)
	for i, s := range all {
		s.clients = []*peer{
			startPeer(b, "go", fmt.Sprintf("go%d", i), func() *exec.Cmd { return exec.Command(worker, s.address) }),
			startPeer(b, "java", fmt.Sprintf("java%d", i), func() *exec.Cmd {
				cmd := peers.JavaCommand(b, peers.HBase26, source, s.zk, "blocking")
				cmd.Env = append(cmd.Env, "HEAP=512m")
				return cmd
			}),
		}
	}
	return all
}

// load makes and fills the tables: t is read, from files, and p is written.
func (s *server) load(b *testing.B) {
	client, err := hbase.Open(context.Background(), s.address)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	create(b, client, "t", 1, 1)
	create(b, client, "p", 1, 1)
	s.clients[0].do(b, "bulk mode=batch callers=4 rows=%d table=t", standaloneRows)
	if err := client.Admin().Flush(context.Background(), "t"); err != nil {
		b.Fatal(err)
	}
}

// race lets the servers take turns with one command of one client, and prints
// what came out: medians, and of ratios to the first server their range.
func race(b *testing.B, title string, all []*server, client, turns int, command string) {
	per := make([][]float64, len(all))
	cost := make([][]float64, len(all))
	mine := make([][]float64, len(all))
	p50 := make([][]float64, len(all))
	for range turns {
		for i, s := range all {
			before := s.cpu(b)
			f := s.clients[client].do(b, "%s", command)
			if f.num("errors") > 0 {
				b.Errorf("%s: %s: %v errors: %v", title, s.name, f["errors"], f["first_error"])
			}
			n := max(f.num("acked"), f.num("rows"))
			if n == 0 {
				b.Fatalf("%s: %s did nothing: %v", title, s.name, f)
			}
			per[i] = append(per[i], f.num("per_s"))
			cost[i] = append(cost[i], (s.cpu(b)-before)/n*1e5)
			mine[i] = append(mine[i], f.num("cpu_s_per_100k"))
			p50[i] = append(p50[i], f.num("p50_us"))
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n  %-20s%10s%22s%12s%12s%12s%14s", title, "", "per_s", "ratio [range]", "p50 us", "client s", "server s", "HBase/it s")
	for i, s := range all {
		ratios := make([]float64, turns)
		for r := range ratios {
			ratios[r] = per[i][r] / per[0][r]
		}
		fmt.Fprintf(&text, "\n  %-20s%10.0f%22s%12s%12.3f%12.3f%14.2f", s.name, mid(per[i]),
			fmt.Sprintf("%.2f [%.2f..%.2f]", mid(ratios), slices.Min(ratios), slices.Max(ratios)), short(mid(p50[i])), mid(mine[i]), mid(cost[i]), mid(cost[0])/mid(cost[i]))
		if i > 0 {
			unit := strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(title + " " + strings.TrimPrefix(s.name, "Holdfast"))
			b.ReportMetric(mid(ratios), strings.TrimRight(unit, "-")+"-x")
		}
	}
	b.Log(text.String() + "\n  (client s, server s: CPU seconds for 100,000)")
}

// cpu is the CPU time the server's process has used, in seconds.
func (s *server) cpu(b *testing.B) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		b.Fatal(err)
	}
	// The second field, in parentheses, may hold anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const utime, stime, hertz = 11, 12, 100
	ticks := 0
	for _, i := range []int{utime, stime} {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return float64(ticks) / hertz
}

func (s *server) rss(b *testing.B) int64 { return s.status(b, "VmRSS:") }

// status is a size from the process's status, in bytes.
func (s *server) status(b *testing.B, key string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb << 10
		}
	}
	b.Fatalf("no %s in the status of %s", key, s.name)
	return 0
}
