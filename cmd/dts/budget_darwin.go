package main

import "golang.org/x/sys/unix"

// machineMemory is how much memory the machine has, in bytes; 0 where it is not known.
func machineMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
