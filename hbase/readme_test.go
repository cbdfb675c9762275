package hbase_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// Example_readme is the README's client example, word for word; TestReadme compares
// the two.
func Example_readme() {
	example := func(ctx context.Context) error {
		client, err := hbase.Open(ctx, "hbase://zk1:2181,zk2:2181/hbase")
		if err != nil {
			return err
		}
		defer client.Close()
		orders, err := client.Table("orders")
		if err != nil {
			return err
		}
		if err := orders.Put(ctx, hbase.NewPut("user-17").Set("f", "state", []byte("open"))); err != nil {
			return err
		}
		for row, err := range orders.Scan(ctx, hbase.NewScanPrefix("user-")).Rows() {
			if err != nil {
				return err
			}
			fmt.Printf("%s %s\n", row.Row, row.Value("f", "state"))
		}
		return nil
	}
	_ = example
}

func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("README.md has no Go example")
	}
	var indented strings.Builder
	for line := range strings.Lines(block) {
		if strings.TrimSpace(line) != "" {
			indented.WriteString("\t\t")
		}
		indented.WriteString(line)
	}
	if !strings.Contains(string(source), indented.String()) {
		t.Errorf("the README's example is not the one that is compiled here:\n%s", block)
	}
}
