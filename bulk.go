package dts

import (
	"slices"
	"strings"
	"time"
)

// BulkVerb is a verb on many tasks at once, by ids or by filter.
type BulkVerb string

const (
	BulkCancel BulkVerb = "cancel" // PENDING and RUNNING tasks
	BulkRetry  BulkVerb = "retry"  // FAILED, CANCELLED and SKIPPED tasks; by a filter without a state FAILED ones: the dead letters
	BulkDelete BulkVerb = "delete" // tasks that do not run; by a filter without a state those that have ended, and steps only with their run
	BulkPause  BulkVerb = "pause"  // PENDING tasks
	BulkResume BulkVerb = "resume" // paused tasks
)

// Verb is what it does to each task.
func (v BulkVerb) Verb() Verb { return Verb(v) }

// Past is the verb as in "3 tasks were cancelled".
func (v BulkVerb) Past() string {
	switch v {
	case BulkCancel:
		return "cancelled"
	case BulkRetry:
		return "retried"
	}
	return string(v) + "d"
}

// Allowed lists the states of tasks to which it does something.
func (v BulkVerb) Allowed() []Status {
	return slices.DeleteFunc(slices.Clone(Statuses), func(s Status) bool {
		e, err := v.Verb().Do(s)
		return err != nil || e == Nothing
	})
}

// BulkChange is a verb on the tasks that a filter selects.
type BulkChange struct {
	Verb   BulkVerb
	Filter TaskFilter // its Cursor and Limit are not used
	DryRun bool       // only count them
	Actor  string
}

// Normalize narrows the filter to the tasks that the verb changes, and refuses one that asks for others. Doing it a
// second time changes nothing: in particular, a retry is for what had ended when it was asked for, so that what
// fails again meanwhile is not retried again.
func (c *BulkChange) Normalize(now time.Time) error {
	f := &c.Filter
	allowed := c.Verb.Allowed()
	if len(allowed) == 0 {
		return Invalid("verb", "%q is not known; use cancel, retry, delete, pause or resume", clip(string(c.Verb)))
	}
	only := func(field, which string) error {
		return Invalid(field, "only %s tasks can be %s", which, c.Verb.Past())
	}
	if slices.ContainsFunc(f.Statuses, func(s Status) bool { return !slices.Contains(allowed, s) }) {
		return only("filter.status", listOf(allowed))
	}
	if f.WaitsFor != "" && !slices.Contains(allowed, Pending) {
		return only("filter.waits_for", listOf(allowed))
	}
	if len(f.Statuses) == 0 {
		switch {
		case f.WaitsFor != "":
			f.Statuses = []Status{Pending}
		case len(f.IDs) == 0 && c.Verb == BulkRetry:
			f.Statuses = []Status{Failed}
		case len(f.IDs) == 0 && c.Verb == BulkDelete:
			f.Statuses = slices.DeleteFunc(allowed, func(s Status) bool { return !s.Terminal() })
		default:
			f.Statuses = allowed
		}
	}
	switch c.Verb {
	case BulkDelete: // a run that misses a step can neither succeed nor be retried
		f.NoSteps = len(f.IDs) == 0 && f.WorkflowID == "" || f.NoSteps
	case BulkPause:
		f.NotPaused = true
	case BulkResume:
		if f.WaitsFor != "" && f.WaitsFor != ReasonPaused {
			return only("filter.waits_for", string(ReasonPaused))
		}
		f.WaitsFor = ReasonPaused
	case BulkRetry:
		if f.EndedBefore.IsZero() {
			f.EndedBefore = Micros(now)
		}
	}
	return nil
}

// listOf writes states as "A, B and C".
func listOf(list []Status) string {
	var b strings.Builder
	for i, s := range list {
		switch {
		case i > 0 && i == len(list)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}

// BulkResult is what a bulk verb did, or with a dry run would do.
type BulkResult struct {
	Matched int  `json:"matched" doc:"tasks that the filter selects and whose state allows it"`
	Done    int  `json:"done" doc:"of those, how many it was done to; 0 for a dry run"`
	DryRun  bool `json:"dry_run,omitempty"`
}
