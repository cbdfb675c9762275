// Package report prints a diagnosis: for people (Text, HTML), for programs
// (JSON), for CI (SARIF, JUnit). It adds nothing to what the findings say, and
// Redact takes names away from them. Printing equal reports gives equal bytes.
package report
