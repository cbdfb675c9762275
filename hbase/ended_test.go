package hbase_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// calls are all calls of the API that take a context, but for the
// administration's.
func calls(tab *hbase.Table) map[string]func(context.Context) error {
	c := tab.Client()
	next := func(r *hbase.Result, err error) error {
		if err == io.EOF {
			return nil
		}
		return err
	}
	put := func() *hbase.Put { return hbase.NewPut("r1").Set("f", "q", []byte("v")) }
	return map[string]func(context.Context) error{
		"ping": c.Ping,
		"get": func(ctx context.Context) error {
			_, err := tab.Get(ctx, hbase.NewGet("r1"))
			return err
		},
		"get of a replica": func(ctx context.Context) error {
			_, err := tab.Get(ctx, &hbase.Get{Row: []byte("r1"), Consistency: hbase.Timeline})
			return err
		},
		"hedged get": func(ctx context.Context) error {
			_, err := tab.Get(ctx, &hbase.Get{Row: []byte("r1"), Hedge: true})
			return err
		},
		"exists": func(ctx context.Context) error {
			_, err := tab.Exists(ctx, hbase.NewGet("r1"))
			return err
		},
		"multi get": func(ctx context.Context) error {
			_, err := tab.MultiGet(ctx, []*hbase.Get{hbase.NewGet("r1"), {Row: []byte("r9"), Consistency: hbase.Timeline}})
			return err
		},
		"multi exists": func(ctx context.Context) error {
			_, err := tab.MultiExists(ctx, []*hbase.Get{hbase.NewGet("r1")})
			return err
		},
		"put":    func(ctx context.Context) error { return tab.Put(ctx, put()) },
		"delete": func(ctx context.Context) error { return tab.Delete(ctx, hbase.NewDelete("r2")) },
		"increment": func(ctx context.Context) error {
			_, err := tab.Increment(ctx, hbase.NewIncrement("r3").Add("f", "n", 1))
			return err
		},
		"append": func(ctx context.Context) error {
			_, err := tab.Append(ctx, hbase.NewAppend("r4").Add("f", "a", []byte("x")))
			return err
		},
		"check and mutate": func(ctx context.Context) error {
			_, err := tab.CheckAndMutate(ctx, hbase.NewCheckAndMutate("r1").IfNotExists("f", "none").Then(put()))
			return err
		},
		"mutate row": func(ctx context.Context) error {
			_, err := tab.MutateRow(ctx, hbase.NewRowMutations("r1").Add(put()))
			return err
		},
		"mutate rows": func(ctx context.Context) error { return tab.MutateRows(ctx, put()) },
		"batch":       func(ctx context.Context) error { return tab.Batch(ctx, []hbase.Op{put(), hbase.NewGet("r7")}).Err() },
		"scan": func(ctx context.Context) error {
			s := tab.Scan(ctx, nil)
			defer s.Close()
			return next(s.Next())
		},
		"reversed timeline scan": func(ctx context.Context) error {
			s := tab.Scan(ctx, &hbase.Scan{Reversed: true, Consistency: hbase.Timeline})
			defer s.Close()
			return next(s.Next())
		},
		"parallel scan": func(ctx context.Context) error {
			s := tab.ScanParallel(ctx, nil, hbase.ParallelOptions{})
			defer s.Close()
			return next(s.Next())
		},
		"ordered parallel scan": func(ctx context.Context) error {
			s := tab.ScanParallel(ctx, nil, hbase.ParallelOptions{Ordered: true})
			defer s.Close()
			return next(s.Next())
		},
		"mutator's flush": func(ctx context.Context) error {
			m, err := tab.Mutator(hbase.MutatorOptions{})
			if err != nil {
				return err
			}
			//holdfast:allow context only the Flush is looked at
			bg := context.Background()
			if err := m.Add(bg, put()); err != nil {
				return err
			}
			return errors.Join(m.Flush(ctx), m.Close(ctx))
		},
		"warm": func(ctx context.Context) error { return tab.Warm(ctx, nil, nil) },
		"regions": func(ctx context.Context) error {
			_, _, err := tab.StartEndKeys(ctx)
			return err
		},
		"locate": func(ctx context.Context) error {
			_, err := tab.Locate(ctx, []byte("r1"))
			return err
		},
		"relocate": func(ctx context.Context) error {
			_, err := tab.Relocate(ctx, []byte("r1"))
			return err
		},
		"refresh routes": func(ctx context.Context) error {
			_, err := tab.RefreshRoutes(ctx)
			return err
		},
		"region of": func(ctx context.Context) error {
			_, err := tab.RegionOf(ctx, []byte("r1"), nil)
			return err
		},
		"service": func(ctx context.Context) error {
			_, err := tab.CallService(ctx, []byte("r1"), &hbase.ServiceCall{Service: "MultiRowMutationService", Method: "MutateRows", Request: nil})
			if errors.As(err, new(*hbase.RemoteError)) {
				return nil // it does not like the request
			}
			return err
		},
		"save routes": func(ctx context.Context) error {
			_, err := c.SaveRoutes(ctx, new(bytes.Buffer))
			return err
		},
	}
}

// maySucceed says whether a call may have nothing to wait for: nobody to ask,
// or, of the flush, rows that were away before it began.
func maySucceed(name string, warm bool) bool {
	switch name {
	case "locate", "region of":
		return warm
	case "refresh routes":
		return !warm
	}
	return name == "save routes" || name == "mutator's flush"
}

// TestEndedContexts: with a context that has ended, or ends within a
// millisecond, every call returns soon, and says so.
func TestEndedContexts(t *testing.T) {
	t.Parallel()
	_, tab := faulty(t, minihbase.Options{})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, warm := range []bool{false, true} {
		for name, call := range calls(tab) {
			if warm {
				if err := call(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			} else {
				tab.ForgetRoutes()
			}
			explained := func(err error) error {
				if e := hbase.Explain(err); err != nil && (e.Kind == "" || e.Kind == "other" || e.String() == "") {
					t.Errorf("%s: no explanation of %v", name, err)
				}
				return err
			}
			within(t, name+" with a canceled context", func() {
				err := explained(call(canceled))
				if err == nil && maySucceed(name, warm) {
					return
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s, warm %v, canceled: %v", name, warm, err)
				}
			})
			for _, d := range []time.Duration{-time.Hour, 0, 1, time.Millisecond} {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				within(t, name+" with a context that ends", func() {
					err := explained(call(ctx))
					if err == nil && (d == time.Millisecond || maySucceed(name, warm)) {
						return
					}
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s, warm %v, %v: %v", name, warm, d, err)
					}
				})
				cancel()
			}
		}
	}
}

// TestClosedClient: every call of a closed client says that it is.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	_, tab := faulty(t, minihbase.Options{})
	for name, call := range calls(tab) {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	tab.Client().Close()
	for name, call := range calls(tab) {
		within(t, name+" of a closed client", func() {
			err := call(t.Context())
			if !errors.Is(err, hbase.ErrClosed) && !maySucceed(name, true) {
				t.Errorf("%s of a closed client: %v, want ErrClosed", name, err)
			}
			if e := hbase.Explain(err); err != nil && (e == nil || e.String() == "") {
				t.Errorf("%s: no explanation of %v", name, err)
			}
		})
	}
}
