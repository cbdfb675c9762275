//go:build interop

package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/torture"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestTortureEmbedded is the plan that real HBase gets, to the second, on the
// embedded cluster: make test has it with a shorter pause.
func TestTortureEmbedded(t *testing.T) {
	t.Parallel()
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	})
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	report(ctx, t, torture.Config{Client: client, Cluster: torture.Embedded{Mini: c}, Plan: torture.DefaultPlan(20 * time.Second)})
}
