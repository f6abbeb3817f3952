package rqlitetest

import (
	"os/exec"
	"runtime"
	"syscall"
)

// starter starts processes that the kernel kills when this one ends, however it ends. The kernel watches the thread that
// started them, so one thread starts all of them and stays.
type starter struct {
	orders chan func()
}

func newStarter() *starter {
	s := &starter{orders: make(chan func())}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range s.orders {
			f()
		}
	}()
	return s
}

func (s *starter) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	done := make(chan error)
	s.orders <- func() { done <- cmd.Start() }
	return <-done
}

func (s *starter) end() { close(s.orders) }
