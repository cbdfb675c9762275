package hbase

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/registry"
)

func siteOf(t *testing.T, kv ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("<configuration>")
	for i := 0; i < len(kv); i += 2 {
		b.WriteString("<property><name>" + kv[i] + "</name><value>" + kv[i+1] + "</value></property>")
	}
	b.WriteString("</configuration>")
	file := filepath.Join(t.TempDir(), "hbase-site.xml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func settingOf(c Config, name string) Setting {
	for _, s := range c.Effective() {
		if s.Name == name {
			return s
		}
	}
	return Setting{}
}

func TestEffectiveTellsTheSource(t *testing.T) {
	t.Setenv("HADOOP_USER_NAME", "carol")
	site := siteOf(t,
		"hbase.zookeeper.quorum", "zk1",
		"hbase.rpc.timeout", "60000",
		"hbase.client.operation.timeout", "3000",
		"hbase.client.keyvalue.maxsize", "0",
		"hbase.client.write.buffer", "4194304",
		"hbase.client.scanner.caching", "2147483647",
		"hbase.client.primaryCallTimeout.get", "25000",
		"hbase.client.pause", "50",
		"hbase.client.retries.number", "3",
		"hbase.regionserver.handler.count", "30",
	)
	client, err := Open(t.Context(), site, WithPingAfter(700*time.Millisecond), WithScannerTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := client.Config()
	for name, want := range map[string]string{
		"address":           site + " option",
		"user":              "carol environment HADOOP_USER_NAME",
		"rpc-timeout":       "1m0s " + site + ": hbase.rpc.timeout",
		"operation-timeout": "3s " + site + ": hbase.client.operation.timeout",
		"max-cell-size":     "1073741824 " + site + ": hbase.client.keyvalue.maxsize",
		"write-buffer":      "4194304 " + site + ": hbase.client.write.buffer",
		"scanner-caching":   "0 " + site + ": hbase.client.scanner.caching",
		"replica-after":     "25ms " + site + ": hbase.client.primaryCallTimeout.get",
		"ping-after":        "700ms option",
		"scanner-timeout":   "1m0s default", // the option said what is the default
		"compressor":        "none default",
		"fanout":            "2 default",
	} {
		s := settingOf(c, name)
		if got := s.Value + " " + s.Source; got != want || s.Doc == "" {
			t.Errorf("%s is %s (%s), want %s", name, got, s.Doc, want)
		}
	}
	if s := settingOf(c, "rpc-timeout"); s.Property != "hbase.rpc.timeout" || s.Default != "10s" {
		t.Errorf("%+v", s)
	}
	// The incident: no smaller bound for an attempt than for the operation.
	warnings := strings.Join(c.Warnings(), "\n")
	if !strings.Contains(warnings, "rpc-timeout (1m0s) is not smaller than operation-timeout (3s)") || !strings.Contains(warnings, "750ms, 750ms, 1.5s") {
		t.Errorf("warnings %q", warnings)
	}
	ignored := c.Ignored()
	if len(ignored) != 2 || ignored[0].Key != "hbase.client.pause" || ignored[1].Key != "hbase.client.retries.number" || ignored[1].Value != "3" {
		t.Errorf("ignored %+v", ignored)
	}
	text := c.String()
	for _, want := range []string{"rpc-timeout ", "hbase.rpc.timeout\n", "warnings\n", "without effect here\n  hbase.client.pause = 50: pauses follow"} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
	var doc struct {
		Settings []Setting
		Warnings []string
		Ignored  []struct{ Property, Value, Why string }
	}
	raw, err := json.Marshal(c)
	if err != nil || json.Unmarshal(raw, &doc) != nil || len(doc.Settings) < 20 || len(doc.Warnings) == 0 || doc.Ignored[0].Property != "hbase.client.pause" {
		t.Errorf("%v, %s", err, raw)
	}
}

func TestEffectiveOfAnAddress(t *testing.T) {
	t.Setenv("HOLDFAST_ADDRESS", "hbase://zk1?rpc-timeout=4s&fanout=3&meta-watch=2s")
	t.Setenv("HADOOP_USER_NAME", "")
	client, err := Open(t.Context(), "", WithRPCTimeout(5*time.Second), WithUser("dave"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := client.Config()
	for name, want := range map[string]string{
		"address":     "hbase://zk1?rpc-timeout=4s&fanout=3&meta-watch=2s environment HOLDFAST_ADDRESS",
		"rpc-timeout": "5s option",
		"fanout":      "3 address",
		"meta-watch":  "2s address",
		"user":        "dave option",
	} {
		if s := settingOf(c, name); s.Value+" "+s.Source != want {
			t.Errorf("%s is %s from %s, want %s", name, s.Value, s.Source, want)
		}
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("warnings %q", w)
	}
}

// What Java's client reads without complaint must not keep this one from
// starting, except for what it cannot do.
func TestEveryPropertyIsTaken(t *testing.T) {
	for _, p := range registry.Properties() {
		for _, value := range []string{"1", "2147483647", "true", "60000"} {
			if p.Use != registry.Sets && p.Use != registry.Ignored || p.Unit == "" && value == "true" {
				continue
			}
			truth := p.Option == "meta-replicas"
			if p.Use == registry.Sets && ((value == "true") != truth || p.Option == "compressor") {
				continue
			}
			client, err := Open(t.Context(), siteOf(t, p.Key, value))
			if err != nil {
				t.Errorf("%s=%s: %v", p.Key, value, err)
				continue
			}
			c := client.Config()
			client.Close()
			if p.Use == registry.Sets {
				if s := settingOf(c, p.Option); s.Name == "" || s.Source == "default" || s.Property == "" {
					t.Errorf("%s=%s: %+v", p.Key, value, s)
				}
			} else if got := c.Ignored(); len(got) != 1 || got[0].Why == "" {
				t.Errorf("%s=%s: ignored %+v", p.Key, value, got)
			}
		}
	}
}

func TestWhatCannotBeDoneIsRefused(t *testing.T) {
	for _, test := range []struct{ key, value, says string }{
		{"hbase.security.authentication", "kerberos", "unsupported: authentication with Kerberos"},
		{"hadoop.security.authentication", "Kerberos", "unsupported: authentication with Kerberos (hadoop.security.authentication=Kerberos)"},
		{"hbase.rpc.protection", "privacy", "unsupported: protection privacy"},
		{"hbase.client.netty.tls.enabled", "true", "unsupported: TLS to region servers"},
		{"hbase.client.rpc.codec", "com.example.Codec", "unsupported: codec com.example.Codec"},
		{"hbase.client.registry.impl", "com.example.Registry", "unsupported: com.example.Registry"},
		{"zookeeper.znode.metaserver", "elsewhere", "unsupported: another name than meta-region-server"},
	} {
		client, err := Open(t.Context(), siteOf(t, test.key, test.value))
		if err == nil {
			client.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s=%s: %v", test.key, test.value, err)
		}
	}
	for _, kv := range [][2]string{
		{"hbase.security.authentication", "simple"},
		{"hbase.rpc.protection", "authentication"},
		{"hbase.rpc.protection", "privacy, authentication"},
		{"hbase.client.netty.tls.enabled", "false"},
		{"hbase.client.rpc.codec", "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags"},
	} {
		client, err := Open(t.Context(), siteOf(t, kv[0], kv[1]))
		if err != nil {
			t.Errorf("%s=%s: %v", kv[0], kv[1], err)
			continue
		}
		client.Close()
	}
}
