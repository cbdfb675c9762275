package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"
	"github.com/spf13/cobra"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/shell"
)

func newShell() *cobra.Command {
	var (
		lines  []string
		stop   bool
		output string
		quiet  bool
	)
	cmd := &cobra.Command{
		Use:   "shell [ADDRESS] [FILE]",
		Short: "HBase shell commands, as people type them",
		Long: `Runs HBase shell commands on a cluster: at a prompt with history and completion
if a person is watching, else from -e, a file, or standard input.

` + addressHelp,
		Example: `  holdfast shell
  holdfast shell hbase://127.0.0.1:2181/hbase -e "scan 't', {LIMIT => 5}"
  echo "list" | holdfast shell -n -o json`,
		Args: argsBetween(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			arg, file, err := shellArgs(args)
			if err != nil {
				return err
			}
			addr, err := address(arg)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if err := reachable(ctx, addr); err != nil {
				return err
			}
			client, err := hbase.Open(ctx, addr)
			if err != nil {
				return err
			}
			defer client.Close()
			s := &shell.Shell{Client: client, Out: cmd.OutOrStdout(), JSON: output == "json", Quiet: quiet}
			switch {
			case len(lines) > 0:
				return script(ctx, s, strings.NewReader(strings.Join(lines, "\n")), stop)
			case file != "":
				f, err := os.Open(file)
				if err != nil {
					return err
				}
				defer f.Close()
				return script(ctx, s, f, stop)
			case isTerminal(os.Stdin) && isTerminal(os.Stdout):
				return prompt(ctx, s, addr)
			}
			return script(ctx, s, cmd.InOrStdin(), stop)
		},
	}
	cmd.Flags().StringArrayVarP(&lines, "execute", "e", nil, "run this command and leave (may be given more than once)")
	cmd.Flags().BoolVarP(&stop, "noninteractive", "n", false, "stop at the first error, with exit code 1")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "leave out the \"Took\" lines")
	outputFlag(cmd, &output)
	return cmd
}

// script runs commands from a reader. Without stop, what failed was printed
// where it happened: a terminal, which shows both outputs, is not told again.
func script(ctx context.Context, s *shell.Shell, in io.Reader, stop bool) error {
	r := &brokenReader{Reader: in}
	err := s.Script(ctx, r, stop)
	if err != nil && !stop && r.err == nil && ctx.Err() == nil && !errors.Is(err, bufio.ErrTooLong) && isTerminal(os.Stdout) {
		return &exitError{code: exitNo}
	}
	return err
}

// brokenReader remembers that reading failed, which nobody has printed yet.
type brokenReader struct {
	io.Reader
	err error
}

func (r *brokenReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// shellArgs tells an address from a script: a script is an existing file that
// is not an hbase-site.xml. What is neither, but written like a file, is one
// that is missing.
func shellArgs(args []string) (addr, file string, err error) {
	for _, a := range args {
		info, statErr := os.Stat(a)
		switch {
		case statErr == nil && info.Mode().IsRegular() && filepath.Ext(a) != ".xml":
			if file != "" {
				return "", "", usage("two scripts: %s and %s; one is run", file, a)
			}
			file = a
		case errors.Is(statErr, os.ErrNotExist) && !strings.Contains(a, "://") && (addr != "" || scriptLike(a)):
			return "", "", usage("no file %s; an address is written hbase://HOST:PORT/hbase", a)
		case addr != "":
			return "", "", usage("two addresses: %s and %s", addr, a)
		default:
			addr = a
		}
	}
	return addr, file, nil
}

// scriptLike says whether a word looks like the name of a script.
func scriptLike(name string) bool {
	switch filepath.Ext(name) {
	case ".txt", ".rb", ".hbase", ".hb", ".sh", ".cmd":
		return true
	}
	return strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../")
}

// prompt is the conversation with a person.
func prompt(ctx context.Context, s *shell.Shell, addr string) error {
	line := liner.NewLiner()
	defer line.Close()
	line.SetCtrlCAborts(true)
	line.SetWordCompleter(func(typed string, pos int) (string, []string, string) {
		// The position counts characters.
		before := []rune(typed)
		at := len(string(before[:min(max(pos, 0), len(before))]))
		return s.Complete(ctx, typed, at)
	})
	history := historyFile()
	if f, err := os.Open(history); err == nil {
		// A history that cannot be read is no reason not to talk.
		_, _ = line.ReadHistory(f)
		f.Close()
	}
	defer func() {
		if f, err := os.OpenFile(history, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err == nil {
			_, _ = line.WriteHistory(f)
			f.Close()
		}
	}()
	fmt.Printf("Holdfast shell on %s. help lists the commands; exit leaves.\n", addr)
	for {
		text, err := line.Prompt("holdfast> ")
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue
		case errors.Is(err, io.EOF):
			fmt.Println()
			return nil
		case err != nil:
			return err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		line.AppendHistory(text)
		err = s.Run(ctx, text)
		if errors.Is(err, shell.ErrExit) {
			return nil
		}
		if err != nil {
			s.PrintError(err)
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
	}
}

func historyFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "holdfast")
	// If it cannot be made, writing the history fails quietly later.
	_ = os.MkdirAll(dir, 0o700)
	return filepath.Join(dir, "shell-history")
}
