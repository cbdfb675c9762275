package hbase

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// forgetful is a server that knows the nonce but not the answer, as HBase 2.6
// after replaying a dead server's log: a repeated change is answered with an
// empty result, and a Get tells the value.
type forgetful struct {
	core
	attempts int
	gets     int
}

func (f *forgetful) NonceGroup() uint64 { return 1 }
func (f *forgetful) NewNonce() uint64   { return 2 }

func (f *forgetful) CallRegion(_ context.Context, c *session.RegionCall) (session.Answer, error) {
	if c.Method != "Get" {
		return session.Answer{Attempts: f.attempts}, nil
	}
	f.gets++
	cell := cells.Cell{Row: c.Row, Family: []byte("f"), Qualifier: []byte("n"), Timestamp: 1, Type: cells.Put, Value: binary.BigEndian.AppendUint64(nil, 42)}
	block, err := wire.KeyValueCodec.AppendCells(nil, []cells.Cell{cell})
	if err != nil {
		return session.Answer{}, err
	}
	answer := pb.GetResponse{Result: &pb.Result{AssociatedCellCount: new(int32(1))}}
	b, err := answer.MarshalVT()
	if err != nil {
		return session.Answer{}, err
	}
	return session.Answer{Attempts: 1, Cells: block}, c.Result.UnmarshalVT(b)
}

func (f *forgetful) Batch(_ context.Context, _ meta.TableName, items []session.Item) []session.Outcome {
	out := make([]session.Outcome, len(items))
	for i := range out {
		out[i] = session.Outcome{Results: make([]session.ActionResult, 1), Processed: true, Attempts: f.attempts}
	}
	return out
}

func TestRepeatedChangeAnsweredEmpty(t *testing.T) {
	for _, tc := range []struct {
		name     string
		attempts int
		noResult bool
		gets     int
	}{
		{"the first attempt came back empty: the server meant it", 1, false, 0},
		{"a repeated one: read what it made", 3, false, 1},
		{"nobody asked for the value", 3, true, 0},
	} {
		f := &forgetful{attempts: tc.attempts}
		tab := newClient(defaultConfig("x"), f).TableOf(TableName{Namespace: "default", Qualifier: "t"})
		inc := func() *Increment {
			i := NewIncrement("r").Add("f", "n", 1)
			i.NoResult = tc.noResult
			return i
		}
		res, err := tab.Increment(t.Context(), inc())
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if n, ok := res.Int64("f", "n"); ok != (tc.gets > 0) || ok && n != 42 || f.gets != tc.gets {
			t.Errorf("%s: value %d (%v) after %d gets, want %d gets", tc.name, n, ok, f.gets, tc.gets)
		}
		f.gets = 0
		out := tab.Batch(t.Context(), []Op{inc(), NewPut("r").Set("f", "q", nil)})
		if err := out.Err(); err != nil {
			t.Fatalf("%s, in a batch: %v", tc.name, err)
		}
		if f.gets != tc.gets {
			t.Errorf("%s, in a batch: %d gets, want %d", tc.name, f.gets, tc.gets)
		}
	}
	f := &forgetful{attempts: 2}
	tab := newClient(defaultConfig("x"), f).TableOf(TableName{Namespace: "default", Qualifier: "t"})
	if n, err := tab.IncrementColumn(t.Context(), []byte("r"), "f", "n", 1); err != nil || n != 42 {
		t.Errorf("IncrementColumn = %d, %v; want 42", n, err)
	}
}
