package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
)

// logLevelPage is what HBase 2.4 and 2.6 answer, shortened.
const logLevelPage = `<!DOCTYPE html>
<html><body>
<h1>Get/Set Log Level</h1><form>Get: <input type="text" size="50" name="log" /></form>
<hr /><h3>Results:</h3>
<!-- OUTPUT -->Submitted Class Name: <b>org.apache.hadoop.hbase.ipc</b><br />
<!-- OUTPUT -->Log Class: <b>org.apache.logging.slf4j.Log4jLogger</b><br />
<!-- OUTPUT -->Submitted Level: <b>DEBUG</b><br />
<!-- OUTPUT -->Setting Level to DEBUG ...<br />
<!-- OUTPUT -->Effective Level: <b>DEBUG</b><br />
</body></html>`

func TestParseLogLevel(t *testing.T) {
	got, err := parseLogLevel([]byte(logLevelPage))
	if want := (LogLevel{"org.apache.hadoop.hbase.ipc", "org.apache.logging.slf4j.Log4jLogger", "DEBUG"}); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for page, want := range map[string]string{
		"":                                   "not that of HBase's /logLevel",
		"<html>Effective Level: <b>INFO</b>": "not that of HBase's /logLevel",
		"<!-- OUTPUT -->Bad Level : <b>LOUD</b><br />":                  "bad level: LOUD",
		"<!-- OUTPUT -->Sorry, com.x.Log not supported.<br />":          "Sorry, com.x.Log not supported.",
		"<!-- OUTPUT -->Modification of HBase via the UI is disallowed": "disallowed",
	} {
		if got, err := parseLogLevel([]byte(page)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", page, got, err, want)
		}
	}
}

func FuzzParseLogLevel(f *testing.F) {
	f.Add([]byte(logLevelPage))
	f.Add([]byte("<!-- OUTPUT -->Bad level: <b>&amp;&lt;"))
	f.Add([]byte("<!-- OUTPUT -->:\n<!-- OUTPUT -->Effective Level"))
	f.Fuzz(func(t *testing.T, page []byte) {
		got, err := parseLogLevel(page)
		if err == nil && got.Level == "" {
			t.Errorf("no level and no error")
		}
		if len(got.Level) > 1100 || len(got.Class) > 1100 {
			t.Errorf("%d and %d bytes", len(got.Level), len(got.Class))
		}
	})
}

func TestLogLevelClient(t *testing.T) {
	var status int
	var page, asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		w.WriteHeader(status)
		io.WriteString(w, page)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	var c LogLevelClient

	status, page = 200, logLevelPage
	if l, err := c.Get(t.Context(), address, "a.b"); err != nil || l.Level != "DEBUG" || asked != "/logLevel?log=a.b" {
		t.Errorf("%+v, %v, asked %s", l, err, asked)
	}
	if l, err := c.Set(t.Context(), address, "a&b", "debug"); err != nil || l.Level != "DEBUG" || asked != "/logLevel?level=DEBUG&log=a%26b" {
		t.Errorf("%+v, %v, asked %s", l, err, asked)
	}
	for code, want := range map[int]error{401: fault.ErrAccessDenied, 403: fault.ErrAccessDenied, 404: fault.ErrUnsupported} {
		status, page = code, "<html><head><style>b{}</style></head><h2>No &lt;way&gt;</h2>"+strings.Repeat("x", 1000)
		_, err := c.Get(t.Context(), address, "a")
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "No <way>") || len(err.Error()) > 400 {
			t.Errorf("HTTP %d: %v", code, err)
		}
	}
	for _, bad := range [][3]string{{address, "", ""}, {"nowhere", "a", ""}, {address, "a", "LOUD"}} {
		var err error
		if bad[2] == "" {
			_, err = c.Get(t.Context(), bad[0], bad[1])
		} else {
			_, err = c.Set(t.Context(), bad[0], bad[1], bad[2])
		}
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	// A server that says nothing.
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hung.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, strings.TrimPrefix(hung.URL, "http://"), "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hung: %v", err)
	}
}
