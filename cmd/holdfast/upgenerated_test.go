package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// BenchmarkUpGenerated starts `holdfast up` on a folder that holds a generated
// table of a million regions, from the start of the process to its ready file.
func BenchmarkUpGenerated(b *testing.B) {
	const regions = 1_000_000
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	c, err := minihbase.Start(b.Context(), minihbase.Options{Dir: filepath.Join(dir, "data"), ControlPort: -1})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.GenerateTable(b.Context(), minihbase.GeneratedTable{Name: "g", Regions: regions}); err != nil {
		b.Fatal(err)
	}
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	ready := filepath.Join(dir, "ready.json")
	begin := func() (end func()) {
		cmd := exec.Command(exe, "up", "--dir", filepath.Join(dir, "data"), "--free-ports", "--ready-file", ready, "--die-with-stdin")
		cmd.Env = append(os.Environ(), asCommand+"=1")
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			b.Fatal(err)
		}
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Microsecond) {
			if _, err := os.Stat(ready); err == nil {
				break
			}
			if time.Now().After(deadline) {
				b.Fatal("not ready after two minutes")
			}
		}
		return func() {
			if err := in.Close(); err != nil {
				b.Error(err)
			}
			if err := cmd.Wait(); err != nil {
				b.Error(err)
			}
		}
	}
	for b.Loop() {
		end := begin()
		b.StopTimer()
		end()
		b.StartTimer()
	}
}
