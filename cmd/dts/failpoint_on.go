//go:build failpoints

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// failpoint kills this process with SIGKILL when the point that DTS_FAILPOINT names, as in "before-commit:3", is
// reached the given number of times. Without the variable it is nil.
func failpoint() (func(name string), error) {
	v := os.Getenv("DTS_FAILPOINT")
	if v == "" {
		return nil, nil
	}
	points := []string{
		"before-commit", "after-commit", // store/sqlite
		"before-start", "before-run", "after-run", // an attempt, in sched
		"before-plan", "after-plan", // a recurring task, in sched
	}
	point, times, _ := strings.Cut(v, ":")
	n, err := strconv.ParseInt(times, 10, 64)
	if err != nil || n < 1 || !slices.Contains(points, point) {
		return nil, fmt.Errorf("DTS_FAILPOINT is %q; use POINT:N, N from 1, POINT one of %s", v, strings.Join(points, ", "))
	}
	var reached atomic.Int64
	return func(name string) {
		if name == point && reached.Add(1) == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}, nil
}
