//go:build !invariants

package route

// Invariants are checked under the build tag "invariants" only.

type (
	tableChecks  struct{}
	waiterChecks struct{}
)

func checkRoot(t *table, _, _ *root) { _ = t.checks }
func checkOwner(w *waiter, _ bool)   { _ = w.checks }
func checkFlights(*Cache)            {}
