package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"dts"
	"dts/web/api"
)

// applyKey is a key under which something is made once only.
func applyKey(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return "apply:" + hex.EncodeToString(sum[:16])
}

// create makes a recurring task, once: when two make one of a name at the same time, the second fails, or finds what the first
// made if it is the same. instead is what it takes the place of.
func (p *applyPlan) create(ctx context.Context, q api.RecurringRequest, instead *dts.RecurringTask) (*dts.RecurringTask, error) {
	last := ""
	for r, err := range p.l.AllRecurringTasks(ctx, dts.RecurringFilter{Name: q.Name, Limit: 1000}) {
		if err != nil {
			return nil, err
		}
		if r.Status != dts.Ended && r.Unreadable == "" && (instead == nil || r.ID != instead.ID) {
			return nil, failf("someone else has added it in the meantime, as %s", r.ID)
		}
		if last == "" {
			last = r.ID
		}
	}
	if instead != nil {
		q.IdempotencyKey = replaceKey(instead)
	} else { // a key may outlive what it made: it holds for an hour
		q.IdempotencyKey = applyKey(q.Name, last, p.now.UTC().Format("2006-01-02T15"))
	}
	made, err := p.l.CreateRecurring(ctx, q)
	return made.Item, err
}

// replaceKey is the key of what takes the place of a recurring task, by which it is known.
func replaceKey(r *dts.RecurringTask) string { return applyKey("in place of", r.ID) }

// replace makes a recurring task anew, and cancels the old one.
func (p *applyPlan) replace(ctx context.Context, old *dts.RecurringTask, q api.RecurringRequest) error {
	made, err := p.create(ctx, q, old)
	if err != nil {
		return err
	}
	return p.retire(ctx, old, made)
}

// retire cancels a recurring task whose place another one has taken, which is then paused if the old one was.
func (p *applyPlan) retire(ctx context.Context, old, made *dts.RecurringTask) error {
	if old.Status == dts.Paused && made.Status == dts.Active {
		pause := api.PauseRequest{Note: old.PauseNote}
		if old.PausedUntil.After(p.now) {
			pause.Until = api.At(old.PausedUntil)
		}
		if _, err := p.l.PauseRecurring(ctx, made.ID, pause); err != nil {
			return err
		}
	}
	_, err := p.l.CancelRecurring(ctx, old.ID)
	return err
}

// unfinished leaves out of recurring tasks of one name those whose place others of them have taken, and plans to cancel them: a
// run before was cut off when it had not.
func (p *applyPlan) unfinished(list []*dts.RecurringTask) []*dts.RecurringTask {
	return slices.DeleteFunc(slices.Clone(list), func(old *dts.RecurringTask) bool {
		key := replaceKey(old)
		i := slices.IndexFunc(list, func(r *dts.RecurringTask) bool { return r.IdempotencyKey == key })
		if i < 0 {
			return false
		}
		p.have.kept[old.ID] = true
		p.add(&fileChange{Action: "remove", Kind: kindOf(old), Name: old.Name, ID: old.ID, about: "was replaced, and is still there",
			do: func(ctx context.Context) error { return p.retire(ctx, old, list[i]) }})
		return true
	})
}

// kindOf is what a file calls a recurring task.
func kindOf(r *dts.RecurringTask) string {
	if r.TargetType == dts.WorkflowRun {
		return "workflow"
	}
	return "task"
}
