// Command lint checks the rules of this house that vet and staticcheck do not
// know. It prints one line a finding, with what to do instead, and exits 1 if
// there is any. A line may be excused by a comment on it or above it:
//
//	//holdfast:allow RULE why
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/holdfast-hbase/holdfast/"

// maxLines is where a file stops having one reason to change.
const maxLines = 900

type finding struct {
	pos  token.Position
	rule string
	text string
}

func main() {
	found, err := check(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Printf("%s:%d: %s: %s\n", f.pos.Filename, f.pos.Line, f.rule, f.text)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// check parses every Go file under root and applies the rules.
func check(root string) ([]finding, error) {
	var found []finding
	dirs := map[string]bool{} // package folder -> has doc.go
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, "_test.go") {
			dirs[dir] = dirs[dir] || d.Name() == "doc.go" || d.Name() == "main.go"
		}
		f, err := lintFile(filepath.ToSlash(path))
		found = append(found, f...)
		return err
	})
	for dir, has := range dirs {
		if !has {
			found = append(found, finding{token.Position{Filename: dir, Line: 1}, "doc", "the package has no doc.go: say what it is for, its invariants and who may call it"})
		}
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Line, b.pos.Line))
	})
	return found, err
}

func lintFile(path string) ([]finding, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	l := &linter{fset: fset, path: path, allowed: map[int]string{}, test: strings.HasSuffix(path, "_test.go")}
	for _, imp := range file.Imports {
		l.test = l.test || imp.Path.Value == `"testing"` // a suite shared by test packages
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if rest, ok := strings.CutPrefix(c.Text, "//holdfast:allow "); ok {
				rule, why, _ := strings.Cut(rest, " ")
				line := fset.Position(c.Pos()).Line
				if strings.TrimSpace(why) == "" {
					l.report(c.Pos(), "allow", "an exception names its reason: //holdfast:allow "+rule+" why")
				}
				l.allowed[line], l.allowed[line+1] = rule, rule
			}
		}
	}
	l.imports(file)
	l.code(file)
	if n := strings.Count(string(src), "\n"); n > maxLines {
		l.report(file.Pos(), "length", fmt.Sprintf("%d lines: split the file by its reasons to change (%d at most)", n, maxLines))
	}
	return l.found, nil
}

type linter struct {
	fset    *token.FileSet
	path    string
	test    bool
	allowed map[int]string
	found   []finding
}

func (l *linter) report(at token.Pos, rule, text string) {
	p := l.fset.Position(at)
	if l.allowed[p.Line] != rule {
		l.found = append(l.found, finding{p, rule, text})
	}
}

func (l *linter) isTest() bool { return l.test }

func (l *linter) isCommand() bool {
	return strings.HasPrefix(l.path, "cmd/") || strings.HasPrefix(l.path, "internal/tools/") || strings.HasPrefix(l.path, "interop/")
}

// layers says, for a folder prefix, which folder prefixes it may not import:
// a request walks down the house, and nothing below knows anything above.
var layers = []struct{ in, not, why string }{
	{"internal/cells", "internal/embed", "cells is pure: it is shared by client and server"},
	{"internal/cells", "internal/wire", "cells is pure: it knows no frames"},
	{"internal/meta", "internal/wire", "meta is pure: names and rows only"},
	{"internal/wire", "internal/rpc", "wire is below rpc"},
	{"internal/rpc", "internal/session", "rpc is below session"},
	{"internal/rpc", "internal/route", "a connection knows no routes"},
	{"internal/route", "internal/session", "route is below session"},
	{"internal/route", "internal/rpc", "route reads meta through its Source"},
	{"internal/session", "hbase", "session is below the public client"},
	{"hbase", "internal/embed", "importing hbase must not pull the embedded cluster"},
	{"hbase", "minihbase", "importing hbase must not pull the embedded cluster"},
	{"zk", "hbase", "zk stands alone"},
	{"zk", "internal/embed", "zk stands alone"},
	{"internal/embed", "hbase", "the server knows nothing of our client"},
	{"internal/embed", "internal/session", "the server knows nothing of our client"},
	{"internal/embed", "minihbase", "minihbase is the handle above"},
}

func (l *linter) imports(file *ast.File) {
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			continue
		}
		if path == "log" && !l.isTest() {
			l.report(imp.Pos(), "logger", "take a *slog.Logger from the caller")
		}
		if l.isTest() {
			continue
		}
		rel, ours := strings.CutPrefix(path, module)
		if !ours {
			continue
		}
		for _, rule := range layers {
			if within(l.path, rule.in) && within(rel, rule.not) {
				l.report(imp.Pos(), "layer", rule.in+" must not import "+rel+": "+rule.why)
			}
		}
	}
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func (l *linter) code(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			l.report(f.Pos(), "init", "everything belongs to a value: build it in a constructor")
		}
	}
	if l.isTest() {
		return
	}
	// A value's own life may begin at the root, context.WithCancel(context.Background()),
	// and so may the limit of a Close that has no caller's context.
	roots := map[ast.Expr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) > 0 && (strings.HasPrefix(sel.Sel.Name, "WithCancel") || strings.HasPrefix(sel.Sel.Name, "WithTimeout")) {
			roots[call.Args[0]] = true
		}
		if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" && !strings.Contains(l.path, "invariant") {
			l.report(call.Pos(), "panic", "return an error; assert only under the invariants tag")
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		switch pkg.Name + "." + sel.Sel.Name {
		case "time.Sleep":
			l.report(call.Pos(), "sleep", "wait on a timer and the context together")
		case "context.Background", "context.TODO":
			if !l.isCommand() && !roots[call] {
				l.report(call.Pos(), "context", "take the caller's context, or context.WithoutCancel of it for shared work")
			}
		case "slog.Default", "slog.Info", "slog.Warn", "slog.Error", "slog.Debug", "slog.SetDefault":
			if !l.isCommand() {
				l.report(call.Pos(), "logger", "take a *slog.Logger from the caller")
			}
		case "os.Exit":
			if !l.isCommand() {
				l.report(call.Pos(), "exit", "a library does not end the process: return an error")
			}
		}
		return true
	})
}
