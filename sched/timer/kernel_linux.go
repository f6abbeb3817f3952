package timer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timerfdFile is the kernel interface on a timerfd of CLOCK_REALTIME.
type timerfdFile struct {
	fd   int      // for set; valid until close
	file *os.File // for wait; owns fd
	buf  [8]byte  // the expiry count, which nobody needs
}

// openKernel creates a timerfd that the runtime's poller can wait for.
func openKernel() (*timerfdFile, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create timerfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	// Only a file in the poller takes a deadline. Outside it, Read would not block
	// and Close would not interrupt it.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		return nil, errors.Join(fmt.Errorf("poll timerfd: %w", err), file.Close())
	}
	return &timerfdFile{fd: fd, file: file}, nil
}

// set must not run concurrently with close, which gives fd away.
//
// It refuses idle once the clock is past it (in 2038 on a 32-bit machine): the timer
// would expire at once, and again each time its owner, finding nothing due, armed it.
func (k *timerfdFile) set(at time.Time) error {
	if at.Equal(idle()) && !at.After(time.Now()) {
		return fmt.Errorf("set timerfd: the clock is past %s, the last instant that this machine's timerfd takes", at.UTC())
	}
	ts, err := unix.TimeToTimespec(at)
	if err != nil {
		return fmt.Errorf("set timerfd to %s: %w", at.UTC(), err)
	}
	err = unix.TimerfdSettime(k.fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &unix.ItimerSpec{Value: ts}, nil)
	if err := answer(err); err != nil {
		return fmt.Errorf("set timerfd: %w", err)
	}
	return nil
}

func (k *timerfdFile) wait() error {
	_, err := k.file.Read(k.buf[:])
	if err := answer(err); err != nil {
		return fmt.Errorf("wait for timerfd: %w", err)
	}
	return nil
}

func (k *timerfdFile) close() error { return k.file.Close() }

// answer translates what read or timerfd_settime returned. See timerfd_create(2):
//
//   - ECANCELED from either means that the clock was stepped since the last report.
//     timerfd_settime has armed the timer all the same.
//   - read returning 0 bytes means that the timer expired and the clock was then
//     set back before the read. It is treated as an expiry; the owner will see that it is early.
func answer(err error) error {
	switch {
	case errors.Is(err, unix.ECANCELED):
		return errStepped
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}
