//go:build race

package session

// herdSize is smaller under the race detector, which is ten times as slow.
const herdSize = 2_000
