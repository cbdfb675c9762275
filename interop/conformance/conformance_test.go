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
	number := func(server hbase.ServerName) (int, error) {
		n := c.ServerNumber(server.Address())
		if n == 0 {
			return 0, fmt.Errorf("%v is none of the cluster's servers", server)
		}
		return n, nil
	}
	conformance.Run(t, c.Address(), conformance.Options{
		// A killed server costs about 40 s of session and log replay.
		Patience: 2 * time.Minute,
		Load:     20 * time.Second,
		Freeze:   20 * time.Second,
		Faults: conformance.Faults{
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
		},
	})
}
