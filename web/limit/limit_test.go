package limit

import (
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	l := &Limiter[int]{Burst: 3, Refill: time.Second, Keys: 2}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	use := func(k int, want bool) {
		t.Helper()
		if l.Allowed(k, now) != want || l.Use(k, now) != want {
			t.Errorf("key %d: want %v", k, want)
		}
	}
	for range 3 {
		use(1, true)
	}
	use(1, false)
	use(2, true)
	now = now.Add(999 * time.Millisecond)
	use(1, false)
	now = now.Add(time.Millisecond)
	use(1, true)
	use(1, false)
	l.Used(1, now) // in spite of it
	now = now.Add(time.Second)
	use(1, false)

	// A third key takes the place of 2, which has been forgotten by now, and a fourth that of all.
	use(3, true)
	use(1, false)
	use(4, true)
	use(1, true)
	for k := range 100 {
		l.Used(k, now)
		if len(l.free) > l.Keys {
			t.Fatalf("%d keys are remembered", len(l.free))
		}
	}
}
