package vectors

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// object is a JSON object as the files have them; numbers are json.Number.
type object = map[string]any

// Theme is one file of cases.
type Theme struct {
	Name     string
	Note     string
	Fixtures map[string]*Fixture
	Cases    []*Case
}

// Fixture is a table that several cases read.
type Fixture struct {
	Table object   `json:"table"`
	Steps []object `json:"steps,omitempty"`
}

// Case is one rule with the steps that show it.
type Case struct {
	Name    string `json:"name"`
	Why     string `json:"why"`
	Table   object `json:"table,omitempty"`
	Fixture string `json:"fixture,omitempty"`
	Cleanup object `json:"cleanup,omitempty"`
	// Physical cases show when HBase drops data physically.
	Physical bool     `json:"physical,omitempty"`
	Steps    []object `json:"steps"`
}

// Load reads all *.json files of a folder, sorted by name.
func Load(folder fs.FS) ([]*Theme, error) {
	names, err := fs.Glob(folder, "*.json")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var themes []*Theme
	for _, name := range names {
		f, err := folder.Open(name)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(f)
		d.UseNumber()
		t := new(Theme)
		err = d.Decode(t)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Name = strings.TrimSuffix(path.Base(name), ".json")
		themes = append(themes, t)
	}
	return themes, nil
}

// steps walks a case's steps and those inside them.
func (c *Case) walk(f func(step object)) {
	for _, s := range c.Steps {
		walk(s, f)
	}
}

func walk(v any, f func(object)) {
	switch v := v.(type) {
	case object:
		if _, ok := v["op"].(string); ok {
			f(v)
		}
		for k, e := range v {
			if k != "expect" {
				walk(e, f)
			}
		}
	case []any:
		for _, e := range v {
			walk(e, f)
		}
	}
}

// Raw says whether the case has calls that only a socket of its own can make.
func (c *Case) Raw() bool {
	raw := false
	c.walk(func(s object) { raw = raw || strings.HasPrefix(s["op"].(string), "rpc") })
	return raw
}

// Timed says whether the case waits.
func (c *Case) Timed() bool {
	timed := false
	c.walk(func(s object) { timed = timed || s["op"] == "sleep" || s["op"] == "advance" })
	return timed
}

// Clocked says whether the case needs a clock that can be moved.
func (c *Case) Clocked() bool {
	clocked := false
	c.walk(func(s object) { clocked = clocked || s["op"] == "advance" })
	return clocked
}

// system says whether the case makes or lists tables of namespace hbase: such
// cases see one another.
func (c *Case) system() bool {
	system := false
	c.walk(func(s object) {
		d, _ := s["descriptor"].(object)
		system = system || strings.HasPrefix(text(d, "name"), "hbase:") || s["op"] == "listTablesByNamespace"
	})
	return system
}
