package sched

import (
	"context"
	"maps"
	"time"

	"dts"
)

// What is finished goes after some time, or when it is too much. To know how much there is, each finished task is counted
// once, soon after its end; to find what has to go, each limit has a mark of its own that only moves on. So what is kept is
// not looked at again, but for a new count now and then: who deletes or retries a finished task tells nobody here.
const (
	retainCount = 500              // finished tasks that are counted at once
	recount     = 6 * time.Hour    // how often all are counted again
	settled     = 10 * time.Second // what ended more recently is counted the next time: it may not all be on the disk
)

// Retention returns how long the finished tasks of a tenant are kept.
func (s *Scheduler) Retention(ctx context.Context, tenant string) (*dts.RetentionState, error) {
	all, err := s.o.Store.Retentions(ctx)
	if err != nil {
		return nil, err
	}
	return &dts.RetentionState{Retention: all[tenant], Effective: all[tenant].Or(s.tuning().Retention)}, nil
}

// PutRetention sets how long they are kept. What is zero is as the server was started with.
func (s *Scheduler) PutRetention(ctx context.Context, tenant string, r dts.Retention) (*dts.RetentionState, error) {
	if err := r.Normalize(); err != nil {
		return nil, err
	}
	err := s.changeQueue(ctx, func(ctx context.Context, token int64) error {
		return s.o.Store.PutRetention(ctx, tenant, r, dts.Micros(s.clock.now()), token)
	})
	if err != nil {
		return nil, err
	}
	return s.Retention(ctx, tenant)
}

// retention returns what holds for a tenant.
func (s *Scheduler) retention(tenant string) dts.Retention {
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	return s.rules.retentions[tenant].Or(s.tuning().Retention)
}

// keeper deletes what is finished and not to be kept. One goroutine uses it.
type keeper struct {
	s        *Scheduler
	counted  time.Time // what ended until then is counted
	recount  time.Time // when all is counted again
	own      map[dts.QueueKey]dts.Retention
	kept     map[dts.QueueKey]*kept // of queues with a retention of their own, and of tenants, whose Name is ""
	skipMark dts.SkipMark

	rest    time.Duration // after each step, times as long as that took
	began   time.Time     // this round, or since rest was last changed
	stepped time.Time     // when the step that is being done began
}

// kept is what is stored of a queue or a tenant.
type kept struct {
	rows, bytes int64
	mark        dts.FinishedMark // what should have gone by a limit has gone up to here
}

// look counts what has ended since the last time and deletes what is too old or too much, in small steps.
func (k *keeper) look(now time.Time) {
	k.renew(now)
	if !k.count(dts.Micros(now.Add(-settled))) { // as the store keeps times
		return
	}
	all := true
	for key, limit := range k.own {
		all = k.cut(key, limit, now) && all
	}
	for key := range maps.Clone(k.kept) {
		if key.Name == "" {
			all = k.cut(key, k.s.retention(key.TenantID), now) && all
		}
	}
	if all {
		at := dts.Micros(k.s.clock.now())
		k.s.retained.Store(&at)
	}
}

// renew begins anew, when it is time to, or other queues than before have limits of their own.
func (k *keeper) renew(now time.Time) {
	own := k.s.rules.ownRetentions()
	same := len(own) == len(k.own)
	for key := range own {
		_, was := k.own[key]
		same = same && was
	}
	k.own = own
	if same && now.Before(k.recount) {
		return
	}
	k.recount, k.counted, k.kept = now.Add(recount), time.Time{}, map[dts.QueueKey]*kept{}
}

func (k *keeper) of(key dts.QueueKey) *kept {
	n := k.kept[key]
	if n == nil {
		n = &kept{}
		k.kept[key] = n
	}
	return n
}

// note adds to what is stored, or takes from it.
func (k *keeper) note(f dts.Finished, sign int64) {
	keys := []dts.QueueKey{{TenantID: f.TenantID}}
	if key := (dts.QueueKey{TenantID: f.TenantID, Name: f.Queue}); k.own[key] != (dts.Retention{}) {
		keys = append(keys, key)
	}
	for _, key := range keys {
		n := k.of(key)
		n.rows += sign * f.Rows
		n.bytes += sign * f.Bytes
	}
}

// count counts what ended until a time. False: that was not possible, or the scheduler ends.
func (k *keeper) count(through time.Time) bool {
	s := k.s
	for k.counted.Before(through) {
		list, next, err := s.o.Store.CountFinished(s.ctx, k.counted, through, retainCount)
		if err != nil {
			s.logStore("count finished tasks", err)
			return false
		}
		for _, f := range list {
			k.note(f, 1)
		}
		if k.counted = next; k.counted.Before(through) && !k.pause() {
			return false
		}
	}
	return true
}

// cut deletes what a limit does not let keep, of a tenant, or of one of its queues, and reports whether all of it is gone.
func (k *keeper) cut(key dts.QueueKey, limit dts.Retention, now time.Time) bool {
	s := k.s
	n := k.of(key)
	for {
		c := dts.Cut{TenantID: key.TenantID, Queue: key.Name, After: n.mark, Through: k.counted}
		if limit.Seconds > 0 {
			c.Before = now.Add(-limit.Age())
		}
		if limit.Rows > 0 {
			c.Rows = max(n.rows-limit.Rows, 0)
		}
		if limit.Bytes > 0 {
			c.Bytes = max(n.bytes-limit.Bytes, 0)
		}
		d, err := s.o.Store.DeleteFinished(s.ctx, c, now, retainChunk)
		if err != nil {
			s.logStore("delete old tasks", err)
			return false
		}
		for _, f := range d.Deleted {
			k.note(f, -1)
		}
		s.m.deleted.Add(float64(len(d.Deleted)))
		if n.mark = d.Next; !d.More {
			return true
		}
		if !k.pause() {
			return false
		}
	}
}

// After each step retention rests, mostRest times as long as the step took: what a few per cent of a processor do is not
// felt where a task is due. A round that takes longer than until the next one has more to do than that, and rests half as
// long from then on; one that is soon done lets the next rest longer again.
const (
	mostRest  = 32
	soonDone  = retainEvery / 4
	shortStep = time.Millisecond // shorter ones count as that, and longer ones than longStep as that
	longStep  = 10 * time.Millisecond
)

// begin begins a round of small steps.
func (k *keeper) begin(hurry bool) {
	k.stepped = time.Now()
	k.began = k.stepped
	if hurry {
		k.rest = 1
	}
}

// end ends it.
func (k *keeper) end() {
	if time.Since(k.began) < soonDone {
		k.rest = min(2*k.rest, mostRest)
	}
}

// pause lets fires go first. False: the scheduler ends, or others do this now.
func (k *keeper) pause() bool {
	now := time.Now()
	if now.Sub(k.began) > retainEvery {
		k.rest, k.began = max(k.rest/2, 1), now
	}
	select {
	case <-k.s.ctx.Done():
		return false
	case <-time.After(k.rest * min(max(now.Sub(k.stepped), shortStep), longStep)):
	}
	k.stepped = time.Now()
	return k.s.retains()
}

// old deletes what goes for its age only, and is not much.
func (k *keeper) old(now time.Time) {
	s := k.s
	keeps := s.tuning().Retention
	before := map[string]time.Time{}
	for tenant, r := range s.rules.tenantRetentions() {
		before[tenant] = now.Add(-r.Or(keeps).Age())
	}
	for s.retains() {
		next, err := s.o.Store.DeleteSkips(s.ctx, k.skipMark, before, now.Add(-keeps.Age()), retainCount)
		if err != nil {
			s.logStore("delete old skips", err)
			break
		}
		if k.skipMark = next; next == (dts.SkipMark{}) || !k.pause() {
			break
		}
	}
	for s.retains() {
		more, err := s.o.Store.DeleteOld(s.ctx, now.Add(-keeps.Age()), now, retainChunk)
		if err != nil {
			s.logStore("delete old rows", err)
			return
		}
		if !more || !k.pause() {
			return
		}
	}
}
