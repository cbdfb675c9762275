package endpoint_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/endpoint"
)

func ExampleRowCount() {
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
	n, err := endpoint.RowCount(ctx, users, hbase.NewScanPrefix("a"), endpoint.Options{})
	fmt.Println(n, err)
}

func ExampleAggregate() {
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
	visits := endpoint.New(users, endpoint.Long(), hbase.NewScan().Column("f", "visits"), endpoint.Options{Parallel: 16})
	sum, found, err := visits.Sum(ctx)
	fmt.Println(sum, found, err)
	s, err := visits.Statistics(ctx)
	fmt.Println(s.Average, s.StdDev, err)
}

func ExampleRun() {
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
	// A service of one's own that takes the range as text, "start/stop".
	answers := 0
	err = endpoint.Run(ctx, users, &endpoint.Call{
		Service: "my.pkg.Audit", Method: "check",
		Request: func(p endpoint.Part) ([]byte, error) { return fmt.Appendf(nil, "%s/%s", p.Start, p.Stop), nil },
	}, func(p *endpoint.Partial) error {
		answers++ // one at a time
		return nil
	})
	fmt.Println(answers, err)
}
