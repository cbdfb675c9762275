package finding

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Severity orders findings.
type Severity uint8

const (
	// Info is worth knowing and needs no action.
	Info Severity = iota
	// Warning will hurt under circumstances that were not seen.
	Warning
	// Error is a fault that was seen.
	Error
	// Critical is a fault that does not end by itself.
	Critical
)

// Severities are all of them, mildest first.
func Severities() []Severity { return []Severity{Info, Warning, Error, Critical} }

// String names the severity in lower case.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	case Error:
		return "error"
	case Critical:
		return "critical"
	}
	return "invalid"
}

// ParseSeverity is the inverse of String.
func ParseSeverity(s string) (Severity, error) {
	for _, v := range Severities() {
		if v.String() == s {
			return v, nil
		}
	}
	return Info, fmt.Errorf("severity %q: want info, warning, error or critical", s)
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Severity) UnmarshalText(b []byte) error {
	v, err := ParseSeverity(string(b))
	*s = v
	return err
}

// Confidence is how sure a verdict is.
type Confidence string

// Confidences: certain is arithmetic or the log's own words, likely fits all
// the evidence, possible has rivals that the evidence cannot exclude.
const (
	Certain  Confidence = "certain"
	Likely   Confidence = "likely"
	Possible Confidence = "possible"
)

// Evidence is a place in the input.
type Evidence struct {
	File string `json:"file"`
	Line int    `json:"line"`           // from 1; 0 if unknown
	Time string `json:"time,omitempty"` // as derived from the line, RFC 3339 without zone if the line has none
	Text string `json:"text"`           // cut to a readable length
}

// Number is one figure with the formula it came from.
type Number struct {
	Name    string `json:"name"`
	Value   any    `json:"value"` // int64, float64 or string
	Unit    string `json:"unit,omitempty"`
	Formula string `json:"formula,omitempty"`
}

// Echo is a consequence folded under its root cause.
type Echo struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Rival is another explanation that the evidence cannot exclude.
type Rival struct {
	ID        string `json:"id"`
	Text      string `json:"text"`
	Separates string `json:"separates"` // what would tell them apart
}

// Finding is one verdict.
type Finding struct {
	ID         string            `json:"id"`
	Severity   Severity          `json:"severity"`
	Confidence Confidence        `json:"confidence"`
	Subject    string            `json:"subject"`
	Cause      string            `json:"cause"`
	Fix        []string          `json:"fix,omitempty"`
	Not        []string          `json:"not,omitempty"`
	Notes      []string          `json:"notes,omitempty"`
	Fields     map[string]string `json:"fields,omitempty"`
	Numbers    []Number          `json:"numbers,omitempty"`
	Evidence   []Evidence        `json:"evidence,omitempty"`
	Count      int               `json:"count"` // occurrences in the input
	Echoes     []Echo            `json:"consequences,omitempty"`
	Rivals     []Rival           `json:"alternatives,omitempty"`
	Explain    string            `json:"explain"`
	Plots      []Plot            `json:"plots,omitempty"`
}

// Number returns the figure of that name.
func (f *Finding) Number(name string) (Number, bool) {
	for _, n := range f.Numbers {
		if n.Name == name {
			return n, true
		}
	}
	return Number{}, false
}

// Plot is the data of one picture of the HTML report. Kind says which fields
// are used: "retry" and "session" draw Spans and Marks on a time axis of
// milliseconds, "locks" draws Tree.
type Plot struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	Spans []Span `json:"spans,omitempty"`
	Marks []Mark `json:"marks,omitempty"`
	Tree  *Node  `json:"tree,omitempty"`
}

// Span is a stretch of time in milliseconds from the plot's zero.
type Span struct {
	From  int64  `json:"from_ms"`
	To    int64  `json:"to_ms"`
	Class string `json:"class"` // call, sleep, silent, connect, gap
	Label string `json:"label,omitempty"`
}

// Mark is an instant in milliseconds from the plot's zero.
type Mark struct {
	At    int64  `json:"at_ms"`
	Class string `json:"class"` // limit, fail, ok, event
	Label string `json:"label"`
}

// Node is a thread or lock of a wait tree.
type Node struct {
	Label    string  `json:"label"`
	Detail   string  `json:"detail,omitempty"`
	Children []*Node `json:"children,omitempty"`
	More     int     `json:"more,omitempty"` // children left out
}

// Input says what was read.
type Input struct {
	Name    string   `json:"name"`
	Kinds   []string `json:"kinds"`
	Bytes   int64    `json:"bytes"`
	Lines   int64    `json:"lines"`
	Entries int64    `json:"entries"` // that said something the doctor knows
	Error   string   `json:"error,omitempty"`
}

// Moment is one line of the merged timeline.
type Moment struct {
	Time string `json:"time"`
	File string `json:"file"`
	Line int    `json:"line"`
	Kind string `json:"kind"`
	Text string `json:"text"`
	Unix int64  `json:"unix_ms"`
}

// SchemaVersion is that of the JSON form; it grows when a field changes its
// meaning or goes, not when one is added.
const SchemaVersion = 1

// Report is a whole diagnosis.
type Report struct {
	Schema   int       `json:"schema"`
	Tool     string    `json:"tool"`
	Version  string    `json:"version"`
	HBase    string    `json:"hbase"` // release line assumed
	HBaseWhy string    `json:"hbase_why"`
	Inputs   []Input   `json:"inputs"`
	Findings []Finding `json:"findings"`
	Timeline []Moment  `json:"timeline,omitempty"`
	Notes    []string  `json:"notes,omitempty"`

	// Private names what must not leave the house; redaction replaces it.
	Private Entities `json:"-"`
}

// Entities are names found in the input, by kind.
type Entities struct {
	Hosts, Tables, Rows, Addrs []string
}

// Worst is the highest severity, and whether there is any finding.
func (r *Report) Worst() (Severity, bool) {
	if len(r.Findings) == 0 {
		return Info, false
	}
	return slices.MaxFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) }).Severity, true
}

// Find returns the first finding with that id.
func (r *Report) Find(id string) *Finding {
	for i := range r.Findings {
		if r.Findings[i].ID == id {
			return &r.Findings[i]
		}
	}
	return nil
}

// Text is everything the report says except its "not" lists: what a test that
// forbids a statement searches.
func (r *Report) Text() string {
	c := *r
	c.Findings = slices.Clone(r.Findings)
	for i := range c.Findings {
		c.Findings[i].Not, c.Findings[i].Evidence = nil, nil
	}
	c.Timeline = nil
	b, err := json.Marshal(&c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
