package sched

import (
	"container/heap"
	"time"
)

// shelf is what waits for its time of one kind, queue and priority.
type shelf struct {
	dueHeap
	flow  *flow
	full  bool // as much of it is claimed as may be
	place int  // in its rack; -1: it is not there, because it is full or empty
}

// rack is what waits for its time in one pool at one priority. However many queues there are, the shelf whose first task is
// due first is on top.
type rack struct {
	shelves shelfList
	n       int       // entries on all shelves
	claims  int       // chunks that are being read
	retryAt time.Time // nothing is read before this, after that failed
}

type shelfList []*shelf

func (l shelfList) Len() int           { return len(l) }
func (l shelfList) Less(i, j int) bool { return l[i].top().Before(l[j].top().Mark()) }
func (l shelfList) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

func (l *shelfList) Push(x any) {
	sh := x.(*shelf)
	sh.place = len(*l)
	*l = append(*l, sh)
}

func (l *shelfList) Pop() any {
	last := len(*l) - 1
	sh := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	sh.place = -1
	return sh
}

// top returns the shelf from which to take next; nil when there is none.
func (r *rack) top() *shelf {
	if len(r.shelves) == 0 {
		return nil
	}
	return r.shelves[0]
}

// settle puts a shelf where it belongs after something on it has changed. While it is taken out of the heap it is
// not compared, so it may be empty by then.
func (r *rack) settle(sh *shelf) {
	switch in := sh.len() > 0 && !sh.full; {
	case in && sh.place >= 0:
		heap.Fix(&r.shelves, sh.place)
	case in:
		heap.Push(&r.shelves, sh)
	case sh.place >= 0:
		r.remove(sh)
	}
}

// remove takes a shelf out of the heap. The last one takes its place.
func (r *rack) remove(sh *shelf) {
	i, last := sh.place, len(r.shelves)-1
	r.shelves.Swap(i, last)
	r.shelves.Pop()
	if i < last {
		heap.Fix(&r.shelves, i)
	}
}

// shelve puts an item where it waits for its time.
func (l *loop) shelve(it *item) {
	f := l.flowOf(it)
	sh := &f.of(it).shelves[it.rank()]
	r := &l.pools[poolOf(it.TargetType)].waiting[it.rank()]
	sh.push(it)
	r.n++
	f.waiting++
	r.settle(sh)
}

// unshelve takes it away from there.
func (l *loop) unshelve(it *item) {
	sh := &it.flow.of(it).shelves[it.rank()]
	r := &l.pools[poolOf(it.TargetType)].waiting[it.rank()]
	sh.remove(it)
	r.n--
	it.flow.waiting--
	r.settle(sh)
	l.thirsty = l.thirsty || it.flow.thin()
}

// claimLimit is how many tasks of one queue, kind and priority may be claimed and not started: as many as are left of what
// all of them together may, and one in any case.
func (s *Scheduler) claimLimit(pool, rank int) int64 {
	left := claimRoom*int64(s.o.ClaimLimit) - s.unstarted[pool][rank].Load()
	return min(max(left, 1), int64(s.o.ClaimLimit))
}

// claimRoom is how many times ClaimLimit tasks of one kind and priority are claimed, of all queues together.
const claimRoom = 4

// count keeps the number of tasks claimed and not started. A shelf that was full is taken from again when there is room
// for a whole chunk, because reading one task for each that starts would cost more.
func (l *loop) count(it *item, d int64) {
	f, i := l.flowOf(it), poolOf(it.TargetType)
	n := f.unstarted[i][it.rank()].Add(d)
	l.s.unstarted[i][it.rank()].Add(d)
	if d > 0 || f.pools[i] == nil {
		return
	}
	if sh := &f.pools[i].shelves[it.rank()]; sh.full {
		limit := l.s.claimLimit(i, it.rank())
		if limit-n >= min(claimChunk, max(limit/2, 1)) {
			sh.full = false
			l.pools[i].waiting[it.rank()].settle(sh)
		}
	}
}
