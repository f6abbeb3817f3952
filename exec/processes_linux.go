package exec

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxEnviron is how much of a process's environment is read. The kernel allows more only to those that raise
// their stack limit: a quarter of it is for arguments and environment (execve(2)).
const maxEnviron = 2 << 20

// processes reads the process table from /proc. Processes that end meanwhile are left out.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []process
	var buf bytes.Buffer
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		st, err := readStat(pid)
		if err != nil || st.state == 'Z' || st.state == 'X' {
			continue
		}
		all = append(all, process{pid: pid, pgid: st.pgid, start: st.start, mark: readMark(pid, &buf)})
	}
	return all, nil
}

// stat is what is needed of /proc/PID/stat, proc_pid_stat(5).
type stat struct {
	state byte
	pgid  int
	start uint64
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(b))
}

// parseStat begins after the last ')': the second field is the program's name, which can hold anything.
func parseStat(s string) (stat, error) {
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 {
		return stat{}, fmt.Errorf("stat of a process has %d fields after the name; at least 20 are needed", len(f))
	}
	pgid, err := strconv.Atoi(f[2])
	if err != nil {
		return stat{}, fmt.Errorf("process group in stat: %w", err)
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("start time in stat: %w", err)
	}
	return stat{state: f[0][0], pgid: pgid, start: start}, nil
}

// readMark returns the value of DTS_RUN in a process's environment, "" where there is none or no access.
func readMark(pid int, buf *bytes.Buffer) string {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer f.Close()
	buf.Reset()
	if _, err := buf.ReadFrom(io.LimitReader(f, maxEnviron)); err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(buf.Bytes(), []byte{0}) {
		if v, ok := bytes.CutPrefix(entry, []byte(markName+"=")); ok {
			return string(v)
		}
	}
	return ""
}

// startTime returns when a process started, in clock ticks since boot. It also knows zombies.
func startTime(pid int) (uint64, error) {
	st, err := readStat(pid)
	return st.start, err
}

// bootID names this boot of the machine; "" where it is not known.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// awaitExit returns when the child has exited and does not reap it.
func awaitExit(pid int) {
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

// peakMemory returns the highest resident memory of a running process so far, in bytes; 0 for unknown.
func peakMemory(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), "\nVmHWM:")
	if !ok {
		return 0
	}
	value, _, _ := strings.Cut(rest, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
