package registry

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxSiteBytes bounds an hbase-site.xml; real ones have a few kilobytes.
const maxSiteBytes = 4 << 20

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSiteBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSiteBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxSiteBytes)
	}
	return data, nil
}

type siteXML struct {
	XMLName    xml.Name `xml:"configuration"`
	Properties []struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	} `xml:"property"`
	Includes []struct {
		Href string `xml:"href,attr"`
	} `xml:"include"`
}

// parseSite makes an address of an hbase-site.xml. Properties that are not
// ours are ignored: the file is shared with servers.
func parseSite(file string, data []byte) (*Address, error) {
	var doc siteXML
	dec := xml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		return nil, &AddressError{file, []string{"not an hbase-site.xml: " + err.Error()}}
	}
	p := problems{}
	if len(doc.Includes) > 0 {
		p.add("unsupported: xi:include of %q", doc.Includes[0].Href)
	}
	site := map[string]string{}
	for _, prop := range doc.Properties {
		site[strings.TrimSpace(prop.Name)] = strings.TrimSpace(prop.Value)
	}
	get := func(keys ...string) (string, string) {
		for _, k := range keys {
			if v := expand(site, k); v != "" {
				return v, k
			}
		}
		return "", ""
	}

	a := &Address{}
	impl, _ := get("hbase.client.registry.impl")
	switch name := impl[strings.LastIndexByte(impl, '.')+1:]; name {
	case "", "ZKConnectionRegistry", "ZKAsyncRegistry", "ZooKeeperRegistry":
	case "RpcConnectionRegistry", "MasterRegistry":
		a.Kind = RPC
	default:
		p.add("hbase.client.registry.impl: unsupported: %s", impl)
	}
	if a.Kind == RPC {
		servers, key := get("hbase.client.bootstrap.servers", "hbase.masters", "hbase.master.hostname")
		if servers == "" {
			p.add("%s needs hbase.client.bootstrap.servers or hbase.masters", impl)
		} else {
			portText, portKey := get("hbase.master.port")
			a.Servers = p.hostsOf(key, servers, p.port(portKey, portText, DefaultMasterPort))
		}
	} else {
		quorum, key := get("hbase.client.zookeeper.quorum", "hbase.zookeeper.quorum")
		if quorum == "" {
			quorum, key = "127.0.0.1", "hbase.zookeeper.quorum" // HBase's default
		}
		portKeys := []string{"hbase.zookeeper.property.clientPort"}
		if key == "hbase.client.zookeeper.quorum" {
			portKeys = []string{"hbase.client.zookeeper.property.clientPort", portKeys[0]}
		}
		portText, portKey := get(portKeys...)
		a.Servers = p.hostsOf(key, quorum, p.port(portKey, portText, DefaultZooKeeperPort))
		a.ZNodeParent = DefaultZNodeParent
		if parent, _ := get("zookeeper.znode.parent"); parent != "" {
			a.ZNodeParent = p.znode(parent)
		}
	}
	for _, opt := range optionTable() {
		if v, key := get(opt.keys()...); v != "" {
			opt.key = key
			p.set(a, opt, v, true, file)
		}
	}
	p.judgeSite(a, get)
	if len(p.list) > 0 {
		return nil, &AddressError{file, p.list}
	}
	return a, nil
}

func (p *problems) hostsOf(key, text string, port int) []string {
	before := len(p.list)
	servers := p.hosts(text, port)
	for i := before; i < len(p.list); i++ {
		p.list[i] = key + ": " + p.list[i]
	}
	return servers
}

func (p *problems) port(key, text string, def int) int {
	if text == "" {
		return def
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		p.add("%s: %q is not a port (1 to 65535)", key, text)
		return def
	}
	return int(n)
}

// maxExpansions is Hadoop's bound on ${...} in one value.
const maxExpansions = 20

// expand gives a property's value with ${property} and ${env.NAME} replaced;
// what is not known stays as it is, as in Hadoop's Configuration.
func expand(site map[string]string, key string) string {
	v := site[key]
	for range maxExpansions {
		i := strings.Index(v, "${")
		if i < 0 {
			break
		}
		n := strings.IndexByte(v[i:], '}')
		if n < 0 {
			break
		}
		name := v[i+2 : i+n]
		var value string
		var ok bool
		if env, is := strings.CutPrefix(name, "env."); is {
			value, ok = os.LookupEnv(env)
		} else {
			value, ok = site[name]
		}
		if !ok {
			break
		}
		v = v[:i] + value + v[i+n+1:]
		if len(v) > 1<<16 {
			break
		}
	}
	return v
}
