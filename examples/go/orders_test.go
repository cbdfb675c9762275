package orders_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	orders "github.com/holdfast-hbase/holdfast/examples/go"
	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbasetest"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// One cluster for all tests of the package; each finds it as if it were new.
var shared *hbasetest.Shared

func TestMain(m *testing.M) {
	os.Exit(hbasetest.Main(m, &shared, hbasetest.WithClient(hbase.WithRPCTimeout(200*time.Millisecond))))
}

// An order is counted once, also when the server's answer is lost.
func TestAnOrderCountsOnce(t *testing.T) {
	c := shared.Use(t)
	store := orders.NewStore(c.Table("orders", "o"))

	lost := c.Rule(minihbase.Rule{
		Match:  minihbase.Match{Method: "Mutate", Table: "orders"},
		Action: minihbase.DropReply, Skip: 1, Times: 1, // the put passes, the increment does not
	})
	n, err := store.Place(t.Context(), "ada", "book")
	if err != nil || n != 1 {
		t.Fatalf("counted %d, %v", n, err)
	}
	lost.WaitHits(1)
	got := c.Dump("orders")["ada"]
	if got["o:book"] != "open" || got["o:count"] != "\x00\x00\x00\x00\x00\x00\x00\x01" {
		t.Errorf("stored: %q", got)
	}
}

// A move, a split and the death of a server lose no order.
func TestOrdersSurvive(t *testing.T) {
	c := shared.Use(t)
	store := orders.NewStore(c.SplitTable("orders", []string{"o"}, "m"))
	var want []string
	for i := range 100 {
		user := fmt.Sprintf("%c-%03d", 'a'+i%26, i)
		if _, err := store.Place(t.Context(), user, "book"); err != nil {
			t.Fatal(err)
		}
		want = append(want, user)
		switch i {
		case 25:
			c.Move("orders", "a")
		case 50:
			c.SplitAt("orders", "f")
		case 75:
			c.Kill("orders", "z")
		}
	}
	slices.Sort(want)
	if got, err := store.Users(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d users of %d, %v", len(got), len(want), err)
	}
}

// The region's server dies and nobody takes over for a while: the store waits,
// and no longer than it was given.
func TestAnOutageIsTold(t *testing.T) {
	c := hbasetest.Run(t, hbasetest.WithRealPace(time.Minute, time.Minute))
	store := orders.NewStore(c.Table("orders", "o"))
	if _, err := store.Place(t.Context(), "ada", "book"); err != nil {
		t.Fatal(err)
	}
	c.Kill("orders", "ada")
	short := hbase.WithOperationTimeout(300 * time.Millisecond)
	client, err := hbase.Open(t.Context(), c.Address(), short)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	table, err := client.Table("orders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := orders.NewStore(table).Place(t.Context(), "ada", "pen"); err == nil {
		t.Error("an order was placed with nobody there")
	}
}
