package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestServerExceptionsAreSentinels(t *testing.T) {
	for class, want := range map[string]error{
		wire.ClassTableNotFound:          ErrTableNotFound,
		wire.ClassTableExists:            ErrTableExists,
		wire.ClassTableNotEnabled:        ErrTableNotEnabled,
		wire.ClassTableNotDisabled:       ErrTableNotDisabled,
		wire.ClassNamespaceNotFound:      ErrNamespaceNotFound,
		wire.ClassNamespaceExist:         ErrNamespaceExists,
		wire.ClassNoSuchColumnFamily:     ErrNoSuchFamily,
		wire.ClassInvalidFamilyOperation: ErrNoSuchFamily,
		wire.ClassUnknownRegion:          ErrUnknownRegion,
		wire.ClassAccessDenied:           ErrAccessDenied,
		wire.ClassConstraint:             ErrConstraint,
		wire.ClassMergeRegion:            ErrConstraint,
		wire.ClassUnknownProtocol:        ErrUnsupported,
		wire.ClassRowTooBig:              ErrRowTooLarge,
	} {
		err := Wrap("get", `table "t"`, fmt.Errorf("deep: %w", wire.NewRemoteError(class, "m")))
		for _, s := range []error{ErrTableNotFound, ErrTableExists, ErrTableNotEnabled, ErrTableNotDisabled, ErrNamespaceNotFound,
			ErrNamespaceExists, ErrNoSuchFamily, ErrUnknownRegion, ErrAccessDenied, ErrConstraint, ErrUnsupported, ErrRowTooLarge} {
			if got := errors.Is(err, s); got != (s == want) {
				t.Errorf("%s is %q: %v", class, s, got)
			}
		}
	}
	if err := Wrap("x", "", wire.NewRemoteError("com.example.Mine", "")); errors.Is(err, nil) || errors.Is(err, ErrTableNotFound) {
		t.Errorf("an unknown class is %v", err)
	}
}

func TestWrap(t *testing.T) {
	if Wrap("get", "t", nil) != nil {
		t.Error("nil is wrapped")
	}
	inner := Wrap("get", `table "t"`, errors.New("boom"))
	if got := Wrap("batch", `table "u"`, inner); got != inner {
		t.Errorf("wrapped twice: %v", got)
	}
	for _, test := range []struct{ op, object, want string }{
		{"get", `table "t"`, `get table "t": boom`},
		{"create table", `table "t"`, `create table "t": boom`},
		{"balance", "", "balance: boom"},
		{"move region", "abc", "move region abc: boom"},
	} {
		if got := Wrap(test.op, test.object, errors.New("boom")).Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	story := &retry.Error{Op: "get", Reason: retry.Final, Causes: []retry.Cause{{Err: errors.New("boom")}}}
	if got := Wrap("get", `table "t"`, story).Error(); got != story.Error() {
		t.Errorf("%q, want the retry loop's own text %q", got, story)
	}
	if !errors.Is(Wrap("get", "t", route.ErrClosed), session.ErrClosed) {
		t.Error("a closed cache is not a closed client")
	}
}

func TestQuestions(t *testing.T) {
	invalid := &Invalid{Op: "put", Object: "row", Reason: "is empty"}
	for _, test := range []struct {
		err             error
		retriable, safe bool
	}{
		{nil, false, false},
		{invalid, false, true},
		{Wrap("put", "t", invalid), false, true},
		{context.Canceled, false, false},
		{Wrap("put", "t", wire.NewRemoteError(wire.ClassNoSuchColumnFamily, "")), false, true},
		{Wrap("put", "t", wire.NewRemoteError(wire.ClassNotServingRegion, "")), true, true},
	} {
		if got := Retriable(test.err); got != test.retriable {
			t.Errorf("Retriable(%v) = %v", test.err, got)
		}
		if got := SafeToRetry(test.err); got != test.safe {
			t.Errorf("SafeToRetry(%v) = %v", test.err, got)
		}
	}
}
