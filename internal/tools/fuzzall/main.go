// Command fuzzall runs every fuzz target of the module for a while each, one
// after another, and fails at the first that finds something.
//
// With -listeners it does not run fuzz targets but lays siege to the listeners
// of a whole embedded cluster, HBase's RPC, ZooKeeper's and the control port, one
// after another: conversations of every kind of request, as they should be and
// spoilt, torn, with lengths that lie, written byte by byte, never read, and
// thousands of connections that say nothing. The cluster is a process of its own;
// the siege fails if that dies, leaves a good client without an answer for
// longer than -patience, needs more memory than -max-rss, or keeps goroutines. The requests
// follow from the seed; how they interleave does not.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

var target = regexp.MustCompile(`^Fuzz\w+$`)

func main() {
	each := flag.Duration("time", 3*time.Second, "how long each target runs")
	only := flag.String("run", "", "only packages whose folder matches this expression")
	listeners := flag.String("listeners", "", "lay siege to these listeners: rpc, zookeeper, control (several with commas), or all")
	seed := flag.Uint64("seed", 1, "of the siege")
	workers := flag.Int("workers", 32, "of the siege: conversations at one time")
	crowd := flag.Int("crowd", 10_000, "of the siege: idle connections held meanwhile")
	maxRSS := flag.Int64("max-rss", 2048, "of the siege: memory the cluster may use, in MiB")
	patience := flag.Duration("patience", 30*time.Second, "of the siege: how long a good client may wait; longer on a machine that has other things to do")
	victim := flag.Bool("serve", false, "be the cluster of a siege")
	flag.Parse()
	var err error
	switch {
	case *victim:
		err = serve(os.Stdin, os.Stdout)
	case *listeners != "":
		s := siege{each: *each, seed: *seed, workers: *workers, crowd: *crowd, maxRSS: *maxRSS << 20, patience: *patience}
		if s.names, err = namesOf(*listeners); err == nil {
			err = s.run(context.Background(), os.Stdout)
		}
	default:
		err = run(*each, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
}

// namesOf reads the flag -listeners.
func namesOf(list string) ([]string, error) {
	all := []string{"rpc", "zookeeper", "control"}
	if list == "all" {
		return all, nil
	}
	names := strings.Split(list, ",")
	for _, n := range names {
		if !slices.Contains(all, n) {
			return nil, fmt.Errorf("listener %q is none of %s", n, strings.Join(all, ", "))
		}
	}
	return names, nil
}

func run(each time.Duration, only string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	// Only packages whose test files hold a target are built at all, and a
	// build for fuzzing instruments everything below it: choose with -run.
	out, err := exec.Command("grep", "-rlE", "--include=*_test.go", `^func Fuzz`, ".").Output()
	if err != nil {
		return fmt.Errorf("no fuzz target found: %w", err)
	}
	seen := map[string]bool{}
	ran := 0
	for _, file := range strings.Fields(string(out)) {
		pkg := file[:strings.LastIndexByte(file, '/')]
		if seen[pkg] {
			continue
		}
		seen[pkg] = true
		if !match.MatchString(pkg) {
			continue
		}
		list, err := exec.Command("go", "test", "-list", "^Fuzz", pkg).Output()
		if err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		for _, name := range strings.Fields(string(list)) {
			if !target.MatchString(name) {
				continue
			}
			cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+name+"$", "-fuzztime", each.String(), pkg)
			text, err := cmd.CombinedOutput()
			if err != nil && !onlyTimeUp(text) {
				os.Stderr.Write(text)
				return fmt.Errorf("%s in %s: %w", name, pkg, err)
			}
			ran++
			fmt.Printf("fuzz %-40s %s\n", name, pkg)
		}
	}
	fmt.Printf("fuzz: %d targets, %s each, nothing found\n", ran, each)
	return nil
}

// timeUp matches the failure of a fuzz target whose time was up and which found nothing.
var timeUp = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \([0-9.]+s\)\n    context deadline exceeded\nFAIL\n`)

// onlyTimeUp tells whether go test failed for nothing but the end of -fuzztime:
// on a busy machine its coordinator can take the end of its own deadline for a
// failure (go.dev/issue/75804, in every Go before 1.27). A finding always
// names the input it wrote, or panics, or says more than this one line.
func onlyTimeUp(output []byte) bool {
	where := timeUp.FindIndex(output)
	if where == nil {
		return false
	}
	for _, finding := range []string{"Failing input written", "panic:", "hung or terminated", "fatal error:"} {
		if bytes.Contains(output, []byte(finding)) {
			return false
		}
	}
	return !bytes.Contains(output[where[1]:], []byte("--- FAIL")) && !bytes.Contains(output[:where[0]], []byte("--- FAIL"))
}
