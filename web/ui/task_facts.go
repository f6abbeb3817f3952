package ui

import (
	"strconv"
	"strings"
	"time"

	"dts"
)

// taskFacts are what is known of a task besides its state, times and target.
func taskFacts(t *dts.Task) []pair {
	list := specFacts(t.Spec)
	add := func(name, value string) {
		if value != "" {
			list = append(list, pair{name, value})
		}
	}
	add("Gets the output of", strings.Join(t.Inputs, ", "))
	add("Created by", t.CreatedBy)
	add("Origin", originText(t))
	add("Node", t.Node)
	if t.SLAMet != nil && !*t.SLAMet {
		add("Started in time", "no: later than "+duration(t.SLA()))
	}
	add("Idempotency key", t.IdempotencyKey)
	add("Dedupe key", t.DedupeKey)
	add("Trace", t.TracingID)
	return list
}

// retryText says how often a task is tried again.
func retryText(s dts.Spec) string {
	if s.Retry.MaxAttempts <= 1 {
		return "none"
	}
	text := strconv.Itoa(s.Retry.MaxAttempts) + " attempts, " + backoffText(s.Retry)
	if words := s.Retry.On.Words(); words != "" {
		text += "; only after " + words
	}
	return text
}

// specFacts are the settings that tasks and recurring tasks share. Those left at their default are
// not worth a line.
func specFacts(s dts.Spec) []pair {
	switch s.TargetType {
	case dts.WorkflowRun, dts.Ping: // the steps of the one have limits; the other is judged once, in no time
		return plainFacts(s, nil)
	}
	return plainFacts(s, []pair{{"Timeout", duration(s.Timeout()) + " for each attempt"}, {"Retries", retryText(s)}})
}

// plainFacts appends those that everything has.
func plainFacts(s dts.Spec, list []pair) []pair {
	if s.Delivery == dts.AtMostOnce {
		list = append(list, pair{"Delivery", "at most once"})
	}
	if s.Queue != "default" && s.Queue != "" {
		list = append(list, pair{"Queue", s.Queue})
	}
	if s.Priority != dts.Medium && s.Priority != "" {
		list = append(list, pair{"Priority", statusWord(s.Priority)})
	}
	if s.ConcurrencyKey != "" {
		list = append(list, pair{"Concurrency", "at most " + strconv.Itoa(s.ConcurrencyLimit) + " at once with the key " + s.ConcurrencyKey})
	}
	if words := resourceText(s.Resources); words != "" {
		list = append(list, pair{"Takes", words})
	}
	if s.Preemptible {
		list = append(list, pair{"Preemptible", "it may be stopped while work of high priority waits"})
	}
	if words := warnText(s); words != "" {
		list = append(list, pair{"Warns", words})
	}
	for _, l := range pairs(s.Labels) {
		list = append(list, pair{"Label " + l.Name, l.Value})
	}
	return list
}

// resourceText says what a run takes of its machine; "" for nothing.
func resourceText(r *dts.Resources) string {
	var list []string
	if r != nil && r.CPU > 0 {
		cores := " cores"
		if r.CPU == 1 {
			cores = " core"
		}
		list = append(list, strconv.FormatFloat(r.CPU, 'f', -1, 64)+cores)
	}
	if r != nil && r.MemoryMB > 0 {
		list = append(list, byteSize(r.MemoryMB<<20)+" of memory")
	}
	return strings.Join(list, ", ")
}

// warnText says of what of a run there is a warning; "" for nothing.
func warnText(s dts.Spec) string {
	var list []string
	for _, x := range []struct {
		before, after string
		seconds       float64
	}{{"starts more than ", " late", s.WarnLateSeconds}, {"takes more than ", "", s.WarnLongerSeconds}, {"succeeds in less than ", "", s.WarnShorterSeconds}} {
		if x.seconds > 0 {
			list = append(list, x.before+duration(time.Duration(x.seconds*float64(time.Second)))+x.after)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "when it " + strings.Join(list, ", or ")
}

func backoffText(r dts.Retry) string {
	ms := func(n int64) string { return duration(time.Duration(n) * time.Millisecond) }
	switch r.Backoff {
	case dts.Fixed:
		return ms(r.BaseDelayMS) + " apart"
	case dts.List:
		words := make([]string, len(r.DelaysMS))
		for i, n := range r.DelaysMS {
			words[i] = ms(n)
		}
		return "after " + strings.Join(words, ", ")
	default:
		return "from " + ms(r.BaseDelayMS) + ", doubling"
	}
}

func originText(t *dts.Task) string {
	s := ""
	switch t.Origin {
	case dts.OriginTrigger:
		s = "started by hand"
	case dts.OriginCatchUp:
		s = "makes up for missed runs"
	case dts.OriginBackfill:
		s = "backfill"
	}
	if t.Moved && t.TargetType != dts.Ping { // which its job's reports move
		s = strings.TrimPrefix(s+", moved by hand", ", ")
	}
	return s
}
