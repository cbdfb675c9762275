package spoil

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
)

// variants is how many spoilt ones there are of each seed.
const variants = 200

// Add is f.Add for the seed and its spoilt variants. It takes the types f.Add
// takes; of those, bytes, texts, truth values and the integers are spoilt.
func Add(f *testing.F, args ...any) {
	f.Helper()
	f.Add(args...)
	for _, v := range all(f.Name(), args) {
		f.Add(v...)
	}
}

// all gives the variants of a target's seed, each once.
func all(target string, args []any) (out [][]any) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %q", target, args)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	seen := map[string]bool{fmt.Sprintf("%q", args): true}
	// Of a seed of few bits there are not that many.
	for tries := 0; len(out) < variants && tries < 10*variants; tries++ {
		v := spoilt(r, args)
		if text := fmt.Sprintf("%q", v); !seen[text] {
			seen[text] = true
			out = append(out, v)
		}
	}
	return out
}

// spoilt gives a copy of which at least one part is another.
func spoilt(r *rand.Rand, args []any) []any {
	out := append([]any(nil), args...)
	for first := r.IntN(len(out)); ; first = r.IntN(len(out)) {
		out[first] = part(r, out[first])
		if r.IntN(3) > 0 {
			return out
		}
	}
}

func part(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case []byte:
		return bytes(r, v)
	case string:
		return string(bytes(r, []byte(v)))
	case bool:
		return !v
	case uint8:
		return v ^ uint8(number(r))
	case int32:
		return v ^ int32(number(r))
	case uint32:
		return v ^ uint32(number(r))
	case int64:
		return v ^ int64(number(r))
	case uint64:
		return v ^ number(r)
	case int:
		return v ^ int(number(r))
	}
	return v
}

// number has one bit, or many.
func number(r *rand.Rand) uint64 {
	if r.IntN(2) == 0 {
		return 1 << r.IntN(64)
	}
	return r.Uint64() >> r.IntN(64)
}

// bytes gives a spoilt copy.
func bytes(r *rand.Rand, b []byte) []byte {
	out := append([]byte(nil), b...)
	for {
		// A range of it; empty if it is.
		from := r.IntN(len(out) + 1)
		to := from + r.IntN(min(len(out)-from, 16)+1)
		switch r.IntN(8) {
		case 0, 1: // a bit
			if from < len(out) {
				out[from] ^= 1 << r.IntN(8)
			}
		case 2: // a byte that lengths and types are fond of
			if from < len(out) {
				out[from] = []byte{0, 1, 0x7f, 0x80, 0xff, 0x0a, ',', '\''}[r.IntN(8)]
			}
		case 3: // some are gone
			out = append(out[:from], out[to:]...)
		case 4: // the rest is gone
			out = out[:from]
		case 5: // some come twice
			out = append(out[:to:to], out[from:]...)
		case 6: // some are new
			noise := make([]byte, 1+r.IntN(8))
			for i := range noise {
				noise[i] = byte(r.Uint32())
			}
			out = append(out[:from:from], append(noise, out[from:]...)...)
		case 7: // some are from elsewhere in it
			if to > from {
				copy(out[r.IntN(len(out)):], out[from:to])
			}
		}
		if r.IntN(3) == 0 {
			return out
		}
	}
}
