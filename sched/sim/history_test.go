package sim_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dts"
)

// run makes one history: some dozens of random steps, then quiet, then the questions.
func (w *world) run() {
	r := w.script
	w.opts.DrainTimeout = 30 * time.Second
	w.roomy = r.IntN(4) > 0
	if !w.roomy {
		w.opts.HTTPSlots, w.opts.CommandSlots = 1+r.IntN(3), 1+r.IntN(2)
	}
	if r.IntN(5) == 0 {
		w.opts.HeapLimit, w.opts.ClaimLimit = 4+r.IntN(20), 2+r.IntN(6)
		w.roomy = false
	}
	// Half of the histories know only some of the troubles, so that what one hides another shows.
	storms, clocks, crashes := r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(2) == 0
	w.log("", "slots %d and %d, heap %d, claims %d", w.opts.HTTPSlots, w.opts.CommandSlots, w.opts.HeapLimit, w.opts.ClaimLimit)
	w.launch()
	for range 15 + r.IntN(30) {
		w.pass()
		if !w.running() {
			w.bury(w.p)
			time.Sleep(w.downtime())
			w.launch()
		}
		switch n := r.IntN(100); {
		case n < 25:
			w.createTasks()
		case n < 32:
			w.createRecurring()
		case n < 52:
			w.changeTask()
		case n < 54:
			w.bulkCancel()
		case n < 68:
			w.changeRecurring()
		case n < 80:
			if storms {
				w.changeWeather()
			}
		case n < 84:
			if clocks {
				w.stepClock()
			}
		case n < 94:
			if crashes {
				w.planCrash()
			}
		case n < 96:
			w.stop()
			time.Sleep(w.downtime())
			w.launch()
		}
	}
	w.calm()
	w.questions()
}

// pass lets some time go by, and ends early when the process dies.
func (w *world) pass() {
	r := w.script
	var d time.Duration
	switch n := r.IntN(10); {
	case n < 2:
		return
	case n < 5:
		d = time.Duration(r.Int64N(int64(100 * time.Millisecond)))
	case n < 8:
		d = time.Duration(r.Int64N(int64(4 * time.Second)))
	case n < 9:
		d = time.Duration(r.Int64N(int64(20 * time.Second)))
	default:
		d = time.Duration(r.Int64N(int64(100 * time.Second)))
	}
	select {
	case <-time.After(d):
	case <-w.p.dead:
	}
}

func (w *world) downtime() time.Duration {
	r := w.script
	switch r.IntN(8) {
	case 0:
		return time.Duration(r.Int64N(int64(40 * time.Minute)))
	case 1, 2:
		return time.Duration(r.Int64N(int64(3 * time.Minute)))
	}
	return time.Duration(r.Int64N(int64(3 * time.Second)))
}

func (w *world) changeWeather() {
	r := w.script
	var x weather
	if r.IntN(5) < 3 {
		rates := [...]float64{0, 0, .05, .3, 1}
		x = weather{fail: rates[r.IntN(5)], unknown: rates[r.IntN(4)], slow: rates[r.IntN(5)], full: r.IntN(2) == 0}
	}
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	if x.bad() || w.weather.bad() {
		w.trouble()
	}
	w.weather = x
	w.log("", "weather %+v", x)
}

func (w *world) stepClock() {
	r := w.script
	scale := [...]time.Duration{10 * time.Second, 3 * time.Minute, 2 * time.Hour}[r.IntN(3)]
	d := time.Duration(r.Int64N(int64(scale)))
	if r.IntN(2) == 0 {
		d = -d
	}
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	w.wall() // notes the time up to which it has come
	w.skew += d
	w.stepped = w.stepped || d < 0
	w.trouble()
	w.tally[clockSteps]++
	w.log("", "the clock is set by %v", d)
}

func (w *world) planCrash() {
	r := w.script
	if r.IntN(4) == 0 {
		w.crash()
		time.Sleep(w.downtime())
		w.launch()
		return
	}
	w.db.mu.Lock()
	w.p.crashIn = 1 + r.IntN(40)
	w.db.mu.Unlock()
}

// calm ends all trouble and lets everything that is due come to its end.
func (w *world) calm() {
	w.db.mu.Lock()
	w.weather = weather{}
	w.p.crashIn = 0
	now := w.wall()
	w.skew += w.newest.Sub(now) // not before any time that was shown, so that the clock is believed again
	w.trouble()
	w.log("", "calm")
	w.db.mu.Unlock()
	if !w.running() {
		w.bury(w.p)
		w.launch()
	}
	time.Sleep(150 * time.Second)
}

// context is that of a request: some are given up by their callers.
func (w *world) context() (context.Context, context.CancelFunc) {
	r := w.script
	ctx := context.Background()
	switch r.IntN(8) {
	case 0:
		return context.WithTimeout(ctx, time.Duration(r.Int64N(int64(20*time.Millisecond))))
	case 1:
		return context.WithTimeout(ctx, time.Duration(r.Int64N(int64(5*time.Second))))
	}
	return ctx, func() {}
}

// request runs f beside the history, with the tasks that it may change marked.
func (w *world) request(name string, ids []string, f func(ctx context.Context, p *proc) error) {
	ctx, cancel := w.context()
	p := w.p
	w.tally[requests]++
	w.db.mu.Lock()
	for _, id := range ids {
		n := w.of(id)
		n.flight++
		n.touched = true
	}
	w.log("", "request %s %v", name, ids)
	w.db.mu.Unlock()
	w.verbs.Go(func() {
		defer cancel()
		err := f(ctx, p)
		w.db.mu.Lock()
		defer w.db.mu.Unlock()
		for _, id := range ids {
			n := w.of(id)
			n.flight--
			n.touchedAt = time.Now()
		}
		w.log("", "answer to %s %v: %v", name, ids, err)
		if code := dts.CodeOf(err); code == dts.ErrInternal && !errors.Is(err, errRefused) {
			w.violate("answer", "%s: %v", name, err)
		}
	})
}

// spec is a random thing to run.
func (w *world) spec(name string) dts.Spec {
	r := w.script
	s := dts.Spec{Name: name, TargetType: dts.HTTPCallback, TargetConfig: []byte(`{"url":"http://127.0.0.1/"}`),
		Priority: [...]dts.Priority{dts.High, dts.Medium, dts.Low}[r.IntN(3)], TimeoutSeconds: float64(1 + r.IntN(10))}
	if r.IntN(3) == 0 {
		s.TargetType, s.TargetConfig = dts.Command, []byte(`{"argv":["true"]}`)
	}
	if r.IntN(4) == 0 {
		s.Delivery = dts.AtMostOnce
		return s
	}
	s.Retry = w.retry()
	return s
}

func (w *world) retry() dts.Retry {
	r := w.script
	p := dts.Retry{MaxAttempts: 1 + r.IntN(4), BaseDelayMS: r.Int64N(5000), Backoff: dts.Fixed}
	switch r.IntN(3) {
	case 0:
		p.Backoff, p.MaxDelayMS = dts.Exponential, 8000
	case 1:
		p.Backoff, p.DelaysMS, p.BaseDelayMS = dts.List, []int64{r.Int64N(3000), r.Int64N(9000)}, 0
	}
	if r.IntN(2) == 0 {
		p.Jitter = new(bool)
	}
	return p
}

// createTasks sends one to three new tasks, some under an idempotency key; after an answer that leaves it open
// whether they exist, it asks again with the same key.
func (w *world) createTasks() {
	r := w.script
	var specs []func() *dts.Task
	keyed := r.IntN(3) == 0
	for range 1 + r.IntN(3) {
		w.db.mu.Lock()
		w.named++
		n := w.named
		w.db.mu.Unlock()
		name := fmt.Sprintf("t%d", n)
		spec := w.spec(name)
		var delay, expires time.Duration
		switch r.IntN(8) {
		case 0, 1:
		case 2:
			delay = -time.Duration(r.Int64N(int64(30 * time.Second)))
		case 3, 4:
			delay = time.Duration(r.Int64N(int64(4 * time.Second)))
		case 5, 6:
			delay = time.Duration(r.Int64N(int64(2 * time.Minute)))
		default:
			delay = time.Duration(r.Int64N(int64(time.Hour)))
		}
		if r.IntN(8) == 0 {
			expires = time.Duration(1 + r.Int64N(int64(20*time.Second)))
		}
		specs = append(specs, func() *dts.Task {
			t := &dts.Task{ID: fmt.Sprintf("00000000-0000-7000-8000-%012x", w.ids.Add(1)), Spec: spec, CreatedBy: "sim"}
			now := w.now()
			t.RunAt = now.Add(delay)
			if expires > 0 {
				t.ExpiresAt = t.RunAt.Add(expires)
			}
			if keyed {
				t.IdempotencyKey, t.RequestHash = "key-"+name, "hash"
			}
			if err := t.Normalize(now); err != nil {
				panic(err) // the history makes only valid tasks
			}
			return t
		})
	}
	ctx, cancel := w.context()
	p := w.p
	w.tally[requests]++
	w.verbs.Go(func() {
		defer cancel()
		for {
			tasks := make([]*dts.Task, len(specs))
			ids := make([]string, len(specs))
			for i, f := range specs {
				tasks[i] = f()
				ids[i] = tasks[i].ID
			}
			w.creating(ids, 1)
			made, err := p.s.CreateTasks(ctx, tasks)
			w.creating(ids, -1)
			w.db.mu.Lock()
			w.log("", "create %v: %v", ids, err)
			for _, c := range made {
				w.of(c.Item.ID).acked = true
				w.of(c.Item.ID).touchedAt = time.Now()
			}
			w.db.mu.Unlock()
			if err == nil || !keyed || dts.CodeOf(err) == dts.ErrConflict {
				return
			}
			time.Sleep(3 * time.Second)
			ctx = context.Background()
			if p = w.server(); p == nil {
				return
			}
		}
	})
}

// server is the process that takes requests, or did until just now; nil at the end of the history.
func (w *world) server() *proc {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	return w.serving
}

// creating notes that a request that makes the tasks is under way, or no longer.
func (w *world) creating(ids []string, d int) {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	for _, id := range ids {
		w.of(id).flight += d
	}
}

// someTask picks a stored task; nil when there is none.
func (w *world) someTask() *dts.Task {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	list := w.db.selectTasks(func(t *dts.Task) bool { return true })
	if len(list) == 0 {
		return nil
	}
	if w.script.IntN(2) == 0 { // what waits or runs is of more interest
		open := w.db.selectTasks(func(t *dts.Task) bool { return !t.Status.Terminal() })
		if len(open) > 0 {
			list = open
		}
	}
	return list[w.script.IntN(len(list))]
}

func (w *world) changeTask() {
	t, r := w.someTask(), w.script
	if t == nil {
		return
	}
	if r.IntN(4) == 0 {
		w.modifyTask(t)
		return
	}
	verb := [...]dts.Verb{dts.Cancel, dts.Cancel, dts.RetryNow, dts.ForceComplete, dts.RunNow, dts.RunNow, dts.Delete}[r.IntN(7)]
	w.request(string(verb)+" "+w.name(t), []string{t.ID}, func(ctx context.Context, p *proc) error {
		w.db.mu.Lock()
		n := w.of(t.ID)
		switch verb {
		case dts.RetryNow:
			n.requeues++
			n.requeuing++
			n.cancelled = false
		case dts.Delete:
			n.deletes++
		}
		before, alone := n.requeues, n.requeuing == 0 // a retry that is under way may come after the cancel
		w.db.mu.Unlock()
		after, err := p.s.DoTask(ctx, t.TenantID, t.ID, verb, "sim")
		w.db.mu.Lock()
		switch {
		case verb == dts.RetryNow:
			n.requeuing--
		case verb == dts.Cancel && err == nil && after.Status == dts.Cancelled && alone && n.requeues == before:
			n.cancelled = true
		}
		w.db.mu.Unlock()
		return err
	})
}

func (w *world) modifyTask(t *dts.Task) {
	r := w.script
	var p dts.TaskPatch
	at := w.now().Add(time.Duration(r.Int64N(int64(40 * time.Second))))
	if r.IntN(3) == 0 {
		at = at.Add(time.Hour)
	}
	low := dts.Low
	switch r.IntN(3) {
	case 0:
		p.Priority = &low
	case 1:
		p.Priority, p.RunAt = &low, &at
	default:
		p.RunAt = &at
	}
	w.request("modify "+w.name(t), []string{t.ID}, func(ctx context.Context, proc *proc) error {
		_, err := proc.s.ModifyTask(ctx, t.TenantID, t.ID, p)
		return err
	})
}

func (w *world) bulkCancel() {
	w.db.mu.Lock()
	var ids []string
	for _, t := range w.db.selectTasks(func(t *dts.Task) bool { return !t.Status.Terminal() && t.Priority == dts.Low }) {
		ids = append(ids, t.ID)
	}
	w.db.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	w.request("bulk cancel", ids, func(ctx context.Context, p *proc) error {
		_, err := p.s.Bulk(ctx, dts.BulkChange{Verb: dts.BulkCancel, Filter: dts.TaskFilter{TenantID: dts.DefaultTenant, IDs: ids}, Actor: "sim"})
		return err
	})
}

func (w *world) createRecurring() {
	r := w.script
	if w.asked == 3 {
		return
	}
	w.asked++
	name := fmt.Sprintf("r%d", w.asked)
	t := &dts.RecurringTask{ID: w.recurringID(), Spec: w.spec(name), CreatedBy: "sim"}
	w.setSchedule(&t.Schedule)
	if r.IntN(2) == 0 {
		t.OverlapPolicy = dts.OverlapSkip
	}
	if r.IntN(3) == 0 {
		t.CatchUpMode = dts.SkipMissed
	}
	t.MisfireAfterSeconds = [...]float64{0, 1, 5, 60}[r.IntN(4)]
	if r.IntN(6) == 0 {
		t.MaxRuns = int64(1 + r.IntN(6))
	}
	if r.IntN(6) == 0 {
		t.EndTime = w.now().Add(time.Duration(r.Int64N(int64(10*time.Minute))) + time.Minute)
	}
	if r.IntN(2) == 0 {
		t.IdempotencyKey, t.RequestHash = "key-"+name, "hash"
	}
	if err := t.Normalize(); err != nil {
		panic(err) // the history makes only valid ones
	}
	ctx, cancel := w.context()
	p := w.p
	w.tally[requests]++
	w.verbs.Go(func() {
		defer cancel()
		for {
			made, err := p.s.CreateRecurring(ctx, t)
			w.db.mu.Lock()
			w.log(name, "create %s %v: %v", t.Cron, t.Interval(), err)
			if err == nil {
				w.plans[made.Item.ID].acked = true
			}
			w.db.mu.Unlock()
			if err == nil || t.IdempotencyKey == "" || dts.CodeOf(err) == dts.ErrInvalid {
				return
			}
			time.Sleep(3 * time.Second)
			ctx = context.Background()
			if p = w.server(); p == nil {
				return
			}
			t = clone(t)
			t.ID = w.recurringID()
		}
	})
}

func (w *world) recurringID() string {
	id := fmt.Sprintf("00000000-0000-7000-9000-%012x", w.ids.Add(1))
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	w.recurring = append(w.recurring, id)
	return id
}

func (w *world) setSchedule(s *dts.Schedule) {
	r := w.script
	if r.IntN(2) == 0 {
		s.Cron, s.IntervalSeconds = cronTexts[r.IntN(len(cronTexts))], 0
	} else {
		s.Cron, s.IntervalSeconds = "", [...]float64{1.5, 5, 7, 30, 61}[r.IntN(5)]
	}
}

func (w *world) changeRecurring() {
	r := w.script
	w.db.mu.Lock()
	var s *schedule
	id := ""
	if len(w.recurring) > 0 {
		id = w.recurring[r.IntN(len(w.recurring))]
		s = w.plans[id]
	}
	w.db.mu.Unlock()
	if s == nil {
		return
	}
	var name string
	var f func(ctx context.Context, p *proc) error
	tenant := dts.DefaultTenant
	switch n := r.IntN(20); {
	case n < 4:
		name = "trigger"
		f = func(ctx context.Context, p *proc) error {
			t, err := p.s.TriggerRecurring(ctx, tenant, id, "sim")
			if err == nil {
				w.db.mu.Lock()
				w.of(t.ID).acked = true
				w.of(t.ID).touchedAt = time.Now()
				w.db.mu.Unlock()
			}
			return err
		}
	case n < 10:
		var until time.Time
		if r.IntN(2) == 0 {
			until = w.now().Add(time.Duration(r.Int64N(int64(90*time.Second))) + time.Second)
		}
		name = "pause until " + clockTime(until)
		f = func(ctx context.Context, p *proc) error {
			w.db.mu.Lock()
			before := s.resumes
			w.db.mu.Unlock()
			_, err := p.s.PauseRecurring(ctx, tenant, id, until, "", "sim")
			w.db.mu.Lock()
			if err == nil && until.IsZero() && s.resumes == before && s.resuming == 0 {
				s.pausedAt = w.wall()
			}
			if !until.IsZero() {
				s.resuming--
			}
			w.db.mu.Unlock()
			return err
		}
		if !until.IsZero() {
			w.mayResume(s)
		}
	case n < 15:
		name = "resume"
		w.mayResume(s)
		f = func(ctx context.Context, p *proc) error {
			_, err := p.s.ResumeRecurring(ctx, tenant, id, false, "sim")
			w.db.mu.Lock()
			s.resuming--
			w.db.mu.Unlock()
			return err
		}
	case n < 19:
		name = "modify"
		var p dts.RecurringPatch
		var to dts.Schedule
		w.setSchedule(&to)
		if p.Cron = &to.Cron; to.Cron == "" {
			p.Cron, p.IntervalSeconds = nil, &to.IntervalSeconds
		}
		f = func(ctx context.Context, proc *proc) error {
			_, err := proc.s.ModifyRecurring(ctx, tenant, id, p)
			return err
		}
	default:
		name = "cancel"
		f = func(ctx context.Context, p *proc) error {
			_, err := p.s.CancelRecurring(ctx, tenant, id, "sim")
			w.db.mu.Lock()
			if err == nil && s.endedAt.IsZero() {
				w.wall()
				s.endedAt = w.newest // what was due by any time that the clock has shown may have started
			}
			w.db.mu.Unlock()
			return err
		}
	}
	w.db.mu.Lock()
	s.flight++
	w.db.mu.Unlock()
	w.request(name+" "+id, nil, func(ctx context.Context, p *proc) error {
		err := f(ctx, p)
		w.db.mu.Lock()
		s.flight--
		w.db.mu.Unlock()
		return err
	})
}

// mayResume notes that from here on a pause may end.
func (w *world) mayResume(s *schedule) {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	s.resumes++
	s.resuming++
	s.pausedAt = time.Time{}
}
