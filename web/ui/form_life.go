package ui

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/sched/cron"
)

// life is the part of the form about what becomes of a task besides its time: its queue, its retries, what it waits
// for, and duplicates of it. As text.
type life struct {
	Queue, Priority             string
	Backoff                     string // a dts.Backoff
	BaseDelay, MaxDelay, Delays string
	RetryOn                     string

	// The rest is for tasks that run once.
	After                string // ids, one a line
	Must                 string // a dts.DependencyType, of all of them
	Mode, OnFailure      string // a dts.DependencyMode and a dts.DependencyFailure
	Dedupe, DedupePolicy string
	Expires              string // a wall-clock time in the zone
}

func readLife(v url.Values) life {
	one := func(k string) string { return strings.TrimSpace(v.Get(k)) }
	return life{
		Queue: one("queue"), Priority: one("priority"), Backoff: one("backoff"), BaseDelay: one("base_delay"), MaxDelay: one("max_delay"),
		Delays: one("delays"), RetryOn: one("retry_on"), After: lines(one("after")), Must: one("must"), Mode: one("mode"), OnFailure: one("on_failure"),
		Dedupe: one("dedupe"), DedupePolicy: one("dedupe_policy"), Expires: one("expires"),
	}
}

// lifeInputs maps the field names of dts to the inputs of this part.
var lifeInputs = map[string]string{
	"queue": "queue", "priority": "priority", "retry.backoff": "backoff", "retry": "base_delay", "retry.base_delay_ms": "base_delay",
	"retry.max_delay_ms": "max_delay", "retry.delays_ms": "delays", "retry.on": "retry_on", "retry.on.http_status": "retry_on",
	"retry.on.exit_codes": "retry_on", "retry.on.errors": "retry_on", "depends_on": "after", "depends_mode": "mode",
	"on_dependency_failure": "on_failure", "dedupe_key": "dedupe", "dedupe_policy": "dedupe_policy", "expires_at": "expires",
}

var lifeLabels = map[string]string{
	"queue": "The name of the queue", "base_delay": "The delay", "max_delay": "The longest delay", "delays": "The list of delays", "retry_on": "The list",
	"after": "The list", "dedupe": "The key", "dedupe_policy": "This", "expires": "The time",
}

// PriorityChoices and the other methods like it are the lists of the form. The first of each is what happens if
// nothing is said.
func (life) PriorityChoices() []choice {
	return []choice{{"", "Medium"}, {string(dts.High), "High"}, {string(dts.Low), "Low"}}
}

func (life) BackoffChoices() []choice {
	return []choice{{"", "Twice as long each time"}, {string(dts.Fixed), "The same each time"}, {string(dts.List), "A list"}}
}

func (life) MustChoices() []choice {
	return []choice{{"", "Succeed"}, {string(dts.MustFinish), "End, however they do"}, {string(dts.MustFail), "Fail"}}
}

func (life) ModeChoices() []choice {
	return []choice{{"", "All of them"}, {string(dts.DependsAny), "One of them is enough"}}
}

func (life) OnFailureChoices() []choice {
	return []choice{{"", "Skip this task"}, {string(dts.FailOnFailure), "Let this task fail"}}
}

func (life) DedupeChoices() []choice {
	return []choice{{"", "Refuse this one"}, {string(dts.DedupeKeepFirst), "Keep the other one, add nothing"}, {string(dts.DedupeReplace), "Cancel the other one"}}
}

// RetrySet and OnceSet report whether something is set in a part of the form that is closed at first.
func (f life) RetrySet() bool {
	return f.Backoff+f.BaseDelay+f.MaxDelay+f.Delays+f.RetryOn != ""
}

// OnceSet is RetrySet for what only a task that runs once has.
func (f life) OnceSet() bool {
	return f.After+f.Must+f.Mode+f.OnFailure+f.Dedupe+f.DedupePolicy+f.Expires != ""
}

// Any reports whether one of these inputs is wrong.
func (e formErrors) Any(inputs ...string) bool {
	return slices.ContainsFunc(inputs, func(input string) bool { return e[input] != "" })
}

// retry reads how often, when and after which failures there is another attempt.
func (f form) retry(e formErrors) dts.Retry {
	r := dts.Retry{Backoff: dts.Backoff(f.Backoff)}
	if f.Attempts != "" {
		n, err := strconv.Atoi(f.Attempts)
		if err != nil || n < 1 {
			e.add("attempts", "The number of attempts must be 1 (no retry) to 100")
		}
		r.MaxAttempts = n
	}
	if r.Backoff == dts.List {
		if f.Delays == "" {
			e.add("delays", "Enter delays, such as 10s, 1m, 5m")
		}
		for part := range strings.SplitSeq(f.Delays, ",") {
			r.DelaysMS = append(r.DelaysMS, e.delay("delays", strings.TrimSpace(part)))
		}
	} else {
		r.BaseDelayMS = e.delay("base_delay", f.BaseDelay)
	}
	if r.Backoff == "" {
		r.MaxDelayMS = e.delay("max_delay", f.MaxDelay)
	}
	if f.RetryOn != "" {
		on, err := dts.ParseRetryOn(f.RetryOn, dts.TargetType(f.Kind))
		if err != nil {
			e.add("retry_on", sentence("", err.Error()))
		}
		r.On = on
	}
	return r
}

// delay reads a delay in milliseconds; empty is 0.
func (e formErrors) delay(input, s string) int64 {
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = cron.ParseInterval(s)
	}
	if err != nil || d < time.Millisecond {
		e.add(input, "Write a delay like 10s, 5m or 1h30m")
	}
	return d.Milliseconds()
}

// once puts into a task what only one that runs once has.
func (f form) once(t *dts.Task, e formErrors) {
	t.DependsOn = f.dependsOn(e)
	if len(t.DependsOn) > 0 {
		t.DependsMode, t.OnDependencyFailure = dts.DependencyMode(f.Mode), dts.DependencyFailure(f.OnFailure)
	}
	if t.DedupeKey = f.Dedupe; f.Dedupe != "" {
		t.DedupePolicy = dts.DedupePolicy(f.DedupePolicy)
	}
	if f.Expires != "" {
		loc, err := cron.LoadLocation(f.Zone)
		if err != nil {
			return // that is told of the zone
		}
		t.ExpiresAt = e.wall("expires", f.Expires, loc)
	}
}

// dependsOn reads the tasks before this one: their ids, or the addresses of their pages, one a line.
func (f form) dependsOn(e formErrors) []dts.DependsOn {
	var list []dts.DependsOn
	n := 0
	for line := range strings.Lines(f.After) {
		n++
		id := strings.TrimSuffix(strings.TrimSpace(line), "/")
		if id == "" {
			continue
		}
		if i := strings.LastIndexByte(id, '/'); i >= 0 {
			id, _, _ = strings.Cut(id[i+1:], "?")
		}
		if !dts.IsID(id) {
			e.add("after", "Line "+strconv.Itoa(n)+" is not the id of a task, nor the address of its page")
			continue
		}
		list = append(list, dts.DependsOn{TaskID: id, Type: dts.DependencyType(f.Must)})
	}
	return list
}
