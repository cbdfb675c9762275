// Package export writes tables to files and reads them back: holdfast export
// and import. The file format is described in docs/export-format.md.
//
// [Run] scans a table region by region into FILE.part, which becomes FILE when
// it is complete; an export that was interrupted goes on behind the last
// region that is whole. [Import] reads a file twice: first it is verified to
// its end, then written, so that a damaged or newer file changes no table.
package export
