package shell

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// answer is what a command has to say, in both forms.
type answer struct {
	// lines are printed as they are, first.
	lines []string
	// head and rows make a table of two or more columns.
	head []string
	rows [][]string
	// counted is printed as "N row(s)" unless negative.
	counted int
	// value is printed as Ruby prints what a command returns: => value.
	value string
	// data is the JSON form.
	data any
}

// say answers with lines only.
func say(data any, lines ...string) *answer { return &answer{lines: lines, counted: -1, data: data} }

func (a *answer) document(command string) any {
	return map[string]any{"command": command, "result": a.data}
}

// maxFirst bounds the first column's width, so that one long key does not push
// everything off the screen.
const maxFirst = 40

func (a *answer) print(w io.Writer, took time.Duration) error {
	var b strings.Builder
	for _, l := range a.lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	if len(a.head) > 0 {
		width := make([]int, len(a.head))
		for i, h := range a.head {
			width[i] = utf8.RuneCountInString(h)
			for _, r := range a.rows {
				width[i] = min(max(width[i], utf8.RuneCountInString(r[i])), maxFirst)
			}
		}
		write := func(cells []string, lead string) {
			for i, c := range cells {
				b.WriteString(lead)
				b.WriteString(c)
				if i < len(cells)-1 {
					b.WriteString(strings.Repeat(" ", max(0, width[i]-utf8.RuneCountInString(c))+1))
				}
			}
			b.WriteByte('\n')
		}
		write(a.head, "")
		for _, r := range a.rows {
			write(r, " ")
		}
	}
	if a.counted >= 0 {
		fmt.Fprintf(&b, "%d row(s)\n", a.counted)
	}
	if took >= 0 {
		fmt.Fprintf(&b, "Took %.4f seconds\n", took.Seconds())
	}
	if a.value != "" {
		fmt.Fprintf(&b, "=> %s\n", a.value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// stamp prints a cell's timestamp as HBase's shell does since 2.2.
func stamp(ms int64) string {
	if ms < 0 || ms > 253402300799999 { // beyond year 9999 a date helps nobody
		return fmt.Sprint(ms)
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000")
}
