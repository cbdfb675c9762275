package metamorph

import (
	"context"
	"time"
)

// Shrink looks for a part of a history that fails under the setting as well, as
// long as there is time. Faults race with operations, so a part that fails only
// now and then may be lost: each is played up to tries times.
func Shrink(ctx context.Context, h *History, s Setting, tries int, limit time.Duration) *History {
	until := time.Now().Add(limit)
	fails := func(events []Event) bool {
		part := &History{Shape: h.Shape, Events: events}
		for range tries {
			if !time.Now().Before(until) || ctx.Err() != nil {
				return false
			}
			if rep, err := Run(ctx, part, s); err == nil && rep.Err() != nil {
				return true
			}
		}
		return false
	}
	events := h.Events
	for size := len(events) / 2; size >= 1 && time.Now().Before(until); size /= 2 {
		for at := 0; at < len(events); {
			part := append(append([]Event(nil), events[:at]...), events[min(at+size, len(events)):]...)
			if len(part) > 0 && fails(part) {
				events = part
				continue
			}
			at += size
		}
	}
	small := &History{Shape: h.Shape, Events: events}
	small.Shape.Settings = []string{s.Name}
	return small
}
