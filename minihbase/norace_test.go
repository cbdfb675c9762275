//go:build !race

package minihbase_test

// slowly: the race detector makes everything ten times slower.
const slowly = false
