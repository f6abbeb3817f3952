package ui

import (
	"time"

	"dts"
)

// barWidth is how many units the bar of a breakdown is wide, and barLeast how many a part has that is there at all.
const (
	barWidth = 1000
	barLeast = 8
	barSaid  = 5 * time.Microsecond // less is 0 in the words, and is left out
)

// breakdown shows where the time of a task went: a bar, and each of its parts in words.
type breakdown struct {
	Parts []timePart
	Slow  string // the name of the part that was slow, "" for none
}

// timePart is a part of the time, with its place in the bar.
type timePart struct {
	Name     string // "parent", "queue", "scheduler" or "target"
	Words    string
	Took     time.Duration
	X, Width int
	Slow     bool
}

// newBreakdown makes the breakdown of a task that has started; nil of another one.
func newBreakdown(t *dts.Task, now time.Time) *breakdown {
	x := t.Timing(now)
	if x == nil {
		return nil
	}
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	target := "to run, retries included"
	if t.MaxAttempts <= 1 {
		target = "to run"
	}
	if !t.Status.Terminal() {
		target += ", so far"
	}
	b := &breakdown{Slow: x.Slow}
	for _, p := range []timePart{
		{Name: "parent", Words: "waiting for other tasks", Took: us(x.ParentUS)},
		{Name: "queue", Words: "ready, waiting for a slot or a limit", Took: us(x.QueueUS)},
		{Name: "scheduler", Words: "until the scheduler started it", Took: us(x.SchedulerUS)},
		{Name: "target", Words: target, Took: us(x.TargetUS)},
	} {
		if p.Took >= barSaid || p.Name == "target" {
			p.Slow = p.Name == x.Slow
			b.Parts = append(b.Parts, p)
		}
	}
	b.lay()
	return b
}

// lay gives each part its share of the bar, and what is too small to be seen a little of the largest one's.
func (b *breakdown) lay() {
	var total time.Duration
	largest := 0
	for i, p := range b.Parts {
		total += p.Took
		if p.Took > b.Parts[largest].Took {
			largest = i
		}
	}
	left := barWidth
	for i, p := range b.Parts {
		if i != largest {
			b.Parts[i].Width = max(int(float64(barWidth)*float64(p.Took)/float64(max(total, 1))), barLeast)
			left -= b.Parts[i].Width
		}
	}
	b.Parts[largest].Width = left
	x := 0
	for i := range b.Parts {
		b.Parts[i].X = x
		x += b.Parts[i].Width
	}
}

// SlowWords says which part was slow.
func (b *breakdown) SlowWords() string {
	switch b.Slow {
	case "parent":
		return "The tasks before it were slow."
	case "queue":
		return "It waited for a slot or a limit."
	case "scheduler":
		return "The scheduler was slow, or the machine."
	case "target":
		return "The run itself was slow."
	}
	return ""
}

// warningTexts say what of a run was not as was asked for.
func warningTexts(t *dts.Task) []string {
	limit := func(seconds float64) string { return duration(time.Duration(seconds * float64(time.Second))) }
	var list []string
	for _, w := range t.Warnings {
		switch w {
		case dts.WarnLate:
			list = append(list, "It started more than "+limit(t.WarnLateSeconds)+" late.")
		case dts.WarnLong:
			list = append(list, "An attempt took longer than "+limit(t.WarnLongerSeconds)+".")
		case dts.WarnShort:
			list = append(list, "It succeeded in less than "+limit(t.WarnShorterSeconds)+".")
		default:
			list = append(list, sentence("", statusWord(w))+".")
		}
	}
	return list
}
