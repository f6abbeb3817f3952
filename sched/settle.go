package sched

import (
	"context"
	"slices"

	"dts"
)

// A write that was sent is not given up with its caller: it may be applied all the same, and then the loop must
// know. So writes do not use the caller's context, and where the store cannot say whether one was applied, what is
// stored decides.

// begun returns the context for a write on behalf of a caller: its end does not end the write. A caller that is
// gone already gets an error, and nothing is written.
func begun(ctx context.Context) (context.Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, dts.Errorf(dts.ErrUnavailable, "the request was given up before it was done: %w", err)
	}
	return context.WithoutCancel(ctx), nil
}

// unsettled reports whether a write with this error may have been applied.
func unsettled(err error) bool { return dts.CodeOf(err) == dts.ErrUnknown }

// settle reads tasks that a write of unknown outcome may have inserted (fresh), or changed or deleted (mine, which
// the caller holds), however long the store needs, and makes the loop agree with what is stored. Then it gives mine back.
func (s *Scheduler) settle(fresh, mine []string) {
	ids := slices.Concat(fresh, mine)
	if len(ids) == 0 {
		return
	}
	s.spawn(func() {
		var tasks []*dts.Task
		err := s.persist("read what became of a write", func() (err error) {
			tasks, err = s.o.Store.Load(s.ctx, ids)
			return err
		})
		if err != nil {
			return // the scheduler ends
		}
		s.in.post(func(l *loop) {
			for _, id := range fresh {
				l.dropPlace(id)
			}
			for _, id := range mine {
				if it := l.items[id]; it != nil && it.state == held {
					l.noteVerb(id)
					l.drop(it)
				}
			}
			l.takeUp(tasks)
		})
	})
}

// settlePlan does the same for a plan whose missed occurrences the caller holds, and reads whether its recurring task is paused.
func (s *Scheduler) settlePlan(p *dts.Plan, held []string) {
	fresh := make([]string, len(p.Insert))
	for i, t := range p.Insert {
		fresh[i] = t.ID
	}
	s.settle(fresh, held)
	s.spawn(func() {
		if !s.lockPlans(s.ctx) { // so that nobody changes it between the read and the loop
			return
		}
		defer s.unlockPlans()
		var list []*dts.RecurringTask
		err := s.persist("read what became of a plan", func() (err error) {
			list, err = s.o.Store.RecurringByID(s.ctx, []string{p.New.ID})
			return err
		})
		if err != nil {
			return // the scheduler ends
		}
		s.in.post(func(l *loop) {
			for _, r := range list {
				l.setPaused(r)
			}
		})
		s.wakePlanner()
	})
}
