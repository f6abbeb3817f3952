package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dts"
	"dts/web/api"
)

func (a *app) showRecurring(ctx context.Context, l *link, r *dts.RecurringTask, asJSON bool) error {
	next, err := l.Upcoming(ctx, r.ID, shownNext)
	if err != nil {
		return err
	}
	ledger, err := l.pastOccurrences(ctx, r.ID, a.now(), shownLedger)
	if err != nil {
		return err
	}
	var pings *api.PingsAnswer
	if r.TargetType == dts.Ping && r.Unreadable == "" {
		if pings, err = l.Pings(ctx, r.ID); err != nil {
			return err
		}
	}
	if asJSON {
		return a.printJSON(struct {
			Recurring *dts.RecurringTask `json:"recurring_task"`
			Upcoming  []*dts.Task        `json:"upcoming"`
			Ledger    []dts.Occurrence   `json:"occurrences"`
			Pings     *api.PingsAnswer   `json:"pings,omitempty"`
		}{r, append([]*dts.Task{}, next...), append([]dts.Occurrence{}, ledger...), pings})
	}
	var p *dts.Preview
	if r.Status == dts.Active && r.Unreadable == "" {
		if p, err = l.Preview(ctx, api.PreviewRequest{RecurringTaskID: r.ID, Count: shownNext}); err != nil {
			return err
		}
	}
	var more []fact
	if pings != nil {
		more = []fact{{"Ping URL", pings.URL}}
	}
	a.printRecurring(r, upcoming(r, next, p), more...)
	a.ledgerTable(ledger, a.zoneOfTask(r))
	if pings != nil {
		a.pingTable(pings.Items, a.zoneOfTask(r))
	}
	return nil
}

// upcoming joins the occurrences that are planned with what a preview says of their instants, and with the instants
// that will not run.
func upcoming(r *dts.RecurringTask, next []*dts.Task, p *dts.Preview) []dts.PreviewInstant {
	said := map[int64]dts.PreviewInstant{}
	if p != nil {
		for _, i := range p.Instants {
			said[i.UTC.UnixMicro()] = i
		}
	}
	var list []dts.PreviewInstant
	for _, t := range next {
		i, known := said[t.ScheduledAt.UnixMicro()]
		if !known {
			i = dts.PreviewInstant{UTC: t.ScheduledAt, Runs: true}
		}
		delete(said, t.ScheduledAt.UnixMicro())
		if !t.DueAt.Equal(t.ScheduledAt.Add(r.Delay())) {
			i.UTC = t.DueAt
			if r.TargetType == dts.Ping {
				i.UTC = t.ScheduledAt
				i.Effects = append(i.Effects, dts.PreviewEffect{Text: "its job has started, and must end by " + t.DueAt.UTC().Format("2006-01-02T15:04:05Z")})
				list = append(list, i)
				continue
			}
			i.Effects = append(i.Effects, dts.PreviewEffect{Text: "moved by hand from " + t.ScheduledAt.UTC().Format("2006-01-02T15:04:05Z")})
		}
		if t.WaitsFor != "" {
			i.Effects = append(i.Effects, dts.PreviewEffect{Text: waits(t)})
		}
		list = append(list, i)
	}
	for _, i := range said {
		if !i.Runs && (len(next) < shownNext || i.UTC.Before(next[len(next)-1].ScheduledAt)) {
			list = append(list, i)
		}
	}
	markPaused(r, list)
	slices.SortFunc(list, func(x, y dts.PreviewInstant) int { return x.UTC.Compare(y.UTC) })
	return list
}

// pastOccurrences returns the newest lines of the ledger without what is still to come.
func (l *link) pastOccurrences(ctx context.Context, id string, now time.Time, limit int) ([]dts.Occurrence, error) {
	var list []dts.Occurrence
	seen := 0
	for o, err := range l.AllOccurrences(ctx, id) {
		if err != nil {
			return nil, err
		}
		if o.Skip != nil && !o.Skip.From.After(now) || o.Task != nil && (!planned(o.Task) || o.Task.DueAt.Before(now)) {
			list = append(list, o)
		}
		if seen++; len(list) == limit || seen == maxScan {
			break
		}
	}
	return list, nil
}

// printRecurring prints a recurring task; more is what else there is to say of its target.
func (a *app) printRecurring(r *dts.RecurringTask, next []dts.PreviewInstant, more ...fact) {
	a.printf("%s  %s\n", a.bold(displayName(&r.Spec)), a.status(string(r.Status)))
	if r.Unreadable != "" {
		a.facts([]fact{{"Id", r.ID}, {"Unreadable", clean(r.Unreadable) + "; nothing of it is planned: cancel it, and make it anew"}})
		return
	}
	loc := a.zoneOfTask(r)
	list := append([]fact{{"Id", r.ID}, {"About", clean(r.Description)}, {"Runs", target(&r.Spec)}}, details(&r.Spec)...)
	list = append(append(list, more...), fact{"Schedule", a.scheduleText(&r.Schedule)})
	if zoneMatters(&r.Schedule) {
		list = append(list, fact{"Time zone", loc.String()})
	}
	if r.Status == dts.Paused {
		text := "since " + clock(r.PausedAt, a.loc)
		if !r.PausedUntil.IsZero() {
			text += ", until " + clock(r.PausedUntil, a.loc)
		}
		if words := dts.PauseWords(r.PauseNote, r.PausedBy); words != "" {
			text += ": " + clean(words)
		}
		list = append(list, fact{"Paused", text})
	}
	list = append(list, fact{"Next", strings.Join(a.instantLines(next, loc, false), "\n")})
	list = append(list, a.boundFacts(&r.Schedule, r.NextRunAt, loc)...)
	list = append(list, fact{"Scheduled runs", fmt.Sprintf("%d ended, %d of them well", r.RunsCount, r.CompletedCount)})
	list = append(list, specFacts(&r.Spec)...)
	list = append(list, ruleFacts(r)...)
	a.facts(append(list, fact{"Limits", limits(&r.Spec, r.Retry.MaxAttempts)},
		fact{"Added", clock(r.CreatedAt, a.loc) + by(r.CreatedBy)}))
}

// boundFacts say where a schedule begins and ends.
func (a *app) boundFacts(s *dts.Schedule, next time.Time, loc *time.Location) []fact {
	var list []fact
	if s.StartTime.After(a.now()) && !s.StartTime.Equal(next) {
		list = append(list, fact{"From", clock(s.StartTime, loc)})
	}
	if !s.EndTime.IsZero() {
		list = append(list, fact{"Until", clock(s.EndTime, loc)})
	}
	if s.MaxRuns > 0 {
		list = append(list, fact{"At most", count(int(s.MaxRuns), "run")})
	}
	return list
}

// ledgerTable prints lines of the ledger, their instants in the zone that dts why reads them in.
func (a *app) ledgerTable(ledger []dts.Occurrence, loc *time.Location) {
	if len(ledger) == 0 {
		a.printf("\n%s\n", a.dim("It has not run yet."))
		return
	}
	var rows [][]string
	for _, o := range ledger {
		at := o.ScheduledAt.In(loc).Format("2006-01-02 15:04:05")
		switch {
		case o.Task != nil:
			t := o.Task
			took := "–"
			if !t.CompletedAt.IsZero() && !t.StartedAt.IsZero() && (t.TargetType != dts.Ping || t.CompletedAt.Sub(t.StartedAt) > pingJudged) {
				took = span(t.CompletedAt.Sub(t.StartedAt))
			}
			rows = append(rows, []string{at, a.status(string(t.Status)), taskLate(t), took, runNote(o, a.now())})
		case o.Skip != nil:
			note := reason(o.Skip.Reason)
			if o.Skip.Note != "" {
				note += " (" + clean(o.Skip.Note) + ")"
			}
			if o.Skip.Count > 1 {
				note += fmt.Sprintf("; %d instants since %s", o.Skip.Count, o.Skip.From.In(loc).Format("01-02 15:04:05"))
			}
			rows = append(rows, []string{at, a.status(string(dts.Skipped)), "–", "–", note})
		}
	}
	a.printf("\n")
	a.table([]string{"INSTANT", "STATUS", "LATE", "TOOK", "NOTE"}, rows, 4)
}

// runNote says what there is to say about an occurrence: why it waits or did not run, what went wrong, and what made
// it where that was not the schedule.
func runNote(o dts.Occurrence, now time.Time) string {
	t := o.Task
	var parts []string
	if t.Origin != dts.OriginSchedule && t.Origin != "" {
		parts = append(parts, originWords(t.Origin))
	}
	if w := waits(t); w != "" {
		if t.WaitsFor == dts.ReasonBlackout && t.RunAt.After(now) {
			w += ", " + relative(t.RunAt, now)
		}
		parts = append(parts, w)
	}
	text := clean(t.LastError)
	if t.Status == dts.Skipped {
		why := reason(t.SkipReason)
		if text == "" && o.Skip != nil {
			text = clean(o.Skip.Note)
		}
		if text != "" {
			why += " (" + text + ")"
		}
		text = why
	}
	if text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// originWords says what made a run.
func originWords(o dts.Origin) string {
	return strings.ToLower(strings.ReplaceAll(string(o), "_", " "))
}
