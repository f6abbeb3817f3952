package main_test

import (
	"database/sql"
	"slices"
	"time"

	"dts"
)

// instants are all seconds from which a recurring task is due, up to the end of the test.
func (j *judge) instants(r *dts.RecurringTask) []time.Time {
	at := r.StartTime
	if r.Cron != "" {
		at = r.CreatedAt.Truncate(time.Second).Add(time.Second)
	}
	var list []time.Time
	for ; !at.After(j.quiet) && (r.EndTime.IsZero() || !at.After(r.EndTime)); at = at.Add(time.Second) {
		list = append(list, at.UTC())
	}
	return list
}

// checkInstants: every due instant has one task or lies in a skip range, and there are tasks at no other time.
func (j *judge) checkInstants(db *sql.DB, tasks map[string]storedTask) {
	for _, r := range j.recurring {
		at := map[time.Time][]string{}
		for _, k := range tasks {
			if k.recurring == r.ID {
				at[k.scheduled] = append(at[k.scheduled], k.id)
			}
		}
		skipped := map[time.Time]bool{}
		queryAll(j.t, db, `SELECT from_at, to_at, count FROM skips WHERE recurring_task_id = '`+r.ID+`'`, func(rows *sql.Rows) error {
			var from, to, count int64
			err := rows.Scan(&from, &to, &count)
			if count != 1+(to-from)/time.Second.Microseconds() {
				j.violated(i4, "recurring task %s: %d from %d to %d", r.ID, count, from, to)
			}
			for i := from; i <= to; i += time.Second.Microseconds() {
				skipped[time.UnixMicro(i).UTC()] = true
			}
			return err
		})
		instants := j.instants(r)
		ran := 0
		for _, i := range instants {
			switch ids := at[i]; {
			case len(ids) > 1:
				j.violated(i3, "%s of recurring task %s has %v", i, r.ID, ids)
			case len(ids) == 0 && !skipped[i]:
				j.violated(i4, "%s of recurring task %s has neither", i, r.ID)
			case len(ids) == 1 && tasks[ids[0]].status == string(dts.Skipped) && !skipped[i]:
				j.violated(i4, "%s of recurring task %s: task %s was skipped and no skip is recorded", i, r.ID, ids[0])
			case len(ids) == 1 && !skipped[i]:
				ran++
			}
			delete(at, i)
		}
		for i, ids := range at {
			if !i.After(j.quiet) {
				j.violated(i3, "%s of recurring task %s has %v", i, r.ID, ids)
			}
		}
		j.counts["instants"] += len(instants)
		j.counts["instants skipped"] += len(instants) - ran
		if !r.EndTime.IsZero() {
			continue
		}
		j.t.Logf("recurring %s, misfire after %g s, %s: %d instants due, %d ran, %d skipped", r.TargetType, r.MisfireAfterSeconds, r.CatchUpMode, len(instants), ran, len(instants)-ran)
	}
}

// checkCounts: what a recurring task counts is what ran.
func (j *judge) checkCounts(db *sql.DB, tasks map[string]storedTask) {
	for _, r := range j.recurring {
		var runs, completed, wantRuns, wantCompleted int
		if err := db.QueryRow(`SELECT runs_count, completed_count FROM recurring_tasks WHERE recurring_task_id = ?`, r.ID).Scan(&runs, &completed); err != nil {
			j.t.Fatal(err)
		}
		for _, k := range tasks {
			if k.recurring != r.ID {
				continue
			}
			switch k.status {
			case string(dts.Success):
				wantRuns++
				wantCompleted++
			case string(dts.Failed):
				wantRuns++
			}
		}
		if runs != wantRuns || completed != wantCompleted {
			j.violated(i2, "recurring task %s counts %d runs, %d of them completed; there are %d and %d", r.ID, runs, completed, wantRuns, wantCompleted)
		}
	}
}

// checkLedgers asks the API for the ledger: one entry for every due instant.
func (j *judge) checkLedgers() {
	for _, r := range j.recurring {
		var told []time.Time
		for o, err := range j.api().AllOccurrences(j.t.Context(), r.ID) {
			if err != nil {
				j.t.Fatal(err)
			}
			if o.Skip == nil {
				told = append(told, o.ScheduledAt.UTC())
				continue
			}
			for i := o.Skip.From; !i.After(o.Skip.To); i = i.Add(time.Second) {
				told = append(told, i.UTC())
			}
		}
		told = slices.DeleteFunc(told, func(i time.Time) bool { return i.After(j.quiet) })
		slices.SortFunc(told, time.Time.Compare)
		if want := j.instants(r); !slices.Equal(told, want) {
			j.violated(i4, "recurring task %s: %d entries for %d instants: %v", r.ID, len(told), len(want), told)
		}
	}
}
