package sched

import (
	"context"
	"slices"
	"time"

	"dts"
)

// How a server learns of tasks that another one has made ready to run in its shards: it is told, and asks as well.

const (
	handoffEvery = time.Second // how often the store is asked
	handoffChunk = 1000        // tasks taken up at once
)

// Peers tells other servers what they would else find out later. Poke and Wake return at once.
type Peers interface {
	// Poke tells a server to look at who holds what: someone has come or gone, or shards were released.
	Poke(n dts.Node)
	// Wake tells a server of tasks that were made ready to run in shards that it holds.
	Wake(n dts.Node, ids []string)
	// Clock asks a server what time it is, by its wall clock.
	Clock(ctx context.Context, n dts.Node) (time.Time, error)
}

// Wake takes up tasks that another server has made ready to run in shards that this one holds.
func (s *Scheduler) Wake(ids []string) { s.settle(ids, nil) }

// wakeHolder tells the holder of a shard of tasks that were made ready there.
func (s *Scheduler) wakeHolder(shard int, ids ...string) {
	p := s.Placement()
	if n, found := p.Node(p.Holders[shard]); found && n.ID != p.Self {
		s.o.Peers.Wake(n, ids)
	}
}

// takeUp reads what was made ready to run in shards of this server, or was ended there because of what it depends on.
// Whatever of it is deleted from the store's list and not taken up, because this server stops, its next start finds.
func (s *Scheduler) takeUp() error {
	for {
		held := s.fence().Terms.Held()
		if held == 0 {
			return nil
		}
		ids, err := s.o.Store.Handoffs(s.ctx, held, handoffChunk)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := s.o.Store.DeleteHandoffs(s.ctx, s.fence(), ids); err != nil && !unsettled(err) {
			return err
		}
		var tasks []*dts.Task
		err = s.persist("read handoffs", func() (err error) {
			tasks, err = s.o.Store.TasksByID(s.ctx, ids)
			return err
		})
		if err != nil {
			return err
		}
		tasks = slices.DeleteFunc(tasks, s.endedWaiting)
		s.in.post(func(l *loop) { l.takeUp(tasks) })
		if len(ids) < handoffChunk {
			return nil
		}
	}
}

// takeUp adds tasks that were read from the store.
func (l *loop) takeUp(tasks []*dts.Task) {
	l.s.strangers.Add(1)
	for _, t := range tasks {
		l.add(t.Entry(), nil)
		if name := t.Line(); name != "" && l.terms[t.Shard] != 0 {
			l.ask(l.lineOf(dts.LineKey{TenantID: t.TenantID, Line: name}))
		}
	}
}
