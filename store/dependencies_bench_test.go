package store_test

import (
	"fmt"
	"testing"

	"dts"
	"dts/store"
)

// shapes are graphs of n tasks, made in one request: each gives what task i depends on.
var shapes = []struct {
	name    string
	parents func(i, n int) (from, to int) // of those before it
}{
	{"chain", func(i, n int) (int, int) { return max(i-1, 0), i }},
	{"fan-out", func(i, n int) (int, int) { return 0, min(i, 1) }},
	{"fan-in", func(i, n int) (int, int) {
		if i == n-1 {
			return 0, i
		}
		return 0, 0
	}},
}

// BenchmarkDependencies measures graphs of 10,000 tasks. An operation of create is one request that makes them; of fail, the end
// of those that depend on nothing and all that follows from it; of succeed, the same where they succeed, and what becomes
// ready does not run.
func BenchmarkDependencies(b *testing.B) {
	const n = 10_000
	for _, s := range shapes {
		graph := func(b *testing.B) (*store.Store, dts.Fence, []*dts.Task, []*dts.Task) {
			st := store.New(openSQLite(b), store.Options{})
			b.Cleanup(func() { st.Close() })
			f := begin(b, st, dts.NewID(now))
			var tasks, roots []*dts.Task
			for i := range n {
				k := &dts.Task{Spec: dts.Spec{TargetType: dts.HTTPCallback, TargetConfig: []byte(`{"url":"http://127.0.0.1/"}`)}}
				from, to := s.parents(i, n)
				for _, p := range tasks[from:to] {
					k.DependsOn = append(k.DependsOn, dts.DependsOn{TaskID: p.ID})
				}
				if err := k.Normalize(now); err != nil {
					b.Fatal(err)
				}
				if tasks = append(tasks, k); from == to {
					roots = append(roots, k)
				}
			}
			return st, f, tasks, roots
		}
		b.Run(s.name+" create", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				st, f, tasks, _ := graph(b)
				b.StartTimer()
				if _, err := st.InsertTasks(ctx, f, tasks); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, end := range []dts.Status{dts.Failed, dts.Success} {
			b.Run(fmt.Sprint(s.name, " ", end), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					st, f, tasks, roots := graph(b)
					if _, err := st.InsertTasks(ctx, f, tasks); err != nil {
						b.Fatal(err)
					}
					var recs []*dts.Record
					for _, k := range roots {
						after := *k
						after.Status, after.Attempts, after.StartedAt, after.CompletedAt = end, 1, now, now
						recs = append(recs, &dts.Record{Task: k, Term: f.Term(k.Shard), After: &after, Attempt: dts.Attempt{TaskID: k.ID, TenantID: k.TenantID, Number: 1,
							State: dts.AttemptSuccess, Node: f.Node, StartedAt: now, CompletedAt: now}})
					}
					b.StartTimer()
					for len(recs) > 0 {
						part := recs[:min(len(recs), 2048)]
						recs = recs[len(part):]
						if err := st.Write(ctx, f, part); err != nil {
							b.Fatal(err)
						}
					}
					for more := true; more; {
						var err error
						if more, err = st.Cascade(ctx, f, now); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
