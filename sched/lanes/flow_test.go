package lanes

import (
	"fmt"
	"testing"
)

// TestFlowsTakeTurns: inside a lane one flow's backlog delays another flow by no more than an item for each of its own.
func TestFlowsTakeTurns(t *testing.T) {
	q := New[string](Options{})
	var big, small, late Flow[string]
	for i := range 1000 {
		q.Push(Medium, &big, epoch, fmt.Sprint("big ", i))
	}
	for i := range 3 {
		q.Push(Medium, &small, epoch, fmt.Sprint("small ", i))
	}
	var got []string
	for i := range 9 {
		if i == 5 {
			q.Push(Medium, &late, epoch, "late")
		}
		v, _ := q.Pop(epoch)
		got = append(got, v)
	}
	if want := "[big 0 small 0 big 1 small 1 big 2 small 2 big 3 late big 4]"; fmt.Sprint(got) != want {
		t.Errorf("served %v, want %s", got, want)
	}
}

// TestHeld: a flow that is held is passed over, and goes on where it stopped.
func TestHeld(t *testing.T) {
	q := New[string](Options{})
	var a, b Flow[string]
	for _, v := range []string{"a1", "a2"} {
		q.Push(High, &a, epoch, v)
	}
	q.Push(Low, &b, epoch, "b")
	q.Hold(&a)
	q.Push(High, &a, epoch, "a3")
	pop := func(want string) {
		t.Helper()
		if v, _ := q.Pop(epoch); v != want {
			t.Errorf("popped %q, want %q", v, want)
		}
	}
	pop("b")
	pop("")
	if q.Len() != 3 || !q.Oldest().IsZero() || a.Oldest() != epoch {
		t.Errorf("Len = %d, Oldest = %v, %v of the held flow", q.Len(), q.Oldest(), a.Oldest())
	}
	q.Resume(&a)
	pop("a1")
	q.PushFront(High, &a, epoch, "a1")
	pop("a1")
	pop("a2")
	pop("a3")
}

// TestHeldKeepsShares: a flow that is held after each of its items, as where slots are short, is served in the same
// shares as one that never is.
func TestHeldKeepsShares(t *testing.T) {
	q := New[Lane](Options{})
	var f Flow[Lane]
	var got [laneCount]int
	for range 900 {
		for _, lane := range []Lane{High, Medium, Low} {
			q.Push(lane, &f, epoch, lane)
		}
	}
	for range 900 {
		lane, _ := q.Pop(epoch)
		got[lane]++
		q.Hold(&f)
		if _, ok := q.Pop(epoch); ok {
			t.Fatal("popped what is held")
		}
		q.Resume(&f)
	}
	if got != [laneCount]int{High: 500, Medium: 300, Low: 100} {
		t.Errorf("served %v of high, medium, low and retry; want 500, 300, 100, 0", got)
	}
}

func TestFlowOfAnotherQueuePanics(t *testing.T) {
	var f Flow[int]
	New[int](Options{}).Push(High, &f, epoch, 1)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New[int](Options{}).Push(High, &f, epoch, 1)
}

// BenchmarkFlows pushes and pops one item while each of many flows has some waiting.
func BenchmarkFlows(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("flows=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			q := New[*int](Options{})
			flows := make([]Flow[*int], n)
			for i := range flows {
				for lane := range Lane(laneCount) {
					q.Push(lane, &flows[i], epoch, nil)
				}
			}
			for i := 0; b.Loop(); i++ {
				q.Push(Lane(i%laneCount), &flows[i%n], epoch, nil)
				q.Pop(epoch)
			}
		})
	}
}
