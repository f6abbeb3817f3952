package exec

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"dts"
)

// family is a command with a child that ignores SIGTERM, one in the background, and one that has left the
// group and the session. It prints all their ids, then waits.
const family = `trap '' TERM
sleep 61 & a=$!
sh -c 'trap "" TERM; sleep 62; sleep 63' & b=$!
setsid sh -c 'trap "" TERM; echo away=$$; while :; do sleep 1; done' &
echo main=$$ a=$a b=$b
while :; do sleep 1; done`

func familyPIDs(t *testing.T, out string) []int {
	t.Helper()
	return []int{number(t, out, "main"), number(t, out, "a"), number(t, out, "b"), number(t, out, "away")}
}

func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if alive(t, pid) {
			t.Errorf("process %d is still there", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestTimeoutKillsFamily(t *testing.T) {
	r := newRunner(t, Options{KillGrace: 50 * time.Millisecond})
	job := newJob(t, shell(family), time.Second)
	out := r.Run(t.Context(), job)
	if out.State != dts.AttemptTimedOut || !out.Retryable || out.Error != "did not end within 1s and was killed" || out.ExitCode == nil || *out.ExitCode != 137 {
		t.Errorf("%+v", out)
	}
	requireGone(t, familyPIDs(t, text(out)))
}

func TestCancelKillsFamily(t *testing.T) {
	for cause, want := range map[error]dts.AttemptState{dts.ErrRunCancelled: dts.AttemptCancelled, dts.ErrRunLost: dts.AttemptLost} {
		r := newRunner(t, Options{KillGrace: 50 * time.Millisecond})
		job := newJob(t, shell(family), time.Minute)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := start(ctx, r, job)
		readUntil(t, r, job, "away=")
		readUntil(t, r, job, "main=")
		cancel(cause)
		out := <-done
		if out.State != want {
			t.Errorf("%+v", out)
		}
		requireGone(t, familyPIDs(t, text(out)))
	}
}

// A server that stops ends all its commands at once.
func TestStopMany(t *testing.T) {
	r := newRunner(t, Options{KillGrace: 50 * time.Millisecond})
	ctx, cancel := context.WithCancelCause(t.Context())
	var runs []<-chan dts.Outcome
	var pids []int
	for range 30 {
		job := newJob(t, shell(`trap '' TERM; sleep 64 & echo main=$$ child=$!; wait; wait`), time.Minute)
		runs = append(runs, start(ctx, r, job))
		out := readUntil(t, r, job, "\n")
		pids = append(pids, number(t, out, "main"), number(t, out, "child"))
	}
	cancel(dts.ErrRunLost)
	for _, run := range runs {
		if out := <-run; out.State != dts.AttemptLost {
			t.Errorf("%+v", out)
		}
	}
	requireGone(t, pids)
}

// A command that ends on SIGTERM gets to clean up and is not made to wait for the grace.
func TestPoliteEnd(t *testing.T) {
	r := newRunner(t, Options{KillGrace: time.Minute})
	job := newJob(t, shell(`trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done`), time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := start(ctx, r, job)
	readUntil(t, r, job, "ready")
	begin := time.Now()
	cancel(dts.ErrRunCancelled)
	out := <-done
	if out.State != dts.AttemptCancelled || !strings.HasSuffix(text(out), "\nbye\n") || *out.ExitCode != 4 || time.Since(begin) > 20*time.Second {
		t.Errorf("%+v %q after %s", out, text(out), time.Since(begin))
	}
}

// Processes that keep starting new ones do not get away: a group is killed in one step.
func TestKillWhileForking(t *testing.T) {
	r := newRunner(t, Options{KillGrace: time.Millisecond})
	job := newJob(t, shell(`trap '' TERM; echo ready; for i in 1 2 3 4; do (while :; do (sleep 0.01 & sleep 0.01) ; done) & done; wait`), time.Minute)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := start(ctx, r, job)
	readUntil(t, r, job, "ready")
	sleep(t.Context(), 50*time.Millisecond) // let it grow; any moment will do
	cancel(dts.ErrRunCancelled)
	<-done
	left, err := newSweep(r.o.Log, processes, map[int]bool{}, func(m string) bool { return m == mark(r.o.DataDirID, &job) }).find()
	if err != nil || len(left) > 0 {
		t.Errorf("%d processes are left, %v", len(left), err)
	}
}

func TestCancelledBeforeStart(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(dts.ErrRunCancelled)
	job := newJob(t, shell("echo ran"), time.Minute)
	job.Started = func(dts.Process) { t.Error("started") }
	if out := newRunner(t, Options{}).Run(ctx, job); out.State != dts.AttemptCancelled || text(out) != "" {
		t.Errorf("%+v", out)
	}
}

// crashedServer runs target in a server of its own, kills that with SIGKILL as soon as the family has
// printed its ids to a file, and returns what was recorded and the ids.
func crashedServer(t *testing.T, data, taskID string) (dts.Process, []int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/ids"
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(shell("exec >" + file + "\n" + family))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "TEST_HELPER=server", "TEST_DATA="+data, "TEST_TASK="+taskID, "TEST_CONFIG="+string(config))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var p dts.Process
	if err := json.NewDecoder(stdout).Decode(&p); err != nil {
		t.Fatal(err)
	}
	ids, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	var out strings.Builder
	for lines := bufio.NewScanner(ids); !strings.Contains(out.String(), "away=") || !strings.Contains(out.String(), "main="); {
		if !lines.Scan() {
			t.Fatalf("the family printed only %q", out.String())
		}
		out.WriteString(lines.Text() + "\n")
	}
	cmd.Process.Kill()
	cmd.Wait()
	pids := familyPIDs(t, out.String())
	for _, pid := range pids {
		if !alive(t, pid) {
			t.Fatalf("process %d did not survive the server; the test shows nothing", pid)
		}
	}
	return p, pids
}

func TestKillOrphans(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	data, taskID := "data-"+dts.NewID(time.Now()), dts.NewID(time.Now())
	p, pids := crashedServer(t, data, taskID)
	query := func(q OrphanQuery) int {
		t.Helper()
		n, err := KillOrphans(t.Context(), log, q)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	inFlight := func(id string, attempt int) bool { return id == taskID && attempt == 1 }
	otherStart, otherBoot := p, p
	otherStart.StartTime++
	otherBoot.BootID = "another"
	for name, q := range map[string]OrphanQuery{
		"nothing asked":         {DataDirID: data},
		"another server's data": {DataDirID: "another", InFlight: inFlight},
		"an attempt that ended": {DataDirID: data, InFlight: func(string, int) bool { return false }},
		"id used again":         {DataDirID: data, Processes: []dts.Process{otherStart}},
		"another boot":          {DataDirID: data, Processes: []dts.Process{otherBoot}},
		"nonsense":              {DataDirID: data, Processes: []dts.Process{{PGID: 0, BootID: p.BootID}, {PGID: 1, BootID: p.BootID}, {PGID: -1, BootID: p.BootID}}},
	} {
		if n := query(q); n != 0 {
			t.Fatalf("%s: killed %d", name, n)
		}
	}
	// The recorded group goes even without a mark; the one that left it does not.
	if n := query(OrphanQuery{DataDirID: data, Processes: []dts.Process{p}}); n < 3 {
		t.Errorf("killed %d of the group", n)
	}
	requireGone(t, pids[:3])
	if !alive(t, pids[3]) {
		t.Error("the process outside of the group is gone; it was not asked for")
	}
	if n := query(OrphanQuery{DataDirID: data, InFlight: inFlight}); n < 1 {
		t.Errorf("killed %d by mark", n)
	}
	requireGone(t, pids)
	// And all at once by mark alone, as when the server died before the process was recorded.
	_, pids = crashedServer(t, data, taskID)
	if n := query(OrphanQuery{DataDirID: data, InFlight: inFlight}); n < 4 {
		t.Errorf("killed %d", n)
	}
	requireGone(t, pids)
}

func TestParseMark(t *testing.T) {
	job := newJob(t, shell("x"), time.Second)
	job.Number = 12
	if id, n, ok := parseMark(mark("d/1", &job), "d/1"); id != job.Task.ID || n != 12 || !ok {
		t.Errorf("%s %d %v", id, n, ok)
	}
	for _, m := range []string{"", "d", "d/", "d/x", "d/x/", "d/x/y", "other/x/1", "d/x/1/2"} {
		if id, n, ok := parseMark(m, "d"); ok {
			t.Errorf("%q: %q %d", m, id, n)
		}
	}
}
