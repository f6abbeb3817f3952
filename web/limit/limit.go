// Package limit keeps what is asked from outside from being asked too often.
package limit

import (
	"sync"
	"time"
)

// Limiter lets each key be used Burst times at once, and once more per Refill (the generic cell rate algorithm, ITU-T I.371).
// It remembers up to Keys keys.
type Limiter[K comparable] struct {
	Burst  int
	Refill time.Duration
	Keys   int

	mu   sync.Mutex
	free map[K]time.Time // when all uses of a key are forgotten
}

// Allowed reports whether a key may be used now.
func (l *Limiter[K]) Allowed(k K, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.allowed(k, now)
}

// Used counts a use of a key.
func (l *Limiter[K]) Used(k K, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used(k, now)
}

// Use reports whether a key may be used now, and then counts it.
func (l *Limiter[K]) Use(k K, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.allowed(k, now) {
		return false
	}
	l.used(k, now)
	return true
}

func (l *Limiter[K]) allowed(k K, now time.Time) bool {
	return l.free[k].Sub(now) <= time.Duration(l.Burst-1)*l.Refill
}

func (l *Limiter[K]) used(k K, now time.Time) {
	if l.free == nil {
		l.free = map[K]time.Time{}
	}
	if len(l.free) >= l.Keys {
		for k, at := range l.free {
			if !at.After(now) {
				delete(l.free, k)
			}
		}
		if len(l.free) >= l.Keys {
			clear(l.free) // better a fresh start for all than memory without end
		}
	}
	at := l.free[k]
	if at.Before(now) {
		at = now
	}
	l.free[k] = at.Add(l.Refill)
}
