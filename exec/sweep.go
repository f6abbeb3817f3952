package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

// markName is the environment variable by which an attempt's processes are known.
const markName = "DTS_RUN"

// killLimit is how long processes that were sent SIGKILL are waited for. One that hangs in the kernel, on a
// dead network file system for example, ends only with the hang.
const killLimit = 10 * time.Second

// process is an entry of the process table that is not a zombie.
type process struct {
	pid, pgid int
	start     uint64 // as in dts.Process
	mark      string // "" where there is none or it cannot be read
}

// sweep finds and ends the processes that belong together: the members of groups, those whose mark is
// wanted, and the members of groups that a marked process leads.
type sweep struct {
	log    *slog.Logger
	read   func() ([]process, error) // the process table; not changed here
	groups map[int]bool
	wanted func(mark string) bool
	own    int // this process, never touched, nor is its group
	ownGrp int
}

func newSweep(log *slog.Logger, read func() ([]process, error), groups map[int]bool, wanted func(string) bool) *sweep {
	s := &sweep{log: log, read: read, groups: groups, wanted: wanted, own: os.Getpid(), ownGrp: syscall.Getpgrp()}
	delete(s.groups, s.ownGrp)
	return s
}

// find returns the processes that are there now.
func (s *sweep) find() ([]process, error) {
	all, err := s.read()
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	marked := make(map[int]bool)
	for _, p := range all {
		if p.mark != "" && s.wanted(p.mark) {
			marked[p.pid] = true
			if p.pid == p.pgid && p.pgid != s.ownGrp {
				s.groups[p.pgid] = true
			}
		}
	}
	var found []process
	for _, p := range all {
		if p.pid > 1 && p.pid != s.own && (marked[p.pid] || s.groups[p.pgid]) {
			found = append(found, p)
		}
	}
	return found, nil
}

// signal sends sig to the groups first, because no fork escapes that, then to those that are in none of them.
func (s *sweep) signal(found []process, sig syscall.Signal) {
	sent := make(map[int]bool)
	for _, p := range found {
		if s.groups[p.pgid] && !sent[p.pgid] {
			sent[p.pgid] = true
			s.report(syscall.Kill(-p.pgid, sig), p)
		}
		if !s.groups[p.pgid] {
			s.report(signalProcess(p, sig), p)
		}
	}
}

func (s *sweep) report(err error, p process) {
	if err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrProcessDone) {
		s.log.Warn("could not signal a process", "pid", p.pid, "pgid", p.pgid, "error", err)
	}
}

// tableReader reads the process table for many who ask at the same time, as when a server that stops ends all
// its commands: they share a reading that began after they asked.
type tableReader struct {
	mu    sync.Mutex
	begun time.Time
	all   []process
	err   error
}

func (t *tableReader) read() ([]process, error) {
	asked := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun.After(asked) {
		t.begun = time.Now()
		t.all, t.err = processes()
	}
	return t.all, t.err
}

// signalProcess signals p unless its id has passed on to another process. On Linux the handle that
// os.FindProcess opens pins the process, so that nothing can happen between the look and the signal.
func signalProcess(p process, sig syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer handle.Release()
	if start, err := startTime(p.pid); err != nil || start != p.start {
		return os.ErrProcessDone
	}
	return handle.Signal(sig)
}

// terminate sends SIGTERM once, and SIGCONT, because what is stopped would not hear of it. Where the process table cannot
// be read the groups still get both.
func (s *sweep) terminate() {
	found, err := s.find()
	if err != nil {
		s.log.Warn("only the process group is stopped", "error", err)
		s.signalGroups(syscall.SIGTERM)
		s.signalGroups(syscall.SIGCONT)
		return
	}
	s.signal(found, syscall.SIGTERM)
	s.signal(found, syscall.SIGCONT)
}

func (s *sweep) signalGroups(sig syscall.Signal) {
	for pgid := range s.groups {
		syscall.Kill(-pgid, sig)
	}
}

// awaitGone returns when leader is closed and no process is left, or ctx is done.
func (s *sweep) awaitGone(ctx context.Context, leader <-chan struct{}) {
	select {
	case <-leader:
	case <-ctx.Done():
		return
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if found, err := s.find(); err != nil || len(found) == 0 {
			return
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// How long to wait between two looks at the process table.
const (
	firstPause = 2 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// kill sends SIGKILL until two looks in a row find nothing: a process that is just being forked, or is in the
// middle of execve, can be missed by one. It returns how many processes it found.
func (s *sweep) kill(ctx context.Context) (int, error) {
	type identity struct {
		pid   int
		start uint64
	}
	seen := make(map[identity]bool)
	clean := 0
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		found, err := s.find()
		if err != nil {
			s.signalGroups(syscall.SIGKILL)
			return len(seen), err
		}
		for _, p := range found {
			seen[identity{p.pid, p.start}] = true
		}
		if len(found) > 0 {
			clean = 0
			s.signal(found, syscall.SIGKILL)
		} else if clean++; clean == 2 {
			return len(seen), nil
		}
		if !sleep(ctx, pause) {
			if len(found) == 0 {
				return len(seen), nil
			}
			return len(seen), fmt.Errorf("%d processes are still there after SIGKILL, the first is %d: %w", len(found), found[0].pid, ctx.Err())
		}
	}
}

// sleep waits for d and reports false when ctx was done first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
