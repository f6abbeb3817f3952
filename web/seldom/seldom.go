// Package seldom keeps a log readable while the same thing goes wrong at every request, as it does when the database
// cannot be reached.
//
// It promises that the first line of trouble is written at once, and that no more than one in ten seconds follows; that
// one says how many were left out.
package seldom

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// every is the shortest time between two lines.
const every = 10 * time.Second

// Log writes one kind of line. The zero value is ready; its methods may be called concurrently.
type Log struct {
	mu   sync.Mutex
	last time.Time
	left int // out since then
}

// Write logs, unless it has done so a moment ago.
func (l *Log) Write(ctx context.Context, to *slog.Logger, level slog.Level, msg string, args ...any) {
	l.mu.Lock()
	now := time.Now()
	if !l.last.IsZero() && now.Sub(l.last) < every {
		l.left++
		l.mu.Unlock()
		return
	}
	if l.left > 0 {
		args = append(args, "left_out", l.left)
	}
	l.last, l.left = now, 0
	l.mu.Unlock()
	to.Log(ctx, level, msg, args...)
}
