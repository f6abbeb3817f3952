package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// fault is a mistake planted in the product, and the check that must find it.
type fault struct {
	name string
	file string
	edit []string // pairs of an old text, which the file has once, and the new one

	pkg   string // the simulation where empty
	run   string // the test
	wants string // what must be in its output, as a regular expression
	quick bool   // one of those that run each time
}

const simulation = "./sched/sim"

var faults = []fault{
	{name: "acknowledge before the commit has succeeded", file: "store/sqlite/writer.go",
		edit: []string{"if err := d.resolve(token, err); err != nil {\n\t\t\treturn nil, err\n\t\t}", "_ = d.resolve(token, err)"},
		pkg:  "./store/sqlite", run: "TestUnknownOutcome", wants: "--- FAIL"},
	{name: "answer a group before it is applied", file: "store/group.go",
		edit: []string{"res, err := g.apply(es)\n\t\tvar refused", "res, err := make([]Result, 4096), error(nil)\n\t\tgo g.apply(es)\n\t\tvar refused"},
		pkg:  "./store", run: "TestGroup.*", wants: "--- FAIL|panic"},
	{name: "a caller's context interrupts the group's transaction", file: "store/group.go",
		edit: []string{"waiter chan outcome\n\tdone   doneFunc", "waiter chan outcome\n\tdone   doneFunc\n\tctx    context.Context",
			"bytes: argBytes(batch), done: done}", "bytes: argBytes(batch), done: done, ctx: context.Background()}",
			"bytes: argBytes(batch), waiter: waiter}", "bytes: argBytes(batch), waiter: waiter, ctx: ctx}",
			"g.b.Apply(context.Background(), stmts...)", "g.b.Apply(es[0].ctx, stmts...)"},
		pkg: "./store", run: "TestGroup.*", wants: "--- FAIL"},
	{name: "no fence", file: "store/store.go",
		edit: []string{"WHERE s.node_id IS NOT ?1 OR s.term IS NOT j.value ->> 1)", "WHERE (s.node_id IS NOT ?1 OR s.term IS NOT j.value ->> 1) AND 0)"},
		pkg:  "./store", run: "TestStaleAttempts", wants: "--- FAIL"},
	{name: "the end of a stale attempt is accepted", file: "store/runs.go",
		edit: []string{"setEnd + `AND status = 'PENDING' AND attempts = ?2 - 1`", "setEnd"},
		pkg:  "./store", run: "TestStaleAttempts", wants: "--- FAIL"},
	{name: "the cursor of a plan is not compared", file: "store/recurring.go",
		edit: []string{"AND status = ? AND plan_version = ? AND planned_through = ? AND replan = ?)", "AND status = ? AND plan_version = ? AND (planned_through = ? OR 1) AND replan = ?)"},
		pkg:  simulation, run: "TestStoreIsLikeSQL", wants: "--- FAIL"},

	{name: "the next instant is counted from now", file: "sched/plan.go", quick: true,
		edit:  []string{"at := b.c.Next(r.PlannedThrough)\n\t\tif at.IsZero()", "at := b.c.Next(laterOf(r.PlannedThrough, now))\n\t\tif at.IsZero()"},
		wants: "I4:"},
	{name: "what was posted to the loop does not wake it", file: "sched/inbox.go",
		edit:  []string{"case b.wake <- struct{}{}:", "case make(chan struct{}) <- struct{}{}:"},
		wants: "late:|I6:|answer:|deadlock"},
	{name: "missed occurrences do not wake the planner", file: "sched/planner.go",
		edit:  []string{"s.keepMissed([]string{id})\n\ts.wakePlanner()", "s.keepMissed([]string{id})"},
		wants: "I6:"},
	{name: "the timer is not set for claimed tasks", file: "sched/loop.go", quick: true,
		edit:  []string{"if it := p.claimed.top(); it != nil {\n\t\t\tsooner(it.RunAt)", "if it := p.claimed.top(); it != nil && draining {\n\t\t\tsooner(it.RunAt)"},
		wants: "late:|I6:"},
	{name: "a write of unknown outcome counts as not done", file: "sched/settle.go", quick: true,
		edit:  []string{"return dts.CodeOf(err) == dts.ErrUnknown", "return dts.CodeOf(err) == dts.ErrUnknown && err == nil"},
		wants: "stored:|I6:|I4:|pause:"},
	{name: "a caller that gives up ends its write", file: "sched/settle.go",
		edit:  []string{"return context.WithoutCancel(ctx), nil", "return ctx, nil", "return dts.CodeOf(err) == dts.ErrUnknown", "return dts.CodeOf(err) == dts.ErrUnknown && context.Background() == nil"},
		wants: "stored:|I6:|I4:|pause:"},
	{name: "no place is kept for a task that is inserted claimed", file: "sched/create.go",
		edit:  []string{"if l.items[e.TaskID] == nil {", "if len(list) == 0 {", "if place == nil || place.state != inserting {", "if place != nil && len(tasks) == 0 {", "if place.lost {", "if place != nil && place.lost {", "l.take(&c)\n\t\t\tl.release(place)", "l.take(&c)\n\t\t\tif place != nil {\n\t\t\t\tl.release(place)\n\t\t\t}"},
		wants: "once:|stored:|I9:"},
	{name: "the start of an AT_MOST_ONCE task is not written first", file: "sched/run.go", quick: true,
		edit:  []string{"first := t.Delivery == dts.AtMostOnce || r.limited()", "first := r.limited()"},
		wants: "I9:"},
	{name: "a start of unknown outcome counts as not written", file: "sched/run.go",
		edit:  []string{"unknown = unknown || dts.CodeOf(err) == dts.ErrUnknown", "unknown = false"},
		wants: "I6:|I9:"},
	{name: "nothing is recovered after a crash", file: "sched/recover.go", quick: true,
		edit:  []string{"for n := 0; len(lost) > 0; {", "for n := 0; len(lost) > 0 && ctx == nil; {"},
		wants: "I6:"},
	{name: "processes of an earlier server are not looked for", file: "sched/recover.go",
		edit:  []string{"if s.o.KillOrphans == nil {", "if s.o.KillOrphans != nil {"},
		wants: "I10:"},
	{name: "a retry does not wait", file: "sched/run.go",
		edit:  []string{"again(t.Retry.Delay(a.Number, jitter, retryAfter))", "again(0)"},
		wants: "retry:"},
	{name: "max_attempts is one too many", file: "sched/run.go",
		edit:  []string{"a.Number >= t.MaxAttempts ||", "a.Number > t.MaxAttempts ||"},
		wants: "attempts:"},
	{name: "a pause does not count at the instant", file: "sched/dispatch.go",
		edit:  []string{"case planned && !t.Moved && t.WaitsFor", "case planned && l == nil && t.WaitsFor"},
		wants: "pause:"},
	{name: "an occurrence between two attempts is not active", file: "sched/overlap.go",
		edit:  []string{"case active || len(l.active[rec]) > 0 || l.buffers[rec] != nil:", "case len(l.active[rec]) > 0 || l.buffers[rec] != nil:"},
		wants: "overlap:"},
	{name: "a read that fails decides an overlap", file: "sched/overlap.go",
		edit: []string{"err := s.persist(\"count active runs\", func() (err error) {", "_ = func(_ string, f func() error) error { return f() }(\"\", func() (err error) {",
			"if err == nil {\n\t\t\ts.in.post(func(l *loop) { then(l, n > 0) })\n\t\t}", "s.in.post(func(l *loop) { then(l, n > 0) })"},
		pkg: "./sched", run: "TestOverlapWhileTheStoreFails", wants: "--- FAIL"},
	{name: "a skip leaves no trace", file: "sched/expire.go", quick: true,
		edit:  []string{"\t\tc.Skip = skipOf(old, reason, note)\n", "\t\t_ = skipOf(old, reason, note)\n"},
		wants: "I4:"},
	{name: "expires_at is ignored", file: "sched/dispatch.go",
		edit:  []string{"case !t.ExpiresAt.IsZero() && now.After(t.ExpiresAt):", "case !t.ExpiresAt.IsZero() && l == nil:"},
		wants: "expired:"},
	{name: "runs start while the server stops", file: "sched/dispatch.go",
		edit:  []string{"&& !l.s.draining.Load() && (", "&& ("},
		wants: "stop:"},
	{name: "two missed occurrences run instead of the latest", file: "sched/catchup.go",
		edit: []string{"min(runs-len(fresh), len(late))", "min(runs, len(late))"},
		pkg:  "./sched", run: "TestDowntime", wants: "--- FAIL"},
	{name: "the cursor stays behind after missed instants", file: "sched/catchup.go",
		edit:  []string{"b.advance(last)\n", "_ = last\n"},
		wants: "I3:"},
	{name: "the heap is cut and its mark stays", file: "sched/loop.go",
		edit:  []string{"l.mark, l.all = list[keep-1].Mark(), false", "l.all = false"},
		wants: "late:|I6:"},
	{name: "the mark is raised after the store was read", file: "sched/loop.go",
		edit: []string{"\tl.mark = dts.Mark{RunAt: through, Rank: 1 << 30}\n", "", "l.read(after, l.mark)", "l.read(after, dts.Mark{RunAt: through, Rank: 1 << 30})",
			"more := len(list) == limit\n\t\t\tswitch {\n\t\t\tcase err != nil:\n\t\t\t\tl.s.logStore(\"load due tasks\"", "more := len(list) == limit\n\t\t\tl.mark = raised\n\t\t\tswitch {\n\t\t\tcase err != nil:\n\t\t\t\tl.s.logStore(\"load due tasks\""},
		wants: "late:|I6:"},
	{name: "a task at the mark itself is not taken", file: "sched/behind.go",
		edit:  []string{"bool { return !m.Before(e.Mark()) }", "bool { return e.Mark().Before(m) }"},
		wants: "late:|I6:"},
	{name: "a held task is not given back", file: "sched/hold.go",
		edit:  []string{"case old != nil: // it is still claimed\n\t\t\t\tl.add(it.Entry, old)", "case old != nil: // it is still claimed"},
		wants: "late:|I6:"},
	{name: "holds do not keep an order", file: "sched/hold.go",
		edit: []string{"sorted := slices.Sorted(slices.Values(ids))", "sorted := slices.Clone(ids)\n\tslices.Reverse(sorted)"},
		pkg:  "./sched", run: "TestHoldsDoNotWaitForEachOther", wants: "--- FAIL"},
	{name: "the writer gives a record up after an error", file: "sched/writer.go",
		edit:  []string{`err := s.persist("write results", func() error { return s.o.Store.Write(s.ctx, s.fence(), recs) })`, "err := s.o.Store.Write(s.ctx, s.fence(), recs)"},
		wants: "I6:|answer:|stop:"},
	{name: "the clock is set back, and failed reads wait for that time to come again", file: "sched/loop.go",
		edit: []string{"\t\t\t\tl.forgetRetries()\n", ""},
		pkg:  "./sched", run: "TestClockSetBackAfterAFailedRead", wants: "--- FAIL"},
	{name: "a missed occurrence of a cancelled recurring task is forgotten", file: "sched/plan.go",
		edit: []string{"b.skipTask(t, dts.ReasonCancelled, \"\")", "_ = t"},
		pkg:  "./sched", run: "TestCancelledWhileResultIsLost", wants: "--- FAIL"},
}

// TestFaults plants each fault alone, in a copy of its file that only that build sees, and demands that its check fails.
// DTS_SIM_FAULTS says which: "quick" for a few, "model" for those that the model test finds, "all", or a part of a name. Without it nothing is planted.
func TestFaults(t *testing.T) {
	which := os.Getenv("DTS_SIM_FAULTS")
	if which == "" {
		t.Log("DTS_SIM_FAULTS is not set: no fault is planted")
		return
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range slices.Concat(faults, lifeFaults) {
		if which == "all" || which == "quick" && f.quick || which == "model" && f.pkg == modelTest || strings.Contains(f.name, which) {
			n++
			t.Run(f.name, func(t *testing.T) { f.check(t, root) })
		}
	}
	if n == 0 {
		t.Fatalf("DTS_SIM_FAULTS is %q, which is no part of a name", which)
	}
}

// TestFaultsFit holds that each fault can be planted: the code that it quotes is there, once.
func TestFaultsFit(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Concat(faults, lifeFaults) {
		t.Run(f.name, func(t *testing.T) { f.plant(t, root, t.TempDir()) })
	}
}

func (f *fault) check(t *testing.T, root string) {
	if f.pkg == "" {
		f.pkg, f.run = simulation, "TestSim"
	}
	dir, began := t.TempDir(), time.Now()
	bin := filepath.Join(dir, "planted.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", f.plant(t, root, dir), "-o", bin, f.pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("with the fault it does not build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, bin, "-test.run", "^("+f.run+")$", "-test.timeout", "60s", "-test.short")
	run.Dir = filepath.Join(root, f.pkg)
	run.Env = append(os.Environ(), "DTS_MODEL_STEPS=12000", "DTS_MODEL_FROM=1", "RAPID_NOFAILFILE=1", "RAPID_SHRINKTIME=1s", "DTS_SIM_FAULTS=", "DTS_SIM_SEED=", "DTS_SIM_HISTORIES=12000", "GOMAXPROCS=1")
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	switch found := regexp.MustCompile(f.wants).Find(out); {
	case err == nil:
		t.Errorf("nothing finds it\n%s", tail(out))
	case bytes.Contains(out, []byte("panic: test timed out")):
		t.Errorf("nothing finds it in time\n%s", tail(out))
	case !errors.As(err, &exit) || found == nil:
		t.Errorf("what fails is not what should (%s): %v\n%s", f.wants, err, tail(out))
	default:
		t.Logf("found by %s %s (%s), %v in all", f.pkg, f.run, found, time.Since(began).Round(time.Second))
	}
}

// plant writes the file with the fault, and the overlay that puts it in the place of the right one.
func (f *fault) plant(t *testing.T, root, dir string) string {
	path := filepath.Join(root, filepath.FromSlash(f.file))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for i := 0; i < len(f.edit); i += 2 {
		if n := strings.Count(text, f.edit[i]); n != 1 {
			t.Fatalf("%s has this %d times, want once:\n%s", f.file, n, f.edit[i])
		}
		text = strings.Replace(text, f.edit[i], f.edit[i+1], 1)
	}
	planted, overlay := filepath.Join(dir, filepath.Base(f.file)), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: planted}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{planted: []byte(text), overlay: list} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }
