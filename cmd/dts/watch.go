package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"dts"
)

const (
	justNow     = 3 * time.Second // what was due so long ago is still shown as next: what comes after it is not known yet
	watchWindow = time.Minute     // over which rates and lateness are told
	watchRows   = 200             // tasks of a kind that are read
	watchFailed = 50
	watchTimes  = 2000 // recurring tasks among which what is next is looked for
)

// watched is one look at a server.
type watched struct {
	At       time.Time            `json:"at"`
	Status   *dts.SchedulerStatus `json:"status"`
	Error    string               `json:"error,omitempty"` // why the rest could not be read
	Counts   *dts.Counts          `json:"counts,omitempty"`
	Rates    *rates               `json:"rates,omitempty"`
	Running  []*dts.Task          `json:"running"`
	Next     []upNext             `json:"next"`
	Queues   []*dts.Queue         `json:"queues"`
	Failures []*dts.Task          `json:"failures"`
}

// upNext is something that is due.
type upNext struct {
	Name  string    `json:"name"`
	At    time.Time `json:"at"`
	Queue string    `json:"queue"`
	ID    string    `json:"id"` // of the recurring task, or of the task
}

// watcher looks at a server again and again.
type watcher struct {
	l       *link
	now     func() time.Time
	looks   []*figures // of the last minute, the oldest first
	process string     // that they are figures of
	next    []upNext
	asked   time.Time // when next was read
}

// watch is `dts status --watch`.
func (a *app) watch(c *cli.Context) error {
	every := time.Second
	if c.IsSet("every") {
		var err error
		if every, err = parseSpan("--every", c.String("every"), 200*time.Millisecond); err != nil {
			return err
		}
	}
	if !c.Bool("json") && (!a.terminal || os.Getenv("TERM") == "dumb") {
		return usagef("--watch needs a terminal that it can draw on; for scripts there is dts status --watch --json, which prints an object a line")
	}
	l, err := a.connectWithin(c, statusWithin)
	if err != nil {
		return err
	}
	defer l.Close()
	w := &watcher{l: l, now: a.now}
	first, err := w.look(c.Context)
	if err != nil {
		return hangs(err)
	}
	if c.Bool("json") {
		return a.watchJSON(c.Context, w, first, every)
	}
	return a.watchScreen(c.Context, w, first, every)
}

// watchJSON prints what it sees until it is interrupted, or the server goes.
func (a *app) watchJSON(ctx context.Context, w *watcher, seen *watched, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	for {
		if err := e.Encode(seen); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var err error
		if seen, err = w.look(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return hangs(err)
		}
	}
}

// look asks the server for everything, within statusWithin for each answer. A server whose database does not answer still
// says how it is.
func (w *watcher) look(ctx context.Context) (*watched, error) {
	s, err := w.l.Status(ctx)
	if err != nil {
		return nil, err
	}
	seen := &watched{At: dts.Micros(w.now()), Status: s, Running: []*dts.Task{}, Next: []upNext{}, Queues: []*dts.Queue{}, Failures: []*dts.Task{}}
	if err := w.read(ctx, seen); err != nil {
		if ctx.Err() != nil || noServer(err) {
			return nil, err
		}
		text, _ := verdict(err)
		seen.Error = oneLine(text)
	}
	return seen, nil
}

// after is what is known after a look, and one before it: where the tasks could not be read, those that were seen last.
func (seen *watched) after(before *watched) *watched {
	if seen.Error == "" {
		return seen
	}
	last := *before
	last.At, last.Status, last.Error = seen.At, seen.Status, seen.Error
	return &last
}

// read asks for what the database has. What a token may not see stays empty.
func (w *watcher) read(ctx context.Context, seen *watched) error {
	counts, err := w.l.Counts(ctx)
	if err != nil {
		return err
	}
	running, err := w.l.Tasks(ctx, dts.TaskFilter{Statuses: []dts.Status{dts.Running}, Limit: watchRows})
	if err != nil {
		return err
	}
	slices.SortStableFunc(running.Items, func(x, y *dts.Task) int { return startOf(x).Compare(startOf(y)) })
	failed, err := w.l.Tasks(ctx, dts.TaskFilter{Statuses: []dts.Status{dts.Failed}, Limit: watchFailed})
	if err != nil {
		return err
	}
	slices.SortStableFunc(failed.Items, func(x, y *dts.Task) int { return y.CompletedAt.Compare(x.CompletedAt) })
	queues, err := w.l.Queues(ctx)
	if err != nil {
		return err
	}
	next, err := w.upNext(ctx, seen.Status.Now)
	if err != nil {
		return err
	}
	rates, err := w.rates(ctx, seen.Status)
	if e, ok := errors.AsType[*dts.Error](err); err != nil && (!ok || e.Code != dts.ErrForbidden && e.Code != dts.ErrUnauthorized) { // else it may not read the metrics
		return err
	}
	seen.Counts, seen.Running, seen.Failures, seen.Queues, seen.Next, seen.Rates = counts, running.Items, failed.Items, queues, next, rates
	return nil
}

// rates looks at the metrics and compares them with those of before.
func (w *watcher) rates(ctx context.Context, s *dts.SchedulerStatus) (*rates, error) {
	f, err := readFigures(ctx, w.l, w.now())
	if err != nil {
		return nil, err
	}
	return w.compare(f, s.Node+" "+s.StartedAt.String()), nil
}

// compare compares the figures of a process with the oldest ones of the last minute that it told.
func (w *watcher) compare(f *figures, process string) *rates {
	if process != w.process {
		w.looks, w.process = nil, process // the server was started anew, or another one answers
	}
	w.looks = append(w.looks, f)
	for len(w.looks) > 2 && f.at.Sub(w.looks[1].at) >= watchWindow {
		w.looks = w.looks[1:]
	}
	r := f.since(w.looks[0])
	if r == nil {
		w.looks = []*figures{f} // the clock was set
	}
	return r
}

// upNext returns what is due next: of the recurring tasks, and of tasks that wait for a time. It reads them every few
// seconds, and when the first of them has begun.
func (w *watcher) upNext(ctx context.Context, now time.Time) ([]upNext, error) {
	passed := func(n upNext) bool { return now.Sub(n.At) > justNow }
	begun := func(n upNext) bool { return n.At.Before(now) }
	age := now.Sub(w.asked).Abs()
	if age < 2*time.Second || age < 5*time.Second && !slices.ContainsFunc(w.next, begun) {
		w.next = slices.DeleteFunc(slices.Clone(w.next), passed)
		return w.next, nil
	}
	list := []upNext{}
	f := dts.RecurringFilter{Statuses: []dts.RecurringStatus{dts.Active}, Limit: 500}
	seen := 0
	for r, err := range w.l.AllRecurringTasks(ctx, f) {
		if err != nil {
			return nil, err
		}
		if !r.NextRunAt.IsZero() {
			list = append(list, upNext{displayName(&r.Spec), r.NextRunAt, r.Queue, r.ID})
		}
		if seen++; seen == watchTimes {
			break
		}
	}
	page, err := w.l.Tasks(ctx, dts.TaskFilter{Statuses: []dts.Status{dts.Pending}, NotPaused: true, Limit: 500})
	if err != nil {
		return nil, err
	}
	for _, t := range page.Items {
		if !planned(t) && t.Unresolved == 0 && t.RunAt.After(now) {
			list = append(list, upNext{displayName(&t.Spec), t.RunAt, t.Queue, t.ID})
		}
	}
	list = slices.DeleteFunc(list, passed)
	slices.SortStableFunc(list, func(x, y upNext) int { return x.At.Compare(y.At) })
	w.next, w.asked = list[:min(len(list), watchRows)], now
	return w.next, nil
}

// startOf is when the attempt that runs was started.
func startOf(t *dts.Task) time.Time {
	if t.PickedAt.After(t.StartedAt) { // it is not the first attempt
		return t.PickedAt
	}
	return t.StartedAt
}
