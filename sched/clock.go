package sched

import (
	"fmt"
	"sync"
	"time"
)

// clock reads the wall clock and decides whether to believe it. A machine without a battery-backed clock
// boots in 1970, or at its last shutdown; firing by such a clock would run tasks at wrong times.
type clock struct {
	read  func() time.Time
	boot  func() time.Duration // a clock that nobody sets
	floor time.Time            // certainly past
	trust bool

	mu       sync.Mutex
	newest   time.Time // newest time in the store when the server started; zero once it has passed
	reason   string
	steps    int64
	stepAt   time.Time
	stepBy   time.Duration
	last     reading // of the time before a step that is still to be noticed
	deviates bool    // the look before this one found the two clocks apart
}

// reading is what both clocks said at one moment.
type reading struct {
	wall time.Time
	boot time.Duration
}

// slewing is how much faster or slower a clock runs that is corrected little by little: 500 ppm, see adjtimex(2). What is
// beyond that is a step.
const slewing = 500e-6

func newClock(read func() time.Time, boot func() time.Duration, floor, newest time.Time, trust bool) *clock {
	c := &clock{read: read, boot: boot, floor: floor, newest: newest, trust: trust}
	c.last = c.both()
	c.check()
	return c
}

// both reads both clocks. Round drops the monotonic reading: the wall clock's own is wanted.
func (c *clock) both() reading { return reading{c.read().Round(0), c.boot()} }

// apart tells by how much the wall clock has moved against the other one since a reading, and whether that is more than
// slewing explains.
func (r reading) apart(since reading) (by time.Duration, stepped bool) {
	passed := r.boot - since.boot
	by = r.wall.Sub(since.wall) - passed
	return by, by.Abs() > time.Millisecond+time.Duration(slewing*float64(passed))
}

func (c *clock) now() time.Time { return c.read() }

// check looks again whether the clock can be believed.
func (c *clock) check() {
	now := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reason = ""
	switch {
	case c.trust:
	case now.Before(c.floor):
		c.reason = fmt.Sprintf("the clock says %s, which is before this version of dts was made (%s); set the clock",
			now.UTC().Format(time.RFC3339), c.floor.UTC().Format(time.RFC3339))
	case now.Before(c.newest):
		c.reason = fmt.Sprintf("the clock says %s, but this server has seen %s already; set the clock, or start with --trust-clock if it is right now",
			now.UTC().Format(time.RFC3339), c.newest.UTC().Format(time.RFC3339))
	default:
		// From here on only steps of a clock that was right before can set it back: nothing fires twice
		// after one, so the newest time has done its duty.
		c.newest = time.Time{}
	}
}

// stepped notes that the kernel, or the timer, has told of a step, and returns its size. It tells of the end of a suspend in
// the same way: then the two clocks still agree, nothing was stepped, and the size is 0.
func (c *clock) stepped() time.Duration {
	c.mu.Lock()
	now := c.both()
	by, is := now.apart(c.last)
	if is {
		c.steps, c.stepAt, c.stepBy = c.steps+1, now.wall.UTC(), by
	} else {
		by = 0
	}
	c.last, c.deviates = now, false
	c.mu.Unlock()
	c.check()
	return by
}

// look notes what both clocks say, so that the size of a step is known when one is told of: the shorter ago this was, the
// more exactly. If they deviate, that step is about to be told of; if they still do the next time, it was none.
func (c *clock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.both()
	if _, is := now.apart(c.last); is && !c.deviates {
		c.deviates = true
		return
	}
	c.last, c.deviates = now, false
}

// held returns why firing is held; "" when it is not.
func (c *clock) held() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// newestSeen is the newest time that may be believed: now, unless the clock is not.
func (c *clock) newestSeen() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason != "" && !c.newest.IsZero() {
		return c.newest
	}
	return c.read()
}

func (c *clock) stepCount() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps
}

// lastStep is when the clock was stepped last, and by how much; zero when it was not.
func (c *clock) lastStep() (at time.Time, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stepAt, c.stepBy
}
