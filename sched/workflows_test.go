package sched_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dts"
	"dts/sched"
)

// steps makes the steps of a workflow: "a", "b<a", "c<a,b" is c after a and b, "d<a!" is d if a fails, "e<a?" e when a
// has ended.
func (w *world) steps(defs ...string) []dts.Step {
	var steps []dts.Step
	for _, d := range defs {
		name, parents, _ := strings.Cut(d, "<")
		s := dts.Step{Spec: w.spec()}
		s.Name, s.Retry = name, dts.Retry{MaxAttempts: 1}
		for p := range strings.SplitSeq(parents, ",") {
			switch on := (dts.StepDependsOn{Step: strings.TrimRight(p, "!?")}); {
			case p == "":
			case strings.HasSuffix(p, "!"):
				on.Type = dts.MustFail
				s.DependsOn = append(s.DependsOn, on)
			case strings.HasSuffix(p, "?"):
				on.Type = dts.MustFinish
				s.DependsOn = append(s.DependsOn, on)
			default:
				s.DependsOn = append(s.DependsOn, on)
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// workflow makes the spec of a run.
func (w *world) workflow(defs ...string) dts.Spec {
	f := dts.Workflow{Name: "w", Steps: w.steps(defs...)}
	return f.Spec()
}

func (w *world) addRun(defs ...string) *dts.Task {
	w.t.Helper()
	return w.add(0, func(t *dts.Task) { t.Spec = w.workflow(defs...) })
}

// states is the steps of a run, in order, as "a SUCCESS, b PENDING".
func (w *world) states(run string) string {
	w.t.Helper()
	steps, err := w.st.Steps(w.ctx, dts.DefaultTenant, run)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, t := range steps {
		list = append(list, t.Step+" "+string(t.Status))
	}
	return strings.Join(list, ", ")
}

func (w *world) wantStates(run, want string) {
	w.t.Helper()
	if got := w.states(run); got != want {
		w.t.Errorf("the steps are %s, want %s", got, want)
	}
}

func (w *world) wantRun(id string, status dts.Status, text string) *dts.Task {
	w.t.Helper()
	t := w.task(id)
	if t.Status != status || !strings.Contains(t.LastError, text) || text == "" && t.LastError != "" {
		w.t.Errorf("the run is %s: %q, want %s: %q", t.Status, t.LastError, status, text)
	}
	return t
}

// failsFor makes runs that take d, and fail for tasks of these names.
func failsFor(d time.Duration, names ...string) func(context.Context, dts.Job) dts.Outcome {
	return func(ctx context.Context, j dts.Job) dts.Outcome {
		out := takes(d)(ctx, j)
		if out.State == dts.AttemptSuccess && slices.Contains(names, j.Task.Name) {
			return fails(ctx, j)
		}
		return out
	}
}

// TestWorkflowRuns: steps start in the order of their dependencies, the run waits for the last of them, and holds no slot.
func TestWorkflowRuns(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Minute))
		run := w.addRun("a", "b<a", "c<a", "d<b,c")
		w.settle(30 * time.Second)
		w.wantStates(run.ID, "a RUNNING, b PENDING, c PENDING, d PENDING")
		got := w.wantRun(run.ID, dts.Pending, "")
		if got.Unresolved != 4 || got.StartedAt.IsZero() || *got.LatenessUS > 100 || !*got.SLAMet {
			t.Errorf("the run %+v", got)
		}
		for _, p := range w.s.Status().Pools {
			if p.Running > 1 {
				t.Errorf("%d run", p.Running)
			}
		}
		w.settle(time.Minute)
		w.wantStates(run.ID, "a SUCCESS, b RUNNING, c RUNNING, d PENDING")
		w.settle(2 * time.Minute)
		w.wantStates(run.ID, "a SUCCESS, b SUCCESS, c SUCCESS, d SUCCESS")
		got = w.wantRun(run.ID, dts.Success, "")
		if took := got.CompletedAt.Sub(got.StartedAt); took < 3*time.Minute || took > 3*time.Minute+time.Second {
			t.Errorf("the run took %v", took)
		}
		if order := w.order(); len(order) != 4 || order[0] != "a" || order[3] != "d" {
			t.Error(order)
		}
	})
}

// TestWorkflowFails: what is behind a failed step is skipped, a cleanup runs, and the run says which step it was.
func TestWorkflowFails(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(failsFor(time.Second, "build"))
		run := w.addRun("build", "test<build", "deploy<test", "clean<build!", "last<deploy?,clean?")
		w.settle(time.Minute)
		w.wantStates(run.ID, "build FAILED, test SKIPPED, deploy SKIPPED, clean SUCCESS, last SUCCESS")
		w.wantRun(run.ID, dts.Failed, "the step build FAILED: answered 500")

		w.run.behave(failsFor(time.Second, "x", "y"))
		two := w.addRun("x", "y", "z")
		w.settle(time.Minute)
		w.wantRun(two.ID, dts.Failed, "2 of 3 steps did not succeed: x FAILED, y FAILED")

		// A cleanup that is not needed is no failure.
		w.run.behave(nil)
		good := w.addRun("build", "clean<build!")
		w.settle(time.Minute)
		w.wantStates(good.ID, "build SUCCESS, clean SKIPPED")
		w.wantRun(good.ID, dts.Success, "")
	})
}

// TestWorkflowRetry: a retry of the run goes on from where it failed, in the order of the dependencies; so does one of
// the step.
func TestWorkflowRetry(t *testing.T) {
	for _, byStep := range []bool{false, true} {
		inWorld(t, nil, func(w *world) {
			w.run.behave(failsFor(time.Second, "b"))
			run := w.addRun("a", "b<a", "c<b", "d<c", "clean<b!", "other")
			after := w.add(0, named("after", after(run)))
			w.settle(time.Minute)
			w.wantStates(run.ID, "a SUCCESS, b FAILED, c SKIPPED, d SKIPPED, clean SUCCESS, other SUCCESS")
			w.wantRun(run.ID, dts.Failed, "the step b FAILED")
			if got := w.task(after.ID); got.Status != dts.Skipped {
				t.Errorf("what depends on the run: %s", got.Status)
			}
			w.run.behave(takes(time.Minute))
			id := run.ID
			if byStep {
				id = dts.StepID(run.ID, "b")
			}
			if got := w.do(id, dts.RetryNow); got.ID != id || got.Status != dts.Pending {
				t.Errorf("the retry answers with %s %s", got.Name, got.Status)
			}
			w.settle(30 * time.Second)
			w.wantStates(run.ID, "a SUCCESS, b RUNNING, c PENDING, d PENDING, clean SUCCESS, other SUCCESS")
			w.wantRun(run.ID, dts.Pending, "")
			w.settle(time.Minute)
			w.wantStates(run.ID, "a SUCCESS, b SUCCESS, c RUNNING, d PENDING, clean SUCCESS, other SUCCESS")
			w.settle(2 * time.Minute)
			w.wantStates(run.ID, "a SUCCESS, b SUCCESS, c SUCCESS, d SUCCESS, clean SUCCESS, other SUCCESS")
			w.wantRun(run.ID, dts.Success, "")
			if _, err := w.s.DoTask(w.ctx, dts.DefaultTenant, run.ID, dts.RetryNow, "tester"); dts.CodeOf(err) != dts.ErrConflict {
				t.Errorf("a retry of a success: %v", err)
			}
		})
	}
}

// TestWorkflowStepRetriedWhileItRuns: the run, which goes on, waits for that step again.
func TestWorkflowStepRetriedWhileItRuns(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
			if j.Task.Name == "bad" && j.Number == 1 {
				return fails(ctx, j)
			}
			return takes(time.Minute)(ctx, j)
		})
		run := w.addRun("bad", "behind<bad", "long")
		w.settle(50 * time.Second)
		w.wantStates(run.ID, "bad FAILED, behind SKIPPED, long RUNNING")
		w.do(dts.StepID(run.ID, "bad"), dts.RetryNow)
		w.settle(time.Second)
		w.wantStates(run.ID, "bad RUNNING, behind PENDING, long RUNNING")
		w.settle(30 * time.Second)
		w.wantStates(run.ID, "bad RUNNING, behind PENDING, long SUCCESS")
		if got := w.wantRun(run.ID, dts.Pending, ""); got.Unresolved != 2 {
			t.Errorf("it waits for %d", got.Unresolved)
		}
		w.settle(2 * time.Minute)
		w.wantRun(run.ID, dts.Success, "")
	})
}

// TestWorkflowCancelled: the cancel of a run ends its steps, those that run too; a retry takes them up again.
func TestWorkflowCancelled(t *testing.T) {
	for verb, status := range map[dts.Verb]dts.Status{dts.Cancel: dts.Cancelled, dts.ForceComplete: dts.Success} {
		inWorld(t, nil, func(w *world) {
			w.run.behave(takes(time.Minute))
			run := w.addRun("a", "b<a", "c<b?", "long")
			w.settle(70 * time.Second)
			w.wantStates(run.ID, "a SUCCESS, b RUNNING, c PENDING, long SUCCESS")
			if got := w.do(run.ID, verb); got.Status != status {
				t.Errorf("%s answers with %s", verb, got.Status)
			}
			w.wantStates(run.ID, "a SUCCESS, b CANCELLED, c CANCELLED, long SUCCESS")
			w.settle(time.Hour)
			w.wantStates(run.ID, "a SUCCESS, b CANCELLED, c CANCELLED, long SUCCESS")
			if verb != dts.Cancel {
				return
			}
			w.do(run.ID, dts.Cancel) // it is so already
			w.do(run.ID, dts.RetryNow)
			w.settle(time.Second)
			w.wantStates(run.ID, "a SUCCESS, b RUNNING, c PENDING, long SUCCESS")
			w.settle(3 * time.Minute)
			w.wantRun(run.ID, dts.Success, "")
		})
	}
}

// TestWorkflowEndGivenUp: who asks for the end of a run need not stay until its steps have stopped.
func TestWorkflowEndGivenUp(t *testing.T) {
	for verb, want := range map[dts.Verb]dts.Status{dts.Cancel: dts.Cancelled, dts.ForceComplete: dts.Success, dts.Delete: ""} {
		inWorld(t, nil, func(w *world) {
			w.run.behave(func(ctx context.Context, j dts.Job) dts.Outcome {
				out := takes(time.Hour)(ctx, j)
				time.Sleep(10 * time.Second) // it dies slowly
				return out
			})
			run := w.addRun("a", "b<a")
			w.settle(time.Second)
			ctx, cancel := context.WithTimeout(w.ctx, time.Second)
			defer cancel()
			_, _ = w.s.DoTask(ctx, dts.DefaultTenant, run.ID, verb, "tester")
			w.settle(time.Minute)
			if want == "" {
				w.wantStates(run.ID, "")
				return
			}
			w.wantStates(run.ID, "a CANCELLED, b CANCELLED")
			if got := w.task(run.ID); got.Status != want {
				t.Errorf("%s: the run is %s: %s", verb, got.Status, got.LastError)
			}
		})
	}
}

// TestWorkflowDeleted: its steps go with it.
func TestWorkflowDeleted(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Minute))
		run := w.addRun("a", "b<a")
		w.settle(time.Second)
		w.do(run.ID, dts.Delete)
		w.wantStates(run.ID, "")
		if _, err := w.st.Task(w.ctx, dts.DefaultTenant, run.ID); dts.CodeOf(err) != dts.ErrNotFound {
			t.Error(err)
		}
		w.settle(time.Hour)
		if got := len(w.run.list()); got != 1 {
			t.Errorf("%d ran", got)
		}
	})
}

// TestWorkflowVerbsThatDoNotFit: a run that has started cannot be moved, paused, or hurried.
func TestWorkflowVerbsThatDoNotFit(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Minute))
		run := w.addRun("a")
		w.settle(time.Second)
		for _, v := range []dts.Verb{dts.RunNow, dts.PauseTask} {
			if _, err := w.s.DoTask(w.ctx, dts.DefaultTenant, run.ID, v, "tester"); dts.CodeOf(err) != dts.ErrConflict {
				t.Errorf("%s: %v", v, err)
			}
		}
		if _, err := w.s.DoTask(w.ctx, dts.DefaultTenant, run.ID, dts.RetryNow, "tester"); dts.CodeOf(err) != dts.ErrConflict || !strings.Contains(err.Error(), "still goes on") {
			t.Errorf("retry: %v", err)
		}
		w.do(run.ID, dts.ResumeTask)
		name := "other"
		if _, err := w.s.ModifyTask(w.ctx, dts.DefaultTenant, run.ID, dts.TaskPatch{TaskTemplatePatch: dts.TaskTemplatePatch{Name: &name}}); dts.CodeOf(err) != dts.ErrConflict {
			t.Errorf("modify: %v", err)
		}
		w.settle(time.Hour)
		w.wantRun(run.ID, dts.Success, "")
	})
}

// TestWorkflowBeforeItStarts: a run that waits for its time is a task like others.
func TestWorkflowBeforeItStarts(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		add := func() *dts.Task { return w.add(time.Hour, func(t *dts.Task) { t.Spec = w.workflow("a", "b<a") }) }
		x, y, z := add(), add(), add()
		w.do(x.ID, dts.Cancel)
		w.do(x.ID, dts.RetryNow)
		w.do(y.ID, dts.RunNow)
		w.do(z.ID, dts.Delete)
		e := w.add(time.Hour, func(t *dts.Task) {
			t.Spec, t.ExpiresAt, t.DependsOn = w.workflow("a"), w.now().Add(2*time.Hour), nil
		})
		w.do(e.ID, dts.PauseTask)
		w.settle(time.Minute)
		w.wantRun(x.ID, dts.Success, "")
		w.wantRun(y.ID, dts.Success, "")
		w.settle(3 * time.Hour)
		if got := w.task(e.ID); got.Status != dts.Skipped || got.SkipReason != dts.ReasonExpired {
			t.Errorf("%s %s", got.Status, got.SkipReason)
		}
	})
}

// TestWorkflowDoesNotExpireWhileItRuns.
func TestWorkflowDoesNotExpireWhileItRuns(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Hour))
		run := w.add(0, func(t *dts.Task) { t.Spec, t.ExpiresAt = w.workflow("a"), w.now().Add(time.Minute) })
		w.settle(2 * time.Hour)
		w.wantRun(run.ID, dts.Success, "")
	})
}

// TestWorkflowSurvivesRestarts: of whatever moment.
func TestWorkflowSurvivesRestarts(t *testing.T) {
	for _, at := range []time.Duration{0, time.Millisecond, 30 * time.Second, 60 * time.Second, 90 * time.Second, 119 * time.Second, 121 * time.Second} {
		inWorld(t, func(o *sched.Options) { o.DrainTimeout = time.Millisecond }, func(w *world) {
			w.run.behave(takes(time.Minute))
			run := w.addRun("a", "b<a")
			w.settle(at)
			w.restart(time.Second)
			w.settle(10 * time.Minute)
			w.wantStates(run.ID, "a SUCCESS, b SUCCESS")
			w.wantRun(run.ID, dts.Success, "")
		})
	}
}

// TestWorkflowDeletedStep: a step that is gone is no success.
func TestWorkflowDeletedStep(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Minute))
		run := w.addRun("a", "b<a?", "c")
		w.settle(time.Second)
		w.do(dts.StepID(run.ID, "b"), dts.Delete)
		w.settle(5 * time.Minute)
		w.wantRun(run.ID, dts.Failed, "the step b was deleted")
	})
}

// TestWorkflowBulk: bulk verbs on runs concern their steps, too.
func TestWorkflowBulk(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(failsFor(time.Minute, "a"))
		x, y := w.addRun("a", "b<a"), w.addRun("a", "b<a")
		w.settle(time.Second)
		sum, err := w.s.Bulk(w.ctx, dts.BulkChange{Verb: dts.BulkCancel, Filter: dts.TaskFilter{TenantID: dts.DefaultTenant, IDs: []string{x.ID}}, Actor: "tester"})
		if err != nil || sum.Done != 1 {
			t.Fatalf("%+v, %v", sum, err)
		}
		w.wantStates(x.ID, "a CANCELLED, b CANCELLED")
		w.settle(2 * time.Minute)
		w.wantStates(y.ID, "a FAILED, b SKIPPED")
		w.run.behave(nil)
		sum, err = w.s.Bulk(w.ctx, dts.BulkChange{Verb: dts.BulkRetry, Filter: dts.TaskFilter{TenantID: dts.DefaultTenant, Statuses: []dts.Status{dts.Failed, dts.Cancelled}}, Actor: "tester"})
		if err != nil {
			t.Fatalf("%+v, %v", sum, err)
		}
		w.settle(2 * time.Minute)
		w.wantRun(x.ID, dts.Success, "")
		w.wantRun(y.ID, dts.Success, "")
	})
}

// TestWorkflowBulkDelete: who deletes what has ended, by a filter, takes no step from a run; with a run its steps go.
func TestWorkflowBulkDelete(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Minute))
		done := w.addRun("a", "b<a")
		w.settle(5 * time.Minute)
		run := w.addRun("a", "b<a")
		w.settle(90 * time.Second)
		clear := func(f dts.TaskFilter) int {
			t.Helper()
			f.TenantID = dts.DefaultTenant
			c := dts.BulkChange{Verb: dts.BulkDelete, Filter: f, Actor: "tester", DryRun: true}
			dry, err := w.s.Bulk(w.ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			c.DryRun = false
			sum, err := w.s.Bulk(w.ctx, c)
			if err != nil || sum.Done != dry.Matched {
				t.Errorf("%d of %d were deleted, %v", sum.Done, dry.Matched, err)
			}
			return sum.Done
		}
		if n := clear(dts.TaskFilter{Statuses: []dts.Status{dts.Success}}); n != 1 {
			t.Errorf("%d were deleted", n)
		}
		w.wantStates(done.ID, "")
		w.wantStates(run.ID, "a SUCCESS, b RUNNING")
		if n := clear(dts.TaskFilter{WorkflowID: run.ID}); n != 1 { // that is asked for
			t.Errorf("%d were deleted", n)
		}
		w.wantStates(run.ID, "b RUNNING")
		w.settle(time.Minute)
		w.wantRun(run.ID, dts.Failed, "the step a was deleted")
	})
}

// TestWorkflowInputs: a step gets what steps before it have printed.
func TestWorkflowInputs(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		var got map[string]string
		long := strings.Repeat("x", dts.MaxInputBytes+1)
		w.run.behave(func(_ context.Context, j dts.Job) dts.Outcome {
			text := map[string]string{"a": "1\n", "b": "", "long": long}[j.Task.Name]
			if j.Task.Name == "c" || j.Task.Name == "plain" {
				got = j.Inputs
			}
			return dts.Outcome{State: dts.AttemptSuccess, Output: dts.Output{Head: []byte(text), Total: int64(len(text))}}
		})
		add := func(inputs []string, defs ...string) *dts.Task {
			f := dts.Workflow{Name: "w", Steps: w.steps(defs...)}
			f.Steps[len(defs)-1].Inputs = inputs
			if err := f.Normalize(); err != nil {
				t.Fatal(err)
			}
			return w.add(0, func(t *dts.Task) { t.Spec = f.Spec() })
		}
		run := add([]string{"a", "b"}, "a", "b<a", "c<b")
		w.settle(time.Minute)
		w.wantRun(run.ID, dts.Success, "")
		if len(got) != 2 || got["a"] != "1" || got["b"] != "" {
			t.Errorf("inputs %q", got)
		}
		tooLong := add([]string{"long"}, "long", "c<long")
		w.settle(time.Minute)
		w.wantRun(tooLong.ID, dts.Failed, `the step c FAILED: the input "long" is 32769 bytes long; at most 32768 are passed on`)

		got = nil
		p := w.add(time.Second, named("a"))
		w.add(0, named("plain", after(p), func(t *dts.Task) { t.Inputs = []string{"a"} }))
		no := w.add(0, named("none", after(p), func(t *dts.Task) { t.Inputs = []string{"z"} }))
		w.settle(time.Minute)
		if len(got) != 1 || got["a"] != "1" {
			t.Errorf("inputs of a task %q", got)
		}
		if got := w.task(no.ID); got.Status != dts.Failed || !strings.Contains(got.LastError, `the input "z" is missing`) {
			t.Errorf("%s %q", got.Status, got.LastError)
		}
	})
}

// TestRecurringWorkflow: its occurrences are runs, and one counts as active until its last step has ended.
func TestRecurringWorkflow(t *testing.T) {
	for policy, want := range map[dts.OverlapPolicy][]string{
		dts.OverlapAllow:     {"00:01:00 SUCCESS", "00:02:00 SUCCESS", "00:03:00 SUCCESS"},
		dts.OverlapSkip:      {"00:01:00 SUCCESS", "00:02:00 skipped 1 OVERLAP", "00:03:00 skipped 1 OVERLAP"},
		dts.OverlapBufferOne: {"00:01:00 SUCCESS", "00:02:00 SUCCESS", "00:03:00 skipped 1 OVERLAP"},
		dts.OverlapBufferAll: {"00:01:00 SUCCESS", "00:02:00 SUCCESS", "00:03:00 SUCCESS"},
		dts.OverlapCancel:    {"00:01:00 CANCELLED", "00:02:00 CANCELLED", "00:03:00 SUCCESS"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				w.run.behave(takes(70 * time.Second))
				r := w.every("* * * * *", func(r *dts.RecurringTask) {
					r.Spec, r.OverlapPolicy, r.EndTime = w.workflow("a", "b<a"), policy, w.now().Add(3*time.Minute)
				})
				w.settle(20 * time.Minute)
				if got := w.ledger(r.ID); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
				rec := w.recurring(r.ID)
				if rec.LastStatus != dts.Success || rec.LastRunAt.IsZero() {
					t.Errorf("it says that the last run was %s at %v", rec.LastStatus, rec.LastRunAt)
				}
			})
		})
	}
}

// TestRecurringWorkflowReplacedAtItsStart: a run that is just being started gives way to the next one, too.
func TestRecurringWorkflowReplacedAtItsStart(t *testing.T) {
	var slow atomic.Bool
	slow.Store(true)
	inWorld(t, func(o *sched.Options) {
		o.Failpoint = func(name string) {
			if name == "before-start" && slow.CompareAndSwap(true, false) {
				time.Sleep(3 * time.Second) // the disk is slow
			}
		}
	}, func(w *world) {
		w.run.behave(takes(time.Hour))
		r := w.every("*/2 * * * * *", func(r *dts.RecurringTask) {
			r.Spec, r.OverlapPolicy, r.EndTime = w.workflow("a"), dts.OverlapCancel, w.now().Add(4*time.Second)
		})
		w.settle(3 * time.Hour)
		if got, want := w.ledger(r.ID), []string{"00:00:02 CANCELLED", "00:00:04 SUCCESS"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		w.atRest()
	})
}

// TestRecurringWorkflowBlackout: a run that waited for the one before it does not start within a blackout.
func TestRecurringWorkflowBlackout(t *testing.T) {
	for action, want := range map[dts.BlackoutAction][]string{
		dts.BlackoutSkip: {"00:01:00 SUCCESS", "00:02:00 skipped 1 BLACKOUT"},
		dts.BlackoutWait: {"00:01:00 SUCCESS", "00:02:00 SUCCESS"},
	} {
		inWorld(t, nil, func(w *world) {
			w.run.behave(takes(90 * time.Second))
			r := w.every("* * * * *", func(r *dts.RecurringTask) {
				r.Spec, r.OverlapPolicy, r.EndTime = w.workflow("a"), dts.OverlapBufferAll, w.now().Add(2*time.Minute)
			})
			w.black(135*time.Second, 5*time.Minute, func(b *dts.Blackout) { b.Action = action })
			w.settle(10 * time.Minute)
			if got := w.ledger(r.ID); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			page, err := w.st.Tasks(w.ctx, dts.TaskFilter{TenantID: dts.DefaultTenant, RecurringTaskID: r.ID, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range page.Items {
				if at := run.StartedAt.Sub(r.CreatedAt); at > 3*time.Minute/2 && at < 5*time.Minute {
					t.Errorf("the run of %v started at %v", run.ScheduledAt, at)
				}
			}
			w.atRest()
		})
	}
}

// TestRecurringWorkflowReplanned: a change of the schedule leaves a run alone that waits for its steps.
func TestRecurringWorkflowReplanned(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(takes(time.Hour))
		r := w.every("* * * * *", func(r *dts.RecurringTask) { r.Spec, r.OverlapPolicy = w.workflow("a"), dts.OverlapSkip })
		w.settle(90 * time.Second)
		var p dts.RecurringPatch
		if err := json.Unmarshal([]byte(`{"cron":"0 12 * * *"}`), &p); err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.ModifyRecurring(w.ctx, dts.DefaultTenant, r.ID, p); err != nil {
			t.Fatal(err)
		}
		w.settle(2 * time.Hour)
		if got := w.ledger(r.ID); !slices.Equal(got, []string{"00:01:00 SUCCESS"}) {
			t.Error(got)
		}
	})
}

// TestConflictsOfWorkflows: a run takes nothing that others need.
func TestConflictsOfWorkflows(t *testing.T) {
	inWorld(t, func(o *sched.Options) { o.HTTPSlots = 1 }, func(w *world) {
		for range 3 {
			w.every("0 * * * *", func(r *dts.RecurringTask) { r.Spec = w.workflow("a", "b<a") })
		}
		list, err := w.s.Conflicts(w.ctx, dts.DefaultTenant, time.Time{}, time.Time{})
		if err != nil || len(list) > 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// TestWhyWorkflow: what a run waits for, and what became of it.
func TestWhyWorkflow(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.run.behave(failsFor(time.Minute, "b"))
		run := w.addRun("a", "b<a", "c<b")
		why := func(want string) {
			t.Helper()
			got, err := w.s.Why(w.ctx, dts.DefaultTenant, run.ID, time.Time{})
			if err != nil || !strings.HasPrefix(got.Answer, want) {
				t.Errorf("%q, %v; want %q", got.Answer, err, want)
			}
		}
		w.settle(30 * time.Second)
		why("It has been running for 30 s, since Sat 2000-01-01 00:00:00 UTC, and waits for 3 steps of its workflow: a (RUNNING), ")
		w.settle(time.Minute)
		why("It has been running for 1 m 30 s, since Sat 2000-01-01 00:00:00 UTC, and waits for 2 steps of its workflow: b (RUNNING) and c (PENDING).")
		w.settle(time.Minute)
		why("It failed at Sat 2000-01-01 00:02:00 UTC, after 2 m: the step b FAILED: answered 500.")
	})
}
