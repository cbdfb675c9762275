package main

import (
	"os"
	"testing"
)

// TestPageIsCurrent: the checked-in page is what the sources give.
func TestPageIsCurrent(t *testing.T) {
	want, err := render("../../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/coverage.md is out of date: run make generate")
	}
}
