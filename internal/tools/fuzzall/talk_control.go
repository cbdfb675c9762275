package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
)

// controlRequests are the requests of docs/control-api.md, with the fields of
// their bodies.
var controlRequests = []struct {
	method, path string
	fields       string
}{
	{"GET", "/status", ""}, {"GET", "/regions?table=%s&limit=%s", ""}, {"GET", "/events?since=%s&limit=%s", ""}, {"GET", "/events?follow=true&since=%s&kind=%s", ""},
	{"GET", "/counters", ""}, {"POST", "/events", "enabled"}, {"POST", "/create", "table families splits replicas"},
	{"POST", "/generate", "table families regions keyFormat rows valueSize"}, {"POST", "/drop", "table"}, {"POST", "/replica-lag", "lag"},
	{"POST", "/move", "region table row to"}, {"POST", "/split", "region table row at"}, {"POST", "/merge", "regions"}, {"POST", "/balance", ""},
	{"POST", "/group", "name add servers tables remove"}, {"POST", "/kill", "server"}, {"POST", "/stop", "server"}, {"POST", "/start", "server"},
	{"POST", "/pause", "server"}, {"POST", "/hang", "server"}, {"POST", "/resume", "server"}, {"POST", "/slow", "server delay"}, {"POST", "/expire", "server"},
	{"POST", "/reset-connections", "server"}, {"GET", "/rule", ""}, {"DELETE", "/rule", ""}, {"GET", "/rule/%s", ""}, {"DELETE", "/rule/%s", ""},
	{"POST", "/rule", "server service method table region startRow stopRow user skip every times probability seed name action delay exception"},
	{"POST", "/rule/%s/release", ""}, {"POST", "/rule/%s/wait?hits=%s&timeout=%s", ""},
	{"POST", "/master", "transitionGap procedureDelay initializing failNext failClass"}, {"POST", "/clock", "reset freeze at advance resume"},
	{"POST", "/zk/fault", "mode latency stallPings hangAfter truncate halfHandshake member"}, {"POST", "/zk/drop", "member"}, {"POST", "/reckon-space", ""}, {"POST", "/zk/mend", ""}, {"POST", "/zk/stall-leader", "notice elect"}, {"GET", "/zk/members", ""}, {"GET", "/zk/sessions", ""},
	{"POST", "/zk/expire", "id"}, {"GET", "/zk/node?path=%s", ""}, {"PUT", "/zk/node", "path data"}, {"DELETE", "/zk/node?path=%s", ""},
	{"GET", "/nothing/%s", ""}, {"PATCH", "/status", ""},
}

// controlWords are values of fields and parameters.
var controlWords = []string{"fuzz", "f", "0", "1", "-1", "7", "99999999999999999999", "meta", "master", "master:0", "master:x", "a", "m", "\\x00", "\\x", "150ms", "-5s",
	"2540400h", "true", "frozen", "silent", "read-only", "black hole", "delay", "fail", "hold", "drop-reply", "%08d", "user%06d", "%s", "/fuzz", "/hbase", "/", "",
	"2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "org.apache.hadoop.hbase.NotServingRegionException", "0x1", "rpc", "cluster", "AAAA"}

func controlValue(r *rand.Rand, pic *picture, depth int) any {
	switch n := r.IntN(16); {
	case n < 8:
		if len(pic.Encoded) > 0 && n == 0 {
			return pick(r, pic.Encoded...)
		}
		return pick(r, controlWords...)
	case n < 10:
		return pick(r, 0, 1, 2, 3, 5, -1, 100, 1000)
	case n == 10:
		return pick(r, 0.5, -1.5, 1e300, 1e15)
	case n == 11:
		return chance(r, 2)
	case n == 12:
		return nil
	case n == 13 && depth < 3:
		return map[string]any{pick(r, "class", "message", "doNotRetry", "wait", "port", "x"): controlValue(r, pic, depth+1)}
	}
	list := []any{}
	for range r.IntN(4) {
		if depth < 3 {
			list = append(list, controlValue(r, pic, depth+1))
		}
	}
	return list
}

// controlTalk is a series of HTTP requests on one connection.
func controlTalk(r *rand.Rand, pic *picture) talk {
	t := talk{address: strings.TrimPrefix(pic.Control, "http://")}
	for range 1 + r.IntN(4) {
		t.frames = append(t.frames, controlRequest(r, pic, t.address))
	}
	return t
}

func controlRequest(r *rand.Rand, pic *picture, host string) []byte {
	q := controlRequests[r.IntN(len(controlRequests))]
	if chance(r, 2000) { // servers that were added stay
		q.method, q.path, q.fields = "POST", "/add", ""
	}
	args := make([]any, strings.Count(q.path, "%s"))
	for i := range args {
		args[i] = url.QueryEscape(pick(r, controlWords...))
	}
	var body []byte
	if q.fields != "" {
		fields := map[string]any{}
		for _, f := range strings.Fields(q.fields) {
			switch {
			case chance(r, 4):
			case f == "regions" && q.path == "/generate":
				fields[f] = pick(r, -1, 0, 1, 1000, 2_000_000) // a million are a request like others, but not for two cores and many times
			case f == "probability":
				fields[f] = pick(r, 0, 0.5, 1, 2, -1)
			default:
				fields[f] = controlValue(r, pic, 0)
			}
		}
		var err error
		if body, err = json.Marshal(fields); err != nil {
			body = []byte("{")
		}
		if chance(r, 4) {
			body = spoil(r, body, false)
		}
		if chance(r, 40) {
			body = bytes.Repeat([]byte(pick(r, "[", "{\"a\":", " ", "9")), 1+r.IntN(1<<16))
		}
	}
	path := fmt.Sprintf(q.path, args...)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", q.method, path, host)
	if chance(r, 60) {
		fmt.Fprintf(&b, "Origin: http://elsewhere\r\n")
	}
	if q.method != "GET" || chance(r, 10) {
		n := len(body)
		if chance(r, 20) {
			n = pick(r, -1, 0, 1<<31, n+5, 1<<62)
		}
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", n)
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}
