package main

import (
	"os"
	"path/filepath"
	"strings"
)

// cpuModel reads /proc/cpuinfo (proc_cpuinfo(5)), and on boards whose processor has no name there, the board's.
func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if n := strings.TrimSpace(name); n == "model name" || n == "Model" {
			return strings.TrimSpace(value)
		}
	}
	b, _ = os.ReadFile("/sys/firmware/devicetree/base/model")
	if board := strings.Trim(string(b), "\x00\n "); board != "" {
		return board
	}
	return "unknown"
}

// fileSystem finds the mount that dir is on in /proc/self/mountinfo (proc_pid_mountinfo(5)): of the mount
// points that lead to it the longest, and of equals the last, which covers the others.
func fileSystem(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "unknown"
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	b, _ := os.ReadFile("/proc/self/mountinfo")
	found, length := "unknown", -1
	for line := range strings.Lines(string(b)) {
		mount, source, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(mount), strings.Fields(source)
		if !ok || len(fields) < 6 || len(types) < 1 {
			continue
		}
		point := fields[4]
		if under := strings.TrimSuffix(point, "/") + "/"; len(point) >= length && strings.HasPrefix(abs+"/", under) {
			found, length = types[0], len(point)
		}
	}
	return found
}
