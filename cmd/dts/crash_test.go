package main_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// TestCrash kills the real program with -9, again and again at random moments while tasks are added and run,
// and checks what dts promises: against the API's answers, the database, the commands' own log and the target's.
//
// DTS_CRASH_ROUNDS says how often it is killed, DTS_CRASH_SEED repeats the choices of an earlier test.
func TestCrash(t *testing.T) {
	rounds, seed := 20, rand.Uint64()
	if testing.Short() {
		rounds = 5
	}
	if v := os.Getenv("DTS_CRASH_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("DTS_CRASH_ROUNDS is %q; give a number of at least 1", v)
		}
		rounds = n
	}
	if v := os.Getenv("DTS_CRASH_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("DTS_CRASH_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("DTS_CRASH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))

	s := newServer(t, buildDTS(t), filepath.Join(t.TempDir(), "data"))
	c := &crash{t: t, seed: seed, server: s, target: newTarget(t, seed), runs: newRunLog(t), broken: map[string]int{}}
	c.load = newLoad(s, c.target, c.runs)
	c.launch()
	c.addRecurring()
	for round := 1; round <= rounds && !t.Failed(); round++ {
		c.round(round, rng)
	}
	c.settle()
	code := s.stop(15 * time.Second)
	if code != 0 {
		c.violated("clean stop", "exit code %d after SIGTERM", code)
	}
	c.check()
}

// crash is the state of one TestCrash.
type crash struct {
	t      *testing.T
	seed   uint64
	server *testServer
	target *target
	runs   *runLog
	load   *load

	launches  []time.Time // of every server process; before each but the first one was killed
	recurring []*dts.RecurringTask
	quiet     time.Time      // everything due by then had ended before the server was stopped
	killed    int            // orphans, in all
	broken    map[string]int // promises, and how often
	answers   map[string]*dts.Task
}

// violated reports a broken promise with its evidence.
func (c *crash) violated(rule, format string, args ...any) {
	c.t.Helper()
	if c.broken[rule]++; c.broken[rule] > 5 {
		c.t.Fail()
		return // evidence enough
	}
	c.t.Errorf("DTS_CRASH_SEED=%d: %s: "+format, append([]any{c.seed, rule}, args...)...)
}

func (c *crash) launch() {
	c.t.Helper()
	c.runs.launched(c.t)
	c.launches = append(c.launches, time.Now())
	c.server.start()
}

// addRecurring adds HTTP tasks and a command that are due every second. The command may not overlap, and at
// times takes longer than a second. Two of the HTTP tasks do not make up for all that a longer outage misses.
func (c *crash) addRecurring() {
	c.t.Helper()
	calls := api.RecurringRequest{Spec: httpSpec(c.target.URL + "/recurring/all"), IntervalSeconds: 1}
	latest := api.RecurringRequest{Spec: httpSpec(c.target.URL + "/recurring/latest"), Cron: "* * * * * *", MisfireAfterSeconds: 1}
	none := api.RecurringRequest{Spec: httpSpec(c.target.URL + "/recurring/none"), IntervalSeconds: 1, MisfireAfterSeconds: 1, CatchUpMode: dts.SkipMissed}
	runs := api.RecurringRequest{
		Spec: commandSpec("/bin/sh", "-c", `if [ $(($$ % 4)) = 0 ]; then s=1.3; else s=0.2; fi; exec /bin/sh "$0" "$1" $s none`, c.runs.script, c.runs.path),
		Cron: "* * * * * *", OverlapPolicy: dts.OverlapSkip,
	}
	for _, q := range []api.RecurringRequest{calls, runs, latest, none} {
		made, err := c.server.api.CreateRecurring(c.t.Context(), q)
		if err != nil {
			c.t.Fatal(err)
		}
		c.recurring = append(c.recurring, made.Item)
	}
}

// round adds tasks for a while, kills the server, starts it again and looks for commands that survived.
func (c *crash) round(round int, rng *rand.Rand) {
	t, s, l := c.t, c.server, c.load
	before := l.count()
	l.resend()
	ctx, cancel := context.WithCancel(t.Context())
	var adders sync.WaitGroup
	for i := range 3 {
		r := rand.New(rand.NewPCG(rng.Uint64(), 2))
		adders.Go(func() { l.add(ctx, strconv.Itoa(round)+"-"+strconv.Itoa(i), r) })
	}
	alive := 200*time.Millisecond + time.Duration(rng.Int64N(int64(2300*time.Millisecond)))
	time.Sleep(alive)
	l.dying.Store(true)
	s.kill()
	cancel()
	adders.Wait()

	left := s.processes()
	started := c.unended()
	db := s.database()
	ended := endedAttempts(t, db)
	db.Close()
	if rng.IntN(4) == 0 { // an outage that is long for those that do not make up for it
		time.Sleep(1500*time.Millisecond + time.Duration(rng.IntN(1500))*time.Millisecond)
	}
	c.launch()
	l.dying.Store(false)
	killed, kept := c.checkOrphans(left, started, ended)
	c.killed += killed
	t.Logf("round %2d: %4d tasks acknowledged, killed after %5d ms, %2d orphans of attempts in flight gone, %2d processes of ended ones left alone, ready after %d ms",
		round, l.count()-before, alive.Milliseconds(), killed, kept, time.Since(c.launches[len(c.launches)-1]).Milliseconds())
}

// unended returns the commands that have logged a start and no end.
func (c *crash) unended() map[runLine]bool {
	open := map[int]runLine{}
	for _, l := range c.runs.read(c.t) {
		switch l.event {
		case "start":
			open[l.pid] = l
		case "end":
			delete(open, l.pid)
		case "launch": // of those before, only what the last server ran matters
			clear(open)
		}
	}
	set := map[runLine]bool{}
	for _, l := range open {
		set[l] = true
	}
	return set
}

// endedAttempts reads which attempts have ended.
func endedAttempts(t *testing.T, db *sql.DB) map[run]string {
	t.Helper()
	ended := map[run]string{}
	queryAll(t, db, `SELECT task_id, number, state FROM attempts WHERE state <> 'RUNNING'`, func(rows *sql.Rows) error {
		var r run
		var state string
		err := rows.Scan(&r.task, &r.attempt, &state)
		ended[r] = state
		return err
	})
	return ended
}

// checkOrphans checks, once the server is ready again, that of the processes that its predecessor had left
// those are gone whose attempt was in flight, and no others: a command that has ended may leave a daemon.
func (c *crash) checkOrphans(left []markedProcess, started map[runLine]bool, ended map[run]string) (killed, kept int) {
	type id struct {
		pid   int
		start string
	}
	now := map[id]bool{}
	for _, p := range c.server.processes() {
		now[id{p.pid, p.start}] = true
	}
	for _, p := range left {
		alive, over := now[id{p.pid, p.start}], ended[p.run] != ""
		switch {
		case alive && !over:
			c.violated("no orphan survives", "process %d of task %s attempt %d, in flight at the kill, is alive after the restart", p.pid, p.run.task, p.run.attempt)
		case !alive && over:
			c.violated("what ended commands left is not touched", "process %d of task %s attempt %d, which had ended, is gone", p.pid, p.run.task, p.run.attempt)
		case alive:
			kept++
			syscall.Kill(p.pid, syscall.SIGKILL) // it has served
		default:
			killed++
		}
	}
	for l := range started {
		for _, p := range left {
			if p.pid == l.pid && now[id{p.pid, p.start}] {
				c.violated("no orphan survives", "the command of %q, which logged no end, is alive after the restart", l.text)
			}
		}
	}
	return killed, kept
}

// settle lets everything that is due end, and remembers the API's answers.
func (c *crash) settle() {
	t, s := c.t, c.server
	c.load.resend()
	time.Sleep(1500 * time.Millisecond) // the recurring tasks go on for a while without a crash
	for i, r := range c.recurring {
		p, err := s.api.PauseRecurring(t.Context(), r.ID, api.PauseRequest{Note: "the end of the test"})
		if err != nil {
			t.Fatal(err)
		}
		c.recurring[i] = p
	}
	s.eventually(time.Minute, "everything due to end", func() bool {
		time.Sleep(50 * time.Millisecond)
		now := time.Now()
		due := false
		for task, err := range s.api.AllTasks(t.Context(), dts.TaskFilter{Statuses: []dts.Status{dts.Pending, dts.Running}, Limit: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			due = due || task.Status == dts.Running || !task.RunAt.After(now) || task.RecurringTaskID == ""
		}
		c.quiet = now
		return !due
	})
	c.answers = map[string]*dts.Task{}
	for task, err := range s.api.AllTasks(t.Context(), dts.TaskFilter{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		c.answers[task.ID] = task
	}
	c.checkLedgers()
	c.checkAttempts()
}
