package sched_test

import (
	"testing"
	"time"

	"dts"
)

// TestNoRebootInCluster: the servers of a cluster boot at different times, so @reboot is refused there.
func TestNoRebootInCluster(t *testing.T) {
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
		for _, m := range c.nodes {
			r := m.every("@daily", nil)
			cron := "@reboot"
			if _, err := m.s.ModifyRecurring(m.ctx, r.TenantID, r.ID, dts.RecurringPatch{Cron: &cron}); dts.CodeOf(err) != dts.ErrInvalid {
				t.Errorf("change: %v", err)
			}
		}
	})
}
