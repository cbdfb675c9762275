package hbase

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
)

// ServerInfo is what the client knows of one server it has met.
type ServerInfo struct {
	Server ServerName
	State  ServerState
	// InFlight counts the calls under way, Limit how many may be, Waiting those
	// in line beyond it.
	InFlight, Limit, Waiting int
	// Latency is the moving average of answered calls, 0 before the first.
	Latency time.Duration
	// Err is why the server is not used at present; nil if it is.
	Err error
}

// Servers lists the servers the client has met and that may still be alive,
// sorted by name.
func (c *Client) Servers() []ServerInfo {
	core, ok := c.core.(interface{ Servers() *health.Table })
	if !ok {
		return nil
	}
	var list []ServerInfo
	for _, s := range core.Servers().All() {
		i := ServerInfo{Server: s.Name(), State: s.State(), Latency: s.Latency()}
		i.InFlight, i.Limit, i.Waiting = s.Load()
		if !s.Usable() {
			i.Err = s.Err()
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b ServerInfo) int { return cmp.Compare(a.Server.String(), b.Server.String()) })
	return list
}
