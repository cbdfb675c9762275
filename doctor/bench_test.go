package doctor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-hbase/holdfast/doctor/checks"
)

func BenchmarkNewExtractor(b *testing.B) {
	for b.Loop() {
		if _, err := checks.NewExtractor(); err != nil {
			b.Fatal(err)
		}
	}
}

// repeat serves one text over and over, without holding it all.
type repeat struct {
	text []byte
	at   int
	left int64
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && r.left > 0 {
		k := copy(p[n:min(len(p), n+int(r.left))], r.text[r.at:])
		n, r.left = n+k, r.left-int64(k)
		if r.at += k; r.at == len(r.text) {
			r.at = 0
		}
	}
	return n, nil
}

// corpus is the real logs of testdata with all faults strewn in: one in some
// hundred entries says something, as in real life.
func corpus(tb testing.TB) []byte {
	tb.Helper()
	var text, faults []byte
	for _, dir := range []string{"healthy", "cases"} {
		names, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
		if err != nil {
			tb.Fatal(err)
		}
		for _, n := range names {
			c, err := os.ReadFile(n)
			if err != nil {
				tb.Fatal(err)
			}
			switch {
			case dir == "healthy" && filepath.Ext(n) == ".log":
				text = append(text, c...)
			case dir == "cases" && filepath.Ext(n) == ".txt" && filepath.Base(n) != "S002.txt":
				faults = append(faults, c...)
			}
		}
	}
	return append(bytes.Repeat(text, 12), faults...)
}

// BenchmarkLog reads a mixed log; the target is 1 GB in 3 s on two cores.
func BenchmarkLog(b *testing.B) {
	const size = 256 << 20
	c := corpus(b)
	b.SetBytes(size)
	for b.Loop() {
		in := Input{Name: "mixed.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(&repeat{text: c, left: size}), nil }}
		if _, err := Diagnose(b.Context(), []Input{in}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDumps reads thread dumps; the target is 200 MB in 3 s.
func BenchmarkDumps(b *testing.B) {
	const size = 64 << 20
	c, err := os.ReadFile(filepath.Join("testdata", "cases", "S002.txt"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		in := Input{Name: "jstack.txt", Open: func() (io.ReadCloser, error) { return io.NopCloser(&repeat{text: c, left: size}), nil }}
		if _, err := Diagnose(b.Context(), []Input{in}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
