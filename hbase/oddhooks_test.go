package hbase_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// oddHook gives whatever context it is told to.
type oddHook struct {
	give func(context.Context) context.Context
}

func (h oddHook) OperationStart(ctx context.Context, _ hbase.Operation) context.Context {
	return h.give(ctx)
}
func (h oddHook) OperationEnd(context.Context, hbase.Operation, hbase.OperationResult) {}
func (h oddHook) AttemptStart(ctx context.Context, _ hbase.Attempt) context.Context {
	return h.give(ctx)
}
func (h oddHook) AttemptEnd(context.Context, hbase.Attempt, hbase.AttemptResult) {}
func (h oddHook) ScanStart(ctx context.Context, _ hbase.ScanInfo) context.Context {
	return h.give(ctx)
}
func (h oddHook) ScanEvent(context.Context, hbase.ScanInfo, hbase.ScanEvent) {}
func (h oddHook) ScanEnd(context.Context, hbase.ScanInfo, hbase.ScanResult)  {}

// TestHooksWithOddContexts: a hook that gives no context changes nothing, and
// one that gives an ended one ends the calls.
func TestHooksWithOddContexts(t *testing.T) {
	t.Parallel()
	c, _ := faulty(t, minihbase.Options{})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, give := range map[string]func(context.Context) context.Context{
		"none":  func(context.Context) context.Context { return nil },
		"ended": func(context.Context) context.Context { return canceled },
	} {
		client, err := hbase.Open(t.Context(), c.Address(), hbase.WithHooks(oddHook{give}))
		if err != nil {
			t.Fatal(err)
		}
		tab, err := client.Table("t")
		if err != nil {
			t.Fatal(err)
		}
		for what, call := range calls(tab) {
			within(t, what, func() {
				err := call(t.Context())
				if name == "none" && err != nil || name == "ended" && err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%s with a hook that gives %s: %v", what, name, err)
				}
			})
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
