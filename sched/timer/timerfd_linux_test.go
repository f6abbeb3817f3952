package timer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestNewIsTimerfdOnLinux(t *testing.T) {
	tm := New(slog.New(slog.DiscardHandler))
	defer tm.Close()
	if got := Kind(tm); got != "timerfd" {
		t.Errorf("Kind = %q on Linux", got)
	}
}

func TestAnswer(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct{ in, want error }{
		{nil, nil},
		{io.EOF, nil},
		{unix.ECANCELED, errStepped},
		{&fs.PathError{Op: "read", Path: "timerfd", Err: unix.ECANCELED}, errStepped},
		{os.ErrClosed, os.ErrClosed},
		{broken, broken},
	} {
		if got := answer(c.in); got != c.want {
			t.Errorf("answer(%v) = %v, want %v", c.in, got, c.want)
		}
	}
}

// scripted is a kernel whose answers a test decides. Clocks cannot be stepped in
// a test without stepping everybody's.
type scripted struct {
	waits chan error // what wait returns next
	gone  chan struct{}

	mu   sync.Mutex
	sets []time.Time
	next []error // what set returns, in turn, then nil
}

func newScripted(answers ...error) *scripted {
	return &scripted{waits: make(chan error), gone: make(chan struct{}), next: answers}
}

func (s *scripted) set(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = append(s.sets, at)
	if len(s.next) == 0 {
		return nil
	}
	err := s.next[0]
	s.next = s.next[1:]
	return err
}

func (s *scripted) wait() error {
	select {
	case err := <-s.waits:
		return err
	case <-s.gone:
		return fmt.Errorf("wait: %w", os.ErrClosed)
	}
}

func (s *scripted) close() error {
	close(s.gone)
	return nil
}

func (s *scripted) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sets)
}

func open(t *testing.T, k kernel, log io.Writer) *timerfd {
	t.Helper()
	tm, err := newTimerfd(slog.New(slog.NewTextHandler(log, nil)), k)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

func TestTimerfdReportsStepOnRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newScripted()
		tm := open(t, k, io.Discard)
		defer tm.Close()
		at := time.Now().Add(time.Hour)
		tm.Arm(at)
		calls := k.calls()
		k.waits <- fmt.Errorf("wait: %w", errStepped)
		if w := <-tm.C(); !w.Stepped {
			t.Error("the step was not reported")
		}
		// The owner arms the same instant: nothing may be taken for granted.
		tm.Arm(at)
		if k.calls() != calls+1 {
			t.Error("the instant was not armed again after a step")
		}
		k.waits <- nil
		if w := <-tm.C(); w.Stepped {
			t.Error("an expiry was reported as a step")
		}
	})
}

func TestTimerfdReportsStepOnSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newScripted(nil, fmt.Errorf("set: %w", errStepped))
		tm := open(t, k, io.Discard)
		defer tm.Close()
		at := time.Now().Add(time.Hour)
		tm.Arm(at)
		if w := <-tm.C(); !w.Stepped {
			t.Error("the step was not reported")
		}
		// timerfd_settime armed it, whatever it returned.
		tm.Arm(at)
		if got := k.calls(); got != 2 {
			t.Errorf("%d calls of set, want 2", got)
		}
	})
}

func TestTimerfdSkipsNeedlessCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newScripted()
		tm := open(t, k, io.Discard)
		defer tm.Close()
		if k.calls() != 1 || !k.sets[0].Equal(idle()) {
			t.Fatalf("a new timer is not armed for idle: %v", k.sets)
		}
		tm.Arm(time.Time{})
		tm.Arm(time.Now().AddDate(1000, 0, 0))
		tm.Arm(time.Now())
		if k.calls() != 1 {
			t.Error("called the kernel although idle was armed")
		}
		at := time.Now().Add(time.Hour)
		for range 3 {
			tm.Arm(at)
		}
		if k.calls() != 2 {
			t.Error("called the kernel for an unchanged instant")
		}
		tm.Arm(time.Now())
		if k.calls() != 3 || !k.sets[2].Equal(idle()) {
			t.Error("a past instant did not replace the pending one")
		}
	})
}

func TestTimerfdSurvivesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		broken := errors.New("broken")
		k := newScripted(nil, broken, broken)
		tm := open(t, k, &log)
		defer tm.Close()

		// While set fails, the owner is woken each second and tries again.
		at := time.Now().Add(time.Hour)
		for range 2 {
			began := time.Now()
			tm.Arm(at)
			<-tm.C()
			if got := time.Since(began); got != retryPause {
				t.Errorf("woken after %v", got)
			}
		}
		tm.Arm(at)
		time.Sleep(10 * retryPause)
		select {
		case <-tm.C():
			t.Error("woken although set worked again")
		default:
		}

		// A failing read wakes at once, then pauses.
		k.waits <- broken
		<-tm.C()
		began := time.Now()
		k.waits <- broken
		<-tm.C()
		if got := time.Since(began); got != retryPause {
			t.Errorf("read again after %v", got)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "level=ERROR"); n != 4 {
			t.Errorf("%d errors logged, want 4:\n%s", n, log.String())
		}
	})
}

func TestTimerfdRefusedAtStart(t *testing.T) {
	refused := errors.New("refused")
	tm, err := newTimerfd(slog.New(slog.DiscardHandler), newScripted(refused))
	if !errors.Is(err, refused) || tm != nil {
		t.Errorf("newTimerfd = %v, %v", tm, err)
	}
}

// TestKernelForgetsExpiry holds the kernel to what Arm relies on: setting a timer
// that has expired, unread, arms it anew.
func TestKernelForgetsExpiry(t *testing.T) {
	k, err := openKernel()
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	if err := k.set(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(30 * time.Millisecond).Round(0)
	if err := k.set(at); err != nil {
		t.Fatal(err)
	}
	if err := k.wait(); err != nil {
		t.Fatal(err)
	}
	if now := time.Now(); now.Before(at) {
		t.Errorf("expired %v early", at.Sub(now))
	}
}
