package registry

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		text    string
		kind    Kind
		servers string
		parent  string
		check   func(Options) bool
	}{
		{"hbase://zk1:2181,zk2:2182/hbase", ZooKeeper, "zk1:2181,zk2:2182", "/hbase", nil},
		{"hbase://zk1", ZooKeeper, "zk1:2181", "/hbase", nil},
		{"hbase://zk1/", ZooKeeper, "zk1:2181", "/hbase", nil},
		{"hbase+zk://zk1,zk2/hbase-unsecure/", ZooKeeper, "zk1:2181,zk2:2181", "/hbase-unsecure", nil},
		{"hbase://zk1/a/b%20c", ZooKeeper, "zk1:2181", "/a/b c", nil},
		{"hbase://[::1]:7,[fe80::1]/hbase", ZooKeeper, "[::1]:7,[fe80::1]:2181", "/hbase", nil},
		{"hbase+rpc://m1,m2:16010", RPC, "m1:16000,m2:16010", "", nil},
		{"hbase+rpc://m1/?fanout=3", RPC, "m1:16000", "", func(o Options) bool { return o.Fanout == 3 }},
		{"hbase://zk1?rpc-timeout=3s&user=alice&batch-actions=7&compressor=snappy&ping-after=500ms", ZooKeeper, "zk1:2181", "/hbase",
			func(o Options) bool {
				return o.RPCTimeout == 3*time.Second && o.User == "alice" && o.BatchActions == 7 && o.Compressor == "snappy" && o.PingAfter == 500*time.Millisecond
			}},
	} {
		a, err := Parse(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if a.Kind != tc.kind || strings.Join(a.Servers, ",") != tc.servers || a.ZNodeParent != tc.parent {
			t.Errorf("%s: got %s %v %s", tc.text, a.Kind, a.Servers, a.ZNodeParent)
		}
		if tc.check != nil && !tc.check(a.Options) {
			t.Errorf("%s: options %+v", tc.text, a.Options)
		}
		again, err := Parse(a.String())
		if err != nil || again.String() != a.String() {
			t.Errorf("%s: printed as %s, which reads as %v, %v", tc.text, a, again, err)
		}
	}
}

func TestParseReportsEveryProblem(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"", []string{"hbase://zk1:2181/hbase"}},
		{"zk1:2181", []string{"did you mean hbase://zk1:2181?"}},
		{"http://zk1", []string{`scheme "http"`, "hbase+rpc"}},
		{"hbase://", []string{"no host"}},
		{"hbase://zk1:0,zk2:99999,:3,zk3:x", []string{`"0" is not a port`, `"99999" is not a port`, `":3" is not host:port`, `"x" is not a port`}},
		{"hbase://alice@zk1", []string{"?user=alice"}},
		{"hbase://zk1//x", []string{"not an absolute path"}},
		{"hbase://zk1/%zz", []string{"path:"}},
		{"hbase+rpc://m1/hbase", []string{"no path"}},
		{"hbase://zk1?retries=5&colour=red", []string{`unknown option "colour", "retries"`, "known are", "operation-timeout", "user"}},
		{"hbase://zk1?rpc-timeout=5", []string{`"5" is not a duration such as`}},
		{"hbase://zk1?rpc-timeout=1ns", []string{"less than 1ms"}},
		{"hbase://zk1?batch-actions=0&fanout=many", []string{"not between 1 and", "not a whole number"}},
		{"hbase://zk1?user=a&user=b", []string{"given 2 times"}},
		{"hbase://zk1?compressor=lzo", []string{"not one of none, gzip"}},
		{"hbase://zk1?authentication=magic", []string{"neither simple nor kerberos"}},
	} {
		_, err := Parse(tc.text)
		var ae *AddressError
		if !errors.As(err, &ae) || !errors.Is(err, ErrAddress) || !Permanent(err) {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", tc.text, err, w)
			}
		}
	}
}

const site = `<?xml version="1.0"?>
<?xml-stylesheet type="text/xsl" href="configuration.xsl"?>
<configuration>
  <property><name>hbase.rootdir</name><value>hdfs://nn/hbase</value></property>
  <property>
    <name>hbase.zookeeper.quorum</name>
    <value> zk1, zk2:2182 ,${third}</value>
    <description>three</description>
  </property>
  <property><name>third</name><value>zk3</value></property>
  <property><name>hbase.zookeeper.property.clientPort</name><value>2999</value></property>
  <property><name>zookeeper.znode.parent</name><value>/hbase-secure</value><final>true</final></property>
  <property><name>hbase.rpc.timeout</name><value>4000</value></property>
  <property><name>hbase.client.operation.timeout</name><value>90s</value></property>
  <property><name>hbase.client.rpc.compressor</name><value>org.apache.hadoop.io.compress.Lz4Codec</value></property>
</configuration>`

func TestParseSite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hbase-site.xml")
	if err := os.WriteFile(file, []byte(site), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{file, dir, dir + "/"} {
		a, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"zk1:2999", "zk2:2182", "zk3:2999"}; !slices.Equal(a.Servers, want) || a.ZNodeParent != "/hbase-secure" {
			t.Errorf("%s: %v %s", text, a.Servers, a.ZNodeParent)
		}
		if a.Options.RPCTimeout != 4*time.Second || a.Options.OperationTimeout != 90*time.Second || a.Options.Compressor != "lz4" {
			t.Errorf("options %+v", a.Options)
		}
		for _, s := range a.Effective() {
			switch s.Name {
			case "rpc-timeout":
				if s.Source != file || s.Value != "4000" || s.Key != "hbase.rpc.timeout" {
					t.Errorf("%+v", s)
				}
			case "ping-after":
				if s.Source != "default" || s.Value != "2s" {
					t.Errorf("%+v", s)
				}
			}
		}
	}
}

func TestParseSiteVariants(t *testing.T) {
	prop := func(kv ...string) string {
		s := "<configuration>"
		for i := 0; i < len(kv); i += 2 {
			s += "<property><name>" + kv[i] + "</name><value>" + kv[i+1] + "</value></property>"
		}
		return s + "</configuration>"
	}
	for _, tc := range []struct {
		name, xml, want string // want: the address, or the problem after "!"
	}{
		{"nothing set", prop(), "hbase://127.0.0.1:2181/hbase"},
		{"client quorum wins", prop("hbase.zookeeper.quorum", "a", "hbase.client.zookeeper.quorum", "b", "hbase.zookeeper.property.clientPort", "5"), "hbase://b:5/hbase"},
		{"client port", prop("hbase.client.zookeeper.quorum", "b", "hbase.client.zookeeper.property.clientPort", "6", "hbase.zookeeper.property.clientPort", "5"), "hbase://b:6/hbase"},
		{"rpc registry", prop("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.RpcConnectionRegistry", "hbase.client.bootstrap.servers", "r1:16020,r2:16020"), "hbase+rpc://r1:16020,r2:16020"},
		{"master registry", prop("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.MasterRegistry", "hbase.masters", "m1,m2", "hbase.master.port", "17"), "hbase+rpc://m1:17,m2:17"},
		{"master registry without masters", prop("hbase.client.registry.impl", "MasterRegistry"), "!needs hbase.client.bootstrap.servers or hbase.masters"},
		{"other registry", prop("hbase.client.registry.impl", "com.example.Mine"), "!unsupported: com.example.Mine"},
		{"bad port", prop("hbase.zookeeper.property.clientPort", "21x"), `!hbase.zookeeper.property.clientPort: "21x" is not a port`},
		{"bad quorum", prop("hbase.zookeeper.quorum", "a:b"), `!hbase.zookeeper.quorum: "a:b": "b" is not a port`},
		{"bad timeout", prop("hbase.rpc.timeout", "soon"), "!option hbase.rpc.timeout"},
		{"not xml", "hello", "!not an hbase-site.xml"},
		{"another document", "<project/>", "!not an hbase-site.xml"},
		{"include", `<configuration xmlns:xi="x"><xi:include href="other.xml"/></configuration>`, `!unsupported: xi:include of "other.xml"`},
		{"self reference", prop("hbase.zookeeper.quorum", "${hbase.zookeeper.quorum}"), "!is not host:port"},
	} {
		a, err := parseSite("f", []byte(tc.xml))
		if want, bad := strings.CutPrefix(tc.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, %v", tc.name, a, err)
			}
			continue
		}
		if err != nil || a.String() != tc.want {
			t.Errorf("%s: %v, %v", tc.name, a, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"hbase://zk1:2181,zk2/hbase?user=a", "hbase+rpc://m1", "hbase://[::1]:3/x%20y", "hbase+zk://?&="} {
		spoil.Add(f, s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !strings.Contains(s, "://") {
			return // a path: the file system is not ours to fuzz
		}
		a, err := Parse(s)
		if err != nil {
			return
		}
		if len(a.Servers) == 0 {
			t.Fatal("no servers and no error")
		}
	})
}

func FuzzParseSite(f *testing.F) {
	spoil.Add(f, []byte(site))
	spoil.Add(f, []byte("<configuration><property/></configuration>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := parseSite("f", b); err == nil && len(a.Servers) == 0 {
			t.Fatal("no servers and no error")
		}
	})
}
