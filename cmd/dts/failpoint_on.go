//go:build failpoints

package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// failpoint kills this process with SIGKILL when the point that DTS_FAILPOINT names, as in "before-commit:3", is
// reached the given number of times.
func failpoint() func(name string) {
	point, times, _ := strings.Cut(os.Getenv("DTS_FAILPOINT"), ":")
	n, _ := strconv.ParseInt(times, 10, 64)
	if point == "" || n < 1 {
		return nil
	}
	var reached atomic.Int64
	return func(name string) {
		if name == point && reached.Add(1) == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}
