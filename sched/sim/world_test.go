package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dts"
	"dts/sched"
	"dts/sched/timer"
)

// world is one history: a database, targets, a clock, and one process after another.
type world struct {
	seed   uint64
	script *rand.Rand // what the history does; the driver alone draws from it
	chance *rand.Rand // what happens to accesses; under the database's mutex
	tally  *tally

	db   *database
	p    *proc
	opts sched.Options

	asked int // recurring tasks that the driver has asked for
	ids   atomic.Int64

	zombies sync.WaitGroup // dead processes that are being cleared away
	verbs   sync.WaitGroup // requests under way

	// Under the database's mutex.
	recurring  []string // ids of the recurring tasks that were asked for
	serving    *proc    // the newest process that has started
	weather    weather
	fault      error
	faultAt    time.Time
	busyUntil  time.Time
	calmFrom   time.Time     // since when nothing has gone wrong, by the steady clock; in the future: it does now
	skew       time.Duration // of the wall clock
	newest     time.Time     // the latest that the wall clock has shown
	stepped    bool          // the clock was set back
	orphans    []*liveRun
	orphanHunt bool
	late       []func() error // writes of dead processes
	tasks      map[string]*note
	plans      map[string]*schedule
	started    map[attempt]bool
	violations []string
	trace      []line
	epochs     int
	groups     int  // process groups made
	named      int  // tasks named
	roomy      bool // there is a slot for every run
}

type attempt struct {
	task          string
	number, epoch int
}

// note is what the history knows of a task, apart from the database.
type note struct {
	acked     bool      // its creation was acknowledged
	flight    int       // requests that may change it, under way
	touched   bool      // a request has tried to change it
	touchedAt time.Time // when the last one ended
	requeues  int       // requests that may have made it run once more
	requeuing int       // those under way
	deletes   int       // requests that may have deleted it
	cancelled bool      // a cancel was acknowledged and nothing has tried to bring it back
	starts    int
}

// line is one line of what happened, made into text only when it is needed.
type line struct {
	at   time.Time
	wall time.Time
	task string
	text string
	args []any
}

func newWorld(seed uint64, t *tally) *world {
	w := &world{
		seed: seed, script: rand.New(rand.NewPCG(seed, 1)), chance: rand.New(rand.NewPCG(seed, 2)), tally: t,
		db: newDatabase(), tasks: map[string]*note{}, plans: map[string]*schedule{}, started: map[attempt]bool{},
	}
	w.db.onPlan, w.db.twice = w.planned, w.plannedTwice
	return w
}

// now is the wall clock.
func (w *world) now() time.Time {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	return w.wall()
}

// wall is the wall clock for those who hold the mutex.
func (w *world) wall() time.Time {
	now := time.Now().Add(w.skew)
	switch {
	case now.After(w.newest):
		w.newest = now
	case now.Before(w.newest) && w.p.behind:
		w.calmFrom = time.Now().Add(time.Minute) // the clock is not believed, and that is looked at each minute
	}
	return now
}

func (w *world) log(task, text string, args ...any) {
	w.trace = append(w.trace, line{time.Now(), time.Now().Add(w.skew), task, text, args})
}

func (w *world) violate(invariant, text string, args ...any) {
	s := invariant + ": " + fmt.Sprintf(text, args...)
	w.violations = append(w.violations, s)
	w.log("", "VIOLATED %s", s)
}

// trouble says that something went wrong just now.
func (w *world) trouble() { w.calmFrom = time.Now() }

// of returns the note of a task.
func (w *world) of(id string) *note {
	n := w.tasks[id]
	if n == nil {
		n = &note{}
		w.tasks[id] = n
	}
	return n
}

// launch starts processes until one takes requests.
func (w *world) launch() {
	for try := 1; ; try++ {
		w.epochs++
		p := &proc{w: w, epoch: w.epochs, dead: make(chan struct{}), live: map[string]*liveRun{}}
		o := w.opts
		o.Store, o.Runner, o.Now = p, p, w.now
		o.Refused = func(err error) bool { return errors.Is(err, errRefused) }
		o.NewTimer = func() timer.Timer { return timer.NewPortableClock(w.now) }
		o.Node = dts.Node{ID: "node-1", BootID: "boot-1"}
		o.Failpoint = p.step
		o.NoHostLimits = true // all calls are of one host, and what waits for it would hide what is late
		o.KillOrphans = w.killOrphans
		p.s = sched.New(o)
		w.db.mu.Lock()
		p.behind = time.Now().Add(w.skew).Before(w.newest)
		w.p = p
		w.trouble()
		w.log("", "start of process %d", p.epoch)
		w.db.mu.Unlock()
		if p.began = w.now(); p.s.Start(context.Background()) == nil {
			w.db.mu.Lock()
			if w.calmFrom.Before(time.Now()) {
				w.trouble()
			}
			w.serving = p
			w.db.mu.Unlock()
			return
		}
		w.db.mu.Lock()
		if try == 5 { // someone has looked after the disk
			w.weather = weather{}
		}
		p.kill("a failed start") // it has begun nothing that goes on
		w.db.mu.Unlock()
		w.zombies.Go(p.pending.Wait)
		time.Sleep(time.Second)
	}
}

// bury ends what a dead process still runs: its goroutines find neither database nor target.
func (w *world) bury(p *proc) {
	w.zombies.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.s.Stop(ctx) // of a dead process: whatever it says
		p.pending.Wait()
	})
}

// crash kills the process now, unless it is dead already, and clears it away.
func (w *world) crash() {
	w.db.mu.Lock()
	w.p.kill("any moment")
	w.db.mu.Unlock()
	w.bury(w.p)
}

// stop ends the process as SIGTERM does.
func (w *world) stop() {
	w.tally[stops]++
	p := w.p
	w.db.mu.Lock()
	p.stopAt = time.Now()
	w.db.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = p.s.Stop(ctx) // fails with the store; what is lost then is recovered
	p.pending.Wait()
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	if p.gone {
		return
	}
	if len(p.live) > 0 {
		w.violate("stop", "%d attempts still ran after a clean stop", len(p.live))
	}
	w.log("", "stopped")
	p.gone = true
	close(p.dead)
}

// running reports whether the process lives.
func (w *world) running() bool {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	return !w.p.gone
}

// killOrphans stands for the real one: it asks about each process that was left behind.
func (w *world) killOrphans(_ context.Context, known []dts.Process, inFlight func(string, int) bool) error {
	w.db.mu.Lock()
	list := w.orphans
	w.orphans, w.orphanHunt = nil, true
	w.db.mu.Unlock()
	var missed []*liveRun
	for _, r := range list {
		found := inFlight(r.task.ID, r.number)
		for _, k := range known {
			found = found || k.PGID == r.process.PGID
		}
		if !found {
			missed = append(missed, r)
		}
	}
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	w.orphanHunt = false
	w.tally[orphans] += int64(len(list))
	if w.p.gone { // it died while it looked: the next one looks again
		w.orphans = append(w.orphans, list...)
		return nil
	}
	for _, r := range missed {
		w.violate("I10", "attempt %d of %s left a process behind that was not recognised", r.number, w.name(r.task))
	}
	return nil
}

func (w *world) name(t *dts.Task) string {
	if t.RecurringTaskID == "" {
		return t.Name
	}
	return t.Name + "@" + clockTime(t.ScheduledAt) + "/" + string(t.Origin)
}

func clockTime(t time.Time) string { return t.Format("02T15:04:05.000") }

// report is the history as text.
func (w *world) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d:\n", w.seed)
	for _, v := range w.violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	from := 0
	if len(w.trace) > 5000 {
		from = len(w.trace) - 5000
		fmt.Fprintf(&b, "(%d lines before)\n", from)
	}
	for _, l := range w.trace[from:] {
		fmt.Fprintf(&b, "%s %s %s %s\n", clockTime(l.at), clockTime(l.wall), l.task, fmt.Sprintf(l.text, l.args...))
	}
	return b.String()
}
