package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

// TestHealthyInputs: a false alarm is worse than a miss. The HBase 2.x logs are
// those of a real master and region servers.
func TestHealthyInputs(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "healthy"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Input
	for _, f := range files {
		in, err := Files([]string{filepath.Join("testdata", "healthy", f.Name())})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, in...)
		t.Run(f.Name(), func(t *testing.T) { noAlarm(t, diagnose(t, "", in...)) })
	}
	t.Run("together", func(t *testing.T) { noAlarm(t, diagnose(t, "", all...)) })
}

func noAlarm(t *testing.T, r *finding.Report) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Severity >= finding.Error {
			t.Errorf("false alarm %s (%s): %s\n%v", f.ID, f.Severity, f.Cause, f.Evidence)
		}
	}
	for _, in := range r.Inputs {
		if in.Error != "" {
			t.Errorf("%s: %s", in.Name, in.Error)
		}
	}
}
