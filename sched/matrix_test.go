package sched_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// The matrix: every catch-up mode with every overlap policy, in every pause and every outage or step of the clock. One
// world is one pause with one outage; a recurring task of each mode and policy lives in it.

var (
	allModes    = []dts.CatchUpMode{dts.RunLatest, dts.RunOneNow, dts.RunAllMissed, dts.SkipMissed}
	allPolicies = []dts.OverlapPolicy{dts.OverlapAllow, dts.OverlapSkip, dts.OverlapBufferOne, dts.OverlapBufferAll, dts.OverlapCancel}
)

// outage is what happens to the server, or to its clock. All times are in steps of the schedule.
type outage struct {
	name string
	stop float64       // when the server is stopped; 0: it is not
	up   float64       // when it is started again
	jump time.Duration // how far the wall clock jumps, at about stop
	step time.Duration // of the schedule; 0: a minute
	back time.Duration // and back again, three steps later
}

// pauseCase is when a recurring task is paused; the times are those of the wall clock, in steps.
type pauseCase struct {
	name    string
	at      float64 // when; 0: never
	until   float64 // resumes by itself then, as a part of the outage; 0: by hand, after it
	before  bool    // resumed by hand before the outage
	catchUp bool
}

var pauses = []pauseCase{
	{name: "not paused"},
	{name: "paused all through", at: 3.45},
	{name: "until in the outage", at: 3.45, until: 0.5},
	{name: "until early in the outage", at: 3.45, until: 0.05},
	{name: "resumed before", at: 2.45, before: true},
	{name: "resumed with catch up", at: 3.45, catchUp: true},
}

var outages = []outage{
	{name: "none"},
	{name: "short", stop: 5.6, up: 6.2},
	{name: "missed two", stop: 5.6, up: 7.6},
	{name: "missed many", stop: 5.6, up: 65.6},
	{name: "missed a week", stop: 5.6, up: 7*24*60 + .6},
	{name: "asleep for seven minutes", stop: 5.6, jump: 7 * time.Minute},
	{name: "asleep for ten hours", stop: 5.6, jump: 10 * time.Hour},
}

var steps = []outage{
	{name: "+1s", stop: 5.6, jump: time.Second},
	{name: "-1s", stop: 5.6, jump: -time.Second},
	{name: "+1h", stop: 5.6, jump: time.Hour},
	{name: "-1h", stop: 5.6, jump: -time.Hour},
	{name: "+1d", stop: 5.6, jump: 24 * time.Hour, step: 5 * time.Minute},
	{name: "-1d", stop: 5.6, jump: -24 * time.Hour, step: 5 * time.Minute},
	{name: "+10y", stop: 5.6, jump: 3652 * 24 * time.Hour, step: 20 * time.Minute},
	{name: "-10y and back", stop: 5.6, jump: -3652 * 24 * time.Hour, back: 3652 * 24 * time.Hour, step: 20 * time.Minute},
	{name: "+10y and back", stop: 5.6, jump: 3652 * 24 * time.Hour, back: -3652*24*time.Hour + 2*time.Hour, step: 20 * time.Minute},
}

func TestMatrix(t *testing.T) {
	type world struct {
		p pauseCase
		o outage
	}
	var all []world
	for _, p := range pauses {
		for _, o := range outages {
			all = append(all, world{p, o})
		}
	}
	for _, o := range steps {
		all = append(all, world{pauses[0], o})
		if o.jump > time.Second && o.back == 0 && !testing.Short() {
			for _, p := range pauses[1:3] {
				all = append(all, world{p, o})
			}
		}
	}
	if testing.Short() { // a sample
		seed := uint64(time.Now().UnixNano())
		if s := os.Getenv("DTS_MATRIX_SEED"); s != "" {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			seed = n
		}
		t.Logf("DTS_MATRIX_SEED=%d", seed)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:6]
	}
	for _, x := range all {
		t.Run(x.p.name+"/"+x.o.name, func(t *testing.T) { matrixWorld(t, x.p, x.o) })
	}
}

func matrixWorld(t *testing.T, p pauseCase, o outage) {
	step, cron := time.Minute, "* * * * *"
	if o.step > 0 {
		step, cron = o.step, fmt.Sprintf("*/%d * * * *", int(o.step.Minutes()))
	}
	of := func(n float64) time.Duration { return time.Duration(n * float64(step)).Truncate(time.Second) }
	opts := func(s *sched.Options) { s.Retention = long }
	inWorld(t, opts, func(w *world) {
		epoch := time.Now()
		since := func() time.Duration { return time.Since(epoch) }
		to := func(at time.Duration) { w.settle(at - since()) }
		c := newCrowd(of(2.385))
		w.run.behave(c.run)
		model := &oracle{epoch: epoch.UTC(), lasts: c.lasts, drain: 30 * time.Second}
		// The schedule ends a while after the outage, and then all must come to rest.
		last := epoch.Add(of(12))
		switch {
		case o.up > 0:
			last = epoch.Add(of(o.up + 10))
		case o.jump > 0 && o.back == 0:
			last = last.Add(o.jump)
		case o.back > 0:
			last = last.Add(o.jump + o.back)
		}
		var list []*dts.RecurringTask
		for _, mode := range allModes {
			for _, policy := range allPolicies {
				list = append(list, w.every(cron, func(r *dts.RecurringTask) {
					r.Name = fmt.Sprintf("%s %s", mode, policy)
					r.CatchUpMode, r.OverlapPolicy, r.MisfireAfterSeconds, r.EndTime = mode, policy, (step / 3).Seconds(), last
					if mode == dts.RunAllMissed {
						r.CatchUpLimit, r.CatchUpPacingSeconds = 5, (step / 8).Truncate(time.Second).Seconds()
					}
				}))
			}
		}
		skew := time.Duration(0)
		from := time.Duration(0)
		jump := func(d time.Duration) {
			model.spans = append(model.spans, span{from: from, to: since(), skew: skew})
			from, skew = since(), skew+d
			w.step(d)
			w.nudge()
		}
		pauseTo := time.Time{}
		if p.at > 0 {
			to(of(p.at))
			until := time.Time{}
			switch {
			case p.until == 0:
			case o.up > 0:
				until = epoch.Add(of(o.stop) + time.Duration(p.until*float64(of(o.up-o.stop))).Truncate(time.Second) + 3*time.Second)
			case o.jump > 0:
				until = epoch.Add(of(o.stop) + time.Duration(p.until*float64(o.jump)).Truncate(time.Second) + 3*time.Second)
			default:
				until = epoch.Add(of(6.45))
			}
			model.pause = &pauseOf{from: w.now().UTC()}
			for _, r := range list {
				w.pause(r.ID, until)
			}
			pauseTo = until
		}
		resume := func() {
			for _, r := range list {
				w.resume(r.ID, p.catchUp)
			}
			pauseTo = w.now()
			model.pause.end, model.pause.catchUp = since(), p.catchUp
		}
		if p.before {
			to(of(4.45))
			resume()
		}
		switch {
		case o.up > 0:
			to(of(o.stop))
			model.spans = append(model.spans, span{from: from, to: since(), stops: true})
			w.stop()
			time.Sleep(of(o.up) - since())
			from = since()
			w.start()
			to(of(o.up + .03))
		case o.jump != 0:
			to(of(o.stop))
			jump(o.jump)
			if o.back != 0 {
				to(of(o.stop + 3.1))
				jump(o.back)
			}
		default:
			to(of(7.6))
		}
		if p.at > 0 && p.until == 0 && !p.before {
			w.settle(of(2.3))
			resume()
		}
		if p.at > 0 {
			model.pause.to = pauseTo.UTC()
		}
		w.settle(max(last.Sub(w.now()), 0) + 45*step)
		model.spans = append(model.spans, span{from: from, to: 1 << 61, skew: skew})
		for _, r := range list {
			model.check(w, c, r, epoch.Add(step).UTC(), last.UTC(), step)
		}
		w.atRest()
	})
}

// check compares what became of a recurring task with what the oracle says.
func (o *oracle) check(w *world, c *crowd, r *dts.RecurringTask, first, last time.Time, step time.Duration) {
	w.t.Helper()
	b := w.book(r.ID, step)
	got := append(b.lines(step), b.starts(c)...)
	list, skipped := o.arrivals(r, first, last, step)
	var want []string
	runs := int64(0)
	for _, order := range orders(list) {
		for _, early := range []bool{false, true} {
			v := o.overlap(r.OverlapPolicy, order, early)
			lines := append(verdictLines(order, v, skipped, step), verdictStarts(order, v)...)
			if want == nil || slices.Equal(lines, got) {
				want, runs = lines, 0
				for i, x := range order {
					if x.origin == dts.OriginSchedule && v[i].what != string(dts.ReasonOverlap) {
						runs++
					}
				}
			}
		}
	}
	if diff := differ(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", r.Name, diff)
	}
	after := w.recurring(r.ID)
	if after.RunsCount != runs || after.Status != dts.Completed {
		w.t.Errorf("%s: %d runs are counted, want %d; it is %s", r.Name, after.RunsCount, runs, after.Status)
	}
	if r.OverlapPolicy != dts.OverlapAllow && c.most[r.ID] > 1 {
		w.t.Errorf("%s: %d ran at once", r.Name, c.most[r.ID])
	}
}

// differ shows the lines that only one of two lists has.
func differ(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	out := ""
	for _, x := range want {
		if !slices.Contains(got, x) {
			out += "- " + x + "\n"
		}
	}
	for _, x := range got {
		if !slices.Contains(want, x) {
			out += "+ " + x + "\n"
		}
	}
	return cmp.Or(out, fmt.Sprintf("another order: want %q, got %q", want, got))
}

// starts shows when each task began first, to the second.
func (b book) starts(c *crowd) []string {
	var list []began
	for _, t := range b.tasks {
		if at := c.began[t.ID]; len(at) > 0 {
			list = append(list, began{t.ScheduledAt, t.Origin, at[0]})
		}
	}
	return showStarts(list)
}

type began struct {
	instant time.Time
	origin  dts.Origin
	at      time.Duration
}

func verdictStarts(list []arrival, v []verdict) []string {
	var out []began
	for i, a := range list {
		if v[i].what != string(dts.ReasonOverlap) {
			out = append(out, began{a.instant, a.origin, v[i].began})
		}
	}
	return showStarts(out)
}

func showStarts(list []began) []string {
	slices.SortFunc(list, func(a, b began) int {
		if a.at.Round(time.Second) != b.at.Round(time.Second) {
			return int(a.at.Round(time.Second) - b.at.Round(time.Second))
		}
		return a.instant.Compare(b.instant)
	})
	var out []string
	for _, x := range list {
		out = append(out, fmt.Sprintf("%s %s began at %v", x.instant.Format("2006-01-02 15:04:05"), x.origin, x.at.Round(time.Second)))
	}
	return out
}
