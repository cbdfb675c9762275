package jute

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"
)

// PathError says why a path is not a node's path.
type PathError struct {
	Path   string
	Reason string
}

func (e *PathError) Error() string {
	p := e.Path
	if len(p) > 128 {
		p = p[:128] + "..."
	}
	return fmt.Sprintf("zookeeper path %q: %s", p, e.Reason)
}

// ValidatePath checks ZooKeeper's rules for a path. A sequential create may end in "/", since digits will follow.
// The error is a *PathError.
func ValidatePath(path string, sequential bool) error {
	bad := func(reason string) error { return &PathError{Path: path, Reason: reason} }
	if path == "" {
		return bad("empty")
	}
	if path[0] != '/' {
		return bad("does not start with /")
	}
	if !utf8.ValidString(path) {
		return bad("not UTF-8")
	}
	for _, r := range path {
		if r == 0 || r >= 0x01 && r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff {
			return bad(fmt.Sprintf("character U+%04X is not allowed", r))
		}
	}
	if path == "/" && !sequential {
		return nil
	}
	check := path[1:]
	if sequential {
		check += "1"
	}
	for part := range strings.SplitSeq(check, "/") {
		switch part {
		case "":
			if strings.HasSuffix(path, "/") && !strings.Contains(path, "//") {
				return bad("ends with /")
			}
			return bad("empty element")
		case ".", "..":
			return bad("relative element " + part)
		}
	}
	return nil
}

// DigestID turns "user:password" into the id that scheme "digest" stores in an ACL: user:base64(sha1(user:password)).
func DigestID(userPassword string) string {
	user, _, _ := strings.Cut(userPassword, ":")
	sum := sha1.Sum([]byte(userPassword))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}
