//go:build !linux

package timer

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boottime reads a clock that nobody sets and that counts on while the machine is suspended: time.Time's monotonic
// reading does not. On macOS that is CLOCK_MONOTONIC, see clock_gettime(3).
func Boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("clock_gettime CLOCK_MONOTONIC: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
