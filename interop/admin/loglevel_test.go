package admin

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func TestLogLevel(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		rs, err := c.adm.ServerInfo(ctx, c.server(t))
		if err != nil {
			t.Fatal(err)
		}
		if c.name == "embedded" {
			if rs.Info != 0 {
				t.Errorf("a web port %d", rs.Info)
			}
			return // and no web page to ask
		}
		st, err := c.adm.ClusterStatusOf(ctx, admin.StatusMaster, admin.StatusInfoPort)
		if err != nil {
			t.Fatal(err)
		}
		var client admin.LogLevelClient
		for name, port := range map[string]int{"region server": rs.Info, "master": st.MasterInfoPort} {
			if port <= 0 {
				t.Errorf("%s has web port %d", name, port)
				continue
			}
			address := net.JoinHostPort("localhost", strconv.Itoa(port))
			const logger = "org.apache.hadoop.hbase.nothing"
			if c.v26() {
				// The jars of this peer have no log4j 2, which its servlet needs.
				_, err := client.Get(ctx, address, logger)
				if refused, ok := errors.AsType[*admin.LogLevelError](err); !ok || refused.Status != 500 || !strings.Contains(err.Error(), "log4j") {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			for _, level := range []string{"DEBUG", "WARN"} {
				if l, err := client.Set(ctx, address, logger, level); err != nil || l.Level != level {
					t.Errorf("%s: %+v, %v; want %s", name, l, err, level)
				}
				if l, err := client.Get(ctx, address, logger); err != nil || l.Level != level || l.Logger != logger || l.Class == "" {
					t.Errorf("%s: %+v, %v; want %s", name, l, err, level)
				}
			}
		}
		if _, err := client.Get(ctx, "localhost:1", "x"); err == nil {
			t.Errorf("nobody there: %v", err)
		}
	})
}
