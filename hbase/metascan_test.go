package hbase_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// The rows of hbase:meta are not in order of their bytes: the region that
// starts at \x00 comes behind the one that starts at nothing, and its row
// before it in bytes.
func TestScanOfMeta(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	if err := c.CreateTable(t.Context(), "t", []string{"f"}, []byte{0}, []byte("a,b"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("hbase:meta")
	if err != nil {
		t.Fatal(err)
	}
	name := meta.TableName{Namespace: meta.DefaultNamespace, Qualifier: "t"}
	for _, caching := range []int{0, 1} {
		var starts [][]byte
		scan := hbase.NewScanRange(meta.FirstRow(name), meta.StopRow(name)).Family("info")
		scan.Caching = caching
		for res, err := range tab.Scan(t.Context(), scan).Rows() {
			if err != nil {
				t.Fatal(err)
			}
			i, j := bytes.IndexByte(res.Row, ','), bytes.LastIndexByte(res.Row, ',')
			starts = append(starts, res.Row[i+1:j])
		}
		if got := bytes.Join(starts, []byte("|")); string(got) != "|\x00|a,b|b" {
			t.Errorf("caching %d: regions start at %q", caching, starts)
		}
	}
}

// HBase's client refuses a TTL on a Delete, and so does ours.
func TestDeleteWithTTL(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	d := hbase.NewDelete("r").Column("f", "q")
	d.TTL = time.Second
	if err := tab.Delete(t.Context(), d); !errors.Is(err, hbase.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
}
