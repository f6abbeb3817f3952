package exec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dts"
)

func TestCommandOutcome(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := newRunner(t, Options{})
	for _, c := range []struct {
		name   string
		target dts.CommandTarget
		code   int // -1: none
		retry  bool
		err    string // part of it
		output string
	}{
		{name: "argv", target: dts.CommandTarget{Argv: []string{"echo", "$HOME", "a b"}}, output: "$HOME a b\n"},
		{name: "shell", target: shell("echo a; echo b >&2; echo c"), output: "a\nb\nc\n"},
		{name: "other shell", target: dts.CommandTarget{Shell: "echo $SHELL", ShellPath: "/bin/sh"}, output: "/bin/sh\n"},
		{name: "stdin", target: dts.CommandTarget{Argv: []string{"cat"}, Stdin: strings.Repeat("0123456789", 5000)}, output: strings.Repeat("0123456789", 5000)},
		{name: "no stdin", target: dts.CommandTarget{Argv: []string{"cat"}}},
		{name: "stdin unread", target: dts.CommandTarget{Argv: []string{"true"}, Stdin: strings.Repeat("x", 500_000)}},
		{name: "dir", target: dts.CommandTarget{Argv: []string{"pwd"}, Dir: "/usr"}, output: "/usr\n"},
		{name: "relative program", target: dts.CommandTarget{Argv: []string{"./" + filepath.Base(write("ok", "#!/bin/sh\necho here\n", 0o755))}, Dir: dir}, output: "here\n"},
		{name: "own PATH", target: dts.CommandTarget{Argv: []string{"ok"}, Env: map[string]string{"PATH": dir}}, output: "here\n"},
		{name: "exit code", target: shell("exit 3"), code: 3, retry: true, err: "exit code 3"},
		{name: "127", target: shell("no-such-program-x 2>/dev/null"), code: 127, retry: true, err: "does not find a program"},
		{name: "signal", target: shell("kill -SEGV $$"), code: 139, retry: true, err: "ended by signal 11"},
		{name: "no program", target: dts.CommandTarget{Argv: []string{"no-such-program-x"}}, code: -1, err: "there is no program no-such-program-x in PATH"},
		{name: "no file", target: dts.CommandTarget{Argv: []string{"/no/such"}}, code: -1, err: "there is no program /no/such"},
		{name: "not executable", target: dts.CommandTarget{Argv: []string{write("plain", "x", 0o644)}}, code: -1, err: "permission denied"},
		{name: "no interpreter", target: dts.CommandTarget{Argv: []string{write("lost", "#!/no/such/sh\n", 0o755)}}, code: -1, err: "interpreter"},
		{name: "no magic", target: dts.CommandTarget{Argv: []string{write("bare", "echo hi\n", 0o755)}}, code: -1, err: "first line"},
		{name: "no dir", target: dts.CommandTarget{Argv: []string{"pwd"}, Dir: "/no/such"}, code: -1, err: "the directory /no/such does not exist"},
		{name: "dir is file", target: dts.CommandTarget{Argv: []string{"pwd"}, Dir: "/etc/passwd"}, code: -1, err: "not a directory"},
		{name: "no user", target: dts.CommandTarget{Argv: []string{"pwd"}, User: "no-such-user-x"}, code: -1, err: `there is no user "no-such-user-x"`},
		{name: "too long", target: dts.CommandTarget{Argv: []string{"true", strings.Repeat("x", 200_000)}}, code: -1, err: "too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := r.Run(t.Context(), newJob(t, c.target, 20*time.Second))
			if (out.State == dts.AttemptSuccess) != (c.err == "") || out.Retryable != c.retry || !strings.Contains(out.Error, c.err) {
				t.Errorf("%s retryable=%v %q", out.State, out.Retryable, out.Error)
			}
			if (out.ExitCode == nil) != (c.code == -1) || out.ExitCode != nil && *out.ExitCode != c.code {
				t.Errorf("exit code %v, want %d", out.ExitCode, c.code)
			}
			if text(out) != c.output {
				t.Errorf("output %q, want %q", text(out), c.output)
			}
		})
	}
}

// A program that is still open for writing can be run a moment later, so it is worth another attempt.
func TestTextBusyIsRetryable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prog")
	b, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Write(b)
	out := newRunner(t, Options{}).Run(t.Context(), newJob(t, dts.CommandTarget{Argv: []string{path}}, 10*time.Second))
	if runtime.GOOS == "linux" && (out.State != dts.AttemptFailed || !out.Retryable || !strings.Contains(out.Error, "being written")) {
		t.Errorf("%+v", out)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TEST_SECRET", "of the server")
	r := newRunner(t, Options{NodeID: "n1", DataDirID: "data"})
	job := newJob(t, dts.CommandTarget{Argv: []string{"env"}, Env: map[string]string{"A": "1", "LANG": "xx"}}, 10*time.Second)
	job.Number = 2
	job.Task.RecurringTaskID = "r-1"
	job.Task.ScheduledAt = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	out := r.Run(t.Context(), job)
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + self.HomeDir, "USER=" + self.Username, "LOGNAME=" + self.Username,
		"SHELL=/bin/sh", "LANG=xx", "A=1", "DTS_TASK_ID=" + job.Task.ID, "DTS_TASK_NAME=a test", "DTS_ATTEMPT=2",
		"DTS_SCHEDULED_AT=2026-01-02T03:04:05.000006Z", "DTS_RECURRING_TASK_ID=r-1", "DTS_NODE=n1",
		"DTS_RUN=data/" + job.Task.ID + "/2",
	}
	got := strings.Split(strings.TrimSpace(text(out)), "\n")
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("environment\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// stdout and stderr share one pipe, so lines keep the order in which they were written.
func TestOutputOrder(t *testing.T) {
	out := newRunner(t, Options{}).Run(t.Context(), newJob(t, shell("for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"), 20*time.Second))
	var want strings.Builder
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&want, "o%d\ne%d\n", i, i)
	}
	if text(out) != want.String() {
		t.Errorf("%q", text(out))
	}
}

func TestEndlessOutput(t *testing.T) {
	r := newRunner(t, Options{KillGrace: 100 * time.Millisecond})
	out := r.Run(t.Context(), newJob(t, dts.CommandTarget{Argv: []string{"yes"}}, 300*time.Millisecond))
	if out.State != dts.AttemptTimedOut || out.Output.Total < 4*dts.OutputKept || !out.Output.Truncated() {
		t.Errorf("%s %q, %d bytes", out.State, out.Error, out.Output.Total)
	}
	if !bytes.HasPrefix(out.Output.Head, []byte("y\ny\n")) || len(out.Output.Head)+len(out.Output.Tail) != 2*dts.OutputKept {
		t.Errorf("kept %d + %d", len(out.Output.Head), len(out.Output.Tail))
	}
}

func TestStartedAndTail(t *testing.T) {
	r := newRunner(t, Options{})
	fifo := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	job := newJob(t, shell("echo pid=$$; read x < "+fifo+"; echo $x"), 20*time.Second)
	var p dts.Process
	started := make(chan struct{})
	job.Started = func(q dts.Process) { p = q; close(started) }
	done := start(t.Context(), r, job)
	<-started
	pid := number(t, readUntil(t, r, job, "\n"), "pid")
	if begun, err := startTime(pid); err != nil || p.PGID != pid || p.StartTime != begun || p.StartTime == 0 || p.BootID == "" {
		t.Errorf("process %+v, pid %d started %d, %v", p, pid, begun, err)
	}
	if err := os.WriteFile(fifo, []byte("more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := <-done; out.State != dts.AttemptSuccess || !strings.HasSuffix(text(out), "\nmore\n") {
		t.Errorf("%+v %q", out, text(out))
	}
	if _, ok := r.Tail(job.Task.ID, job.Number); ok {
		t.Error("the run has ended, but there still is a Tail")
	}
}

// A process in the background that keeps the output open holds a run up for WaitDelay, and lives on.
func TestBackgroundProcess(t *testing.T) {
	r := newRunner(t, Options{WaitDelay: 100 * time.Millisecond})
	job := newJob(t, shell("sleep 60 & echo pid=$!"), 20*time.Second)
	begin := time.Now()
	out := r.Run(t.Context(), job)
	if out.State != dts.AttemptSuccess || time.Since(begin) > 10*time.Second {
		t.Errorf("%+v after %s", out, time.Since(begin))
	}
	pid := number(t, text(out), "pid")
	if !alive(t, pid) {
		t.Error("the background process is gone")
	}
	syscall.Kill(pid, syscall.SIGKILL)
}

func TestUsage(t *testing.T) {
	r := newRunner(t, Options{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(env map[string]string) dts.Outcome {
		out := r.Run(t.Context(), newJob(t, dts.CommandTarget{Argv: []string{exe}, Env: env}, 30*time.Second))
		if out.State != dts.AttemptSuccess {
			t.Fatalf("%+v %q", out, text(out))
		}
		return out
	}
	if out := run(map[string]string{"TEST_HELPER": "spin"}); out.CPU < 90*time.Millisecond || out.CPU > 5*time.Second {
		t.Errorf("CPU %s, want about 100ms", out.CPU)
	}
	if out := run(map[string]string{"TEST_HELPER": "allocate", "TEST_MB": "200"}); out.MaxRSSBytes < 200<<20 || out.MaxRSSBytes > 1<<30 { // the race detector doubles it
		t.Errorf("peak memory %d MiB, want about 200", out.MaxRSSBytes>>20)
	}
	// The server's own memory must not show as that of a small command.
	ballast := make([]byte, 64<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	out := r.Run(t.Context(), newJob(t, shell("sleep 0.05"), 10*time.Second))
	runtime.KeepAlive(ballast)
	if out.MaxRSSBytes > 32<<20 {
		t.Errorf("peak memory of sleep: %d MiB", out.MaxRSSBytes>>20)
	}
}

func TestUserSwitch(t *testing.T) {
	r := newRunner(t, Options{})
	if os.Getuid() != 0 {
		out := r.Run(t.Context(), newJob(t, dts.CommandTarget{Argv: []string{"id"}, User: "root"}, 10*time.Second))
		if out.State != dts.AttemptFailed || out.Retryable || !strings.Contains(out.Error, "only one that runs as root") {
			t.Errorf("%+v", out)
		}
		return
	}
	// The groups must be those that the system itself would give, and the server's must be gone.
	for _, name := range []string{"nobody", "daemon", "root"} {
		want, err := exec.Command("id", "-G", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		out := r.Run(t.Context(), newJob(t, dts.CommandTarget{Shell: "id -un; id -G; echo $USER $HOME; pwd", User: name}, 10*time.Second))
		who, err := user.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := "/"
		if info, err := os.Stat(who.HomeDir); err == nil && info.IsDir() {
			dir = who.HomeDir
		}
		if w := name + "\n" + string(want) + name + " " + who.HomeDir + "\n" + dir + "\n"; text(out) != w {
			t.Errorf("%s: %+v\n%q, want\n%q", name, out, text(out), w)
		}
	}
}

func TestPanicInStarted(t *testing.T) {
	r := newRunner(t, Options{})
	job := newJob(t, shell("sleep 60"), 20*time.Second)
	var pid int
	job.Started = func(p dts.Process) { pid = p.PGID; panic("boom") }
	out := r.Run(context.Background(), job)
	if out.State != dts.AttemptFailed || strings.Contains(out.Error, "boom") || alive(t, pid) {
		t.Errorf("%+v, command alive: %v", out, alive(t, pid))
	}
}
