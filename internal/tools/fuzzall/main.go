// Command fuzzall runs every fuzz target of the module for a while each, one
// after another, and fails at the first that finds something.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

var target = regexp.MustCompile(`^Fuzz\w+$`)

func main() {
	each := flag.Duration("time", 3*time.Second, "how long each target runs")
	only := flag.String("run", "", "only packages whose folder matches this expression")
	flag.Parse()
	if err := run(*each, *only); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
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
			if err != nil {
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
