package session

import (
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t", "g", "p")
		core := c.open()
		for row, want := range map[string]string{"a": "rs1:0", "g": "rs2:0", "z": "rs3:0"} {
			v, a, err := get(t.Context(), core, table, row)
			if err != nil || v != want || a.Attempts != 1 {
				t.Errorf("get %s: %q after %d attempts, %v", row, v, a.Attempts, err)
			}
		}
		if n := c.metaReads(); n > 3 {
			t.Errorf("%d meta reads", n)
		}
	})
}
