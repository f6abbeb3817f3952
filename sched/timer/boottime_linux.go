package timer

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boottime reads a clock that nobody sets and that counts on while the machine is suspended: time.Time's monotonic
// reading does not. It is a duration since some instant before this boot's first call; see CLOCK_BOOTTIME in
// clock_gettime(2).
func Boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock_gettime CLOCK_BOOTTIME: " + err.Error()) // every Linux that Go runs on has it
	}
	return time.Duration(ts.Nano())
}
