package rpc

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// borrowed is a Result in lent memory.
type borrowed struct {
	pb.MultiResponse
	loan *Loan
}

func (b *borrowed) Borrow(l *Loan) { b.loan = l }

// noneLent waits until all loans have ended.
func noneLent(t *testing.T, what string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); Lent() != 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d loans have not ended", what, Lent())
		}
	}
}

func TestLoans(t *testing.T) {
	half, gone := make(chan struct{}), make(chan struct{})
	blocks := map[string][]byte{"Small": bytes.Repeat([]byte("s"), 1000), "Large": bytes.Repeat([]byte("L"), 3<<20), "Huge": bytes.Repeat([]byte("H"), keptLoan+1)}
	addr := onTCP(t, func(s *session) error {
		var r wire.ReceivedRequest
		for {
			if err := s.next(&r); err != nil {
				return err
			}
			var err error
			switch method := string(r.Method); method {
			case "Refused":
				err = s.throw(r.CallID, wire.NewRemoteError("java.io.IOException", "no"))
			case "Bad":
				err = s.answer(r.CallID, &pb.NameBytesPair{Name: proto.String("\xff\xff")}, blocks["Large"])
			case "Slow", "Dying":
				whole, e := wire.AppendResponse(nil, r.CallID, &pb.MultiResponse{}, blocks["Large"])
				if e != nil {
					return e
				}
				if _, err = s.conn.Write(whole[:len(whole)/2]); err != nil || method == "Dying" {
					return err
				}
				half <- struct{}{}
				<-gone
				_, err = s.conn.Write(whole[len(whole)/2:])
			default:
				err = s.answer(r.CallID, &pb.MultiResponse{Processed: proto.Bool(true)}, blocks[method])
			}
			if err != nil {
				return err
			}
		}
	})
	c := dial(t, config(addr))
	ask := func(ctx context.Context, method string) (*Loan, []byte, error) {
		var result borrowed
		call := Call{Method: method, Param: &pb.MultiRequest{}, Result: &result}
		err := c.Do(ctx, &call)
		if err == nil && (!result.GetProcessed() || result.loan == nil) {
			t.Errorf("%s: processed %v, loan %v", method, result.GetProcessed(), result.loan)
		}
		return result.loan, call.ResultCells, err
	}
	for _, method := range []string{"Small", "Large", "Huge", "Small", "Large"} {
		one, a, err := ask(within(t, 30*time.Second), method)
		two, b, err2 := ask(within(t, 30*time.Second), method)
		if want := blocks[method]; err != nil || err2 != nil || !bytes.Equal(a, want) || !bytes.Equal(b, want) || Lent() != 2 {
			t.Fatalf("%s: %d and %d bytes, %v, %v; %d lent", method, len(a), len(b), err, err2, Lent())
		}
		one.Return()
		one.Return() // counts once
		if Lent() != 1 || !bytes.Equal(b, blocks[method]) {
			t.Errorf("%s: %d lent after one was returned", method, Lent())
		}
		two.Keep()
		third, other, err := ask(within(t, 30*time.Second), "Large")
		if err != nil || len(other) == 0 || !bytes.Equal(b, blocks[method]) {
			t.Errorf("%s: what was kept is overwritten, or %v", method, err)
		}
		third.Return()
	}
	noneLent(t, "answers taken")

	var remote *wire.RemoteError
	if loan, _, err := ask(within(t, 30*time.Second), "Refused"); !errors.As(err, &remote) || loan != nil {
		t.Errorf("refused: %v, loan %v", err, loan)
	}
	noneLent(t, "an exception")

	var format *wire.FormatError
	loan, _, err := ask(within(t, 30*time.Second), "Bad")
	if !errors.As(err, &format) || loan == nil {
		t.Errorf("bad: %v, loan %v", err, loan)
	}
	loan.Return()
	noneLent(t, "an answer that cannot be read")

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-half
		cancel()
	}()
	if loan, _, err := ask(ctx, "Slow"); !errors.Is(err, context.Canceled) || loan != nil {
		t.Errorf("left in the middle: %v, loan %v", err, loan)
	}
	close(gone)
	loan, _, err = ask(within(t, 30*time.Second), "Small")
	if err != nil {
		t.Error(err)
	}
	loan.Return()
	noneLent(t, "a caller who left in the middle of his answer")

	if loan, _, err := ask(within(t, 30*time.Second), "Dying"); !errors.Is(err, ErrServerClosed) || loan != nil {
		t.Errorf("dying: %v, loan %v", err, loan)
	}
	noneLent(t, "a connection that ended within an answer")
}
