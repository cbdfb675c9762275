package cells

import (
	"bytes"
	"math"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

func TestTTLTags(t *testing.T) {
	visibility := AppendTag(nil, TagVisibility, []byte("secret"))
	tags := append(append([]byte{}, visibility...), TTLTag(500)...)
	if ttl, ok := TTLOf(tags); !ok || ttl != 500 {
		t.Errorf("TTLOf: %d, %v", ttl, ok)
	}
	again := WithTTL(append(append([]byte{}, tags...), TTLTag(7)...), 9)
	if ttl, ok := TTLOf(again); !ok || ttl != 9 || !bytes.HasPrefix(again, visibility) || bytes.Count(again, []byte{TagTTL, 0, 0}) != 1 {
		t.Errorf("WithTTL: %x", again)
	}
	if _, ok := TTLOf(visibility); ok {
		t.Error("a TTL where there is none")
	}
	if got := AppendTag(nil, 1, make([]byte, math.MaxUint16)); got != nil {
		t.Error("a tag too long was appended")
	}
	for _, c := range []struct {
		ts, ttl, now int64
		expired      bool
	}{{100, 50, 150, false}, {100, 50, 151, true}, {math.MaxInt64 - 1, 50, 1000, false}, {0, math.MaxInt64, math.MaxInt64, false}} {
		cell := &Cell{Timestamp: c.ts, Tags: TTLTag(c.ttl)}
		if got := tagExpired(cell, c.now); got != c.expired {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func FuzzTags(f *testing.F) {
	spoil.Add(f, TTLTag(1))
	spoil.Add(f, []byte{0, 0, 1})
	spoil.Add(f, []byte{0xFF, 0xFF, 8, 1})
	f.Fuzz(func(t *testing.T, tags []byte) {
		rest := tags
		for n := 0; ; n++ {
			_, _, next, ok := NextTag(rest)
			if !ok {
				break
			}
			if len(next) >= len(rest) {
				t.Fatal("no progress")
			}
			rest = next
		}
		if ttl, ok := TTLOf(WithTTL(tags, 77)); !ok || ttl != 77 {
			t.Fatalf("%x: %d, %v", tags, ttl, ok)
		}
	})
}
