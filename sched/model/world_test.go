package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"dts"
	"dts/migrations"
	"dts/sched"
	"dts/sched/timer"
	"dts/store"
	"dts/store/sqlite"
)

// world is one server after another over the same database file, in fake time.
type world struct {
	path  string
	began time.Time
	ids   map[int]string // of the tasks that were created, by their numbers

	db  *sqlite.DB
	cut *cuttable
	st  *store.Store
	s   *sched.Scheduler
	run *runner
}

// newWorld starts the first server over an empty database.
func newWorld(path string) (*world, error) {
	w := &world{path: path, began: time.Now(), ids: map[int]string{}}
	return w, w.start()
}

func (w *world) start() error {
	db, err := sqlite.Open(context.Background(), w.path, sqlite.Options{Migrations: migrations.FS, Readers: 1})
	if err != nil {
		return err
	}
	w.db, w.cut, w.run = db, &cuttable{Backend: db, left: -1}, newRunner()
	w.st = store.New(w.cut, store.Options{})
	w.s = sched.New(sched.Options{
		Store: w.st, Runner: w.run, Refused: func(err error) bool { return errors.Is(err, store.ErrRefused) },
		NewTimer: func() timer.Timer { return timer.NewPortableClock(time.Now) }, Now: time.Now,
		Boottime: func() time.Duration { return time.Since(w.began) }, Node: dts.Node{ID: "node-1", BootID: "boot-1"},
		DrainTimeout: time.Second, NoHostLimits: true, // what hangs is of one host
		Log: slog.New(slog.DiscardHandler),
	})
	return w.s.Start(context.Background())
}

// stop ends the server as SIGTERM does.
func (w *world) stop() error {
	return errors.Join(w.s.Stop(context.Background()), w.st.Close())
}

// crash ends the server at this instant: nothing of what it still does has an effect.
func (w *world) crash() error {
	w.cut.off()
	close(w.run.dead)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.s.Stop(ctx) // it reaches nothing any more
	_ = w.st.Close()
	return w.db.Close()
}

// settle lets time pass, and waits until everything that is due then is done.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// cuttable is a database that can be cut off from the server that uses it.
type cuttable struct {
	store.Backend
	mu   sync.RWMutex
	gone bool
	left int // so many writes are still done; -1: all of them

	at    time.Time // of the last write, in fake time
	times int       // writes at that instant
}

// mostAtOnce is more than a server writes at one instant of fake time, unless it tries the same again and again.
const mostAtOnce = 2000

var errCut = fmt.Errorf("%w: the server has crashed", store.ErrUnavailable)

// off cuts it off, after what is being written.
func (c *cuttable) off() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

// after cuts it off when n more writes have been done.
func (c *cuttable) after(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = n
}

func (c *cuttable) Query(ctx context.Context, l store.Level, s store.Stmt) (store.Rows, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.gone {
		return nil, errCut
	}
	return c.Backend.Query(ctx, l, s)
}

func (c *cuttable) Apply(ctx context.Context, batch ...store.Stmt) ([]store.Result, error) {
	c.mu.Lock() // the store sends one at a time
	defer c.mu.Unlock()
	if now := time.Now(); !now.Equal(c.at) {
		c.at, c.times = now, 0
	}
	if c.times++; c.times > mostAtOnce {
		panic(fmt.Sprintf("difference: %d writes at one instant", c.times))
	}
	if c.left == 0 {
		c.gone = true
	}
	if c.gone {
		return nil, errCut
	}
	if c.left > 0 {
		c.left--
	}
	return c.Backend.Apply(ctx, batch...)
}

// runner is the target. It does with each attempt what the task's endings say.
type runner struct {
	dead chan struct{}

	mu    sync.Mutex
	live  map[string]*live
	wrong []string // what must not happen
}

// live is an attempt that blocks.
type live struct {
	number int
	since  time.Time
	end    chan ending
}

func newRunner() *runner {
	return &runner{dead: make(chan struct{}), live: map[string]*live{}}
}

var lost = dts.Outcome{State: dts.AttemptLost, Error: "lost"}

func (r *runner) Run(ctx context.Context, j dts.Job) dts.Outcome {
	r.mu.Lock()
	name := j.Task.Name
	if r.live[name] != nil {
		r.wrong = append(r.wrong, fmt.Sprintf("attempt %d of task %s starts while attempt %d runs", j.Number, name, r.live[name].number))
	}
	e, err := endingOf(j)
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
	}
	if e != blocks {
		r.mu.Unlock()
		return e.outcome()
	}
	l := &live{number: j.Number, since: time.Now(), end: make(chan ending, 1)}
	r.live[name] = l
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.live, name)
		r.mu.Unlock()
	}()
	select {
	case <-r.dead:
		return lost
	case <-ctx.Done():
		if context.Cause(ctx) == dts.ErrRunCancelled {
			return dts.Outcome{State: dts.AttemptCancelled, Error: "cancelled"}
		}
		return lost
	case e := <-l.end:
		return e.outcome()
	}
}

// config is a target that makes these endings of a task's attempts.
func config(endings []ending) []byte {
	list := make([]string, len(endings))
	for i, e := range endings {
		list[i] = string(e)
	}
	b, err := json.Marshal(dts.HTTPTarget{URL: "http://127.0.0.1/", Body: strings.Join(list, ",")})
	if err != nil {
		panic(err)
	}
	return b
}

// endingOf is what is to become of an attempt.
func endingOf(j dts.Job) (ending, error) {
	t, err := j.Task.HTTP()
	if err != nil {
		return fatal, err
	}
	list := strings.Split(t.Body, ",")
	return ending(list[min(j.Number, len(list))-1]), nil
}

func (e ending) outcome() dts.Outcome {
	switch e {
	case fails:
		return dts.Outcome{State: dts.AttemptFailed, Retryable: true, Error: "answered 500", HTTPStatus: 500}
	case fatal:
		return dts.Outcome{State: dts.AttemptFailed, Error: "answered 400", HTTPStatus: 400}
	}
	return dts.Outcome{State: dts.AttemptSuccess}
}
