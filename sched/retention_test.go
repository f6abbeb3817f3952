package sched_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// keptTasks returns how many finished tasks there are, by queue: "a: 3, b: 0".
func (w *world) keptTasks(queues ...string) string {
	w.t.Helper()
	var list []string
	for _, queue := range queues {
		n, cursor := 0, ""
		for {
			page, err := w.st.Tasks(w.ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, Queue: queue, Statuses: []dts.Status{dts.Success}, Cursor: cursor, Limit: 1000})
			if err != nil {
				w.t.Fatal(err)
			}
			n += len(page.Items)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		list = append(list, fmt.Sprint(queue, ": ", n))
	}
	return strings.Join(list, ", ")
}

// TestRetentionLimits: what is finished goes by its age, its number and its size, as the tenant or its queue says, whichever
// lets less be kept; and limits can be changed.
func TestRetentionLimits(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.Retention, o.RetentionRows = 30*24*time.Hour, 100 }, func(w *world) {
		w.step(1) // as a real clock, which never stands at a whole microsecond
		fill := func(n int) {
			for i := range n {
				w.add(0, func(k *dts.Task) { k.Queue = [...]string{"a", "b"}[i%2] })
			}
			w.settle(5 * time.Minute)
		}
		want := func(what, list string) {
			t.Helper()
			if got := w.keptTasks("a", "b"); got != list {
				t.Errorf("%s: %s, want %s", what, got, list)
			}
		}
		set := func(r dts.Retention) {
			t.Helper()
			if _, err := w.s.PutRetention(w.ctx, dts.DefaultTenant, r); err != nil {
				t.Fatal(err)
			}
			w.settle(5 * time.Minute)
		}
		queue := func(name string, r dts.Retention) {
			t.Helper()
			if _, err := w.s.PutQueue(w.ctx, &dts.Queue{Name: name, Retention: &r}); err != nil {
				t.Fatal(err)
			}
			w.settle(5 * time.Minute)
		}
		fill(90)
		want("below the limit", "a: 45, b: 45")
		fill(90)
		want("above it", "a: 50, b: 50")
		queue("a", dts.Retention{Rows: 20})
		want("a has a limit of its own", "a: 20, b: 50")
		fill(90)
		want("and b what the tenant leaves it", "a: 20, b: 80")
		set(dts.Retention{Rows: 60})
		want("the tenant's is less now", "a: 20, b: 40")
		queue("a", dts.Retention{Seconds: 3600})
		want("a by age", "a: 20, b: 40")
		w.settle(time.Hour)
		want("an hour later", "a: 0, b: 40")
		set(dts.Retention{Bytes: 1})
		want("by size: the newest is smaller than what is too much", "a: 0, b: 0")
		st, err := w.s.Retention(w.ctx, dts.DefaultTenant)
		if err != nil || st.Bytes != 1 || st.Effective != (dts.Retention{Seconds: 30 * 24 * 3600, Rows: 100, Bytes: 1}) {
			t.Errorf("%+v, %v", st, err)
		}
		set(dts.Retention{Bytes: 20_000})
		fill(90)
		if got := w.keptTasks("a", "b"); got < "a: 1" || got > "a: 3" {
			t.Errorf("20 kB: %s", got)
		}
		set(dts.Retention{Seconds: 1})
		want("all by age", "a: 0, b: 0")
		if _, err := w.s.PutRetention(w.ctx, dts.DefaultTenant, dts.Retention{Rows: -1}); dts.CodeOf(err) != dts.ErrInvalid {
			t.Errorf("fewer than none: %v", err)
		}
	})
}

// TestRetentionDelaysNothing: while thousands of old tasks go, what is due starts at its instant.
func TestRetentionDelaysNothing(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.Retention, o.RetentionRows = 30*24*time.Hour, 1_000_000 }, func(w *world) {
		finished, fires := 6000, 1200
		if testing.Short() {
			finished, fires = 3000, 1100 // retention still looks while they fire
		}
		var old []*dts.Task
		for range finished {
			k := &dts.Task{Spec: w.spec(), RunAt: w.now()}
			if err := k.Normalize(w.now()); err != nil {
				t.Fatal(err)
			}
			old = append(old, k)
		}
		if _, err := w.s.CreateTasks(w.ctx, old); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		if _, err := w.s.PutRetention(w.ctx, dts.DefaultTenant, dts.Retention{Rows: 1000}); err != nil {
			t.Fatal(err)
		}
		var all []*dts.Task
		for i := range fires {
			all = append(all, w.add(time.Duration(i)*100*time.Millisecond, func(k *dts.Task) { k.Queue = "fires" }))
		}
		w.settle(3 * time.Minute)
		if got := w.keptTasks("default"); got != "default: 0" {
			t.Errorf("of the old ones are left: %s", got)
		}
		n := 0
		for _, k := range all[len(all)-900:] {
			if k := w.task(k.ID); k.LatenessUS == nil || *k.LatenessUS != 0 {
				n++
			}
		}
		if n > 0 {
			t.Errorf("%d tasks were late", n)
		}
	})
}

// TestRetentionCountsAgain: tasks that somebody deleted count as stored until the next count, and no longer.
func TestRetentionCountsAgain(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.Retention, o.RetentionRows = 30*24*time.Hour, 50 }, func(w *world) {
		var ids []string
		for range 40 {
			ids = append(ids, w.add(0, nil).ID)
		}
		w.settle(2 * time.Minute)
		for _, id := range ids {
			w.do(id, dts.Delete)
		}
		w.settle(7 * time.Hour)
		for range 45 {
			w.add(0, nil)
		}
		w.settle(5 * time.Minute)
		if got := w.keptTasks("default"); got != "default: 45" {
			t.Errorf("%s", got)
		}
	})
}
