package peers

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A server tells the time by its own clock, exactly as far as half of the round trip.
func TestClock(t *testing.T) {
	w, n := servers(t, "n1", "n2")
	ahead := 90*time.Minute + 123456*time.Microsecond
	n[1].handler.(*Handler).Now = func() time.Time { return time.Now().Add(ahead) }
	best := time.Hour
	for range 20 {
		before := time.Now()
		theirs, err := n[0].client.Clock(ctx, w.live[1])
		round := time.Since(before)
		if err != nil {
			t.Fatal(err)
		}
		if off := theirs.Sub(before.Add(round/2)) - ahead; off.Abs() > round/2 {
			t.Errorf("wrong by %v, with a round trip of %v", off, round)
		}
		best = min(best, round)
	}
	if best > 50*time.Millisecond {
		t.Errorf("the shortest round trip takes %v", best)
	}

	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	gone := w.live[1]
	gone.Address = "http://192.0.2.1:1" // RFC 5737: nobody is there
	if _, err := n[0].client.Clock(short, gone); err == nil {
		t.Error("nobody answers, and there is a time")
	}
	other := w.live[1]
	other.ID = "n3"
	var e *refusal
	if _, err := n[0].client.Clock(ctx, other); !errors.As(err, &e) || e.status != 421 {
		t.Errorf("another server than was meant: %v", err)
	}
}
