package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestRetryTrace(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if out, code := run(t, "shell", c.Address(), "-n", "-e", "create 'orders', 'f'"); code != exitOK {
		t.Fatal(out)
	}
	if _, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Table: "orders"}, Action: minihbase.Fail, Times: 1, Exception: minihbase.Exception{Class: "RegionTooBusyException"}}); err != nil {
		t.Fatal(err)
	}
	out, code := run(t, "retry", "trace", c.Address(), "put", "orders", `a\x00b`, "--column", "f:q", "--value", "v")
	if code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	for _, want := range []string{`put begins, 10s allowed: table orders, row "a\x00b"`, "dial 127.0.0.1:", "so: region busy: keep, wait region busy", "put ends after 2 attempts"} {
		if !strings.Contains(out, want) {
			t.Errorf("without %q:\n%s", want, out)
		}
	}
	for _, call := range []string{"get", "exists", "scan", "increment"} {
		args := []string{"retry", "trace", c.Address(), call, "orders", "n", "--times", "2", "-o", "json"}
		if call == "increment" {
			args = append(args, "--column", "f:n", "--value", "3")
		}
		out, code := run(t, args...)
		var doc struct {
			OK    bool
			Trace struct {
				Entries []any
				Totals  map[string]float64
			}
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitOK || !doc.OK || doc.Trace.Totals["calls"] < 2 || len(doc.Trace.Entries) < 5 {
			t.Errorf("%s: exit code %d, %v:\n%s", call, code, err, out)
		}
	}
	out, code = run(t, "retry", "trace", c.Address(), "get", "absent", "r")
	if code != exitNo || !strings.Contains(out, "table missing: there is no such table") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for args, want := range map[string]string{
		"get orders":          "usage",
		"nonsense orders r x": "which call",
		"put orders r":        "needs --column",
		"increment orders r --column f:q --value x": "not a whole number",
		"scan orders r --limit 0":                   "less than 1",
		"get a:b:c r":                               "",
	} {
		if out, code := run(t, append([]string{"retry", "trace"}, strings.Fields(args)...)...); code != exitUsage {
			t.Errorf("%s: exit code %d, %s (want %s)", args, code, out, want)
		}
	}
}

func TestRetrySchedule(t *testing.T) {
	out, code := run(t, "retry", "schedule")
	for _, want := range []string{"transit", "66-126 attempts", "10 20 40 80", "Java 2.6.4", "100 200 300 500", "16 attempts in 2m8.1s", "16 attempts in 18m8.1s"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q:\n%s", code, want, out)
		}
	}
	out, _ = run(t, "retry", "schedule", "--timeout", "3s", "--rpc-timeout", "60s")
	if !strings.Contains(out, "1 attempts in 3s") || !strings.Contains(out, "One lost answer ends the operation") {
		t.Errorf("%s", out)
	}
	out, _ = run(t, "retry", "schedule", "--hbase", "1.4.14", "--pause", "50ms", "--retries", "21", "-o", "json")
	var doc schedule
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.Java.Failing.TotalMs != 114050 || doc.Java.Failing.Attempts != 21 {
		t.Errorf("%v, %+v", err, doc.Java)
	}
	for _, args := range [][]string{{"--hbase", "two"}, {"--hbase", "2"}, {"--timeout", "0s"}, {"--pause", "0s"}, {"extra"}} {
		if _, code := run(t, append([]string{"retry", "schedule"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
