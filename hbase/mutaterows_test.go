package hbase_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMutateRows(t *testing.T) {
	t.Parallel()
	c, tab := faulty(t, minihbase.Options{})
	put := func(row, v string) *hbase.Put { return hbase.NewPut(row).Set("f", "q", []byte(v)) }
	// content is "row=value ..." of the rows from a to c.
	content := func() string {
		t.Helper()
		var all []string
		for r, err := range tab.Scan(t.Context(), hbase.NewScanRange("a", "d").Column("f", "q")).Rows() {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(r.Row)+"="+string(r.Value("f", "q")))
		}
		return strings.Join(all, " ")
	}
	steps := []struct {
		name string
		f    func() (bool, error)
		want string
		no   bool // not applied
		err  error
	}{
		{name: "puts", f: func() (bool, error) { return true, tab.MutateRows(t.Context(), put("a", "1"), put("b", "1")) }, want: "a=1 b=1"},
		{name: "a row twice", f: func() (bool, error) {
			return true, tab.MutateRows(t.Context(), put("a", "2"), hbase.NewDelete("b"), hbase.NewPut("c").SetAt("f", "q", 5, []byte("2")), hbase.NewPut("a").Set("f", "other", nil))
		}, want: "a=2 c=2"},
		{name: "kinds of deletes", f: func() (bool, error) {
			return true, tab.MutateRows(t.Context(),
				hbase.NewDelete("c").Version("f", "q", 5), hbase.NewDelete("a").Column("f", "other").FamilyUpTo("f", 1).FamilyVersion("f", 2), put("b", "3"))
		}, want: "a=2 b=3"},
		{name: "no such family", f: func() (bool, error) {
			return true, tab.MutateRows(t.Context(), put("a", "4"), hbase.NewPut("b").Set("none", "q", nil))
		}, want: "a=2 b=3", err: hbase.ErrNoSuchFamily},
		{name: "a condition that holds", f: func() (bool, error) {
			return tab.CheckAndMutateRows(t.Context(), []*hbase.CheckAndMutate{
				hbase.NewCheckAndMutate("a").IfEquals("f", "q", []byte("2")), hbase.NewCheckAndMutate("c").IfNotExists("f", "q"),
			}, put("a", "5"), put("c", "5"))
		}, want: "a=5 b=3 c=5"},
		{name: "a condition that does not", f: func() (bool, error) {
			return tab.CheckAndMutateRows(t.Context(), []*hbase.CheckAndMutate{
				hbase.NewCheckAndMutate("a").IfEquals("f", "q", []byte("5")), hbase.NewCheckAndMutate("c").IfNotExists("f", "q"),
			}, put("a", "6"), put("b", "6"))
		}, want: "a=5 b=3 c=5", no: true},
		{name: "increments", f: func() (bool, error) {
			return true, tab.MutateRows(t.Context(), hbase.NewIncrement("a").Add("f", "n", 1))
		}, want: "a=5 b=3 c=5", err: hbase.ErrInvalid},
		{name: "nothing", f: func() (bool, error) { return true, tab.MutateRows(t.Context()) }, want: "a=5 b=3 c=5", err: hbase.ErrInvalid},
		{name: "no condition", f: func() (bool, error) { return tab.CheckAndMutateRows(t.Context(), nil, put("a", "7")) }, want: "a=5 b=3 c=5", err: hbase.ErrInvalid},
		{name: "a condition with an action", f: func() (bool, error) {
			return tab.CheckAndMutateRows(t.Context(), []*hbase.CheckAndMutate{hbase.NewCheckAndMutate("a").IfNotExists("f", "q").Then(put("a", "7"))}, put("a", "7"))
		}, want: "a=5 b=3 c=5", err: hbase.ErrInvalid},
	}
	for _, s := range steps {
		applied, err := s.f()
		if !errors.Is(err, s.err) {
			t.Errorf("%s: %v, want %v", s.name, err, s.err)
		}
		if err == nil && applied == s.no {
			t.Errorf("%s: applied %v", s.name, applied)
		}
		if got := content(); got != s.want {
			t.Errorf("%s: %s, want %s", s.name, got, s.want)
		}
	}

	err := tab.MutateRows(t.Context(), put("a", "8"), put("r050", "8"))
	if x, ok := errors.AsType[*hbase.RemoteError](err); !ok || !x.DoNotRetry || !hbase.SafeToRetry(err) {
		t.Errorf("rows of two regions: %v", err)
	}

	// An answer that is lost: what may be repeated is, the rest is not.
	for _, f := range []func() error{
		func() error { return tab.MutateRows(t.Context(), put("a", "9"), put("b", "9")) },
		func() error {
			return tab.MutateRows(t.Context(), put("a", "9"), hbase.NewDelete("b").LatestVersion("f", "none"))
		},
		func() error {
			_, err := tab.CheckAndMutateRows(t.Context(), []*hbase.CheckAndMutate{hbase.NewCheckAndMutate("a").IfEquals("f", "q", []byte("9"))}, put("c", "9"))
			return err
		},
	} {
		rule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "ExecService"}, Action: minihbase.CloseAfter, Times: 1})
		err := f()
		c.ClearRules()
		if content() == "a=9 b=9 c=5" && err == nil {
			continue // the first, and the only one that may be repeated
		}
		if !errors.Is(err, hbase.ErrUnknownOutcome) {
			t.Errorf("after a lost answer: %v, %s", err, content())
		}
	}
	if got := content(); got != "a=9 b=9 c=9" {
		t.Errorf("in the end: %s", got)
	}
}
