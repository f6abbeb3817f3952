package lanes

import (
	"container/heap"
	"time"
)

// Flow is what waits of one party, which shares the lanes with others: of one queue, say. The zero value is ready to
// use. It belongs to the Queue to which it is pushed first, and it must not be copied after that.
type Flow[T any] struct {
	queue   *Queue[T]
	strands [laneCount]*strand[T] // made when something is pushed there first
	length  int
	held    bool
}

// Len returns how many of its items wait.
func (f *Flow[T]) Len() int { return f.length }

// Held reports whether it is passed over: see Queue.Hold.
func (f *Flow[T]) Held() bool { return f.held }

// Oldest returns the earliest ready time among the front items of its lanes, or the zero Time if nothing waits.
func (f *Flow[T]) Oldest() (at time.Time) {
	for _, s := range f.strands {
		if s != nil && s.front != nil && (at.IsZero() || s.front.ready.Before(at)) {
			at = s.front.ready
		}
	}
	return at
}

// Drain takes all of its items out and calls each with the value of each, those of one lane in their order.
func (f *Flow[T]) Drain(each func(T)) {
	for _, s := range f.strands {
		for s != nil && s.front != nil {
			each(f.queue.take(s.front))
		}
	}
}

// strand is the items of one flow in one lane, in order. While it has some and its flow is not held, it stands in the
// lane's ring and in its heap.
type strand[T any] struct {
	flow        *Flow[T]
	lane        Lane
	front, back *Item[T]
	prev, next  *strand[T] // in the ring
	age         int        // its place in the heap
}

// line is one lane: the strands that may be served, and the lane's place in the shares.
type line[T any] struct {
	turn   *strand[T] // of the ring, which is served next
	ages   ageHeap[T] // the same strands, the one whose front became ready first on top
	length int        // items, also those of held flows
	tag    uint64     // the lane with the lowest tag is served next
}

// join lets a strand be served, after all the others.
func (q *Queue[T]) join(s *strand[T]) {
	l := &q.lines[s.lane]
	if l.turn == nil {
		// A lane joins at the present: it has no credit for the time in which nothing could be served, but still pays
		// for what it was served just before.
		l.tag = max(l.tag, q.now)
		l.turn, s.prev, s.next = s, s, s
	} else {
		s.prev, s.next = l.turn.prev, l.turn
		s.prev.next, s.next.prev = s, s
	}
	heap.Push(&l.ages, s)
}

// leave takes a strand out of those that are served.
func (q *Queue[T]) leave(s *strand[T]) {
	l := &q.lines[s.lane]
	switch {
	case s.next == s:
		l.turn = nil
	case l.turn == s:
		l.turn = s.next
		fallthrough
	default:
		s.prev.next, s.next.prev = s.next, s.prev
	}
	s.prev, s.next = nil, nil
	heap.Remove(&l.ages, s.age)
}

// ageHeap is a heap of strands by the time at which their front items became ready.
type ageHeap[T any] []*strand[T]

func (h ageHeap[T]) Len() int           { return len(h) }
func (h ageHeap[T]) Less(i, j int) bool { return h[i].front.ready.Before(h[j].front.ready) }
func (h ageHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].age, h[j].age = i, j
}

func (h *ageHeap[T]) Push(x any) {
	s := x.(*strand[T])
	s.age = len(*h)
	*h = append(*h, s)
}

func (h *ageHeap[T]) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}
