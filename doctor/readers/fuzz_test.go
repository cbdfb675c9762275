package readers

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func FuzzScan(f *testing.F) {
	for _, s := range []string{
		"2019-01-01 00:00:00,000 ERROR x: callTimeout=1, callDu\nration=2",
		`{"log":"2019-01-01 00:00:00,000 ERROR callDuration=2\n","time":"2020-05-05T00:00:00.1Z"}`,
		"2020-05-05T00:00:00.123456789Z stdout P call\n2020-05-05T00:00:00.2Z stdout F Duration=", "hbase_1 | x", "[pod/a/b] y", "Jul  2 03:04:05 h p[1]: z", "\x1b[31mcallDuration=", `callDuration=\n\t\"\\n`, "ERRO[0030] callDuration=",
	} {
		f.Add([]byte(s))
	}
	m, err := NewMatcher([]string{"callDuration=", "ERROR", "Zstdoutp"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Scanner[int]{Matcher: m, Emit: func(base int64, r []int) {}}
		s.Handle = func(e *Entry, hits []Hit) []int {
			for _, h := range hits {
				if h.End > len(e.Squeezed) || h.End < 1 {
					t.Fatalf("hit at %d of %d", h.End, len(e.Squeezed))
				}
				e.LineAt(h.End - 1)
				if c := e.Clip(h.End-1, 100); len(c) > 420 {
					t.Fatalf("clip of %d bytes", len(c))
				}
			}
			_ = e.Joined(200)
			return nil
		}
		st, err := s.Scan(t.Context(), bytes.NewReader(b))
		if err != nil || st.Bytes != int64(len(b)) {
			t.Fatal(st, err)
		}
	})
}

func FuzzMatcherHalvesAgree(f *testing.F) {
	f.Add([]byte(strings.Repeat("x", 1030)+"nee dle"+strings.Repeat("y", 1030)), 900)
	m, err := NewMatcher([]string{"needle", "dl", "edley"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, pad int) {
		b = append(bytes.Repeat([]byte{'.'}, max(0, min(pad, 3000))), b...)
		want := m.Find(b, nil)
		first, rest := m.findFast(b, nil, nil)
		found := map[Hit]bool{}
		for _, h := range append(first, rest...) {
			found[h] = true
		}
		for _, h := range want {
			// A word stretched over more blanks than the overlap may be missed.
			if !found[h] && bytes.Count(b, []byte{' '})+bytes.Count(b, []byte{'\n'})+bytes.Count(b, []byte{'\t'})+bytes.Count(b, []byte{'\r'})+bytes.Count(b, []byte{'\v'})+bytes.Count(b, []byte{'\f'}) < 200 {
				t.Fatalf("%v is missing", h)
			}
		}
	})
}

func FuzzStamp(f *testing.F) {
	for _, s := range []string{"2019-07-18 16:43:59,148", "16/04/13 12:46:19", "03 Mar 18:17:56", "11-21 19:16:27", "14:39:20.304 ", "Wed Aug 10 14:55:21 EDT 2016", "[2022-03-03T13:07:13.746+02:00]", "Jul 2, 2016 3:04:05 PM"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, n, ok := ParseStamp(b)
		if n < 0 || n > len(b) || ok && n == 0 {
			t.Fatal(n)
		}
		_ = s.String()
	})
}

func FuzzDump(f *testing.F) {
	for _, s := range []string{java6, java21, openj9, "Found one Java-level deadlock:\n===\n\"a\":\n  waiting to lock monitor 0x1 (object 0x2, a X),\n  which is held by \"b\"\n", "1LKDEADLOCK\n2LKDEADLOCKTHR \"a\"\n4LKDEADLOCKOBJ x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := DumpReader{Done: func(d *Dump) {
			if len(d.Threads) > maxThreads || len(d.Deadlocks) > maxDeadlocks {
				t.Fatal("unbounded")
			}
		}}
		r.Feed(b, 0)
		r.Close()
	})
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("<configuration><!-- x --><property><name>a</name><value>b</value></property></configuration>"))
	f.Add([]byte("a=b\\\n c\n#x\n!y\nserver.1=h:1:2"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, read := range []func(io.Reader, string) ([]Property, error){ReadXML, ReadProperties} {
			p, _ := read(bytes.NewReader(b), "f")
			if len(p) > maxProperties {
				t.Fatal("unbounded")
			}
		}
	})
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0})
	f.Add([]byte("BZh9"))
	f.Add([]byte{0xff, 0xfe, 'a', 0, 0x00, 0xd8})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Open(bytes.NewReader(b))
		if err != nil {
			return
		}
		defer s.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(s, 1<<22))
	})
}
