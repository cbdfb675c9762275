package zk

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// DefaultPort is used for servers written without one.
const DefaultPort = 2181

// AddressError names the part of a connect string or server list that cannot be used.
type AddressError struct {
	Input  string // the whole input
	Part   string // the part at fault
	Reason string
}

func (e *AddressError) Error() string {
	if e.Part == e.Input {
		return fmt.Sprintf("zk: address %q: %s", e.Input, e.Reason)
	}
	return fmt.Sprintf("zk: address %q: %q: %s", e.Input, e.Part, e.Reason)
}

// ParseConnectString splits ZooKeeper's "host1:2181,host2:2181/chroot" into servers with ports and a chroot.
// A missing port is 2181, IPv6 addresses are written in brackets, a trailing slash and spaces around hosts are
// ignored, and the chroot is "" if there is none. The error is an *AddressError.
func ParseConnectString(s string) (servers []string, chroot string, err error) {
	hosts, path, found := strings.Cut(s, "/")
	if found {
		chroot = "/" + strings.TrimRight(path, "/")
		if chroot == "/" {
			chroot = ""
		} else if err := jute.ValidatePath(chroot, false); err != nil {
			return nil, "", &AddressError{s, chroot, "not a valid chroot: " + err.(*jute.PathError).Reason}
		}
	}
	if strings.TrimSpace(hosts) == "" {
		return nil, "", &AddressError{s, hosts, "no hosts"}
	}
	for part := range strings.SplitSeq(hosts, ",") {
		addr, reason := hostPort(strings.TrimSpace(part))
		if reason != "" {
			return nil, "", &AddressError{s, part, reason}
		}
		servers = append(servers, addr)
	}
	return servers, chroot, nil
}

// hostPort brings one server into the form net.Dial takes, or says what is wrong with it.
func hostPort(s string) (addr, reason string) {
	if s == "" {
		return "", "empty host"
	}
	if strings.Contains(s, "/") {
		return "", "a chroot does not belong to one server; give it apart or use ParseConnectString"
	}
	host, port := s, ""
	switch {
	case s[0] == '[':
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", "[ without ]"
		}
		host = s[1:end]
		if ip := net.ParseIP(strings.SplitN(host, "%", 2)[0]); ip == nil || !strings.Contains(host, ":") {
			return "", "not an IPv6 address in the brackets"
		}
		rest := s[end+1:]
		if rest != "" && rest[0] != ':' {
			return "", "something other than :port after ]"
		}
		if rest == ":" {
			return "", "no port after the colon"
		}
		port = strings.TrimPrefix(rest, ":")
	case strings.Count(s, ":") > 1:
		return "", "an IPv6 address must be in brackets"
	default:
		var found bool
		host, port, found = strings.Cut(s, ":")
		if found && port == "" {
			return "", "no port after the colon"
		}
		if host == "" {
			return "", "no host before the port"
		}
		if strings.ContainsAny(host, " \t[]@?#\x00") {
			return "", "not a host name"
		}
	}
	if port == "" {
		port = strconv.Itoa(DefaultPort)
	}
	if p, err := strconv.ParseUint(port, 10, 16); err != nil || p == 0 {
		return "", fmt.Sprintf("port %q is not a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), ""
}
