package main

import (
	"strings"
	"time"

	"dts"
)

// printAdded says what was added; next are the first instants of a recurring task.
func (a *app) printAdded(made thing, n *addition, existed bool, next []dts.PreviewInstant) {
	verb := "Added"
	if existed {
		verb = "There was already"
	}
	if t := made.task; t != nil {
		a.printf("%s task %s\n", verb, a.bold(displayName(&t.Spec)))
		at := clock(t.RunAt, n.zone.loc) + a.dim("  "+relative(t.RunAt, a.now()))
		if t.RunAt.Sub(t.CreatedAt) < time.Millisecond && !t.Status.Terminal() {
			at = "at once"
		}
		list := append([]fact{{"Runs", target(&t.Spec)}}, details(&t.Spec)...)
		list = append(list, fact{"When", at})
		if words := waits(t); words != "" {
			list = append(list, fact{"But first", "it " + words})
		}
		if !t.ExpiresAt.IsZero() {
			list = append(list, fact{"Expires", clock(t.ExpiresAt, n.zone.loc)})
		}
		list = append(append(list, specFacts(&t.Spec)...), fact{"Dedupe key", clean(t.DedupeKey)})
		a.facts(append(list, fact{"Limits", limits(&t.Spec, t.MaxAttempts)}, fact{"Id", t.ID}))
		a.printf("%s\n", a.dim("Follow it with: dts logs -f "+t.ID))
		return
	}
	r := made.recurring
	a.printf("%s recurring task %s\n", verb, a.bold(displayName(&r.Spec)))
	list := append([]fact{{"Runs", target(&r.Spec)}}, details(&r.Spec)...)
	list = append(list, a.scheduleFacts(r, n.zone, next)...)
	list = append(list, chosenRules(r)...)
	list = append(list, specFacts(&r.Spec)...)
	a.facts(append(list, fact{"Limits", limits(&r.Spec, r.Retry.MaxAttempts)}, fact{"Id", r.ID}))
	ref := r.Name
	if ref == "" {
		ref = r.ID
	}
	if r.TargetType == dts.Ping {
		a.printPingUse(made.pingURL, ref)
	}
	a.printf("%s\n", a.dim("See what ran with: dts show "+words([]string{clean(ref)})))
}

// scheduleFacts says when a recurring task fires.
func (a *app) scheduleFacts(r *dts.RecurringTask, z zone, next []dts.PreviewInstant) []fact {
	list := []fact{{"Schedule", a.scheduleText(&r.Schedule)}}
	if zoneMatters(&r.Schedule) {
		list = append(list, fact{"Time zone", z.String()})
	}
	switch {
	case len(next) > 0:
		list = append(list, fact{"Next", strings.Join(a.instantLines(next, z.loc, false), "\n")})
	case !strings.HasPrefix(r.Cron, "@reboot"):
		list = append(list, fact{"Next", "never again"})
	}
	return append(list, a.boundFacts(&r.Schedule, r.NextRunAt, z.loc)...)
}
