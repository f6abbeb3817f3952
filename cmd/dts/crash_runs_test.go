package main_test

import (
	"slices"
	"strings"
	"time"

	"dts"
)

// crashed reports whether a server was killed, and the next one launched, between two moments.
func (c *crash) crashed(from, to time.Time) bool {
	return slices.ContainsFunc(c.launches[1:], func(at time.Time) bool { return at.After(from) && !at.After(to) })
}

// checkDeliveries: in the target's own log a task comes again only as a later attempt or after a kill, never
// again with AT_MOST_ONCE; what the database calls a success was answered so; an instant has one task.
func (c *crash) checkDeliveries(tasks map[string]storedTask, ended map[run]string) (all, same int) {
	list := c.target.deliveries()
	byTask := map[string][]delivery{}
	byInstant := map[string]string{}
	for _, d := range list {
		byTask[d.run.task] = append(byTask[d.run.task], d)
		if _, ok := tasks[d.run.task]; !ok {
			c.violated(i1, "a request for task %s, which does not exist", d.run.task)
		}
		if !strings.HasPrefix(d.path, "/recurring/") {
			continue
		}
		instant := d.path + " " + d.scheduled
		if id := byInstant[instant]; id != "" && id != d.run.task {
			c.violated(i3, "the target got tasks %s and %s for %s", id, d.run.task, instant)
		}
		byInstant[instant] = d.run.task
	}
	for id, list := range byTask {
		if c.load.acked[id].once && len(list) > 1 {
			c.violated(i9, "task %s came %d times: %v", id, len(list), list)
		}
		// What was on its way when a cancel killed it may come to be logged after the cancel's answer.
		last, at := list[len(list)-1], c.load.acked[id].cancel
		onItsWay := ended[last.run] == string(dts.AttemptCancelled) && last.at.Before(at.Add(time.Second))
		if !at.IsZero() && last.at.After(at) && !onItsWay {
			c.violated(i1, "task %s was cancelled at %s: %v", id, at, list)
		}
		for i := 1; i < len(list); i++ {
			was, is := list[i-1], list[i]
			later := is.run.attempt > was.run.attempt
			if !later {
				same++
			}
			switch {
			case is.run.attempt < was.run.attempt:
				c.violated(i5, "task %s: %v", id, list)
			case c.crashed(was.at, is.at):
			case !later:
				c.violated(i5, "task %s: %v", id, list)
			case was.status == 200:
				c.violated(i2, "task %s: %v", id, list)
			}
		}
	}
	for id, k := range tasks {
		if k.status != string(dts.Success) || k.target != string(dts.HTTPCallback) {
			continue
		}
		got := slices.ContainsFunc(byTask[id], func(d delivery) bool { return d.run.attempt == k.attempts && d.status == 200 })
		if !got {
			c.violated(i2, "task %s succeeded with attempt %d; the target got %v", id, k.attempts, byTask[id])
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
				c.violated(i1, "%q: there is no such task", l.text)
			}
			switch {
			case !again || was.launch < launch:
			case l.run.attempt <= was.line.run.attempt:
				c.violated(i5, "%q after %q", l.text, was.line.text)
			case was.over:
				c.violated(i2, "%q after %q had ended", l.text, was.line.text)
			}
			byTask[l.run.task] = last{l, launch, false}
		case "end":
			done[l.run] = true
			if was.line.pid != l.pid {
				c.violated(i10, "%q after %q", l.text, was.line.text)
			}
			was.over = true
			byTask[l.run.task] = was
		}
	}
	for id, n := range count {
		if c.load.acked[id].once && n > 1 {
			c.violated(i9, "command %s started %d times", id, n)
		}
	}
	for id, k := range tasks {
		if k.status == string(dts.Success) && k.target == string(dts.Command) && !done[run{id, k.attempts}] {
			c.violated(i2, "task %s succeeded with attempt %d, and the command did not log its end", id, k.attempts)
		}
	}
	return starts
}

// checkSurvivors: when all is over nothing runs but what commands that ended by themselves have left.
func (c *crash) checkSurvivors(ended map[run]string) {
	for _, p := range c.server.processes() {
		if state := ended[p.run]; state != string(dts.AttemptSuccess) && state != string(dts.AttemptFailed) {
			c.violated(i10, "process %d of task %s attempt %d (%s) is alive at the end", p.pid, p.run.task, p.run.attempt, state)
		}
	}
}
