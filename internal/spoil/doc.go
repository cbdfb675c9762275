// Package spoil turns the seeds of a fuzz target into many: each as it is, and
// spoilt in a few hundred ways, the same ways each time. An ordinary run of the
// tests, which plays the seeds, then sees what a fuzzer would try first, without
// a build of its own and without finding something at one time and not at
// another. A fuzzer (make fuzz) goes on from there.
//
// For tests only. The variants of a seed follow from the target's name and the
// seed; no clock and no global generator has a part in them.
package spoil
