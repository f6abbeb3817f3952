package sched

import (
	"cmp"
	"slices"
	"time"

	"dts"
)

// The heap is shared fairly: when it is too full, the queues that have most in it give, each its later part. Such a queue is
// behind: only what it has up to a mark of its own is in memory, and scans leave it out. When most of that has gone, the
// store is read for that queue from there. So a backlog of one queue, however long, does not hide what is due in others.

// mostBehind is among how many queues the heap can be shared. Where more than that have too much, all of what is due later
// leaves memory, whatever its queue.
const mostBehind = 128

// room reports whether the loop may have an entry in memory.
func (l *loop) room(f *flow, e *dts.Entry) bool {
	return !f.paused && within(e, l.mark) && (!f.behind || within(e, f.mark))
}

// within reports whether an entry is due up to a mark.
func within(e *dts.Entry, m dts.Mark) bool { return !m.Before(e.Mark()) }

// spill lets go of the later part of what the fullest queues have, after very much was inserted or read.
func (l *loop) spill() {
	var list []*flow
	for _, f := range l.s.flows.m {
		if f.waiting > 0 {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *flow) int { return cmp.Compare(a.waiting, b.waiting) })
	// Each queue may keep as much as the others; what small ones leave, the larger ones share.
	left, each := l.s.o.HeapLimit, 0
	for i, f := range list {
		if each = left / (len(list) - i); f.waiting > each {
			list = list[i:]
			break
		}
		left -= f.waiting
	}
	if each < max(l.s.o.HeapLimit/mostBehind, 1) {
		l.trim()
		return
	}
	for _, f := range list {
		l.cut(f, each)
	}
}

// cut lets go of all but the first n of a flow's entries.
func (l *loop) cut(f *flow, n int) {
	list := l.entriesOf(f)
	if len(list) <= n {
		return
	}
	slices.SortFunc(list, func(a, b *item) int {
		if a.Before(b.Mark()) {
			return -1
		}
		return 1
	})
	if n > 0 {
		mark := list[n-1].Mark()
		if l.scanning && !f.behind && l.readTo.Before(mark) { // what is due before may not have been read yet
			mark = l.readTo
			n = slices.IndexFunc(list, func(it *item) bool { return !within(&it.Entry, mark) })
		}
		f.mark = mark
	}
	l.setBehind(f, true)
	f.kept = n
	l.thirsty = true
	l.forget(list[n:])
}

// entriesOf lists what of a flow waits for its time.
func (l *loop) entriesOf(f *flow) []*item {
	list := make([]*item, 0, f.waiting)
	for _, mine := range f.pools {
		for rank := range ranks {
			if mine != nil {
				list = append(list, mine.shelves[rank].list...)
			}
		}
	}
	return list
}

// forget lets entries leave memory that wait for their time.
func (l *loop) forget(list []*item) {
	for _, it := range list {
		l.unshelve(it)
		delete(l.items, it.TaskID)
	}
}

// setBehind notes whether a flow is behind.
func (l *loop) setBehind(f *flow, behind bool) {
	if f.behind = behind; behind {
		l.behind[f] = struct{}{}
	} else {
		delete(l.behind, f)
	}
}

// except is what scans leave out.
func (l *loop) except() (c dts.QueueChoice) {
	for f := range l.behind {
		c.Except = append(c.Except, f.key)
	}
	return c
}

// exceptPaused is what is left out where shards were gained: of a queue that is behind, all up to its mark is needed there.
func (l *loop) exceptPaused() (c dts.QueueChoice) {
	for f := range l.behind {
		if f.paused {
			c.Except = append(c.Except, f.key)
		}
	}
	return c
}

// rejoin ends being behind where a flow has as much in memory as the others.
func (l *loop) rejoin() {
	for f := range l.behind {
		if !f.paused && !f.reading && !f.mark.Before(l.mark) {
			l.setBehind(f, false)
		}
	}
}

// thin reports whether little is left in memory of a flow that is behind.
func (f *flow) thin() bool { return f.behind && !f.paused && f.waiting <= f.kept/4 }

// refill reads on for those queues that are behind and have little left in memory, all of them together.
func (l *loop) refill(now time.Time) {
	if !l.thirsty || l.refilling || now.Before(l.refillAt) || l.s.draining.Load() || l.terms == (dts.Terms{}) {
		return
	}
	l.thirsty = false
	old := map[*flow]dts.Mark{}
	var queues dts.QueueChoice
	after, raised := l.mark, l.mark
	for f := range l.behind {
		if !f.thin() {
			continue
		}
		old[f] = f.mark
		queues.Only = append(queues.Only, f.key)
		if f.mark.Before(after) {
			after = f.mark
		}
		// Raised before the store is read, so that a task inserted meanwhile is pushed by whoever inserted it.
		f.mark, f.reading = raised, true
	}
	if len(old) == 0 {
		return
	}
	l.refilling = true
	limit, held := min(loadChunk, l.s.o.HeapLimit), l.terms.Held()
	l.s.wg.Go(func() {
		list, err := l.s.o.Store.LoadDue(l.s.ctx, held, queues, after, raised.RunAt, limit)
		l.s.in.post(func(l *loop) { l.refilled(old, list, len(list) == limit, err) })
	})
}

// refilled takes up what was read for queues that were behind. old are their marks of before; cut: there is more.
func (l *loop) refilled(old map[*flow]dts.Mark, list []dts.Entry, cut bool, err error) {
	l.refilling, l.thirsty = false, true
	if err != nil {
		l.s.logStore("load due tasks of a queue", err)
		l.refillAt = l.s.clock.now().Add(retryStore)
	}
	for f, mark := range old {
		f.reading = false
		if cut {
			if last := list[len(list)-1].Mark(); mark.Before(last) {
				mark = last
			}
		}
		if (err != nil || cut) && mark.Before(f.mark) { // else it was cut, or paused, meanwhile
			f.mark = mark
			l.forget(slices.DeleteFunc(l.entriesOf(f), func(it *item) bool { return within(&it.Entry, mark) }))
		}
	}
	l.s.strangers.Add(1)
	for i := range list {
		l.add(list[i], nil)
	}
	for f := range old {
		f.kept = f.waiting
	}
	l.rejoin()
}
