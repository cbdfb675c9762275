//go:build !linux

package route

import "time"

// threadTime is not known here.
func threadTime() time.Duration { return 0 }
