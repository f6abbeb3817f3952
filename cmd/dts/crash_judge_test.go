package main_test

import (
	"database/sql"
	"testing"
	"time"

	"dts"
	"dts/web/api"
	"dts/web/client"
)

// judge compares what servers have left with what the target, the commands and the API have told. One server
// that is broken again and again has one, and so has a cluster.
type judge struct {
	t      *testing.T
	replay func() string         // how to make the same choices again
	api    func() *client.Client // of a server that should answer
	target *target
	runs   *runLog
	load   *load

	// disturbed reports whether something happened between two moments after which what ran at the first may run
	// again at the second: a server was killed, or lost its shards.
	disturbed func(from, to time.Time) bool
	// late reports whether a process that had been stopped went on just before, and may then have sent what it
	// was about to send when it was stopped. nil: never.
	late  func(at time.Time) bool
	lates []time.Time // when such requests came

	recurring []*dts.RecurringTask
	quiet     time.Time // everything due by then had ended before the end
	answers   map[string]*dts.Task
	broken    map[string]int // promises, and how often
	counts    map[string]int // what happened, for the log
}

// violated reports a broken promise with its evidence.
func (j *judge) violated(rule, format string, args ...any) {
	j.t.Helper()
	if j.broken[rule]++; j.broken[rule] > 5 {
		j.t.Fail()
		return // evidence enough
	}
	j.t.Errorf("%s: "+format+" (%s)", append(append([]any{rule}, args...), j.replay())...)
}

// addRecurring adds HTTP tasks and a command that are due every second. The command may not overlap, and at
// times takes longer than a second. Two of the HTTP tasks do not make up for all that a longer outage misses.
func (j *judge) addRecurring() {
	j.t.Helper()
	calls := api.RecurringRequest{Spec: httpSpec(j.target.URL + "/recurring/all"), IntervalSeconds: 1}
	latest := api.RecurringRequest{Spec: httpSpec(j.target.URL + "/recurring/latest"), Cron: "* * * * * *", MisfireAfterSeconds: 1}
	none := api.RecurringRequest{Spec: httpSpec(j.target.URL + "/recurring/none"), IntervalSeconds: 1, MisfireAfterSeconds: 1, CatchUpMode: dts.SkipMissed}
	runs := api.RecurringRequest{
		Spec: commandSpec("/bin/sh", "-c", `if [ $(($$ % 4)) = 0 ]; then s=1.3; else s=0.2; fi; exec /bin/sh "$0" "$1" $s none`, j.runs.script, j.runs.path),
		Cron: "* * * * * *", OverlapPolicy: dts.OverlapSkip,
	}
	for _, q := range []api.RecurringRequest{calls, runs, latest, none} {
		made, err := j.api().CreateRecurring(j.t.Context(), q)
		if err != nil {
			j.t.Fatal(err)
		}
		j.recurring = append(j.recurring, made.Item)
	}
}

// settle lets everything that is due end, and remembers the API's answers.
func (j *judge) settle() {
	t := j.t
	j.load.resend()
	time.Sleep(1200 * time.Millisecond) // the recurring tasks go on for a while without a fault
	j.recurring = append(j.recurring, j.load.recurring...)
	for i, r := range j.recurring {
		if !r.EndTime.IsZero() {
			continue
		}
		p, err := j.api().PauseRecurring(t.Context(), r.ID, api.PauseRequest{Note: "the end of the test"})
		if err != nil {
			t.Fatal(err)
		}
		j.recurring[i] = p
	}
	// A lost attempt may have been the last of many: the longest wait is for the delays of tasks that came last.
	eventually(t, 2*time.Minute, "everything due to end; "+j.replay(), func() bool {
		time.Sleep(50 * time.Millisecond)
		now := time.Now()
		due := false
		for task, err := range j.api().AllTasks(t.Context(), dts.TaskFilter{Statuses: []dts.Status{dts.Pending, dts.Running}, Limit: 1000}) {
			if err != nil {
				t.Fatal(err)
			}
			due = due || task.Status == dts.Running || !task.RunAt.After(now) || !j.paused(task.RecurringTaskID)
		}
		j.quiet = now
		return !due
	})
	j.answers = map[string]*dts.Task{}
	for task, err := range j.api().AllTasks(t.Context(), dts.TaskFilter{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		j.answers[task.ID] = task
	}
	j.checkLedgers()
	j.checkAttempts()
}

// paused reports whether it is a recurring task that settle has paused: its tasks stay as they are.
func (j *judge) paused(id string) bool {
	for _, r := range j.recurring {
		if r.ID == id {
			return r.EndTime.IsZero()
		}
	}
	return false
}

// check judges a copy of the database that was left at the end, and returns how each attempt in it ended.
func (j *judge) check(db *sql.DB) map[run]string {
	var said string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		j.violated(i8, "PRAGMA integrity_check says %q, %v", said, err)
	}
	tasks := map[string]storedTask{}
	queryAll(j.t, db, `SELECT task_id, status, target_type, coalesce(recurring_task_id, ''), attempts, scheduled_at, run_at FROM tasks`, func(rows *sql.Rows) error {
		var k storedTask
		var scheduled, runAt int64
		err := rows.Scan(&k.id, &k.status, &k.target, &k.recurring, &k.attempts, &scheduled, &runAt)
		k.scheduled, k.runAt = time.UnixMicro(scheduled).UTC(), time.UnixMicro(runAt).UTC()
		tasks[k.id] = k
		return err
	})
	ended := endedAttempts(j.t, db)
	j.checkNothingRuns(db, tasks)
	j.checkAcknowledged(db, tasks)
	j.checkRefused(db)
	j.checkOutcomes(tasks, ended)
	j.checkAttemptTimes(db)
	j.checkInstants(db, tasks)
	j.checkCounts(db, tasks)
	j.checkDependencies(db)
	deliveries, same := j.checkDeliveries(tasks, ended)
	starts := j.checkCommands(tasks)
	lost := 0
	for _, state := range ended {
		if state == string(dts.AttemptLost) {
			lost++
		}
	}
	j.t.Logf("%d tasks acknowledged, %d asked for again; %d in all, %d attempts, %d of them lost; %d requests at the target, %d of them again with the same attempt number, %d commands started; %v",
		j.load.count(), j.load.resent, len(tasks), len(ended), lost, deliveries, same, starts, j.counts)
	for what, n := range map[string]int{"attempts": len(ended), "lost attempts": lost, "deliveries": deliveries, "sent again under the same number": same, "commands": starts, "tasks": len(tasks)} {
		j.counts[what] += n
	}
	return ended
}
