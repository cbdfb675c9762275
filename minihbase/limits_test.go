package minihbase_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestControlLimits: the control port bounds connections, headers and bodies, and goes on serving who behaves.
func TestControlLimits(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	addr := strings.TrimPrefix(c.Control(), "http://")
	ask := func(request string) string {
		t.Helper()
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(2 * time.Minute))
		// The answer may come, and the connection end, before everything is written.
		go io.WriteString(nc, request)
		line, err := bufio.NewReader(nc).ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(line)
	}
	head := "POST /zk/node HTTP/1.1\r\nHost: " + addr + "\r\n"
	status := "GET /status HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"
	for name, q := range map[string]struct{ request, want string }{
		"body of 2 GB":            {"PUT /zk/node HTTP/1.1\r\nHost: " + addr + "\r\nContent-Length: 2147483648\r\n\r\n" + strings.Repeat(" ", 5<<20), "HTTP/1.1 400 Bad Request"},
		"endless body":            {"PUT /zk/node HTTP/1.1\r\nHost: " + addr + "\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("10000\r\n"+strings.Repeat("[", 1<<16)+"\r\n", 70), "HTTP/1.1 400 Bad Request"},
		"header of a megabyte":    {head + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"a length that is none":   {head + "Content-Length: -5\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"another method's length": {head + "Content-Length: 5\r\n\r\nabcde", "HTTP/1.1 405 Method Not Allowed"},
		"good":                    {status, "HTTP/1.1 200 OK"},
	} {
		if got := ask(q.request); got != q.want {
			t.Errorf("%s: %q, want %q", name, got, q.want)
		}
	}

	// Bodies that are begun and not finished take their places only; small ones pass them by.
	var held []net.Conn
	defer func() {
		for _, nc := range held {
			nc.Close()
		}
	}()
	for range 20 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, nc)
		fmt.Fprintf(nc, "PUT /zk/node HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000\r\n\r\n{", addr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "PUT", c.Control()+"/zk/node", bytes.NewReader([]byte(`{"path":"/small","data":"AAAA"}`)))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Error(resp.Status)
	}

	// A thousand silent connections and more: the surplus is closed, and a place that becomes free can be taken.
	surplus := false
	for range 1100 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			surplus = true
			break
		}
		held = append(held, nc)
	}
	last := held[len(held)-1]
	last.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := last.Read(make([]byte, 1)); !surplus && err != io.EOF && !strings.Contains(err.Error(), "reset") {
		t.Errorf("connection %d: %v", len(held), err)
	}
	for _, nc := range held {
		nc.Close()
	}
	held = nil
	for deadline := time.Now().Add(2 * time.Minute); ask(status) != "HTTP/1.1 200 OK"; {
		if time.Now().After(deadline) {
			t.Fatal("no place becomes free")
		}
	}
}
