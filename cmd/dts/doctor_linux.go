package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// limitsOf reads the limits of a process: see proc_pid_limits(5).
func limitsOf(pid int) (processLimits, error) {
	var l processLimits
	dir := fmt.Sprintf("/proc/%d", pid)
	b, err := os.ReadFile(dir + "/limits")
	if err != nil {
		return l, err
	}
	for line := range strings.Lines(string(b)) {
		for name, to := range map[string]*uint64{"Max open files": &l.files, "Max processes": &l.processes} {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				soft, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
				*to, _ = strconv.ParseUint(soft, 10, 64) // unlimited: 0
			}
		}
	}
	open, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return l, err
	}
	l.open = uint64(len(open))
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			l.root = st.Uid == 0
		}
	}
	return l, nil
}
