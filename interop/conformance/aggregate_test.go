//go:build interop

package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/hbase/endpoint"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/interop/peers"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// aggregates asks AggregateService of real HBase 2.4.17 and the embedded
// one the same questions, method by method and region by region, and compares
// what they answer; then the client's aggregations on both.
func aggregates(t *testing.T, c *peers.Cluster) {
	m, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	real, ours := numbers(t, c.Address()), numbers(t, m.Address())
	// Refusals that HBase lets clients repeat are looked at, not repeated.
	realOnce, oursOnce := single(t, c.Address()), single(t, m.Address())

	scans := map[string]*hbase.Scan{
		"column":        hbase.NewScan().Column("f", "n"),
		"sparse column": hbase.NewScan().Column("f", "m"),
		"absent column": hbase.NewScan().Column("f", "x"),
		"family":        hbase.NewScan().Family("f"),
		"two columns":   hbase.NewScan().Column("f", "m", "n"),
		"two families":  hbase.NewScan().Family("f").Family("g"),
		"both by name":  hbase.NewScan().Column("f", "n").Column("g", "n"),
		"no family":     hbase.NewScan(),
		"range":         hbase.NewScanRange("r010", "r020").Column("f", "n"),
		"outside":       hbase.NewScanRange("x", "y").Column("f", "n"),
		"filter":        hbase.NewScan().Column("f", "n").WithFilter(filter.Row(filter.Equal, filter.Binary("r013"))),
		"versions":      hbase.NewScan().Column("f", "v").Versions(3),
		"decimals":      hbase.NewScan().Column("g", "d"),
		"floats":        hbase.NewScan().Column("g", "x"),
		"no such":       hbase.NewScan().Family("none"),
	}
	classes := map[string]string{
		"long": endpoint.Long().Class, "double": endpoint.Double().Class, "decimal": endpoint.BigDecimal().Class, "unknown": "no.such.Class",
	}
	compared := 0
	for scanName, scan := range scans {
		b, err := hbase.MarshalScan(scan)
		if err != nil {
			t.Fatal(err)
		}
		for class, name := range classes {
			for _, method := range []string{"GetMax", "GetMin", "GetSum", "GetRowNum", "GetAvg", "GetStd", "GetMedian", "GetNothing"} {
				for _, row := range []string{"r000", "r030", "s"} {
					req := pb.AggregateRequest{InterpreterClassName: &name, Scan: new(pb.Scan)}
					if err := req.Scan.UnmarshalVT(b); err != nil {
						t.Fatal(err)
					}
					body, err := req.MarshalVT()
					if err != nil {
						t.Fatal(err)
					}
					call := &hbase.ServiceCall{Service: "AggregateService", Method: method, Request: body}
					want, got := ask(t, realOnce, row, call), ask(t, oursOnce, row, call)
					if want != got {
						t.Errorf("%s of %s as %s in the region of %s:\n real %s\n ours %s", method, scanName, class, row, want, got)
					}
					compared++
				}
			}
		}
	}
	t.Logf("%d answers compared", compared)

	for name, f := range map[string]func(*hbase.Table) (any, error){
		"rows": func(tab *hbase.Table) (any, error) {
			return endpoint.RowCount(t.Context(), tab, nil, endpoint.Options{})
		},
		"sum of the sparse": func(tab *hbase.Table) (any, error) {
			n, ok, err := endpoint.New(tab, endpoint.Long(), scans["sparse column"], endpoint.Options{}).Sum(t.Context())
			return fmt.Sprint(n, ok), err
		},
		"statistics": func(tab *hbase.Table) (any, error) {
			return endpoint.New(tab, endpoint.Long(), scans["column"], endpoint.Options{}).Statistics(t.Context())
		},
		"rows of the sparse": func(tab *hbase.Table) (any, error) {
			return endpoint.RowCount(t.Context(), tab, scans["sparse column"], endpoint.Options{})
		},
		"rows of both families": func(tab *hbase.Table) (any, error) {
			return endpoint.RowCount(t.Context(), tab, hbase.NewScan().Column("g", "d").Column("f", "m"), endpoint.Options{})
		},
		"rows of the empty column": func(tab *hbase.Table) (any, error) {
			return endpoint.RowCount(t.Context(), tab, hbase.NewScan().Column("f", ""), endpoint.Options{})
		},
		"average of the sparse": func(tab *hbase.Table) (any, error) {
			return endpoint.New(tab, endpoint.Long(), scans["sparse column"], endpoint.Options{}).Average(t.Context())
		},
		"median": func(tab *hbase.Table) (any, error) {
			n, ok, err := endpoint.New(tab, endpoint.Long(), scans["column"], endpoint.Options{}).Median(t.Context())
			return fmt.Sprint(n, ok), err
		},
		"sum of decimals": func(tab *hbase.Table) (any, error) {
			d, ok, err := endpoint.New(tab, endpoint.BigDecimal(), scans["decimals"], endpoint.Options{}).Sum(t.Context())
			return fmt.Sprint(d, ok), err
		},
		"rows together": func(tab *hbase.Table) (any, error) {
			return nil, tab.MutateRows(t.Context(), hbase.NewPut("s1").Set("f", "t", []byte("1")), hbase.NewDelete("s2"), hbase.NewPut("s3").Set("f", "t", []byte("1")))
		},
		"rows under conditions": func(tab *hbase.Table) (any, error) {
			put := hbase.NewPut("t1").Set("f", "t", []byte("1"))
			absent := []*hbase.CheckAndMutate{hbase.NewCheckAndMutate("t1").IfNotExists("f", "t"), hbase.NewCheckAndMutate("t2").IfNotExists("f", "t")}
			first, err := tab.CheckAndMutateRows(t.Context(), absent, put, hbase.NewDelete("t3"))
			if err != nil {
				return nil, err
			}
			second, err := tab.CheckAndMutateRows(t.Context(), absent, put)
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(first, second), tab.MutateRows(t.Context(), hbase.NewDelete("t1"))
		},
		"rows apart": func(tab *hbase.Table) (any, error) {
			err := tab.MutateRows(t.Context(), hbase.NewPut("s1").Set("f", "t", []byte("2")), hbase.NewPut("r000").Set("f", "t", []byte("2")))
			if x := exception(err); x != "org.apache.hadoop.hbase.DoNotRetryIOException true" {
				return nil, fmt.Errorf("rows of two regions: %s", x)
			}
			r, err := tab.Get(t.Context(), hbase.NewGet("s1").Column("f", "t"))
			return string(r.Value("f", "t")), err
		},
		"server's service": func(tab *hbase.Table) (any, error) {
			servers, err := tab.Client().Admin().RegionServers(t.Context())
			if err != nil {
				return nil, err
			}
			_, err = tab.Client().CallServerService(t.Context(), servers[0], &hbase.ServiceCall{Service: "None", Method: "x"})
			return exception(err), nil
		},
		"master's service": func(tab *hbase.Table) (any, error) {
			ans, err := tab.Client().CallMasterService(t.Context(), &hbase.ServiceCall{Service: "RSGroupAdminService", Method: "ListRSGroupInfos"})
			if err != nil {
				return nil, err
			}
			return bytes.Contains(ans.Value, []byte("default")), nil
		},
	} {
		want, err := f(real)
		if err != nil {
			t.Errorf("%s on real HBase: %v", name, err)
		}
		got, err := f(ours)
		if err != nil {
			t.Errorf("%s on ours: %v", name, err)
		}
		t.Logf("%s: %v", name, want)
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("%s: real %v, ours %v", name, want, got)
		}
	}

	stop := counts(t, real)
	defer stop()
	a := real.Client().Admin()
	regions, err := a.Regions(t.Context(), "aggregates")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SplitRegion(t.Context(), regions[1].Region.EncodedName(), []byte("r045")); err != nil {
		t.Error(err)
	}
	if regions, err = a.Regions(t.Context(), "aggregates"); err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		if err := a.MoveRegion(t.Context(), r.Region.EncodedName(), hbase.ServerName{}); err != nil {
			t.Error(err)
		}
	}
}

// counts goes on counting the table's rows until the returned function is
// called, which checks that every count was right.
func counts(t *testing.T, tab *hbase.Table) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var counting sync.WaitGroup
	n := 0
	counting.Go(func() {
		for ctx.Err() == nil {
			rows, err := endpoint.RowCount(t.Context(), tab, nil, endpoint.Options{Parallel: 2})
			if err != nil || rows != 62 {
				t.Errorf("%d rows, %v; want 62", rows, err)
			}
			n++
		}
	})
	return func() {
		cancel()
		counting.Wait()
		t.Logf("%d counts", n)
	}
}

// numbers makes a table of three regions, the last of them empty.
func numbers(t *testing.T, address string) *hbase.Table {
	client, err := hbase.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	tab, err := client.Table("aggregates")
	if err != nil {
		t.Fatal(err)
	}
	a := client.Admin()
	table := admin.NewTable("aggregates", admin.NewFamily("f").Set("VERSIONS", "3"), admin.NewFamily("g"))
	if err := a.CreateTable(t.Context(), table, []byte("r030"), []byte("s")); err != nil {
		t.Fatal(err)
	}
	long := func(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	var ops []hbase.Op
	for i := range 60 {
		p := hbase.NewPut(fmt.Sprintf("r%03d", i)).Set("f", "n", long(int64(i)))
		if i%20 == 7 {
			p.Set("f", "m", long(int64(1000-i))).Set("g", "n", long(-5))
		}
		if i == 11 {
			p.Set("f", "n", []byte("eleven"))
		}
		if i%25 == 3 {
			p.Set("g", "d", endpoint.Decimal{Unscaled: big.NewInt(int64(12345 * i)), Scale: 3}.Append(nil))
			p.Set("g", "x", long(int64(math.Float64bits(float64(i)/7))))
		}
		if i == 20 || i == 40 {
			p.Set("f", "", []byte{})
		}
		for v := range i % 3 {
			p.SetAt("f", "v", int64(100+v), long(int64(v*i)))
		}
		ops = append(ops, p)
	}
	if err := tab.Batch(t.Context(), ops).Err(); err != nil {
		t.Fatal(err)
	}
	return tab
}

// single is the table for a client that tries once.
func single(t *testing.T, address string) *hbase.Table {
	client, err := hbase.Open(t.Context(), address, hbase.WithMaxAttempts(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	tab, err := client.Table("aggregates")
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Warm(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	return tab
}

// ask gives an answer as text: the message, or the class of the exception.
func ask(t *testing.T, tab *hbase.Table, row string, call *hbase.ServiceCall) string {
	t.Helper()
	ans, err := tab.CallService(t.Context(), []byte(row), call)
	if err != nil {
		return exception(err)
	}
	var r pb.AggregateResponse
	if err := r.UnmarshalVT(ans.Value); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %x %x", ans.Name, r.FirstPart, r.SecondPart)
}

func exception(err error) string {
	if x, ok := errors.AsType[*hbase.RemoteError](err); ok {
		return strings.TrimSpace(fmt.Sprint(x.Class, " ", x.DoNotRetry))
	}
	return fmt.Sprint(err)
}
