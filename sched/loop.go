package sched

import (
	"slices"
	"time"

	"dts"
	"dts/sched/lanes"
	"dts/sched/timer"
)

// state is where the loop keeps an item.
type state uint8

const (
	waiting   state = iota // in its pool's waiting heap: only its entry is in memory
	claiming               // it is being read
	claimed                // in its pool's claimed heap, until it is due
	ready                  // due, in its pool's lanes, until a slot is free
	deciding               // due, while a policy is looked up, or a skip or a wait is written
	buffered               // due, waits for an earlier occurrence to end
	running                // a runner has it
	recording              // the attempt has ended, its result is on its way to the disk
	held                   // a verb is changing it
	parked                 // due, set aside until a gate of this server opens: see gated
	inserting              // it is being written for the first time
)

// item is what the loop knows of one task in memory.
type item struct {
	dts.Entry
	flow    *flow // of its queue, once it was looked up: see flowOf
	state   state
	lost    bool               // its shard went to another server while something was under way: see leave
	freed   bool               // while a verb has it, it was found to wait for no other task any more
	recalls bool               // while a verb has it, somebody wanted it who has perhaps changed what it waits for
	index   int                // in a heap
	like    *dts.Task          // a planned occurrence: the first one of its plan, which differs in its times only
	at      time.Time          // with like: scheduled_at
	task    *dts.Task          // from the claim on
	spot    *lanes.Item[*item] // in the lanes
	run     *run               // while running
	seen    time.Time          // since when it waits for its slot: see see
	turn    dts.LineKey        // of the line in which it waited, until it starts
	gates   atGates
	waiters []func() // called when it leaves claiming, deciding, running, recording or held
}

// pool is one kind of slot.
type pool struct {
	kind              dts.TargetType
	slots             int
	whole             bool // one queue may have all slots
	running           int  // stopped commands among them
	stopped, borrowed int  // see preempt.go

	waiting [ranks]rack // by priority, so that what is urgent is never behind what is many
	claimed dueHeap
	ready   *lanes.Queue[*item]
	sated   []*poolFlow // flows that are passed over because they have their share
}

const (
	pools = 2
	ranks = 3 // HIGH, MEDIUM, LOW
)

func poolOf(t dts.TargetType) int {
	if t == dts.Command {
		return 1
	}
	return 0
}

// rank is the item's priority. The Rank of its entry is what is stored, which keeps its place in what is read, and can be
// anything where the row was damaged.
func (it *item) rank() int { return min(max(it.Rank, 0), ranks-1) }

// loop owns every task in memory. One goroutine runs it; others post to its inbox.
type loop struct {
	s     *Scheduler
	timer timer.Timer
	items map[string]*item
	pools [pools]*pool

	mark     dts.Mark // tasks due up to here are in memory
	all      bool     // mark is complete up to its RunAt: the last scan was not cut short
	scanning bool
	readTo   dts.Mark  // while scanning: so far the store has been read
	scanAt   time.Time // no scan before this, after one failed
	lastScan time.Time

	behind    map[*flow]struct{} // queues that have less in memory than mark says
	thirsty   bool               // one of them may have little left
	refilling bool
	refillAt  time.Time // the store is not read for them before this, after that failed
	throttled map[*flow]struct{}
	rateAt    time.Time // when to look after those; zero: never

	terms     dts.Terms             // of the shards that this server holds
	since     [dts.Shards]time.Time // when it got them
	stalled   time.Time             // when it last found that it had stood still, or could not read the store
	paused    map[string]dts.Pause  // recurring tasks
	active    map[string][]*item    // of each recurring task that may not overlap: what runs, or is next
	buffers   map[string]*buffer    // and what waits for that to end
	asked     map[string][]*item    // what is due, while the store is asked whether another one is active
	bufferAt  time.Time             // when to look again after those
	blackouts []*blackout

	queueLimits map[dts.LineKey]int   // of queues, by their lines
	taken       map[dts.LineKey]int   // slots that runs of this server have, or are about to take
	lines       map[dts.LineKey]*line // in which tasks wait for slots
	lineAt      time.Time             // when to look again after those
	asking      int                   // lines that are being read
	verbs       int                   // how often a verb has given a task back
	verbOn      map[string]int        // which was that of a task, of those since the lines are being read; see noteVerb
	verbsFrom   int                   // and those before are not known any more

	gates      gates
	stoppables []*item // running commands that may be stopped

	unwritten int
	idle      chan struct{} // closed when nothing runs or is to be written any more, while draining
	allEnded  chan struct{} // closed when nothing runs any more, after all runs were stopped
	nextWake  time.Time
	armed     time.Time     // when the timer was set to that, by a clock that nobody sets
	armedFor  time.Duration // and for how long; 0: not at all
	lookedAt  time.Time     // when it last looked what there is to do
}

func newLoop(s *Scheduler) *loop {
	l := &loop{s: s, timer: s.o.NewTimer(), items: map[string]*item{}, paused: map[string]dts.Pause{}, active: map[string][]*item{}, buffers: map[string]*buffer{}, asked: map[string][]*item{},
		taken: map[dts.LineKey]int{}, lines: map[dts.LineKey]*line{}, verbOn: map[string]int{}, behind: map[*flow]struct{}{}, throttled: map[*flow]struct{}{}, gates: newGates(&s.o)}
	for i, slots := range [pools]int{s.o.HTTPSlots, s.o.CommandSlots} {
		l.pools[i] = &pool{kind: [pools]dts.TargetType{dts.HTTPCallback, dts.Command}[i], slots: slots, whole: s.o.OneQueue, ready: lanes.New[*item](lanes.Options{})}
	}
	return l
}

func (l *loop) run() {
	defer close(l.s.loopDone)
	defer l.timer.Close()
	var buf []func(*loop)
	for {
		now := l.s.clock.now()
		l.noteStall(now)
		l.step(now)
		l.arm(now)
		select {
		case <-l.s.ctx.Done():
			return
		case w := <-l.timer.C():
			if w.Stepped {
				l.s.log.Warn("the clock was stepped, or the machine has slept", "by", l.s.clock.stepped(), "now", l.s.clock.now())
				l.forgetRetries()
				l.s.wakePlanner()
			}
		case <-l.s.in.wake:
		}
		buf = l.s.in.take(buf)
		for i, f := range buf {
			f(l)
			buf[i] = nil
		}
	}
}

// forgetRetries lets the store be read again at once, and what waits for an instant be looked at: by a clock that was set
// back, the time until then may be hours.
func (l *loop) forgetRetries() {
	l.scanAt, l.refillAt = time.Time{}, time.Time{}
	l.lineAt, l.bufferAt, l.gates.hosts.lookAt = time.Time{}, time.Time{}, time.Time{}
	for f := range l.throttled {
		if !f.rate.asking {
			l.unthrottle(f)
		}
	}
	for _, p := range l.pools {
		for rank := range p.waiting {
			p.waiting[rank].retryAt = time.Time{}
		}
	}
}

// step does everything that is possible now.
func (l *loop) step(now time.Time) {
	if l.s.clock.held() != "" {
		if l.s.clock.check(); l.s.clock.held() != "" { // once a second: see arm
			return
		}
		l.s.wakePlanner()
	}
	l.scan(now)
	l.refill(now)
	l.checkBuffers(now)
	l.checkLines(now)
	l.checkRates(now)
	l.checkGates(now)
	for _, p := range l.pools {
		for it := p.claimed.top(); it != nil && !it.RunAt.After(now); it = p.claimed.top() {
			p.claimed.pop()
			l.due(it, now)
		}
		for rank := range p.waiting {
			l.claim(p, rank, now)
		}
		l.dispatch(p, now)
	}
}

// arm sets the timer to the next instant at which there is something to do.
func (l *loop) arm(now time.Time) {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if len(l.buffers) > 0 {
		sooner(l.bufferAt)
	}
	if len(l.lines) > 0 {
		sooner(l.lineAt)
	}
	if !l.rateAt.IsZero() {
		sooner(l.rateAt)
	}
	l.gateTimes(now, sooner)
	draining := l.s.draining.Load() // then nothing is scanned or claimed any more
	if !l.scanning && !draining && l.terms != (dts.Terms{}) {
		sooner(l.nextScan(now))
	}
	if l.thirsty && !l.refilling && !draining && l.terms != (dts.Terms{}) {
		sooner(l.refillAt)
	}
	for _, p := range l.pools {
		if it := p.claimed.top(); it != nil {
			sooner(it.RunAt)
		}
		for rank := range p.waiting {
			r := &p.waiting[rank]
			if sh := r.top(); sh != nil && !draining && r.claims < claimsInFlight {
				sooner(laterOf(sh.top().RunAt.Add(-claimAhead), r.retryAt))
			}
		}
	}
	if l.s.clock.held() != "" {
		at = now.Add(time.Second)
	}
	l.nextWake = at
	l.armed, l.armedFor = time.Now(), 0
	if !at.IsZero() {
		l.armedFor = max(at.Sub(now), 1)
	}
	l.timer.Arm(at)
}

// Scans: the heap holds what is due up to mark.

func (l *loop) heapSize() (n int) {
	for _, p := range l.pools {
		for rank := range p.waiting {
			n += p.waiting[rank].n
		}
	}
	return n
}

// nextScan is when more must be loaded.
func (l *loop) nextScan(now time.Time) time.Time {
	at := l.mark.RunAt.Add(-loadAhead / 2)
	if !l.all {
		if l.heapSize() > l.s.o.HeapLimit/4 {
			return now.Add(time.Minute) // not before some have gone; their going wakes the loop
		}
		at = laterOf(now, l.mark.RunAt.Add(-loadAhead)) // later than now only after the clock was set back
	}
	if at.Before(l.scanAt) {
		at = l.scanAt
	}
	return at
}

func (l *loop) scan(now time.Time) {
	if l.scanning || l.s.draining.Load() || l.terms == (dts.Terms{}) || l.nextScan(now).After(now) {
		return
	}
	after, through := l.mark, now.Add(loadAhead)
	if through.Before(after.RunAt) { // the clock was set back
		return
	}
	// Raised before the scan, so that a task inserted meanwhile is pushed by whoever inserted it.
	l.mark = dts.Mark{RunAt: through, Rank: 1 << 30}
	l.scanning, l.readTo, l.lastScan = true, after, now
	l.read(after, l.mark)
}

// read reads what is due after a mark, chunk by chunk, up to the raised mark. What is behind is left out.
func (l *loop) read(after, raised dts.Mark) {
	limit := min(loadChunk, l.s.o.HeapLimit)
	held, queues := l.terms.Held(), l.except()
	l.s.wg.Go(func() {
		list, err := l.s.o.Store.LoadDue(l.s.ctx, held, queues, after, raised.RunAt, limit)
		l.s.in.post(func(l *loop) {
			more := len(list) == limit
			switch {
			case err != nil:
				l.s.logStore("load due tasks", err)
				l.scanAt = l.s.clock.now().Add(retryStore)
				l.stalled = l.s.clock.now()
				l.lower(after)
			case more:
				l.readTo = list[limit-1].Mark()
			default:
				l.readTo = raised
			}
			l.s.strangers.Add(1)
			for i := range list {
				l.add(list[i], nil)
			}
			l.scanning = false
			switch {
			case err != nil:
			case more && l.mark == raised:
				l.scanning = true
				l.read(l.readTo, raised)
			case more: // trim has lowered it
				l.lower(l.readTo)
			default:
				l.all = l.mark == raised
			}
		})
	})
}

// lower sets the mark back to where the store has been read, if it is beyond, and lets go of what was inserted
// beyond meanwhile: while it filled the heap, what is due before it would not be read.
func (l *loop) lower(m dts.Mark) {
	l.all = false
	if l.mark.Before(m) {
		return // trim has lowered it more
	}
	l.mark = m
	for _, f := range l.s.flows.m {
		if f.waiting > 0 {
			l.forget(slices.DeleteFunc(l.entriesOf(f), func(it *item) bool { return within(&it.Entry, m) }))
		}
	}
	l.rejoin()
}

// add takes a task into memory if it is due before the mark and not there yet. With a task it is claimed.
func (l *loop) add(e dts.Entry, t *dts.Task) {
	if it := l.items[e.TaskID]; it != nil {
		if it.state == held {
			if it.freed = true; it.RunAt.IsZero() {
				it.Entry = e // it came into the heap's range while a verb had it; release takes it
			}
		}
		return
	}
	it := &item{Entry: e, task: t}
	if f := l.flowOf(it); l.terms[e.Shard] == 0 || f.paused || t == nil && !l.room(f, &e) {
		return
	}
	l.items[e.TaskID] = it
	if t != nil {
		l.count(it, 1)
		l.toClaimed(it, l.s.clock.now())
		return
	}
	l.toWaiting(it)
	if l.heapSize() > 2*l.s.o.HeapLimit {
		l.spill()
	}
}

// trim lets go of the later half of all that waits, where no queues have more of it than the others.
func (l *loop) trim() {
	var list []*item
	for _, f := range l.s.flows.m {
		if f.waiting > 0 {
			list = append(list, l.entriesOf(f)...)
		}
	}
	slices.SortFunc(list, func(a, b *item) int {
		if a.Before(b.Mark()) {
			return -1
		}
		return 1
	})
	keep := l.s.o.HeapLimit / 2
	l.forget(list[keep:])
	l.mark, l.all = list[keep-1].Mark(), false
	l.rejoin()
}

func (l *loop) toWaiting(it *item) {
	it.state, it.task, it.run = waiting, nil, nil
	l.shelve(it)
}

func (l *loop) toClaimed(it *item, now time.Time) {
	it.RunAt = it.task.RunAt
	if !it.RunAt.After(now) && l.s.clock.held() == "" {
		l.due(it, now)
		return
	}
	it.state = claimed
	l.pools[poolOf(it.TargetType)].claimed.push(it)
}

// drop forgets an item: it is finished, deleted or no longer ours.
func (l *loop) drop(it *item) {
	delete(l.items, it.TaskID)
	l.endTurn(it)
	l.release(it)
}

// release calls those who wait for the item to come to rest.
func (l *loop) release(it *item) {
	list := it.waiters
	it.waiters = nil
	for _, f := range list {
		f()
	}
}

// Claims: a task that is due soon is read whole, so that at its instant there is nothing left to do but to start it.
// Nothing is written: whoever holds a task's shard, and only he, may start it.

// claim takes those that are due soon, as many of each queue as may be claimed of it.
func (l *loop) claim(p *pool, rank int, now time.Time) {
	r := &p.waiting[rank]
	for !l.s.draining.Load() && r.claims < claimsInFlight && !now.Before(r.retryAt) {
		var chunk []*item
		n := 0
		for n < claimChunk {
			sh := r.top()
			if sh == nil || sh.top().RunAt.Add(-claimAhead).After(now) {
				break
			}
			if i := poolOf(p.kind); sh.flow.unstarted[i][rank].Load() >= l.s.claimLimit(i, rank) {
				sh.full = true // until there is room again: see count
				r.settle(sh)
				continue
			}
			n++
			it := sh.top()
			l.unshelve(it)
			if !it.MissAt.IsZero() && it.MissAt.Before(now) && !it.RunAt.After(now) { // not before a blackout ends
				l.miss(it)
				continue
			}
			l.count(it, 1)
			if it.like != nil {
				it.task = it.planned()
				it.task.PickedAt, it.task.Node = dts.Micros(now), l.s.o.Node.ID
				l.toClaimed(it, now)
				continue
			}
			it.state = claiming
			chunk = append(chunk, it)
		}
		if n == 0 {
			return
		}
		if len(chunk) == 0 {
			continue
		}
		r.claims++
		l.s.wg.Go(func() { l.s.claimChunk(r, chunk) })
	}
}

// planned makes the task of an occurrence that nobody has changed since it was planned. Of the many occurrences
// that frequent schedules plan ahead, only what differs is kept in memory, and none is read back.
func (it *item) planned() *dts.Task {
	t := *it.like
	t.ID, t.ScheduledAt, t.DueAt, t.RunAt, t.MissAt = it.TaskID, it.at, it.RunAt, it.RunAt, it.MissAt
	return &t
}

// claimChunk reads tasks from the store and tells the loop.
func (s *Scheduler) claimChunk(r *rack, chunk []*item) {
	ids := make([]string, len(chunk))
	for i, it := range chunk {
		ids[i] = it.TaskID
	}
	tasks, err := s.o.Store.Load(s.ctx, ids)
	byID := make(map[string]*dts.Task, len(tasks))
	picked := dts.Micros(s.clock.now())
	for _, t := range tasks {
		t.PickedAt, t.Node = picked, s.o.Node.ID
		byID[t.ID] = t
	}
	s.in.post(func(l *loop) {
		now := s.clock.now()
		r.claims--
		if err != nil {
			s.logStore("read due tasks", err)
			r.retryAt, l.stalled = now.Add(retryStore), now
		}
		for _, it := range chunk {
			switch t := byID[it.TaskID]; {
			case it.lost:
				l.count(it, -1)
				l.leave(it)
			// It was put off, paused, or moved to another queue or priority, after its entry had been read.
			case t != nil && (t.RunAt.After(now.Add(2*claimAhead)) || t.Queue != it.Queue || t.Priority.Rank() != it.rank()):
				l.count(it, -1)
				l.drop(it)
				l.add(t.Entry(), nil)
			case t != nil:
				it.task = t
				l.toClaimed(it, now)
				l.release(it)
			case err != nil:
				l.count(it, -1)
				l.toWaiting(it)
				l.release(it)
			default: // changed or gone: whoever did it has told the loop, or will
				l.count(it, -1)
				l.drop(it)
			}
		}
	})
}

// miss hands a planned occurrence that is too late to the planner, which decides by the catch-up mode. The
// planner holds the task while it does.
func (l *loop) miss(it *item) {
	l.drop(it)
	l.s.noteMissed(it.RecurringTaskID)
}
