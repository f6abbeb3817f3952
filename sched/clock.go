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
	floor time.Time // certainly past
	trust bool

	mu     sync.Mutex
	newest time.Time // newest time in the store when the server started; zero once it has passed
	reason string
	steps  int64
}

func newClock(read func() time.Time, floor, newest time.Time, trust bool) *clock {
	c := &clock{read: read, floor: floor, newest: newest, trust: trust}
	c.check()
	return c
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

func (c *clock) stepped() {
	c.mu.Lock()
	c.steps++
	c.mu.Unlock()
	c.check()
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
