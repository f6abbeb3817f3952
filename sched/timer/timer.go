// Package timer wakes a loop at a wall-clock instant.
//
// A scheduler holds its next due instant and wants to be woken at it, by the
// wall clock: "at 09:00" means when the clock on the wall says so, even if
// somebody sets that clock or the machine sleeps in between. Package time only
// offers sleeps by the monotonic clock, which know nothing of either.
//
// The package promises:
//
//   - No wake is lost. After Arm(at), a wake is received once the wall clock has
//     reached at, whatever Arm raced with.
//   - No armed instant wakes early. A wake may still find nothing to do (one that
//     was on its way when Arm replaced its instant, or a step of the clock), so
//     the owner looks at its clock after every wake.
//   - A step of the wall clock wakes the owner too, also while nothing is armed.
//   - The sender never blocks: wakes that were not received yet become one.
//
// On Linux the timer is a timerfd on CLOCK_REALTIME, read through the runtime's
// poller. It wakes tens of microseconds after its instant, where a time.Timer takes
// several hundred, because the runtime sleeps in whole milliseconds. See
// timerfd_create(2). Elsewhere, or where the kernel refuses a timerfd, the
// portable timer sleeps at most 30 s at a time.
package timer

import (
	"log/slog"
	"sync"
	"time"
)

// Timer wakes its owner at a wall-clock instant, and when the wall clock was
// stepped. One goroutine, the owner, calls its methods and receives from C.
//
// The owner's loop is: receive from C; do what is due by time.Now; call Arm with
// what comes next. Arm is called after every wake, since a wake may leave
// the timer disarmed.
type Timer interface {
	// C returns the channel of wakes, always the same one. Its capacity is 1. It
	// is never closed.
	C() <-chan Wake

	// Arm asks for a wake when the wall clock reaches at, and replaces the
	// instant asked for before. An instant at or before now wakes at once. The zero
	// Time disarms: then only a step of the clock wakes. A monotonic
	// reading in at is ignored. After Close, Arm does nothing.
	Arm(at time.Time)

	// Close stops the timer's goroutine and waits for it. Later calls do nothing.
	Close() error
}

// Wake says why the owner was woken.
type Wake struct {
	// Stepped is true when the wall clock was set (not slewed) since the last
	// wake received. Resuming from suspend counts as a step forward. False means
	// that the armed instant has come.
	Stepped bool
}

// Names returned by Kind.
const (
	kindTimerfd  = "timerfd"
	kindPortable = "portable"
)

// New returns the most precise timer that this system offers: a timerfd on
// Linux, else the portable timer. It logs why if a timerfd was refused.
// The caller must Close it. log must not be nil.
func New(log *slog.Logger) Timer {
	t, err := newSystem(log)
	if err != nil {
		log.Warn("timerfd not available, using the portable timer", "error", err)
		return NewPortable()
	}
	return t
}

// Kind names the mechanism behind t, for a status page: "timerfd" or "portable".
// It is "unknown" for a Timer made elsewhere, such as a test's.
func Kind(t Timer) string {
	if k, ok := t.(interface{ kind() string }); ok {
		return k.kind()
	}
	return "unknown"
}

// mailbox holds at most one wake. Posting to a full one merges the two wakes, so
// that a report of a step is never dropped.
type mailbox struct {
	mu sync.Mutex // serialises senders, so that a drained slot stays free
	c  chan Wake
}

func newMailbox() *mailbox { return &mailbox{c: make(chan Wake, 1)} }

// post delivers w without blocking.
func (m *mailbox) post(w Wake) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case waiting := <-m.c:
		w.Stepped = w.Stepped || waiting.Stepped
	default:
	}
	m.c <- w
}
