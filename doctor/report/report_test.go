package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/doctor"
	"github.com/holdfast-hbase/holdfast/doctor/checks"
	"github.com/holdfast-hbase/holdfast/doctor/finding"
	"github.com/holdfast-hbase/holdfast/doctor/report"
)

func diagnosis(t *testing.T, names ...string) *finding.Report {
	t.Helper()
	var in []doctor.Input
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join("..", "testdata", "cases", n))
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, doctor.Text(n, string(b)))
	}
	r, err := doctor.Diagnose(t.Context(), in, doctor.Options{Timeline: true, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJSONFollowsItsSchema(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(report.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{{"S000.txt", "S000-site.xml"}, {"S002.txt"}, {"S004.txt"}, {"D18.txt"}, {"D14.txt"}, {}} {
		var b bytes.Buffer
		if err := report.JSON(&b, diagnosis(t, names...)); err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		validate(t, schema, schema, doc, strings.Join(names, "+"))
	}
}

// validate checks the parts of JSON Schema that ours uses.
func validate(t *testing.T, root, s map[string]any, v any, path string) {
	t.Helper()
	if ref, ok := s["$ref"].(string); ok {
		s = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if e, ok := s["enum"].([]any); ok {
		for _, x := range e {
			if x == v {
				return
			}
		}
		t.Errorf("%s: %v is none of %v", path, v, e)
	}
	types := []any{s["type"]}
	if l, ok := s["type"].([]any); ok {
		types = l
	}
	fits := s["type"] == nil
	for _, k := range types {
		switch v := v.(type) {
		case map[string]any:
			fits = fits || k == "object"
		case []any:
			fits = fits || k == "array"
		case string:
			fits = fits || k == "string"
		case float64:
			fits = fits || k == "number" || k == "integer" && v == float64(int64(v))
		case nil:
			fits = fits || k == "null"
		}
	}
	if !fits {
		t.Errorf("%s: %v is no %v", path, v, s["type"])
	}
	switch v := v.(type) {
	case map[string]any:
		req, _ := s["required"].([]any)
		for _, r := range req {
			if _, ok := v[r.(string)]; !ok {
				t.Errorf("%s: %s is missing", path, r)
			}
		}
		props, _ := s["properties"].(map[string]any)
		for k, x := range v {
			if p, ok := props[k].(map[string]any); ok {
				validate(t, root, p, x, path+"."+k)
			} else if props != nil && s["additionalProperties"] == nil && !strings.Contains(path, ".plots") {
				t.Errorf("%s: %s is not in the schema", path, k)
			}
		}
	case []any:
		if items, ok := s["items"].(map[string]any); ok {
			for _, x := range v {
				validate(t, root, items, x, path+"[]")
			}
		}
	}
}

func TestCIFormats(t *testing.T) {
	r := diagnosis(t, "S004.txt", "D14.txt")
	var b bytes.Buffer
	if err := report.SARIF(&b, r); err != nil {
		t.Fatal(err)
	}
	var sarif struct {
		Version string
		Runs    []struct {
			Results []struct{ RuleID, Level string }
			Tool    struct {
				Driver struct{ Rules []struct{ ID string } }
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &sarif); err != nil {
		t.Fatal(err)
	}
	if sarif.Version != "2.1.0" || len(sarif.Runs) != 1 || len(sarif.Runs[0].Results) != len(r.Findings) || sarif.Runs[0].Results[0].Level != "error" {
		t.Errorf("sarif: %+v", sarif)
	}
	b.Reset()
	if err := report.JUnit(&b, r, finding.Error); err != nil {
		t.Fatal(err)
	}
	var junit struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(b.Bytes(), &junit); err != nil {
		t.Fatal(err)
	}
	if junit.Failures != 1 || junit.Tests < len(checks.Catalog()) {
		t.Errorf("junit: %+v", junit)
	}
}

func TestHTMLStandsAlone(t *testing.T) {
	var b bytes.Buffer
	r := diagnosis(t, "S000.txt", "S000-site.xml", "S002.txt", "S004.txt", "D01.txt", "D17.txt")
	r.Findings[0].Subject = `<script>alert(1)</script>`
	if err := report.HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "http://", "https://", "src=", "@import", "url("} {
		if i := strings.Index(page, bad); i >= 0 {
			t.Errorf("the page holds %q: %s", bad, page[i:min(len(page), i+80)])
		}
	}
	for _, good := range []string{"<svg", "prefers-color-scheme: dark", "width=device-width", "10 threads behind", "earliest expiry", "operation timeout"} {
		if !strings.Contains(page, good) {
			t.Errorf("the page lacks %q", good)
		}
	}
}

func TestTextIsPlainWithoutATerminal(t *testing.T) {
	var b bytes.Buffer
	if err := report.Text(&b, diagnosis(t, "S004.txt"), false); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "\x1b") || !strings.HasPrefix(b.String(), "CRITICAL  ZK_SESSION_EXPIRED_NETWORK") {
		t.Errorf("got %q", b.String()[:80])
	}
}

func TestRedactionIsConsistentAndComplete(t *testing.T) {
	const secret = `2023-01-01 00:00:00,000 ERROR [main] c: org.apache.hadoop.hbase.client.RetriesExhaustedException: Failed after attempts=36, exceptions:
Wed Aug 10 14:55:21 EDT 2016, null, java.net.SocketTimeoutException: callTimeout=60000, callDuration=68118: Call to db7.bank.internal/10.20.30.40:16020 failed on connection exception: java.net.ConnectException: Connection refused row 'alice@x' on table 'prod:accounts' at region=prod:accounts,alice,1492087928872.842688a0d9348b4a5915051294858967., hostname=db7.bank.internal,16020,1470239773946, seqNum=0
2023-01-01 00:00:01,000 WARN [main] x: principal hbase/db7.bank.internal@BANK.INTERNAL in /home/bob/app, quorum zk1.bank.internal:2181
`
	in := doctor.Text("/home/bob/client.log", secret)
	r, err := doctor.Diagnose(t.Context(), []doctor.Input{in}, doctor.Options{Timeline: true})
	if err != nil {
		t.Fatal(err)
	}
	red, err := report.Redact(r)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.JSON(&b, red); err != nil {
		t.Fatal(err)
	}
	if err := report.HTML(&b, red); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"bank", "BANK", "10.20.30.40", "accounts", "alice", "bob", "prod"} {
		if i := strings.Index(b.String(), s); i >= 0 {
			t.Errorf("%q is still there: %s", s, b.String()[max(0, i-80):min(b.Len(), i+60)])
		}
	}
	f := red.Find("PORT_UNREACHABLE")
	if f == nil || f.Fields["server"] != "host1.example:16020" || !strings.Contains(f.Cause, "host1.example") {
		t.Errorf("one name, one replacement: %+v", f)
	}
}
