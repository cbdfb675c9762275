package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
)

// LogLevel is what a server says of one of its loggers.
type LogLevel struct {
	// Logger is the name asked for; Class the Java class of the logger.
	Logger, Class string
	// Level is in force now: TRACE, DEBUG, INFO, WARN, ERROR, FATAL, ALL or OFF.
	Level string
}

// LogLevelClient reads and sets the log levels of HBase's servers, which is not
// done by RPC but over HTTP, at the servlet /logLevel of a server's web port
// ([Admin.ServerInfo], or ClusterStatus for the master's). The zero value is
// ready. HBase's own tool is org.apache.hadoop.hbase.http.log.LogLevel.
type LogLevelClient struct {
	// HTTP is used if set; a client with a timeout of 30 s otherwise. Clusters
	// with Kerberos want one that can do SPNEGO.
	HTTP *http.Client
	// TLS asks by https.
	TLS bool
}

// maxLogLevelPage bounds the page that is read; HBase's has about 2 KiB.
const maxLogLevelPage = 1 << 20

// Get asks the server whose web port is at address (host:port) for the level of
// a logger, for instance org.apache.hadoop.hbase.ipc.
func (c LogLevelClient) Get(ctx context.Context, address, logger string) (LogLevel, error) {
	return c.do(ctx, "get log level", address, logger, "")
}

// Set changes the level of a logger until the server is restarted, and gives
// what is in force then. Servers may refuse it (only admins may,
// and with hbase.master.ui.readonly nobody): [*LogLevelError] holds the status.
func (c LogLevelClient) Set(ctx context.Context, address, logger, level string) (LogLevel, error) {
	level = strings.ToUpper(level)
	switch level {
	case "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "ALL", "OFF":
	default:
		return LogLevel{}, invalid("set log level", "level "+strconv.Quote(level), "is none of TRACE, DEBUG, INFO, WARN, ERROR, FATAL, ALL, OFF")
	}
	return c.do(ctx, "set log level", address, logger, level)
}

// LogLevelError is a server's refusal.
type LogLevelError struct {
	Status int // of HTTP
	Text   string
}

// Error is `HTTP 403: text`.
func (e *LogLevelError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("HTTP %d: %s", e.Status, e.Text), ": ")
}

// Is matches ErrAccessDenied for 401 and 403, and ErrUnsupported for 404.
func (e *LogLevelError) Is(target error) bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return target == fault.ErrAccessDenied
	case http.StatusNotFound:
		return target == fault.ErrUnsupported
	}
	return false
}

func (c LogLevelClient) do(ctx context.Context, op, address, logger, level string) (LogLevel, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return LogLevel{}, invalid(op, "server "+strconv.Quote(address), "is not host:port of a web port")
	}
	if logger == "" {
		return LogLevel{}, invalid(op, "logger", "has no name")
	}
	object := fmt.Sprintf("of %s at %s", logger, address)
	query := url.Values{"log": {logger}}
	if level != "" {
		query.Set("level", level)
	}
	u := url.URL{Scheme: "http", Host: address, Path: "/logLevel", RawQuery: query.Encode()}
	if c.TLS {
		u.Scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return LogLevel{}, fault.Wrap(op, object, err)
	}
	client := c.HTTP
	if client == nil {
		// A connection of its own: nothing outlives the call.
		client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	}
	resp, err := client.Do(req)
	if err != nil {
		return LogLevel{}, fault.Wrap(op, object, err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(io.LimitReader(resp.Body, maxLogLevelPage))
	if err != nil {
		return LogLevel{}, fault.Wrap(op, object, err)
	}
	if resp.StatusCode != http.StatusOK {
		return LogLevel{}, fault.Wrap(op, object, &LogLevelError{Status: resp.StatusCode, Text: plainText(page, 200)})
	}
	out, err := parseLogLevel(page)
	return out, fault.Wrap(op, object, err)
}

// parseLogLevel reads the lines the servlet marks as its output:
//
//	<!-- OUTPUT -->Effective Level: <b>INFO</b><br />
func parseLogLevel(page []byte) (LogLevel, error) {
	var out LogLevel
	var said string
	for line := range bytes.Lines(page) {
		_, text, marked := bytes.Cut(line, []byte("<!-- OUTPUT -->"))
		if !marked {
			continue
		}
		what, value, _ := strings.Cut(plainText(text, 1000), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(what) {
		case "Submitted Class Name", "Submitted Log Name":
			out.Logger = value
		case "Log Class":
			out.Class = value
		case "Effective Level", "Effective level":
			out.Level = value
		case "Bad level", "Bad Level":
			return out, &LogLevelError{Status: http.StatusOK, Text: "bad level: " + value}
		default:
			said = plainText(text, 200)
		}
	}
	if out.Level == "" && said != "" {
		return out, &LogLevelError{Status: http.StatusOK, Text: said}
	}
	if out.Level == "" {
		return out, &fault.Unreadable{Err: errors.New("the page is not that of HBase's /logLevel")}
	}
	return out, nil
}

// plainText takes the tags out of a piece of HTML and cuts it.
func plainText(page []byte, limit int) string {
	text := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(string(page), " "))), " ")
	if len(text) > limit {
		text = text[:limit] + "..."
	}
	return text
}

var tags = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>|<[^>]*>`)
