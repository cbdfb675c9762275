package guests

import (
	"regexp"
	"strings"
)

// What differs between any two runs of the real shell on real HBase, and what
// stands for it. Nothing else is hidden: TestNormalizeHidesNothing.
var volatile = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`^Took [\d.]+ seconds`), "Took N seconds"},
	// Times of this century: those of 1970 are the scripts' own.
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\dT[\d:.]+`), "STAMP"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}`), "STAMP"},
	{regexp.MustCompile(`\b[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d UTC 20\d\d\b`), "STAMP"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ENCODED"},
	{regexp.MustCompile(`\b1\d{12}\b`), "MILLIS"},
	{regexp.MustCompile(`\b(localhost|127\.0\.0\.1)\b`), "HOST"},
	{regexp.MustCompile(`HOST,\d+,MILLIS`), "SERVER"},
	{regexp.MustCompile(`\bHOST:\d+\b`), "HOST:PORT"},
	{regexp.MustCompile(`#<(Java::[\w:]+):0x[0-9a-f]+>`), "#<$1>"},
	{regexp.MustCompile(`(\d+) dead, [\d.]+ average load`), "$1 dead, N average load"},
	// Figures of the moment: these metrics, and no others.
	{regexp.MustCompile(`\b(requestsPerSecond|usedHeapMB|maxHeapMB|readRequestsCount|writeRequestsCount|filteredReadRequestsCount|` +
		`cpRequestsCount|numberOfOnlineRegions|compactionProgressPct|totalCompactingKVs|currentCompactedKVs|` +
		`numberOfStorefiles|storefiles|storefileUncompressedSizeMB|storefileSizeMB|memstoreSizeMB|compressionRatio|` +
		`storefileIndexSizeKB|rootIndexSizeKB|totalStaticIndexSizeKB|totalStaticBloomSizeKB|dataLocality|` +
		`completeSequenceId|evictedBlocks|maxCacheSize)=(?:-?[\d.]+|NaN|Infinity)`), "$1=N"},
	// A server's stores are as many as it has regions, which is the balancer's
	// choice; a region's count.
	{regexp.MustCompile(`^(\s*requestsPerSecond=N, .*numberOfStores)=\d+`), "$1=N"},
	// Told only if there are files of a megabyte.
	{regexp.MustCompile(` compressionRatio=N,`), ""},
	{regexp.MustCompile(`#<HBaseReceiver:0x[0-9a-f]+>`), "#<HBaseReceiver>"},
	// HBase's words for a family that is not there end with the whole descriptor.
	{regexp.MustCompile(`^(ERROR: \S+NoSuchColumnFamilyException: Column family \w+ does not exist in region .* in table '\w+'), \{TABLE_ATTRIBUTES => .*`), "$1"},
	// The jars of a server name its coprocessors.
	{regexp.MustCompile(`coprocessors=\[.*\]`), "coprocessors=[]"},
	{regexp.MustCompile(`^Aggregate load: \d+, regions: `), "Aggregate load: N, regions: "},
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
		// Where in a server's code an exception comes from.
		if strings.HasPrefix(line, "\tat ") {
			continue
		}
		line = strings.TrimRight(line, "\n")
		for _, v := range volatile {
			line = v.re.ReplaceAllString(line, v.to)
		}
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
