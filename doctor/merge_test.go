package doctor

import (
	"strings"
	"testing"
)

// TestClocksOfTwoFiles: the ZooKeeper server's clock is 10 s ahead; sessions
// that both sides log tell.
func TestClocksOfTwoFiles(t *testing.T) {
	client := `2016-02-29 00:00:00,100 INFO [rs-SendThread(zk1:2181)] zookeeper.ClientCnxn: Session establishment complete on server zk1/192.0.2.5:2181, sessionid = 0x1511b93876c0001, negotiated timeout = 40000
2016-02-29 00:10:00,000 ERROR [rs] x: org.apache.hadoop.hbase.UnknownScannerException: Unknown scanner '1'
`
	server := `2016-02-29 00:00:10,090 [myid:1] - INFO  [CommitProcessor:1:ZooKeeperServer@617] - Established session 0x1511b93876c0001 with negotiated timeout 40000 for client /192.0.2.30:50122
2016-02-29 00:10:05,000 [myid:1] - INFO  [SessionTracker:ZooKeeperServer@347] - Expiring session 0x1511b93876c0002, timeout of 40000ms exceeded
`
	r := diagnose(t, "", Text("client.log", client), Text("zk.log", server))
	if len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "zk.log is +9990 ms") {
		t.Errorf("notes %q", r.Notes)
	}
	var order []string
	for _, m := range r.Timeline {
		order = append(order, m.Kind+" "+m.Time)
	}
	if got := strings.Join(order, ", "); got != "zk session 2016-02-29T00:00:00.100, zk session 2016-02-29T00:00:00.100, zk session expired 2016-02-29T00:09:55.010, scanner 2016-02-29T00:10:00.000" {
		t.Errorf("timeline %s", got)
	}
}
