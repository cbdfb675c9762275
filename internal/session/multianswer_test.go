package session

import (
	"bytes"
	"errors"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// TestMultiAnswerIsBounded: an answer to more than was asked is refused before
// there is memory for it, also by the second attempt.
func TestMultiAnswerIsBounded(t *testing.T) {
	region := []byte{1<<3 | 2, 0} // a RegionActionResult, empty
	result := append([]byte{1<<3 | 2, 200, 1}, bytes.Repeat([]byte{1<<3 | 2, 0}, 100)...)
	for _, tt := range []struct {
		name           string
		answer         []byte
		parts, actions int
		ok             bool
	}{
		{"what was asked", bytes.Repeat(region, 3), 3, 1, true},
		{"a million regions", bytes.Repeat(region, 1_000_000), 3, 1000, false},
		{"one region too many", bytes.Repeat(region, 4), 3, 10, false},
		{"all results", result, 1, 100, true},
		{"one result too many", result, 1, 99, false},
	} {
		m := multiAnswer{parts: tt.parts, actions: tt.actions}
		for range 2 {
			err := m.UnmarshalVT(tt.answer)
			if (err == nil) != tt.ok || !tt.ok && !errors.As(err, new(*wire.FormatError)) {
				t.Errorf("%s: %v", tt.name, err)
			}
			if !tt.ok && m.regions != nil {
				t.Errorf("%s: memory for %d regions", tt.name, cap(m.regions))
			}
			m.Reset()
		}
	}
}
