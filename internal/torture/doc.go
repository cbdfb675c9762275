// Package torture is the fault suite: it loads a table with counters and fixed
// rows, lets workers increment, get and scan while regions move and split and
// servers are killed and frozen, and then holds every answer against what it
// must have been:
//
//   - what is stored equals what was acknowledged, counter by counter;
//   - a read of a counter lies between what was acknowledged before the call
//     began and what had been started when it ended;
//   - a scan gives every row of its range once, in order, whole;
//   - no call fails within the time it is given.
//
// It runs against anything that implements Faults: the embedded cluster
// (Embedded) does. The report says for each event how long the longest call
// took, how long nothing at all came back, and what the client read of
// hbase:meta.
//
// Only tests use it. Run may be called several times on one cluster, one after
// another.
package torture
