package control

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{`"150ms"`: 150 * time.Millisecond, `150`: 150 * time.Millisecond, `0.5`: 500 * time.Microsecond, `"2s"`: 2 * time.Second} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(d), err)
		}
	}
	for _, text := range []string{`"soon"`, `true`, `1e30`} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s was taken for %v", text, time.Duration(d))
		}
	}
	if b, err := json.Marshal(Duration(1500 * time.Millisecond)); err != nil || string(b) != `"1.5s"` {
		t.Errorf("%s, %v", b, err)
	}
}

func FuzzBytes(f *testing.F) {
	f.Add([]byte("a\x00\\x41\xff\\"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := json.Marshal(Bytes(b))
		if err != nil {
			t.Fatal(err)
		}
		var back Bytes
		if err := json.Unmarshal(text, &back); err != nil || !bytes.Equal(back, b) {
			t.Errorf("%q came back as %q (%v)", b, back, err)
		}
	})
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "https://x", "http://"} {
		if _, err := New(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	c, err := New("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); err == nil {
		t.Error("nobody listens, yet there is a status")
	}
}
