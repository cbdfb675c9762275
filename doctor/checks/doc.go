// Package checks is the doctor's knowledge: which words matter (words*.go),
// what facts they state (Fact), and what follows from facts and settings
// (rules_*.go, lint.go). The catalogue (catalog.go) explains each verdict.
//
// Extraction is per entry, stateless and safe for concurrent use. Judgement is
// one call, Judge, on the collected Case; it has no clock and no input but the
// Case, so that equal inputs give equal reports.
package checks
