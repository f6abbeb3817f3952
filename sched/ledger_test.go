package sched_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"dts"
)

// book is the whole ledger of a recurring task.
type book struct {
	tasks []*dts.Task
	skips []*dts.Skip
}

// book reads the ledger of a recurring task, whose instants are step apart, and checks what holds for every one: each
// instant from the first to the last is one task that the schedule planned or lies in one skip, never both and never
// twice; a skipped task has its skip; a range counts what lies in it.
func (w *world) book(id string, step time.Duration) book {
	w.t.Helper()
	var b book
	for cursor := ""; ; {
		page, err := w.st.Occurrences(w.ctx, dts.DefaultTenant, id, cursor, 500)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range page.Items {
			if o.Task != nil {
				b.tasks = append(b.tasks, o.Task)
			}
			if o.Skip != nil {
				b.skips = append(b.skips, o.Skip)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	type part struct {
		from, to time.Time
		what     string
	}
	var parts []part
	skipped := map[int64]dts.Reason{}
	for _, k := range b.skips {
		parts = append(parts, part{k.From, k.To, string(k.Reason)})
		skipped[k.From.UnixMicro()] = k.Reason
		if n := int64(k.To.Sub(k.From)/step) + 1; n != k.Count {
			w.t.Errorf("the skip from %s to %s counts %d instants of %d", k.From, k.To, k.Count, n)
		}
	}
	for _, t := range b.tasks {
		switch {
		case t.Origin != dts.OriginSchedule:
		case t.Status == dts.Skipped:
			if skipped[t.ScheduledAt.UnixMicro()] != t.SkipReason {
				w.t.Errorf("the task of %s is skipped for %s, its skip says %q", t.ScheduledAt, t.SkipReason, skipped[t.ScheduledAt.UnixMicro()])
			}
		case skipped[t.ScheduledAt.UnixMicro()] == dts.ReasonRemoved: // cancelled by hand before it began
		default:
			parts = append(parts, part{t.ScheduledAt, t.ScheduledAt, string(t.Status)})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	for i := 1; i < len(parts); i++ {
		if a, b := parts[i-1], parts[i]; !b.from.Equal(a.to.Add(step)) {
			w.t.Errorf("after %s (%s) the ledger goes on with %s (%s): an instant is missing or there twice", a.to, a.what, b.from, b.what)
		}
	}
	slices.SortFunc(b.tasks, func(a, b *dts.Task) int {
		return cmp.Or(a.ScheduledAt.Compare(b.ScheduledAt), cmp.Compare(a.Seq, b.Seq))
	})
	slices.SortFunc(b.skips, func(a, b *dts.Skip) int { return a.From.Compare(b.From) })
	return b
}

// lines shows the ledger, joined where neighbours were skipped for the same reason: "00:06:00 ×3 CATCH_UP",
// "00:09:00 SUCCESS", and for what the schedule did not plan "00:09:20 CATCH_UP task SUCCESS". What has not begun is PENDING.
func (b book) lines(step time.Duration) []string {
	var list []lineOf
	for _, k := range b.skips {
		list = append(list, lineOf{from: k.From, to: k.To, n: k.Count, what: string(k.Reason)})
	}
	for _, t := range b.tasks {
		switch {
		case t.Origin != dts.OriginSchedule:
			what := string(t.Status)
			if t.Status == dts.Skipped {
				what = string(t.SkipReason)
			}
			list = append(list, lineOf{from: t.ScheduledAt, to: t.ScheduledAt, n: 1, what: string(t.Origin) + " task " + what, single: true, extra: true})
		case t.Status != dts.Skipped && !slices.ContainsFunc(b.skips, func(k *dts.Skip) bool { return k.From.Equal(t.ScheduledAt) && k.Reason == dts.ReasonRemoved }):
			list = append(list, lineOf{from: t.ScheduledAt, to: t.ScheduledAt, n: 1, what: string(t.Status), single: true})
		}
	}
	return showLines(list, step)
}

// lineOf is a line of a ledger.
type lineOf struct {
	from, to time.Time
	n        int64
	what     string
	single   bool // never joined with its neighbours
	extra    bool // not one that the schedule planned: shown after those
}

func showLines(list []lineOf, step time.Duration) []string {
	slices.SortStableFunc(list, func(a, b lineOf) int {
		if a.extra != b.extra {
			if b.extra {
				return -1
			}
			return 1
		}
		return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.what, b.what))
	})
	var joined []lineOf
	for _, x := range list {
		if n := len(joined); n > 0 && !x.single && !joined[n-1].single && joined[n-1].what == x.what && joined[n-1].to.Add(step).Equal(x.from) {
			joined[n-1].to, joined[n-1].n = x.to, joined[n-1].n+x.n
			continue
		}
		joined = append(joined, x)
	}
	var out []string
	for _, x := range joined {
		at := x.from.UTC().Format("2006-01-02 15:04:05")
		if x.single {
			out = append(out, at+" "+x.what)
		} else {
			out = append(out, fmt.Sprintf("%s ×%d %s", at, x.n, x.what))
		}
	}
	return out
}

// crowd is a runner's script: each run of a recurring task lasts as long as it is told, one-time tasks end at once. It
// notes how many of one recurring task run at once, and when each run began.
type crowd struct {
	lasts time.Duration

	mu    sync.Mutex
	now   map[string]int
	most  map[string]int
	began map[string][]time.Duration // by task, since the start of the test
	epoch time.Time
}

func newCrowd(lasts time.Duration) *crowd {
	return &crowd{lasts: lasts, now: map[string]int{}, most: map[string]int{}, began: map[string][]time.Duration{}, epoch: time.Now()}
}

func (c *crowd) run(ctx context.Context, j dts.Job) dts.Outcome {
	id := j.Task.RecurringTaskID
	c.mu.Lock()
	c.began[j.Task.ID] = append(c.began[j.Task.ID], time.Since(c.epoch))
	c.now[id]++
	c.most[id] = max(c.most[id], c.now[id])
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now[id]--
		c.mu.Unlock()
	}()
	if id == "" {
		return dts.Outcome{State: dts.AttemptSuccess}
	}
	return lastsFor(ctx, c.lasts)
}

// lastsFor is a run that lasts d, or until it is stopped.
func lastsFor(ctx context.Context, d time.Duration) dts.Outcome {
	select {
	case <-time.After(d):
		return dts.Outcome{State: dts.AttemptSuccess}
	case <-ctx.Done():
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, dts.ErrRunCancelled), errors.Is(cause, dts.ErrRunReplaced):
		return dts.Outcome{State: dts.AttemptCancelled, Error: cause.Error()}
	default:
		return dts.Outcome{State: dts.AttemptLost, Retryable: true, Error: cause.Error()}
	}
}

// nudge lets the scheduler notice at once that the clock was set. By itself it does so within half a minute.
func (w *world) nudge() {
	w.t.Helper()
	w.add(time.Millisecond, nil)
	w.settle(2 * time.Millisecond)
}

func (w *world) pause(id string, until time.Time) {
	w.t.Helper()
	if _, err := w.s.PauseRecurring(w.ctx, dts.DefaultTenant, id, until, "", "tester"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) resume(id string, catchUp bool) {
	w.t.Helper()
	if _, err := w.s.ResumeRecurring(w.ctx, dts.DefaultTenant, id, catchUp, "tester"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) atRest() {
	w.t.Helper()
	if err := w.s.AtRest(); err != nil {
		w.t.Errorf("not at rest: %v", err)
	}
}

// long lets nothing be deleted for its age.
const long = 200 * 365 * 24 * time.Hour
