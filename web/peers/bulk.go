package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dts"
)

// Bulk does a verb to the tasks that the filter selects, wherever they are. Each server does what it is responsible for.
// As shards may be on their way from one to another meanwhile, it looks whether something is left, and asks again: that
// does no harm, because what was done is not selected any more, and it counts once. What was done by a call whose
// answer was lost is not counted. A dry run needs nobody else: it only reads.
func (r *Router) Bulk(ctx context.Context, c dts.BulkChange) (sum dts.BulkResult, err error) {
	if err := c.Normalize(time.Now()); err != nil {
		return sum, err
	}
	if c.DryRun {
		return r.o.Local.Bulk(ctx, c)
	}
	deadline := time.Now().Add(r.retry)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		part, problems, err := r.bulkEverywhere(ctx, c)
		sum.Matched = sum.Done + part.Matched // what was matched before and not done is matched again
		sum.Done += part.Done
		left := true
		if err == nil {
			left, err = r.anyLeft(ctx, c.Filter)
		}
		switch _, silent := errors.AsType[*noAnswer](err); {
		case err == nil && !left:
			return sum, nil
		case err != nil && !silent && dts.CodeOf(err) != dts.ErrUnavailable:
			return sum, partly(c.Verb, sum.Done, problems, err)
		}
		if time.Now().After(deadline) || sleep(ctx, pause) != nil {
			if err != nil {
				return sum, partly(c.Verb, sum.Done, problems, err)
			}
			break // what is left may have come later, or not allow it; if nobody is responsible for some of it, say so
		}
		r.o.Local.Poke()
	}
	if p := r.o.Local.Placement(); slices.Contains(p.Holders[:], "") {
		return sum, partly(c.Verb, sum.Done, nil, dts.Errorf(dts.ErrUnavailable, "no server is responsible for some of the tasks at the moment"))
	}
	return sum, nil
}

// bulkEverywhere asks all servers at once, and adds up what they have done. One that fails does not keep the others
// from being counted: problems tells of each, and err is the first one.
func (r *Router) bulkEverywhere(ctx context.Context, c dts.BulkChange) (sum dts.BulkResult, problems []string, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	part := func(id string, do func() (dts.BulkResult, error)) {
		all.Go(func() {
			x, e := do()
			mu.Lock()
			defer mu.Unlock()
			sum.Matched += x.Matched
			sum.Done += x.Done
			if e != nil && dts.CodeOf(e) != dts.ErrElsewhere {
				problems = append(problems, fmt.Sprintf("the server %s: %s", id, messageOf(e)))
				if err == nil {
					err = e
				}
			}
		})
	}
	p := r.o.Local.Placement()
	for _, n := range p.Nodes {
		if n.ID != p.Self {
			part(n.ID, func() (dts.BulkResult, error) {
				a, err := r.ask(ctx, n, &verb{method: "Bulk", ask: &request{Bulk: c}, time: longTime})
				if a == nil {
					return dts.BulkResult{}, err
				}
				return a.Bulk, err
			})
		}
	}
	part(p.Self, func() (dts.BulkResult, error) { return r.o.Local.Bulk(ctx, c) })
	all.Wait()
	return sum, problems, err
}

// messageOf is what a user may read of an error of another server.
func messageOf(err error) string {
	if e, ok := err.(*dts.Error); ok {
		return e.Message
	}
	return "does not answer"
}

// partly is the error of a change that was made in part.
func partly(v dts.BulkVerb, done int, problems []string, err error) error {
	if done == 0 && len(problems) <= 1 && dts.CodeOf(err) != dts.ErrInternal {
		return err
	}
	if len(problems) == 0 {
		problems = []string{messageOf(err)}
	}
	return &dts.Error{Code: dts.ErrUnknown, Err: err,
		Message: fmt.Sprintf("%d tasks were %s, but not all; ask again: %s", done, v.Past(), strings.Join(problems[:min(len(problems), 10)], "; "))}
}

// anyLeft reports whether the filter still selects a task.
func (r *Router) anyLeft(ctx context.Context, f dts.TaskFilter) (bool, error) {
	f.Limit, f.Cursor = 1, ""
	for range 20 { // a page can be empty and not be the last one
		page, err := r.o.Store.Tasks(ctx, f)
		if err != nil || len(page.Items) > 0 {
			return true, err
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return false, nil
		}
	}
	return false, nil
}
