package exec

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"dts"
)

// OrphanQuery says which commands of an earlier server process must not run any more.
type OrphanQuery struct {
	// Processes are the recorded process groups of attempts that had not ended.
	Processes []dts.Process
	// DataDirID is that of Options, the same for every server on the same data.
	DataDirID string
	// InFlight reports whether an attempt had not ended. It is asked about each process that carries a mark
	// of this data, so it also covers attempts whose process was never recorded. Processes of attempts that
	// had ended are left alone: a command may start a daemon. nil: there are none.
	InFlight func(taskID string, attempt int) bool
}

// KillOrphans kills what is left of commands that an earlier server process started, and returns when they
// are gone: call it before any task runs again. It finds
//
//   - the recorded groups, where the machine has not been booted since and the group's first process has
//     the recorded start time;
//   - on Linux, every process whose environment carries the mark of an attempt in flight, and the groups
//     that such processes lead. That covers processes that have left the group by setsid(2).
//
// Out of reach are processes that have overwritten or replaced their environment and left the group, and
// those whose environment this user may not read. killed counts processes. An error means that some may be
// left: the process table could not be read, or ctx was done first.
func KillOrphans(ctx context.Context, log *slog.Logger, q OrphanQuery) (killed int, err error) {
	boot := bootID()
	groups := make(map[int]bool)
	for _, p := range q.Processes {
		if p.PGID <= 1 || boot == "" || p.BootID != boot {
			continue
		}
		if start, err := startTime(p.PGID); err == nil && start == p.StartTime {
			groups[p.PGID] = true
		}
	}
	s := newSweep(log, processes, groups, func(mark string) bool {
		taskID, attempt, ok := parseMark(mark, q.DataDirID)
		return ok && q.InFlight != nil && q.InFlight(taskID, attempt)
	})
	killed, err = s.kill(ctx)
	if killed > 0 {
		log.Info("killed processes that an earlier server left", "processes", killed)
	}
	if err != nil {
		return killed, fmt.Errorf("kill orphans: %w", err)
	}
	return killed, nil
}

// parseMark is the inverse of mark, for marks of this data.
func parseMark(mark, dataDirID string) (taskID string, attempt int, ok bool) {
	rest, ok := strings.CutPrefix(mark, dataDirID+"/")
	if !ok {
		return "", 0, false
	}
	taskID, number, _ := strings.Cut(rest, "/")
	attempt, err := strconv.Atoi(number)
	return taskID, attempt, err == nil
}
