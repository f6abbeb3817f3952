package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"dts"
	"dts/web/api"
)

// fairnessScenario asks who is served how much when there is more to do than can be done, and whether work that hangs
// keeps other work from starting.
var fairnessScenario = benchScenario{
	name: "fairness",
	about: func(o benchOptions) string {
		return fmt.Sprintf("for %s each, calls that take %s: twice what the slots can do, a third of each priority; as much of HIGH and one LOW each %s; and a queue of %d that hang beside one of %d/s. Ceilings: what is promised; and the same without what hangs",
			o.span("fairness"), fairCall, fairLowEvery, o.number("hanging"), fairHealthyRate)
	},
	sizes: []benchSize{
		{flag: "fairness", span: 20 * time.Second, longest: 10 * time.Minute, usage: "fairness: measure each part for `TIME`"},
		{flag: "hanging", number: 10_000, max: 1_000_000, usage: "fairness: `N` tasks that hang, in a queue of their own"},
	},
	aims: map[string][]benchAim{
		"shares, farthest from 5:3:1":                {{below: 5}},
		"wait of a LOW task, most of what it may be": {{below: 100}},
		"HIGH without end, longest wait of LOW":      {{ratioBelow: 1}},
		"healthy queue, started in time":             {{atLeast: 100}},
		"healthy queue, late, p99":                   {{below: 20}},
	},
	long: true,
	run:  func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.fairness(ctx) },
}

const (
	fairCall        = 200 * time.Millisecond // of a call in the first two parts
	fairOverload    = 2                      // so many times what the slots can do comes in
	fairLowEvery    = 250 * time.Millisecond // between two LOW tasks beside HIGH ones
	fairHealthyRate = 100                    // tasks a second beside those that hang
	fairHang        = 30 * time.Second       // after which what hangs times out
	fairWarmUp      = 2000
	// fairLowFront is among how many starts a LOW task is that has come to the front of its lane: see package lanes.
	fairLowFront = 30
)

func (b *bench) fairness(ctx context.Context) ([]benchFigure, error) {
	perSecond, err := b.warmUp(ctx, fairWarmUp)
	if err != nil {
		return nil, err
	}
	slots, err := b.httpSlots(ctx)
	if err != nil {
		return nil, err
	}
	capacity := float64(slots) / fairCall.Seconds()
	figures := []benchFigure{{"slots for HTTP calls", "calls", float64(slots), 0}}
	overload, err := b.overloadFigures(ctx, capacity, perSecond)
	if err != nil {
		return nil, err
	}
	flood, err := b.floodFigures(ctx, capacity, perSecond)
	if err != nil {
		return nil, err
	}
	hanging, err := b.hangingFigures(ctx)
	return slices.Concat(figures, overload, flood, hanging), err
}

// httpSlots is how many HTTP calls the server makes at a time.
func (b *bench) httpSlots(ctx context.Context) (int, error) {
	st, err := b.server.Status(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range st.Pools {
		if p.TargetType == dts.HTTPCallback {
			return p.Slots, nil
		}
	}
	return 0, fmt.Errorf("the server does not say how many HTTP calls it makes at a time")
}

// overloadFigures measure the shares of the priorities, and how long LOW waits, while more of each comes in than its share.
func (b *bench) overloadFigures(ctx context.Context, capacity, perSecond float64) ([]benchFigure, error) {
	n := int(fairOverload * capacity * b.span("fairness").Seconds())
	tasks, from, err := b.runPaced(ctx, n, perSecond, func(i int) int { return i % len(priorities) })
	if err != nil {
		return nil, err
	}
	span := b.span("fairness")
	shares := sharesBetween(tasks, from.Add(span/5), from.Add(span)) // a fifth, until each lane has a backlog
	figures := []benchFigure{{"starts", "tasks/s", perSecondOf(tasks), capacity}}
	for rank, p := range priorities {
		figures = append(figures, benchFigure{"share of nine, " + string(p), "starts", shares[rank], 0})
	}
	longest, bound, part := lowWaits(tasks)
	return append(figures,
		benchFigure{"shares, farthest from 5:3:1", "%", farthest(shares), 0},
		benchFigure{"longest wait of a LOW task", "s", longest.Seconds(), bound.Seconds()},
		benchFigure{"wait of a LOW task, most of what it may be", "%", 100 * part, 0}), nil
}

// floodFigures measure how long a LOW task waits that is alone beside HIGH ones of which there are always more.
func (b *bench) floodFigures(ctx context.Context, capacity, perSecond float64) ([]benchFigure, error) {
	n := int(fairOverload * capacity * b.span("fairness").Seconds())
	each := max(int(float64(n)*fairLowEvery.Seconds()/b.span("fairness").Seconds()), 1)
	tasks, from, err := b.runPaced(ctx, n, perSecond, func(i int) int {
		if i%each == each-1 {
			return dts.Low.Rank()
		}
		return dts.High.Rank()
	})
	if err != nil {
		return nil, err
	}
	tasks = slices.DeleteFunc(tasks, func(t herdTask) bool { // at first there are free slots
		return t.rank == dts.Low.Rank() && t.due.Before(from.Add(b.span("fairness")/5))
	})
	longest, bound, _ := lowWaits(tasks)
	return []benchFigure{{"HIGH without end, longest wait of LOW", "ms", milliseconds(longest), milliseconds(bound)}}, nil
}

// runPaced runs n calls that take fairCall and are due evenly from an instant on; rank says the priority of each.
func (b *bench) runPaced(ctx context.Context, n int, perSecond float64, rank func(i int) int) (tasks []herdTask, from time.Time, err error) {
	if err := b.sink.reset(ctx); err != nil {
		return nil, from, err
	}
	from = dts.Micros(time.Now().Add(time.Duration(4*float64(n)/perSecond*float64(time.Second)) + herdLead))
	config := slowTarget(b.sink.url, fairCall)
	ids, err := b.server.createAll(ctx, n, func(i int) api.TaskRequest {
		return api.TaskRequest{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: config, Priority: priorities[rank(i)]},
			RunAt: api.At(dts.Micros(from.Add(time.Duration(i) * b.span("fairness") / time.Duration(n))))}
	})
	if err != nil {
		return nil, from, err
	}
	if time.Until(from) < herdLead/2 {
		return nil, from, fmt.Errorf("creating %d tasks took longer than the warm-up had let expect; try again on a quieter machine", n)
	}
	limit := time.Until(from) + 2*fairOverload*b.span("fairness") + time.Minute
	if err := b.sink.wait(ctx, n, limit); err != nil {
		return nil, from, err
	}
	if err := b.server.settled(ctx, time.Minute); err != nil {
		return nil, from, err
	}
	tasks = make([]herdTask, n)
	err = b.server.finished(ctx, ids, func(i int, t *dts.Task) {
		tasks[i] = herdTask{rank(i), t.DueAt, t.StartedAt, t.SLAMet != nil && *t.SLAMet}
	})
	return tasks, from, err
}

// sharesBetween counts the starts of each priority between two instants. The three make nine together.
func sharesBetween(tasks []herdTask, from, to time.Time) (shares [len(priorities)]float64) {
	sum := 0.0
	for _, t := range tasks {
		if t.start.After(from) && t.start.Before(to) {
			shares[t.rank]++
			sum++
		}
	}
	for rank := range shares {
		shares[rank] *= 9 / max(sum, 1)
	}
	return shares
}

// lowWaits returns the longest wait of a LOW task and what it may be at most; and, over all of them, the largest part of
// what it may be that a wait has been. At most it is the time of 30 starts for itself and for each LOW task before it, at
// the pace at which tasks started meanwhile.
func lowWaits(tasks []herdTask) (longest, bound time.Duration, part float64) {
	starts := make([]time.Time, len(tasks))
	var low []herdTask
	for i, t := range tasks {
		starts[i] = t.start
		if t.rank == dts.Low.Rank() {
			low = append(low, t)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	slices.SortFunc(low, func(a, b herdTask) int { return cmp.Or(a.start.Compare(b.start), a.due.Compare(b.due)) })
	lowStarts := make([]time.Time, len(low))
	for i, t := range low {
		lowStarts[i] = t.start
	}
	for i, t := range low {
		meanwhile := countUpTo(starts, t.start) - countUpTo(starts, t.due)
		if meanwhile == 0 {
			continue // it did not wait for anything
		}
		before := i - countUpTo(lowStarts[:i], t.due) // LOW tasks that were due first, and waited still
		ratio := float64(meanwhile) / float64(fairLowFront*(before+1))
		part = max(part, ratio)
		if wait := t.start.Sub(t.due); wait > longest {
			longest, bound = wait, time.Duration(math.Round(float64(wait)/ratio))
		}
	}
	return longest, bound, part
}

// countUpTo is how many of the sorted instants are not after t.
func countUpTo(sorted []time.Time, t time.Time) int {
	n, _ := slices.BinarySearchFunc(sorted, t, func(a, b time.Time) int {
		if a.After(b) {
			return 1
		}
		return -1
	})
	return n
}

// hangingFigures measure how late the tasks of one queue are, alone and beside a queue whose calls hang.
func (b *bench) hangingFigures(ctx context.Context) ([]benchFigure, error) {
	alone, started, err := b.healthy(ctx)
	if err != nil {
		return nil, err
	}
	if started < 1 {
		return nil, fmt.Errorf("of the healthy queue alone only %.0f %% started; try again on a quieter machine", 100*started)
	}
	config := slowTarget(b.sink.url, 2*fairHang)
	_, err = b.server.createAll(ctx, b.number("hanging"), func(int) api.TaskRequest {
		return api.TaskRequest{RunAt: api.At(dts.Micros(time.Now())), Spec: dts.Spec{Queue: "hanging", TargetType: dts.HTTPCallback, TargetConfig: config,
			TimeoutSeconds: fairHang.Seconds(), Retry: dts.Retry{MaxAttempts: 1}}}
	})
	if err != nil {
		return nil, err
	}
	beside, started, err := b.healthy(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := b.server.Bulk(ctx, dts.BulkChange{Verb: dts.BulkCancel, Filter: dts.TaskFilter{Queue: "hanging"}}); err != nil { // else the server waits for them when it stops
		return nil, err
	}
	figures := []benchFigure{{"healthy queue, started in time", "%", 100 * started, 0}}
	return append(figures, spreadFigures("healthy queue, late", beside, alone)...), nil
}

// healthy runs the tasks of a queue that are due evenly, and returns how late they started, and what part of them had when
// all but fairGrace had passed since the last one was due. What had not started counts as late as it was then.
func (b *bench) healthy(ctx context.Context) (late []time.Duration, started float64, err error) {
	span := b.span("fairness")
	n := max(int(span.Seconds()*fairHealthyRate), 1)
	from := time.Now().Add(herdLead)
	ids, err := b.server.createAll(ctx, n, func(i int) api.TaskRequest {
		return api.TaskRequest{RunAt: api.At(dts.Micros(from.Add(time.Duration(i) * time.Second / fairHealthyRate))),
			Spec: dts.Spec{Queue: "healthy", TargetType: dts.HTTPCallback, TargetConfig: httpTarget(b.sink.url, i)}}
	})
	if err != nil {
		return nil, 0, err
	}
	if err := sleepUntil(ctx, from.Add(span+fairGrace)); err != nil {
		return nil, 0, err
	}
	mine := make(map[string]bool, n)
	for _, id := range ids {
		mine[id] = true
	}
	now, count := time.Now(), 0
	for t, err := range b.server.AllTasks(ctx, dts.TaskFilter{Queue: "healthy", Limit: 1000}) {
		if err != nil {
			return nil, 0, err
		}
		switch {
		case !mine[t.ID]:
			continue
		case t.StartedAt.IsZero():
			late = append(late, now.Sub(t.DueAt))
		default:
			late = append(late, max(t.StartedAt.Sub(t.DueAt), 0))
			count++
		}
		if len(late) == n {
			break
		}
	}
	if len(late) < n {
		return nil, 0, fmt.Errorf("the server lists %d of %d tasks", len(late), n)
	}
	return late, float64(count) / float64(n), nil
}

// fairGrace is how long a task of the healthy queue may be late and still count as started in time.
const fairGrace = time.Second

// slowTarget is the target_config of a call that the sink answers after a while.
func slowTarget(url string, after time.Duration) json.RawMessage {
	return json.RawMessage(`{"url":` + strconv.Quote(url+"/slow/"+strconv.FormatInt(after.Milliseconds(), 10)) + `}`)
}
