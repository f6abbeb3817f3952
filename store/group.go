package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Limits of group commit. They are generous: in normal work a group is whatever waited while the
// previous commit was running.
const (
	groupMaxStmts   = 4000     // statements in one commit
	groupMaxBytes   = 8 << 20  // argument bytes in one commit
	queueMaxBatches = 32768    // batches that wait
	queueMaxBytes   = 64 << 20 // argument bytes that wait
	replayFor       = 10 * time.Second
	replayFirstWait = 50 * time.Millisecond
	replayMaxWait   = 500 * time.Millisecond
)

// GroupOptions tune a Group. The zero value works.
type GroupOptions struct {
	MaxStmts   int // statements in one commit; 4,000 when zero. A larger batch runs alone
	MaxBytes   int // argument bytes in one commit; 8 MiB when zero. A larger batch runs alone
	MaxWaiting int // batches that may wait; 32,768 when zero
	MaxQueued  int // argument bytes that may wait; 64 MiB when zero

	// ReplayFor bounds how long batches of unknown outcome are sent again; 10 s when zero.
	ReplayFor time.Duration

	// OnCommit, if set, is told of every Backend.Apply, refused and failed ones included. It runs on
	// the Group's goroutine and must be quick.
	OnCommit func(batches, stmts int, d time.Duration, err error)
}

// Group is group commit: it concatenates the batches that wait into one Backend.Apply, so that one
// fsync (or one Raft round) serves many callers. Each batch keeps its own fate: a batch that the
// database refuses fails alone, and the others of its group are committed without it. Batches are
// applied in the order in which they were accepted. Nobody is answered before the commit.
//
// Batches must be idempotent, because one of unknown outcome is sent again.
type Group struct {
	b Backend
	o GroupOptions

	mu     sync.Mutex
	queue  []entry       // accepted, not yet taken
	bytes  int           // argument bytes in queue
	over   []doneFunc    // ApplyAsync calls that found the queue full, to be told so
	room   chan struct{} // closed when entries leave the queue; nil when nobody waits for that
	closed bool

	wake    chan struct{} // capacity 1: there is something in queue or over, or closed is set
	closing chan struct{} // closed with closed
	done    chan struct{} // closed when the goroutine has ended

	waiters sync.Pool
	stmts   []Stmt // the goroutine's buffer for concatenation
}

type doneFunc = func([]Result, error)

// entry is one batch and whom to tell: a waiter or a callback.
type entry struct {
	batch  []Stmt
	bytes  int
	waiter chan outcome
	done   doneFunc
}

type outcome struct {
	res []Result
	err error
}

func (e entry) finish(res []Result, err error) {
	if e.waiter != nil {
		e.waiter <- outcome{res, err} // capacity 1 and one send each: never blocks
		return
	}
	e.done(res, err)
}

// Reasons inside an ErrUnavailable of a Group.
var (
	errGroupClosed = fmt.Errorf("%w: the writer is closed", ErrUnavailable)
	errGroupFull   = fmt.Errorf("%w: too many writes are waiting", ErrUnavailable)
)

// NewGroup starts the one goroutine that commits. Close ends it; it does not close b.
func NewGroup(b Backend, o GroupOptions) *Group {
	setDefault(&o.MaxStmts, groupMaxStmts)
	setDefault(&o.MaxBytes, groupMaxBytes)
	setDefault(&o.MaxWaiting, queueMaxBatches)
	setDefault(&o.MaxQueued, queueMaxBytes)
	if o.ReplayFor <= 0 {
		o.ReplayFor = replayFor
	}
	g := &Group{
		b: b, o: o,
		wake:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	g.waiters.New = func() any { return make(chan outcome, 1) }
	go g.run()
	return g
}

func setDefault(n *int, v int) {
	if *n <= 0 {
		*n = v
	}
}

// Apply hands the batch over and waits for its commit. The results are the batch's own, and a
// RefusedError's Index counts from the batch's first statement.
//
// ctx ends only the wait, never a write. Before the batch is accepted (the queue is full) its end
// gives ErrUnavailable: nothing was or will be applied. Afterwards it gives ErrUnknown: the batch
// will probably be applied. Both also match ctx's own error. The batch belongs to the Group from
// the call on; the caller must not change it, even after ctx has ended.
func (g *Group) Apply(ctx context.Context, batch ...Stmt) ([]Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(batch) == 0 {
		return nil, nil
	}
	waiter := g.waiters.Get().(chan outcome)
	e := entry{batch: batch, bytes: argBytes(batch), waiter: waiter}
	for {
		room, err := g.offer(e)
		if err != nil {
			return nil, err
		}
		if room == nil {
			break
		}
		select {
		case <-room:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errGroupFull, ctx.Err())
		case <-g.closing:
			return nil, errGroupClosed
		}
	}
	select {
	case out := <-waiter:
		g.waiters.Put(waiter)
		return out.res, out.err
	case <-ctx.Done():
		// The waiter is left to the entry, which will still send to it.
		return nil, fmt.Errorf("%w: stopped waiting for it: %w", ErrUnknown, ctx.Err())
	}
}

// ApplyAsync hands the batch over and returns at once. done is called exactly once, on the Group's
// goroutine, so it must be quick and must not call Apply or Close. Where Apply would wait for room
// in the queue, done gets ErrUnavailable instead. After Close, done gets ErrUnavailable before
// ApplyAsync returns. The batch belongs to the Group from the call on.
func (g *Group) ApplyAsync(batch []Stmt, done func([]Result, error)) {
	e := entry{batch: batch, bytes: argBytes(batch), done: done}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		done(nil, errGroupClosed) // there is no goroutine left to call it
		return
	}
	if g.hasRoom(e) {
		g.queue = append(g.queue, e)
		g.bytes += e.bytes
	} else {
		g.over = append(g.over, done)
	}
	g.mu.Unlock()
	g.poke()
}

// Close stops accepting, commits what was accepted and waits for that. Close twice is allowed.
func (g *Group) Close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.closing)
	}
	g.mu.Unlock()
	g.poke()
	<-g.done
}

// Waiting returns how many batches wait for their turn and their argument bytes.
func (g *Group) Waiting() (batches, bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue), g.bytes
}

// offer queues e. If there is no room it returns a channel that is closed when there may be.
func (g *Group) offer(e entry) (room <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errGroupClosed
	}
	if !g.hasRoom(e) {
		if g.room == nil {
			g.room = make(chan struct{})
		}
		return g.room, nil
	}
	g.queue = append(g.queue, e)
	g.bytes += e.bytes
	g.poke()
	return nil, nil
}

// hasRoom lets a batch of any size into an empty queue, so that none waits for ever.
func (g *Group) hasRoom(e entry) bool {
	return len(g.queue) == 0 ||
		len(g.queue) < g.o.MaxWaiting && g.bytes+e.bytes <= g.o.MaxQueued
}

func (g *Group) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// run takes everything that waits, commits it in groups, and begins again. There is no artificial
// delay: under load the queue fills while a commit runs.
func (g *Group) run() {
	defer close(g.done)
	var spare []entry // the queue's other buffer: the two take turns
	for {
		g.mu.Lock()
		taken, over, closed := g.queue, g.over, g.closed
		g.queue, g.bytes, g.over = spare[:0], 0, nil
		if g.room != nil {
			close(g.room)
			g.room = nil
		}
		g.mu.Unlock()

		if len(taken) == 0 && len(over) == 0 {
			if closed {
				return
			}
			spare = taken
			<-g.wake
			continue
		}
		for _, done := range over {
			done(nil, errGroupFull)
		}
		for rest := taken; len(rest) > 0; {
			n := g.groupLen(rest)
			g.commit(rest[:n])
			rest = rest[n:]
		}
		// Let those who were just answered hand in their next batch first: on one CPU this goroutine
		// would otherwise find a queue of one or two.
		runtime.Gosched()
		clear(taken) // let go of batches and callbacks
		spare = taken
		if cap(spare) > 4096 {
			spare = nil // a burst's buffer is not kept
		}
	}
}

// groupLen says how many entries from the front fit into one commit, at least one.
func (g *Group) groupLen(es []entry) int {
	stmts, bytes := 0, 0
	for i, e := range es {
		stmts += len(e.batch)
		bytes += e.bytes
		if i > 0 && (stmts > g.o.MaxStmts || bytes > g.o.MaxBytes) {
			return i
		}
	}
	return len(es)
}

// commit applies the entries in one transaction, or in a few when the database refuses one of them,
// and tells each its outcome. Around a refused batch the group is split in two rather than run again
// as a whole, so that however many are refused, no statement runs more than twice where the backend
// names the culprit, and O(log n) times where it does not.
func (g *Group) commit(es []entry) {
	for len(es) > 0 {
		res, err := g.apply(es)
		var refused *RefusedError
		switch {
		case err == nil:
			at := 0
			for _, e := range es {
				n := len(e.batch)
				e.finish(res[at:at+n:at+n], nil)
				at += n
			}
			return
		case errors.As(err, &refused):
			if len(es) == 1 {
				es[0].finish(nil, err)
				return
			}
			if i, within := locate(es, refused.Index); i >= 0 {
				g.commit(es[:i])
				es[i].finish(nil, &RefusedError{Index: within, Err: refused.Err})
				es = es[i+1:]
				continue
			}
			g.commit(es[:len(es)/2])
			es = es[len(es)/2:]
		case errors.Is(err, ErrUnknown):
			g.replay(es, err)
			return
		default:
			for _, e := range es {
				e.finish(nil, err)
			}
			return
		}
	}
}

// locate finds the entry that holds the group's statement number index, and its number within it.
func locate(es []entry, index int) (i, within int) {
	if index < 0 {
		return -1, -1
	}
	for i, e := range es {
		if index < len(e.batch) {
			return i, index
		}
		index -= len(e.batch)
	}
	return -1, -1
}

// replay sends the batches of a group of unknown outcome again, one by one and in order, until each
// has an answer or time is up. A refusal here cannot be told from a batch that was applied the first
// time and now finds its own effect, so that stays unknown.
func (g *Group) replay(es []entry, cause error) {
	deadline := time.Now().Add(g.o.ReplayFor)
	wait := replayFirstWait
	for len(es) > 0 {
		left := time.Until(deadline)
		if left <= 0 || !g.pause(min(wait, left)) {
			break
		}
		res, err := g.apply(es[:1])
		if err != nil && !errors.Is(err, ErrRefused) {
			// Not applied this time, but perhaps the first time: still unknown.
			cause = err
			wait = max(replayFirstWait, min(2*wait, replayMaxWait))
			continue
		}
		if err != nil {
			err = fmt.Errorf("%w: sent again, it was refused: %v", ErrUnknown, err)
		}
		es[0].finish(res, err)
		es = es[1:]
		wait = 0
	}
	for _, e := range es {
		if !errors.Is(cause, ErrUnknown) {
			cause = fmt.Errorf("%w: %v", ErrUnknown, cause)
		}
		e.finish(nil, cause)
	}
}

// pause waits for d. It returns false when Close wants an end to that.
func (g *Group) pause(d time.Duration) bool {
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-g.closing:
		return false
	}
}

// apply runs the entries' batches as one. It has no deadline: a write is never interrupted.
func (g *Group) apply(es []entry) ([]Result, error) {
	stmts := es[0].batch
	if len(es) > 1 {
		stmts = g.stmts[:0]
		for _, e := range es {
			stmts = append(stmts, e.batch...)
		}
		defer func() {
			clear(stmts)
			g.stmts = stmts[:0]
			if cap(stmts) > 2*g.o.MaxStmts {
				g.stmts = nil
			}
		}()
	}
	start := time.Now()
	res, err := g.b.Apply(context.Background(), stmts...)
	if err == nil && len(res) != len(stmts) {
		err = fmt.Errorf("%w: %d results for %d statements", ErrUnknown, len(res), len(stmts))
	}
	if g.o.OnCommit != nil {
		g.o.OnCommit(len(es), len(stmts), time.Since(start), err)
	}
	return res, err
}

// argBytes estimates what a batch's arguments weigh.
func argBytes(batch []Stmt) int {
	n := 0
	for i := range batch {
		n += 8 * len(batch[i].Args)
		for _, a := range batch[i].Args {
			if s, ok := a.(string); ok {
				n += len(s)
			}
		}
	}
	return n
}
