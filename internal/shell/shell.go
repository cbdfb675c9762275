package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// Shell runs commands on one client. It is not safe for concurrent use.
type Shell struct {
	Client *hbase.Client
	Out    io.Writer
	// JSON prints one JSON document a command instead of text.
	JSON bool
	// Quiet leaves out the "Took" lines.
	Quiet bool
	// Now is the clock of the "Took" lines; time.Now if nil.
	Now func() time.Time

	// tables are the tables that were given a name: t = get_table 't'.
	tables map[string]string
	// known are the tables that Tab offers, as they were at knownAt.
	known   []string
	knownAt time.Time
}

// ErrExit is what Run returns for exit and quit.
var ErrExit = errors.New("exit")

// command is one verb of the shell.
type command struct {
	name  string
	group string
	// usage has one example a line, as a person would type it.
	usage string
	about string
	run   func(ctx context.Context, s *Shell, a args) (*answer, error)
}

// commands lists every verb, in the order help shows them.
func commands() []command {
	return slices.Concat(generalCommands(), tableCommands(), schemaCommands(), dataCommands(), toolCommands(), clusterCommands(), groupCommands(), groupConfigCommands(),
		quotaCommands(), replicationCommands(), securityCommands(), serverCommands(), choreCommands(), logCommands(), snapshotCommands(), miscCommands())
}

// Names lists the verbs, for completion.
func Names() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return append(names, "help", "exit", "quit")
}

// Run parses and runs one line and prints the answer. The error is the
// command's; nothing has been printed of it.
func (s *Shell) Run(ctx context.Context, line string) error {
	line, err := s.onName(line)
	if err != nil {
		return err
	}
	name, line, named := assignment(line)
	cmd, err := Parse(line)
	if err != nil {
		return err
	}
	switch cmd.Name {
	case "":
		return nil
	case "exit", "quit":
		return ErrExit
	case "help":
		return s.help(cmd.Args)
	}
	i := slices.IndexFunc(commands(), func(c command) bool { return c.name == cmd.Name })
	if i < 0 {
		return &UnknownCommandError{Name: cmd.Name, Near: nearest(cmd.Name)}
	}
	begin := s.now()
	c := commands()[i]
	ans, err := c.run(ctx, s, args{command: &c, list: cmd.Args})
	if err != nil {
		return err
	}
	if named {
		if s.tables == nil {
			s.tables = map[string]string{}
		}
		table, _ := args{command: &c, list: cmd.Args}.text(0, "table")
		s.tables[name] = table
	}
	if s.JSON {
		enc := json.NewEncoder(s.Out)
		return enc.Encode(ans.document(cmd.Name))
	}
	var took time.Duration = -1
	if !s.Quiet {
		took = s.now().Sub(begin)
	}
	return ans.print(s.Out, took)
}

func (s *Shell) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Script runs the lines of r. With stop set, the first error ends it and is
// returned; otherwise errors are printed and the last one is returned.
func (s *Shell) Script(ctx context.Context, r io.Reader, stop bool) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine+1)
	var last error
	for n := 1; in.Scan(); n++ {
		err := s.Run(ctx, in.Text())
		switch {
		case errors.Is(err, ErrExit):
			return last
		case err != nil:
			last = fmt.Errorf("line %d: %w", n, err)
			if stop || ctx.Err() != nil {
				return last
			}
			s.PrintError(err)
		}
	}
	return errors.Join(last, in.Err())
}

// PrintError shows a command's error as the shell does, and the usage of the
// command if its arguments were wrong.
func (s *Shell) PrintError(err error) {
	if s.JSON {
		// A failing writer shows at the next answer.
		_ = json.NewEncoder(s.Out).Encode(map[string]string{"error": err.Error()})
		return
	}
	fmt.Fprintf(s.Out, "\nERROR: %v\n", err)
	var bad *ArgumentError
	if errors.As(err, &bad) {
		fmt.Fprintf(s.Out, "\n%s\n", indent(bad.Usage))
	}
	fmt.Fprintln(s.Out)
}

// UnknownCommandError is a verb the shell does not have.
type UnknownCommandError struct {
	Name string
	Near string // the closest one, or empty
}

func (e *UnknownCommandError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("unknown command %q; did you mean %s?", e.Name, e.Near)
	}
	return fmt.Sprintf("unknown command %q; help lists them", e.Name)
}

// nearest finds the command with the smallest edit distance, if it is close.
func nearest(name string) string {
	best, at := "", 3
	for _, n := range Names() {
		if d := distance(name, n); d < at {
			best, at = n, d
		}
	}
	return best
}

// didYouMean names the closest of the known words, for an error text.
func didYouMean(word string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		if d := distance(word, k); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// distance is Levenshtein's, for words short enough to compare by it.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

func (s *Shell) help(of []Value) error {
	if len(of) > 0 {
		name := fmt.Sprint(of[0])
		for _, c := range commands() {
			if c.name == name {
				_, err := fmt.Fprintf(s.Out, "%s\n\n%s\n", c.about, indent(c.usage))
				return err
			}
		}
		return &UnknownCommandError{Name: name, Near: nearest(name)}
	}
	var b strings.Builder
	group := ""
	for _, c := range commands() {
		if c.group != group {
			group = c.group
			fmt.Fprintf(&b, "%s\n", group)
		}
		about, _, _ := strings.Cut(c.about, ". ")
		fmt.Fprintf(&b, "  %-24s %s\n", c.name, strings.TrimSuffix(about, "."))
	}
	b.WriteString("\nhelp 'COMMAND' shows how to write it. Strings in double quotes know \\x00 for a byte. exit leaves.\n")
	_, err := io.WriteString(s.Out, b.String())
	return err
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  ")
		b.WriteString(line)
	}
	return b.String()
}
