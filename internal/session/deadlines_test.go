package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Whatever is stuck and whichever way the client is called: nobody gets their
// answer later than 5 ms after the deadline they set, nor after they canceled.
func TestNobodyOutlivesTheirDeadline(t *testing.T) {
	type setup struct {
		c     *fakeCluster
		core  *Core
		table meta.TableName
	}
	swallow := func(methods ...string) func(s setup) {
		return func(s setup) {
			s.c.hook(func(q *query) *reply {
				for _, m := range methods {
					if q.method == m {
						return &reply{swallow: true}
					}
				}
				return nil
			})
		}
	}
	stuck := map[string]func(s setup){
		"servers never answer": swallow("Get", "Multi", "Mutate", "Scan", "ExecService", "GetClusterStatus", "GetServerInfo"),
		"frozen": func(s setup) {
			for n := 1; n <= 3; n++ {
				s.c.server(n).freeze()
			}
			s.c.master.freeze()
		},
		"dead": func(s setup) {
			for n := 1; n <= 3; n++ {
				s.c.server(n).kill()
			}
			s.c.master.kill()
		},
		"in transition": func(s setup) {
			s.c.mu.Lock()
			for _, r := range s.c.regions {
				r.unassigned = true
			}
			s.c.mu.Unlock()
			s.c.master.freeze()
			for n := 2; n <= 3; n++ { // where the replicas are
				s.c.server(n).freeze()
			}
		},
		"busy": func(s setup) {
			s.c.hook(func(q *query) *reply {
				if s.c.tableOf(q) == "hbase:meta" {
					return nil
				}
				return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
			})
		},
	}
	ways := map[string]func(ctx context.Context, s setup) error{
		"timeline": func(ctx context.Context, s setup) error {
			_, _, err := read(ctx, s.core, s.table, "r", timeline)
			return err
		},
		"hedged": func(ctx context.Context, s setup) error {
			_, _, err := read(ctx, s.core, s.table, "r", hedged)
			return err
		},
		"timeline and hedged, losers may stay": func(ctx context.Context, s setup) error {
			_, _, err := read(ctx, s.core, s.table, "r", func(c *RegionCall) {
				c.Timeline, c.Hedge, c.Abandoned = true, true, func(Answer, []byte) {}
			})
			return err
		},
		"one replica": func(ctx context.Context, s setup) error {
			_, _, err := read(ctx, s.core, s.table, "r", func(c *RegionCall) { c.Replica = 1 })
			return err
		},
		"batch": func(ctx context.Context, s setup) error {
			out := s.core.Batch(ctx, s.table, []Item{getItem("a"), putItem("r", Unsafe), getItem("z")})
			return errors.Join(out[0].Err, out[1].Err, out[2].Err)
		},
		"timeline batch": func(ctx context.Context, s setup) error {
			out := s.core.Batch(ctx, s.table, timelineItems(3))
			return errors.Join(out[0].Err, out[1].Err, out[2].Err)
		},
		"scan next": func(ctx context.Context, s setup) error {
			r := s.core.routes.Known(s.table, []byte("r"), false)
			for {
				_, err := s.core.CallRoute(ctx, r, &RegionCall{
					Table: s.table, Row: []byte("r"), Method: "Scan", Op: "scan next", Result: &pb.ScanResponse{},
					Param: func([]byte, int) (wire.Marshaler, []byte) { return &pb.ScanRequest{ScannerId: new(uint64(1))}, nil },
				})
				if err == nil || ctx.Err() != nil {
					return err
				}
				time.Sleep(time.Millisecond) // one attempt each: the scanner goes on as long as it has time
			}
		},
		"service": func(ctx context.Context, s setup) error {
			_, err := s.core.CallRegion(ctx, &RegionCall{
				Table: s.table, Row: []byte("r"), Method: "ExecService", Op: "service", Result: &pb.CoprocessorServiceResponse{}, Idempotency: Unsafe,
				Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
					return &pb.CoprocessorServiceRequest{Region: specifier(region), Call: &pb.CoprocessorServiceCall{
						Row: []byte("r"), ServiceName: new("S"), MethodName: new("m"), Request: []byte{},
					}}, nil
				},
			})
			return err
		},
		"master": func(ctx context.Context, s setup) error {
			_, err := s.core.CallMaster(ctx, statusCall())
			return err
		},
		"server": func(ctx context.Context, s setup) error {
			_, err := s.core.CallServer(ctx, s.c.server(1).name, &ServerCall{Method: "GetServerInfo", Param: &pb.GetServerInfoRequest{}, Result: &pb.GetServerInfoResponse{}})
			return err
		},
		"warm": func(ctx context.Context, s setup) error {
			s.core.routes.InvalidateTable(s.table)
			return s.core.routes.Warm(ctx, s.table, nil, nil)
		},
	}
	for what, stick := range stuck {
		for how, call := range ways {
			if how == "warm" && (what == "in transition" || what == "busy") {
				continue // reading meta is all it needs
			}
			if (how == "service" || how == "server") && what == "in transition" {
				continue // neither asks where the region is in this fake
			}
			t.Run(what+"/"+how, func(t *testing.T) {
				for _, limit := range []time.Duration{4 * time.Millisecond, 130 * time.Millisecond, 3 * time.Second} {
					synctest.Test(t, func(t *testing.T) {
						c := newFake(t, 3)
						table := c.table("t")
						c.replicate(c.region(table, "r"), 1, c.server(2))
						c.replicate(c.region(table, "r"), 2, c.server(3))
						s := setup{c: c, core: c.open(), table: table}
						if _, _, err := get(t.Context(), s.core, table, "r"); err != nil {
							t.Fatal(err)
						}
						if _, err := s.core.CallMaster(t.Context(), statusCall()); err != nil {
							t.Fatal(err)
						}
						synctest.Wait()
						stick(s)
						check := func(ctx context.Context, want error) {
							t.Helper()
							began := time.Now()
							err := call(ctx, s)
							if late := time.Since(began) - limit; late > 5*time.Millisecond {
								t.Errorf("%v: returned %v late: %v", limit, late, err)
							}
							if err == nil {
								t.Errorf("%v: no error", limit)
							} else if !errors.Is(err, want) && how != "server" && how != "scan next" {
								t.Errorf("%v: %v", limit, err)
							}
						}
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						check(ctx, context.DeadlineExceeded)
						cancel()
						ctx, cancel = context.WithCancel(t.Context())
						time.AfterFunc(limit, cancel)
						check(ctx, context.Canceled)
						cancel()
						for n := 1; n <= 3; n++ {
							c.server(n).thaw()
						}
						c.master.thaw()
						c.hook(nil)
					})
				}
			})
		}
	}
}
