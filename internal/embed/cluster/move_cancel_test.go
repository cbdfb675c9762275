package cluster

import (
	"context"
	"testing"
	"time"
)

// A caller that leaves while the region is on its way does not leave the region
// behind: it opens all the same.
func TestMoveOutlivesItsCaller(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	to := (index(t, c, l) + 1) % 3
	c.controls.SetTransitionGap(50 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Move(ctx, l.Region.EncodedName(), to) }()
	eventually(t, "OPENING in meta", func() bool { return find(t, c, table("t"), "a").State == "OPENING" })
	cancel()
	<-done
	target, _ := c.ServerName(to)
	eventually(t, "OPEN at the target", func() bool {
		n := find(t, c, table("t"), "a")
		return n.State == "OPEN" && n.Server == target
	})
	if _, err := get(t, find(t, c, table("t"), "a"), "a"); err != nil {
		t.Error(err)
	}
}
