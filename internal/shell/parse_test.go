package shell

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

func hash(kv ...any) *Hash {
	h := &Hash{}
	for i := 0; i < len(kv); i += 2 {
		h.add(kv[i].(string), kv[i+1])
	}
	return h
}

// plain turns gathered trailing hashes into hashes, for comparing.
func plain(args []Value) []Value {
	for i, v := range args {
		if h, ok := HashOf(v); ok {
			args[i] = h
		}
	}
	return args
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		line string
		name string
		args []Value
	}{
		{"", "", nil},
		{"  # only a comment", "", nil},
		{"list", "list", nil},
		{"status 'detailed'", "status", []Value{String("detailed")}},
		{"put 't', 'r1', 'f:q', 'v', 1234", "put", []Value{String("t"), String("r1"), String("f:q"), String("v"), int64(1234)}},
		{`get "t", "\x00\xFFa\n\101"`, "get", []Value{String("t"), String("\x00\xffa\nA")}},
		{`get 't', '\x00'`, "get", []Value{String("t"), String(`\x00`)}},
		{"scan 't', {LIMIT => 5, STARTROW => 'a', REVERSED => true}", "scan",
			[]Value{String("t"), hash("LIMIT", int64(5), "STARTROW", String("a"), "REVERSED", true)}},
		{"create 't', 'f1', {NAME => 'f2', VERSIONS => 3}, SPLITS => ['g','n'], DURABILITY => 'ASYNC_WAL'", "create",
			[]Value{String("t"), String("f1"), hash("NAME", String("f2"), "VERSIONS", int64(3)),
				hash("SPLITS", []Value{String("g"), String("n")}, "DURABILITY", String("ASYNC_WAL"))}},
		{"create('t', 'f')", "create", []Value{String("t"), String("f")}},
		{"scan 't', {COLUMNS => ['f:a', 'f:b'], TIMERANGE => [1, 2_000]}  # tail", "scan",
			[]Value{String("t"), hash("COLUMNS", []Value{String("f:a"), String("f:b")}, "TIMERANGE", []Value{int64(1), int64(2000)})}},
		{"count 't', INTERVAL => 10, CACHE => -1", "count", []Value{String("t"), hash("INTERVAL", int64(10), "CACHE", int64(-1))}},
		{"balance_switch true", "balance_switch", []Value{true}},
		{"put 't', 'r', 'f:', nil, 1.5", "put", []Value{String("t"), String("r"), String("f:"), nil, 1.5}},
		{"create 'ü', {NAME => 'f', COMPRESSION => Compression::Algorithm::NONE}", "create",
			[]Value{String("ü"), hash("NAME", String("f"), "COMPRESSION", Symbol("Compression::Algorithm::NONE"))}},
	} {
		cmd, err := Parse(tc.line)
		if err != nil {
			t.Errorf("Parse(%q): %v", tc.line, err)
			continue
		}
		if cmd.Name != tc.name || !cmp.Equal(plain(cmd.Args), tc.args) {
			t.Errorf("Parse(%q) = %s %s", tc.line, cmd.Name, cmp.Diff(tc.args, cmd.Args))
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct {
		line   string
		column int
	}{
		{"put 't' 'r'", 9},
		{"put 't', ", 10},
		{"get 't", 5},
		{`get "t`, 5},
		{"scan 't', {LIMIT 5}", 18},
		{"scan 't', {LIMIT => 5", 11},
		{"scan 't', [1, 2", 11},
		{"create('t'", 11},
		{"get 't', 12z", 10},
		{"'t'", 1},
		{"list) x", 5},
	} {
		_, err := Parse(tc.line)
		var se *SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("Parse(%q) = %v, want a SyntaxError", tc.line, err)
			continue
		}
		if se.Column != tc.column {
			t.Errorf("Parse(%q): column %d (%s), want %d", tc.line, se.Column, se.Reason, tc.column)
		}
	}
}

func FuzzParse(f *testing.F) {
	spoil.Add(f, "create 't', {NAME => 'f'}, SPLITS => ['a']")
	spoil.Add(f, `put "t", "\x00\u00e9", 'f:q', -1.5e3`)
	f.Fuzz(func(t *testing.T, line string) {
		if _, err := Parse(line); err != nil {
			var se *SyntaxError
			if !errors.As(err, &se) || se.Column < 1 {
				t.Fatalf("Parse(%q): %v", line, err)
			}
		}
	})
}
