package main

import (
	"context"
	"time"

	"dts"
)

// backupGrace is how long after its time a backup may still be on its way: as long as it may take.
const backupGrace = time.Hour

// checkBackups looks how old the last backups are that recurring tasks have made. One that was not made is looked for
// when two in a row are missing, whatever the reason: a failure, a pause, a queue that stands.
func (d *doctor) checkBackups(ctx context.Context, list []*dts.RecurringTask) error {
	now := d.app.now()
	var late []string
	var newest time.Time
	for _, r := range list {
		page, err := d.source.Tasks(ctx, dts.TaskFilter{RecurringTaskID: r.ID, Statuses: []dts.Status{dts.Success}, Limit: 1})
		if err != nil {
			return err
		}
		since, text := r.CreatedAt, displayName(&r.Spec)
		if len(page.Items) == 0 {
			text += ": none since it was added, " + age(now.Sub(since)) + " ago"
		} else {
			since = page.Items[0].CompletedAt
			text += ": the last one was made " + age(now.Sub(since)) + " ago"
		}
		if r.Status == dts.Paused {
			text += "; it is paused"
		}
		if len(page.Items) > 0 && since.After(newest) {
			newest = since
		}
		if missesTwo(r, since, now) {
			late = append(late, text)
		}
	}
	d.report.list("backups", levelWarning, late, "dts why NAME says why; to make one now: dts run NAME, or dts backup FILE", "backups are older than their schedule lets expect")
	switch {
	case len(late) > 0:
	case len(list) == 0:
		d.report.add(finding{Check: "backups", Level: levelOK, Text: "no recurring task makes any",
			Advice: `unless something else runs dts backup: dts add --name backup --cron "30 3 * * *" --backup DIR`})
	case newest.IsZero():
		d.report.ok("backups", "none yet; the first is still to come")
	default:
		d.report.ok("backups", "the last one was made %s ago", age(now.Sub(newest)))
	}
	return nil
}

// missesTwo reports whether two instants of a schedule have gone by since a time. Calendars may leave out more than
// that, so with them nothing is known.
func missesTwo(r *dts.RecurringTask, since, now time.Time) bool {
	if len(r.Calendars()) > 0 {
		return false
	}
	c, err := compile(&r.Schedule, r.Name, r.CreatedAt)
	if err != nil {
		return false // @reboot, or it cannot be read, which is a finding of its own
	}
	list := upTo(c, since, 2)
	return len(list) == 2 && now.Sub(list[1]) > backupGrace
}
