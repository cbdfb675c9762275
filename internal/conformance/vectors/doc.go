// Package vectors plays recorded cases (testdata/vectors, testdata/rules)
// against a running cluster and compares the answers: data operations, filters
// and admin calls through the public client, as an application makes them; raw
// calls, whose point is what the client would never send or does not show, over
// a socket of their own. The cluster may be the embedded one or a real HBase:
// what real HBase answers proves the runner.
//
// Every case is accounted for: it passes, it differs for a reason that is
// written down ([Options.Differs]), or the test fails. A reason that is not
// needed fails the test too.
package vectors
