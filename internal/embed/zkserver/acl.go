package zkserver

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// authInfo is one identity a connection has proven.
type authInfo struct {
	scheme string
	id     string
}

// allowed reports whether who may do perm under acl. The embedder (nil) may do everything, and an empty ACL forbids nothing.
func (s *Server) allowed(who *conn, acl []jute.ACL, perm int32) bool {
	if who == nil || len(acl) == 0 {
		return true
	}
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		if a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
		for _, id := range who.auth {
			if id.scheme != a.Scheme {
				continue
			}
			if id.id == a.ID || a.Scheme == "ip" && ipMatches(a.ID, id.id) {
				return true
			}
		}
	}
	return false
}

func ipMatches(pattern, ip string) bool {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return false
	}
	if p, err := netip.ParsePrefix(pattern); err == nil {
		return p.Contains(addr)
	}
	p, err := netip.ParseAddr(pattern)
	return err == nil && p == addr
}

// fixACL checks an ACL that a client wants to store and replaces "auth" by the identities of the connection.
func (s *Server) fixACL(who *conn, acl []jute.ACL) ([]jute.ACL, jute.Code) {
	if who == nil && len(acl) == 0 {
		return jute.OpenACL(), jute.OK
	}
	out := make([]jute.ACL, 0, len(acl))
	add := func(a jute.ACL) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for _, a := range acl {
		switch a.Scheme {
		case "world":
			if a.ID != "anyone" {
				return nil, jute.ErrInvalidACL
			}
			add(a)
		case "auth":
			if who == nil {
				return nil, jute.ErrInvalidACL
			}
			found := false
			for _, id := range who.auth {
				if id.scheme != "ip" {
					found = true
					add(jute.ACL{Perms: a.Perms, Scheme: id.scheme, ID: id.id})
				}
			}
			if !found {
				return nil, jute.ErrInvalidACL
			}
		case "digest":
			if strings.Count(a.ID, ":") != 1 {
				return nil, jute.ErrInvalidACL
			}
			add(a)
		case "ip":
			_, err := netip.ParsePrefix(a.ID)
			_, err2 := netip.ParseAddr(a.ID)
			if err != nil && err2 != nil {
				return nil, jute.ErrInvalidACL
			}
			add(a)
		case "sasl", "x509", "super":
			if a.ID == "" {
				return nil, jute.ErrInvalidACL
			}
			add(a)
		default:
			return nil, jute.ErrInvalidACL
		}
	}
	if len(out) == 0 {
		return nil, jute.ErrInvalidACL
	}
	return out, jute.OK
}

// authenticate adds the identity a client offers; only digest (and the connection's own address) can be proven here.
func (c *conn) authenticate(scheme string, cred []byte) bool {
	switch scheme {
	case "digest":
		if !strings.Contains(string(cred), ":") || len(c.auth) > maxIdentities || len(cred) > maxCredential {
			return false
		}
		id := authInfo{"digest", jute.DigestID(string(cred))}
		if !slices.Contains(c.auth, id) {
			c.auth = append(c.auth, id)
		}
		return true
	case "ip":
		return true // every connection has it already
	}
	return false
}

// maxIdentities bounds what a client can make one connection remember.
const maxIdentities = 64
