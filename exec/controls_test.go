package exec

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dts"
)

// controlled starts a job and returns its controls as soon as it runs.
func controlled(t *testing.T, ctx context.Context, r *Runner, job dts.Job) (dts.Controls, <-chan dts.Outcome) {
	t.Helper()
	got := make(chan dts.Controls, 1)
	job.Controls = func(c dts.Controls) { got <- c }
	done := start(ctx, r, job)
	select {
	case c := <-got:
		return c, done
	case out := <-done:
		t.Fatalf("the run ended before it had controls: %+v", out)
	case <-time.After(20 * time.Second):
		t.Fatal("no controls")
	}
	return nil, nil
}

// standing are the states of a process that stands: stopped, or in vfork(2) until its child goes on, which is stopped.
const standing = "TD"

// requireState waits until every process is in one of the states, as in /proc/PID/stat.
func requireState(t *testing.T, pids []int, states string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return // there the counting commands of the tests show it
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, pid := range pids {
		for {
			b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			if err != nil {
				t.Fatalf("process %d: %v", pid, err)
			}
			f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
			if strings.Contains(states, f[0]) {
				break
			}
			if !sleep(ctx, time.Millisecond) {
				t.Fatalf("process %d is in state %s, want one of %s", pid, f[0], states)
			}
		}
	}
}

// pair is a command with a child in its group. Both count into the output.
const pair = `sh -c 'while :; do echo c; sleep 0.01; done' & echo main=$$ child=$!; while :; do echo p; sleep 0.01; done`

func TestStopAndContinue(t *testing.T) {
	r := newRunner(t, Options{KillGrace: 50 * time.Millisecond})
	job := newJob(t, shell(pair), time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	c, done := controlled(t, ctx, r, job)
	out := readUntil(t, r, job, "main=")
	pids := []int{number(t, out, "main"), number(t, out, "child")}
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := c.Stop(); err != nil { // again: nothing changes
			t.Fatal(err)
		}
		requireState(t, pids, standing)
		tail, _ := r.Tail(job.Task.ID, job.Number)
		short, give := context.WithTimeout(t.Context(), 50*time.Millisecond)
		for offset := int64(0); ; { // what was written before it stopped, and then nothing
			_, next, _, err := tail.Read(short, offset)
			if err != nil {
				break
			}
			offset = next
		}
		_, stood, _, _ := tail.Read(short, 0)
		wait, give2 := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if chunk, _, _, err := tail.Read(wait, stood); err == nil {
			t.Errorf("a stopped command went on: %q", chunk)
		}
		give()
		give2()
		c.Continue()
		c.Continue()
		requireState(t, pids, "SRD")
		if chunk, _, _, err := tail.Read(t.Context(), stood); err != nil || len(chunk) == 0 {
			t.Errorf("it did not go on: %q %v", chunk, err)
		}
	}
	cancel(dts.ErrRunCancelled)
	if out := <-done; out.State != dts.AttemptCancelled {
		t.Errorf("%+v", out)
	}
	requireGone(t, pids)
	if err := c.Stop(); dts.CodeOf(err) != dts.ErrConflict {
		t.Errorf("after the end: %v", err)
	}
	c.Continue()
}

// The time in which a command stands does not count, and what is left after counts on.
func TestTimeoutDoesNotCountStoppedTime(t *testing.T) {
	r := newRunner(t, Options{KillGrace: 50 * time.Millisecond})
	job := newJob(t, shell("echo pid=$$; sleep 60"), 600*time.Millisecond)
	begin := time.Now()
	c, done := controlled(t, t.Context(), r, job)
	pid := number(t, readUntil(t, r, job, "\n"), "pid")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case out := <-done:
		t.Fatalf("it ended while it was stopped: %+v", out)
	case <-time.After(1200 * time.Millisecond):
	}
	c.Continue()
	again := time.Now()
	out := <-done
	if out.State != dts.AttemptTimedOut || time.Since(begin) < 1800*time.Millisecond || time.Since(again) > 10*time.Second {
		t.Errorf("%+v after %s", out, time.Since(begin))
	}
	requireGone(t, []int{pid})
}

// A stopped command hears of its end: SIGTERM reaches it, because SIGCONT follows.
func TestEndWhileStopped(t *testing.T) {
	for cause, want := range map[error]dts.AttemptState{dts.ErrRunCancelled: dts.AttemptCancelled, dts.ErrRunLost: dts.AttemptLost} {
		r := newRunner(t, Options{KillGrace: time.Minute})
		job := newJob(t, shell(`trap 'echo bye; exit 4' TERM; echo ready pid=$$; while :; do sleep 0.01; done`), time.Minute)
		ctx, cancel := context.WithCancelCause(t.Context())
		c, done := controlled(t, ctx, r, job)
		pid := number(t, readUntil(t, r, job, "\n"), "pid")
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		requireState(t, []int{pid}, standing)
		cancel(cause)
		select {
		case out := <-done:
			if out.State != want || !strings.HasSuffix(text(out), "bye\n") || out.ExitCode == nil || *out.ExitCode != 4 {
				t.Errorf("%+v %q", out, text(out))
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a stopped command does not end")
		}
	}
}

// One that ignores SIGTERM is killed although it is stopped.
func TestKillWhileStopped(t *testing.T) {
	r := newRunner(t, Options{KillGrace: 50 * time.Millisecond})
	job := newJob(t, shell(family), time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	c, done := controlled(t, ctx, r, job)
	readUntil(t, r, job, "away=")
	out := readUntil(t, r, job, "main=")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	cancel(dts.ErrRunCancelled)
	<-done
	requireGone(t, familyPIDs(t, out))
}

// A command that is killed from outside while it is stopped ends, and what it had in the background goes on. (The kernel
// also tells it: a group that is left without a parent, and stopped, gets SIGHUP.)
func TestKilledFromOutsideWhileStopped(t *testing.T) {
	r := newRunner(t, Options{WaitDelay: 50 * time.Millisecond})
	job := newJob(t, shell(`sh -c 'trap "" HUP; echo child=$$; exec sleep 60' & echo main=$$; wait`), time.Minute)
	c, done := controlled(t, t.Context(), r, job)
	readUntil(t, r, job, "child=")
	out := readUntil(t, r, job, "main=")
	main, child := number(t, out, "main"), number(t, out, "child")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	requireState(t, []int{child}, standing)
	syscall.Kill(main, syscall.SIGKILL)
	if out := <-done; out.State != dts.AttemptFailed || out.ExitCode == nil || *out.ExitCode != 137 {
		t.Errorf("%+v", out)
	}
	requireState(t, []int{child}, "SRD")
	syscall.Kill(child, syscall.SIGKILL)
}

// Orphans that stand still are found and killed like others.
func TestKillStoppedOrphans(t *testing.T) {
	data, taskID := "data-"+dts.NewID(time.Now()), dts.NewID(time.Now())
	p, pids := crashedServer(t, data, taskID)
	if err := syscall.Kill(-p.PGID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	requireState(t, pids[:3], standing)
	_, err := KillOrphans(t.Context(), slog.New(slog.DiscardHandler), OrphanQuery{Processes: []dts.Process{p}, DataDirID: data,
		InFlight: func(id string, attempt int) bool { return id == taskID && attempt == 1 }})
	if err != nil {
		t.Fatal(err)
	}
	requireGone(t, pids)
}
