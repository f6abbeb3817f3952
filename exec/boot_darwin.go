package exec

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime reads kern.boottime; zero where it cannot be read.
func bootTime() time.Time {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}
	}
	return time.Unix(tv.Unix())
}
