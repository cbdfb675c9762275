// Package readers turns what an operator has at hand into things that checks
// can judge: log entries in a form that survives wrapping and damage, threads
// and locks of a JVM dump, properties of configuration files.
//
// Every reader streams, keeps bounded memory whatever the input, and never
// fails on content: bytes that mean nothing are skipped. Only the package
// doctor calls the scanner; checks use the value types.
//
// Matching ignores blanks, line ends and case, because pasted lines are
// wrapped inside tokens, joined without blanks and re-indented. Fields are read
// from the same blank-free form, called the squeezed text of an entry.
package readers
