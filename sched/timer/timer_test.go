package timer

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// each runs f with the system's timer and with the portable one.
func each(t *testing.T, f func(t *testing.T, tm Timer)) {
	for name, open := range map[string]func() Timer{
		"system":   func() Timer { return New(slog.New(slog.DiscardHandler)) },
		"portable": NewPortable,
	} {
		t.Run(name, func(t *testing.T) {
			tm := open()
			defer func() {
				if err := tm.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			f(t, tm)
		})
	}
}

// receive returns the next wake, or fails.
func receive(t testing.TB, tm Timer) Wake {
	t.Helper()
	select {
	case w := <-tm.C():
		return w
	case <-time.After(patience):
		t.Fatal("no wake")
		panic("unreachable")
	}
}

// quiet fails if a wake comes within d.
func quiet(t *testing.T, tm Timer, d time.Duration) {
	t.Helper()
	select {
	case w := <-tm.C():
		t.Fatalf("unexpected wake %+v", w)
	case <-time.After(d):
	}
}

func TestWakesOnTime(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		var late []time.Duration
		for range 200 {
			at := time.Now().Add(2 * time.Millisecond).Round(0)
			tm.Arm(at)
			receive(t, tm)
			late = append(late, time.Now().Round(0).Sub(at))
		}
		slices.Sort(late)
		if late[0] < 0 {
			t.Errorf("woke %v early", -late[0])
		}
		if median := late[len(late)/2]; median > 50*time.Millisecond {
			t.Errorf("median lateness %v", median)
		}
	})
}

func TestArmReplaces(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		tm.Arm(time.Now().Add(time.Hour))
		tm.Arm(time.Now().Add(5 * time.Millisecond))
		receive(t, tm)

		tm.Arm(time.Now().Add(30 * time.Millisecond))
		later := time.Now().Add(80 * time.Millisecond).Round(0)
		tm.Arm(later)
		receive(t, tm)
		if now := time.Now(); now.Before(later) {
			t.Errorf("woke %v before the instant that replaced the first", later.Sub(now))
		}
		quiet(t, tm, 20*time.Millisecond)
	})
}

func TestDisarm(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		tm.Arm(time.Now().Add(30 * time.Millisecond))
		tm.Arm(time.Time{})
		quiet(t, tm, 80*time.Millisecond)
		tm.Arm(time.Now().Add(time.Millisecond))
		receive(t, tm)
	})
}

func TestPastWakesAtOnce(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		for _, at := range []time.Time{
			time.Now(), time.Now().Add(-time.Hour), time.Unix(0, 0), time.Unix(-5, 7), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC),
		} {
			tm.Arm(at)
			select {
			case <-tm.C(): // waiting when Arm returns
			default:
				t.Errorf("Arm(%v) did not wake at once", at)
			}
		}
		quiet(t, tm, 20*time.Millisecond)

		// A past instant replaces a pending one, too.
		tm.Arm(time.Now().Add(30 * time.Millisecond))
		tm.Arm(time.Now())
		receive(t, tm)
		quiet(t, tm, 60*time.Millisecond)
	})
}

func TestFarInstantsDoNotWake(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		for _, at := range []time.Time{
			time.Now().AddDate(10, 0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1<<60, 0),
		} {
			tm.Arm(at)
			quiet(t, tm, 10*time.Millisecond)
		}
	})
}

func TestSameInstantAgain(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		at := time.Now().Add(20 * time.Millisecond)
		for range 100 {
			tm.Arm(at)
		}
		receive(t, tm)
		quiet(t, tm, 20*time.Millisecond)
		tm.Arm(at) // in the past now
		receive(t, tm)
	})
}

func TestWakesCoalesce(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		for range 10 {
			tm.Arm(time.Now())
		}
		receive(t, tm)
		quiet(t, tm, 20*time.Millisecond)
	})
}

func TestStepIsNotLostInAFullMailbox(t *testing.T) {
	m := newMailbox()
	for _, c := range []struct{ first, second, want bool }{
		{false, false, false}, {true, false, true}, {false, true, true}, {true, true, true},
	} {
		m.post(Wake{Stepped: c.first})
		m.post(Wake{Stepped: c.second})
		if got := (<-m.c).Stepped; got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

func TestClose(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		tm.Arm(time.Now().Add(20 * time.Millisecond))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := tm.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		wg.Wait()
		tm.Arm(time.Now())
		quiet(t, tm, 50*time.Millisecond)
	})
}

// TestNoLostWake arms instants so close that expiry, Arm and receipt overlap in
// every order. Were one wake lost, the last instant would never be reached.
func TestNoLostWake(t *testing.T) {
	each(t, func(t *testing.T, tm Timer) {
		const step = 20 * time.Microsecond
		for round := range 300 {
			at := time.Now().Add(step).Round(0)
			last := at.Add(time.Duration(round%25) * step)
			tm.Arm(at)
			for !at.After(last) {
				// Move the instant while it may be expiring, without receiving.
				at = at.Add(step)
				tm.Arm(at)
			}
			for time.Now().Before(at) {
				receive(t, tm)
				tm.Arm(at) // now the same, now past
			}
			tm.Arm(time.Time{})
			select {
			case <-tm.C():
			default:
			}
		}
	})
}

func TestKind(t *testing.T) {
	p := NewPortable()
	defer p.Close()
	if got := Kind(p); got != "portable" {
		t.Errorf("Kind = %q", got)
	}
	if got := Kind(nil); got != "unknown" {
		t.Errorf("Kind(nil) = %q", got)
	}
}

// BenchmarkWake reports how long after its instant the owner has the wake: the
// median, in microseconds.
func BenchmarkWake(b *testing.B) {
	for _, open := range []func() Timer{
		func() Timer { return New(slog.Default()) },
		NewPortable,
	} {
		tm := open()
		b.Run(Kind(tm), func(b *testing.B) {
			var late []time.Duration
			for i := 0; b.Loop(); i++ {
				// Spread over the phases of a millisecond.
				at := time.Now().Add(3*time.Millisecond + time.Duration(i%10)*100*time.Microsecond).Round(0)
				tm.Arm(at)
				receive(b, tm)
				late = append(late, time.Now().Round(0).Sub(at))
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Nanoseconds())/1e3, "µs-late/op")
		})
		if err := tm.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkArm measures replacing the instant, and asking for the same again.
func BenchmarkArm(b *testing.B) {
	for _, open := range []func() Timer{
		func() Timer { return New(slog.Default()) },
		NewPortable,
	} {
		for _, step := range []time.Duration{0, time.Second} {
			tm := open()
			b.Run(fmt.Sprintf("%s/step=%s", Kind(tm), step), func(b *testing.B) {
				at := time.Now().Add(time.Hour)
				for b.Loop() {
					at = at.Add(step)
					tm.Arm(at)
				}
			})
			if err := tm.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
