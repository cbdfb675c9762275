// Package metamorph plays random histories of operations and faults against
// the embedded cluster, with real clients under different settings, and holds
// every answer against a model. A setting may change how a client gets at an
// answer, never which answer it is: one history gives the same data under all
// of them.
//
// A history is a list of events (History, one JSON object a line in its file):
// operations of a few lanes, each of which performs its own one after another,
// and faults, each of which comes when so many operations are through. Rows
// belong to one lane, so that the lane's model of them is exact; scans also
// cross the rows of others, of which only order and single coming are checked.
//
// An operation whose outcome is unknown splits the model: it may be applied at
// any later time, or never. So may the earlier request of a Put without
// timestamps that was sent twice. A row of which too much has become possible
// is not used any more.
//
// What is checked: each answer is one that the model allows; no operation fails
// but for a reason that the history or the setting gives it; at the end, with
// the faults undone, a new client and the old one find every row; and runs of
// one history that left nothing unknown agree to the byte.
//
// Only tests use it. Generate makes a history from a seed, Run plays it, Shrink
// looks for a shorter one that still fails.
package metamorph
