package sched_test

import (
	"errors"
	"testing"
	"time"

	"dts"
)

// TestNotInCluster: the servers of a cluster boot at different times, so @reboot is refused there; and their database
// is rqlite's to back up.
func TestNotInCluster(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second) // each has its shards
		w := c.nodes[0]
		r := &dts.RecurringTask{Spec: w.spec(), Schedule: dts.Schedule{Cron: "@reboot"}}
		if err := r.Normalize(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.CreateRecurring(w.ctx, r); dts.CodeOf(err) != dts.ErrInvalid {
			t.Errorf("create: %v", err)
		}
		spec := w.spec()
		spec.TargetType, spec.TargetConfig = dts.Backup, []byte(`{"dir":"/backup"}`)
		backup := &dts.RecurringTask{Spec: spec, Schedule: dts.Schedule{Cron: "@daily"}}
		once := &dts.Task{Spec: spec}
		if err := errors.Join(backup.Normalize(), once.Normalize(time.Now())); err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.CreateRecurring(w.ctx, backup); dts.CodeOf(err) != dts.ErrInvalid {
			t.Errorf("create a backup: %v", err)
		}
		if _, err := w.s.CreateTasks(w.ctx, []*dts.Task{once}); dts.CodeOf(err) != dts.ErrInvalid {
			t.Errorf("create a backup that runs once: %v", err)
		}
		for _, m := range c.nodes {
			r := m.every("@daily", nil)
			cron := "@reboot"
			if _, err := m.s.ModifyRecurring(m.ctx, r.TenantID, r.ID, dts.RecurringPatch{Cron: &cron}); dts.CodeOf(err) != dts.ErrInvalid {
				t.Errorf("change: %v", err)
			}
			kind := dts.Backup
			patch := dts.RecurringPatch{TaskTemplatePatch: dts.TaskTemplatePatch{TargetType: &kind, TargetConfig: spec.TargetConfig}}
			if _, err := m.s.ModifyRecurring(m.ctx, r.TenantID, r.ID, patch); dts.CodeOf(err) != dts.ErrInvalid {
				t.Errorf("change to a backup: %v", err)
			}
		}
	})
}
