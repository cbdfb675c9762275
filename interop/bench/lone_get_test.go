//go:build interop

package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/interop/peers"
	"github.com/holdfast-hbase/holdfast/interop/upproc"
)

const (
	rounds   = 100
	warmUp   = 30 // rounds not counted: a JVM compiles its hot paths
	perRound = 200
	table    = "bench_get"
	row      = "row-000500"
)

// contender does one round trip.
type contender struct {
	name string
	do   func() error
	p50s []time.Duration
}

// BenchmarkLoneGet compares one caller's Get: a loopback echo of the same
// sizes, a raw socket with a frame built by hand, and the client, against the
// embedded cluster (a process of its own) and real HBase 2.6.4. They take turns
// in short rounds, so that what else runs on the machine hits all alike; the
// ratios are of the medians of the rounds, and of their best quarters.
func BenchmarkLoneGet(b *testing.B) {
	ctx := context.Background()
	up := upproc.Up(b, upproc.Build(b), "--in-memory")
	real := peers.Start(b, peers.HBase26)

	var all []*contender
	add := func(name string, do func() error) { all = append(all, &contender{name: name, do: do}) }
	for _, cluster := range []struct{ name, address string }{{"embedded", up.Address}, {"real", real.Address()}} {
		c, err := hbase.Open(ctx, cluster.address)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		region := prepare(b, c)
		raw := newRaw(b, region)
		defer raw.close()
		if len(all) == 0 {
			echo := newEcho(b, len(raw.frame), raw.answerSize(b))
			defer echo.close()
			add("echo", echo.do)
		}
		add(cluster.name+" raw socket", raw.do)
		t, err := c.Table(table)
		if err != nil {
			b.Fatal(err)
		}
		add(cluster.name+" client", func() error {
			res, err := t.Get(ctx, hbase.NewGet(row))
			if err == nil && len(res.Cells) != 1 {
				err = fmt.Errorf("%d cells", len(res.Cells))
			}
			return err
		})
	}
	for range b.N {
		for r := range rounds + warmUp {
			for _, c := range all {
				p50, err := c.round()
				if err != nil {
					b.Fatalf("%s: %v", c.name, err)
				}
				if r >= warmUp {
					c.p50s = append(c.p50s, p50)
				}
			}
		}
	}
	med, quiet := map[string]time.Duration{}, map[string]time.Duration{}
	for _, c := range all {
		med[c.name] = median(c.p50s)
		quiet[c.name] = quarter(c.p50s)
		b.Logf("%-22s p50 %6.2f us  (best quarter of rounds %6.2f, all %.2f to %.2f)", c.name,
			us(med[c.name]), us(quiet[c.name]), us(slices.Min(c.p50s)), us(slices.Max(c.p50s)))
	}
	ratio := func(name, over, under string) {
		b.ReportMetric(float64(med[over])/float64(med[under]), name)
		b.ReportMetric(float64(quiet[over])/float64(quiet[under]), name+"-quiet")
	}
	ratio("client/raw-embedded", "embedded client", "embedded raw socket")
	ratio("client/raw-real", "real client", "real raw socket")
	ratio("embedded/real-raw", "embedded raw socket", "real raw socket")
	ratio("raw-embedded/echo", "embedded raw socket", "echo")
}

func (c *contender) round() (time.Duration, error) {
	all := make([]time.Duration, perRound)
	for i := range all {
		begin := time.Now()
		if err := c.do(); err != nil {
			return 0, err
		}
		all[i] = time.Since(begin)
	}
	return median(all), nil
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

func prepare(b *testing.B, c *hbase.Client) admin.RegionLocation {
	ctx := context.Background()
	adm := c.Admin()
	if ok, err := adm.TableExists(ctx, table); err != nil {
		b.Fatal(err)
	} else if !ok {
		if err := adm.CreateTable(ctx, admin.NewTable(table, admin.NewFamily("f"))); err != nil {
			b.Fatal(err)
		}
	}
	t, err := c.Table(table)
	if err != nil {
		b.Fatal(err)
	}
	var ops []hbase.Op
	for i := range 1000 {
		ops = append(ops, hbase.NewPut(fmt.Sprintf("row-%06d", i)).Set("f", "q", make([]byte, 100)))
	}
	if err := t.Batch(ctx, ops).Err(); err != nil {
		b.Fatal(err)
	}
	loc, err := adm.Locate(ctx, table, []byte(row))
	if err != nil {
		b.Fatal(err)
	}
	return loc
}

// echo answers a fixed number of bytes for a fixed number of bytes.
type echo struct {
	ln   net.Listener
	conn net.Conn
	out  []byte
	in   []byte
}

func newEcho(b *testing.B, request, answer int) *echo {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in, out := make([]byte, request), make([]byte, answer)
		for {
			if _, err := io.ReadFull(c, in); err != nil {
				return
			}
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	return &echo{ln, conn, make([]byte, request), make([]byte, answer)}
}

func (e *echo) do() error {
	if _, err := e.conn.Write(e.out); err != nil {
		return err
	}
	_, err := io.ReadFull(e.conn, e.in)
	return err
}

func (e *echo) close() { e.conn.Close(); e.ln.Close() }
