package main_test

import (
	"database/sql"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dts"
)

// wreck is what a server that ended has left.
type wreck struct {
	processes []markedProcess
	unended   map[runLine]bool // commands that have logged a start and no end
	ended     map[run]string   // attempts
	running   []run            // attempts that the database calls RUNNING
}

// bury looks at what a server that has just ended left behind, and checks all that must hold at any moment.
func (c *crash) bury() {
	c.t.Helper()
	db, remove := c.server.openCopy()
	defer remove()
	// What this test has killed may take a moment to go.
	processes := slices.DeleteFunc(c.server.processes(), func(p markedProcess) bool { return c.served[p] })
	w := wreck{processes: processes, unended: c.unended(), ended: endedAttempts(c.t, db)}
	launched := c.launches[len(c.launches)-1]
	queryAll(c.t, db, `SELECT task_id, number, started_at FROM attempts WHERE state = 'RUNNING'`, func(rows *sql.Rows) error {
		var r run
		var started int64
		err := rows.Scan(&r.task, &r.attempt, &started)
		w.running = append(w.running, r)
		if at := time.UnixMicro(started); c.ready && at.Before(launched) {
			c.violated(i6, "attempt %d of task %s, started at %s, is RUNNING in a server that was launched at %s and got ready", r.attempt, r.task, at.UTC(), launched.UTC())
		}
		return err
	})
	c.left = w
	c.checkEnded(db, w.ended)
	c.checkStockSQLite()
}

// checkEnded: what had ended when an earlier server was killed is still there, as it was.
func (c *crash) checkEnded(db *sql.DB, ended map[run]string) {
	for r, was := range c.seenAttempts {
		if is := ended[r]; is != was {
			c.violated(i5, "attempt %d of task %s had ended as %s and is now %q", r.attempt, r.task, was, is)
		}
	}
	c.seenAttempts = ended
	now := map[string]string{}
	queryAll(c.t, db, `SELECT task_id, status || ' after ' || attempts FROM tasks WHERE completed_at IS NOT NULL`, func(rows *sql.Rows) error {
		var id, status string
		err := rows.Scan(&id, &status)
		now[id] = status
		return err
	})
	for id, was := range c.seenTasks {
		if is := now[id]; is != was {
			c.violated(i5, "task %s had ended as %s and is now %q", id, was, is)
		}
	}
	c.seenTasks = now
}

// checkStockSQLite lets SQLite's own program look at a copy of the database.
func (c *crash) checkStockSQLite() {
	c.t.Helper()
	stock, err := exec.LookPath("sqlite3")
	if err != nil {
		if len(c.launches) == 1 {
			c.t.Log("THE DATABASE IS NOT CHECKED BY THE STOCK SQLITE: there is no sqlite3 command")
		}
		return
	}
	path, remove := c.server.copyDatabase()
	defer remove()
	out, err := exec.Command(stock, path, "PRAGMA integrity_check").CombinedOutput()
	if said := strings.TrimSpace(string(out)); err != nil || said != "ok" {
		c.violated(i8, "%s: PRAGMA integrity_check says %q, %v", stock, said, err)
	}
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
	queryAll(t, db, `SELECT task_id, number, state FROM all_attempts WHERE state <> 'RUNNING'`, func(rows *sql.Rows) error {
		var r run
		var state string
		err := rows.Scan(&r.task, &r.attempt, &state)
		if ended[r] != "" {
			err = fmt.Errorf("attempt %d of task %s is there twice", r.attempt, r.task)
		}
		ended[r] = state
		return err
	})
	return ended
}

// checkOrphans checks, once the server is ready again, that of the processes that its predecessor had left
// those are gone whose attempt was in flight, and no others: a command that has ended may leave a daemon.
func (c *crash) checkOrphans() {
	type id struct {
		pid   int
		start string
	}
	now := map[id]bool{}
	for _, p := range c.server.processes() {
		now[id{p.pid, p.start}] = true
	}
	for _, p := range c.left.processes {
		alive, state := now[id{p.pid, p.start}], c.left.ended[p.run]
		over := state != "" && state != string(dts.AttemptLost)
		switch {
		case alive && !over:
			c.violated(i10, "process %d of task %s attempt %d, in flight at the kill (%q), is alive after the restart", p.pid, p.run.task, p.run.attempt, state)
		case !alive && (state == string(dts.AttemptSuccess) || state == string(dts.AttemptFailed)):
			is, err := c.server.api.Task(c.t.Context(), p.run.task)
			c.violated(i10, "process %d of task %s attempt %d, which had ended as %s, was left by it and is gone; the task is now %+v, %v", p.pid, p.run.task, p.run.attempt, state, is, err)
		case alive:
			c.counts["daemons spared"]++
			syscall.Kill(p.pid, syscall.SIGKILL)
			c.served[p] = true
		default:
			c.counts["orphans killed"]++
		}
	}
	for l := range c.left.unended {
		for _, p := range c.left.processes {
			if p.pid == l.pid && now[id{p.pid, p.start}] {
				c.violated(i10, "the command of %q, which logged no end, is alive after the restart", l.text)
			}
		}
	}
	c.left = wreck{}
}

// checkAll judges what the last server of an epoch has left.
func (c *crash) checkAll() {
	c.checkStockSQLite()
	db, remove := c.server.openCopy()
	defer remove()
	ended := c.check(db)
	c.checkEnded(db, ended)
	c.checkSurvivors(ended)
	c.checkLog()
}

// checkLog: without a failing disk there is no error in the log, and with one there are none but for it.
func (c *crash) checkLog() {
	for line := range strings.Lines(c.server.log()) {
		bad := strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:")
		if strings.Contains(line, "level=ERROR") {
			bad = bad || !c.faults || strings.Contains(line, "is lost") || strings.Contains(line, "damaged")
		}
		if bad {
			c.violated(clean, "%s", strings.TrimSuffix(line, "\n"))
		}
	}
}

// crashed reports whether a server was killed, and the next one launched, between two moments.
func (c *crash) crashed(from, to time.Time) bool {
	return slices.ContainsFunc(c.launches[1:], func(at time.Time) bool { return at.After(from) && !at.After(to) })
}

// checkSurvivors: when all is over nothing runs but what commands that ended by themselves have left.
func (c *crash) checkSurvivors(ended map[run]string) {
	for _, p := range c.server.processes() {
		if state := ended[p.run]; state != string(dts.AttemptSuccess) && state != string(dts.AttemptFailed) {
			c.violated(i10, "process %d of task %s attempt %d (%s) is alive at the end", p.pid, p.run.task, p.run.attempt, state)
		}
	}
}
