//go:build interop

package guests

import (
	"regexp"
	"strings"
)

// What differs between any two runs of the real shell on real HBase.
var volatile = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`Took [\d.]+ seconds`), "Took N seconds"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+`), "STAMP"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}`), "STAMP"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ENCODED"},
	{regexp.MustCompile(`\b1\d{12}\b`), "MILLIS"},
	{regexp.MustCompile(`\b(localhost|127\.0\.0\.1)\b`), "HOST"},
	{regexp.MustCompile(`HOST,\d+,MILLIS`), "SERVER"},
	{regexp.MustCompile(`HOST:\d+`), "HOST:PORT"},
	{regexp.MustCompile(`#<(Java::[\w:]+):0x[0-9a-f]+>`), "#<$1>"},
	{regexp.MustCompile(`(\d+) dead, [\d.]+ average load`), "$1 dead, N average load"},
	// Metrics of status 'simple': the names are the contract, the figures are
	// the moment's. The jars of a server name its coprocessors.
	{regexp.MustCompile(`(\w+)=(?:[\d.]+|NaN|Infinity)`), "$1=N"},
	{regexp.MustCompile(`coprocessors=\[.*\]`), "coprocessors=[]"},
	{regexp.MustCompile(`Aggregate load: \d+, regions: \d+`), "Aggregate load: N, regions: N"},
	// list_regions: size, requests and locality, and the padding they cause.
	{regexp.MustCompile(`(ENCODED\. \|[^|]*\|[^|]*)\|.*`), "$1"},
	{regexp.MustCompile(`-{3,}`), "---"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// normalize makes two transcripts of one script comparable.
func normalize(transcript string) []string {
	var out []string
	for line := range strings.Lines(transcript) {
		// A cluster that has not yet heard from its servers prints this first.
		if strings.HasPrefix(line, "Can not find all details for region") {
			continue
		}
		for _, v := range volatile {
			line = v.re.ReplaceAllString(line, v.to)
		}
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
