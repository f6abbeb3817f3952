// Package lanes holds the ready queues of one node: what may run now, waiting for
// a free place to run in.
//
// There are four lanes. New work waits in the lane of its priority, High, Medium
// or Low; a retry waits in a lane of its own, so that it does not stand behind
// new work. Inside a lane the order is first in, first out.
//
// The package promises:
//
//   - Shares. While lanes have items waiting, they are served High 5 : Medium 3 :
//     Low 1, and Retry 3, spread evenly rather than in bursts. A lane that is
//     empty gives its share to the others and saves nothing up.
//   - Aging. When the front item that became ready first has waited MaxWait, it is
//     popped next, whatever its lane. While a backlog is older than that, such
//     pops alternate with pops by share: otherwise an old backlog of Low work
//     would turn the queue into one line, and High work would wait for all of it.
//   - Low always moves. An item that has come to the front of its lane is among
//     the next 30 popped (Low), 12 (Retry), 10 (Medium) or 8 (High), whatever else
//     waits; half of that while no aged item is popped. So on a node that pops r
//     items a second, a Low item with n Low items before it waits at most
//     30 (n+1) / r seconds. Once it has waited MaxWait and is the oldest front
//     item, it is among the next two popped.
//
// The shares are those of start-time fair queueing (Goyal, Vin and Cheng, 1996):
// each lane carries a tag, the lane with the lowest tag is served, and its tag
// grows by the inverse of its weight.
package lanes

import (
	"fmt"
	"time"
)

// Lane is one of the four lines of a Queue.
type Lane int

const (
	High   Lane = iota // new work of high priority, weight 5
	Medium             // new work of medium priority, weight 3
	Low                // new work of low priority, weight 1
	Retry              // second and later attempts of any priority, weight 3

	laneCount = 4
)

// String returns the lane's name in lower case, as for a metric's label.
func (l Lane) String() string {
	switch l {
	case High:
		return "high"
	case Medium:
		return "medium"
	case Low:
		return "low"
	case Retry:
		return "retry"
	}
	return fmt.Sprintf("Lane(%d)", int(l))
}

// round is what a lane's tag grows by in one round of shares. It is the least
// common multiple of the weights, so that tags are whole numbers.
const round = 15

// stride returns what one pop adds to the lane's tag: round over its weight.
func (l Lane) stride() uint64 {
	switch l {
	case High:
		return round / 5
	case Medium, Retry:
		return round / 3
	default:
		return round / 1
	}
}

// DefaultMaxWait is the MaxWait of a Queue that was not told another.
const DefaultMaxWait = 30 * time.Second

// Options configures a Queue. The zero value is ready to use.
type Options struct {
	// MaxWait is how long an item waits before it is served out of turn. Zero or
	// less means DefaultMaxWait.
	MaxWait time.Duration
}

// Queue holds items in four lanes and decides which is next. It is not safe for
// concurrent use: the loop that dispatches owns it.
//
// Push, Remove and Pop take constant time. A Queue sets no limit on its length;
// its owner looks at Len before it pushes.
type Queue[T any] struct {
	lines   [laneCount]line[T]
	length  int
	maxWait time.Duration
	now     uint64 // the tag of the lane last served by share
	aged    bool   // the last pop was of an aged item
}

// line is one lane's items in order, and its place in the shares.
type line[T any] struct {
	front, back *Item[T]
	length      int
	tag         uint64 // the lane with the lowest tag is served next
}

// Item is the handle of a pushed value, for Remove. It may be kept after its value
// has left the Queue: then it refers to nothing.
type Item[T any] struct {
	line       *line[T] // where it waits; nil once it has left
	prev, next *Item[T]
	ready      time.Time
	value      T
}

// New returns an empty Queue.
func New[T any](o Options) *Queue[T] {
	if o.MaxWait <= 0 {
		o.MaxWait = DefaultMaxWait
	}
	return &Queue[T]{maxWait: o.MaxWait}
}

// Push puts v at the back of a lane. ready is when it became ready to run, from
// which its wait counts. It allocates the Item and nothing else. It panics if
// lane is none of the four.
func (q *Queue[T]) Push(lane Lane, ready time.Time, v T) *Item[T] {
	l := &q.lines[lane]
	it := &Item[T]{line: l, prev: l.back, ready: ready, value: v}
	if l.back == nil {
		l.front = it
		// A lane joins at the present: it has no credit for the time it was empty,
		// but still pays for what it was served just before.
		l.tag = max(l.tag, q.now)
	} else {
		l.back.next = it
	}
	l.back = it
	l.length++
	q.length++
	return it
}

// Pop takes the next item out and returns its value, or false if the Queue is
// empty. now is the time to which waits are counted, by the same clock as the
// ready times.
func (q *Queue[T]) Pop(now time.Time) (T, bool) {
	if q.length == 0 {
		var none T
		return none, false
	}
	// Aged items get every other pop at most. Their lane is not charged: aging comes
	// on top of its share.
	if oldest := q.oldest(); !q.aged && now.Sub(oldest.ready) >= q.maxWait {
		q.aged = true
		return q.take(oldest), true
	}
	q.aged = false
	lane := q.turn()
	l := &q.lines[lane]
	q.now = l.tag // the lowest tag, so it never goes back
	l.tag += lane.stride()
	return q.take(l.front), true
}

// Remove takes an item out, wherever it stands. It returns false if the item is
// not in this Queue: it was popped or removed before, or is nil.
func (q *Queue[T]) Remove(it *Item[T]) bool {
	if it == nil {
		return false
	}
	for i := range q.lines {
		if it.line == &q.lines[i] {
			q.take(it)
			return true
		}
	}
	return false
}

// Len returns how many items wait.
func (q *Queue[T]) Len() int { return q.length }

// LenOf returns how many items wait in one lane. It panics if lane is none of
// the four.
func (q *Queue[T]) LenOf(lane Lane) int { return q.lines[lane].length }

// Oldest returns the earliest ready time among the lanes' front items, or the
// zero Time if the Queue is empty. Items pushed in the order in which they became
// ready, as they normally are, make it the earliest of all.
func (q *Queue[T]) Oldest() time.Time {
	if q.length == 0 {
		return time.Time{}
	}
	return q.oldest().ready
}

// oldest returns the front item that became ready first; of equals, that of the
// first lane. The Queue must not be empty.
func (q *Queue[T]) oldest() *Item[T] {
	var oldest *Item[T]
	for i := range q.lines {
		it := q.lines[i].front
		if it != nil && (oldest == nil || it.ready.Before(oldest.ready)) {
			oldest = it
		}
	}
	return oldest
}

// turn returns the lane to serve by shares: the lowest tag; of equals, the
// greatest weight; of equals again, the first. The Queue must not be empty.
func (q *Queue[T]) turn() Lane {
	best := Lane(-1)
	for lane := range Lane(laneCount) {
		l := &q.lines[lane]
		if l.front == nil {
			continue
		}
		if best < 0 || l.tag < q.lines[best].tag ||
			l.tag == q.lines[best].tag && lane.stride() < best.stride() {
			best = lane
		}
	}
	return best
}

// take unlinks an item and returns its value.
func (q *Queue[T]) take(it *Item[T]) T {
	l := it.line
	if it.prev == nil {
		l.front = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		l.back = it.prev
	} else {
		it.next.prev = it.prev
	}
	l.length--
	q.length--

	v := it.value
	*it = Item[T]{} // a kept handle must not keep the value or its neighbours

	if q.length == 0 {
		// Nobody is competing: past services are forgotten.
		q.now, q.aged = 0, false
		for i := range q.lines {
			q.lines[i].tag = 0
		}
	}
	return v
}
