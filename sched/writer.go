package sched

import (
	"errors"
	"strings"
	"sync"
	"time"

	"dts"
)

// writeChunk is how many records go into one batch.
const writeChunk = 2048

// writer brings starts and ends of attempts to the disk, in the order in which they came, many in one batch.
// A result waits as long as the disk is full; the loop stops starting runs when too many wait.
type writer struct {
	s      *Scheduler
	mu     sync.Mutex
	queue  []pendingRecord
	wake   chan struct{} // capacity 1: something is in queue
	empty  chan struct{} // closed when queue is empty and the last batch is written; nil when nobody waits
	active bool
}

// pendingRecord is a record of a run and, for the end of an attempt, the item that it ends.
type pendingRecord struct {
	it    *item
	run   *run
	rec   *dts.Record
	again bool // a start that was written before; where it is refused, nothing is lost
}

func newWriter(s *Scheduler) *writer {
	return &writer{s: s, wake: make(chan struct{}, 1)}
}

func (w *writer) add(p pendingRecord) {
	w.mu.Lock()
	w.queue = append(w.queue, p)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *writer) run() {
	for {
		batch := w.take()
		if len(batch) == 0 {
			select {
			case <-w.wake:
				continue
			case <-w.s.ctx.Done():
				return
			}
		}
		w.write(batch)
		if w.s.ctx.Err() != nil {
			return
		}
	}
}

func (w *writer) take() []pendingRecord {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), writeChunk)
	w.active = n > 0
	if n == 0 {
		if w.empty != nil {
			close(w.empty)
			w.empty = nil
		}
		return nil
	}
	batch := w.queue[:n:n]
	if w.queue = w.queue[n:]; len(w.queue) == 0 {
		w.queue = nil
	}
	return batch
}

// write writes a batch, and logs what was refused in it: in one line, because after others have taken over it may be all.
func (w *writer) write(batch []pendingRecord) {
	refused, err := w.put(batch)
	if len(refused) > 0 {
		t, a := refused[0].rec.Task, &refused[0].rec.Attempt
		w.s.log.Error("results were refused and are lost", "results", len(refused), "first_task", t.ID, "first_attempt", a.Number, "err", err)
	}
}

// put writes a batch. What the store refuses as a whole is written one by one, so that one bad record does not take
// others with it; what is refused alone is given up, and returned with the last reason.
func (w *writer) put(batch []pendingRecord) (refused []pendingRecord, reason error) {
	s := w.s
	recs := make([]*dts.Record, len(batch))
	for i := range batch {
		recs[i] = batch[i].rec
	}
	err := s.persist("write results", func() error { return s.o.Store.Write(s.ctx, s.fence(), recs) })
	stored := err == nil
	switch {
	case err == nil:
	case s.o.Refused(err) && len(batch) > 1:
		for i := range batch {
			one, err := w.put(batch[i : i+1])
			if refused = append(refused, one...); err != nil {
				reason = err
			}
		}
		return refused, reason
	case s.o.Refused(err):
		if !batch[0].again {
			refused, reason = batch, err
		}
	default:
		return nil, nil // the scheduler ends; recovery finds the attempt
	}
	now := s.clock.now()
	for _, p := range batch {
		p.run.written(p.rec)
		if p.rec.After == nil || !stored {
			continue
		}
		if p.rec.After.Status == dts.Pending && !s.holds(p.rec.Task.Shard) {
			s.wakeHolder(p.rec.Task.Shard, p.rec.Task.ID)
		}
		if s.bus.listening() {
			e := taskEvent(dts.EventFinished, p.rec.After, now)
			e.Attempt, e.LatenessUS = p.rec.Attempt.Number, p.rec.Attempt.LatenessUS
			s.bus.publish(e)
		}
	}
	s.in.post(func(l *loop) {
		for _, p := range batch {
			switch {
			case p.it == nil:
			case stored:
				l.written(p.it, p.rec.After)
			default:
				l.written(p.it, nil)
			}
		}
	})
	return refused, reason
}

// flush waits until everything is written.
func (w *writer) flush(limit time.Duration) error {
	w.mu.Lock()
	if len(w.queue) == 0 && !w.active {
		w.mu.Unlock()
		return nil
	}
	if w.empty == nil {
		w.empty = make(chan struct{})
	}
	empty := w.empty
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	select {
	case <-empty:
		return nil
	case <-time.After(limit):
		return errors.New("results could not be written before the server stopped; the runs count as lost")
	}
}

// clean makes an error's text fit to be stored: valid, without NUL, and of bounded length.
func clean(text string) string {
	const limit = 2000
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
