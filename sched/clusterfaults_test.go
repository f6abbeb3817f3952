package sched_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/store"
)

// TestClusterBeatWithoutAnswer: a beat that arrived, but whose answer was lost, and that is sent again, must not make
// a server believe longer in its lease than the others do.
func TestClusterBeatWithoutAnswer(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		lost := c.nodes[0]
		for range 12 { // the occurrences of the next 10 to 20 s are in memory
			lost.every("* * * * * *", nil)
			time.Sleep(time.Second)
		}
		var first atomic.Pointer[time.Time]
		lost.cut.decide(of("UPDATE nodes SET beat", func() fate {
			if now := time.Now(); first.CompareAndSwap(nil, &now) {
				return fate{silent: true}
			}
			return fate{cut: time.Since(*first.Load()) < 8*time.Second}
		}))
		for first.Load() == nil {
			time.Sleep(time.Second / 10)
		}
		time.Sleep(time.Until(first.Load().Add(9 * time.Second)))
		lost.cut.off.Store(true)
		var dead time.Time
		for range 400 {
			time.Sleep(time.Second / 10)
			if n, _, err := c.look.Node(lost.ctx, lost.id); err != nil {
				t.Fatal(err)
			} else if dead.IsZero() && n.State == dts.NodeDead {
				dead = time.Now()
			}
		}
		list := lost.run.list()
		if last := list[len(list)-1].at; dead.IsZero() || !last.Before(dead) {
			t.Errorf("the last start came at %v, and the server was declared dead at %v", last, dead)
		}
		lost.cut.off.Store(false)
	})
}

// TestClusterReleaseWithoutAnswer: shards that were let go of, but whose release did not arrive or was not answered,
// are held by their next holder soon all the same.
func TestClusterReleaseWithoutAnswer(t *testing.T) {
	for name, f := range map[string]fate{"cut": {cut: true}, "silent": {silent: true}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 1, func(c *cluster) {
				time.Sleep(12 * time.Second)
				once := f
				c.nodes[0].cut.decide(of("UPDATE shards SET node_id = ''", func() fate {
					defer func() { once = fate{} }()
					return once
				}))
				c.join("node-2")
				time.Sleep(10 * time.Second)
				c.shared()
				for range 50 {
					c.nodes[1].add(0, nil)
				}
				time.Sleep(time.Second)
				if n := len(c.nodes[1].run.list()); n != 50 {
					t.Errorf("%d of 50 tasks ran", n)
				}
			})
		})
	}
}

// TestClusterTakeWithoutAnswer: shards that a server took without knowing it, and that belong to another one when it
// sees that, do not stay with it.
func TestClusterTakeWithoutAnswer(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		a, b := c.nodes[0], c.nodes[1]
		var joined atomic.Bool
		a.cut.decide(func(batch []store.Stmt) fate {
			f := of("UPDATE shards SET node_id = ?2", func() fate { return fate{silent: true} })(batch)
			if f.silent { // until the new one is there, it hears nothing any more
				a.cut.decide(func([]store.Stmt) fate { return fate{cut: !joined.Load()} })
			}
			return f
		})
		b.leave()
		time.Sleep(time.Second)
		c.join("node-3")
		time.Sleep(time.Second)
		joined.Store(true)
		time.Sleep(12 * time.Second)
		c.shared()
	})
}

// TestClusterRegisterWithoutAnswer: a server that was declared dead, and whose answer to registering was lost, does not
// take itself for another one.
func TestClusterRegisterWithoutAnswer(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		m := c.nodes[0]
		m.cut.off.Store(true)
		time.Sleep(30 * time.Second)
		c.nodes[1].leave()
		var asked time.Time
		m.cut.decide(of("INSERT INTO nodes", func() fate {
			if asked.IsZero() {
				asked = time.Now()
				return fate{silent: true}
			}
			return fate{cut: time.Since(asked) < 12*time.Second}
		}))
		m.cut.off.Store(false)
		time.Sleep(30 * time.Second)
		if err := m.s.Ready(); err != nil {
			t.Error(err)
		}
	})
}

// TestClusterVerbWhileShardsMove: a verb holds a task that is not in memory while shards go to another server, but not
// the task's.
func TestClusterVerbWhileShardsMove(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		time.Sleep(12 * time.Second)
		m := c.nodes[0]
		var ids []string
		for range 30 {
			ids = append(ids, m.add(time.Hour, nil).ID)
		}
		var all atomic.Int32
		m.cut.decide(of("UPDATE tasks SET status = ?, priority", func() fate { return fate{early: time.Second} }))
		for _, id := range ids {
			go func() {
				if _, err := m.s.DoTask(m.ctx, dts.DefaultTenant, id, dts.RunNow, "me"); err == nil {
					all.Add(1)
				}
			}()
		}
		time.Sleep(time.Second / 2)
		c.join("node-6") // takes shard 0
		time.Sleep(10 * time.Second)
		c.shared()
		if n := len(c.starts()); n != int(all.Load()) || n < 5 {
			t.Errorf("of 30 tasks, %d were told to run now, and %d did", all.Load(), n)
		}
	})
}

// TestClusterPauseWhileShardsMove: a pause that comes while a server begins to fire in a shard that it has just taken.
func TestClusterPauseWhileShardsMove(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		time.Sleep(12 * time.Second)
		var list []*dts.RecurringTask
		for range 12 {
			list = append(list, c.nodes[0].every("* * * * * *", nil))
		}
		time.Sleep(5*time.Second + time.Second/2)
		b := c.join("node-2", func(m *member) {
			m.cut.decide(of("WHERE status = 'PAUSED'", func() fate { return fate{late: 300 * time.Millisecond} }))
		})
		paused := map[string]bool{}
		for i := 0; i < 1000 && len(paused) == 0; i++ {
			time.Sleep(10 * time.Millisecond)
			for _, r := range list {
				if !paused[r.ID] {
					if _, err := b.s.PauseRecurring(b.ctx, dts.DefaultTenant, r.ID, time.Time{}, "", "me"); err == nil {
						paused[r.ID] = true
					}
				}
			}
		}
		began := time.Now()
		time.Sleep(5 * time.Second)
		for _, s := range c.starts() {
			if k := b.lookAt(c, s.id); s.at.After(began) && paused[k.RecurringTaskID] {
				t.Errorf("%s ran %v after it was paused", k.RecurringTaskID, s.at.Sub(began))
			}
		}
		if len(paused) == 0 {
			t.Error("none could be paused")
		}
	})
}

// TestClusterMissedElsewhere: what a server knows to be missed, and that is another one's since, is left alone.
func TestClusterMissedElsewhere(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		time.Sleep(12 * time.Second)
		a := c.nodes[0]
		for range 12 {
			r := a.every("* * * * * *", func(r *dts.RecurringTask) { r.MisfireAfterSeconds = 1 })
			// Once it was changed, its occurrences are read from the store when they are due.
			if _, err := a.s.ModifyRecurring(a.ctx, dts.DefaultTenant, r.ID, dts.RecurringPatch{}); err != nil {
				t.Fatal(err)
			}
		}
		b := c.join("node-2")
		time.Sleep(12 * time.Second)
		a.cut.off.Store(true)
		time.Sleep(10 * time.Second)
		c.join("node-3")
		time.Sleep(30 * time.Second)
		a.cut.off.Store(false)
		time.Sleep(30 * time.Second)
		c.shared()
		var plans atomic.Int32
		a.cut.decide(of("UPDATE recurring_tasks SET status", func() fate { plans.Add(1); return fate{} }))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := plans.Load(); n > 20 {
			t.Errorf("%d batches of plans were tried within 20 s", n)
		}
		b.cut.off.Store(false)
	})
}

// TestClusterKeyTaken: an idempotency key that another request has used is a conflict, and no sign that shards move.
func TestClusterKeyTaken(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		m := c.nodes[0]
		for _, hash := range []string{"one", "other"} {
			k := &dts.Task{Spec: m.spec(), RunAt: time.Now().Add(time.Hour), IdempotencyKey: "key", RequestHash: hash}
			r := &dts.RecurringTask{Spec: m.spec(), Schedule: dts.Schedule{Cron: "0 0 1 1 *"}, IdempotencyKey: "keyed", RequestHash: hash}
			if err := errors.Join(k.Normalize(time.Now()), r.Normalize()); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err := m.s.CreateTasks(m.ctx, []*dts.Task{k})
			_, rerr := m.s.CreateRecurring(m.ctx, r)
			if hash == "one" && (err != nil || rerr != nil) || hash == "other" && (dts.CodeOf(err) != dts.ErrConflict || dts.CodeOf(rerr) != dts.ErrConflict) || time.Since(began) > time.Second/2 {
				t.Errorf("%s: %v, %v, after %v", hash, err, rerr, time.Since(began))
			}
		}
	})
}

// TestClusterDeadBeforeItLeft: a server that was declared dead before it could say that it stops ends what it runs: the
// others run that again.
func TestClusterDeadBeforeItLeft(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		m := c.nodes[0]
		var ended atomic.Pointer[time.Time]
		m.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			<-ctx.Done()
			now := time.Now()
			ended.Store(&now)
			return dts.Outcome{State: dts.AttemptLost, Error: "lost"}
		})
		k := m.add(0, nil)
		time.Sleep(time.Second)
		m.cut.off.Store(true)
		time.Sleep(25 * time.Second)
		go func() {
			time.Sleep(time.Second)
			m.cut.off.Store(false)
		}()
		began := time.Now()
		m.leave()
		if d := ended.Load().Sub(began); d > 3*time.Second {
			t.Errorf("its run was stopped after %v", d)
		}
		if k = c.nodes[0].lookAt(c, k.ID); k.Status != dts.Success || k.Attempts != 2 {
			t.Errorf("the task is %s after %d attempts", k.Status, k.Attempts)
		}
	})
}

// TestClusterStartWithoutAnswer: the start of an AT_MOST_ONCE task arrived, which its server does not know, and then
// the shard goes to another one.
func TestClusterStartWithoutAnswer(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		time.Sleep(12 * time.Second)
		m := c.nodes[0]
		var asked time.Time
		m.cut.decide(of("UPDATE tasks SET status = 'RUNNING'", func() fate {
			if asked.IsZero() {
				asked = time.Now()
				return fate{silent: true}
			}
			return fate{cut: time.Since(asked) < 15*time.Second}
		}))
		var list []*dts.Task
		for range 20 {
			list = append(list, m.add(time.Second, func(k *dts.Task) { k.Delivery, k.Retry.MaxAttempts = dts.AtMostOnce, 1 }))
		}
		time.Sleep(1500 * time.Millisecond)
		c.join("node-2")
		time.Sleep(time.Minute)
		c.shared()
		runs := map[string]int{}
		for _, s := range c.starts() {
			runs[s.id]++
		}
		for _, k := range list {
			switch k = m.lookAt(c, k.ID); {
			case runs[k.ID] > 1, !k.Status.Terminal(), runs[k.ID] == 0 && k.Status == dts.Success:
				t.Errorf("an AT_MOST_ONCE task is %s after %d starts", k.Status, runs[k.ID])
			}
		}
	})
}

// TestClusterEndAfterHandover: the end of a run reaches the disk only when its shard has gone.
func TestClusterEndAfterHandover(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		c.setDeaf(true)
		time.Sleep(12 * time.Second)
		m := c.nodes[0]
		m.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			time.Sleep(2 * time.Second)
			return fails(ctx, j)
		})
		var list []*dts.Task
		for range 20 {
			list = append(list, m.add(0, func(k *dts.Task) { k.Retry.MaxAttempts = 2 }))
		}
		time.Sleep(time.Second)
		m.cut.decide(of("completed_at = ?6", func() fate { return fate{early: 6 * time.Second} }))
		time.Sleep(1100 * time.Millisecond)
		m.run.behave(nil)
		c.join("node-2")
		time.Sleep(40 * time.Second)
		c.shared()
		by := map[string]int{}
		for _, k := range list {
			if k = m.lookAt(c, k.ID); k.Status != dts.Success || k.Attempts != 2 {
				t.Errorf("a task is %s after %d attempts", k.Status, k.Attempts)
			}
			by[k.Node]++
		}
		if len(by) != 2 {
			t.Errorf("the second attempts: %v", by)
		}
	})
}

// TestNoHandoffsAlone: a server that is alone leaves nothing for others.
func TestNoHandoffsAlone(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		k := w.add(time.Hour, nil)
		if _, err := w.db.Apply(w.ctx, store.Stmt{SQL: `UPDATE tasks SET status = 'RUNNING', attempts = 1, node = 'node-1', term = 1 WHERE task_id = ?`, Args: []any{k.ID}}); err != nil {
			t.Fatal(err)
		}
		w.restart(time.Second)
		w.settle(time.Second)
		if k = w.task(k.ID); k.Status != dts.Success || k.Attempts != 2 {
			t.Errorf("the task is %s after %d attempts", k.Status, k.Attempts)
		}
		if ids, err := w.st.Handoffs(w.ctx, dts.AllShards, 10); err != nil || len(ids) > 0 {
			t.Errorf("handoffs remain: %v %v", ids, err)
		}
	})
}

// TestClusterStartAfterHandover: a run whose start cannot be written in time is stopped when its shard goes: it starts
// again elsewhere.
func TestClusterStartAfterHandover(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		time.Sleep(12 * time.Second)
		m := c.nodes[0]
		until := time.Now().Add(6 * time.Second)
		m.cut.decide(of("UPDATE tasks SET status = 'RUNNING'", func() fate { return fate{early: time.Until(until)} }))
		var ended, stopped atomic.Int32
		m.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			o := takes(20*time.Second)(ctx, j)
			if ended.Add(1); o.State == dts.AttemptLost {
				stopped.Add(1)
			}
			return o
		})
		for range 40 {
			m.add(10*time.Millisecond, nil)
		}
		time.Sleep(20 * time.Millisecond)
		b := c.join("node-2")
		time.Sleep(5 * time.Second)
		there := len(b.run.list())
		if n := int(stopped.Load()); n != there || n < 5 {
			t.Errorf("%d runs were stopped, and %d started elsewhere", n, there)
		}
		time.Sleep(40 * time.Second)
	})
}

// TestClusterRestartAfterACrash: a server that crashed comes back before the others count it as dead, when some of what
// it held belongs to one that has come meanwhile.
func TestClusterRestartAfterACrash(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		time.Sleep(12 * time.Second)
		crashed := c.nodes[0]
		crashed.cut.off.Store(true)
		c.forget(crashed)
		c.join("node-2")
		time.Sleep(3 * time.Second)
		c.join("node-1")
		time.Sleep(5 * time.Second)
		c.shared()
		crashed.s.Stop(crashed.ctx) // it reaches nobody
		crashed.st.Close()
	})
}

// TestClusterStopWithoutStore: a server that gets no answers stops all the same.
func TestClusterStopWithoutStore(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		m := c.nodes[0]
		m.every("* * * * * *", func(r *dts.RecurringTask) { r.OverlapPolicy = dts.OverlapSkip })
		m.run.behave(takes(3 * time.Second))
		time.Sleep(5 * time.Second)
		m.cut.decide(func([]store.Stmt) fate { return fate{early: 10 * time.Second, cut: true} }) // as long as rqlite is asked
		time.Sleep(5 * time.Second)
		began := time.Now()
		err := m.s.Stop(m.ctx)
		if d := time.Since(began); err == nil || d > 90*time.Second {
			t.Errorf("it stopped after %v: %v", d, err)
		} else {
			t.Log(d, err)
		}
		m.cut.fates.Store(nil)
		if err := m.st.Close(); err != nil {
			t.Error(err)
		}
		c.forget(c.nodes[0])
		time.Sleep(25 * time.Second)
		c.shared()
	})
}
