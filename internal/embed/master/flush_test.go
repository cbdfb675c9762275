package master

import (
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func TestFlushedFamilies(t *testing.T) {
	option := func(name, value string) *pb.NameStringPair { return &pb.NameStringPair{Name: &name, Value: &value} }
	for _, c := range []struct {
		options []*pb.NameStringPair
		want    string
	}{
		{nil, "[]"},
		{[]*pb.NameStringPair{option("other", "f")}, "[]"},
		{[]*pb.NameStringPair{option("family", "")}, "[]"},
		{[]*pb.NameStringPair{option("family", "f")}, "[f]"},
		{[]*pb.NameStringPair{option("family", "f,g"), option("family", "h")}, "[f g h]"},
	} {
		got := flushed(c.options)
		if fmt.Sprintf("%s", got) != c.want || c.want == "[]" && got != nil {
			t.Errorf("%v: %s, want %s", c.options, got, c.want)
		}
	}
}
