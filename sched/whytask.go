package sched

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dts"
)

// lateEnough is how late a start must be for the answer to say why.
const lateEnough = time.Second

// taskFacts is what an answer about a task is made of.
type taskFacts struct {
	t        *dts.Task
	r        *dts.RecurringTask // nil: it has none, or it is gone
	attempts []*dts.Attempt
	skip     *dts.Skip
	now      time.Time
	loc      *time.Location
	blackout *barred     // what it met, or meets, when it was due
	server   serverFacts // of a pending task
	gate     gateFacts
	node     dts.Node        // where its first attempt ran, if that was late
	parents  []dts.GraphTask // some of those that it waits for
	afterRun bool            // another run of its recurring task ended when it started
}

func (f *taskFacts) say(t time.Time) string { return sayTime(t.In(f.loc)) }

// answer is the sentence.
func (f *taskFacts) answer() string {
	t := f.t
	switch t.Status {
	case dts.Pending:
		return f.pending()
	case dts.Running:
		text := fmt.Sprintf("it has been running for %s, since %s, on server %s", sayDuration(f.now.Sub(f.started())), f.say(f.started()), t.Node)
		if t.Attempts > 1 {
			text += fmt.Sprintf("; it is attempt %d of %d", t.Attempts, max(t.MaxAttempts, t.Attempts))
		}
		if f.gate.stands != "" {
			text += "; " + f.gate.stands
		}
		return text + f.late()
	case dts.Success:
		if t.LastError != "" { // such as: force-completed by
			return fmt.Sprintf("it counts as done since %s: it was %s", f.say(t.CompletedAt), t.LastError)
		}
		text := fmt.Sprintf("it ran at %s, took %s and succeeded", f.say(f.started()), f.took())
		if t.Attempts > 1 {
			text += fmt.Sprintf(", as attempt %d of %d", t.Attempts, max(t.MaxAttempts, t.Attempts))
			if n := len(f.attempts); n > 1 && f.attempts[n-2].Error != "" {
				text += ", after the one before had failed: " + f.attempts[n-2].Error
			}
		}
		return text + f.late()
	case dts.Failed:
		if t.RunStarted() {
			return fmt.Sprintf("it failed at %s, after %s: %s", f.say(t.CompletedAt), f.took(), orUnknown(t.LastError)) + f.late()
		}
		if t.TargetType == dts.Ping && t.Attempts > 0 {
			return fmt.Sprintf("it was judged at %s: %s", f.say(t.CompletedAt), orUnknown(t.LastError))
		}
		if t.Attempts == 0 {
			return fmt.Sprintf("it failed at %s without a run: %s", f.say(t.CompletedAt), orUnknown(t.LastError))
		}
		return fmt.Sprintf("it failed at %s, after %s: %s", f.say(t.CompletedAt), count(t.Attempts, "attempt"), orUnknown(t.LastError)) + f.late()
	case dts.Cancelled:
		text := orUnknown(t.LastError)
		if text == "cancelled" {
			text = "cancelled while it ran"
		}
		return fmt.Sprintf("it was %s, at %s", text, f.say(t.CompletedAt))
	case dts.Skipped:
		return f.skipped()
	}
	return "its state is " + string(t.Status)
}

// pending says what a task waits for.
func (f *taskFacts) pending() string {
	t := f.t
	due := fmt.Sprintf("it was due at %s", f.say(t.DueAt))
	if t.RunAt.After(t.DueAt) && t.Attempts > 0 {
		at := t.RunAt
		if t.Line() != "" || t.WaitsFor == dts.ReasonPaused { // that is when it is looked at again at the latest
			at = t.EligibleAt()
		}
		due = fmt.Sprintf("attempt %d was due at %s", t.Attempts+1, f.say(at))
	}
	switch s := f.server; {
	case t.WaitsFor == dts.ReasonPaused:
		return f.paused(due)
	case t.RunStarted() && t.Unresolved > 0:
		return fmt.Sprintf("it has been running for %s, since %s, and waits for %s", sayDuration(f.now.Sub(t.StartedAt)), f.say(t.StartedAt), f.waitsForTasks()) + f.late()
	case t.RunStarted():
		return "its steps have ended, and it ends in a moment"
	case t.Unresolved > 0:
		return "it waits for " + f.waitsForTasks()
	case s.queue != nil && s.queue.Paused && !t.EligibleAt().After(f.now):
		return due + ", and waits" + f.queuePause()
	case t.WaitsFor == dts.ReasonOverlap && !t.DueAt.After(f.now):
		return due + ", and waits until the run before it has ended" + f.policy()
	case t.WaitsFor == dts.ReasonBlackout && !t.DueAt.After(f.now):
		return due + ", and waits for the end of " + f.blackoutName() + " at " + f.say(laterOf(t.RunAt, f.blackoutEnd()))
	case t.WaitsFor == dts.ReasonConcurrency:
		return fmt.Sprintf("%s, and waits for a slot: of the tasks with the concurrency_key %q %d may run at once", due, t.ConcurrencyKey, max(t.ConcurrencyLimit, 1))
	case t.WaitsFor == dts.ReasonQueue:
		return fmt.Sprintf("%s, and waits for a slot: as many tasks of the queue %q run as may run at once", due, t.Queue)
	case t.RunAt.After(f.now) && t.Attempts > 0:
		return fmt.Sprintf("it waits for attempt %d of %d, at %s, %s, after attempt %d failed: %s", t.Attempts+1, max(t.MaxAttempts, t.Attempts+1),
			f.say(t.RunAt), away(t.RunAt, f.now), t.Attempts, orUnknown(t.LastError))
	case t.RunAt.After(f.now):
		return f.notYet()
	case s.elsewhere == "-":
		return due + ", and no server holds its shard now; one of those that live takes it within seconds"
	case s.elsewhere != "":
		return due + ", and server " + s.elsewhere + " starts it, as soon as it can; ask that one for more"
	case len(s.notReady) > 0:
		return due + ", but this server does not start it: " + strings.Join(s.notReady, "; ")
	case !t.MissAt.IsZero() && t.MissAt.Before(f.now) && t.Attempts == 0:
		return due + ", which is too long ago: the catch-up mode decides about it in a moment"
	case f.blackout != nil && f.blackout.until.After(f.now):
		return due + ", and waits for the end of " + f.blackoutName() + " at " + f.say(f.blackoutEnd())
	case f.gate.waits != "":
		return due + ", and " + f.gate.waits
	case s.throttled && s.queue != nil:
		return fmt.Sprintf("%s, and waits for its turn: of the queue %q no more than %d start in %s", due, t.Queue, s.queue.Rate, sayDuration(time.Duration(s.queue.PeriodSeconds*float64(time.Second))))
	case s.share > 0:
		return fmt.Sprintf("%s, and waits for a slot: the queue %q uses %d of the %d that this server has for tasks of its kind, and must leave the rest to others", due, t.Queue, s.share, s.slots)
	case s.full:
		return fmt.Sprintf("%s, and waits for a slot: all %d that this server has for tasks of its kind are in use", due, s.slots)
	}
	return due + ", and starts in a moment"
}

// paused is the answer for a task that somebody has paused.
func (f *taskFacts) paused(due string) string {
	t := f.t
	if at := t.EligibleAt(); at.After(f.now) {
		due = "it is due at " + f.say(at)
		if t.Attempts > 0 {
			due = fmt.Sprintf("attempt %d is due at %s", t.Attempts+1, f.say(at))
		}
	}
	text := "it is paused: " + due + ", and does not start before somebody resumes it"
	if t.Unresolved > 0 {
		text += "; it also waits for " + f.waitsForTasks()
	}
	return text
}

// graceOf is the grace of a PING.
func graceOf(t *dts.Task) time.Duration {
	target, err := t.Ping()
	if err != nil {
		return 0 // it was stored by another version; its run says so
	}
	return target.Grace()
}

// notYet is the answer for a task whose time is to come.
func (f *taskFacts) notYet() string {
	t := f.t
	text := fmt.Sprintf("it is not due before %s, %s", f.say(t.RunAt), away(t.RunAt, f.now))
	switch {
	case t.TargetType == dts.Ping && t.Moved && t.RunAt.Equal(t.ScheduledAt.Add(graceOf(t))):
		text = fmt.Sprintf("its job has reported that it went well, before the instant of %s; that counts at %s, %s, unless it reports a failure until then", f.say(t.ScheduledAt), f.say(t.RunAt), away(t.RunAt, f.now))
	case t.TargetType == dts.Ping && t.Moved:
		text = fmt.Sprintf("its job has reported its start, and must report its end by %s, %s", f.say(t.RunAt), away(t.RunAt, f.now))
	case t.TargetType == dts.Ping:
		text = fmt.Sprintf("its job, which dts does not run, is expected at %s, and must report by %s, %s", f.say(t.ScheduledAt), f.say(t.RunAt), away(t.RunAt, f.now))
	case t.Moved:
		text += "; it was moved there by hand from " + f.say(t.ScheduledAt)
	case f.r != nil && f.r.JitterSeconds > 0 && t.DueAt.After(t.ScheduledAt):
		text += fmt.Sprintf(", which is %s after %s by its jitter", sayDuration(t.DueAt.Sub(t.ScheduledAt)), f.say(t.ScheduledAt))
	}
	switch {
	case f.r != nil && f.r.Status == dts.Paused && !t.Moved && t.Origin == dts.OriginSchedule && (f.r.PausedUntil.IsZero() || t.RunAt.Before(f.r.PausedUntil)):
		text += "; it will be skipped then, because the recurring task is paused"
	case f.blackout != nil && f.blackout.skipped:
		text += "; it will be skipped then, because " + f.blackoutName() + " is open"
	case f.server.queue != nil && f.server.queue.Paused:
		text += "; then it waits" + f.queuePause()
	case f.blackout != nil:
		text += "; then it waits for the end of " + f.blackoutName() + " at " + f.say(f.blackoutEnd())
	}
	return text
}

// queuePause says what a task of a paused queue waits for.
func (f *taskFacts) queuePause() string {
	q := f.server.queue
	text := fmt.Sprintf(" until somebody resumes it: the queue %q is paused, since %s", q.Name, f.say(q.PausedAt))
	if q.PauseNote != "" {
		text += " (" + q.PauseNote + ")"
	}
	return text
}

func (f *taskFacts) skipped() string {
	t := f.t
	reason, note := t.SkipReason, ""
	if f.skip != nil {
		reason, note = f.skip.Reason, f.skip.Note
	}
	cause := because(reason, f.r)
	if reason == dts.ReasonDependency && t.LastError != "" { // which names the task that is to blame, and how it ended
		cause = t.LastError
	}
	text := fmt.Sprintf("it was skipped at %s: %s", f.say(t.CompletedAt), cause)
	if t.CompletedAt.Sub(t.DueAt) > lateEnough { // else nobody could tell which instant is meant
		text = fmt.Sprintf("it was due at %s, and was skipped at %s: %s", f.say(t.DueAt), f.say(t.CompletedAt), cause)
	}
	if reason == dts.ReasonExpired && !t.ExpiresAt.IsZero() {
		return fmt.Sprintf("%s, at %s", text, f.say(t.ExpiresAt))
	}
	if note == "" && reason == dts.ReasonBlackout && f.blackout != nil {
		note = f.blackoutName()
	}
	if note != "" {
		text += " (" + note + ")"
	}
	return text
}

// late says how late the first start was, and why if that was long.
func (f *taskFacts) late() string {
	late := f.lateBy()
	if f.t.LatenessUS == nil || late < 100*time.Millisecond {
		return ""
	}
	text := fmt.Sprintf("; it started %s late", sayDuration(late))
	if late <= lateEnough {
		return text
	}
	return text + ", " + f.lateBecause()
}

// lateBecause says why the first start was late: whatever happened first between its time and its start.
func (f *taskFacts) lateBecause() string {
	t := f.t
	due, started := t.StartedAt.Add(-f.lateBy()), t.StartedAt
	picked := t.PickedAt
	if len(f.attempts) > 0 && !f.attempts[0].PickedAt.IsZero() {
		picked = f.attempts[0].PickedAt
	}
	down := f.node.StartedAt
	switch {
	case t.CreatedAt.After(due.Add(lateEnough)):
		return "because it was made only at " + f.say(t.CreatedAt)
	case f.blackout != nil && !f.blackout.skipped && f.blackout.until.After(due) && !f.blackout.until.After(started.Add(lateEnough)):
		return "because " + f.blackoutName() + " ended at " + f.say(f.blackout.until)
	case f.afterRun:
		return "because the run before it had to end first" + f.policy()
	case 2*time.Duration(t.QueuedUS)*time.Microsecond > f.lateBy():
		return "because it waited for " + f.turn()
	case down.After(due) && !down.After(started):
		return fmt.Sprintf("because the server was down: server %s came up at %s", f.node.ID, f.say(down))
	case picked.After(due.Add(lateEnough)):
		return fmt.Sprintf("because no server took it up before %s: the machine was asleep, its server had died, or very many tasks were due", f.say(picked))
	}
	return "because it waited for a slot"
}

// turn is what a task may have waited for that was ready to run.
func (f *taskFacts) turn() string {
	text := "a slot"
	if f.t.Resources != nil {
		text = "cores and memory, or " + text
	}
	if q := f.server.queue; q != nil {
		text = fmt.Sprintf("its queue %q, or %s", q.Name, text)
	}
	if f.t.ConcurrencyKey != "" {
		text = fmt.Sprintf("others with the concurrency_key %q, or %s", f.t.ConcurrencyKey, text)
	}
	return text
}

func (f *taskFacts) lateBy() time.Duration {
	if f.t.LatenessUS == nil || len(f.attempts) == 0 && !f.t.RunStarted() {
		return 0
	}
	return time.Duration(*f.t.LatenessUS) * time.Microsecond
}

// started is when the newest attempt started.
func (f *taskFacts) started() time.Time {
	if n := len(f.attempts); n > 0 {
		return f.attempts[n-1].StartedAt
	}
	return f.t.StartedAt
}

// took is how long the newest attempt took.
func (f *taskFacts) took() string {
	if n := len(f.attempts); n > 0 {
		return sayDuration(time.Duration(f.attempts[n-1].DurationUS) * time.Microsecond)
	}
	return sayDuration(f.t.CompletedAt.Sub(f.t.StartedAt))
}

func (f *taskFacts) policy() string {
	if f.t.Overlap == "" || f.t.Overlap == dts.OverlapAllow {
		return ""
	}
	return " (overlap_policy " + string(f.t.Overlap) + ")"
}

func (f *taskFacts) blackoutName() string {
	if f.blackout == nil {
		return "a blackout"
	}
	return f.blackout.names()
}

func (f *taskFacts) blackoutEnd() time.Time {
	if f.blackout == nil {
		return f.t.RunAt
	}
	return f.blackout.until
}

func orUnknown(text string) string {
	if text == "" {
		return "nothing more is known"
	}
	return text
}

// sentence makes one of a text.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimRight(text[size:], ". \n") + "."
}

// count writes a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sayTime writes a time for people: Fri 2026-03-27 02:30:00 CET.
func sayTime(t time.Time) string { return t.Format("Mon 2006-01-02 15:04:05 MST") }

// away writes how far ahead a time is.
func away(t, now time.Time) string { return "in " + sayDuration(t.Sub(now)) }

// sayDuration writes a duration for people, with two units at most: 3 d 4 h, 2 m 5 s, 1.5 s, 120 ms.
func sayDuration(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(n time.Duration, unit string, rest time.Duration, small string) string {
		if rest == 0 {
			return fmt.Sprintf("%d %s", n, unit)
		}
		return fmt.Sprintf("%d %s %d %s", n, unit, rest, small)
	}
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(d/time.Minute, "m", d%time.Minute/time.Second, "s")
	case d < day:
		return two(d/time.Hour, "h", d%time.Hour/time.Minute, "m")
	}
	return two(d/day, "d", d%day/time.Hour, "h")
}
