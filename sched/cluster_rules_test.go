package sched_test

import (
	"testing"
	"time"

	"dts"
)

// holderOf returns the server that holds the shard of a recurring task, and one that does not.
func (c *cluster) holderOf(r *dts.RecurringTask) (holder, other *member) {
	c.t.Helper()
	by, err := c.look.Members(c.nodes[0].ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, m := range c.nodes {
		if by.Holders[r.Shard].Node == m.id {
			holder = m
		} else {
			other = m
		}
	}
	return holder, other
}

// TestClusterBackfillAndResume: who does not hold the shard says that it is elsewhere, and does nothing.
func TestClusterBackfillAndResume(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(time.Minute)
		r := c.nodes[0].every("* * * * *", nil)
		time.Sleep(10 * time.Minute)
		holder, other := c.holderOf(r)
		q := dts.BackfillRequest{From: r.CreatedAt, To: r.CreatedAt.Add(5 * time.Minute)}
		if _, err := other.s.BackfillRecurring(other.ctx, dts.DefaultTenant, r.ID, q, "tester"); dts.CodeOf(err) != dts.ErrElsewhere {
			t.Errorf("a backfill at the wrong server: %v", err)
		}
		if _, err := other.s.ResumeRecurring(other.ctx, dts.DefaultTenant, r.ID, true, "tester"); dts.CodeOf(err) != dts.ErrElsewhere {
			t.Errorf("a resume at the wrong server: %v", err)
		}
		a, err := holder.s.BackfillRecurring(holder.ctx, dts.DefaultTenant, r.ID, q, "tester")
		if err != nil || a.Created != a.Count || a.Count < 5 {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// TestClusterBlackout: a blackout that one server is told of counts for all of them about two seconds later, and so does
// its end.
func TestClusterBlackout(t *testing.T) {
	inCluster(t, 3, func(c *cluster) {
		time.Sleep(time.Minute)
		m := c.nodes[0]
		var all []*dts.Task
		for _, m := range c.nodes {
			for range 5 {
				all = append(all, m.add(10*time.Second, nil))
			}
		}
		b, err := m.s.CreateBlackout(m.ctx, &dts.Blackout{TenantID: dts.DefaultTenant, Name: "b", Window: dts.Window{Start: m.now(), End: m.now().Add(time.Hour)}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, x := range all {
			if got := m.lookAt(c, x.ID); got.WaitsFor != dts.ReasonBlackout || got.Status != dts.Pending {
				t.Errorf("in the blackout a task is %s and waits for %q", got.Status, got.WaitsFor)
			}
		}
		if err := c.nodes[1].s.DeleteBlackout(m.ctx, dts.DefaultTenant, b.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		for _, x := range all {
			if got := m.lookAt(c, x.ID); got.Status != dts.Success {
				t.Errorf("after the blackout was deleted a task is %s and waits for %q until %s", got.Status, got.WaitsFor, got.RunAt)
			}
		}
	})
}

// TestClusterBuffersOutliveAServer: what waits for the end of a run goes on waiting, and in its order, at the server that
// takes the shard.
func TestClusterBuffersOutliveAServer(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(time.Minute)
		crowd := newCrowd(100 * time.Second)
		for _, m := range c.nodes {
			m.run.behave(crowd.run)
		}
		r := c.nodes[0].every("* * * * *", func(r *dts.RecurringTask) {
			r.OverlapPolicy, r.EndTime = dts.OverlapBufferAll, c.nodes[0].now().Add(8*time.Minute)
		})
		time.Sleep(6 * time.Minute)
		holder, other := c.holderOf(r)
		holder.leave()
		time.Sleep(time.Hour)
		var last time.Duration
		n := 0
		for _, x := range other.bookOf(c, r.ID) {
			at := crowd.began[x.ID]
			if x.Status != dts.Success || len(at) == 0 {
				t.Errorf("%s is %s, began %v", x.ScheduledAt, x.Status, at)
				continue
			}
			if n++; at[0] < last {
				t.Errorf("%s began at %v, before the one before it", x.ScheduledAt, at[0])
			}
			last = at[0]
		}
		if n < 7 || crowd.most[r.ID] != 1 {
			t.Errorf("%d ran, %d at once", n, crowd.most[r.ID])
		}
	})
}

// bookOf returns the occurrences of a recurring task, in the order of their instants.
func (m *member) bookOf(c *cluster, id string) []*dts.Task {
	w := &world{t: c.t, st: c.look, ctx: m.ctx}
	return w.book(id, time.Minute).tasks
}
