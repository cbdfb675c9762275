package console_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func up(t testing.TB, o minihbase.Options) *minihbase.Cluster {
	t.Helper()
	c, err := minihbase.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
