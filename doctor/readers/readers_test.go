package readers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
)

func TestStamps(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"2019-07-18 16:43:59,148 ERROR [x]", "2019-07-18T16:43:59.148"},
		{"16/04/13 12:46:19 INFO client.AsyncProcess", "2016-04-13T12:46:19.000"},
		{"03 Mar 18:17:56 WARN [client]", "03-03T18:17:56.000"},
		{"11-21 19:16:27 [ERROR](o.a.h", "11-21T19:16:27.000"},
		{"14:39:20.304 INFO  [ClientCnxn", "14:39:20.304"},
		{"Wed Aug 10 14:55:21 EDT 2016, null", "2016-08-10T14:55:21.000"},
		{"2022-03-03T13:07:13.746Z, RpcR", "2022-03-03T13:07:13.746Z"},
		{"[2021-11-06 02:29:51,523] WARN", "2021-11-06T02:29:51.523"},
		{"2017-04-20T10:39:39.004+0200: 12.3", "2017-04-20T08:39:39.004Z"},
		{"2016/02/29 00:50:36 x", "2016-02-29T00:50:36.000"},
		{"Jul  2 03:04:05 host x[1]: y", "07-02T03:04:05.000"},
		{"Jul 2, 2016 3:04:05 PM org.x", "2016-07-02T15:04:05.000"},
		{"20 Jul 2016 03:04:05,7 INFO", "2016-07-20T03:04:05.700"},
		{"192.0.2.1:60020", ""}, {"2016 was a year", ""}, {"12:61:00 x", ""}, {"99/99/99 10:00:00 x", ""}, {"", ""},
	} {
		s, _, ok := ParseStamp([]byte(c.in))
		got := ""
		if ok {
			got = s.String()
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

// scan collects squeezed entries with the words found in each.
func scan(t *testing.T, words []string, text string) (out []string, lines []int) {
	t.Helper()
	m, err := NewMatcher(words)
	if err != nil {
		t.Fatal(err)
	}
	s := Scanner[string]{Matcher: m}
	s.Handle = func(e *Entry, hits []Hit) []string {
		no, _ := e.LineAt(hits[0].End - 1)
		return []string{e.Stamp.String() + "|" + words[hits[0].Word] + "|" + e.Squeezed + "|" + strconv.Itoa(no)}
	}
	s.Emit = func(base int64, r []string) {
		for _, v := range r {
			i := strings.LastIndexByte(v, '|')
			out = append(out, v[:i])
			no, _ := strconv.Atoi(v[i+1:])
			lines = append(lines, int(base)+no+1)
		}
	}
	if _, err := s.Scan(t.Context(), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return out, lines
}

func TestScanSurvivesDamage(t *testing.T) {
	words := []string{"callDuration=", "Zstdoutp"}
	for name, text := range map[string]string{
		"plain":      "2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDuration=2: row 'a'\n",
		"wrapped":    "2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDu\nration=2: row 'a'\n",
		"indented":   "2019-01-01 00:00:00,000 ERROR x:\n    callTimeout=1,\n    call\n    Duration=2: row 'a'",
		"crlf":       "2019-01-01 00:00:00,000 ERROR x: callTimeout=1, call\r\nDuration=2: row 'a'\r\n",
		"colour":     "\x1b[31m2019-01-01 00:00:00,000 ERROR x: \x1b[1mcallTimeout=1, callDuration=2: row 'a'\x1b[0m\n",
		"docker":     `{"log":"2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDuration=2: row 'a'\n","stream":"stdout","time":"2020-05-05T00:00:00.1Z"}` + "\n",
		"cri":        "2020-05-05T00:00:00.123456789Z stdout F 2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDuration=2: row 'a'\n",
		"cri cut":    "2020-05-05T00:00:00.123456789Z stdout P 2019-01-01 00:00:00,000 ERROR x: callTimeout=1, call\n2020-05-05T00:00:00.123456789Z stdout F Duration=2: row 'a'\n",
		"compose":    "hbase_1  | 2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDuration=2: row 'a'\n",
		"kubectl":    "[pod/a/b] 2020-05-05T00:00:00.123456789Z 2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDuration=2: row 'a'\n",
		"quotes":     "2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDuration=2: row \u2018a\u2019\n",
		"escapes":    `2019-01-01 00:00:00,000 ERROR x:\n callTimeout=1, \tcallDuration=2: row 'a'`,
		"two in one": "2019-01-01 00:00:05,000 INFO y 2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDuration=2: row 'a'",
	} {
		out, _ := scan(t, words, "2018-12-31 00:00:00,000 INFO nothing\n"+text)
		want := "2019-01-01T00:00:00.000|callDuration=|2019-01-0100:00:00,000ERRORx:callTimeout=1,callDuration=2:row'a'"
		if len(out) != 1 || out[0] != want {
			t.Errorf("%s: got %q\nwant %q", name, out, want)
		}
	}
	out, _ := scan(t, words, `{"@timestamp":"2019-01-01T00:00:00.000Z","level":"ERROR","message":"callTimeout=1, callDuration=2","stack_trace":"x\n\tat y"}`)
	if len(out) != 1 || out[0] != "2019-01-01T00:00:00.000Z|callDuration=|ERRORcallTimeout=1,callDuration=2xaty" {
		t.Errorf("json: %q", out)
	}
}

func TestScanLinesAcrossBlocks(t *testing.T) {
	var b strings.Builder
	want := []int{}
	for i := range 60000 {
		if i%9973 == 77 {
			b.WriteString("2019-01-01 00:00:00,000 ERROR x:\n\tat y\n\tneedle\n")
			want = append(want, strings.Count(b.String(), "\n"))
		}
		b.WriteString("2019-01-01 00:00:00,000 INFO something that goes on and on for a while without any news in it\n")
	}
	_, lines := scan(t, []string{"needle"}, b.String())
	if len(lines) != len(want) {
		t.Fatalf("got %v, want %v", lines, want)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d: got %d, want %d", i, lines[i], want[i])
		}
	}
}

func TestMatcherRefusesBadWords(t *testing.T) {
	for _, w := range []string{"a b", "\u00e9"} {
		if _, err := NewMatcher([]string{w}); err == nil {
			t.Errorf("%q is taken", w)
		}
	}
}

// endless serves lines for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "2019-01-01 00:00:00,000 INFO needle\n"[i%36]
	}
	return len(p), nil
}

func TestScanEndsWithItsContext(t *testing.T) {
	m, err := NewMatcher([]string{"needle"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := Scanner[int]{Matcher: m, Handle: func(*Entry, []Hit) []int { return []int{1} }}
	s.Emit = func(int64, []int) { cancel() }
	if _, err := s.Scan(ctx, endless{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
