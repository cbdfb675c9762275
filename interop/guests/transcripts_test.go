package guests

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTranscriptsAgree: what the real shell printed on the embedded cluster is
// what it printed on real HBase. TestShell says that it still prints that.
func TestTranscriptsAgree(t *testing.T) {
	for _, s := range scripts {
		if diff := cmp.Diff(normalize(read(t, s.real())), normalize(read(t, s.embedded()))); diff != "" {
			t.Errorf("%s (- real, + embedded):\n%s", s.name, diff)
		}
	}
}

// prompt is where a command stands; some print no newline at their end.
var prompt = regexp.MustCompile(`^(?:Took [\d.]+ seconds)?hbase> (.*)`)

// TestTranscriptsAreWhole: every command of a script stands in its transcripts,
// in order.
func TestTranscriptsAreWhole(t *testing.T) {
	for _, s := range scripts {
		var want []string
		for line := range strings.Lines(read(t, s.file())) {
			if line = strings.TrimSpace(line); line != "" && line != "y" && !strings.HasPrefix(line, "#") {
				want = append(want, line)
			}
		}
		for _, file := range []string{s.real(), s.embedded()} {
			var got []string
			for line := range strings.Lines(read(t, file)) {
				if m := prompt.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
					got = append(got, m[1])
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s has not the commands of %s: %s", file, s.file(), cmp.Diff(want, got))
			}
		}
	}
}

// TestNormalizeNotices: a changed value is noticed.
func TestNormalizeNotices(t *testing.T) {
	for _, c := range [][2]string{
		{" a column=f:q, timestamp=1970-01-01T00:00:03, value=v3", " a column=f:q, timestamp=1970-01-01T00:00:03, value=v4"},
		{" a column=f:q, timestamp=1970-01-01T00:00:03, value=v3", " a column=f:q, timestamp=1970-01-01T00:00:04, value=v3"},
		{" a column=f:q, timestamp=2026-12-01T03:37:12.123, value=v3", " b column=f:q, timestamp=2026-12-01T03:37:12.123, value=v3"},
		{"4 row(s)", "5 row(s)"},
		{"COUNTER VALUE = 42", "COUNTER VALUE = 43"},
		{"{NAME => 'f', VERSIONS => '3'}", "{NAME => 'f', VERSIONS => '4'}"},
		{"1 active master, 0 backup masters, 3 servers, 0 dead, 1.6667 average load", "1 active master, 0 backup masters, 2 servers, 0 dead, 1.6667 average load"},
		{"1 active master, 0 backup masters, 3 servers, 0 dead, 1.6667 average load", "1 active master, 0 backup masters, 3 servers, 1 dead, 1.6667 average load"},
		{"Aggregate load: 3, regions: 13", "Aggregate load: 3, regions: 12"},
		{"        numberOfStores=3, numberOfStorefiles=0, storeRefCount=0, x", "        numberOfStores=2, numberOfStorefiles=0, storeRefCount=0, x"},
		{"        numberOfStores=3, storeRefCount=0, usedHeapMB=1", "        numberOfStores=3, storeRefCount=0, usedHepaMB=1"},
		{"        numberOfStores=3, storeRefCount=0, usedHeapMB=1", "        numberOfStores=3, storeRefCount=0"},
		{"VERSIONS=3", "VERSIONS=4"},
		{"evictedBlocks=1, failedRegionsSize=0", "evictedBlocks=1, failedRegionsSize=1"},
		{"TYPE => THROTTLE, LIMIT => 10req/sec, SCOPE => MACHINE", "TYPE => THROTTLE, LIMIT => 11req/sec, SCOPE => MACHINE"},
		{"ERROR: Unknown table tr_none!", "ERROR: Unknown table tr_nona!"},
		{"ERROR: org.apache.hadoop.hbase.UnknownRegionException: x", "ERROR: org.apache.hadoop.hbase.UnknownRegionsException: x"},
		{"ERROR: o.NoSuchColumnFamilyException: Column family nope does not exist in region r in table 't', {TABLE_ATTRIBUTES => {}}", "ERROR: o.NoSuchColumnFamilyException: Column family nape does not exist in region r in table 't', {TABLE_ATTRIBUTES => {}}"},
		{"=> [\"g\", \"n\"]", "=> [\"g\", \"m\"]"},
		{"Took 1.0 seconds=> 5", "Took 1.0 seconds=> 6"},
		{"tr_a,g,1796109598531.9d1be81a84d33e47c1ea13d4dae849a1.", "tr_a,h,1796109598531.9d1be81a84d33e47c1ea13d4dae849a1."},
		{"value=\\x00\\xFFbin", "value=\\x00\\xFEbin"},
		{"=> true", "=> false"},
		{"Caused by: java.io.IOException: a", "Caused by: java.io.IOException: b"},
	} {
		if slices.Equal(normalize(c[0]), normalize(c[1])) {
			t.Errorf("%q and %q are taken for the same: %q", c[0], c[1], normalize(c[0]))
		}
	}
	// And what differs between any two runs is not.
	for _, c := range [][2]string{
		{"Took 1.2345 seconds", "Took 0.1 seconds"},
		{"tr_a,g,1796109598531.9d1be81a84d33e47c1ea13d4dae849a1.", "tr_a,g,1796109598532.8d1be81a84d33e47c1ea13d4dae849a1."},
		{"localhost,26001,1796109598531", "127.0.0.1,39001,1796109598777"},
		{"x\n\tat org.apache.Foo.bar(Foo.java:12)\ny", "x\ny"},
	} {
		if !slices.Equal(normalize(c[0]), normalize(c[1])) {
			t.Errorf("%q and %q differ: %q, %q", c[0], c[1], normalize(c[0]), normalize(c[1]))
		}
	}
}

// hideable are the only parts of a line in which a changed letter or digit may
// go unnoticed.
var hideable = regexp.MustCompile(`Took [\d.]+ seconds|20\d\d-\d\d-\d\d[T ][\d:.]+( \+0000)?|[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d UTC 20\d\d|` +
	`\b[0-9a-f]{32}\b|\b1\d{12}\b|(localhost|127\.0\.0\.1)([:,]\d+)?|0x[0-9a-f]+|[\d.]+ average load|` +
	`\b(requestsPerSecond|\w+MB|\w+KB|\w+RequestsCount|numberOf\w+|compactionProgressPct|\w+CompactingKVs|\w+CompactedKVs|completeSequenceId|` +
	`dataLocality|compressionRatio|evictedBlocks|maxCacheSize)=(-?[\d.]+|NaN|Infinity)|coprocessors=\[.*\]|` +
	`Aggregate load: \d+|( +[\d.]+ \|){3}$|in table '\w+', \{TABLE_ATTRIBUTES => .*`)

// TestNormalizeHidesNothing changes every third letter or digit of the recorded
// transcripts, one at a time, and finds the change in what is compared, unless
// it is in one of the parts that differ from run to run.
func TestNormalizeHidesNothing(t *testing.T) {
	seen := map[string]bool{}
	checked := 0
	for _, s := range scripts {
		for line := range strings.Lines(read(t, s.real())) {
			line = strings.TrimRight(line, "\n")
			if strings.HasPrefix(line, "\tat ") || seen[line] {
				continue
			}
			seen[line] = true
			free := hideable.FindAllStringIndex(line, -1)
			base := strings.Join(normalize(line), "\n")
			for i := range len(line) {
				c := line[i]
				switch {
				case (i+len(line))%3 != 0: // a third of them
					continue
				case c >= '0' && c <= '8' || c >= 'a' && c <= 'y' || c >= 'A' && c <= 'Y':
					c++
				case c == '9' || c == 'z' || c == 'Z':
					c--
				default:
					continue
				}
				if slices.ContainsFunc(free, func(f []int) bool { return i >= f[0] && i < f[1] }) {
					continue
				}
				checked++
				if changed := line[:i] + string(c) + line[i+1:]; strings.Join(normalize(changed), "\n") == base {
					t.Errorf("%q and %q are taken for the same", line, changed)
				}
			}
		}
	}
	if checked < 5_000 {
		t.Errorf("%d characters changed", checked)
	}
}
