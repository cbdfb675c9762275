//go:build !race

package session

// herdSize callers are as many as a large gateway has at one time.
const herdSize = 10_000
