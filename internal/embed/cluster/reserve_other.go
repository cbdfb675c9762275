//go:build !unix

package cluster

// reservation would keep a port for a server while the server is down; here it
// does nothing.
type reservation struct{ port int }

func reserve(string, int) *reservation { return nil }

func (r *reservation) release() {}
