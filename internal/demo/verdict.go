package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Verdict is the account of a run. Exit code 0 means OK.
type Verdict struct {
	OK      bool    `json:"ok"`
	Cluster string  `json:"cluster"`
	Table   string  `json:"table"`
	Seconds float64 `json:"seconds"`

	Operations int            `json:"operations"`
	ByKind     map[string]Sum `json:"byKind"`
	Failed     int            `json:"failed"`
	Errors     []string       `json:"errors,omitempty"`

	// Lost counts acknowledged writes that are not there at the end, and rows a
	// reader or scanner missed although they had been acknowledged before it
	// began. Doubled counts increments beyond the acknowledged sum, and rows a
	// scan returned twice. Disordered counts rows a scan returned out of order.
	Lost       int64 `json:"lost"`
	Doubled    int64 `json:"doubled"`
	Disordered int64 `json:"disordered"`

	AckedPuts        int64 `json:"ackedPuts"`
	StoredPuts       int64 `json:"storedPuts"`
	AckedIncrements  int64 `json:"ackedIncrements"`
	StoredIncrements int64 `json:"storedIncrements"`
	FullScans        int64 `json:"fullScans"`

	LongestStallMs float64        `json:"longestStallMs"`
	MetaReads      int64          `json:"metaReads"`
	ExtraRPCs      int64          `json:"extraRPCs"`
	Counted        bool           `json:"rpcsCounted"` // false on a cluster whose event log we cannot read
	Events         []EventVerdict `json:"events"`
}

// Sum is one kind of operation.
type Sum struct {
	Done  int     `json:"done"`
	P50Ms float64 `json:"p50Ms"`
	P99Ms float64 `json:"p99Ms"`
	MaxMs float64 `json:"maxMs"`
}

// EventVerdict is what one event cost.
type EventVerdict struct {
	AtMs      float64 `json:"atMs"`
	Kind      string  `json:"kind"`
	Text      string  `json:"text"`
	TookMs    float64 `json:"tookMs"`
	SlowestMs float64 `json:"slowestCallMs"`
	GapMs     float64 `json:"longestGapMs"`
	ExtraRPCs int64   `json:"extraRPCs"`
	MetaReads int64   `json:"metaReads"`
	Err       string  `json:"error,omitempty"`
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fill writes the recorder's side of the verdict.
func (v *Verdict) fill(s view) {
	v.Seconds = s.Elapsed.Seconds()
	v.ByKind = map[string]Sum{}
	for k := range kinds {
		h := &s.Latencies[k]
		v.ByKind[k.String()] = Sum{s.Done[k], ms(h.quantile(0.50)), ms(h.quantile(0.99)), ms(h.longest)}
		v.Operations += s.Done[k]
	}
	v.Operations += s.Failed
	v.Failed, v.Errors, v.LongestStallMs = s.Failed, s.Errors, ms(s.Worst)
	for _, e := range s.Events {
		v.Events = append(v.Events, EventVerdict{ms(e.At), e.Kind, e.Text, ms(e.Took), ms(e.Slowest), ms(e.Gap), e.Calls, e.Meta, e.Err})
		v.MetaReads += e.Meta
		v.ExtraRPCs += e.Calls
	}
}

// judge sets OK: nothing failed, lost, doubled or out of order, and every event
// that was ordered did happen.
func (v *Verdict) judge() {
	v.OK = v.Failed == 0 && v.Lost == 0 && v.Doubled == 0 && v.Disordered == 0
	for _, e := range v.Events {
		v.OK = v.OK && e.Err == ""
	}
}

// WriteJSON writes the verdict as one JSON document.
func (v *Verdict) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteText writes the verdict as the table a person reads.
func (v *Verdict) WriteText(w io.Writer) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\toperations\tp50\tp99\tlongest\t\n")
	for k := range kinds {
		s := v.ByKind[k.String()]
		fmt.Fprintf(t, "%s\t%d\t%.2f ms\t%.1f ms\t%.0f ms\t\n", k, s.Done, s.P50Ms, s.P99Ms, s.MaxMs)
	}
	t.Flush()
	b.WriteByte('\n')
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := "event\tat\ttook\tlongest call\tlongest gap"
	if v.Counted {
		head += "\textra RPCs\tmeta reads"
	}
	fmt.Fprintln(t, head)
	for _, e := range v.Events {
		fmt.Fprintf(t, "%s\t%.1f s\t%.0f ms\t%.0f ms\t%.0f ms", e.Text, e.AtMs/1000, e.TookMs, e.SlowestMs, e.GapMs)
		if v.Counted {
			fmt.Fprintf(t, "\t%d\t%d", e.ExtraRPCs, e.MetaReads)
		}
		if e.Err != "" {
			fmt.Fprintf(t, "\t%s", e.Err)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	fmt.Fprintf(&b, "\n%d operations in %.1f s: %d failed, %d lost, %d doubled, %d out of order; longest stall %.0f ms\n",
		v.Operations, v.Seconds, v.Failed, v.Lost, v.Doubled, v.Disordered, v.LongestStallMs)
	fmt.Fprintf(&b, "puts acknowledged %d, stored %d; increments acknowledged %d, stored %d; %d full scans checked\n",
		v.AckedPuts, v.StoredPuts, v.AckedIncrements, v.StoredIncrements, v.FullScans)
	for _, e := range v.Errors {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	if v.OK {
		b.WriteString("VERDICT: it held fast\n")
	} else {
		b.WriteString("VERDICT: it did not hold\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
