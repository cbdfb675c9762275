package hbase

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/session"
)

// ServerInfo is what the client knows of one server it has met.
type ServerInfo struct {
	Server ServerName
	State  ServerState
	// Since is when it came into that state.
	Since time.Time
	// InFlight counts the calls under way, Limit how many may be, Waiting those
	// in line beyond it.
	InFlight, Limit, Waiting int
	// Latency is the moving average over about 16 answered calls, 0 before the
	// first. P95 and P999 are within what 95 % and 99.9 % of the recent calls
	// were answered, at most a quarter too large and a second old; 0 before there
	// were twenty.
	Latency, P95, P999 time.Duration
	// Slow: for ten seconds its average has been more than three times the median
	// server's. It orders the choice among replicas and shortens the wait for a
	// hedge, nothing else.
	Slow bool
	// RetryTokens are left of ten: a failure that more requests would make worse
	// takes one, a success gives a tenth, and below five retries are rare.
	RetryTokens float64
	// Held callers wait for the server to answer again; counted only with
	// [Config.MaxWaitingPerServer].
	Held int
	// Err is why the server is suspected or not used at present; nil if it is
	// healthy.
	Err error
}

// Servers lists the servers the client has met and that may still be alive,
// sorted by name. It asks nobody.
func (c *Client) Servers() []ServerInfo {
	core, ok := c.core.(interface{ ServerStats() []session.ServerStats })
	if !ok {
		return nil
	}
	var list []ServerInfo
	for _, s := range core.ServerStats() {
		list = append(list, ServerInfo{
			Server: s.Name, State: s.State, Since: s.Since, InFlight: s.InFlight, Limit: s.Limit, Waiting: s.Waiting,
			Latency: s.Latency, P95: s.P95, P999: s.P999, Slow: s.Slow, RetryTokens: s.RetryTokens, Held: s.Held, Err: s.Cause,
		})
	}
	slices.SortFunc(list, func(a, b ServerInfo) int { return cmp.Compare(a.Server.String(), b.Server.String()) })
	return list
}

// ReadStats counts the reads that were asked in more than one place: of
// replicas, and hedges.
type ReadStats = session.ReadStats

// ReadStats gives the counts since the client was made.
func (c *Client) ReadStats() ReadStats {
	core, ok := c.core.(interface{ ReadStats() session.ReadStats })
	if !ok {
		return ReadStats{}
	}
	return core.ReadStats()
}
