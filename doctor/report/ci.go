package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/checks"
	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// SARIF prints version 2.1.0 of the static analysis format, which code hosts
// and editors read.
func SARIF(w io.Writer, r *finding.Report) error {
	type text struct {
		Text string `json:"text"`
	}
	type rule struct {
		ID    string `json:"id"`
		Short text   `json:"shortDescription"`
		Full  text   `json:"fullDescription"`
		Help  text   `json:"help"`
	}
	type region struct {
		StartLine int  `json:"startLine"`
		Snippet   text `json:"snippet"`
	}
	type physical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region region `json:"region"`
	}
	type location struct {
		Physical physical `json:"physicalLocation"`
	}
	type result struct {
		RuleID     string            `json:"ruleId"`
		Level      string            `json:"level"`
		Message    text              `json:"message"`
		Locations  []location        `json:"locations,omitempty"`
		Properties map[string]string `json:"properties,omitempty"`
	}
	rules, results := []rule{}, []result{}
	seen := map[string]bool{}
	for _, f := range r.Findings {
		if !seen[f.ID] {
			seen[f.ID] = true
			e, _ := checks.Explain(f.ID)
			rules = append(rules, rule{f.ID, text{e.Meaning}, text{e.Decided}, text{strings.Join(append([]string{"Confirm: " + e.Confirm}, e.Fix...), "\n")}})
		}
		level := map[finding.Severity]string{finding.Info: "note", finding.Warning: "warning", finding.Error: "error", finding.Critical: "error"}[f.Severity]
		res := result{RuleID: f.ID, Level: level, Message: text{f.Cause + fixes(f.Fix)}, Properties: map[string]string{"severity": f.Severity.String(), "subject": f.Subject, "confidence": string(f.Confidence)}}
		for _, e := range f.Evidence {
			var l location
			l.Physical.Artifact.URI = strings.ReplaceAll(e.File, "\\", "/")
			l.Physical.Region = region{max(e.Line, 1), text{e.Text}}
			res.Locations = append(res.Locations, l)
		}
		results = append(results, res)
	}
	doc := map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{map[string]any{"tool": map[string]any{"driver": map[string]any{"name": r.Tool, "version": r.Version, "rules": rules}}, "results": results}},
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

func fixes(f []string) string {
	if len(f) == 0 {
		return ""
	}
	return ". Fix: " + strings.Join(f, "; ")
}

// JUnit prints the test report format of CI servers: every check is a test
// case, and those found at or above failOn are failures.
func JUnit(w io.Writer, r *finding.Report, failOn finding.Severity) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Failure *failure `xml:"failure,omitempty"`
		Out     string   `xml:"system-out,omitempty"`
	}
	type suite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	s := suite{Name: r.Tool}
	found := map[string]bool{}
	for _, f := range r.Findings {
		found[f.ID] = true
		c := testcase{Name: f.ID + " " + f.Subject, Class: "doctor." + f.ID}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n", f.Cause)
		for _, x := range f.Fix {
			fmt.Fprintf(&b, "fix: %s\n", x)
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "%s:%d: %s\n", e.File, e.Line, e.Text)
		}
		if f.Severity >= failOn {
			c.Failure = &failure{f.Cause, f.Severity.String(), b.String()}
			s.Failures++
		} else {
			c.Out = b.String()
		}
		s.Cases = append(s.Cases, c)
	}
	for _, e := range checks.Catalog() {
		if !found[e.ID] {
			s.Cases = append(s.Cases, testcase{Name: e.ID, Class: "doctor." + e.ID})
		}
	}
	s.Tests = len(s.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(&s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
