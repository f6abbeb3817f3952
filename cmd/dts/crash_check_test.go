package main_test

import (
	"database/sql"
	"slices"
	"strings"
	"time"

	"dts"
)

// storedTask is a row of the database.
type storedTask struct {
	id, status, target, recurring string
	attempts                      int
	scheduled, runAt              time.Time
}

// check compares what the last server has left with what the target, the commands and the API have told.
func (c *crash) check() {
	t := c.t
	db := c.server.database()
	checkIntegrity(t, db)
	tasks := map[string]storedTask{}
	queryAll(t, db, `SELECT task_id, status, target_type, coalesce(recurring_task_id, ''), attempts, scheduled_at, run_at FROM tasks`, func(rows *sql.Rows) error {
		var k storedTask
		var scheduled, runAt int64
		err := rows.Scan(&k.id, &k.status, &k.target, &k.recurring, &k.attempts, &scheduled, &runAt)
		k.scheduled, k.runAt = time.UnixMicro(scheduled).UTC(), time.UnixMicro(runAt).UTC()
		tasks[k.id] = k
		return err
	})
	ended := endedAttempts(t, db)
	c.checkNothingRuns(db, tasks)
	c.checkAcknowledged(db, tasks)
	c.checkOutcomes(tasks, ended)
	c.checkInstants(db, tasks)
	c.checkCounts(db, tasks)
	deliveries, same := c.checkDeliveries(tasks)
	starts := c.checkCommands(tasks)
	c.checkSurvivors(ended)
	for line := range strings.Lines(c.server.log()) {
		if strings.Contains(line, "level=ERROR") || strings.HasPrefix(line, "panic:") {
			c.violated("no errors in the log", "%s", line)
		}
	}
	lost := 0
	for _, state := range ended {
		if state == string(dts.AttemptLost) {
			lost++
		}
	}
	t.Logf("DTS_CRASH_SEED=%d: %d kills; %d tasks acknowledged, %d of them asked for again; %d tasks in all, %d attempts, %d of them lost; %d requests at the target, %d of them again with the same attempt number, %d commands started, %d orphans killed",
		c.seed, len(c.launches)-1, c.load.count(), c.load.resent, len(tasks), len(ended), lost, deliveries, same, starts, c.killed)
}

// checkNothingRuns: no attempt runs, and no task that was due waits.
func (c *crash) checkNothingRuns(db *sql.DB, tasks map[string]storedTask) {
	queryAll(c.t, db, `SELECT task_id, number FROM attempts WHERE state = 'RUNNING'`, func(rows *sql.Rows) error {
		var id string
		var number int
		err := rows.Scan(&id, &number)
		c.violated("no attempt runs at the end", "task %s attempt %d", id, number)
		return err
	})
	for _, k := range tasks {
		if k.status == string(dts.Running) || k.status == string(dts.Pending) && !k.runAt.After(c.quiet) {
			c.violated("all that was due has ended", "task %s is %s, run_at %s", k.id, k.status, k.runAt)
		}
	}
}

// checkAcknowledged: what was acknowledged is there and ran, as the API says too; no key made two tasks.
func (c *crash) checkAcknowledged(db *sql.DB, tasks map[string]storedTask) {
	for id, a := range c.load.acked {
		k, ok := tasks[id]
		switch answer := c.answers[id]; {
		case !ok:
			c.violated("nothing acknowledged is lost", "task %s, due %s, is not in the database", id, a.due)
		case k.status == string(dts.Cancelled) && (a.maybeCancel || !a.cancel.IsZero()):
		case !a.cancel.IsZero():
			c.violated("a cancel stands", "task %s was cancelled at %s; it is %s", id, a.cancel, k.status)
		case k.status != string(dts.Success) && k.status != string(dts.Failed):
			c.violated("everything acknowledged runs", "task %s is %s", id, k.status)
		case k.attempts == 0:
			c.violated("everything acknowledged runs", "task %s is %s without an attempt", id, k.status)
		case answer == nil:
			c.violated("the API shows every task", "task %s is missing", id)
		case string(answer.Status) != k.status || answer.Attempts != k.attempts:
			c.violated("the API tells what is stored", "task %s is %s after %d attempts, in the database %s after %d", id, answer.Status, answer.Attempts, k.status, k.attempts)
		}
	}
	queryAll(c.t, db, `SELECT idempotency_key, count(*) FROM tasks WHERE idempotency_key IS NOT NULL GROUP BY 1 HAVING count(*) > 1`, func(rows *sql.Rows) error {
		var key string
		var n int
		err := rows.Scan(&key, &n)
		c.violated("one key makes one task", "key %s made %d", key, n)
		return err
	})
}

// checkOutcomes: a task has at most one success, as its last attempt, and only then is it a SUCCESS.
func (c *crash) checkOutcomes(tasks map[string]storedTask, ended map[run]string) {
	for r, state := range ended {
		k := tasks[r.task]
		if state == string(dts.AttemptSuccess) && (r.attempt != k.attempts || k.status != string(dts.Success)) {
			c.violated("one success, the last attempt", "attempt %d of task %s succeeded; the task is %s after %d attempts", r.attempt, r.task, k.status, k.attempts)
		}
	}
	for _, k := range tasks {
		for n := 1; n <= k.attempts; n++ {
			if ended[run{k.id, n}] == "" {
				c.violated("every attempt is recorded", "attempt %d of %d of task %s is not", n, k.attempts, k.id)
			}
		}
		if k.status == string(dts.Success) && ended[run{k.id, k.attempts}] != string(dts.AttemptSuccess) {
			c.violated("one success, the last attempt", "task %s is a SUCCESS; its attempt %d is %q", k.id, k.attempts, ended[run{k.id, k.attempts}])
		}
	}
}

// instants are all seconds from which a recurring task is due, up to the end of the test.
func (c *crash) instants(r *dts.RecurringTask) []time.Time {
	at := r.StartTime
	if r.Cron != "" {
		at = r.CreatedAt.Truncate(time.Second).Add(time.Second)
	}
	var list []time.Time
	for ; !at.After(c.quiet); at = at.Add(time.Second) {
		list = append(list, at.UTC())
	}
	return list
}

// checkInstants: every due instant has one task or lies in a skip range, and there are tasks at no other time.
func (c *crash) checkInstants(db *sql.DB, tasks map[string]storedTask) {
	for _, r := range c.recurring {
		at := map[time.Time][]string{}
		for _, k := range tasks {
			if k.recurring == r.ID {
				at[k.scheduled] = append(at[k.scheduled], k.id)
			}
		}
		skipped := map[time.Time]bool{}
		queryAll(c.t, db, `SELECT from_at, to_at, count FROM skips WHERE recurring_task_id = '`+r.ID+`'`, func(rows *sql.Rows) error {
			var from, to, count int64
			err := rows.Scan(&from, &to, &count)
			if count != 1+(to-from)/time.Second.Microseconds() {
				c.violated("a skip counts its instants", "recurring task %s: %d from %d to %d", r.ID, count, from, to)
			}
			for i := from; i <= to; i += time.Second.Microseconds() {
				skipped[time.UnixMicro(i).UTC()] = true
			}
			return err
		})
		instants := c.instants(r)
		ran := 0
		for _, i := range instants {
			switch ids := at[i]; {
			case len(ids) > 1:
				c.violated("no instant has two tasks", "%s of recurring task %s has %v", i, r.ID, ids)
			case len(ids) == 0 && !skipped[i]:
				c.violated("every instant has a task or a skip", "%s of recurring task %s has neither", i, r.ID)
			case len(ids) == 1 && tasks[ids[0]].status == string(dts.Skipped) && !skipped[i]:
				c.violated("every skip has a reason", "%s of recurring task %s: task %s was skipped and no skip is recorded", i, r.ID, ids[0])
			case len(ids) == 1 && !skipped[i]:
				ran++
			}
			delete(at, i)
		}
		for i, ids := range at {
			if !i.After(c.quiet) {
				c.violated("tasks are at due instants only", "%s of recurring task %s has %v", i, r.ID, ids)
			}
		}
		c.t.Logf("recurring %s, misfire after %g s, %s: %d instants due, %d ran, %d skipped", r.TargetType, r.MisfireAfterSeconds, r.CatchUpMode, len(instants), ran, len(instants)-ran)
	}
}

// checkCounts: what a recurring task counts is what ran.
func (c *crash) checkCounts(db *sql.DB, tasks map[string]storedTask) {
	for _, r := range c.recurring {
		var runs, completed, wantRuns, wantCompleted int
		if err := db.QueryRow(`SELECT runs_count, completed_count FROM recurring_tasks WHERE recurring_task_id = ?`, r.ID).Scan(&runs, &completed); err != nil {
			c.t.Fatal(err)
		}
		for _, k := range tasks {
			if k.recurring != r.ID {
				continue
			}
			switch k.status {
			case string(dts.Success):
				wantRuns++
				wantCompleted++
			case string(dts.Failed):
				wantRuns++
			}
		}
		if runs != wantRuns || completed != wantCompleted {
			c.violated("runs are counted once", "recurring task %s counts %d runs, %d of them completed; there are %d and %d", r.ID, runs, completed, wantRuns, wantCompleted)
		}
	}
}

// checkLedgers asks the API for the ledger: one entry for every due instant.
func (c *crash) checkLedgers() {
	for _, r := range c.recurring {
		var told []time.Time
		for o, err := range c.server.api.AllOccurrences(c.t.Context(), r.ID) {
			if err != nil {
				c.t.Fatal(err)
			}
			if o.Skip == nil {
				told = append(told, o.ScheduledAt.UTC())
				continue
			}
			for i := o.Skip.From; !i.After(o.Skip.To); i = i.Add(time.Second) {
				told = append(told, i.UTC())
			}
		}
		told = slices.DeleteFunc(told, func(i time.Time) bool { return i.After(c.quiet) })
		slices.SortFunc(told, time.Time.Compare)
		if want := c.instants(r); !slices.Equal(told, want) {
			c.violated("the ledger names every instant once", "recurring task %s: %d entries for %d instants: %v", r.ID, len(told), len(want), told)
		}
	}
}

// checkAttempts asks the API for the attempts of tasks that needed more than one.
func (c *crash) checkAttempts() {
	asked := 0
	for id, task := range c.answers {
		if task.Attempts < 2 || asked == 50 {
			continue
		}
		asked++
		list, err := c.server.api.Attempts(c.t.Context(), id)
		if err != nil || len(list) != task.Attempts || list[len(list)-1].CompletedAt.IsZero() {
			c.violated("the API shows every attempt", "task %s: %d of %d, %v", id, len(list), task.Attempts, err)
		}
	}
}

// crashed reports whether a server was killed, and the next one launched, between two moments.
func (c *crash) crashed(from, to time.Time) bool {
	return slices.ContainsFunc(c.launches[1:], func(at time.Time) bool { return at.After(from) && !at.After(to) })
}

// checkDeliveries: in the target's own log a task comes again only as a later attempt or after a kill, never
// again with AT_MOST_ONCE; what the database calls a success was answered so; an instant has one task.
func (c *crash) checkDeliveries(tasks map[string]storedTask) (all, same int) {
	list := c.target.deliveries()
	byTask := map[string][]delivery{}
	byInstant := map[string]string{}
	for _, d := range list {
		byTask[d.run.task] = append(byTask[d.run.task], d)
		if _, ok := tasks[d.run.task]; !ok {
			c.violated("the target gets what is stored", "a request for task %s, which does not exist", d.run.task)
		}
		if !strings.HasPrefix(d.path, "/recurring/") {
			continue
		}
		instant := d.path + " " + d.scheduled
		if id := byInstant[instant]; id != "" && id != d.run.task {
			c.violated("no instant has two tasks", "the target got tasks %s and %s for %s", id, d.run.task, instant)
		}
		byInstant[instant] = d.run.task
	}
	for id, list := range byTask {
		if c.load.acked[id].once && len(list) > 1 {
			c.violated("at most once", "task %s came %d times: %v", id, len(list), list)
		}
		if at := c.load.acked[id].cancel; !at.IsZero() && list[len(list)-1].at.After(at) {
			c.violated("a cancel stands", "task %s was cancelled at %s: %v", id, at, list)
		}
		for i := 1; i < len(list); i++ {
			was, is := list[i-1], list[i]
			later := is.run.attempt > was.run.attempt
			if !later {
				same++
			}
			switch {
			case is.run.attempt < was.run.attempt:
				c.violated("attempts come in order", "task %s: %v", id, list)
			case c.crashed(was.at, is.at):
			case !later:
				c.violated("a repeat is a later attempt or comes after a kill", "task %s: %v", id, list)
			case was.status == 200:
				c.violated("no repeat after a success without a kill", "task %s: %v", id, list)
			}
		}
	}
	for id, k := range tasks {
		if k.status != string(dts.Success) || k.target != string(dts.HTTPCallback) {
			continue
		}
		got := slices.ContainsFunc(byTask[id], func(d delivery) bool { return d.run.attempt == k.attempts && d.status == 200 })
		if !got {
			c.violated("a success is one at the target", "task %s succeeded with attempt %d; the target got %v", id, k.attempts, byTask[id])
		}
	}
	return len(list), same
}

// checkCommands: the same of the commands' log; and that no run of a task goes on beside the next one.
func (c *crash) checkCommands(tasks map[string]storedTask) int {
	type last struct {
		line   runLine
		launch int
		over   bool
	}
	byTask := map[string]last{}
	done := map[run]bool{}
	count := map[string]int{}
	starts, launch := 0, 0
	for _, l := range c.runs.read(c.t) {
		was, again := byTask[l.run.task]
		switch l.event {
		case "launch":
			launch++
		case "start":
			starts++
			count[l.run.task]++
			if _, ok := tasks[l.run.task]; !ok {
				c.violated("what runs is stored", "%q: there is no such task", l.text)
			}
			switch {
			case !again || was.launch < launch:
			case l.run.attempt <= was.line.run.attempt:
				c.violated("a repeat is a later attempt or comes after a kill", "%q after %q", l.text, was.line.text)
			case was.over:
				c.violated("no repeat after a success without a kill", "%q after %q had ended", l.text, was.line.text)
			}
			byTask[l.run.task] = last{l, launch, false}
		case "end":
			done[l.run] = true
			if was.line.pid != l.pid {
				c.violated("an orphan is gone before its task runs again", "%q after %q", l.text, was.line.text)
			}
			was.over = true
			byTask[l.run.task] = was
		}
	}
	for id, n := range count {
		if c.load.acked[id].once && n > 1 {
			c.violated("at most once", "command %s started %d times", id, n)
		}
	}
	for id, k := range tasks {
		if k.status == string(dts.Success) && k.target == string(dts.Command) && !done[run{id, k.attempts}] {
			c.violated("a success is one of the command", "task %s succeeded with attempt %d, and the command did not log its end", id, k.attempts)
		}
	}
	return starts
}

// checkSurvivors: when all is over nothing runs but what commands that ended by themselves have left.
func (c *crash) checkSurvivors(ended map[run]string) {
	for _, p := range c.server.processes() {
		if state := ended[p.run]; state != string(dts.AttemptSuccess) && state != string(dts.AttemptFailed) {
			c.violated("no orphan survives", "process %d of task %s attempt %d (%s) is alive at the end", p.pid, p.run.task, p.run.attempt, state)
		}
	}
}
