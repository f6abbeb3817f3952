package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// runAsProcess1 is what the program does as process 1 of a container: it starts itself as a child, passes signals on to that, and
// reaps what is left to process 1, as an init does, so that no zombies pile up. The child cannot do that for itself: it waits for
// its own commands, and would lose how they ended. It returns the exit code of the child, 128 and more where a signal ended it.
func runAsProcess1() int {
	children, signals := make(chan os.Signal, 1), make(chan os.Signal, 32)
	signal.Notify(children, syscall.SIGCHLD)
	// A terminal sends some of these to the child as well: two at once are one to it.
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	pid, err := startSelf()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dts: start the program as a child of process 1:", err)
		return exitFailed
	}
	for {
		select {
		case s := <-signals:
			_ = syscall.Kill(pid, s.(syscall.Signal)) // fails only when it has just ended
		case <-children:
			if code, ended := reap(pid); ended {
				return code
			}
		}
	}
}

// startSelf starts the program anew, with the same arguments, and returns its process id.
func startSelf() (int, error) {
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	p, err := os.StartProcess(path, os.Args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, err
	}
	pid := p.Pid
	return pid, p.Release() // reap waits for it
}

// reap takes the exit codes of all children that have ended. It reports whether pid was among them, and its code.
func reap(pid int) (code int, ended bool) {
	for {
		var status syscall.WaitStatus
		child, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || child == 0:
			return code, ended
		case child == pid && status.Signaled():
			code, ended = 128+int(status.Signal()), true
		case child == pid:
			code, ended = status.ExitStatus(), true
		}
	}
}
