package store_test

import (
	"slices"
	"testing"
	"time"

	"dts"
	"dts/store"
)

// What is read to say what will happen, or why something did not.
func TestLook(t *testing.T) {
	st, db, f := open(t)
	recurring := func() *dts.RecurringTask {
		r := &dts.RecurringTask{Spec: dts.Spec{Name: "job", TargetType: dts.Command, TargetConfig: []byte(`{"argv":["true"]}`)}, Schedule: dts.Schedule{Cron: "* * * * *"}}
		if err := r.Normalize(); err != nil {
			t.Fatal(err)
		}
		r.ID, r.Status, r.CreatedAt, r.UpdatedAt, r.PlannedThrough = dts.NewID(now), dts.Active, now, now, now
		r.Shard = dts.ShardOf(r.ID)
		if _, err := st.InsertRecurring(ctx, f, dts.Plan{Old: r, New: r}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	apply := func(sql string, args ...any) {
		if _, err := db.Apply(ctx, store.Stmt{SQL: sql, Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	r, other := recurring(), recurring()
	at := func(minute int) time.Time { return now.Add(time.Duration(minute) * time.Minute) }
	ended := func(minute int, status dts.Status, took time.Duration) {
		k := r.Occurrence(at(minute), dts.OriginSchedule, now)
		insert(t, st, k)
		apply(`UPDATE tasks SET status = ?, started_at = scheduled_at, completed_at = scheduled_at + ? WHERE task_id = ?`, string(status), took.Microseconds(), k.ID)
	}
	for minute := range 25 {
		ended(minute, dts.Success, time.Duration(minute)*time.Second)
	}
	ended(25, dts.Failed, time.Hour)
	ended(26, dts.Cancelled, 2*time.Hour)
	ended(27, dts.Skipped, 0)
	insert(t, st, r.Occurrence(at(28), dts.OriginSchedule, now), r.Occurrence(at(25), dts.OriginBackfill, now))

	times, err := st.RunTimes(ctx, []string{r.ID, other.ID, "gone"}, 3)
	got := times[r.ID]
	slices.Sort(got)
	if err != nil || len(times) != 1 || !slices.Equal(got, []time.Duration{23 * time.Second, 24 * time.Second, time.Hour}) {
		t.Errorf("%v %v", times, err)
	}

	insert(t, st, task(t, func(k *dts.Task) { k.RunAt, k.Name = at(3), "late" }), task(t, func(k *dts.Task) { k.RunAt, k.Name = at(2), "soon" }),
		task(t, func(k *dts.Task) { k.RunAt = at(4) }), task(t, func(k *dts.Task) { k.RunAt = at(1) }))
	once, err := st.PendingOnce(ctx, dts.DefaultTenant, at(2), at(4), 10)
	if err != nil || len(once) != 2 || once[0].Name != "soon" || once[1].Name != "late" || !once[0].RunAt.Equal(at(2)) || once[0].TargetType != dts.Command || once[0].Queue != "default" || once[0].ID == "" {
		t.Errorf("%+v %v", once, err)
	}
	if once, err = st.PendingOnce(ctx, dts.DefaultTenant, at(2), at(4), 1); err != nil || len(once) != 1 {
		t.Errorf("%+v %v", once, err)
	}
	if once, err = st.PendingOnce(ctx, "another", at(2), at(4), 10); err != nil || len(once) != 0 {
		t.Errorf("%+v %v", once, err)
	}

	for _, k := range []struct {
		from, to int
		reason   dts.Reason
	}{{0, 100, dts.ReasonPaused}, {27, 27, dts.ReasonOverlap}, {20, 26, dts.ReasonCalendar}} {
		apply(`INSERT INTO skips (tenant_id, recurring_task_id, from_at, to_at, count, reason, note, recorded_at) VALUES (?,?,?,?,?,?,'',?)`,
			dts.DefaultTenant, r.ID, at(k.from).UnixMicro(), at(k.to).UnixMicro(), k.to-k.from+1, string(k.reason), now.UnixMicro())
	}
	for _, tt := range []struct {
		tenant  string
		minute  int
		origins []dts.Origin
		reasons []dts.Reason
	}{
		{dts.DefaultTenant, 25, []dts.Origin{dts.OriginSchedule, dts.OriginBackfill}, []dts.Reason{dts.ReasonCalendar, dts.ReasonPaused}},
		{dts.DefaultTenant, 27, []dts.Origin{dts.OriginSchedule}, []dts.Reason{dts.ReasonOverlap, dts.ReasonPaused}},
		{dts.DefaultTenant, 101, nil, nil},
		{"another", 25, nil, nil},
	} {
		tasks, skips, err := st.OccurrenceAt(ctx, tt.tenant, r.ID, at(tt.minute))
		if err != nil {
			t.Fatal(err)
		}
		var origins []dts.Origin
		for _, k := range tasks {
			origins = append(origins, k.Origin)
		}
		var reasons []dts.Reason
		for _, k := range skips {
			reasons = append(reasons, k.Reason)
		}
		if !slices.Equal(origins, tt.origins) || !slices.Equal(reasons, tt.reasons) {
			t.Errorf("%s %d: %v %v", tt.tenant, tt.minute, origins, reasons)
		}
	}
	for minute, want := range map[int]dts.Reason{-1: "", 0: dts.ReasonPaused, 26: dts.ReasonCalendar, 500: dts.ReasonOverlap} {
		k, err := st.LastSkipBefore(ctx, r.ID, at(minute))
		if err != nil || (k == nil) != (want == "") || k != nil && k.Reason != want {
			t.Errorf("%d: %+v %v", minute, k, err)
		}
	}
}
