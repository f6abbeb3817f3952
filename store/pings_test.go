package store_test

import (
	"fmt"
	"testing"
	"time"

	"dts"
)

// Pings are bounded, can be stored twice, belong to one instant, and go with their recurring task.
func TestPings(t *testing.T) {
	st, b, _ := open(t)
	at := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	code := 3
	for n := range dts.MaxPings + 50 {
		p := &dts.PingRecord{ID: dts.NewID(at.Add(time.Duration(n) * time.Second)), TenantID: dts.DefaultTenant, RecurringTaskID: "r",
			ReceivedAt: at.Add(time.Duration(n) * time.Second), Kind: dts.PingFailure, ExitCode: &code, Body: fmt.Sprint(n), BodyBytes: 99}
		if n%2 == 0 {
			p.ScheduledAt = at
		}
		for range 2 { // its answer was lost
			if err := st.AddPing(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := &dts.PingRecord{ID: dts.NewID(at), TenantID: dts.DefaultTenant, RecurringTaskID: "other", ReceivedAt: at, Kind: dts.PingStart}
	if err := st.AddPing(ctx, other); err != nil {
		t.Fatal(err)
	}
	list, err := st.Pings(ctx, dts.DefaultTenant, "r", 1000)
	if err != nil || len(list) != dts.MaxPings || list[0].Body != "149" || list[99].Body != "50" {
		t.Fatalf("%d pings, %v", len(list), err)
	}
	if p := list[1]; *p.ExitCode != 3 || p.BodyBytes != 99 || !p.ScheduledAt.Equal(at) || p.Kind != dts.PingFailure || !list[0].ScheduledAt.IsZero() {
		t.Errorf("%+v, %+v", list[0], p)
	}
	counted, err := st.PingsFor(ctx, "r", at)
	if err != nil || len(counted) != dts.MaxPings/2 || counted[0].Body != "50" || counted[49].Body != "148" {
		t.Errorf("%d count for the instant, %v", len(counted), err)
	}
	if list, err := st.Pings(ctx, dts.DefaultTenant, "other", 1000); err != nil || len(list) != 1 || list[0].ExitCode != nil {
		t.Errorf("another recurring task has %d, %v", len(list), err)
	}

	apply(t, b, `INSERT INTO recurring_tasks (recurring_task_id, tenant_id, name, status, plan_version, planned_through, shard, runs_count, completed_count, created_by, created_at, updated_at, spec)
		VALUES ('r', 'default', '', 'CANCELLED', 1, 0, 0, 0, 0, '', 0, 0, '{}'), ('other', 'default', '', 'ACTIVE', 1, 0, 0, 0, 0, '', 0, 0, '{}')`)
	if _, err := st.DeleteOld(ctx, at, at, 10); err != nil {
		t.Fatal(err)
	}
	if left := texts(t, b, `SELECT recurring_task_id FROM pings`); len(left) != 1 || left[0] != "other" {
		t.Errorf("left are pings of %q", left)
	}
}

// The first server makes the secret of ping URLs, and all have the same one from then on.
func TestPingSecret(t *testing.T) {
	st, _, _ := open(t)
	for _, proposal := range []string{"first", "second"} {
		if secret, err := st.PingSecret(ctx, proposal); err != nil || secret != "first" {
			t.Errorf("%q, %v", secret, err)
		}
	}
}
