package readers

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// Property is one setting of a configuration file.
type Property struct {
	Name, Value string
	File        string
	Line        int
	Final       bool
}

// maxConfig bounds a configuration file and maxProperties what is kept of one.
const (
	maxConfig     = 4 << 20
	maxProperties = 20000
)

// ErrNotConfig says that a file is not of the form asked for.
var ErrNotConfig = errors.New("not a configuration file")

// ReadXML reads Hadoop's <configuration><property> form. Comments and
// commented-out properties do not count. A damaged file yields what came before
// the damage, with the error.
func ReadXML(r io.Reader, file string) ([]Property, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxConfig))
	if err != nil && len(b) == 0 {
		return nil, err
	}
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Strict = false
	d.Entity = map[string]string{}
	var props []Property
	var p Property
	var field *string
	depth, seen := 0, false
	line, counted := 1, int64(0)
	for len(props) < maxProperties {
		t, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return props, err
		}
		at := min(d.InputOffset(), int64(len(b)))
		switch t := t.(type) {
		case xml.StartElement:
			depth++
			if depth > 100 {
				return props, ErrNotConfig
			}
			field = nil
			switch t.Name.Local {
			case "configuration":
				seen = true
			case "property":
				line += bytes.Count(b[counted:at], []byte{'\n'})
				counted = at
				p, seen = Property{File: file, Line: line}, true
			case "name":
				line += bytes.Count(b[counted:at], []byte{'\n'})
				counted = at
				p.Line = line
				field = &p.Name
			case "value":
				field = &p.Value
			case "final":
				p.Final = true
			}
		case xml.CharData:
			if field != nil && len(*field) < 64<<10 {
				*field += string(t)
			}
		case xml.EndElement:
			depth--
			field = nil
			if t.Name.Local == "property" && strings.TrimSpace(p.Name) != "" {
				p.Name, p.Value = strings.TrimSpace(p.Name), strings.TrimSpace(p.Value)
				props = append(props, p)
				p = Property{}
			}
		}
	}
	if !seen {
		return props, ErrNotConfig
	}
	return props, nil
}

// ReadProperties reads Java's key=value form, as in zoo.cfg and
// kylin.properties, with continued lines.
func ReadProperties(r io.Reader, file string) ([]Property, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxConfig))
	if err != nil && len(b) == 0 {
		return nil, err
	}
	var props []Property
	lines := bytes.Split(b, []byte{'\n'})
	for i := 0; i < len(lines) && len(props) < maxProperties; i++ {
		no := i + 1
		l := bytes.TrimSpace(lines[i])
		if len(l) == 0 || l[0] == '#' || l[0] == '!' {
			continue
		}
		for bytes.HasSuffix(l, []byte{'\\'}) && i+1 < len(lines) && len(l) < 64<<10 {
			i++
			l = append(append([]byte(nil), l[:len(l)-1]...), bytes.TrimSpace(lines[i])...)
		}
		k := bytes.IndexAny(l, "=: \t")
		if k <= 0 {
			continue
		}
		// zoo.cfg's server.1=host:2888:3888: the first separator counts.
		name := string(l[:k])
		value := strings.TrimSpace(string(l[k:]))
		value = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(value, "="), ":"))
		props = append(props, Property{Name: name, Value: value, File: file, Line: no})
	}
	return props, nil
}
