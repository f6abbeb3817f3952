package main

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// politeness is the nice value of a command that takes the processor for longer, beside a server that must be on time.
const politeness = 10

// lowerPriority lets everything else on this machine go first. On Linux each thread has a priority of its own, which those
// that it starts inherit. That it cannot be done is no reason to stop.
func lowerPriority() {
	if runtime.GOOS != "linux" {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, politeness)
		return
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, politeness)
		}
	}
}
