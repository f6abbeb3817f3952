package web_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"dts"
	"dts/web/api"
	"dts/web/client"
)

// TestClient calls every method once against a real server.
func TestClient(t *testing.T) {
	s := start(t, nil)
	c, ctx := s.client(t), t.Context()
	check := func(what string, ok bool, err error) {
		t.Helper()
		if err != nil || !ok {
			t.Errorf("%s: %v, error %v", what, ok, err)
		}
	}
	spec := dts.Spec{Name: "n", TargetType: dts.Command, TargetConfig: []byte(`{"argv":["x"]}`)}
	made, err := c.CreateTask(ctx, api.TaskRequest{Spec: spec, RunAt: api.At(now.Add(time.Hour)), IdempotencyKey: "k"})
	check("CreateTask", made.Item != nil && !made.Existed && made.Item.RunAt.Equal(now.Add(time.Hour)), err)
	again, err := c.CreateTask(ctx, api.TaskRequest{Spec: spec, RunAt: api.At(now.Add(time.Hour)), IdempotencyKey: "k"})
	check("CreateTask again", again.Existed && again.Item.ID == made.Item.ID, err)
	id := made.Item.ID
	task, err := c.Task(ctx, id)
	check("Task", err == nil && task.ID == id && task.Name == "n", err)
	name := "m"
	task, err = c.ModifyTask(ctx, id, api.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}, Delay: "2h", ExpiresAt: api.TimeText{Null: true}})
	check("ModifyTask", err == nil && task.Name == "m" && task.RunAt.Equal(now.Add(2*time.Hour)), err)
	for _, v := range []dts.Verb{dts.Cancel, dts.RunNow, dts.ForceComplete, dts.Delete} {
		task, err = c.DoTask(ctx, id, v)
		check(string(v), err == nil && task.ID == id, err)
	}
	bulk, err := c.CreateTasks(ctx, []api.TaskRequest{{Spec: spec}, {Spec: spec, Delay: "5s"}})
	check("CreateTasks", err == nil && len(bulk.Items) == 2, err)
	done, err := c.Bulk(ctx, dts.BulkChange{Verb: dts.BulkCancel, Filter: dts.TaskFilter{IDs: []string{id}}})
	check("Bulk", done == dts.BulkResult{Matched: 9, Done: 7} && s.bulk.Verb == dts.BulkCancel && len(s.filter.IDs) == 1, err)
	want := dts.TaskFilter{Statuses: []dts.Status{dts.Pending}, Queue: "q", Name: "n", NamePrefix: "p", Error: "e", Labels: map[string]string{"a": "b"}, CreatedBy: "c",
		RecurringTaskID: id, BatchID: id, DedupeKey: "d", ConcurrencyKey: "k", WaitsFor: dts.ReasonPaused, From: now, To: now.Add(time.Hour)}
	done, err = c.Bulk(ctx, dts.BulkChange{Verb: dts.BulkDelete, Filter: want, DryRun: true})
	want.TenantID, want.NoSteps = dts.DefaultTenant, true
	check("Bulk", done == dts.BulkResult{Matched: 9, DryRun: true} && reflect.DeepEqual(s.filter, want), err)
	count := 0
	for task, err := range c.AllTasks(ctx, dts.TaskFilter{Limit: 2, Statuses: []dts.Status{dts.Pending}, Labels: map[string]string{"a": "b"}, From: now}) {
		check("AllTasks", task != nil, err)
		count++
	}
	check("AllTasks", count == 3 && s.filter.Limit == 2 && s.filter.Labels["a"] == "b" && s.filter.From.Equal(now), nil)
	s.attempt(id, 1, dts.AttemptSuccess, &dts.Output{Head: []byte("hi"), Total: 2})
	attempts, err := c.Attempts(ctx, id)
	check("Attempts", len(attempts) == 1 && attempts[0].State == dts.AttemptSuccess, err)
	out, err := c.Output(ctx, id, 1)
	check("Output", err == nil && out.Head == "hi", err)
	var buf bytes.Buffer
	err = c.WriteOutput(ctx, &buf, id, 0)
	check("WriteOutput", buf.String() == "hi", err)

	r, err := c.CreateRecurring(ctx, api.RecurringRequest{Spec: spec, IntervalSeconds: 90, EndTime: api.At(now.Add(time.Hour))})
	check("CreateRecurring", err == nil && r.Item.IntervalSeconds == 90 && r.Item.EndTime.Equal(now.Add(time.Hour)), err)
	rid := r.Item.ID
	cron := api.Expressions("*/5 * * * *\n0 0 * * *")
	rt, err := c.ModifyRecurring(ctx, rid, api.RecurringPatch{Cron: &cron, EndTime: api.TimeText{Null: true}})
	check("ModifyRecurring", err == nil && rt.Cron == string(cron) && rt.EndTime.IsZero(), err)
	rt, err = c.PauseRecurring(ctx, rid, api.PauseRequest{Note: "why", Until: api.At(now.Add(time.Hour))})
	check("PauseRecurring", err == nil && rt.ID == rid && s.note == "why", err)
	for _, catchUp := range []bool{true, false} {
		rt, err = c.Resume(ctx, rid, catchUp)
		check("Resume", err == nil && rt.ID == rid && s.times.catchUp == catchUp, err)
	}
	filled, err := c.Backfill(ctx, rid, api.BackfillRequest{From: api.At(now.Add(-2 * time.Hour)), To: api.At(now.Add(-time.Hour)), DryRun: true})
	check("Backfill", err == nil && filled.Count == 2 && s.times.backfill.DryRun && s.times.backfill.To.Equal(now.Add(-time.Hour)), err)
	why, err := c.WhyInstant(ctx, rid, now)
	check("WhyInstant", err == nil && why.Answer == rid && s.times.whyAt.Equal(now), err)
	why, err = c.WhyTask(ctx, id)
	check("WhyTask", err == nil && why.Answer == id && s.times.whyAt.IsZero(), err)
	task, err = c.TriggerRecurring(ctx, rid)
	check("TriggerRecurring", err == nil && task.RecurringTaskID == rid, err)
	rt, err = c.RecurringTask(ctx, rid)
	check("RecurringTask", err == nil && rt.ID == rid, err)
	rt, err = c.CancelRecurring(ctx, rid)
	check("CancelRecurring", err == nil && rt.ID == rid, err)
	for rt, err := range c.AllRecurringTasks(ctx, dts.RecurringFilter{Name: "n"}) {
		check("AllRecurringTasks", rt.ID == rid && s.recurringFilter.Name == "n", err)
	}
	up, err := c.Upcoming(ctx, rid, 2)
	check("Upcoming", len(up) == 2, err)
	count = 0
	for o, err := range c.AllOccurrences(ctx, rid) {
		check("AllOccurrences", !o.ScheduledAt.IsZero(), err)
		count++
	}
	check("AllOccurrences", count == 2, nil)
	pre, err := c.Preview(ctx, api.PreviewRequest{Cron: cron, Count: 3})
	check("Preview", err == nil && len(pre.Instants) == 3, err)
	list, err := c.Conflicts(ctx, time.Time{}, now.Add(time.Hour))
	check("Conflicts", len(list) == 1 && list[0].From.Equal(now) && list[0].To.Equal(now.Add(time.Hour)), err)

	off := api.CalendarRequest{Days: []string{"12-25"}, ICS: "BEGIN:VCALENDAR"}
	put, err := c.PutCalendar(ctx, "off", off)
	check("PutCalendar", err == nil && !put.Existed && put.Item.Name == "off", err)
	put, err = c.PutCalendar(ctx, "off", off)
	check("PutCalendar again", err == nil && put.Existed, err)
	_, err = c.CreateCalendar(ctx, api.CalendarRequest{Name: "off", Days: off.Days})
	check("CreateCalendar", dts.CodeOf(err) == dts.ErrConflict, nil)
	k, err := c.Calendar(ctx, "off")
	check("Calendar", err == nil && k.ICS == off.ICS && k.Days[0] == "12-25", err)
	all, err := c.Calendars(ctx)
	check("Calendars", len(all) == 1 && all[0].Name == "off" && all[0].ICS == "", err)
	s.times.calendars[0].ICS = ""
	windows, err := c.CalendarWindows(ctx, "off", now, now.AddDate(1, 0, 0), "Europe/Berlin")
	check("CalendarWindows", len(windows) == 1 && windows[0].Start.Equal(time.Date(2026, 12, 24, 23, 0, 0, 0, time.UTC)) && windows[0].End.Sub(windows[0].Start) == 24*time.Hour, err)
	k, err = c.DeleteCalendar(ctx, "off")
	check("DeleteCalendar", err == nil && k.Name == "off", err)
	_, err = c.Calendar(ctx, "off")
	check("Calendar that is gone", dts.CodeOf(err) == dts.ErrNotFound, nil)

	b, err := c.CreateBlackout(ctx, api.BlackoutRequest{Name: "upgrade", Calendar: "off"})
	check("CreateBlackout", err == nil && b.Action == dts.BlackoutWait && b.CreatedBy == "admin", err)
	b, err = c.ReplaceBlackout(ctx, b.ID, api.BlackoutRequest{Name: "upgrade", Action: dts.BlackoutSkip, WindowRequest: api.WindowRequest{Cron: "@daily", DurationSeconds: 60}})
	check("ReplaceBlackout", err == nil && b.Action == dts.BlackoutSkip && b.DurationSeconds == 60 && b.CreatedBy == "admin", err)
	b, err = c.Blackout(ctx, b.ID)
	check("Blackout", err == nil && b.Cron == "@daily", err)
	blackouts, err := c.Blackouts(ctx)
	check("Blackouts", len(blackouts) == 1 && blackouts[0].ID == b.ID, err)
	b, err = c.DeleteBlackout(ctx, b.ID)
	check("DeleteBlackout", err == nil && b.Name == "upgrade" && len(s.times.blackouts) == 0, err)

	keep, err := c.PutRetention(ctx, dts.Retention{Bytes: 1 << 30})
	check("PutRetention", err == nil && keep.Bytes == 1<<30 && keep.Effective == dts.Retention{Seconds: 3600, Rows: 100, Bytes: 1 << 30}, err)
	keep, err = c.Retention(ctx)
	check("Retention", err == nil && keep.Bytes == 1<<30, err)
	_, err = c.PutRetention(ctx, dts.Retention{Rows: -1})
	check("PutRetention of less than nothing", dts.CodeOf(err) == dts.ErrInvalid, nil)
	q, err := c.PutQueue(ctx, "reports", api.QueueRequest{Concurrency: 4})
	check("PutQueue", err == nil && q.Name == "reports" && q.Concurrency == 4, err)
	_, err = c.PutQueue(ctx, "reports", api.QueueRequest{Concurrency: dts.MaxConcurrency + 1})
	check("PutQueue of too much", dts.CodeOf(err) == dts.ErrInvalid, nil)
	q, err = c.Queue(ctx, "reports")
	check("Queue", err == nil && q.Concurrency == 4, err)
	queues, err := c.Queues(ctx)
	check("Queues", len(queues) == 1 && queues[0].Name == "reports", err)
	q, err = c.PauseQueue(ctx, "reports", "a note")
	check("PauseQueue", err == nil && q.Paused && q.PauseNote == "a note" && q.Concurrency == 4, err)
	q, err = c.ResumeQueue(ctx, "reports")
	check("ResumeQueue", err == nil && !q.Paused, err)
	_, err = c.ResumeQueue(ctx, "reports")
	check("ResumeQueue of one that is not paused", dts.CodeOf(err) == dts.ErrConflict, nil)
	q, err = c.DeleteQueue(ctx, "reports")
	check("DeleteQueue", err == nil && q.Name == "reports" && len(s.queues) == 0, err)
	_, err = c.DeleteQueue(ctx, "reports")
	check("DeleteQueue of none", dts.CodeOf(err) == dts.ErrNotFound, nil)

	check("Health", true, c.Health(ctx))
	ready, err := c.Ready(ctx)
	check("Ready", err == nil && ready.Ready, err)
	s.notReady = dts.Errorf(dts.ErrUnavailable, "the disk is full")
	ready, err = c.Ready(ctx)
	check("not Ready", err == nil && !ready.Ready && ready.Reasons[0] == "the disk is full", err)
	st, err := c.Status(ctx)
	check("Status", err == nil && st.Node == "n1", err)
	counts, err := c.Counts(ctx)
	check("Counts", err == nil && counts.Pending == 3, err)
	buf.Reset()
	err = c.Metrics(ctx, &buf)
	check("Metrics", buf.String() == "dts_up 1\n", err)
	_, err = c.LoginLink(ctx)
	check("LoginLink", dts.CodeOf(err) == dts.ErrConflict, nil)
}

func TestClientErrors(t *testing.T) {
	s := start(t, nil)
	_, err := s.client(t).CreateTask(t.Context(), api.TaskRequest{})
	e, ok := errors.AsType[*dts.Error](err)
	if !ok || e.Code != dts.ErrInvalid || len(e.Fields) != 1 || e.Fields[0].Field != "target_type" {
		t.Errorf("%v", err)
	}
	wrong, _ := client.New(client.Options{Server: "http://" + s.Addr(), Token: "wrong"})
	if _, err := wrong.Status(t.Context()); dts.CodeOf(err) != dts.ErrUnauthorized {
		t.Error(err)
	}
}
