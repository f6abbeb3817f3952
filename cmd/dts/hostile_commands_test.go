package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// family is a command whose processes resist their end. Each of them appends its id to the file $PIDS, which is the
// directory of the run.
type family struct {
	name string
	line string // for the shell
	left bool   // when it ends by itself, a process may stay
}

// chain starts its successor in a session of its own and ends, again and again. It ends for good when the file $0.stop
// is there.
const chain = `echo $$ >>"$PIDS"; test -e "$0.stop" || { sleep 0.02; setsid sh "$0" & }`

// families that go on until they are stopped.
var families = []family{
	{name: "prints without end", line: `echo $$ >>"$PIDS"; exec yes 0123456789012345678901234567890123456789`},
	{name: "forks children", line: `echo $$ >>"$PIDS"; for i in 1 2 3 4 5; do sh -c 'echo $$ >>"$PIDS"; exec sleep 300' & done; wait`},
	{name: "ignores TERM", line: `trap "" TERM HUP INT; echo $$ >>"$PIDS"; while :; do sleep 1; done`},
	{name: "leaves a grandchild behind in its own session", line: `echo $$ >>"$PIDS"
		setsid sh -c 'echo $$ >>"$PIDS"; sh -c "trap \"\" TERM HUP; echo \$\$ >>\"\$PIDS\"; while :; do sleep 1; done" >/dev/null 2>&1 </dev/null & '
		sleep 300`},
	{name: "ends and leaves a daemon that is in the way", line: `echo $$ >>"$PIDS"; setsid sh -c 'echo $$ >>"$PIDS"; exec sleep 300' & exec sleep 300`},
	{name: "closes its output", line: `echo $$ >>"$PIDS"; exec >&- 2>&- <&-; sleep 300`},
	{name: "changes its process group", line: `set -m; echo $$ >>"$PIDS"; sh -c 'echo $$ >>"$PIDS"; exec sleep 300' & wait`},
	{name: "empties its environment", line: `echo $$ >>"$PIDS"; env -i PIDS="$PIDS" sh -c 'echo $$ >>"$PIDS"; exec sleep 300' & wait`},
	{name: "stops itself", line: `echo $$ >>"$PIDS"; kill -STOP $$; sleep 300`},
	{name: "forks in a loop", line: `echo $$ >>"$PIDS"; while :; do for i in 1 2 3 4 5 6 7 8; do sh -c 'echo $$ >>"$PIDS"; exec sleep 0.1' & done; wait; done`},
	{name: "runs away from session to session", line: `echo $$ >>"$PIDS"; sh "$CHAIN" & sleep 300`},
}

// familyRun is a run of a family.
type familyRun struct {
	family
	task *dts.Task
	pids string // path of $PIDS
}

// run starts a family.
func (f family) run(s *testServer, q api.TaskRequest) *familyRun {
	s.t.Helper()
	dir := s.t.TempDir()
	r := &familyRun{family: f, pids: filepath.Join(dir, "pids")}
	script := filepath.Join(dir, "chain")
	if err := os.WriteFile(script, []byte(chain), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { // what a failed test leaves
		os.WriteFile(script+".stop", nil, 0o600)
		for _, pid := range r.alive(s.t) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	b, err := json.Marshal(dts.CommandTarget{Shell: f.line, Env: map[string]string{"PIDS": r.pids, "CHAIN": script}, Dir: dir})
	if err != nil {
		s.t.Fatal(err)
	}
	q.TargetType, q.TargetConfig, q.Name = dts.Command, b, f.name
	r.task = s.create(q)
	return r
}

// started reports that every kind of process of the family has been there.
func (r *familyRun) started(t *testing.T) bool {
	return len(r.read(t)) >= strings.Count(r.line, `echo $$ >>"$PIDS"`)
}

func (r *familyRun) read(t *testing.T) []int {
	b, err := os.ReadFile(r.pids)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var list []int
	for text := range strings.Lines(string(b)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// alive returns the family's processes that are there and not zombies.
func (r *familyRun) alive(t *testing.T) []int {
	var list []int
	for _, pid := range r.read(t) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		if i := bytes.LastIndexByte(b, ')'); len(b) > i+2 && b[i+2] != 'Z' && b[i+2] != 'X' {
			list = append(list, pid)
		}
	}
	return list
}

// awaitGone waits until nothing of the family is left.
func (r *familyRun) awaitGone(s *testServer, how string, limit time.Duration) {
	s.t.Helper()
	end := time.Now().Add(limit)
	for len(r.alive(s.t)) > 0 {
		if time.Now().After(end) {
			s.t.Errorf("a command that %s: %d of %d processes are there %s after %s", r.name, len(r.alive(s.t)), len(r.read(s.t)), limit, how)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stopLimit is how long the end of a command may take: the grace after SIGTERM and a little.
const stopLimit = 8 * time.Second

// commands runs every family into its time limit, and cancels it. Nothing of it is left, its result says why, and
// what it prints fills neither memory nor disk. Other commands are on time meanwhile.
func (h *hostile) commands(t *testing.T) {
	needProc(t)
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	s.start()
	var late, cancelled []*familyRun
	for _, f := range families {
		q := api.TaskRequest{Spec: dts.Spec{TimeoutSeconds: 1.5, Retry: dts.Retry{MaxAttempts: 1}}}
		late = append(late, f.run(s, q))
		q.TimeoutSeconds = 60
		cancelled = append(cancelled, f.run(s, q))
	}
	punctual := s.create(api.TaskRequest{Spec: commandSpec("/bin/true"), Delay: "1200ms"})
	for _, r := range cancelled {
		s.eventually(5*time.Second, "a command that "+r.name+" to start", func() bool { return r.started(t) })
		if _, err := s.api.DoTask(t.Context(), r.task.ID, dts.Cancel); err != nil {
			t.Errorf("cancel a command that %s: %v", r.name, err)
		}
	}
	for _, r := range cancelled {
		r.awaitGone(s, "a cancel", stopLimit)
		s.checkEnd(r, dts.AttemptCancelled, "")
	}
	for _, r := range late {
		r.awaitGone(s, "its time limit", stopLimit)
		s.checkEnd(r, dts.AttemptTimedOut, "did not end within 1.5s and was killed")
	}
	if task, err := s.api.Task(t.Context(), punctual.ID); err != nil || task.Status != dts.Success || *task.LatenessUS > 1_000_000 {
		t.Errorf("a good command beside them: %+v, %v", task, err)
	} else {
		t.Logf("a good command beside them was %d ms late; peak memory %d MiB", *task.LatenessUS/1000, s.residentBytes("VmHWM")>>20)
	}
	if peak := s.residentBytes("VmHWM"); peak > 128<<20 {
		t.Errorf("the server took %d MiB", peak>>20)
	}
	stored := int64(0)
	for _, name := range []string{"dts.db", "dts.db-wal"} {
		if info, err := os.Stat(filepath.Join(s.data, name)); err == nil {
			stored += info.Size()
		}
	}
	if stored > 8<<20 {
		t.Errorf("the data takes %d bytes", stored)
	}
	if out, err := s.api.Attempts(t.Context(), late[0].task.ID); err != nil || len(out) != 1 || out[0].OutputBytes < 1<<20 {
		t.Errorf("the command that printed without end: %+v, %v", out, err)
	}
}

// checkEnd checks the only attempt of a family, which has ended or will in a moment.
func (s *testServer) checkEnd(r *familyRun, state dts.AttemptState, text string) {
	s.t.Helper()
	var a *dts.Attempt
	s.eventually(5*time.Second, "the result of a command that "+r.name, func() bool {
		list, err := s.api.Attempts(s.t.Context(), r.task.ID)
		if err != nil || len(list) != 1 {
			return false
		}
		a = list[0]
		return a.State != dts.AttemptRunning
	})
	if a.State != state || text != "" && a.Error != text {
		s.t.Errorf("a command that %s: %s %q; want %s %q", r.name, a.State, a.Error, state, text)
	}
}

// commandsSurvive kills the server while the families run. The next server kills them before it is ready.
func (h *hostile) commandsSurvive(t *testing.T) {
	needProc(t)
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	s.start()
	var runs []*familyRun
	for _, f := range families {
		// AT_MOST_ONCE: it does not run again after the crash.
		runs = append(runs, f.run(s, api.TaskRequest{Spec: dts.Spec{TimeoutSeconds: 60, Delivery: dts.AtMostOnce}}))
	}
	for _, r := range runs {
		s.eventually(5*time.Second, "a command that "+r.name+" to start", func() bool { return r.started(t) })
	}
	time.Sleep(200 * time.Millisecond) // past the moment at which a run's process is recorded
	s.kill()
	alive := 0
	for _, r := range runs {
		alive += len(r.alive(t))
	}
	s.start()
	for _, r := range runs {
		r.awaitGone(s, "the start of the next server", 0)
		s.checkEnd(r, dts.AttemptLost, "lost: the server stopped in mid-run")
	}
	t.Logf("%d processes of %d commands were alive after the kill, none after the start", alive, len(runs))
}

// commandEnds runs commands that end in unusual ways.
func (h *hostile) commandEnds(t *testing.T) {
	needProc(t)
	s := newServer(t, h.bin, filepath.Join(t.TempDir(), "data"))
	s.start()
	type end struct {
		family
		state dts.AttemptState
		err   string
		code  int
		bytes int64
		run   *familyRun
	}
	ends := []*end{
		{family: family{name: "holds its output open in the background", line: `sh -c 'echo $$ >>"$PIDS"; exec sleep 300' & echo fine`, left: true}, state: dts.AttemptSuccess, bytes: 5},
		{family: family{name: "prints in the background", line: `sh -c 'echo $$ >>"$PIDS"; exec yes' & exit 0`}, state: dts.AttemptSuccess},
		{family: family{name: "reads its input for ever", line: `cat`}, state: dts.AttemptSuccess},
		{family: family{name: "ends by a signal", line: `kill -SEGV $$`}, state: dts.AttemptFailed, err: "ended by signal 11 (segmentation fault)", code: 139},
		{family: family{name: "kills its group", line: `echo $$ >>"$PIDS"; kill -9 0`}, state: dts.AttemptFailed, err: "ended by signal 9 (killed)", code: 137},
		{family: family{name: "prints one long line", line: `head -c 50000000 /dev/zero`}, state: dts.AttemptSuccess, bytes: 50_000_000},
		{family: family{name: "has a strange name and arguments", line: `sh -c 'printf "\033[2J\000\377" >&2; exit 3' "$(printf '\033]0;x\a')"`}, state: dts.AttemptFailed, err: "exit code 3", code: 3, bytes: 6},
		{family: family{name: "becomes another program", line: `exec sleep 0.1`}, state: dts.AttemptSuccess},
	}
	for _, e := range ends {
		e.run = e.family.run(s, api.TaskRequest{Spec: dts.Spec{TimeoutSeconds: 30, Retry: dts.Retry{MaxAttempts: 1}}})
	}
	for _, e := range ends {
		s.checkEnd(e.run, e.state, e.err)
		list, err := s.api.Attempts(t.Context(), e.run.task.ID)
		if err != nil {
			t.Fatal(err)
		}
		a := list[0]
		if a.ExitCode == nil || *a.ExitCode != e.code {
			t.Errorf("a command that %s: exit code %v; want %d", e.name, a.ExitCode, e.code)
		}
		if e.bytes > 0 && a.OutputBytes != e.bytes {
			t.Errorf("a command that %s: %d bytes of output; want %d", e.name, a.OutputBytes, e.bytes)
		}
		if a.DurationUS > 10_000_000 {
			t.Errorf("a command that %s: took %d ms", e.name, a.DurationUS/1000)
		}
		if left := len(e.run.alive(t)) > 0; left && !e.left {
			e.run.awaitGone(s, "its end", time.Second)
		} else if !left && e.left {
			t.Errorf("a command that %s: what it left in the background is gone", e.name)
		}
	}
}

// needProc skips where processes cannot be looked at.
func needProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skipf("HOSTILE COMMANDS ARE NOT TESTED: there is no /proc: %v", err)
	}
}
