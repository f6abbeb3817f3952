package sched_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dts"
	"dts/store"
)

// TestWorkflowCrashes: a server that dies at any of the writes of a run, before it or after it, leaves one that another
// server brings to its end: each step runs, and none that had succeeded on the disk runs again.
func TestWorkflowCrashes(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for at, more := 1, true; more; at++ {
			inCluster(t, 2, func(c *cluster) {
				time.Sleep(12 * time.Second)
				a, b := c.nodes[0], c.nodes[1]
				for _, m := range c.nodes {
					m.run.behave(takes(10 * time.Second))
				}
				run := a.addRun("a", "b<a", "c<a", "d<b,c")
				var mu sync.Mutex
				writes, dead := 0, false
				a.cut.decide(func(batch []store.Stmt) fate {
					mu.Lock()
					defer mu.Unlock()
					if dead {
						return fate{cut: true}
					}
					if !slices.ContainsFunc(batch, func(s store.Stmt) bool { return strings.Contains(s.SQL, "UPDATE tasks") }) {
						return fate{}
					}
					writes++
					dead = writes == at
					return fate{cut: dead && !applied, silent: dead && applied}
				})
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				look := &world{t: t, st: c.look, ctx: a.ctx}
				look.wantStates(run.ID, "a SUCCESS, b SUCCESS, c SUCCESS, d SUCCESS")
				look.wantRun(run.ID, dts.Success, "")
				if n := len(a.run.list()) + len(b.run.list()); n < 4 || n > 8 {
					t.Errorf("write %d: %d attempts of 4 steps", at, n)
				}
				a.cut.decide(func([]store.Stmt) fate { return fate{} })
				time.Sleep(30 * time.Second)
				if more = dead; !more && at < 5 {
					t.Errorf("a run takes only %d writes", at-1)
				}
				if at > 60 {
					t.Fatal("there is no end of writes")
				}
			})
		}
	}
}

// TestWorkflowWritesWithoutAnswer: a write whose outcome is unknown is found out about.
func TestWorkflowWritesWithoutAnswer(t *testing.T) {
	for _, text := range []string{"SET attempts = 1, node", "FROM tasks WHERE task_id = ? AND unresolved_dependencies_count > 0"} {
		for _, f := range []fate{{cut: true}, {silent: true}} {
			inCluster(t, 2, func(c *cluster) {
				time.Sleep(12 * time.Second)
				a := c.nodes[0]
				a.run.behave(takes(10 * time.Second))
				n := 0
				a.cut.decide(of(text, func() fate {
					if n++; n < 4 {
						return f
					}
					return fate{}
				}))
				run := a.addRun("a", "b<a")
				time.Sleep(time.Minute)
				synctest.Wait()
				if n == 0 {
					t.Errorf("no batch holds %s", text)
				}
				a.wantStates(run.ID, "a SUCCESS, b SUCCESS")
				a.wantRun(run.ID, dts.Success, "")
				if got := len(c.starts()); got != 2 {
					t.Errorf("%d attempts", got)
				}
			})
		}
	}
}

// TestWorkflowVerbUnread: a verb on a run that cannot be read in the middle of it fails, and the next one is done.
func TestWorkflowVerbUnread(t *testing.T) {
	inCluster(t, 1, func(c *cluster) {
		time.Sleep(12 * time.Second)
		a := c.nodes[0]
		a.run.behave(takes(time.Minute))
		for at, failed := 1, true; failed; at++ {
			run := a.addRun("a", "b<a")
			time.Sleep(time.Second)
			n := 0
			failed = false
			a.cut.decide(func(batch []store.Stmt) fate {
				if !strings.HasSuffix(batch[0].SQL, "WHERE task_id = ? AND tenant_id = ?") {
					return fate{}
				}
				n++
				return fate{cut: n == at}
			})
			if _, err := a.s.DoTask(a.ctx, dts.DefaultTenant, run.ID, dts.Cancel, "tester"); err != nil {
				failed = true
				if got := a.do(run.ID, dts.Cancel); got.Status != dts.Cancelled {
					t.Errorf("without the answer to read %d it is %s", at, got.Status)
				}
			}
			if !failed && at < 4 {
				t.Errorf("a cancel takes only %d reads", at-1)
			}
		}
	})
}

// TestWorkflowMoves: a run goes on at the server that takes its shard, and can be retried and cancelled there.
func TestWorkflowMoves(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		time.Sleep(12 * time.Second)
		a, b := c.nodes[0], c.nodes[1]
		a.run.behave(takes(20 * time.Second))
		b.run.behave(failsFor(20*time.Second, "b"))
		run, stopped := a.addRun("a", "b<a", "c<b"), a.addRun("a", "b<a", "c<b")
		time.Sleep(5 * time.Second)
		a.leave() // it waits for the runs
		time.Sleep(5 * time.Second)
		if got := b.do(stopped.ID, dts.Cancel); got.Status != dts.Cancelled {
			t.Errorf("the cancelled one is %s", got.Status)
		}
		time.Sleep(time.Minute)
		b.wantStates(run.ID, "a SUCCESS, b FAILED, c SKIPPED")
		b.wantStates(stopped.ID, "a SUCCESS, b CANCELLED, c CANCELLED")
		b.run.behave(takes(20 * time.Second))
		b.do(run.ID, dts.RetryNow)
		time.Sleep(time.Minute)
		b.wantStates(run.ID, "a SUCCESS, b SUCCESS, c SUCCESS")
		b.wantRun(run.ID, dts.Success, "")
	})
}
