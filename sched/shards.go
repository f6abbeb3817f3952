package sched

import (
	"maps"
	"time"

	"dts"
)

// What the loop does when this server takes shards, or lets them go.

// gain takes up shards at their terms, and those of their recurring tasks that are paused.
func (l *loop) gain(set dts.ShardSet, terms dts.Terms, paused map[string]dts.Pause) {
	for _, n := range set.List() {
		l.terms[n] = terms[n]
		l.since[n] = l.s.clock.now()
	}
	maps.Copy(l.paused, paused)
	l.readLines(set)
	if !l.mark.RunAt.IsZero() { // else everything is still to be read
		l.readGained(set, dts.Mark{})
	}
}

// readGained reads what is due in shards that were gained, up to the mark: what is beyond, the next scan reads.
func (l *loop) readGained(set dts.ShardSet, after dts.Mark) {
	limit := min(loadChunk, l.s.o.HeapLimit)
	through, queues := l.mark.RunAt, l.exceptPaused()
	l.s.wg.Go(func() {
		list, err := l.s.o.Store.LoadDue(l.s.ctx, set, queues, after, through, limit)
		if err != nil {
			l.s.logStore("load due tasks", err)
			select {
			case <-l.s.ctx.Done():
				return
			case <-time.After(retryStore):
			}
		}
		l.s.in.post(func(l *loop) {
			l.s.strangers.Add(1)
			for i := range list {
				l.add(list[i], nil) // not those that were lost again
			}
			set &= l.terms.Held()
			if n := len(list); n > 0 {
				after = list[n-1].Mark()
			}
			if set != 0 && (err != nil || len(list) == limit && after.Before(l.mark)) {
				l.readGained(set, after)
			}
		})
	})
}

// lose lets go of everything in shards: nothing starts there any more. Where something is under way, its end lets go
// of the rest. It returns the runs there.
func (l *loop) lose(set dts.ShardSet) (runs []*run) {
	for _, n := range set.List() {
		l.terms[n] = 0
	}
	for id, p := range l.paused {
		if set.Has(p.Shard) {
			delete(l.paused, id)
		}
	}
	for _, it := range l.items {
		if !set.Has(it.Shard) || it.state == held && it.RunAt.IsZero() {
			continue // or it is not known where: a verb holds what is not in memory, and release sees
		}
		p := l.pools[poolOf(it.TargetType)]
		switch it.state {
		case waiting:
			l.unshelve(it)
			l.drop(it)
		case claimed:
			p.claimed.remove(it)
			l.count(it, -1)
			l.drop(it)
		case ready:
			p.ready.Remove(it.spot)
			l.count(it, -1)
			l.endActive(it)
			l.drop(it)
		case parked:
			l.unpark(it)
			l.count(it, -1)
			l.endActive(it)
			l.drop(it)
		case buffered:
			l.unbuffer(it)
			l.drop(it)
		case running, recording:
			it.lost = true
			runs = append(runs, it.run)
		case claiming, deciding, held, inserting:
			it.lost = true
		}
	}
	return runs
}

// leave lets go of an item whose shard was lost while something was under way. If this server holds the shard
// again, what has become of the task is read.
func (l *loop) leave(it *item) {
	l.drop(it)
	if it.lost && l.terms[it.Shard] != 0 {
		l.s.settle([]string{it.TaskID}, nil)
	}
}
