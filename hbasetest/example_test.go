package hbasetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbasetest"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// A cluster without a test: in TestMain, in a program, in an example.
func ExampleStart() {
	ctx := context.Background()
	s, err := hbasetest.Start(ctx, hbasetest.WithServers(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	client, err := hbase.Open(ctx, s.Address())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	tables, err := client.Admin().ListTables(ctx, "", false)
	fmt.Println(len(tables), err)
	// Output: 0 <nil>
}

// A test with a cluster of its own: it counts an order, and the answer of the
// server is lost on the way.
func ExampleRun() {
	test := func(t *testing.T) {
		c := hbasetest.Run(t)
		orders := c.Table("orders", "f")
		c.Load("orders", hbasetest.Rows{"user-1": {"f:name": "Ada"}})

		lost := c.Rule(minihbase.Rule{
			Match:  minihbase.Match{Method: "Mutate", Table: "orders"},
			Action: minihbase.DropReply, Times: 1,
		})
		n, err := orders.IncrementColumn(t.Context(), []byte("user-1"), "f", "orders", 1)
		if err != nil || n != 1 {
			t.Errorf("counted %d orders, %v", n, err)
		}
		lost.WaitHits(1)
	}
	_ = test
}

// Many tests on one cluster. TestMain is
//
//	func TestMain(m *testing.M) { os.Exit(hbasetest.Main(m, &shared)) }
func ExampleShared_Use() {
	test := func(t *testing.T) {
		c := shared.Use(t) // as if it were new
		c.Table("orders")
		c.Fill("orders", "f:q", 1000)
		if n := len(c.Dump("orders")); n != 1000 {
			t.Errorf("%d rows", n)
		}
	}
	_ = test
}

func ExampleRows() {
	fmt.Print(hbasetest.Rows{
		"user-2": {"f:name": "Zoe"},
		"user-1": {"f:name": "Ada", "f:key": "\x00\x01"},
	})
	// Output:
	// user-1 f:key = \x00\x01
	// user-1 f:name = Ada
	// user-2 f:name = Zoe
}
