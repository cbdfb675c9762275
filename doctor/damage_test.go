package doctor

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

func each(text string, f func(i int, line string) string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = f(i, l)
	}
	return strings.Join(lines, "\n") + "\n"
}

func wrap(text string, width int) string {
	return each(text, func(_ int, l string) string {
		var b strings.Builder
		for i := 0; i < len(l); i++ {
			if i > 0 && i%width == 0 {
				b.WriteByte('\n')
			}
			b.WriteByte(l[i])
		}
		return b.String()
	})
}

// damages are what happens to text on its way to the doctor.
var damages = map[string]func(string) string{
	"crlf": func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"docker": func(s string) string {
		return each(s, func(i int, l string) string {
			b, _ := json.Marshal(map[string]string{"log": l + "\n", "stream": "stderr", "time": fmt.Sprintf("2024-05-05T00:00:%02d.123456789Z", i%60)})
			return string(b)
		})
	},
	"cri": func(s string) string {
		return each(s, func(_ int, l string) string { return "2024-05-05T00:00:00.123456789Z stderr F " + l })
	},
	"compose": func(s string) string {
		return each(s, func(_ int, l string) string { return "hbase-client_1  | " + l })
	},
	"colour": func(s string) string {
		return each(s, func(_ int, l string) string { return "\x1b[33m" + l + "\x1b[0m" })
	},
	"utf-16": func(s string) string {
		b := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	},
	"gzip": func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, s)
		_ = w.Close()
		return b.String()
	},
	"noise around": func(s string) string {
		return "2001-01-01 00:00:00,000 INFO x: nothing\n" + s + "2031-01-01 00:00:00,000 INFO x: nothing\n"
	},
	"wrapped at 97": func(s string) string { return wrap(s, 97) },
	"wrapped at 61": func(s string) string { return wrap(s, 61) },
}

func alarms(r *finding.Report) []string {
	var ids []string
	for _, f := range r.Findings {
		if f.Severity >= finding.Warning {
			ids = append(ids, f.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// TestDamageDoesNotChangeTheVerdict: every public case, every kind of damage.
func TestDamageDoesNotChangeTheVerdict(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		base := filepath.Base(n)
		text := read(t, base)
		want := alarms(diagnose(t, "", Text(base, text)))
		for name, damage := range damages {
			dump := base == "S002.txt" || base == "D17.txt" || base == "D19.txt" || base == "D16.txt"
			if dump && name != "crlf" && name != "utf-16" && name != "gzip" {
				continue // dumps and files are not what these carriers carry
			}
			if got := alarms(diagnose(t, "", Text(base, damage(text)))); !slices.Equal(got, want) {
				t.Errorf("%s %s: got %v, want %v", base, name, got, want)
			}
		}
	}
}
