package cells

import (
	"math"
	"strings"
	"testing"
)

func TestFamilyFromAttributes(t *testing.T) {
	read := func(pairs ...string) (Family, error) {
		return FamilyFromAttributes([]byte("f"), func(a string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == a {
					return pairs[i+1], true
				}
			}
			return "", false
		})
	}
	f, err := read()
	if err != nil || f.MaxVersions != 1 || f.MinVersions != 0 || f.TTL != Forever || f.KeepDeleted != KeepFalse || f.NewVersionBehavior {
		t.Errorf("defaults: %+v, %v", f, err)
	}
	f, err = read("VERSIONS", "3", "MIN_VERSIONS", "1", "TTL", "86400", "KEEP_DELETED_CELLS", "ttl", "NEW_VERSION_BEHAVIOR", "true", "BLOOMFILTER", "ROW")
	if err != nil || f.MaxVersions != 3 || f.MinVersions != 1 || f.TTL != 86_400_000 || f.KeepDeleted != KeepTTL || !f.NewVersionBehavior {
		t.Errorf("all set: %+v, %v", f, err)
	}
	if f, _ := read("TTL", "2147483647"); f.TTL != Forever { // D6
		t.Errorf("FOREVER: %d", f.TTL)
	}
	if f, _ := read("VERSIONS", "9223372036854775807"); f.MaxVersions != math.MaxInt32 {
		t.Errorf("huge: %d", f.MaxVersions)
	}
	for _, bad := range [][]string{{"VERSIONS", "many"}, {"TTL", ""}, {"KEEP_DELETED_CELLS", "maybe"}} {
		if _, err := read(bad...); err == nil || !strings.Contains(err.Error(), bad[0]) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for k, text := range map[KeepDeleted]string{KeepFalse: "FALSE", KeepTrue: "TRUE", KeepTTL: "TTL"} {
		if k.String() != text {
			t.Errorf("%v is not %s", k, text)
		}
	}
}

func TestSchema(t *testing.T) {
	second := DefaultFamily([]byte("a"))
	second.MaxVersions = 9
	s := NewSchema(DefaultFamily([]byte("b")), DefaultFamily([]byte("a")), DefaultFamily([]byte("aa")), second)
	var names []string
	for _, f := range s.Families {
		names = append(names, string(f.Name))
	}
	if strings.Join(names, " ") != "a aa b" || s.Family([]byte("a")).MaxVersions != 9 || s.Family([]byte("x")) != nil || s.MaxCellSize != DefaultMaxCellSize {
		t.Errorf("%v, %+v", names, s)
	}
}

func TestTimeRange(t *testing.T) {
	for _, c := range [][2]int64{{-1, 5}, {5, -1}, {6, 5}} {
		if _, err := NewTimeRange(c[0], c[1]); err == nil {
			t.Errorf("%v accepted", c)
		}
	}
	r, err := NewTimeRange(5, 5)
	if err != nil || r.compare(5) != 1 || r.compare(4) != -1 {
		t.Errorf("empty range: %v", err)
	}
	if !AllTime.All() || AllTime.compare(math.MaxInt64) != 0 {
		t.Error("all time")
	}
}

func TestQueryColumns(t *testing.T) {
	q := NewQuery().AddColumn([]byte("g"), []byte("b")).AddColumn([]byte("g"), []byte("a")).AddColumn([]byte("g"), []byte("b")).
		AddFamily([]byte("f")).AddColumn([]byte("h"), nil).AddColumn([]byte("i"), []byte("x")).AddFamily([]byte("i"))
	got := ""
	for _, c := range q.Columns {
		got += string(c.Family) + ":"
		if c.Qualifiers == nil {
			got += "*"
		}
		for _, x := range c.Qualifiers {
			got += "<" + string(x) + ">"
		}
		got += " "
	}
	if got != "f:* g:<a><b> h:<> i:* " {
		t.Error(got)
	}
}
