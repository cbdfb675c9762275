package shell

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// step is a line and what HBase 2.4.17's shell printed for it, without its
// "Took" lines and without the addresses of Java objects; or a part of our
// error.
type step struct {
	line string
	want string
	fail string
}

func play(t *testing.T, o minihbase.Options, steps []step) {
	t.Helper()
	o.ControlPort = -1
	c, err := minihbase.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, st := range steps {
		var out bytes.Buffer
		s := &Shell{Client: client, Out: &out, Quiet: true}
		err := s.Run(t.Context(), st.line)
		switch {
		case st.fail != "" && (err == nil || !strings.Contains(err.Error(), st.fail)):
			t.Errorf("%s\nerror %v, want one with %q", st.line, err, st.fail)
		case st.fail == "" && err != nil:
			t.Errorf("%s\nerror %v", st.line, err)
		case st.fail == "" && out.String() != st.want:
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", st.line, out.String(), st.want)
		}
	}
}

// made is what create prints.
func made(table string) string {
	return "Created table " + table + "\n=> Hbase::Table - " + table + "\n"
}

func TestQuotaCommands(t *testing.T) {
	play(t, minihbase.Options{Quotas: true}, []step{
		{line: "create_namespace 'ns'"},
		{line: "list_quotas", want: "OWNER  QUOTAS\n0 row(s)\n"},
		{line: "set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => '10req/sec'"},
		{line: "set_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, USER => 'u1', LIMIT => '10M/min'"},
		{line: "set_quota TYPE => THROTTLE, THROTTLE_TYPE => READ, USER => 'u1', TABLE => 't', LIMIT => '1CU/hour', SCOPE => CLUSTER"},
		{line: "set_quota TYPE => THROTTLE, USER => 'u1', NAMESPACE => 'ns', LIMIT => '5K/day'"},
		{line: "set_quota TYPE => THROTTLE, TABLE => 't', LIMIT => '7req/sec'"},
		{line: "set_quota TYPE => THROTTLE, NAMESPACE => 'ns', LIMIT => '900B/sec'"},
		{line: "enable_exceed_throttle_quota", fail: "Please set region server quota"},
		{line: "set_quota TYPE => THROTTLE, REGIONSERVER => 'all', LIMIT => '30000req/sec'"},
		{line: "set_quota USER => 'u1', GLOBAL_BYPASS => true"},
		{line: "set_quota TYPE => SPACE, TABLE => 't', LIMIT => '1G', POLICY => NO_INSERTS"},
		{line: "set_quota TYPE => SPACE, NAMESPACE => 'ns', LIMIT => '1500K', POLICY => NO_WRITES_COMPACTIONS"},
		{line: "list_quotas", want: `OWNER  QUOTAS
 NAMESPACE => ns TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 900.00B/sec, SCOPE => MACHINE
 NAMESPACE => ns TYPE => SPACE, NAMESPACE => ns, LIMIT => 1.46M, VIOLATION_POLICY => NO_WRITES_COMPACTIONS
 REGIONSERVER => all TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 30000req/sec, SCOPE => MACHINE
 TABLE => t TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 7req/sec, SCOPE => MACHINE
 TABLE => t TYPE => SPACE, TABLE => t, LIMIT => 1.00G, VIOLATION_POLICY => NO_INSERTS
 USER => u1 TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 10req/sec, SCOPE => MACHINE
 USER => u1 TYPE => THROTTLE, THROTTLE_TYPE => WRITE_SIZE, LIMIT => 10.00M/min, SCOPE => MACHINE
 USER => u1 GLOBAL_BYPASS => true
 USER => u1, NAMESPACE => ns TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 5.00K/day, SCOPE => MACHINE
 USER => u1, TABLE => t TYPE => THROTTLE, THROTTLE_TYPE => READ_CAPACITY_UNIT, LIMIT => 1CU/hour, SCOPE => CLUSTER
10 row(s)
`},
		{line: "list_quotas USER => 'u1', TABLE => 't'", want: `OWNER  QUOTAS
 USER => u1, TABLE => t TYPE => THROTTLE, THROTTLE_TYPE => READ_CAPACITY_UNIT, LIMIT => 1CU/hour, SCOPE => CLUSTER
1 row(s)
`},
		{line: "list_quotas USER => 'u1', NAMESPACE => 'ns'", want: `OWNER  QUOTAS
 USER => u1, NAMESPACE => ns TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 5.00K/day, SCOPE => MACHINE
1 row(s)
`},
		{line: "list_quotas TABLE => 't', NAMESPACE => 'ns'", want: `OWNER  QUOTAS
 TABLE => t TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 7req/sec, SCOPE => MACHINE
 TABLE => t TYPE => SPACE, TABLE => t, LIMIT => 1.00G, VIOLATION_POLICY => NO_INSERTS
2 row(s)
`},
		{line: "list_quotas NAMESPACE => 'n'", want: "OWNER  QUOTAS\n0 row(s)\n"},
		{line: "list_quotas NAMESPACE => 'ns', LIMIT => 1", want: `OWNER  QUOTAS
 NAMESPACE => ns TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 900.00B/sec, SCOPE => MACHINE
1 row(s)
`},
		{line: "set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => NONE"},
		{line: "set_quota TYPE => SPACE, NAMESPACE => 'ns', LIMIT => NONE"},
		{line: "set_quota TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, TABLE => 't', LIMIT => NONE"},
		{line: "list_quotas", want: `OWNER  QUOTAS
 NAMESPACE => ns TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 900.00B/sec, SCOPE => MACHINE
 REGIONSERVER => all TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 30000req/sec, SCOPE => MACHINE
 TABLE => t TYPE => SPACE, TABLE => t, LIMIT => 1.00G, VIOLATION_POLICY => NO_INSERTS
 USER => u1 GLOBAL_BYPASS => true
 USER => u1, NAMESPACE => ns TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 5.00K/day, SCOPE => MACHINE
 USER => u1, TABLE => t TYPE => THROTTLE, THROTTLE_TYPE => READ_CAPACITY_UNIT, LIMIT => 1CU/hour, SCOPE => CLUSTER
6 row(s)
`},
		{line: "set_quota TYPE => THROTTLE, TABLE => 't', LIMIT => '0req/sec'", fail: "must be greater than 0"},
		{line: "set_quota TYPE => THROTTLE, TABLE => 't', LIMIT => 'x'", fail: "10req/sec"},
		{line: "set_quota TYPE => THROTTLE, LIMIT => '1req/sec'", fail: "target: is missing"},
		{line: "set_quota TYPE => SPACE, USER => 'u', LIMIT => '1G', POLICY => NO_INSERTS", fail: "is a table or a namespace"},
		{line: "set_quota TYPE => SPACE, TABLE => 't', LIMIT => '1G'", fail: "POLICY"},
		{line: "set_quota TYPE => OTHER, TABLE => 't'", fail: "THROTTLE or SPACE"},
		{line: "set_quota TYPE => THROTTLE, REGIONSERVER => 'all', LIMIT => '1req/sec', SCOPE => CLUSTER", fail: "MACHINE"},
		{line: "list_quota_table_sizes", want: "TABLE  SIZE\n hbase:meta 0\n hbase:namespace 0\n hbase:quota 0\n3 row(s)\n"},
		{line: "list_quota_snapshots", want: " TABLE USAGE LIMIT IN_VIOLATION POLICY\n0 row(s)\n"},
		{line: "list_snapshot_sizes", want: "SNAPSHOT  SIZE\n0 row(s)\n"},
		{line: "disable_rpc_throttle", want: "Previous rpc throttle state : true\n=> true\n"},
		{line: "enable_rpc_throttle", want: "Previous rpc throttle state : false\n=> false\n"},
		{line: "enable_exceed_throttle_quota", want: "Previous exceed throttle quota enabled : false\n=> false\n"},
		{line: "disable_exceed_throttle_quota", want: "Previous exceed throttle quota enabled : true\n=> true\n"},
		{line: "scan 'hbase:quota', {ROWPREFIXFILTER => 'u.', COLUMN => 'q:s', LIMIT => 0, TIMERANGE => [0, 1]}", want: "ROW COLUMN+CELL\n0 row(s)\n"},
	})
}

func TestQuotasThatAreOff(t *testing.T) {
	play(t, minihbase.Options{}, []step{
		{line: "set_quota TYPE => THROTTLE, TABLE => 't', LIMIT => '7req/sec'", fail: "hbase.quota.enabled"},
		{line: "list_quotas", fail: "hbase.quota.enabled"},
		{line: "list_quota_snapshots", fail: "hbase.quota.enabled"},
	})
}

func TestReplicationCommands(t *testing.T) {
	play(t, minihbase.Options{}, []step{
		{line: "create 't', {NAME => 'f', REPLICATION_SCOPE => 1}, 'g'", want: made("t")},
		{line: "create_namespace 'ns'"},
		{line: "create 'ns:u', 'f'", want: made("ns:u")},
		{line: "list_peers", want: " PEER_ID CLUSTER_KEY ENDPOINT_CLASSNAME STATE REPLICATE_ALL NAMESPACES TABLE_CFS BANDWIDTH SERIAL\n0 row(s)\n"},
		{line: "add_peer '1', CLUSTER_KEY => '127.0.0.1:23981:/other'"},
		{line: "add_peer '2', CLUSTER_KEY => '127.0.0.1:23981:/other2', NAMESPACES => ['ns'], TABLE_CFS => {'t' => ['f','g'], 'x' => []}, STATE => 'DISABLED', SERIAL => true, CONFIG => {'k' => 'v'}"},
		{line: "add_peer '1', CLUSTER_KEY => '127.0.0.1:23981:/other'", fail: "Replication peer 1 already exists"},
		{line: "add_peer '3', CLUSTER_KEY => '127.0.0.1:23981:/o', NAMESPACES => ['ns'], TABLE_CFS => {'ns:u' => []}", fail: "Table-cfs ns:u is conflict with namespaces ns in peer config"},
		{line: "add_peer 'a-b', CLUSTER_KEY => '127.0.0.1:23981:/o'", fail: "holds -"},
		{line: "add_peer '4'", fail: "2 needed"},
		{line: "list_peers", want: ` PEER_ID CLUSTER_KEY ENDPOINT_CLASSNAME STATE REPLICATE_ALL NAMESPACES TABLE_CFS BANDWIDTH SERIAL
 1 127.0.0.1:23981:/other  ENABLED true   0 false
 2 127.0.0.1:23981:/other2  DISABLED false ns default.t:f,g;default.x 0 true
2 row(s)
`},
		{line: "get_peer_config '2'", want: " Cluster Key 127.0.0.1:23981:/other2\n k v\n"},
		{line: "list_peer_configs", want: " PeerId 1\n Cluster Key 127.0.0.1:23981:/other\n \n PeerId 2\n Cluster Key 127.0.0.1:23981:/other2\n k v\n \n"},
		{line: "show_peer_tableCFs '2'", want: "default.t:f,g;default.x\n=> \"default.t:f,g;default.x\"\n"},
		{line: "set_peer_bandwidth '1', 1048576"},
		{line: "set_peer_exclude_namespaces '1', ['ns']"},
		{line: "set_peer_exclude_tableCFs '1', {'t' => ['f']}"},
		{line: "append_peer_exclude_tableCFs '1', {'t' => ['g'], 'ns:u' => []}", fail: "Table-cfs ns:u is conflict with namespaces ns in peer config"},
		{line: "append_peer_exclude_tableCFs '1', {'t' => ['g']}"},
		{line: "append_peer_exclude_namespaces '1', ['n2']"},
		{line: "remove_peer_exclude_namespaces '1', ['n2']"},
		{line: "list_peers", want: ` PEER_ID CLUSTER_KEY ENDPOINT_CLASSNAME STATE REPLICATE_ALL NAMESPACES TABLE_CFS BANDWIDTH SERIAL
 1 127.0.0.1:23981:/other  ENABLED true !ns !default.t:f,g 1048576 false
 2 127.0.0.1:23981:/other2  DISABLED false ns default.t:f,g;default.x 0 true
2 row(s)
`},
		{line: "remove_peer_exclude_tableCFs '1', {'t' => ['g']}"},
		{line: "append_peer_namespaces '2', ['n3','n2']"},
		{line: "remove_peer_tableCFs '2', {'t' => ['g']}"},
		{line: "append_peer_tableCFs '2', {'x' => ['g']}"},
		{line: "remove_peer_tableCFs '2', {'x' => ['g']}", fail: "with all its families"},
		{line: "remove_peer_tableCFs '2', {'y' => []}", fail: "is not in the list"},
		{line: "list_peers", want: ` PEER_ID CLUSTER_KEY ENDPOINT_CLASSNAME STATE REPLICATE_ALL NAMESPACES TABLE_CFS BANDWIDTH SERIAL
 1 127.0.0.1:23981:/other  ENABLED true !ns !default.t:f 1048576 false
 2 127.0.0.1:23981:/other2  DISABLED false n2;n3;ns default.t:f;default.x 0 true
2 row(s)
`},
		{line: "set_peer_replicate_all '2', true", fail: "Need clean namespaces or table-cfs config firstly when you want replicate all cluster"},
		{line: "set_peer_tableCFs '2', {'t' => ['f']}"},
		{line: "set_peer_namespaces '2', ['n2']"},
		{line: "remove_peer_namespaces '2', ['n2']"},
		{line: "set_peer_serial '2', false"},
		{line: "update_peer_config '2', CONFIG => {'k' => 'w', 'l' => 'x'}"},
		{line: "get_peer_config '2'", want: " Cluster Key 127.0.0.1:23981:/other2\n k w\n l x\n"},
		{line: "disable_peer '1'"},
		{line: "enable_peer '2'"},
		{line: "enable_peer '9'", fail: "no such replication peer"},
		{line: "get_peer_config '9'", fail: "no such replication peer"},
		{line: "list_replicated_tables", want: "TABLE:COLUMNFAMILY  ReplicationType\n t:f GLOBAL\n1 row(s)\n"},
		{line: "enable_table_replication 'ns:u'", want: "The replication of table 'ns:u' successfully enabled\n"},
		{line: "disable_table_replication 't'", want: "The replication of table 't' successfully disabled\n"},
		{line: "disable_table_replication 't'", fail: "no family of it is replicated"},
		{line: "list_replicated_tables", want: "TABLE:COLUMNFAMILY  ReplicationType\n ns:u:f GLOBAL\n1 row(s)\n"},
		{line: "list_replicated_tables 'u.*'", want: "TABLE:COLUMNFAMILY  ReplicationType\n0 row(s)\n"},
		{line: "remove_peer '1'"},
		{line: "remove_peer '2'"},
		{line: "remove_peer '2'", fail: "no such replication peer"},
		{line: "enable_table_replication 't'", fail: "there is no peer"},
	})
}

func TestSecurityCommandsWithoutSecurity(t *testing.T) {
	play(t, minihbase.Options{}, []step{
		{line: "create 't', 'f'", want: made("t")},
		{line: "list_security_capabilities", want: "SIMPLE_AUTHENTICATION\n=> [\"SIMPLE_AUTHENTICATION\"]\n"},
		{line: "grant 'bob', 'RW', 't'", fail: "DISABLED: access control is not available"},
		{line: "grant 'bob', 'Q', 't'", fail: "RWXCA"},
		{line: "revoke 'bob', 't'", fail: "DISABLED"},
		{line: "user_permission", fail: "DISABLED"},
		{line: "add_labels ['A', 'B']", fail: "DISABLED: visibility labels are not available"},
		{line: "set_auths 'bob', ['A']", fail: "DISABLED"},
		{line: "get_auths 'bob'", fail: "DISABLED"},
		{line: "list_labels", fail: "DISABLED"},
		{line: "put 't', 'r', 'f:q', 'v', 7, {VISIBILITY => 'A|B'}"},
		{line: "put 't', 'r', 'f:q', 'v', 7, {VISIBILITY => 'A|'}", fail: "ends where a label is due"},
		{line: "set_visibility 't', 'A', {COLUMNS => 'f'}", want: "1 row(s)\n"},
		{line: "grant 't', {'bob' => 'R'}, {COLUMNS => 'f'}", want: "1 row(s)\n"},
		{line: "add_rsgroup 'g'"},
		{line: "alter_rsgroup_config 'g', {METHOD => 'set', 'PROPERTY_NAME' => 'v'}"},
		{line: "show_rsgroup_config 'g'", want: "'KEY'  'VALUE'\n PROPERTY_NAME v\n1 row(s)\n"},
		{line: "alter_rsgroup_config 'g', {METHOD => 'unset', NAME => 'PROPERTY_NAME'}"},
		{line: "show_rsgroup_config 'g'", want: "'KEY'  'VALUE'\n0 row(s)\n"},
		{line: "alter_rsgroup_config 'g', {METHOD => 'other'}", fail: "'set' or 'unset'"},
	})
}

func TestPeersOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	play(t, minihbase.Options{Dir: dir, Quotas: true}, []step{
		{line: "add_peer '1', CLUSTER_KEY => 'h:1:/x', STATE => 'DISABLED'"},
		{line: "set_quota TYPE => THROTTLE, TABLE => 't', LIMIT => '7req/sec'"},
	})
	play(t, minihbase.Options{Dir: dir, Quotas: true}, []step{
		{line: "list_peers", want: " PEER_ID CLUSTER_KEY ENDPOINT_CLASSNAME STATE REPLICATE_ALL NAMESPACES TABLE_CFS BANDWIDTH SERIAL\n 1 h:1:/x  DISABLED true   0 false\n1 row(s)\n"},
		{line: "list_quotas", want: "OWNER  QUOTAS\n TABLE => t TYPE => THROTTLE, THROTTLE_TYPE => REQUEST_NUMBER, LIMIT => 7req/sec, SCOPE => MACHINE\n1 row(s)\n"},
	})
}

func TestPeerErrorsHaveTheirSentinels(t *testing.T) {
	adm := open(t).Admin()
	if _, err := adm.Peer(t.Context(), "9"); !errors.Is(err, hbase.ErrPeerNotFound) {
		t.Errorf("no such peer: %v", err)
	}
	if err := adm.EnablePeer(t.Context(), "9"); !errors.Is(err, hbase.ErrPeerNotFound) {
		t.Errorf("no such peer: %v", err)
	}
	if _, err := adm.PeerEnabled(t.Context(), "9"); !errors.Is(err, hbase.ErrPeerNotFound) {
		t.Errorf("no such peer: %v", err)
	}
}
