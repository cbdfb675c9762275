// Package shell runs HBase shell commands as people type them,
//
//	create 't', {NAME => 'f', VERSIONS => 3}, SPLITS => ['g', 'n']
//	scan 't', {STARTROW => 'a', LIMIT => 5}
//
// on a Holdfast client. HBase's shell is a Ruby program; this one reads the
// part of the syntax that people use for commands: literals, arrays, hashes
// with => or name:, constants, comments and parentheses. It evaluates no code.
//
// Three parts: parse.go turns a line into a Command, commands_*.go hold what
// each command does and its help, print.go renders the answers as HBase's
// shell prints them, or as one JSON document a command. cmd/holdfast owns the
// terminal (history, completion); this package owns no input or output but
// what it is handed.
package shell
