package registry

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Kind says how a cluster is found.
type Kind uint8

const (
	// ZooKeeper: HBase's znodes in a ZooKeeper ensemble.
	ZooKeeper Kind = iota
	// RPC: ClientMetaService on masters or region servers.
	RPC
)

// String names the kind.
func (k Kind) String() string {
	if k == RPC {
		return "rpc"
	}
	return "zookeeper"
}

// Default ports and the default znode parent of HBase.
const (
	DefaultZooKeeperPort = 2181
	DefaultMasterPort    = 16000
	DefaultZNodeParent   = "/hbase"
)

// Address says which cluster, and with which options.
type Address struct {
	Kind Kind
	// Servers are the members of the ZooKeeper ensemble, or the endpoints of
	// the RPC registry: host:port each, at least one.
	Servers []string
	// ZNodeParent is set for ZooKeeper only: an absolute path, not "/".
	ZNodeParent string
	Options     Options
	// Settings lists the options that were set, and where, in the order of
	// Known's table.
	Settings []Setting
	// Ignored lists the properties of an hbase-site.xml that are known and
	// have no effect.
	Ignored []IgnoredProperty
}

// ErrAddress is matched by every *AddressError.
var ErrAddress = errors.New("malformed address")

// AddressError says what is wrong with an address: all of it at once.
type AddressError struct {
	Address  string
	Problems []string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("address %q: %s", e.Address, strings.Join(e.Problems, "; "))
}

// Is matches ErrAddress.
func (e *AddressError) Is(target error) bool { return target == ErrAddress }

// Permanent is true: the address will not get better.
func (e *AddressError) Permanent() bool { return true }

// Parse reads an address in any of its forms:
//
//	hbase://zk1:2181,zk2:2181/hbase?option=value    ZooKeeper (also hbase+zk://)
//	hbase+rpc://m1:16000,m2:16000?option=value      RPC registry
//	/etc/hbase/conf or /etc/hbase/conf/hbase-site.xml
//
// Ports default to 2181 and 16000, the znode parent to /hbase. Unknown options
// are errors that list the known ones. Every problem is reported.
func Parse(text string) (*Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return parsePath(text)
	}
	a := &Address{}
	port := DefaultZooKeeperPort
	switch scheme {
	case "hbase", "hbase+zk":
	case "hbase+rpc":
		a.Kind, port = RPC, DefaultMasterPort
	default:
		return nil, &AddressError{text, []string{fmt.Sprintf("scheme %q is not one of hbase, hbase+zk, hbase+rpc", scheme)}}
	}
	p := problems{}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, hasPath := strings.Cut(rest, "/")
	if user, _, found := strings.Cut(hosts, "@"); found {
		p.add("a user is written as an option: ?user=%s", user)
	} else {
		a.Servers = p.hosts(hosts, port)
	}
	switch {
	case a.Kind == RPC:
		if strings.Trim(path, "/") != "" {
			p.add("the RPC registry has no path, but here is /%s", path)
		}
	case !hasPath || path == "":
		a.ZNodeParent = DefaultZNodeParent
	default:
		dec, err := url.PathUnescape("/" + strings.TrimSuffix(path, "/"))
		if err != nil {
			p.add("path: %v", err)
			break
		}
		a.ZNodeParent = p.znode(dec)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		p.add("options: %v", err)
	}
	p.options(a, values)
	if len(p.list) > 0 {
		return nil, &AddressError{text, p.list}
	}
	return a, nil
}

func parsePath(text string) (*Address, error) {
	if text == "" {
		return nil, &AddressError{text, []string{"empty; write hbase://zk1:2181/hbase, hbase+rpc://master1:16000, or the path of an hbase-site.xml"}}
	}
	info, err := os.Stat(text)
	if err != nil {
		why := fmt.Sprintf("no such file or directory, and no scheme; did you mean hbase://%s?", text)
		if !errors.Is(err, os.ErrNotExist) {
			why = err.Error()
		}
		return nil, &AddressError{text, []string{why}}
	}
	if info.IsDir() {
		text = strings.TrimSuffix(text, "/") + "/hbase-site.xml"
	}
	data, err := readSmall(text)
	if err != nil {
		return nil, &AddressError{text, []string{err.Error()}}
	}
	return parseSite(text, data)
}

// String gives the address in URL form, with the options that were set.
func (a *Address) String() string {
	var b strings.Builder
	if a.Kind == RPC {
		b.WriteString("hbase+rpc://")
	} else {
		b.WriteString("hbase://")
	}
	b.WriteString(strings.Join(a.Servers, ","))
	b.WriteString(a.ZNodeParent)
	sep := byte('?')
	for _, s := range a.Settings {
		b.WriteByte(sep)
		b.WriteString(s.Name + "=" + url.QueryEscape(s.Value))
		sep = '&'
	}
	return b.String()
}

// problems collects everything that is wrong.
type problems struct{ list []string }

func (p *problems) add(format string, args ...any) {
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// hosts reads "a:1,b,[::1]:2".
func (p *problems) hosts(text string, port int) []string {
	if strings.TrimSpace(text) == "" {
		p.add("no host")
		return nil
	}
	var servers []string
	for h := range strings.SplitSeq(text, ",") {
		h = strings.TrimSpace(h)
		host, num := h, strconv.Itoa(port)
		if strings.HasPrefix(h, "[") && strings.HasSuffix(h, "]") {
			host = h[1 : len(h)-1]
		} else if strings.Contains(h, ":") {
			var err error
			if host, num, err = net.SplitHostPort(h); err != nil {
				p.add("%q is not host:port", h)
				continue
			}
		}
		n, err := strconv.ParseUint(num, 10, 16)
		if err != nil || n == 0 {
			p.add("%q: %q is not a port (1 to 65535)", h, num)
			continue
		}
		if host == "" || strings.ContainsAny(host, "/ \t\r\n${}") {
			p.add("%q is not host:port", h)
			continue
		}
		servers = append(servers, net.JoinHostPort(host, num))
	}
	return servers
}

func (p *problems) znode(path string) string {
	if path == "/" || path == "" || path[0] != '/' || strings.Contains(path, "//") || strings.HasSuffix(path, "/") {
		p.add("znode parent %q is not an absolute path such as /hbase", path)
	}
	return path
}

func (p *problems) options(a *Address, values url.Values) {
	table := optionTable()
	for _, opt := range table {
		v, ok := values[opt.name]
		if !ok {
			continue
		}
		delete(values, opt.name)
		if len(v) > 1 {
			p.add("option %s is given %d times", opt.name, len(v))
			continue
		}
		p.set(a, opt, v[0], false, "address")
	}
	if len(values) > 0 {
		var unknown []string
		for name := range values {
			unknown = append(unknown, strconv.Quote(name))
		}
		slices.Sort(unknown)
		p.add("unknown option %s; known are %s", strings.Join(unknown, ", "), strings.Join(Known(), ", "))
	}
}

func (p *problems) set(a *Address, opt option, value string, xml bool, source string) {
	if err := opt.set(&a.Options, value, xml); err != nil {
		name := opt.name
		if xml {
			name = opt.key
		}
		p.add("option %s: %v", name, err)
		return
	}
	a.Settings = append(a.Settings, Setting{Name: opt.name, Key: opt.key, Value: value, Source: source, Doc: opt.doc})
}

// Effective lists every option: those that were set with their source, the
// others with their default.
func (a *Address) Effective() []Setting {
	var all []Setting
	for _, opt := range optionTable() {
		s := Setting{Name: opt.name, Key: opt.key, Value: opt.def, Source: "default", Doc: opt.doc}
		for _, set := range a.Settings {
			if set.Name == opt.name {
				s = set
			}
		}
		all = append(all, s)
	}
	return all
}
