package hbase_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/conformance"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// startCluster brings an embedded cluster up for the test.
func startCluster(t testing.TB) *minihbase.Cluster {
	t.Helper()
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	})
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	conformance.Run(t, c.Address(), conformance.Options{
		Load: time.Second,
		Faults: conformance.Faults{
			Kill: func(_ context.Context, server hbase.ServerName) error {
				i, err := c.FindServer(server.String())
				if err != nil {
					return err
				}
				return c.KillRegionServer(i)
			},
			Start: func(context.Context) error {
				_, err := c.AddRegionServer()
				return err
			},
			Pause: func(_ context.Context, server hbase.ServerName) error {
				i, err := c.FindServer(server.String())
				if err != nil {
					return err
				}
				return c.PauseRegionServer(i)
			},
			Resume: func(_ context.Context, server hbase.ServerName) error {
				i, err := c.FindServer(server.String())
				if err != nil {
					return err
				}
				return c.ResumeRegionServer(i)
			},
		},
	})
}
