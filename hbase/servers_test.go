package hbase_test

import (
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestServersTellWhatTheClientKnows(t *testing.T) {
	_, tab := faulty(t, minihbase.Options{})
	for range 30 {
		if _, err := tab.Get(t.Context(), hbase.NewGet("x")); err != nil {
			t.Fatal(err)
		}
	}
	list := tab.Client().Servers()
	if len(list) == 0 {
		t.Fatal("no server is known")
	}
	for _, s := range list {
		if s.Server.IsZero() || s.Since.IsZero() || s.Limit == 0 || s.RetryTokens != 10 || s.Err != nil || s.Slow {
			t.Errorf("%+v", s)
		}
	}
}
