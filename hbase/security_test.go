package hbase

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// The verdicts are those of HBase 2.6.4's ExpressionParser.
func TestVisibilityExpressions(t *testing.T) {
	for expression, labels := range map[string]string{
		"a": "a", "a&b": "a b", "a & b | c": "a b c", "(a|b)&!c": "a b c", "!a": "a", "!(a&b)": "a b", `"a b"&c`: "a b c",
		`"a\"b"`: `a"b`, `"a\\b"`: `a\b`, "a.b/c:d-e_f": "a.b/c:d-e_f", "a&!b": "a b", "(!a)": "a", "((a))": "a", "((a)|(b))": "a b",
		" a ": "a", "(a&b)|(c)": "a b c", "!(a)|b": "a b", "a&(b|c&d)": "a b c d", `"é"`: "é", "!(!a)": "a", "a&(!b)": "a b", "a|a": "a",
	} {
		got, err := VisibilityLabels(expression)
		if err != nil || strings.Join(got, " ") != labels {
			t.Errorf("%q: %q, %v; want %q", expression, got, err, labels)
		}
	}
	for _, expression := range []string{
		"", "!", "!!a", "a&", "&a", "a|", "()", "(a", "a)", "a b", "a&&b", "a||b", "a|&b", `"a\nb"`, `""`, `"a`, `"a\`, "a!b", "a#b", `a"b"`,
		"a &! b", "(a&b)c", "é", `"a""b"`, "(a)(b)", strings.Repeat("(", 1000) + "a",
	} {
		if got, err := VisibilityLabels(expression); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.20q: %q, %v; want ErrInvalid", expression, got, err)
		}
	}
	if got, err := VisibilityLabels(QuoteLabel(`a"b\c d`)); err != nil || !slices.Equal(got, []string{`a"b\c d`}) {
		t.Errorf("a quoted label is %q, %v", got, err)
	}
}

func FuzzVisibility(f *testing.F) {
	for _, s := range []string{"(a|b)&!c", `"a b"&c`, "!!a", "((("} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		labels, err := VisibilityLabels(s)
		if err != nil {
			return
		}
		for _, l := range labels {
			if again, err := VisibilityLabels(QuoteLabel(l)); err != nil || len(again) != 1 || again[0] != l {
				t.Errorf("label %q of %q quoted is %q, %v", l, s, again, err)
			}
		}
	})
}

func attributesOf(ps []*pb.NameBytesPair) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.GetName()+"="+hex.EncodeToString(p.GetValue()))
	}
	return strings.Join(out, " ")
}

// The bytes are those of HBase 2.6.4's client.
func TestSecurityAttributes(t *testing.T) {
	put := NewPut("r").Set("f", "q", []byte("v"))
	put.ACL = ACL{"bob": admin.Read | admin.Write}
	put.Visibility = "a & (b|!c)"
	put.ClusterIDs = [][16]byte{{7: 1, 15: 2}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 6, 7, 8}}
	var room mutationRoom
	if _, err := fillMutation(&room, put, 0, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := attributesOf(room.proto.Attribute), "acl=0a0f0a03626f6212080801120408000801 VISIBILITY=0a0a6120262028627c216329 "+
		"_cs.id=0000000200000000000000010000000000000002ffffffffffffffff0102030405060708"; got != want {
		t.Errorf("a put has %s\nwant %s", got, want)
	}
	for want, auths := range map[string][]string{"VISIBILITY=0a01780a0379207a": {"x", "y z"}, "": nil} {
		var g pb.Get
		if err := fillGet(&g, &Get{Row: []byte("r"), Authorizations: auths}, false); err != nil || attributesOf(g.Attribute) != want {
			t.Errorf("a get has %s, %v; want %s", attributesOf(g.Attribute), err, want)
		}
		if s, err := pbScan(&Scan{Authorizations: auths}, 1); err != nil || attributesOf(s.Attribute) != want {
			t.Errorf("a scan has %s, %v; want %s", attributesOf(s.Attribute), err, want)
		}
	}
	table := scriptedTable(&scriptedCore{})
	put.Visibility = "a &"
	if err := table.Put(t.Context(), put); !errors.Is(err, ErrInvalid) {
		t.Errorf("a bad expression: %v", err)
	}
	put.Visibility, put.ACL = "", ACL{"": admin.Read}
	if err := table.Put(t.Context(), put); !errors.Is(err, ErrInvalid) {
		t.Errorf("a permission for nobody: %v", err)
	}
	if _, err := table.Get(t.Context(), &Get{Row: []byte("r"), Authorizations: []string{""}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an empty label: %v", err)
	}
}

func TestPriorities(t *testing.T) {
	core := &scriptedCore{answer: &pb.GetResponse{}}
	table := scriptedTable(core)
	if _, err := table.Get(t.Context(), &Get{Row: []byte("r"), Priority: 7}); err != nil || core.call.Priority != 7 {
		t.Errorf("a get has priority %d, %v", core.call.Priority, err)
	}
	if _, err := table.Get(t.Context(), NewGet("r")); err != nil || core.call.Priority != 0 {
		t.Errorf("the next get has priority %d, %v", core.call.Priority, err)
	}
	core.answer = &pb.MutateResponse{}
	del := NewDelete("r")
	del.Priority = 9
	if err := table.Delete(t.Context(), del); err != nil || core.call.Priority != 9 {
		t.Errorf("a delete has priority %d, %v", core.call.Priority, err)
	}
	put := NewPut("r").Set("f", "q", []byte("v"))
	put.Priority = 4
	core.out = make([]session.Outcome, 3)
	table.Batch(t.Context(), []Op{NewGet("x"), NewRowMutations("r").Add(put, del), put})
	if len(core.items) != 3 || core.items[0].Priority != 0 || core.items[1].Priority != 9 || core.items[2].Priority != 4 {
		t.Errorf("items %+v", core.items)
	}
}
