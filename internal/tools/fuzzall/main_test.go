package main

import "testing"

// TestOnlyTimeUp: an end of the fuzzing time that go test takes for a failure
// passes, and nothing else does.
func TestOnlyTimeUp(t *testing.T) {
	const begun = "fuzz: elapsed: 0s, gathering baseline coverage: 0/14 completed\n" +
		"fuzz: elapsed: 0s, execs: 10749 (22827/sec), new interesting: 4 (total: 18)\n"
	const ended = "FAIL\nexit status 1\nFAIL\texample.com/module/internal/meta\t0.477s\n"
	for _, test := range []struct {
		name, output string
		want         bool
	}{
		{"time was up", begun + "--- FAIL: FuzzParse (0.47s)\n    context deadline exceeded\n" + ended, true},
		{"a finding", begun + "--- FAIL: FuzzParse (0.05s)\n    --- FAIL: FuzzParse (0.00s)\n        parse_test.go:9: wrong\n" +
			"    \n    Failing input written to testdata/fuzz/FuzzParse/3a1b\n" + ended, false},
		{"a finding that waited too long", begun + "--- FAIL: FuzzParse (0.05s)\n    --- FAIL: FuzzParse (0.00s)\n        parse_test.go:9: context deadline exceeded\n" +
			"    \n    Failing input written to testdata/fuzz/FuzzParse/3a1b\n" + ended, false},
		{"a seed that fails", "--- FAIL: FuzzParse (0.00s)\n    --- FAIL: FuzzParse/seed#1 (0.00s)\n        parse_test.go:9: context deadline exceeded\n" + ended, false},
		{"a worker that died", begun + "--- FAIL: FuzzParse (0.47s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\n" + ended, false},
		{"a panic", begun + "panic: x\n--- FAIL: FuzzParse (0.47s)\n    context deadline exceeded\n" + ended, false},
		{"a build that fails", "# example.com/module/internal/meta\nparse_test.go:9: undefined: x\nFAIL\texample.com/module/internal/meta [build failed]\n", false},
		{"more than one line", begun + "--- FAIL: FuzzParse (0.47s)\n    context deadline exceeded\n    and more\n" + ended, false},
	} {
		if got := onlyTimeUp([]byte(test.output)); got != test.want {
			t.Errorf("%s: taken for the end of the time: %v, want %v", test.name, got, test.want)
		}
	}
}
