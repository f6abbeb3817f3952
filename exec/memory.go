package exec

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// memoryWatch measures the peak memory of a command.
//
// Linux reports it when the process ends (ru_maxrss, getrusage(2)), but a process that was started by vfork
// begins with its parent's peak: below that of the server the number says nothing. There the highest value
// seen in /proc while it ran is used, and nothing where it ended before the first look.
type memoryWatch struct {
	*time.Timer
	pid  int
	next time.Duration
	seen int64
}

func watchMemory(pid int) *memoryWatch {
	const first = 4 * time.Millisecond
	return &memoryWatch{Timer: time.NewTimer(first), pid: pid, next: 2 * first}
}

// sample looks once, and arranges for the next look: often at first, then every second.
func (w *memoryWatch) sample() {
	w.seen = max(w.seen, peakMemory(w.pid))
	w.Reset(w.next)
	w.next = min(2*w.next, time.Second)
}

// peak returns the best number there is, in bytes; 0 for unknown.
func (w *memoryWatch) peak(state *os.ProcessState) int64 {
	child, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(child.Maxrss) // bytes
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err == nil && child.Maxrss > own.Maxrss {
		return int64(child.Maxrss) << 10
	}
	return w.seen
}
