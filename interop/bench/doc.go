// Package bench measures Holdfast beside its peers, in one run, as ratios:
// `make bench`. Absolute figures move with the machine's load; rounds of the
// contenders are therefore interleaved, and the median of the rounds counts.
package bench
