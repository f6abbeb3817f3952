package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dts"
	"dts/web/api"
	"dts/web/client"
)

// acked is a task that the server has acknowledged.
type acked struct {
	due     time.Time
	command bool
	once    bool // AT_MOST_ONCE

	cancel      time.Time // when a cancel was acknowledged: nothing may run after this
	maybeCancel bool      // a cancel was sent that had no answer
}

// load adds tasks of many kinds to a server that dies now and then, and remembers what was acknowledged.
type load struct {
	t       *testing.T
	api     func() *client.Client // of a server, for the next request
	url     string                // of the target
	runs    *runLog
	pause   time.Duration // the longest between two requests of one that adds
	mayFail atomic.Bool   // the server may be dead, or its disk full: requests may fail

	mu        sync.Mutex
	acked     map[string]acked           // by task id
	unsure    map[string]api.TaskRequest // by idempotency key: sent, and not acknowledged
	refused   map[string]error           // by name: tasks of which the server said that nothing was changed
	recurring []*dts.RecurringTask       // those that were acknowledged
	resent    int
	named     int
}

func newLoad(t *testing.T, server func() *client.Client, tg *target, runs *runLog) *load {
	return &load{t: t, api: server, url: tg.URL, runs: runs, pause: 25 * time.Millisecond, acked: map[string]acked{}, unsure: map[string]api.TaskRequest{}, refused: map[string]error{}}
}

// httpSpec is a call of the target's path.
func httpSpec(url string) dts.Spec {
	b, _ := json.Marshal(dts.HTTPTarget{URL: url})
	return dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: b}
}

func commandSpec(argv ...string) dts.Spec {
	b, _ := json.Marshal(dts.CommandTarget{Argv: argv})
	return dts.Spec{TargetType: dts.Command, TargetConfig: b}
}

// add adds tasks until ctx is done. Several may run at once, with different names.
func (l *load) add(ctx context.Context, name string, rng *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		switch k := rng.IntN(100); {
		case k < 5:
			l.addBulk(rng)
		case k == 5:
			l.addRecurring(name)
		default:
			q := l.request(rng)
			if rng.IntN(2) == 0 {
				q.IdempotencyKey = fmt.Sprintf("%s-%d", name, n)
			}
			id := l.send(q)
			switch rng.IntN(10) {
			case 0:
				l.cancel(id)
			case 1:
				l.runNow(id)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rng.Int64N(int64(l.pause)))):
		}
	}
}

// plain is the simplest of tasks.
func (l *load) plain() api.TaskRequest {
	q := api.TaskRequest{Spec: httpSpec(l.url + "/")}
	q.Name = l.name()
	return q
}

// name returns one that no other task has.
func (l *load) name() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.named++
	return fmt.Sprintf("load %d", l.named)
}

// request makes up a task.
func (l *load) request(rng *rand.Rand) api.TaskRequest {
	var q api.TaskRequest
	if rng.IntN(10) < 6 {
		q.Spec = httpSpec(l.url + "/moody")
	} else {
		leave := "none"
		switch rng.IntN(6) {
		case 0:
			leave = "child"
		case 1:
			leave = "session"
		}
		q.Spec = commandSpec(l.runs.argv(fmt.Sprintf("0.%03d", rng.IntN(500)), leave)...)
	}
	q.Name = l.name()
	if rng.IntN(6) == 0 {
		q.Delivery = dts.AtMostOnce
	} else {
		q.Retry = dts.Retry{MaxAttempts: 4, Backoff: dts.Fixed, BaseDelayMS: 200}
	}
	if rng.IntN(2) == 0 {
		q.Delay = api.Delay(fmt.Sprintf("%dms", 500+rng.IntN(2500)))
	}
	return q
}

// send creates a task and returns its id, "" when it was not acknowledged.
func (l *load) send(q api.TaskRequest) string {
	id, _ := l.trySend(q)
	return id
}

func (l *load) trySend(q api.TaskRequest) (string, error) { return l.sendTo(l.api(), q) }

func (l *load) sendTo(server *client.Client, q api.TaskRequest) (string, error) {
	made, err := server.CreateTask(context.Background(), q)
	if err != nil {
		l.failed(err, q)
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unsure, q.IdempotencyKey)
	l.acked[made.Item.ID] = acked{due: made.Item.RunAt, command: q.TargetType == dts.Command, once: q.Delivery == dts.AtMostOnce}
	return made.Item.ID, nil
}

// runNow starts a task that may wait, run or have ended.
func (l *load) runNow(id string) {
	if id == "" {
		return
	}
	if _, err := l.api().DoTask(context.Background(), id, dts.RunNow); err != nil && dts.CodeOf(err) != dts.ErrConflict {
		l.failed(err)
	}
}

// cancel cancels a task, which may wait, run or have ended.
func (l *load) cancel(id string) {
	if id == "" {
		return
	}
	task, err := l.api().DoTask(context.Background(), id, dts.Cancel)
	l.mu.Lock()
	a := l.acked[id]
	switch {
	case err == nil && task.Status == dts.Cancelled:
		a.cancel = time.Now()
	case err == nil || dts.CodeOf(err) == dts.ErrConflict: // it ended first
		err = nil
	default:
		a.maybeCancel = true
	}
	l.acked[id] = a
	l.mu.Unlock()
	if err != nil {
		l.failed(err)
	}
}

// failed judges a request that was not acknowledged: that is allowed only while the server is being broken. One
// with an idempotency key will be sent again. Of the others, those that were refused for good are remembered.
func (l *load) failed(err error, list ...api.TaskRequest) {
	if !l.mayFail.Load() {
		l.t.Errorf("a request failed although nothing was wrong with the server: %v", err)
	}
	none := dts.CodeOf(err) == dts.ErrFull || dts.CodeOf(err) == dts.ErrUnavailable
	l.mu.Lock()
	for _, q := range list {
		switch {
		case q.IdempotencyKey != "":
			l.unsure[q.IdempotencyKey] = q
		case none:
			l.refused[q.Name] = err
		}
	}
	l.mu.Unlock()
	if errors.Is(err, client.ErrNoServer) {
		time.Sleep(20 * time.Millisecond)
	}
}

// addRecurring adds a recurring task with a few instants.
func (l *load) addRecurring(name string) {
	q := api.RecurringRequest{Spec: httpSpec(l.url + "/recurring/" + name), IntervalSeconds: 1, EndTime: api.At(time.Now().Add(2500 * time.Millisecond))}
	made, err := l.api().CreateRecurring(context.Background(), q)
	if err != nil {
		l.failed(err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recurring = append(l.recurring, made.Item)
}

func (l *load) addBulk(rng *rand.Rand) {
	list := make([]api.TaskRequest, 1+rng.IntN(20))
	for i := range list {
		list[i] = l.request(rng)
	}
	a, err := l.api().CreateTasks(context.Background(), list)
	if err != nil {
		l.failed(err, list...)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, item := range a.Items {
		l.acked[item.TaskID] = acked{due: item.RunAt, command: list[i].TargetType == dts.Command, once: list[i].Delivery == dts.AtMostOnce}
	}
}

// resend sends again what had no answer.
func (l *load) resend() {
	l.mu.Lock()
	list := make([]api.TaskRequest, 0, len(l.unsure))
	for _, q := range l.unsure {
		list = append(list, q)
	}
	l.resent += len(list)
	l.mu.Unlock()
	for _, q := range list {
		l.send(q)
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}
