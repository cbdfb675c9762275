package shell

import (
	"context"
	"slices"
	"strings"
	"time"
)

const (
	// completeWait bounds how long a press of Tab may wait for the master.
	completeWait = time.Second
	// tablesKept is how long the names that came are used again: long enough
	// for one line, short enough that a new table is found.
	tablesKept = 10 * time.Second
)

// Complete finds what a line may go on with at a position: the first word is a
// command, a word in quotes a table, a name given to a table (t.) a command for
// it. It gives the part of the line before the word, the words, and the rest.
func (s *Shell) Complete(ctx context.Context, line string, pos int) (head string, words []string, tail string) {
	if pos < 0 || pos > len(line) {
		pos = len(line)
	}
	head, tail = line[:pos], line[pos:]
	if quote := openQuote(head); quote >= 0 {
		return head[:quote+1], s.completeTable(ctx, head[quote+1:], head[quote], tail), tail
	}
	if strings.ContainsAny(strings.TrimLeft(head, " \t"), " \t,({[") {
		return head, nil, tail
	}
	start := len(head) - len(strings.TrimLeft(head, " \t"))
	typed := head[start:]
	if name, verb, ok := strings.Cut(typed, "."); ok {
		if _, known := s.tables[name]; !known {
			return head, nil, tail
		}
		return head[:start] + name + ".", withPrefix(tableVerbs(), verb, " "), tail
	}
	names := Names()
	slices.Sort(names)
	words = withPrefix(names, typed, " ")
	return head[:start], words, tail
}

func withPrefix(list []string, prefix, after string) []string {
	var out []string
	for _, w := range list {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w+after)
		}
	}
	return out
}

// openQuote gives the place of the quote that is open at the end of the text,
// -1 if none is.
func openQuote(text string) int {
	at := -1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case at >= 0 && c == text[at]:
			at = -1
		case at < 0 && (c == '\'' || c == '"'):
			at = i
		}
	}
	return at
}

func (s *Shell) completeTable(ctx context.Context, prefix string, quote byte, tail string) []string {
	now := s.now()
	if s.known == nil || now.Sub(s.knownAt).Abs() > tablesKept {
		ctx, cancel := context.WithTimeout(ctx, completeWait)
		defer cancel()
		tables, err := s.Client.Admin().ListTables(ctx, "", true)
		if err != nil {
			return nil // a line can be finished without help
		}
		s.known, s.knownAt = make([]string, len(tables)), now
		for i, t := range tables {
			s.known[i] = t.String()
		}
	}
	after := string(quote)
	if strings.HasPrefix(tail, after) {
		after = ""
	}
	return withPrefix(s.known, prefix, after)
}
