package sched

import "golang.org/x/sys/unix"

// kernelClock asks adjtimex(2), which changes nothing when it is only asked. It is not known where a sandbox refuses that.
func kernelClock() (k KernelClock, known bool) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return k, false
	}
	return KernelClock{
		// Not STA_UNSYNC, nor TIME_ERROR, which follows from it: chrony sets that flag on a clock that it keeps well, to
		// stop the kernel from writing the hardware clock.
		Synchronised:   int64(t.Maxerror) < maxErrorUnknown,
		EstimatedErrUS: int64(t.Esterror), MaxErrorUS: int64(t.Maxerror),
	}, true
}

// maxErrorUnknown is the bound of the error, in microseconds, of a clock that nobody corrects. Without corrections the kernel
// raises the bound by 500 µs a second until it is this: NTP_PHASE_LIMIT in the kernel's timex.h.
const maxErrorUnknown = 16_000_000
