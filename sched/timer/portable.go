package timer

import (
	"sync"
	"time"
)

const (
	// maxSleep bounds one sleep of the portable timer, and so how late it learns
	// that the wall clock was stepped forward or that the machine was suspended.
	maxSleep = 30 * time.Second

	// stepTolerance is how far the wall clock and the monotonic clock may advance
	// apart between two looks before it counts as a step. Ordinary slewing moves
	// them 15 ms apart in 30 s (500 ppm). Faster slewing may be reported as a
	// step, which costs the owner one needless look.
	stepTolerance = 250 * time.Millisecond
)

// portable is a Timer over time.Timer.
//
// A sleep ends by the monotonic clock, but whether the instant has come is always
// decided by the wall clock: a sleep that ended too soon is followed by another.
type portable struct {
	box  *mailbox
	now  func() (wall time.Time, mono time.Duration)
	stop chan struct{} // closed by Close
	done chan struct{} // closed when the goroutine has returned

	mu       sync.Mutex
	closed   bool
	at       time.Time // the armed instant; zero when disarmed
	sleep    *time.Timer
	lastWall time.Time
	lastMono time.Duration
}

// NewPortable returns a Timer that works on every system and inside a
// testing/synctest bubble. It sleeps at most 30 s at a time, so a forward step
// of the clock is noticed, and what it made due is late, by at most 30 s. It calls
// it a step when wall and monotonic clock have advanced more than 250 ms apart. The caller
// must Close it.
func NewPortable() Timer { return NewPortableClock(time.Now) }

// NewPortableClock is NewPortable with another wall clock than the system's.
func NewPortableClock(wall func() time.Time) Timer {
	start := time.Now()
	return newPortable(func() (time.Time, time.Duration) {
		return wall().Round(0), time.Since(start)
	})
}

// newPortable is NewPortable reading the clocks from now. The wall
// time it returns must have no monotonic reading.
func newPortable(now func() (wall time.Time, mono time.Duration)) *portable {
	p := &portable{
		box:   newMailbox(),
		now:   now,
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
		sleep: time.NewTimer(maxSleep),
	}
	p.lastWall, p.lastMono = now()
	go p.run()
	return p
}

func (p *portable) kind() string { return kindPortable }

func (p *portable) C() <-chan Wake { return p.box.c }

func (p *portable) Arm(at time.Time) {
	at = at.Round(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.at = at
	p.look()
}

func (p *portable) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		p.sleep.Stop()
		close(p.stop)
	}
	p.mu.Unlock()
	<-p.done
	return nil
}

// run looks at the clocks each time a sleep ends.
func (p *portable) run() {
	defer close(p.done)
	for {
		select {
		case <-p.stop:
			return
		case <-p.sleep.C:
			p.mu.Lock()
			if !p.closed {
				p.look()
			}
			p.mu.Unlock()
		}
	}
}

// look compares the clocks with each other and with the armed instant, wakes the
// owner if either calls for it, and begins the next sleep. It runs with mu held.
func (p *portable) look() {
	wall, mono := p.now()
	apart := wall.Sub(p.lastWall) - (mono - p.lastMono)
	p.lastWall, p.lastMono = wall, mono
	stepped := apart.Abs() > stepTolerance

	due := !p.at.IsZero() && !p.at.After(wall)
	if due {
		p.at = time.Time{}
	}
	if due || stepped {
		p.box.post(Wake{Stepped: stepped})
	}

	next := maxSleep
	if !p.at.IsZero() {
		next = min(next, p.at.Sub(wall))
	}
	p.sleep.Reset(next)
}
