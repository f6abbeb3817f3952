// Package lanes holds the ready queues of one node: what may run now, waiting for
// a free place to run in.
//
// There are four lanes. New work waits in the lane of its priority, High, Medium
// or Low; a retry waits in a lane of its own, so that it does not stand behind
// new work. What waits belongs to flows, such as the queues that people name.
// Inside a lane the flows are served in turn, and inside a flow the order is
// first in, first out: a flow with ten thousand items delays another one with
// a single item by one.
//
// The package promises:
//
//   - Shares. While lanes have items waiting, they are served High 5 : Medium 3 :
//     Low 1, and Retry 3, spread evenly rather than in bursts. A lane that is
//     empty gives its share to the others and saves nothing up. So does a flow in
//     its lane.
//   - Aging. When the front item that became ready first has waited MaxWait, it is
//     popped next, whatever its lane and flow. While a backlog is older than that,
//     such pops alternate with pops by share: otherwise an old backlog of Low work
//     would turn the queue into one line, and High work would wait for all of it.
//   - Low always moves. The item that is next in its lane is among the next 30
//     popped (Low), 12 (Retry), 10 (Medium) or 8 (High), whatever else waits; half
//     of that while no aged item is popped. So on a node that pops r items a
//     second, a Low item with n items before it in its flow, where f flows wait in
//     the lane, waits at most 30 f (n+1) / r seconds. Once it has waited MaxWait
//     and is the oldest front item, it is among the next two popped.
//   - Held. A flow that is held is passed over, and nothing of it is lost: its
//     items keep their order and their age. Where all flows of a lane are held,
//     the lane counts as empty.
//
// The shares are those of start-time fair queueing (Goyal, Vin and Cheng, 1996):
// each lane carries a tag, the lane with the lowest tag is served, and its tag
// grows by the inverse of its weight.
package lanes

import (
	"container/heap"
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
// Each method takes constant time where there is one flow, and O(log n) with n
// flows. A Queue sets no limit on its length; its owner looks at Len before it
// pushes.
type Queue[T any] struct {
	lines   [laneCount]line[T]
	length  int
	open    int // items of flows that are not held
	maxWait time.Duration
	now     uint64 // the tag of the lane last served by share
	aged    bool   // the last pop was of an aged item
}

// Item is the handle of a pushed value, for Remove. It may be kept after its value
// has left the Queue: then it refers to nothing.
type Item[T any] struct {
	strand     *strand[T] // where it waits; nil once it has left
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

// Push puts v at the back of a flow in a lane. ready is when it became ready to
// run, from which its wait counts. It allocates the Item and, once for each lane
// of a flow, the place there. It panics if lane is none of the four, or the flow
// belongs to another Queue.
func (q *Queue[T]) Push(lane Lane, f *Flow[T], ready time.Time, v T) *Item[T] {
	it, s := q.enter(lane, f, ready, v)
	if it.prev = s.back; s.back == nil {
		q.first(it)
		return it
	}
	s.back.next = it
	s.back = it
	return it
}

// PushFront is Push, but it puts v before what waits in the flow already: for what
// was popped and could not start after all.
func (q *Queue[T]) PushFront(lane Lane, f *Flow[T], ready time.Time, v T) *Item[T] {
	it, s := q.enter(lane, f, ready, v)
	if it.next = s.front; s.front == nil {
		q.first(it)
		return it
	}
	s.front.prev = it
	s.front = it
	q.fronted(s)
	return it
}

// enter counts a new item.
func (q *Queue[T]) enter(lane Lane, f *Flow[T], ready time.Time, v T) (*Item[T], *strand[T]) {
	l := &q.lines[lane]
	if f.queue == nil {
		f.queue = q
	}
	if f.queue != q {
		panic("lanes: a flow was pushed to two queues")
	}
	s := f.strands[lane]
	if s == nil {
		s = &strand[T]{flow: f, lane: lane}
		f.strands[lane] = s
	}
	l.length++
	f.length++
	q.length++
	if !f.held {
		q.open++
	}
	return &Item[T]{strand: s, ready: ready, value: v}, s
}

// first puts an item into its strand, which is empty.
func (q *Queue[T]) first(it *Item[T]) {
	s := it.strand
	s.front, s.back = it, it
	if !s.flow.held {
		q.join(s)
	}
}

// fronted keeps the order by age when a strand has another front item.
func (q *Queue[T]) fronted(s *strand[T]) {
	if l := &q.lines[s.lane]; !s.flow.held && len(l.ages) > 1 {
		heap.Fix(&l.ages, s.age)
	}
}

// Hold lets a flow be passed over until Resume.
func (q *Queue[T]) Hold(f *Flow[T]) {
	if f.held {
		return
	}
	f.held = true
	q.open -= f.length
	for _, s := range f.strands {
		if s != nil && s.front != nil {
			q.leave(s)
		}
	}
}

// Resume ends Hold. In each of its lanes the flow comes after the others.
func (q *Queue[T]) Resume(f *Flow[T]) {
	if !f.held {
		return
	}
	f.held = false
	q.open += f.length
	for _, s := range f.strands {
		if s != nil && s.front != nil {
			q.join(s)
		}
	}
}

// Peek returns the value that Pop would return.
func (q *Queue[T]) Peek(now time.Time) (T, bool) {
	if q.open == 0 {
		var none T
		return none, false
	}
	s, _ := q.next(now)
	return s.front.value, true
}

// Pop takes the next item out and returns its value, or false if there is none but
// those of held flows. now is the time to which waits are counted, by the same
// clock as the ready times.
func (q *Queue[T]) Pop(now time.Time) (T, bool) {
	if q.open == 0 {
		var none T
		return none, false
	}
	s, aged := q.next(now)
	if q.aged = aged; !aged {
		l := &q.lines[s.lane]
		q.now = l.tag // the lowest tag, so it never goes back
		l.tag += s.lane.stride()
		l.turn = s.next
	}
	return q.take(s.front), true
}

// next returns whose front item is popped next, and whether that is because of its
// age. Some flow that is not held must have items.
func (q *Queue[T]) next(now time.Time) (s *strand[T], aged bool) {
	// Aged items get every other pop at most. Their lane is not charged, and their
	// flow keeps its turn: aging comes on top of its share.
	if !q.aged {
		if oldest := q.oldest(); now.Sub(oldest.front.ready) >= q.maxWait {
			return oldest, true
		}
	}
	return q.turn(), false
}

// Remove takes an item out, wherever it stands. It returns false if the item is
// not in this Queue: it was popped or removed before, or is nil.
func (q *Queue[T]) Remove(it *Item[T]) bool {
	if it == nil || it.strand == nil || it.strand.flow.queue != q {
		return false
	}
	q.take(it)
	return true
}

// Len returns how many items wait, those of held flows among them.
func (q *Queue[T]) Len() int { return q.length }

// LenOf returns how many items wait in one lane. It panics if lane is none of
// the four.
func (q *Queue[T]) LenOf(lane Lane) int { return q.lines[lane].length }

// Oldest returns the earliest ready time among the front items of the flows that
// are not held, or the zero Time if there are none. Items pushed in the order in
// which they became ready, as they normally are, make it the earliest of all.
func (q *Queue[T]) Oldest() time.Time {
	if q.open == 0 {
		return time.Time{}
	}
	return q.oldest().front.ready
}

// oldest returns the strand whose front item became ready first; of equals, one of
// the first lane. Some flow that is not held must have items.
func (q *Queue[T]) oldest() *strand[T] {
	var oldest *strand[T]
	for i := range q.lines {
		ages := q.lines[i].ages
		if len(ages) > 0 && (oldest == nil || ages[0].front.ready.Before(oldest.front.ready)) {
			oldest = ages[0]
		}
	}
	return oldest
}

// turn returns what to serve by shares: of the lane with the lowest tag; of equals,
// the greatest weight; of equals again, the first. Some flow that is not held must
// have items.
func (q *Queue[T]) turn() *strand[T] {
	best := Lane(-1)
	for lane := range Lane(laneCount) {
		l := &q.lines[lane]
		if l.turn == nil {
			continue
		}
		if best < 0 || l.tag < q.lines[best].tag ||
			l.tag == q.lines[best].tag && lane.stride() < best.stride() {
			best = lane
		}
	}
	return q.lines[best].turn
}

// take unlinks an item and returns its value.
func (q *Queue[T]) take(it *Item[T]) T {
	s := it.strand
	f := s.flow
	alone, front := s.front == s.back, s.front == it
	if alone && !f.held {
		q.leave(s) // while it has a front item: the heap looks at it
	}
	if it.prev == nil {
		s.front = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		s.back = it.prev
	} else {
		it.next.prev = it.prev
	}
	if front && !alone {
		q.fronted(s)
	}
	q.lines[s.lane].length--
	f.length--
	q.length--
	if !f.held {
		q.open--
	}

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
