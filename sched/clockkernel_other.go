//go:build !linux

package sched

// kernelClock is known on Linux only.
func kernelClock() (KernelClock, bool) { return KernelClock{}, false }
