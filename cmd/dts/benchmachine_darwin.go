package main

import "golang.org/x/sys/unix"

func cpuModel() string {
	if model, err := unix.Sysctl("machdep.cpu.brand_string"); err == nil {
		return model
	}
	return "unknown"
}

func fileSystem(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(s.Fstypename[:])
}
