// Package doctor reads what an operator has at hand - pasted lines, log files,
// thread dumps, configuration - and says what happened, with the arithmetic,
// what would fix it and what it was not.
//
// Diagnose is the whole of it: readers (package readers) turn inputs into
// entries, dumps and properties; package checks turns those into facts and
// judges them; package report prints. It works offline, streams, keeps bounded
// memory whatever the input, and writes nothing. Live checks (package live) are
// separate and only read. Nothing below doctor knows a server.
package doctor

// The parts, from the bottom: finding (vocabulary), readers, checks, report;
// live stands beside report. cmd/holdfast is the only caller.
