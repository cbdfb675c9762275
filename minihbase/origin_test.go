package minihbase

import (
	"net/http/httptest"
	"testing"
)

// Every way in which a web page can make a browser send something, and ours.
func TestForeign(t *testing.T) {
	const own = "127.0.0.1:16900"
	for _, x := range []struct {
		name, method, path, host string
		headers                  []string
		foreign                  bool
	}{
		{"a program", "POST", "/kill", own, nil, false},
		{"a program by name", "POST", "/kill", "localhost:16900", nil, false},
		{"a program over IPv6", "POST", "/kill", "[::1]:16900", nil, false},
		{"the address bar", "GET", "/", own, []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false},
		{"our page reads", "GET", "/console/map", own, []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, false},
		{"our page acts", "POST", "/kill", own, []string{"Origin", "http://" + own, "Sec-Fetch-Site", "same-origin"}, false},
		{"our page acts, by name", "POST", "/kill", "localhost:16900", []string{"Origin", "http://localhost:16900", "Sec-Fetch-Site", "same-origin"}, false},
		{"our page, an old browser", "POST", "/kill", own, []string{"Origin", "http://" + own}, false},
		{"a link to the page", "GET", "/", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false},

		{"another site acts", "POST", "/kill", own, []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"}, true},
		{"another site, an old browser", "POST", "/kill", own, []string{"Origin", "http://evil.example"}, true},
		{"another port of this machine", "POST", "/kill", own, []string{"Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "same-site"}, true},
		{"another scheme", "POST", "/kill", own, []string{"Origin", "https://" + own}, true},
		{"another name of this machine", "POST", "/kill", own, []string{"Origin", "http://localhost:16900", "Sec-Fetch-Site", "cross-site"}, true},
		{"a sandboxed frame", "POST", "/kill", own, []string{"Origin", "null"}, true},
		{"a file on disk", "POST", "/kill", own, []string{"Origin", "file://"}, true},
		{"an empty origin", "POST", "/kill", own, []string{"Origin", ""}, true},
		{"two origins", "POST", "/kill", own, []string{"Origin", "http://" + own, "Origin", "http://evil.example"}, true},
		{"a form without origin", "POST", "/", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true},
		{"an image", "GET", "/events?follow=true", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, true},
		{"a script of ours elsewhere", "GET", "/console/app.js", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "script"}, true},
		{"a frame", "GET", "/", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, true},
		{"a link to a request", "GET", "/regions", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true},
		{"another app of this machine reads", "GET", "/status", own, []string{"Sec-Fetch-Site", "same-site"}, true},
		{"a name made to lead here", "GET", "/status", "evil.example:16900", []string{"Sec-Fetch-Site", "same-origin"}, true},
		{"a name made to lead here acts", "POST", "/kill", "evil.example:16900", []string{"Origin", "http://evil.example:16900", "Sec-Fetch-Site", "same-origin"}, true},
		{"a name that begins like ours", "GET", "/status", "localhost.evil.example", nil, true},
		{"a name that begins like an address", "GET", "/status", "127.0.0.1.evil.example:16900", nil, true},
		{"another machine's address", "GET", "/status", "192.0.2.1:16900", nil, true},
		{"no host", "GET", "/status", "", nil, true},
	} {
		r := httptest.NewRequest(x.method, x.path, nil)
		r.Host = x.host
		for i := 0; i < len(x.headers); i += 2 {
			r.Header.Add(x.headers[i], x.headers[i+1])
		}
		if got := foreign(r); got != x.foreign {
			t.Errorf("%s: foreign %t", x.name, got)
		}
	}
}
