package exec

import (
	"time"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// processes reads the process table. Environments cannot be read dependably, so there are no marks.
func processes() ([]process, error) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(table))
	for i := range table {
		if p := &table[i]; p.Proc.P_stat != zombie {
			all = append(all, process{pid: int(p.Proc.P_pid), pgid: int(p.Eproc.Pgid), start: micros(p)})
		}
	}
	return all, nil
}

// startTime returns when a process started, in microseconds since 1970.
func startTime(pid int) (uint64, error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	return micros(p), nil
}

func micros(p *unix.KinfoProc) uint64 {
	t := p.Proc.P_starttime
	return uint64(t.Sec)*1e6 + uint64(t.Usec)
}

// bootID names this boot of the machine; "" where it is not known.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// awaitExit returns when the child has exited and does not reap it. waitid(2) will not do here: it also
// returns for a child that is merely stopped.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil { // no file descriptors are left: look now and then
		for {
			p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
			if err != nil || p.Proc.P_stat == zombie {
				return
			}
			time.Sleep(lastPause)
		}
	}
	defer unix.Close(queue)
	watch := []unix.Kevent_t{{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}}
	for {
		if _, err := unix.Kevent(queue, watch, make([]unix.Kevent_t, 1), nil); err != unix.EINTR {
			return // ESRCH: it has exited already
		}
	}
}

// peakMemory: not needed here, the usage reported at the end is right.
func peakMemory(int) int64 { return 0 }
