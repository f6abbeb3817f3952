package sched

import (
	"testing"
	"time"
)

// fakeClock is a wall clock and one that nobody sets.
type fakeClock struct {
	wall time.Time
	boot time.Duration
}

func (f *fakeClock) pass(d time.Duration)       { f.wall, f.boot = f.wall.Add(d), f.boot+d }
func (f *fakeClock) clock() *clock              { return newClock(f.read, f.up, time.Time{}, time.Time{}, false) }
func (f *fakeClock) read() time.Time            { return f.wall }
func (f *fakeClock) up() time.Duration          { return f.boot }
func (f *fakeClock) drift(d, off time.Duration) { f.pass(d); f.wall = f.wall.Add(off) }
func newFakeClock() *fakeClock {
	return &fakeClock{time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), time.Hour}
}

func TestStepSize(t *testing.T) {
	f := newFakeClock()
	c := f.clock()
	expect := func(what string, steps int64, by time.Duration, at time.Time) {
		t.Helper()
		gotAt, gotBy := c.lastStep()
		if c.stepCount() != steps || (gotBy-by).Abs() > 50*time.Millisecond || !gotAt.Equal(at) {
			t.Errorf("%s: %d steps, the last by %v at %v; want %d, %v, %v", what, c.stepCount(), gotBy, gotAt, steps, by, at)
		}
	}
	f.pass(time.Minute)
	c.look()
	f.pass(30 * time.Second)
	f.wall = f.wall.Add(time.Hour)
	c.stepped()
	first := f.wall
	expect("forwards", 1, time.Hour, first)

	f.pass(8 * time.Hour) // asleep: both clocks go on
	if by := c.stepped(); by != 0 {
		t.Errorf("waking up is a step by %v", by)
	}
	expect("the end of a suspend", 1, time.Hour, first)

	f.pass(50 * time.Second)
	f.wall = f.wall.Add(-90 * time.Second)
	c.look() // before the timer tells
	f.pass(time.Second)
	c.stepped()
	second := f.wall
	expect("back, looked at before it was told", 2, -90*time.Second, second)

	for range 100 { // slewing, as fast as a kernel does
		f.drift(time.Minute, 30*time.Millisecond)
		c.look()
	}
	f.pass(time.Second)
	c.stepped()
	expect("slewed by 3 s", 2, -90*time.Second, second)

	f.drift(time.Minute, 5*time.Second) // faster slewing, of which nobody tells as a step
	c.look()
	f.pass(time.Minute)
	c.look()
	c.stepped()
	expect("slewed fast", 2, -90*time.Second, second)
}

func TestSkewSamples(t *testing.T) {
	ms := time.Millisecond
	k := newSkews()
	expect := func(what string, now, want time.Duration, known bool) {
		t.Helper()
		if s, ok := k.best("n2", now); ok != known || s.skew != want {
			t.Errorf("%s: %v %v, want %v %v", what, s.skew, ok, want, known)
		}
	}
	expect("nothing was asked", 0, 0, false)
	k.add("n2", skewSample{skew: 40 * ms, round: 90 * ms, at: 10 * time.Second})
	expect("one answer", 10*time.Second, 40*ms, true)
	k.add("n2", skewSample{skew: 3 * ms, round: 2 * ms, at: 20 * time.Second})
	expect("a quicker one", 20*time.Second, 3*ms, true)
	k.add("n2", skewSample{skew: -20 * ms, round: 60 * ms, at: 30 * time.Second})
	expect("a slower one", 30*time.Second, 3*ms, true)
	k.add("n2", skewSample{skew: 500 * ms, round: 60 * ms, at: 40 * time.Second})
	expect("the clock was set", 40*time.Second, 500*ms, true)
	for i := range time.Duration(20) {
		k.add("n2", skewSample{skew: 500 * ms, round: 10*ms + i*ms, at: (41 + i) * time.Second})
	}
	if n := len(k.last["n2"]); n != skewSamples {
		t.Errorf("%d answers are kept", n)
	}
	expect("no answer for long", 3*time.Minute, 0, false)
	k.keep(nil)
	if len(k.last) != 0 {
		t.Error("a server that has gone is kept")
	}
}

func TestKernelClock(t *testing.T) {
	k, known := kernelClock()
	if known && (k.MaxErrorUS < 0 || k.EstimatedErrUS < 0 || k.Synchronised != (k.MaxErrorUS < 16_000_000)) {
		t.Errorf("%+v", k)
	}
	t.Logf("known %v: %+v", known, k)
}
