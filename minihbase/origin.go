package minihbase

import (
	"net"
	"net/http"
	"strings"
)

// foreign says whether a request could have been made by a web page that is not
// ours: the port can kill servers and drop tables, and a page on any site can
// send requests to loopback. A browser names the page's origin (with what
// changes something), or how the page and we are related (Sec-Fetch-Site), or,
// if the page's own name was made to lead here, that name as the host.
//
// Our own page is served by this port, so its origin is the host it was asked
// for. A link from elsewhere may lead to the page itself: opening it changes
// nothing, and it cannot be put into a frame.
func foreign(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return true
	}
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && origins[0] != "http://"+r.Host {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // no browser, our page, the address bar
		return false
	}
	opened := r.Method == http.MethodGet && r.URL.Path == "/" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !opened
}
