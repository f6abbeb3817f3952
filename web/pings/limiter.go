package pings

import (
	"sync"
	"time"
)

// A key may be used this often at once, and once more per refill.
const (
	burst   = 20
	refill  = time.Second
	maxKeys = 100_000
)

// limiter counts the pings of each key.
type limiter struct {
	mu    sync.Mutex
	until map[string]time.Time // when the last ping of a key is forgotten
}

// allow reports whether one more may come now, and counts it.
func (l *limiter) allow(id string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := l.until[id]
	if until.Before(now) {
		until = now
	}
	if until.Sub(now) > (burst-1)*refill {
		return false
	}
	if len(l.until) >= maxKeys {
		for k, at := range l.until {
			if !at.After(now) {
				delete(l.until, k)
			}
		}
		if len(l.until) >= maxKeys {
			clear(l.until) // better a fresh start for all than memory without end
		}
	}
	l.until[id] = until.Add(refill)
	return true
}
