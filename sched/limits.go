package sched

import (
	"math"
	"slices"
	"time"

	"dts"
)

// Limits: a task with a concurrency_key, or in a queue with a limit, starts only with a slot, which is a row in the store
// that all servers share. What finds none is written as waiting and leaves memory: the store's index is the line, in
// the order of priority and due time. Whoever gives a slot back asks who is next.

const (
	lineChunk   = 64                      // tasks of a line that are let go at once
	lineEvery   = time.Second             // how often lines are looked at, for slots that other servers gave back
	lineAlone   = 5 * time.Second         // the same where there are no others
	lineLook    = 1000                    // lines that are looked at together
	lineHurry   = 100 * time.Millisecond  // between two looks, where there are more
	lineYield   = 1500 * time.Millisecond // so long a free slot is left to another server's task that comes before
	lineParked  = time.Hour               // run_at of what waits is so far ahead: it comes back then, whatever happens
	noLineLimit = math.MaxInt32
)

// line is what the loop knows of a line in which tasks of its shards wait, or may wait.
type line struct {
	key     dts.LineKey
	limit   int  // of the task that came first when it was asked last, or that was refused; 0: not known
	writing int  // tasks that are being written as waiting
	asking  bool // the store is being asked who is next
	again   bool // and must be asked once more
	asked   int  // what l.verbs was then
	// ahead is another server's task that comes first although there is a slot for it, and since when that is so.
	ahead string
	since time.Time
}

// slotsOf is what a task needs to start.
func (l *loop) slotsOf(t *dts.Task) (list []dts.Slot) {
	if t.IsRun() {
		return nil // its steps need some
	}
	if t.ConcurrencyKey != "" {
		list = append(list, dts.Slot{Line: dts.KeyLine(t.ConcurrencyKey), Limit: max(t.ConcurrencyLimit, 1)})
	}
	if len(l.queueLimits) > 0 {
		k := dts.LineKey{TenantID: t.TenantID, Line: dts.QueueLine(t.Queue)}
		if n, is := l.queueLimits[k]; is {
			list = append(list, dts.Slot{Line: k.Line, Limit: n})
		}
	}
	return list
}

// crowded lets a task that is due wait in line where no slot can be free, or where others wait before it; false when it
// may try.
func (l *loop) crowded(it *item) bool {
	for _, slot := range l.slotsOf(it.task) {
		k := dts.LineKey{TenantID: it.task.TenantID, Line: slot.Line}
		if l.taken[k] >= slot.Limit || l.lines[k] != nil && it.turn == (dts.LineKey{}) {
			l.standInLine(it, slot)
			return true
		}
	}
	return false
}

// lineOf returns what the loop knows of a line, from now on if need be.
func (l *loop) lineOf(k dts.LineKey) *line {
	ln := l.lines[k]
	if ln == nil {
		ln = &line{key: k}
		if len(l.lines) == 0 {
			l.lineAt = l.s.clock.now().Add(l.lineEvery())
		}
		l.lines[k] = ln
	}
	return ln
}

func (l *loop) lineEvery() time.Duration {
	switch {
	case len(l.lines) > lineLook:
		return lineHurry
	case l.s.alone():
		return lineAlone
	}
	return lineEvery
}

// standInLine writes that a task waits for a slot, and that it will run however late. Then it leaves memory.
func (l *loop) standInLine(it *item, slot dts.Slot) {
	ln := l.lineOf(dts.LineKey{TenantID: it.task.TenantID, Line: slot.Line})
	ln.limit = slot.Limit
	ln.writing++
	n := *it.task
	n.WaitsFor = dts.ReasonQueue
	if slot.Line == dts.KeyLine(n.ConcurrencyKey) && n.ConcurrencyKey != "" {
		n.WaitsFor = dts.ReasonConcurrency
	}
	n.RunAt, n.MissAt, n.PickedAt = dts.Micros(l.s.clock.now().Add(lineParked)), time.Time{}, time.Time{}
	unstarted(&n)
	l.rewrite(it, &n, func(l *loop, ok bool) {
		ln.writing--
		l.count(it, -1) // not before: what is being written must not be too much
		l.endActive(it)
		if !ok {
			l.leave(it)
		} else {
			l.drop(it)
			l.add(n.Entry(), nil)
		}
		l.ask(ln)
	})
}

// unstarted takes back what begin noted in a task whose first attempt has not begun, after all.
func unstarted(t *dts.Task) {
	if t.Attempts == 0 {
		t.StartedAt, t.LatenessUS, t.SLAMet, t.QueuedUS, t.Warnings = time.Time{}, nil, nil, 0, nil
	}
}

// takeSlots counts the slots that a run is about to take.
func (l *loop) takeSlots(it *item, r *run) {
	r.slots = l.slotsOf(it.task)
	for _, slot := range r.slots {
		l.taken[dts.LineKey{TenantID: it.task.TenantID, Line: slot.Line}]++
	}
	r.inLine = it.task.Line() != ""
	r.turn, it.turn = it.turn, dts.LineKey{}
}

// freeSlots counts them no more, and asks who is next. Who waits at another server is told at once.
func (l *loop) freeSlots(it *item) {
	if it.run == nil {
		return
	}
	for _, slot := range it.run.slots {
		k := dts.LineKey{TenantID: it.task.TenantID, Line: slot.Line}
		if l.taken[k]--; l.taken[k] == 0 {
			delete(l.taken, k)
		}
		ln := l.lines[k]
		if ln == nil && !l.s.alone() {
			ln = l.lineOf(k)
			ln.limit = slot.Limit
		}
		l.ask(ln)
	}
	it.run.slots = nil
}

// refusedSlot takes back a task for which there was no slot: it has not run, and waits in that line.
func (l *loop) refusedSlot(it *item, full string) {
	l.stops(it)
	l.leftGates(it)
	i := slices.IndexFunc(it.run.slots, func(k dts.Slot) bool { return k.Line == full })
	slot := it.run.slots[i]
	l.freeSlots(it)
	it.run = nil
	if it.lost {
		l.endActive(it)
		l.leave(it)
	} else {
		l.count(it, 1)
		l.standInLine(it, slot)
	}
	l.checkIdle()
}

// limitOf is how many may run at once of the next in a line.
func (l *loop) limitOf(ln *line, t *dts.Task) int {
	switch n, is := l.queueLimits[ln.key]; {
	case is:
		return n
	case t.ConcurrencyKey != "" && ln.key.Line == dts.KeyLine(t.ConcurrencyKey):
		return max(t.ConcurrencyLimit, 1)
	}
	return noLineLimit // the queue's limit was taken away
}

// ask lets those go who are next in a line, as far as there are slots.
func (l *loop) ask(ln *line) {
	switch {
	case ln == nil || l.s.draining.Load():
		return
	case ln.asking:
		ln.again = true
		return
	}
	ln.asking, ln.asked = true, l.verbs
	l.asking++
	n := 2 // whose turn has come already stands before the others until it has its slot
	if limit := ln.limit; limit > 0 {
		n = 2 + 2*max(min(limit-l.taken[ln.key], lineChunk), 0)
	}
	if _, is := l.queueLimits[ln.key]; !is && ln.limit == 0 || ln.limit > lineChunk {
		n = 2 * lineChunk
	}
	s := l.s
	s.wg.Go(func() {
		var next []*dts.Task
		taken := 0
		err := s.persist("read who is next in line", func() (err error) {
			next, taken, err = s.o.Store.InLine(s.ctx, ln.key, n)
			return err
		})
		if err == nil { // else the scheduler ends
			s.in.post(func(l *loop) { l.letGo(ln, next, taken, len(next) == n) })
		}
	})
}

// letGo goes through the first in a line. Those whose turn has come count, until they have their slot or do not stand there
// any more; so do another server's, for a while: see lineYield.
func (l *loop) letGo(ln *line, next []*dts.Task, taken int, more bool) {
	ln.asking = false
	defer l.answeredLine()
	now := l.s.clock.now()
	taken = max(taken, l.takenBeside(ln.key, next))
	mine, yields, lowest := more, false, noLineLimit
	for i, t := range next {
		ln.limit = l.limitOf(ln, t)
		lowest = min(lowest, ln.limit)
		if taken >= lowest { // of different limits too: nobody is overtaken
			mine = mine || slices.ContainsFunc(next[i:], func(t *dts.Task) bool { return l.terms[t.Shard] != 0 })
			break
		}
		if l.terms[t.Shard] == 0 {
			if !yields && ln.ahead != t.ID {
				ln.ahead, ln.since = t.ID, now
			}
			if yields = yields || ln.ahead == t.ID; now.Sub(ln.since) < lineYield {
				l.s.wakeHolder(t.Shard, t.ID)
				taken++
			}
			continue
		}
		mine = true
		if l.itsTurn(ln, t, now) {
			taken++
		}
	}
	if !yields {
		ln.ahead = ""
	}
	again := ln.again
	ln.again = false
	switch {
	case again:
		l.ask(ln)
	case !mine && ln.writing == 0 && (!yields || now.Sub(ln.since) >= lineYield):
		delete(l.lines, ln.key)
	}
}

// maxVerbOn is how many verbs are remembered while lines are read. Beyond that, all lines are read again.
const maxVerbOn = 10_000

// noteVerb notes that a verb has given a task back: what was read of it before is old.
func (l *loop) noteVerb(id string) {
	if l.verbs++; l.asking == 0 {
		return
	}
	if len(l.verbOn) >= maxVerbOn {
		clear(l.verbOn)
		l.verbsFrom = l.verbs
	}
	l.verbOn[id] = l.verbs
}

func (l *loop) answeredLine() {
	if l.asking--; l.asking == 0 {
		clear(l.verbOn)
	}
}

// takenBeside is how many slots of a line runs here hold, apart from those of tasks in a list. The store may know of
// fewer: an end that it has applied is not known here until it has said so, and until then nobody may go.
func (l *loop) takenBeside(k dts.LineKey, list []*dts.Task) int {
	n := l.taken[k]
	for _, t := range list {
		if it := l.items[t.ID]; it != nil && it.run != nil && slices.ContainsFunc(it.run.slots, func(s dts.Slot) bool { return s.Line == k.Line }) {
			n--
		}
	}
	return n
}

// itsTurn lets a task go that waits in a line. false: something else is under way with it.
func (l *loop) itsTurn(ln *line, t *dts.Task, now time.Time) bool {
	if l.flowNamed(dts.QueueKey{TenantID: t.TenantID, Name: t.Queue}).paused {
		return false // the store did not know yet
	}
	if l.verbOn[t.ID] > ln.asked || l.verbsFrom > ln.asked {
		ln.again = true // it may not be any more what was read
		return false
	}
	it := l.items[t.ID]
	if it == nil {
		it = &item{}
		l.items[t.ID] = it
	} else {
		p := l.pools[poolOf(it.TargetType)]
		switch it.state {
		case waiting:
			l.unshelve(it)
		case claimed:
			if it.RunAt.After(now) {
				return true // it could not be started just now, and tries again soon
			}
			p.claimed.remove(it)
			l.count(it, -1)
		case ready, parked, running, deciding:
			return true // its turn has come already
		default:
			return false
		}
	}
	t.RunAt, t.PickedAt, t.Node = t.EligibleAt(), dts.Micros(now), l.s.o.Node.ID
	it.Entry, it.flow, it.task, it.turn, it.state = t.Entry(), nil, t, ln.key, claimed
	l.count(it, 1)
	l.due(it, now)
	return true
}

// endTurn is called when a task whose turn had come does something else: the next one may go.
func (l *loop) endTurn(it *item) {
	if turn := it.turn; turn != (dts.LineKey{}) {
		it.turn = dts.LineKey{}
		l.ask(l.lines[turn])
	}
}

// checkLines asks anew where a slot may have become free at another server.
func (l *loop) checkLines(now time.Time) {
	if len(l.lines) == 0 || now.Before(l.lineAt) {
		return
	}
	l.lineAt = now.Add(l.lineEvery())
	var keys []dts.LineKey
	for k, ln := range l.lines {
		if !ln.asking {
			keys = append(keys, k)
		}
		if len(keys) == lineLook { // others next time: the order is random
			break
		}
	}
	if len(keys) == 0 || l.s.draining.Load() {
		return
	}
	s := l.s
	s.wg.Go(func() {
		taken, err := s.o.Store.Taken(s.ctx, keys)
		if err != nil {
			if s.ctx.Err() == nil {
				s.logStore("look at lines", err)
			}
			return // the next look does it
		}
		s.in.post(func(l *loop) {
			for _, k := range keys {
				if ln := l.lines[k]; ln != nil && (ln.limit == 0 || taken[k] < ln.limit) {
					l.ask(ln)
				}
			}
		})
	})
}

// readLines takes up the lines of shards that were gained.
func (l *loop) readLines(set dts.ShardSet) {
	s := l.s
	s.wg.Go(func() {
		var keys []dts.LineKey
		err := s.persist("read lines", func() (err error) {
			keys, err = s.o.Store.Lines(s.ctx, set)
			return err
		})
		if err != nil || len(keys) == 0 {
			return
		}
		s.in.post(func(l *loop) {
			for _, k := range keys {
				l.lineOf(k)
			}
			l.lineAt = s.clock.now()
		})
	})
}

// setQueueLimits takes up changed limits of queues: where there is more room now, the next may go.
func (l *loop) setQueueLimits(limits map[dts.LineKey]int) {
	l.queueLimits = limits
	for k, ln := range l.lines {
		if n, is := limits[k]; is {
			ln.limit = n
		} else {
			ln.limit = 0 // asked, it says so
		}
		l.ask(ln)
	}
}
