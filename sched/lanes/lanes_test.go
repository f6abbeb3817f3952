package lanes

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// single is a Queue with one flow.
type single[T any] struct {
	*Queue[T]
	flow Flow[T]
}

func newSingle[T any](o Options) *single[T] { return &single[T]{Queue: New[T](o)} }

func (q *single[T]) Push(lane Lane, ready time.Time, v T) *Item[T] {
	return q.Queue.Push(lane, &q.flow, ready, v)
}

// fill pushes n items, each its lane, on each of the lanes.
func fill(q *single[Lane], n int, lanes ...Lane) {
	for range n {
		for _, lane := range lanes {
			q.Push(lane, epoch, lane)
		}
	}
}

// serve pops n items and returns the initials of their lanes.
func serve(t *testing.T, q *single[Lane], n int) string {
	t.Helper()
	var b strings.Builder
	for range n {
		lane, ok := q.Pop(epoch)
		if !ok {
			t.Fatalf("empty after %d pops", b.Len())
		}
		b.WriteByte("HMLR"[lane])
	}
	return b.String()
}

func TestSharesUnderSaturation(t *testing.T) {
	for _, c := range []struct {
		lanes  []Lane
		window int
		want   map[string]int
	}{
		{[]Lane{High, Medium, Low}, 9, map[string]int{"H": 5, "M": 3, "L": 1}},
		{[]Lane{High, Medium, Low, Retry}, 12, map[string]int{"H": 5, "M": 3, "L": 1, "R": 3}},
		{[]Lane{High, Low}, 6, map[string]int{"H": 5, "L": 1}},
		{[]Lane{Medium, Low}, 4, map[string]int{"M": 3, "L": 1}},
		{[]Lane{Low, Retry}, 4, map[string]int{"R": 3, "L": 1}},
		{[]Lane{High, Medium}, 8, map[string]int{"H": 5, "M": 3}},
		{[]Lane{Low}, 1, map[string]int{"L": 1}},
	} {
		q := newSingle[Lane](Options{})
		fill(q, 1000, c.lanes...)
		served := serve(t, q, 900)
		for from := range len(served) - c.window + 1 {
			window := served[from : from+c.window]
			for lane, want := range c.want {
				if got := strings.Count(window, lane); got != want {
					t.Fatalf("lanes %v: %q has %d of %s, want %d", c.lanes, window, got, lane, want)
				}
			}
		}
	}
}

func TestNoBursts(t *testing.T) {
	q := newSingle[Lane](Options{})
	fill(q, 1000, High, Medium, Low, Retry)
	if served := serve(t, q, 900); strings.Contains(served, "HHH") || strings.Contains(served, "MM") {
		t.Errorf("bursts in %s…", served[:60])
	}
}

func TestEmptyLaneSavesNothing(t *testing.T) {
	q := newSingle[Lane](Options{})
	fill(q, 2000, Medium, Low)
	serve(t, q, 1000) // High gives its share away
	fill(q, 1000, High)
	// Now High gets its share, not what it missed: in the first round an item or
	// two more at most, then exactly.
	served := serve(t, q, 90)
	if got := strings.Count(served[:9], "H"); got > 6 {
		t.Errorf("High took %d of its first 9: %s", got, served[:9])
	}
	if got := strings.Count(served[9:], "H"); got != 45 {
		t.Errorf("High took %d of 81, want 45: %s", got, served[9:])
	}
}

// TestFlickeringLane: a lane that empties at each pop and is filled again must
// not get more than its share by starting afresh.
func TestFlickeringLane(t *testing.T) {
	q := newSingle[Lane](Options{})
	fill(q, 2000, High, Medium)
	fill(q, 1, Low)
	low := 0
	for range 900 {
		if lane, _ := q.Pop(epoch); lane == Low {
			low++
			fill(q, 1, Low)
		}
	}
	if low < 99 || low > 101 {
		t.Errorf("Low had %d of 900 pops, want 100", low)
	}
}

func TestRetryDoesNotWaitBehindNewWork(t *testing.T) {
	q := newSingle[Lane](Options{})
	fill(q, 10_000, High, Medium, Low)
	serve(t, q, 500)
	fill(q, 1, Retry)
	if served := serve(t, q, 6); !strings.Contains(served, "R") {
		t.Errorf("the retry is not among the next 6: %s", served)
	}
}

func TestFIFO(t *testing.T) {
	for lane := range Lane(laneCount) {
		q := newSingle[int](Options{})
		for i := range 1000 {
			// The order is that of Push, whatever the ready time.
			q.Push(lane, epoch.Add(-time.Duration(i)), i)
		}
		for i := range 1000 {
			if got, ok := q.Pop(epoch); got != i || !ok {
				t.Fatalf("%v: pop %d gave %d, %v", lane, i, got, ok)
			}
		}
	}
}

func TestAging(t *testing.T) {
	q := newSingle[Lane](Options{MaxWait: time.Minute})
	fill(q, 100, High)
	fill(q, 1, Low)
	if served := serve(t, q, 2); served != "HL" {
		t.Fatalf("served %s", served)
	}
	// Low has had its share for a while; what comes now is served out of turn.
	q.Push(Low, epoch.Add(-time.Minute+1), Low)
	if served := serve(t, q, 2); served != "HH" {
		t.Errorf("served %s, want no aged item yet", served)
	}
	if lane, _ := q.Pop(epoch.Add(1)); lane != Low {
		t.Errorf("served %v, want low, which has waited just long enough", lane)
	}
}

// TestAgedBacklogLeavesShares: an old backlog gets half of the pops, not all.
func TestAgedBacklogLeavesShares(t *testing.T) {
	q := newSingle[Lane](Options{})
	for range 1000 {
		q.Push(Low, epoch.Add(-time.Hour), Low)
	}
	fill(q, 1000, High)
	served := serve(t, q, 120)
	for i := 0; i < len(served); i += 2 {
		if served[i] != 'L' {
			t.Fatalf("pop %d was not aged: %s", i, served)
		}
	}
	if got := strings.Count(served, "H"); got != 50 {
		t.Errorf("High had %d of 120 pops, want 5 of 6 in half of them: %s", got, served)
	}
}

func TestDefaultMaxWait(t *testing.T) {
	for _, o := range []Options{{}, {MaxWait: -1}} {
		q := newSingle[Lane](o)
		fill(q, 10, High)
		serve(t, q, 1)
		q.Push(Low, epoch.Add(-DefaultMaxWait), Low)
		if served := serve(t, q, 1); served != "L" {
			t.Errorf("%+v: served %s", o, served)
		}
	}
}

func TestRemove(t *testing.T) {
	q, other := newSingle[string](Options{}), newSingle[string](Options{})
	a := q.Push(High, epoch, "a")
	b := q.Push(High, epoch, "b")
	c := q.Push(High, epoch, "c")
	d := q.Push(High, epoch, "d")
	if other.Remove(a) || q.Remove(nil) {
		t.Error("removed what is not there")
	}
	for _, it := range []*Item[string]{b, d, a} { // middle, back, front
		if !q.Remove(it) {
			t.Error("Remove returned false for a waiting item")
		}
		if q.Remove(it) {
			t.Error("removed twice")
		}
		if *it != (Item[string]{}) {
			t.Errorf("a removed handle keeps %+v", *it)
		}
	}
	if got, ok := q.Pop(epoch); got != "c" || !ok {
		t.Errorf("Pop = %q, %v", got, ok)
	}
	if q.Remove(c) {
		t.Error("removed a popped item")
	}
	if _, ok := q.Pop(epoch); ok || q.Len() != 0 || q.LenOf(High) != 0 || !q.Oldest().IsZero() {
		t.Error("the queue is not empty")
	}
	q.Push(High, epoch, "e")
	if got, _ := q.Pop(epoch); got != "e" {
		t.Errorf("Pop = %q after refilling", got)
	}
}

func TestOldest(t *testing.T) {
	q := newSingle[int](Options{})
	q.Push(Low, epoch.Add(2), 0)
	q.Push(High, epoch.Add(3), 0)
	it := q.Push(Retry, epoch.Add(1), 0)
	if got := q.Oldest(); !got.Equal(epoch.Add(1)) {
		t.Errorf("Oldest = %v", got)
	}
	q.Remove(it)
	if got := q.Oldest(); !got.Equal(epoch.Add(2)) {
		t.Errorf("Oldest = %v after removing the oldest", got)
	}
}

func TestUnknownLanePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	newSingle[int](Options{}).Push(laneCount, epoch, 0)
}

func TestLaneString(t *testing.T) {
	if got := fmt.Sprint(High, Medium, Low, Retry, Lane(9)); got != "high medium low retry Lane(9)" {
		t.Errorf("names are %s", got)
	}
}

func TestPushAllocatesOneItem(t *testing.T) {
	q := newSingle[[4]uint64](Options{})
	if got := testing.AllocsPerRun(1000, func() {
		q.Push(Medium, epoch, [4]uint64{1})
		q.Pop(epoch)
	}); got != 1 {
		t.Errorf("%v allocations for a Push and a Pop, want 1", got)
	}
}

// BenchmarkPushPop pushes and pops one item with depth items waiting.
func BenchmarkPushPop(b *testing.B) {
	for _, depth := range []int{0, 1_000, 100_000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			b.ReportAllocs()
			q := newSingle[*int](Options{})
			for i := range depth {
				q.Push(Lane(i%laneCount), epoch, nil)
			}
			for i := 0; b.Loop(); i++ {
				q.Push(Lane(i%laneCount), epoch, nil)
				q.Pop(epoch)
			}
		})
	}
}

// BenchmarkPushRemove pushes an item and takes it out from the middle.
func BenchmarkPushRemove(b *testing.B) {
	b.ReportAllocs()
	q := newSingle[*int](Options{})
	last := q.Push(High, epoch, nil)
	for b.Loop() {
		next := q.Push(High, epoch, nil)
		q.Remove(last)
		last = next
	}
}
