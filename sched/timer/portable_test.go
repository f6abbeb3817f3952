package timer

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPortableLongSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := NewPortable()
		defer tm.Close()
		random := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			at := time.Now().Add(1 + time.Duration(random.Int64N(int64(6*time.Hour))))
			tm.Arm(at)
			w := <-tm.C()
			if now := time.Now(); !now.Equal(at) {
				t.Fatalf("woke %v after the instant", now.Sub(at))
			}
			if w.Stepped {
				t.Fatal("reported a step; the clock went steadily")
			}
		}
		for _, d := range []time.Duration{maxSleep - 1, maxSleep, maxSleep + 1, 2 * maxSleep, 1000 * time.Hour} {
			at := time.Now().Add(d)
			tm.Arm(at)
			<-tm.C()
			if now := time.Now(); !now.Equal(at) {
				t.Errorf("asked for %v, woke %v after the instant", d, now.Sub(at))
			}
		}
	})
}

func TestPortableReplaceInMidSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := NewPortable()
		defer tm.Close()
		start := time.Now()
		tm.Arm(start.Add(5 * time.Hour))
		time.Sleep(100 * time.Second) // in mid-sleep
		tm.Arm(start.Add(105 * time.Second))
		<-tm.C()
		if got := time.Since(start); got != 105*time.Second {
			t.Errorf("woke at +%v, want +105s", got)
		}

		tm.Arm(time.Now().Add(time.Minute))
		time.Sleep(10 * time.Second)
		tm.Arm(time.Time{})
		time.Sleep(48 * time.Hour)
		select {
		case w := <-tm.C():
			t.Errorf("wake %+v after disarming", w)
		default:
		}
	})
}

// stepper is a wall clock that a test can set, beside a steady monotonic one.
type stepper struct {
	start time.Time
	shift atomic.Int64 // how far the wall clock has been stepped, in nanoseconds
}

func newStepper() *stepper { return &stepper{start: time.Now()} }

func (s *stepper) now() (time.Time, time.Duration) {
	return s.wall(), time.Since(s.start)
}

func (s *stepper) wall() time.Time {
	return time.Now().Round(0).Add(time.Duration(s.shift.Load()))
}

func (s *stepper) step(d time.Duration) { s.shift.Add(int64(d)) }

func TestPortableStepForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newStepper()
		p := newPortable(clock.now)
		defer p.Close()
		p.Arm(clock.wall().Add(3 * time.Hour))
		time.Sleep(time.Hour + 7*time.Second)
		clock.step(5 * time.Hour)
		began := time.Now()
		if w := <-p.C(); !w.Stepped {
			t.Error("the step was not reported")
		}
		if took := time.Since(began); took > maxSleep {
			t.Errorf("noticed the step after %v", took)
		}
	})
}

func TestPortableStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newStepper()
		p := newPortable(clock.now)
		defer p.Close()
		at := clock.wall().Add(40 * time.Second)
		p.Arm(at)
		time.Sleep(35 * time.Second)
		clock.step(-time.Hour)
		if w := <-p.C(); !w.Stepped {
			t.Error("the step was not reported")
		}
		p.Arm(at)
		if w := <-p.C(); w.Stepped {
			t.Error("one step was reported twice")
		}
		if wall := clock.wall(); !wall.Equal(at) {
			t.Errorf("woke %v after the instant by the wall clock", wall.Sub(at))
		}
	})
}

func TestPortableStepWhileDisarmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newStepper()
		p := newPortable(clock.now)
		defer p.Close()
		for _, d := range []time.Duration{-time.Hour, time.Hour, stepTolerance + 1, -stepTolerance - 1} {
			time.Sleep(45 * time.Second)
			clock.step(d)
			began := time.Now()
			if w := <-p.C(); !w.Stepped {
				t.Errorf("step of %v was not reported", d)
			}
			if took := time.Since(began); took > maxSleep {
				t.Errorf("noticed a step of %v after %v", d, took)
			}
		}
		// Slewing stays below the tolerance, look by look.
		for range 100 {
			time.Sleep(20 * time.Second)
			clock.step(15 * time.Millisecond)
		}
		select {
		case w := <-p.C():
			t.Errorf("wake %+v from slewing", w)
		default:
		}
	})
}

// TestPortableArmSeesStep: the owner asks for an instant that a step has put in
// the past, and is not left waiting for the sleep to end.
func TestPortableArmSeesStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newStepper()
		p := newPortable(clock.now)
		defer p.Close()
		at := clock.wall().Add(time.Hour)
		p.Arm(at)
		clock.step(2 * time.Hour)
		p.Arm(at)
		select {
		case w := <-p.C():
			if !w.Stepped {
				t.Error("the step was not reported")
			}
		default:
			t.Error("no wake")
		}
	})
}
