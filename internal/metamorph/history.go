package metamorph

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// History is what is played.
type History struct {
	Shape  Shape
	Events []Event
}

// Shape is the first line of a history's file.
type Shape struct {
	Seed uint64 `json:"seed"`
	// Lanes perform operations side by side; each has Rows rows of its own.
	Lanes int `json:"lanes"`
	Rows  int `json:"rows"`
	// Splits are the table's first region boundaries.
	Splits  []string `json:"splits"`
	Servers int      `json:"servers"`
	// Settings are names of Settings: the history is played under each.
	Settings []string `json:"settings"`
}

// Event is one line: an operation of a lane, or a fault.
type Event struct {
	Lane  int    `json:"lane"`
	Op    *Op    `json:"op,omitempty"`
	Fault *Fault `json:"fault,omitempty"`
}

// Op is one operation. Which fields count depends on Kind.
type Op struct {
	// Kind is get, exists, multi-get, multi-exists, scan, parallel, change,
	// check, rows, check-rows, batch or mutator.
	Kind string `json:"kind"`
	// Rows of a get, multi-get and the like.
	Rows []string `json:"rows,omitempty"`
	Read *Read    `json:"read,omitempty"`
	Scan *Scan    `json:"scan,omitempty"`
	// Changes of a change or check (one), rows, mutator.
	Changes []Change `json:"changes,omitempty"`
	// Checks of a check (one) and check-rows.
	Checks []Check `json:"checks,omitempty"`
	// Ops of a batch: get, change and check.
	Ops []Op `json:"ops,omitempty"`
}

// Change is a mutation of a row.
type Change struct {
	// Kind is put, delete, increment, append or row (several at once).
	Kind         string   `json:"kind"`
	Row          string   `json:"row"`
	Cells        []Cell   `json:"cells,omitempty"`
	UpTo         int64    `json:"upTo,omitempty"` // of a delete without cells
	Unrepeatable bool     `json:"unrepeatable,omitempty"`
	NoResult     bool     `json:"noResult,omitempty"`
	Parts        []Change `json:"parts,omitempty"`
}

// Cell is a cell to write, or a marker.
type Cell struct {
	// Mark, of a delete: column, version, latest, family, family-version.
	Mark      string `json:"mark,omitempty"`
	Family    string `json:"f"`
	Qualifier string `json:"q,omitempty"`
	Timestamp int64  `json:"ts,omitempty"` // 0: the server's clock
	Value     string `json:"v,omitempty"`
	Amount    int64  `json:"n,omitempty"`
}

// Read says what of a row is read.
type Read struct {
	Columns   []string `json:"columns,omitempty"` // "f" or "f:q"
	From      int64    `json:"from,omitempty"`
	To        int64    `json:"to,omitempty"`
	Versions  int      `json:"versions,omitempty"`
	PerFamily int      `json:"perFamily,omitempty"`
	Offset    int      `json:"offset,omitempty"`
	// Filter is "", first-key, or column-prefix with Prefix.
	Filter string `json:"filter,omitempty"`
	Prefix string `json:"prefix,omitempty"`
}

// Scan is a range, and how it is walked.
type Scan struct {
	Start, Stop  string
	ExcludeStart bool `json:",omitempty"`
	IncludeStop  bool `json:",omitempty"`
	Reversed     bool `json:",omitempty"`
	Limit        int  `json:",omitempty"`
	Batch        int  `json:",omitempty"`
	Partial      bool `json:",omitempty"`
	Caching      int  `json:",omitempty"`
	Size         int  `json:",omitempty"`
	Prefetch     int  `json:",omitempty"`
	// Of a parallel scan:
	Workers int  `json:",omitempty"`
	Ordered bool `json:",omitempty"`
}

// Check is a condition on a column.
type Check struct {
	Row       string `json:"row"`
	Family    string `json:"f"`
	Qualifier string `json:"q"`
	// Op is =, !=, <, <=, >, >= as in "Value Op stored".
	Op    string `json:"op"`
	Value string `json:"v,omitempty"`
}

// Fault is something done to the cluster. What cannot be done (a move to where
// the region is) is passed over.
type Fault struct {
	// After so many operations of all lanes.
	After int `json:"after"`
	// Kind is move, split, merge, kill, hang, pause, reset, slow, gap, rule or
	// clear.
	Kind   string        `json:"kind"`
	Row    string        `json:"row,omitempty"`
	Server int           `json:"server,omitempty"`
	For    time.Duration `json:"for,omitempty"`
	// Rule, whose exception's host is a server's index in Server if it is
	// RegionMoved.
	Rule *minihbase.Rule `json:"rule,omitempty"`
}

// Write writes the history as JSON lines.
func (h *History) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	if err := e.Encode(&h.Shape); err != nil {
		return err
	}
	for i := range h.Events {
		if err := e.Encode(&h.Events[i]); err != nil {
			return err
		}
	}
	return b.Flush()
}

// ReadHistory reads what Write wrote. Unknown fields and settings are errors.
func ReadHistory(r io.Reader) (*History, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	h := new(History)
	if err := d.Decode(&h.Shape); err != nil {
		return nil, fmt.Errorf("history: first line: %w", err)
	}
	s := h.Shape
	if s.Lanes < 1 || s.Lanes > 16 || s.Rows < 1 || s.Rows > 99 || s.Servers < 1 || s.Servers > 16 {
		return nil, fmt.Errorf("history: %d lanes of %d rows on %d servers", s.Lanes, s.Rows, s.Servers)
	}
	for _, name := range s.Settings {
		if _, ok := settingNamed(name); !ok {
			return nil, fmt.Errorf("history: there is no setting %q", name)
		}
	}
	for n := 2; ; n++ {
		var e Event
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err == nil && (e.Lane < 0 || e.Lane >= s.Lanes || (e.Op == nil) == (e.Fault == nil)) {
			err = errors.New("it is neither an operation of a lane nor a fault")
		}
		if err != nil {
			return nil, fmt.Errorf("history: line %d: %w", n, err)
		}
		h.Events = append(h.Events, e)
	}
}

// String is the history's file.
func (h *History) String() string {
	var b bytes.Buffer
	if err := h.Write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// rowName names the i-th row of a lane.
func rowName(lane, i int) string { return fmt.Sprintf("%c%02d", 'a'+lane, i) }
