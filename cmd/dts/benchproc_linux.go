package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of the times in /proc/PID/stat: 1/100 s on every architecture that Go has.
const userHZ = 100

// usageOf reads what a process has used: proc_pid_status(5), proc_pid_stat(5).
func usageOf(pid int) (u processUsage, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := statusFields(filepath.Join(dir, "status"), "VmRSS", "VmHWM")
	if err != nil {
		return u, err
	}
	u.Resident, u.PeakResident = status[0]<<10, status[1]<<10
	if u.CPU, err = cpuTime(filepath.Join(dir, "stat")); err != nil {
		return u, err
	}
	threads, err := filepath.Glob(filepath.Join(dir, "task", "*", "status"))
	if err != nil {
		return u, err
	}
	for _, path := range threads {
		n, err := statusFields(path, "voluntary_ctxt_switches")
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		if err != nil {
			return u, err
		}
		u.Switches += n[0]
	}
	return u, nil
}

// statusFields reads numbers of a file such as /proc/PID/status. A unit after the number is left out.
func statusFields(path string, names ...string) ([]int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values, found := make([]int64, len(names)), 0
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		for i := range names {
			if fields := strings.Fields(rest); name == names[i] && len(fields) > 0 {
				if values[i], err = strconv.ParseInt(fields[0], 10, 64); err != nil {
					return nil, fmt.Errorf("%s: %s: %w", path, name, err)
				}
				found++
			}
		}
	}
	if found < len(names) {
		return nil, fmt.Errorf("%s does not hold %s", path, strings.Join(names, ", "))
	}
	return values, nil
}

// cpuTime reads user and system time. The name of the program, the second field, can hold spaces: what
// follows its last parenthesis begins with the third.
func cpuTime(path string) (time.Duration, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("%s is not as expected", path)
	}
	var ticks int64
	for _, text := range []string{fields[user], fields[system]} {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHZ, nil
}
