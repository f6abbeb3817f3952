package timer

import (
	"errors"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"
)

// retryPause paces the owner's looks while the kernel refuses to set or read the
// timer: late by a second is better than never, and no busy loop.
const retryPause = time.Second

// errStepped is a kernel's answer that the wall clock was stepped. set and wait
// both give it, each step to one of them.
var errStepped = errors.New("the wall clock was stepped")

// kernel is the part of a timerfd that timerfd needs; see kernel_linux.go.
type kernel interface {
	// set arms the timer for at, replacing the previous instant and forgetting
	// an expiry that wait has not returned yet. On errStepped the timer is armed.
	set(at time.Time) error
	// wait blocks until the timer expires (nil), the clock is stepped
	// (errStepped) or close is called (os.ErrClosed).
	wait() error
	close() error
}

// timerfd is a Timer over a kernel timer. The owner's Arm sets it; a goroutine
// waits for it and posts wakes.
//
// Arm and the goroutine race without harm. If the timer expires just before Arm
// replaces the instant, the wake is either posted, and finds nothing to do, or
// forgotten by the kernel; the new instant is armed in both cases. What must not happen is
// that Arm believes an instant armed in the kernel that has already expired. So the
// goroutine forgets the armed instant first and posts the wake second: an
// Arm that was skipped on a stale belief is followed by a wake, hence another Arm.
type timerfd struct {
	log    *slog.Logger
	box    *mailbox
	kernel kernel
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed when the goroutine has returned

	mu     sync.Mutex
	closed bool
	armed  time.Time   // the instant pending in the kernel; zero when not known
	retry  *time.Timer // wakes the owner after set failed
}

// newSystem returns a Timer over a new timerfd, or why the kernel refuses one.
func newSystem(log *slog.Logger) (Timer, error) {
	k, err := openKernel()
	if err != nil {
		return nil, err
	}
	t, err := newTimerfd(log, k)
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return t, nil
}

// newTimerfd takes over k and arms it for idle, which also shows early whether the
// kernel accepts what Arm will ask for.
func newTimerfd(log *slog.Logger, k kernel) (*timerfd, error) {
	t := &timerfd{
		log:    log,
		box:    newMailbox(),
		kernel: k,
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		armed:  idle(),
	}
	t.retry = time.AfterFunc(retryPause, func() { t.box.post(Wake{}) })
	t.retry.Stop()
	if err := k.set(idle()); err != nil && !errors.Is(err, errStepped) {
		return nil, err
	}
	go t.run()
	return t, nil
}

func (t *timerfd) kind() string { return kindTimerfd }

func (t *timerfd) C() <-chan Wake { return t.box.c }

func (t *timerfd) Arm(at time.Time) {
	at = at.Round(0)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	switch {
	case at.IsZero() || at.After(idle()):
		at = idle()
	case !at.After(time.Now()):
		// Straight to the owner: quicker than by way of the kernel.
		t.box.post(Wake{})
		at = idle()
	}
	if at.Equal(t.armed) {
		return
	}

	t.retry.Stop()
	t.armed = at
	switch err := t.kernel.set(at); {
	case err == nil:
	case errors.Is(err, errStepped):
		t.box.post(Wake{Stepped: true})
	default:
		t.log.Error("arm timer; looking again in a second", "at", at, "error", err)
		t.armed = time.Time{}
		t.retry.Reset(retryPause)
	}
}

func (t *timerfd) Close() error {
	t.mu.Lock()
	var err error
	if !t.closed {
		t.closed = true
		t.retry.Stop()
		close(t.stop)
		err = t.kernel.close()
	}
	t.mu.Unlock()
	<-t.done
	return err
}

// run posts a wake for whatever ends a wait, until Close.
func (t *timerfd) run() {
	defer close(t.done)
	for {
		err := t.kernel.wait()
		if errors.Is(err, os.ErrClosed) {
			return
		}
		t.mu.Lock()
		t.armed = time.Time{}
		t.mu.Unlock()
		t.box.post(Wake{Stepped: errors.Is(err, errStepped)})

		if err != nil && !errors.Is(err, errStepped) {
			t.log.Error("read timer; looking again in a second", "error", err)
			select {
			case <-t.stop:
				return
			case <-time.After(retryPause):
			}
		}
	}
}

// idle is the instant armed when the owner wants none: timerfd_create(2) promises
// reports of steps for an armed timer only. It lies in the year 2242, or, where the
// system call takes 32-bit seconds, at the last of them, in 2038. Later instants
// are armed as idle too.
func idle() time.Time {
	if strconv.IntSize == 32 {
		return time.Unix(1<<31-1, 0)
	}
	return time.Unix(1<<33, 0)
}
