package metamorph

import (
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// Setting is a way to configure the client that must not change any answer.
type Setting struct {
	Name    string
	Options []hbase.Option
	// Warm clients start with a snapshot of routes from before the history.
	Warm bool
	// MayEnd: operations may end for want of attempts, or be turned away.
	MayEnd bool
}

// Settings are all of them; the first is the one every history is played under.
func Settings() []Setting {
	return []Setting{
		{Name: "plain"},
		{Name: "hedged", Options: []hbase.Option{hbase.WithHedgedReads()}},
		{Name: "impatient", Options: []hbase.Option{hbase.WithRPCTimeout(40 * time.Millisecond), hbase.WithPingAfter(15 * time.Millisecond)}},
		{Name: "small", Options: []hbase.Option{
			hbase.WithScannerMaxResultSize(200), hbase.WithScannerCaching(3), hbase.WithBatchLimits(300, 2), hbase.WithWriteBuffer(1024),
		}},
		{Name: "tiny", Options: []hbase.Option{
			hbase.WithScannerMaxResultSize(1), hbase.WithScannerCaching(1), hbase.WithBatchLimits(1, 1), hbase.WithMaxInFlight(1), hbase.WithCompressor("gzip"),
		}},
		{Name: "compressed", Options: []hbase.Option{hbase.WithCompressor("zstd")}},
		{Name: "snappy, hedged, small", Options: []hbase.Option{hbase.WithCompressor("snappy"), hbase.WithHedgedReads(), hbase.WithScannerMaxResultSize(300)}},
		{Name: "watching", Options: []hbase.Option{hbase.WithMetaWatch(100 * time.Millisecond)}},
		{Name: "warm", Warm: true},
		{Name: "warm, watching, hedged", Warm: true, Options: []hbase.Option{hbase.WithMetaWatch(150 * time.Millisecond), hbase.WithHedgedReads()}},
		{Name: "few attempts", MayEnd: true, Options: []hbase.Option{hbase.WithMaxAttempts(3)}},
		{Name: "turning away", MayEnd: true, Options: []hbase.Option{hbase.WithMaxWaitingPerServer(1), hbase.WithPingAfter(15 * time.Millisecond)}},
	}
}

func settingNamed(name string) (Setting, bool) {
	for _, s := range Settings() {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}

// base are the options of every client, before those of the setting: attempts
// are short, since answers get lost all the time, and operations long enough
// for a machine that does much else.
func base() []hbase.Option {
	return []hbase.Option{
		hbase.WithOperationTimeout(operationTimeout), hbase.WithScannerTimeout(operationTimeout),
		hbase.WithRPCTimeout(150 * time.Millisecond), hbase.WithPingAfter(60 * time.Millisecond),
		hbase.WithHooks(attemptsHook{}),
	}
}

// operationTimeout is what every operation has: no fault lasts for anywhere
// near as long.
const operationTimeout = time.Minute

// unsafeTimeout is for operations that the client must not repeat: they wait for
// a lost answer as long as they have time.
const unsafeTimeout = 700 * time.Millisecond
