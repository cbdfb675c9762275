package meta

import (
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

// FuzzNames reads names as configurations, ZooKeeper and hbase:meta hold them;
// what is accepted prints as what is accepted again.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "t", "ns:t", "hbase:meta", ":", "a:b:c", "rs1,16020,1700000000000", "rs1,99999,1", "[::1]:16020", "rs1:16020", "rs1:", ",,"} {
		spoil.Add(f, s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if name, err := ParseTableName(in); err == nil {
			if again, err := ParseTableName(name.String()); err != nil || again != name {
				t.Errorf("table %q is %+v, and that is %+v, %v", in, name, again, err)
			}
		}
		if name, err := ParseServerName(in); err == nil {
			if again, err := ParseServerName(name.String()); err != nil || again != name {
				t.Errorf("server %q is %+v, and that is %+v, %v", in, name, again, err)
			}
		}
		if host, port, err := ParseAddress(in); err == nil {
			s := ServerName{Host: host, Port: port}
			if h, p, err := ParseAddress(s.Address()); err != nil || h != host || p != port {
				t.Errorf("address %q is %q, %d, and that is %q, %d, %v", in, host, port, h, p, err)
			}
		}
	})
}
