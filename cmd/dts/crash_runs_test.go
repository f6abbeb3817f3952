package main_test

import (
	"slices"
	"strings"
	"time"

	"dts"
)

// checkDeliveries: in the target's own log a task comes again only as a later attempt or after a kill, never
// again with AT_MOST_ONCE; what the database calls a success was answered so; an instant has one task.
func (j *judge) checkDeliveries(tasks map[string]storedTask, ended map[run]string) (all, same int) {
	list := j.target.deliveries()
	byTask := map[string][]delivery{}
	byInstant := map[string]string{}
	for _, d := range list {
		byTask[d.run.task] = append(byTask[d.run.task], d)
		if _, ok := tasks[d.run.task]; !ok {
			j.violated(i1, "a request for task %s, which does not exist", d.run.task)
		}
		if !strings.HasPrefix(d.path, "/recurring/") {
			continue
		}
		instant := d.path + " " + d.scheduled
		if id := byInstant[instant]; id != "" && id != d.run.task {
			j.violated(i3, "the target got tasks %s and %s for %s", id, d.run.task, instant)
		}
		byInstant[instant] = d.run.task
	}
	for id, list := range byTask {
		list = j.withoutLate(list)
		if j.load.acked[id].once && len(list) > 1 {
			j.violated(i9, "task %s came %d times: %v", id, len(list), list)
		}
		// What was on its way when a cancel killed it may come to be logged after the cancel's answer.
		last, at := list[len(list)-1], j.load.acked[id].cancel
		onItsWay := ended[last.run] == string(dts.AttemptCancelled) && last.at.Before(at.Add(time.Second))
		if !at.IsZero() && last.at.After(at) && !onItsWay {
			j.violated(i1, "task %s was cancelled at %s: %v", id, at, list)
		}
		for i := 1; i < len(list); i++ {
			was, is := list[i-1], list[i]
			later := is.run.attempt > was.run.attempt
			if !later {
				same++
			}
			switch {
			case is.run.attempt < was.run.attempt:
				j.violated(i5, "task %s: %v", id, list)
			case j.disturbed(was.at, is.at):
			case !later:
				j.violated(i5, "task %s: %v", id, list)
			case was.status == 200:
				j.violated(i2, "task %s: %v", id, list)
			}
		}
	}
	for id, k := range tasks {
		if k.status != string(dts.Success) || k.target != string(dts.HTTPCallback) {
			continue
		}
		got := slices.ContainsFunc(byTask[id], func(d delivery) bool { return d.run.attempt == k.attempts && d.status == 200 })
		if !got {
			j.violated(i2, "task %s succeeded with attempt %d; the target got %v", id, k.attempts, byTask[id])
		}
	}
	return len(list), same
}

// withoutLate leaves out what a process that had been stopped sent only when it went on, after others had sent
// that attempt or a later one: no check before a request can prevent it.
func (j *judge) withoutLate(list []delivery) []delivery {
	if j.late == nil {
		return list
	}
	highest := 0
	return slices.DeleteFunc(slices.Clone(list), func(d delivery) bool {
		late := d.run.attempt <= highest && j.late(d.at)
		highest = max(highest, d.run.attempt)
		if late {
			j.lates = append(j.lates, d.at)
		}
		return late
	})
}

// checkCommands: the same of the commands' log; and that no run of a task goes on beside the next one.
func (j *judge) checkCommands(tasks map[string]storedTask) int {
	type last struct {
		line runLine
		over bool
	}
	byTask := map[string]last{}
	done := map[run]bool{}
	count := map[string]int{}
	starts := 0
	for _, l := range j.runs.read(j.t) {
		was, again := byTask[l.run.task]
		switch l.event {
		case "start":
			starts++
			count[l.run.task]++
			if _, ok := tasks[l.run.task]; !ok {
				j.violated(i1, "%q: there is no such task", l.text)
			}
			switch {
			case !again || j.disturbed(was.line.at, l.at):
			case l.run.attempt <= was.line.run.attempt:
				j.violated(i5, "%q after %q", l.text, was.line.text)
			case was.over:
				j.violated(i2, "%q after %q had ended", l.text, was.line.text)
			}
			byTask[l.run.task] = last{l, false}
		case "end":
			done[l.run] = true
			if was.line.pid != l.pid {
				j.violated(i10, "%q after %q", l.text, was.line.text)
			}
			was.over = true
			byTask[l.run.task] = was
		}
	}
	for id, n := range count {
		if j.load.acked[id].once && n > 1 {
			j.violated(i9, "command %s started %d times", id, n)
		}
	}
	for id, k := range tasks {
		if k.status == string(dts.Success) && k.target == string(dts.Command) && !done[run{id, k.attempts}] {
			j.violated(i2, "task %s succeeded with attempt %d, and the command did not log its end", id, k.attempts)
		}
	}
	return starts
}
