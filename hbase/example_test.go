package hbase_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

// The first fifteen lines anybody writes. Without an address Open takes
// $HOLDFAST_ADDRESS, for instance hbase://127.0.0.1:2181/hbase.
func Example() {
	ctx := context.Background()
	client, err := hbase.Open(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	users, err := client.Table("users")
	if err != nil {
		log.Fatal(err)
	}
	if err := users.Put(ctx, hbase.NewPut("ada").Set("f", "name", []byte("Ada Lovelace"))); err != nil {
		log.Fatal(err)
	}
	row, err := users.Get(ctx, hbase.NewGet("ada"))
	fmt.Printf("%s %v\n", row.Value("f", "name"), err)
}

func ExampleTable_Scan() {
	ctx := context.Background()
	client, err := hbase.Open(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	users, err := client.Table("users")
	if err != nil {
		log.Fatal(err)
	}
	scan := hbase.NewScanPrefix("a").Family("f").WithFilter(filter.FirstKeyOnly()).WithLimit(10)
	for row, err := range users.Scan(ctx, scan).Rows() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", row.Row)
	}
}

func ExampleTable_Batch() {
	ctx := context.Background()
	client, err := hbase.Open(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	users, err := client.Table("users")
	if err != nil {
		log.Fatal(err)
	}
	out := users.Batch(ctx, []hbase.Op{
		hbase.NewPut("bob").Set("f", "name", []byte("Bob")),
		hbase.NewIncrement("counts").Add("f", "users", 1),
		hbase.NewGet("ada"),
	})
	for i, o := range out {
		fmt.Println(i, o.Err)
	}
}

func ExampleTable_CheckAndMutate() {
	ctx := context.Background()
	client, err := hbase.Open(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	users, err := client.Table("users")
	if err != nil {
		log.Fatal(err)
	}
	res, err := users.CheckAndMutate(ctx, hbase.NewCheckAndMutate("eve").
		IfNotExists("f", "name").
		Then(hbase.NewPut("eve").Set("f", "name", []byte("Eve"))))
	switch {
	case errors.Is(err, hbase.ErrUnknownOutcome):
		fmt.Println("the answer was lost: read the row to find out")
	case err != nil:
		log.Fatal(err)
	case res.Applied:
		fmt.Println("the name was free")
	default:
		fmt.Println("the name was taken")
	}
}

func ExampleClient_Admin() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := hbase.Open(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	adm := client.Admin().OnProgress(func(p admin.Progress) { log.Print(p) })
	table := admin.NewTable("events", admin.NewFamily("f").Versions(3).TTL(24*time.Hour))
	err = adm.CreateTable(ctx, table, []byte("g"), []byte("n"), []byte("t"))
	if errors.Is(err, hbase.ErrTableExists) {
		fmt.Println("it is there already")
	} else if err != nil {
		log.Fatal(err)
	}
	regions, err := adm.Regions(ctx, "events")
	fmt.Println(len(regions), "regions", err)
}

// TestExamples runs what the documentation shows.
func TestExamples(t *testing.T) {
	c := startCluster(t)
	t.Setenv("HOLDFAST_ADDRESS", c.Address())
	if err := c.CreateTable(t.Context(), "users", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	Example()
	ExampleTable_Scan()
	ExampleTable_Batch()
	ExampleTable_CheckAndMutate()
	ExampleClient_Admin()
	client, err := hbase.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	users, err := client.Table("users")
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string]string{"ada": "Ada Lovelace", "bob": "Bob", "eve": "Eve"} {
		r, err := users.Get(t.Context(), hbase.NewGet(row))
		if err != nil || string(r.Value("f", "name")) != want {
			t.Errorf("%s: %v, %v; want %s", row, r, err, want)
		}
	}
	if regions, err := client.Admin().Regions(t.Context(), "events"); err != nil || len(regions) != 4 {
		t.Errorf("events: %d regions, %v", len(regions), err)
	}
}

func BenchmarkLoneGet(b *testing.B) {
	c := startCluster(b)
	if err := c.CreateTable(b.Context(), "t", []string{"f"}); err != nil {
		b.Fatal(err)
	}
	client, err := hbase.Open(b.Context(), c.Address())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("t")
	if err != nil {
		b.Fatal(err)
	}
	if err := tab.Put(b.Context(), hbase.NewPut("r").Set("f", "q", make([]byte, 100))); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := tab.Get(b.Context(), hbase.NewGet("r")); err != nil || r.Empty() {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	c := startCluster(b)
	if err := c.CreateTable(b.Context(), "t", []string{"f"}); err != nil {
		b.Fatal(err)
	}
	client, err := hbase.Open(b.Context(), c.Address())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("t")
	if err != nil {
		b.Fatal(err)
	}
	var ops []hbase.Op
	for i := range 10000 {
		ops = append(ops, hbase.NewPut(fmt.Sprintf("r%06d", i)).Set("f", "q", make([]byte, 100)))
	}
	if err := tab.Batch(b.Context(), ops).Err(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range tab.Scan(b.Context(), nil).Rows() {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != len(ops) {
			b.Fatalf("%d rows", n)
		}
	}
}
