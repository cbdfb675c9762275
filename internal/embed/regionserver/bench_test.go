package regionserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// benchTable is a table of n rows of cols cells.
func benchTable(b *testing.B, h *harness, n, cols int) *table {
	b.Helper()
	tab := h.create("bench", oneFamily(), nil)
	c := h.dial(rpctest.Options{})
	in := &pb.MultiRequest{}
	for i := range n {
		m := putOf(tab.regions[0], fmt.Sprintf("row%06d", i), "").Mutation
		m.ColumnValue[0].QualifierValue = nil
		for k := range cols {
			m.ColumnValue[0].QualifierValue = append(m.ColumnValue[0].QualifierValue, &pb.MutationProto_ColumnValue_QualifierValue{
				Qualifier: fmt.Appendf(nil, "q%02d", k), Value: []byte(strings.Repeat("v", 60))})
		}
		if i%1000 == 0 {
			in.RegionAction = []*pb.RegionAction{{Region: specifier(tab.regions[0])}}
		}
		in.RegionAction[0].Action = append(in.RegionAction[0].Action, &pb.Action{Index: new(uint32(i % 1000)), Mutation: m})
		if i%1000 == 999 || i == n-1 {
			if _, err := c.Call("Multi", in, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	return tab
}

// BenchmarkRawGet is one blocking socket, one frame there and one back: what a
// lone Get costs on the server's side of the house (and the kernel's).
func BenchmarkRawGet(b *testing.B) {
	for _, cols := range []int{1, 10} {
		b.Run(fmt.Sprint(cols, "cells"), func(b *testing.B) {
			h := newHarness(b, nil)
			tab := benchTable(b, h, 10_000, cols)
			c := h.dial(rpctest.Options{})
			var frames [][]byte
			for i := range 1000 {
				f, err := wire.AppendRequest(nil, &wire.Request{CallID: uint32(i), Method: "Get", Param: getOf(tab.regions[0], fmt.Sprintf("row%06d", i*7)), Timeout: 10_000})
				if err != nil {
					b.Fatal(err)
				}
				frames = append(frames, f)
			}
			buf := make([]byte, 64<<10)
			if _, err := c.Call("Get", getOf(tab.regions[0], "row000000"), nil); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := c.Conn.Write(frames[i%1000]); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Conn.Read(buf); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkGets is 16 connections at once.
func BenchmarkGets(b *testing.B) {
	h := newHarness(b, nil)
	tab := benchTable(b, h, 10_000, 10)
	b.SetParallelism(8)
	b.ResetTimer()
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		c := h.dial(rpctest.Options{})
		for i := 0; p.Next(); i++ {
			if _, err := c.Call("Get", getOf(tab.regions[0], fmt.Sprintf("row%06d", i%10_000)), nil); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	h := newHarness(b, nil)
	tab := h.create("bench", oneFamily(), nil)
	c := h.dial(rpctest.Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := c.Call("Mutate", putOf(tab.regions[0], fmt.Sprintf("row%06d", i%10_000), "value"), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScan reads 10,000 rows of 10 cells; an op is one such scan.
func BenchmarkScan(b *testing.B) {
	h := newHarness(b, nil)
	tab := benchTable(b, h, 10_000, 10)
	c := h.dial(rpctest.Options{})
	b.ReportAllocs()
	for b.Loop() {
		in := &pb.ScanRequest{Region: specifier(tab.regions[0]), Scan: &pb.Scan{MaxResultSize: new(uint64(2 << 20))}, NumberOfRows: new(uint32(1 << 30)), ClientHandlesPartials: new(true)}
		n := 0
		for seq := uint64(0); ; seq++ {
			var out pb.ScanResponse
			got, err := c.Call("Scan", in, &out)
			if err != nil {
				b.Fatal(err)
			}
			n += len(got)
			if !out.GetMoreResultsInRegion() {
				break
			}
			in = &pb.ScanRequest{ScannerId: out.ScannerId, NextCallSeq: new(seq), NumberOfRows: new(uint32(1 << 30)), ClientHandlesPartials: new(true)}
		}
		if n != 100_000 {
			b.Fatal(n)
		}
	}
}
