package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dts"
)

// runCommand starts the task's command, waits for it and captures what it prints into c. limit is what ends ctx at the
// task's timeout.
func (r *Runner) runCommand(ctx context.Context, job *dts.Job, c *capture, limit *timeLimit) dts.Outcome {
	t, err := job.Task.Command()
	if err != nil {
		return failed(false, "the target_config is not valid: %s", err)
	}
	cmd, err := r.prepare(&t, job)
	if err != nil {
		return failed(false, "%s", err)
	}
	// One writer for both makes os/exec use one pipe for both, so that lines stay in the order they come.
	cmd.Stdout, cmd.Stderr = c, c
	if err := cmd.Start(); err != nil {
		return startFailed(cmd, err)
	}
	pid := cmd.Process.Pid // and the id of its process group
	defer func() {
		if cmd.ProcessState == nil { // a panic, in Started for example: leave nothing behind
			syscall.Kill(-pid, syscall.SIGKILL)
			cmd.Wait()
		}
	}()
	start, _ := startTime(pid)
	if job.Started != nil {
		job.Started(dts.Process{PGID: pid, StartTime: start, BootID: r.bootID})
	}
	hold := &controls{pgid: pid, limit: limit}
	defer hold.end()
	if job.Controls != nil {
		job.Controls(hold)
	}
	// The command is awaited here but reaped only by cmd.Wait below. Until then its ids belong to nobody
	// else, so that no signal can hit a stranger.
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		awaitExit(pid)
	}()
	memory := watchMemory(pid)
	var out dts.Outcome
	for running := true; running; {
		select {
		case <-exited:
			running = false
		case <-memory.C:
			memory.sample()
		case <-ctx.Done():
			select {
			case <-exited: // at the same moment: it was in time
			default:
				hold.end()
				out = stopped(ctx, job, "did not end within %s and was killed")
				r.stop(out.State, pid, mark(r.o.DataDirID, job), exited)
			}
			<-exited
			running = false
		}
	}
	memory.Stop()
	hold.exited()
	if job.Exited != nil {
		job.Exited()
	}
	if err := cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
		r.o.Log.Debug("a process in the background holds the output of its command open; what it prints from here on is lost",
			"task_id", job.Task.ID, "attempt", job.Number)
	}
	if cmd.ProcessState == nil {
		return failed(true, "lost track of the command")
	}
	if out.State == "" {
		out = judgeExit(cmd)
	}
	out.ExitCode = exitCode(cmd.ProcessState)
	if out.State == dts.AttemptFailed {
		out.Retryable = job.Task.Retry.On.Exit(*out.ExitCode, out.Retryable)
	}
	out.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	out.MaxRSSBytes = memory.peak(cmd.ProcessState)
	return out
}

// prepare makes the command ready to start. Its error is one that another attempt would meet again.
func (r *Runner) prepare(t *dts.CommandTarget, job *dts.Job) (*exec.Cmd, error) {
	who, credential, err := r.identity(t.User)
	if err != nil {
		return nil, err
	}
	shell := t.ShellPath
	if shell == "" {
		shell = "/bin/sh"
	}
	env := r.environment(t, job, who, shell)
	argv := t.Argv
	if t.Shell != "" {
		argv = []string{shell, "-c", t.Shell}
	}
	if len(argv) == 0 {
		return nil, errors.New("there is no command; give argv or shell")
	}
	dir, err := directory(cmp.Or(t.Dir, r.o.Dir), who.HomeDir)
	if err != nil {
		return nil, err
	}
	path, err := lookPath(argv[0], env)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path:        path,
		Args:        argv,
		Env:         env,
		Dir:         dir,
		WaitDelay:   r.o.WaitDelay,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Credential: credential},
	}
	if t.Stdin != "" {
		cmd.Stdin = strings.NewReader(t.Stdin)
	}
	return cmd, nil
}

// startFailed explains why the command did not start. What the machine lacks at the moment may be there for
// the next attempt; what the task gets wrong will not.
func startFailed(cmd *exec.Cmd, err error) dts.Outcome {
	name := clip(cmd.Args[0])
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return failed(true, "could not start %s: the machine is out of processes, memory or files (%s)", name, errorNumber(err))
	case errors.Is(err, syscall.ETXTBSY):
		return failed(true, "could not start %s: the file is being written", name)
	case errors.Is(err, syscall.ENOENT):
		path := cmd.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(cmd.Dir, path)
		}
		if _, statErr := os.Stat(path); statErr == nil {
			return failed(false, "could not start %s: the interpreter in its first line does not exist", name)
		}
		return failed(false, "there is no program %s", name)
	case errors.Is(err, syscall.ENOEXEC):
		return failed(false, "could not start %s: it is not a program for this machine; a script needs a first line such as #!/bin/sh", name)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return failed(false, "permission denied to run %s in %s", name, clip(cmd.Dir))
	case errors.Is(err, syscall.E2BIG):
		return failed(false, "could not start %s: arguments and environment are too long", name)
	case errors.Is(err, syscall.EIO):
		return failed(true, "could not start %s: %s", name, errorNumber(err))
	}
	return failed(false, "could not start %s: %s", name, errorNumber(err))
}

func errorNumber(err error) string {
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		return n.Error()
	}
	return clip(err.Error())
}

// judgeExit decides about a command that ended by itself.
func judgeExit(cmd *exec.Cmd) dts.Outcome {
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch code := status.ExitStatus(); {
	case status.Signaled():
		return failed(true, "ended by signal %d (%s)", int(status.Signal()), status.Signal())
	case code == 0:
		return dts.Outcome{State: dts.AttemptSuccess}
	case code == 126:
		return failed(true, "exit code 126, which a shell gives when it may not run a program")
	case code == 127:
		return failed(true, "exit code 127, which a shell gives when it does not find a program")
	default:
		return failed(true, "exit code %d", code)
	}
}

// exitCode is the code a shell would report: 128 + n for signal n.
func exitCode(state *os.ProcessState) *int {
	code := state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return &code
}

// mark is the value of DTS_RUN in the environment of an attempt's processes. It begins with the name of the
// server's data, so that two servers on one machine leave each other's commands alone.
func mark(dataDirID string, job *dts.Job) string {
	return fmt.Sprintf("%s/%s/%d", dataDirID, job.Task.ID, job.Number)
}

// stop ends every process of an attempt: SIGTERM, then SIGKILL when the grace is over. It returns when the
// command has exited and the rest is gone as far as it can be seen.
func (r *Runner) stop(state dts.AttemptState, pgid int, mark string, exited <-chan struct{}) {
	grace := r.o.KillGrace
	if state == dts.AttemptLost {
		grace = min(grace, time.Second) // the server is about to go itself
	}
	s := newSweep(r.o.Log, r.table.read, map[int]bool{pgid: true}, func(m string) bool { return m == mark })
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	s.terminate()
	s.awaitGone(ctx, exited)
	cancel()
	ctx, cancel = context.WithTimeout(context.Background(), killLimit)
	defer cancel()
	if _, err := s.kill(ctx); err != nil {
		r.o.Log.Error("processes of a stopped command are left", "mark", mark, "error", err)
	}
	<-exited
}
