package hbase

import (
	"errors"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// TestInlineMutation: cells travel inside the message, since services have no
// cell block.
func TestInlineMutation(t *testing.T) {
	p, err := inlineMutation("x", NewDelete("r").Column("f", "a").Version("f", "b", 7).Family("g").FamilyVersion("f", 9))
	if err != nil {
		t.Fatal(err)
	}
	want := &pb.MutationProto{
		Row: []byte("r"), MutateType: pb.MutationProto_DELETE.Enum(),
		ColumnValue: []*pb.MutationProto_ColumnValue{
			{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{
				{Qualifier: []byte("a"), DeleteType: pb.MutationProto_DELETE_MULTIPLE_VERSIONS.Enum()},
				{Qualifier: []byte("b"), Timestamp: new(uint64(7)), DeleteType: pb.MutationProto_DELETE_ONE_VERSION.Enum()},
			}},
			{Family: []byte("g"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{Qualifier: []byte{}, DeleteType: pb.MutationProto_DELETE_FAMILY.Enum()}}},
			{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{Qualifier: []byte{}, Timestamp: new(uint64(9)), DeleteType: pb.MutationProto_DELETE_FAMILY_VERSION.Enum()}}},
		},
	}
	if got := marshal(p); string(got) != string(marshal(want)) {
		t.Errorf("\n got %v\nwant %v", p, want)
	}
}

// TestServerWithoutConditions: a server that ignores conditions must not pass
// for one that found them to hold.
func TestServerWithoutConditions(t *testing.T) {
	core := &scriptedCore{answer: &pb.CoprocessorServiceResponse{
		Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte("R")},
		Value:  &pb.NameBytesPair{Name: new("x"), Value: []byte{}},
	}}
	tab := newClient(defaultConfig("x"), core).tableOf(meta.TableName{Namespace: "default", Qualifier: "t"})
	put := NewPut("a").Set("f", "q", nil)
	applied, err := tab.CheckAndMutateRows(t.Context(), []*CheckAndMutate{NewCheckAndMutate("a").IfNotExists("f", "q")}, put)
	if !applied || !errors.Is(err, ErrUnsupported) || SafeToRetry(err) {
		t.Errorf("%v, %v", applied, err)
	}
	if err := tab.MutateRows(t.Context(), put); err != nil {
		t.Error(err)
	}
	if core.call.Idempotency != session.Safe {
		t.Errorf("puts are %v", core.call.Idempotency)
	}
}
