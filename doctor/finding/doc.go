// Package finding is the vocabulary of the doctor: what a diagnosis consists
// of. It has no behaviour besides ordering and names; readers and checks fill
// it, reports print it, and nothing in it refers to where it came from except
// file names and lines. Values are inert; whoever builds one owns it.
package finding
