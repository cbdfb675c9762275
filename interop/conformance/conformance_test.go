//go:build interop

package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/conformance"
	"github.com/holdfast-hbase/holdfast/interop/peers"
)

func TestHBase26(t *testing.T) {
	t.Parallel() // most of the time goes by in waiting for HBase
	c := peers.Start(t, peers.HBase26)
	run(t, c, suiteFaults(c))
}

// Kills and freezes of 2.4 are interop/cluster's, which has its own minutes for
// them.
func TestHBase24(t *testing.T) {
	t.Parallel()
	c := peers.Start(t, peers.HBase24)
	t.Run("aggregates", func(t *testing.T) { aggregates(t, c) })
	t.Run("suite", func(t *testing.T) { run(t, c, conformance.Faults{}) })
}

func run(t *testing.T, c *peers.Cluster, faults conformance.Faults) {
	conformance.Run(t, c.Address(), conformance.Options{
		// A killed server costs about 40 s of session and log replay.
		Patience: 2 * time.Minute,
		Load:     20 * time.Second,
		Freeze:   20 * time.Second,
		Faults:   faults,
	})
}

// suiteFaults are the faults of a real cluster, done to its processes.
func suiteFaults(c *peers.Cluster) conformance.Faults {
	killed := 0
	number := func(server hbase.ServerName) (int, error) {
		n := c.ServerNumber(server.Address())
		if n == 0 {
			return 0, fmt.Errorf("%v is none of the cluster's servers", server)
		}
		return n, nil
	}
	return conformance.Faults{
		Kill: func(_ context.Context, server hbase.ServerName) (err error) {
			if killed, err = number(server); err == nil {
				c.Kill(killed)
			}
			return err
		},
		Pause: func(_ context.Context, server hbase.ServerName) error {
			n, err := number(server)
			if err == nil {
				c.Pause(n)
			}
			return err
		},
		Resume: func(_ context.Context, server hbase.ServerName) error {
			n, err := number(server)
			if err == nil {
				c.Resume(n)
			}
			return err
		},
		Start: func(context.Context) error {
			c.StartServer(killed)
			return nil
		},
	}
}
