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

func TestHBase26(t *testing.T) { run(t, peers.HBase26) }

func TestHBase24(t *testing.T) { run(t, peers.HBase24) }

func run(t *testing.T, set string) {
	c := peers.Start(t, set)
	killed := 0
	conformance.Run(t, c.Address(), conformance.Options{
		// A killed server costs about 40 s of session and log replay.
		Patience: 2 * time.Minute,
		Load:     20 * time.Second,
		Faults: conformance.Faults{
			Kill: func(_ context.Context, server hbase.ServerName) error {
				if killed = c.ServerNumber(server.Address()); killed == 0 {
					return fmt.Errorf("%v is none of the cluster's servers", server)
				}
				c.Kill(killed)
				return nil
			},
			Start: func(context.Context) error {
				c.StartServer(killed)
				return nil
			},
		},
	})
}
