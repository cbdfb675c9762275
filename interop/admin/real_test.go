//go:build interop

package admin

import (
	"strings"

	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// realClusters are HBase 2.6.4 and 2.4.17, with one region server each.
func realClusters() []opener {
	return []opener{
		{"2.6.4", func() (string, func() error, error) { return openReal(peers.HBase26) }},
		{"2.4.17", func() (string, func() error, error) { return openReal(peers.HBase24) }},
	}
}

func openReal(set string) (string, func() error, error) {
	c, err := peers.Open(set, 1, site(set))
	if err != nil {
		return "", nil, err
	}
	return c.Address(), c.Close, nil
}

// properties are what the tests need of hbase-site.xml, beyond what all peers
// have. A later one of the same name wins.
func properties(set string) [][2]string {
	return append(guarded(set), [][2]string{
		{"hbase.regionserver.slowlog.buffer.enabled", "true"},
		// Any free port, for log levels.
		{"hbase.master.info.port", "0"},
		{"hbase.regionserver.info.port", "0"},
		{"hbase.master.balancer.decision.buffer.enabled", "true"},
		{"hbase.master.balancer.rejection.buffer.enabled", "true"},
	}...)
}

func site(set string) string {
	var b strings.Builder
	for _, p := range properties(set) {
		b.WriteString("<property><name>" + p[0] + "</name><value>" + p[1] + "</value></property>\n")
	}
	return b.String()
}
