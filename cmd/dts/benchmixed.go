package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"dts"
	"dts/web/api"
)

// mixedScenario asks how long reads take while everything else goes on.
var mixedScenario = benchScenario{
	name: "mixed",
	about: func(o benchOptions) string {
		return fmt.Sprintf("for %s: %d POST /tasks, %d fires and %d reads a second, while retention deletes and backups run. Ceiling: the same reads and creates alone",
			span(o.span("mixed")), mixedCreates, mixedFires, mixedReads)
	},
	sizes: []benchSize{{flag: "mixed", span: 30 * time.Second, longest: mixedLongest, usage: "mixed: for a `DURATION`"}},
	aims: map[string][]benchAim{
		"reads, p99":           {{below: 10}},
		"deleted by retention": {{atLeast: 1}},
		"backups":              {{atLeast: 1}},
	},
	run: func(ctx context.Context, b *bench) ([]benchFigure, error) { return b.mixed(ctx) },
}

const (
	mixedCreates  = 500  // a second; every other one is due at once
	mixedFires    = 2000 // a second, beside those
	mixedReads    = 300  // a second
	mixedFinished = 3000 // tasks that have run before, for each second
	mixedPending  = 1000 // tasks that are pending all the time, among those that are read
	mixedHourly   = 50   // recurring tasks whose upcoming occurrences are read
	createsConns  = 64   // connections of creates at most
	readsConns    = 16   // and of reads

	mixedLead      = 3 * time.Second  // from the creation of what fires to the first: more than dts claims ahead
	retentionLooks = time.Minute      // after its start, and every so often, the server deletes what is too much
	retentionPart  = 3                // one part in so many of the time has passed when it does
	minRetention   = 10 * time.Second // in less time than this retention is not waited for
	mixedLongest   = 90 * time.Second // in more it would look twice, and delete what is read
)

// mixedKeep is how many finished tasks retention leaves: fewer than have run before, more than run until it
// looks, so that it deletes none that is read.
func mixedKeep(d time.Duration) int {
	return max(int(d.Seconds()*(mixedFires+mixedCreates))/2, 100)
}

func (b *bench) mixed(ctx context.Context) ([]benchFigure, error) {
	// The server starts again with a limit for retention.
	b.serve.Flags = []string{"--keep-rows", strconv.Itoa(mixedKeep(b.span("mixed")))}
	m := &mixedRun{bench: b, started: time.Now()}
	if err := b.restart(ctx); err != nil {
		return nil, err
	}
	m.creates, m.reads = newRawAPI(b.server, createsConns), newRawAPI(b.server, readsConns)
	defer m.creates.close()
	defer m.reads.close()
	createdIn, err := m.prepare(ctx)
	if err != nil {
		return nil, err
	}
	quiet, err := m.load(ctx, time.Now().Add(bareLead), b.span("mixed")/10)
	if err != nil {
		return nil, fmt.Errorf("alone: %w", err)
	}
	begin, err := m.plan(ctx, createdIn)
	if err != nil {
		return nil, err
	}
	deleted, err := b.server.metric(ctx, deletedMetric)
	if err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, begin.Add(-bareLead)); err != nil {
		return nil, err
	}
	backups, err := startBackups(b.server.database(), filepath.Join(b.serve.Dir, "backup.db"))
	if err != nil {
		return nil, err
	}
	var full mixedLoad
	err = b.server.profiled(func() (err error) {
		full, err = m.load(ctx, begin, b.span("mixed"))
		return err
	})
	took, backupErr := backups.stop()
	if err := errors.Join(err, backupErr); err != nil {
		return nil, err
	}
	after, err := b.server.metric(ctx, deletedMetric)
	if err != nil {
		return nil, err
	}
	late, err := m.lateness(ctx, begin)
	if err != nil {
		return nil, err
	}
	figures := spreadFigures("reads", full.reads(allReads), quiet.reads(allReads))
	for kind, name := range readKinds {
		figures = append(figures, benchFigure{"read of " + name + ", p99", "ms", p99(full.reads(kind)), p99(quiet.reads(kind))})
	}
	figures = append(figures, spreadFigures("creates", full.creates, quiet.creates)...)
	figures = append(figures, spreadFigures("at the sink", late, nil)...)
	return append(figures,
		benchFigure{"deleted by retention", "tasks", after - deleted, 0},
		benchFigure{"backups", "copies", float64(len(took)), 0},
		benchFigure{"backup, median", "ms", median(took), 0}), nil
}

const deletedMetric = "dts_tasks_deleted_total"

func p99(list []time.Duration) float64 {
	if len(list) == 0 {
		return 0
	}
	return milliseconds(percentile(slices.Sorted(slices.Values(list)), 0.99))
}

// mixedRun is one run of the scenario.
type mixedRun struct {
	*bench
	started        time.Time // of the server
	creates, reads *rawAPI
	tasks          []string // that are read
	hourly         []string // recurring ones
	fires          []string
	fired          int // requests that the sink gets, the fires and the creates that are due at once
}

// prepare makes what is read and what retention deletes. It returns how long the creation of one task took.
func (m *mixedRun) prepare(ctx context.Context) (createdIn time.Duration, err error) {
	rate, err := m.warmUp(ctx, max(int(m.span("mixed").Seconds()*mixedFinished), 1))
	if err != nil {
		return 0, err
	}
	now := time.Now()
	m.tasks, err = m.server.createAll(ctx, mixedPending, func(i int) api.TaskRequest { return m.task(i, now.Add(time.Hour)) })
	if err != nil {
		return 0, err
	}
	for i := range mixedHourly {
		r, err := m.server.CreateRecurring(ctx, api.RecurringRequest{
			Spec: m.task(i, now).Spec, Cron: api.Expressions(hourly(now.Add(idleGap), time.Hour-2*idleGap, i, mixedHourly))})
		if err != nil {
			return 0, fmt.Errorf("create recurring tasks: %w", err)
		}
		m.hourly = append(m.hourly, r.Item.ID)
	}
	return time.Duration(float64(time.Second) / rate), nil
}

func (m *mixedRun) task(i int, at time.Time) api.TaskRequest {
	return api.TaskRequest{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: httpTarget(m.sink.url, i)}, RunAt: api.At(at)}
}

// plan creates the tasks that fire, evenly from begin on. It begins so that retention looks in between.
func (m *mixedRun) plan(ctx context.Context, createdIn time.Duration) (begin time.Time, err error) {
	n := max(int(m.span("mixed").Seconds()*mixedFires), 1)
	soonest := time.Now().Add(mixedLead + 2*createdIn*time.Duration(n))
	begin = soonest
	if m.span("mixed") >= minRetention {
		begin = m.started.Add(retentionLooks - m.span("mixed")/retentionPart)
		for begin.Before(soonest) {
			begin = begin.Add(retentionLooks)
		}
	}
	begin = dts.Micros(begin)
	m.fires, err = m.server.createAll(ctx, n, func(i int) api.TaskRequest { return m.task(i, m.due(begin, i)) })
	if err == nil && time.Until(begin) < mixedLead/2 {
		err = errors.New("creating the tasks took longer than there was time for; try again on a quieter machine")
	}
	m.tasks = append(m.tasks, m.fires...)
	m.fired += n
	return begin, err
}

// due is when fire i is due.
func (m *mixedRun) due(begin time.Time, i int) time.Time {
	return dts.Micros(begin.Add(time.Duration(i) * time.Second / mixedFires))
}

// mixedLoad is how long each request took.
type mixedLoad struct {
	all     []time.Duration // reads, in the order in which they were sent
	creates []time.Duration
}

// load sends reads and creates for a time.
func (m *mixedRun) load(ctx context.Context, begin time.Time, d time.Duration) (l mixedLoad, err error) {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		l.all, err = openLoop(both, max(int(d.Seconds()*mixedReads), readTurn), begin, time.Second/mixedReads, m.read)
		if err != nil {
			cancel(err)
		}
	})
	wg.Go(func() {
		var err error
		l.creates, err = openLoop(both, max(int(d.Seconds()*mixedCreates), 1), begin, time.Second/mixedCreates, m.post)
		if err != nil {
			cancel(err)
		}
	})
	wg.Wait()
	m.fired += len(l.creates) / 2
	return l, context.Cause(both)
}

func (m *mixedRun) post(ctx context.Context, i int) error {
	at := time.Now()
	if i%2 == 0 {
		at = at.Add(time.Hour)
	}
	_, err := m.creates.do(ctx, http.MethodPost, "/tasks", taskBody(nil, i, m.sink.url, at))
	return err
}

// Kinds of reads.
const (
	readTask = iota
	readList
	readPending
	readCounts
	readUpcoming

	allReads = -1
)

var (
	readKinds = [...]string{"one task", "the newest 100", "100 pending", "the counts", "upcoming"}
	// readOrder is the order in which they come, again and again.
	readOrder = [...]int{readTask, readList, readTask, readPending, readTask, readCounts, readTask, readList, readTask, readUpcoming}
)

const readTurn = len(readOrder)

func (m *mixedRun) read(ctx context.Context, i int) error {
	var path string
	switch readOrder[i%readTurn] {
	case readTask:
		path = "/tasks/" + m.tasks[rand.N(len(m.tasks))]
	case readList:
		path = "/tasks?limit=100"
	case readPending:
		path = "/tasks?limit=100&status=PENDING"
	case readCounts:
		path = "/stats"
	case readUpcoming:
		path = "/recurring-tasks/" + m.hourly[rand.N(len(m.hourly))] + "/upcoming"
	}
	_, err := m.reads.do(ctx, http.MethodGet, path, nil)
	return err
}

// reads returns how long reads of a kind took.
func (l *mixedLoad) reads(kind int) (list []time.Duration) {
	for i, d := range l.all {
		if kind == allReads || kind == readOrder[i%readTurn] {
			list = append(list, d)
		}
	}
	return list
}

// lateness returns how late the fires came to the sink.
func (m *mixedRun) lateness(ctx context.Context, begin time.Time) ([]time.Duration, error) {
	// Of the creates half are due in an hour, so the tasks do not all end: the sink says when enough have come.
	if err := m.sink.wait(ctx, m.fired, time.Minute); err != nil {
		return nil, err
	}
	came, err := m.sink.arrivals(ctx)
	if err != nil {
		return nil, err
	}
	late := make([]time.Duration, len(m.fires))
	for i, id := range m.fires {
		at, ok := came[id]
		if !ok {
			return nil, fmt.Errorf("task %s did not come to the sink", id)
		}
		late[i] = at.Sub(m.due(begin, i))
	}
	return late, nil
}
