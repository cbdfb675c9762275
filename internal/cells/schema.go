package cells

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KeepDeleted is the family setting KEEP_DELETED_CELLS.
type KeepDeleted uint8

// The three settings. Under KeepTrue and KeepTTL a delete marker outside a
// read's time range does not hide cells inside it, and GC keeps what markers
// hide (until the marker's age passes the TTL, under KeepTTL).
const (
	KeepFalse KeepDeleted = iota
	KeepTrue
	KeepTTL
)

func (k KeepDeleted) String() string {
	switch k {
	case KeepTrue:
		return "TRUE"
	case KeepTTL:
		return "TTL"
	}
	return "FALSE"
}

// Forever is the TTL that never ends, in milliseconds.
const Forever int64 = math.MaxInt64

// foreverSeconds is HBase's HConstants.FOREVER: a TTL of this many seconds or
// more means Forever.
const foreverSeconds = math.MaxInt32

// Family holds the settings of a column family that decide what a reader sees.
type Family struct {
	Name []byte
	// MaxVersions (VERSIONS) is how many versions of a column exist; 1 by
	// default.
	MaxVersions int
	// MinVersions (MIN_VERSIONS) newest versions survive their TTL; 0 by
	// default.
	MinVersions int
	// TTL in milliseconds; Forever by default.
	TTL int64
	// KeepDeleted is KeepFalse by default.
	KeepDeleted KeepDeleted
	// NewVersionBehavior (NEW_VERSION_BEHAVIOR) makes markers hide only what
	// was written before them, and counts versions in order of arrival.
	NewVersionBehavior bool
	// PurgeDeletesAfter, if positive, takes the place of the schema's.
	PurgeDeletesAfter time.Duration
}

// DefaultFamily has HBase's defaults.
func DefaultFamily(name []byte) Family {
	return Family{Name: name, MaxVersions: 1, TTL: Forever}
}

// FamilyFromAttributes reads the settings from a family descriptor's text
// attributes (VERSIONS, MIN_VERSIONS, TTL, KEEP_DELETED_CELLS,
// NEW_VERSION_BEHAVIOR); get answers false for what the descriptor does not
// have. Attributes that do not decide visibility are not asked for. A value
// that can't be read is an error naming the attribute; ranges are the master's
// business, and an impossible number is bent to the nearest possible one.
func FamilyFromAttributes(name []byte, get func(attribute string) (string, bool)) (Family, error) {
	f := DefaultFamily(name)
	number := func(attribute string, to *int) error {
		text, ok := get(attribute)
		if !ok {
			return nil
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return fmt.Errorf("family %s: %s %q is not a number", Quote(name), attribute, text)
		}
		*to = int(min(max(n, 0), math.MaxInt32))
		return nil
	}
	ttl := foreverSeconds
	for _, a := range []struct {
		name string
		to   *int
	}{{"VERSIONS", &f.MaxVersions}, {"MIN_VERSIONS", &f.MinVersions}, {"TTL", &ttl}} {
		if err := number(a.name, a.to); err != nil {
			return f, err
		}
	}
	if ttl < foreverSeconds {
		f.TTL = int64(ttl) * 1000
	}
	if text, ok := get("KEEP_DELETED_CELLS"); ok {
		switch strings.ToUpper(text) {
		case "TRUE":
			f.KeepDeleted = KeepTrue
		case "TTL":
			f.KeepDeleted = KeepTTL
		case "FALSE":
		default:
			return f, fmt.Errorf("family %s: KEEP_DELETED_CELLS %q is none of FALSE, TRUE, TTL", Quote(name), text)
		}
	}
	if text, ok := get("NEW_VERSION_BEHAVIOR"); ok {
		f.NewVersionBehavior = strings.EqualFold(text, "true")
	}
	if text, ok := get(PurgeDeletesAttribute); ok {
		f.PurgeDeletesAfter = PurgeDelay(text)
	}
	return f, nil
}

// PurgeDeletesAttribute is how long delete markers stay at least, in ms; of
// families and, for those that do not say, of tables.
const PurgeDeletesAttribute = "hbase.hstore.time.to.purge.deletes"

// PurgeDelay reads a value of PurgeDeletesAttribute; 0 if it is none.
func PurgeDelay(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// Durability says when a write counts as done (HBase's Durability).
type Durability uint8

// UseDefault is the table's own setting, and SyncWAL for a table without one.
const (
	UseDefault Durability = iota
	SkipWAL
	AsyncWAL
	SyncWAL
	FsyncWAL
)

// DefaultMaxCellSize is hbase.server.keyvalue.maxsize: 10 MiB.
const DefaultMaxCellSize = 10 << 20

// Schema is what storage needs to know of a table. It is immutable once made;
// an altered table gets a new one.
type Schema struct {
	// Families sorted by name, no two alike.
	Families []Family
	// ReadOnly refuses every mutation.
	ReadOnly bool
	// Durability of mutations that ask for none; UseDefault means SyncWAL.
	Durability Durability
	// MaxCellSize in bytes; 0 means no limit.
	MaxCellSize int
	// PurgeDeletesAfter (hbase.hstore.time.to.purge.deletes) is how long a
	// delete marker outlives the major compaction that could drop it; 0 by
	// default.
	PurgeDeletesAfter time.Duration
}

// NewSchema makes a schema of the families in any order, with the default cell
// limit. Of families with one name the last counts.
func NewSchema(families ...Family) *Schema {
	s := &Schema{MaxCellSize: DefaultMaxCellSize}
	for _, f := range families {
		at, found := s.find(f.Name)
		if found {
			s.Families[at] = f
		} else {
			s.Families = slices.Insert(s.Families, at, f)
		}
	}
	return s
}

func (s *Schema) find(name []byte) (int, bool) {
	return slices.BinarySearchFunc(s.Families, name, func(f Family, name []byte) int { return bytes.Compare(f.Name, name) })
}

// Family finds a family by name; nil if the table has none of that name.
func (s *Schema) Family(name []byte) *Family {
	if at, found := s.find(name); found {
		return &s.Families[at]
	}
	return nil
}
