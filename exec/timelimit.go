package exec

import (
	"context"
	"sync"
	"time"
)

// timeLimit ends a context with errTimeLimit when the time of a run is up. It can be paused.
type timeLimit struct {
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration // when it was resumed last
	since time.Time     // when that was; zero while it is paused
}

// withTimeLimit returns a context that ends after d, and what decides when. Its end must be called.
func withTimeLimit(ctx context.Context, d time.Duration) (context.Context, *timeLimit) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &timeLimit{cancel: cancel, left: d, since: time.Now()}
	l.timer = time.AfterFunc(d, func() { cancel(errTimeLimit) })
	return ctx, l
}

// pause stops the clock; false when the time is up already.
func (l *timeLimit) pause() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		return true
	}
	if !l.timer.Stop() {
		return false
	}
	l.left -= time.Since(l.since)
	l.since = time.Time{}
	return true
}

// resume lets it run on.
func (l *timeLimit) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		l.since = time.Now()
		l.timer.Reset(max(l.left, 0))
	}
}

// end frees what the limit holds, and ends its context.
func (l *timeLimit) end() {
	l.timer.Stop()
	l.cancel(nil)
}
