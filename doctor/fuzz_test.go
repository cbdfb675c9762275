package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-hbase/holdfast/doctor/report"
)

// FuzzDiagnose runs everything on arbitrary text: no panic, and equal input
// gives an equal report.
func FuzzDiagnose(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "cases", "*"))
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), "")
	}
	f.Add(`get "t" row "r": deadline exceeded after 3s of 3s, 4 attempts on a,1,2: x [time: calling 1s, waiting 2s (region, 3 times)]`, "0.98")
	f.Fuzz(func(t *testing.T, text, hbase string) {
		if len(text) > 1<<18 {
			return
		}
		r, err := Diagnose(t.Context(), []Input{Text("x", text), Text("hbase-site.xml", text), Text("zoo.cfg", text)}, Options{HBase: hbase, Timeline: true})
		if err != nil {
			return
		}
		if _, err := report.Redact(r); err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Findings {
			if x.ID == "" || x.Cause == "" || x.Confidence == "" || x.Count < 1 {
				t.Fatalf("incomplete finding %+v", x)
			}
		}
	})
}
