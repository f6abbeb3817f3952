package store_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"dts"
	"dts/migrations"
	"dts/store"
	"dts/store/rqlite"
	"dts/store/rqlite/rqlitetest"
	"dts/store/sqlite"
)

// BenchmarkTasks measures what each step of a task's life costs on disk, in batches as under load. An operation is
// one task.
func BenchmarkTasks(b *testing.B) {
	benchTasks(b, func(b *testing.B) store.Backend {
		db, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "dts.db"), sqlite.Options{Migrations: migrations.FS})
		if err != nil {
			b.Fatal(err)
		}
		return db
	})
}

// BenchmarkTasksOnRqlite is the same on an rqlite of one node, which shares the machine.
func BenchmarkTasksOnRqlite(b *testing.B) {
	benchTasks(b, func(b *testing.B) store.Backend {
		db, err := rqlite.Open(ctx, rqlite.Options{URLs: rqlitetest.Start(b, rqlitetest.Options{}).URLs(), Migrations: migrations.FS})
		if err != nil {
			b.Fatal(err)
		}
		return db
	})
}

func benchTasks(b *testing.B, open func(*testing.B) store.Backend) {
	for _, spread := range []time.Duration{0, 30 * 24 * time.Hour} {
		b.Run(fmt.Sprintf("run_at within %g days", spread.Hours()/24), func(b *testing.B) {
			st := store.New(open(b), store.Options{})
			defer st.Close()
			f := begin(b, st, dts.NewID(now))
			var tasks []*dts.Task
			b.Run("insert", func(b *testing.B) {
				tasks = tasks[:0]
				for i := range b.N {
					k := &dts.Task{RunAt: now.Add(time.Hour + rand.N(spread+1)), Spec: dts.Spec{TargetType: dts.HTTPCallback,
						TargetConfig: fmt.Appendf(nil, `{"url":"http://127.0.0.1:8080/","body":"{\"n\":%d}"}`, i)}}
					if err := k.Normalize(now.Add(time.Duration(i) * time.Microsecond)); err != nil {
						b.Fatal(err)
					}
					tasks = append(tasks, k)
				}
				b.ResetTimer()
				inBatches(b, tasks, 5000, func(part []*dts.Task) error {
					_, err := st.InsertTasks(ctx, f, part)
					return err
				})
			})
			loaded := tasks
			b.Run("load", func(b *testing.B) {
				loaded = loaded[:0:0]
				inBatches(b, some(tasks, b.N), 512, func(part []*dts.Task) error {
					ids := make([]string, len(part))
					for i, k := range part {
						ids[i] = k.ID
					}
					list, err := st.Load(ctx, ids)
					loaded = append(loaded, list...)
					return err
				})
			})
			b.Run("end", func(b *testing.B) {
				inBatches(b, some(tasks, b.N), 512, func(part []*dts.Task) error {
					recs := make([]*dts.Record, len(part))
					for i, k := range part {
						late, met := int64(100), true
						after := *k
						after.Status, after.Attempts, after.StartedAt, after.CompletedAt, after.ResponseStatus = dts.Success, 1, now, now, 200
						after.LatenessUS, after.SLAMet = &late, &met
						recs[i] = &dts.Record{Task: k, Term: f.Term(k.Shard), After: &after, Attempt: dts.Attempt{TaskID: k.ID, TenantID: k.TenantID, Number: 1,
							State: dts.AttemptSuccess, Node: f.Node, PickedAt: now, StartedAt: now, CompletedAt: now}}
					}
					return st.Write(ctx, f, recs)
				})
			})
			b.Run("delete", func(b *testing.B) {
				for left := b.N; left > 0; {
					later := now.Add(time.Hour)
					d, err := st.DeleteFinished(ctx, dts.Cut{TenantID: dts.DefaultTenant, Before: later, Through: later}, now, min(left, 500))
					if err != nil {
						b.Fatal(err)
					}
					n := len(d.Deleted)
					if n == 0 && left > 1 { // a benchmark runs once with N = 1 before
						b.Fatalf("nothing left to delete, %d missing", left)
					}
					left -= max(n, 1)
				}
			})
		})
	}
}

// some returns n of the tasks, or all where there are fewer.
func some(tasks []*dts.Task, n int) []*dts.Task { return tasks[:min(n, len(tasks))] }

func inBatches(b *testing.B, tasks []*dts.Task, size int, f func(part []*dts.Task) error) {
	b.Helper()
	for len(tasks) > 0 {
		n := min(size, len(tasks))
		if err := f(tasks[:n]); err != nil {
			b.Fatal(err)
		}
		tasks = tasks[n:]
	}
}
