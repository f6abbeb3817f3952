package clitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ciRun is a `dts ci` in directories of its own, with a mark by which its processes can be found.
type ciRun struct {
	*exec.Cmd
	dir    string
	mark   string
	stdout bytes.Buffer
}

// newCI makes the command that runs a file with this text.
func newCI(t testing.TB, text string, flags ...string) *ciRun {
	t.Helper()
	r := &ciRun{dir: t.TempDir(), mark: "DTS_TEST_MARK=" + t.Name() + time.Now().String()}
	for _, name := range []string{"home", "tmp", "work"} {
		if err := os.Mkdir(filepath.Join(r.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(r.dir, "file.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Cmd = exec.Command("dts", append([]string{"ci", file}, flags...)...)
	r.Dir = filepath.Join(r.dir, "work")
	r.Env = append(os.Environ(), "HOME="+filepath.Join(r.dir, "home"), "TMPDIR="+filepath.Join(r.dir, "tmp"), "XDG_DATA_HOME=", "XDG_RUNTIME_DIR=", r.mark)
	r.Stdout = &r.stdout
	return r
}

// code waits for the end and returns the exit code.
func (r *ciRun) code(t testing.TB) int {
	t.Helper()
	err := r.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return 0
}

// left lists what is left of the run: files, and processes by their environment.
func (r *ciRun) left(t testing.TB) (list []string) {
	t.Helper()
	for _, name := range []string{"home", "tmp"} {
		entries, err := os.ReadDir(filepath.Join(r.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, filepath.Join(name, e.Name()))
		}
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environs {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, []byte(r.mark)) {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			list = append(list, fmt.Sprintf("%s: %q", name, cmdline))
		}
	}
	return list
}

// stubborn is a file with a command that ends when it is asked to, one that does not, and one that has ended and left
// something in the background.
const stubborn = `
tasks:
  - {name: polite, command: "trap 'touch polite.ended; exit 0' TERM; touch polite.up; sleep 300 & wait"}
  - {name: stubborn, command: "trap '' TERM; touch stubborn.up; while :; do sleep 0.1; done"}
  - {name: daemon, command: "(trap '' TERM HUP; touch daemon.up; sleep 300) >/dev/null 2>&1 &"}
  - {name: after, command: "touch never", depends_on: [polite]}
`

func awaitStubborn(t *testing.T, r *ciRun) {
	t.Helper()
	waitFor(t, "the commands", func() bool {
		for _, name := range []string{"polite.up", "stubborn.up", "daemon.up"} {
			if _, err := os.Stat(filepath.Join(r.Dir, name)); err != nil {
				return false
			}
		}
		return true
	})
}

// TestCISignal stops `dts ci`: what runs is ended, the report is there, and nothing is left.
func TestCISignal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			r := newCI(t, stubborn, "--json", "--junit", "report.xml")
			if err := r.Start(); err != nil {
				t.Fatal(err)
			}
			defer r.Process.Kill()
			awaitStubborn(t, r)
			for range 2 { // as timeout(1) does: it signals its command, and then the process group
				if err := r.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond) // or they would be one
			}
			if code := r.code(t); code != 128+int(s) {
				t.Errorf("exit code %d, want %d", code, 128+int(s))
			}
			if list := r.left(t); len(list) > 0 {
				t.Errorf("left behind: %q", list)
			}
			var report struct {
				Result  string
				Stopped string
				Runs    []struct{ Name, Result, Reason string }
			}
			if err := json.Unmarshal(r.stdout.Bytes(), &report); err != nil {
				t.Fatalf("%v in %s", err, &r.stdout)
			}
			var got []string
			for _, run := range report.Runs {
				got = append(got, run.Name+" "+run.Result)
			}
			want := []string{"polite CANCELLED", "stubborn CANCELLED", "daemon PASSED", "after SKIPPED"}
			if !slices.Equal(got, want) || report.Result != "FAILED" || !strings.Contains(report.Stopped, "signal") {
				t.Errorf("%s, stopped %q: %q, want %q", report.Result, report.Stopped, got, want)
			}
			for name, want := range map[string]bool{"polite.ended": true, "never": false, "report.xml": true} {
				if _, err := os.Stat(filepath.Join(r.Dir, name)); (err == nil) != want {
					t.Errorf("%s: %v, want it there: %t", name, err, want)
				}
			}
		})
	}
}

// TestCISecondSignal: the second signal waits for nobody, and leaves nothing either.
func TestCISecondSignal(t *testing.T) {
	r := newCI(t, stubborn)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	defer r.Process.Kill()
	awaitStubborn(t, r)
	if err := r.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the polite command", func() bool {
		_, err := os.Stat(filepath.Join(r.Dir, "polite.ended"))
		return err == nil
	})
	began := time.Now()
	enough := signalAgain(r.Process)
	code := r.code(t)
	enough()
	if code != 143 || time.Since(began) > 4*time.Second {
		t.Errorf("exit code %d after %s, want 143 before the stubborn command is killed", code, time.Since(began))
	}
	if list := r.left(t); len(list) > 0 {
		t.Errorf("left behind: %q", list)
	}
}

// TestCIKilled: what a `dts ci` leaves that is killed the hard way, the next one removes; not what one has that lives.
func TestCIKilled(t *testing.T) {
	killed, lives := newCI(t, stubborn), newCI(t, stubborn)
	for _, r := range []*ciRun{killed, lives} {
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		defer r.Process.Kill()
		awaitStubborn(t, r)
		dirs, err := filepath.Glob(filepath.Join(r.dir, "tmp", "dts-ci-*"))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("%q, %v: want one directory", dirs, err)
		}
		if r == killed {
			r.Process.Kill()
			r.Wait()
		}
		hourAgo := time.Now().Add(-time.Hour)
		if err := os.Chtimes(dirs[0], hourAgo, hourAgo); err != nil {
			t.Fatal(err)
		}
		next := newCI(t, `tasks: [{name: one, command: ["true"]}]`)
		next.Env = append(next.Env, "TMPDIR="+filepath.Join(r.dir, "tmp"))
		if err := next.Start(); err != nil {
			t.Fatal(err)
		}
		if code := next.code(t); code != 0 {
			t.Errorf("the next: exit code %d", code)
		}
	}
	if list := killed.left(t); len(list) > 0 {
		t.Errorf("left behind: %q", list)
	}
	if list := lives.left(t); len(list) < 5 { // its directory, itself, and its commands
		t.Errorf("of the one that lives there is only %q", list)
	}
	if err := lives.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := lives.code(t); code != 143 {
		t.Errorf("the one that lives: exit code %d, want 143", code)
	}
	if list := lives.left(t); len(list) > 0 {
		t.Errorf("left behind: %q", list)
	}
}

// TestCIReaderGone: `dts ci … | head` ends what runs.
func TestCIReaderGone(t *testing.T) {
	r := newCI(t, `tasks: [{name: loud, command: "yes"}, {name: quiet, command: "sleep 300"}]`)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	r.Stdout, r.Stderr = write, &stderr
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	defer r.Process.Kill()
	write.Close()
	if n, err := read.Read(make([]byte, 100)); n == 0 {
		t.Fatal(err)
	}
	read.Close()
	if code := r.code(t); code != 125 || !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("exit code %d and %q, want 125 and why", code, &stderr)
	}
	if list := r.left(t); len(list) > 0 {
		t.Errorf("left behind: %q", list)
	}
}

// TestCIReaderStuck: a signal ends `dts ci` also where nobody reads what it prints, though not at once.
func TestCIReaderStuck(t *testing.T) {
	t.Parallel()
	r := newCI(t, `tasks: [{name: loud, command: "yes"}]`)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	r.Stdout, r.Stderr = write, write
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	defer r.Process.Kill()
	write.Close()
	if n, err := read.Read(make([]byte, 100)); n == 0 {
		t.Fatal(err)
	}
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(time.Minute, func() { r.Process.Kill() })
	defer limit.Stop()
	if code := r.code(t); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if list := r.left(t); len(list) > 0 {
		t.Errorf("left behind: %q", list)
	}
}

// TestCILosesNoLine: tasks that print a lot at once, more than is kept, lose nothing and do not mix their lines.
func TestCILosesNoLine(t *testing.T) {
	const tasks, each = 4, 40_000
	var text strings.Builder
	text.WriteString("tasks:\n")
	for i := range tasks {
		fmt.Fprintf(&text, "  - {name: t%d, command: \"seq -f 't%d says %%g' %d\"}\n", i, i, each)
	}
	r := newCI(t, text.String())
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	if code := r.code(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	next := map[string]int{}
	for line := range strings.Lines(r.stdout.String()) {
		name, said, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		if !ok {
			continue // the summary
		}
		next[name]++
		if want := fmt.Sprintf("%s says %d", name, next[name]); said != want {
			t.Fatalf("%q, want %q", line, want)
		}
	}
	for i := range tasks {
		if n := next[fmt.Sprintf("t%d", i)]; n != each {
			t.Errorf("t%d: %d lines, want %d", i, n, each)
		}
	}
	if list := r.left(t); len(list) > 0 {
		t.Errorf("left behind: %q", list)
	}
}

// BenchmarkCI is one `dts ci` with one task that does nothing, from the start of the process to its end.
func BenchmarkCI(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		r := newCI(b, `tasks: [{name: one, command: ["true"]}]`)
		b.StartTimer()
		began := time.Now()
		if err := r.Run(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
