package route

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// A hint is followed before the region is open at its new server, which sends
// the caller away. When meta says that it is open there, that is to be believed
// at once, though it says nothing else than the hint did.
func TestHintTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		r := mustLocate(t, c, key(4))
		f.put(meta.Location{Region: regionOf(tbl, 4, 10), Server: server(7), SeqNum: 12, State: "OPENING"})
		time.AfterFunc(100*time.Millisecond, func() { f.moveTo(4, 10, 7, 12) })
		n := c.Moved(r, server(7), 12)
		if n == nil {
			t.Fatal("the hint was not taken")
		}
		c.Rejected(n)
		began := time.Now()
		got := mustLocate(t, c, key(4))
		if got.Server().Name() != server(7) || got.Origin() != FromMeta || !got.Valid() {
			t.Errorf("%v", got)
		}
		if d := time.Since(began); d > 300*time.Millisecond {
			t.Errorf("took %v", d)
		}
		// Should it be sent away again, it waits as if meta had been wrong from
		// the start.
		c.Rejected(got)
		began = time.Now()
		mustLocate(t, c, key(4))
		if d := time.Since(began); d < 5*time.Millisecond {
			t.Errorf("the second time it took only %v", d)
		}
	})
}
