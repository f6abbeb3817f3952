package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"dts"
)

// TestCrashIO makes system calls on the database's files fail, by strace, while the server works or starts: it
// either answers with an error and goes on, or stops, and nothing that it acknowledged is lost. The settings are
// those of TestCrash; there are a sixth as many rounds, because strace is slow.
func TestCrashIO(t *testing.T) {
	const per = 6
	needStrace(t)
	rounds, seed := crashSettings(t, 3*per)
	runEpochs(t, epochOptions{
		bin: buildDTS(t), seed: seed, rounds: max(rounds/per, 1), per: per, faults: true, ways: []wayWeight{{faultRun, 3}, {faultBoot, 1}},
	})
}

func needStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("DISK ERRORS ARE NOT TESTED: there is no strace command")
	}
	if err := exec.Command("strace", "-o", os.DevNull, "true").Run(); err != nil {
		t.Skipf("DISK ERRORS ARE NOT TESTED: strace does not work here: %v", err)
	}
}

// TestCrashRefused makes the fsync of a commit fail on an idle server, and kills that as soon as the request is
// refused: its pages lie in the log, whole, and nothing has overwritten them since. The next server must not
// take them for a commit. (A refusal may also say that the outcome is unknown; then either is right.)
func TestCrashRefused(t *testing.T) {
	needStrace(t)
	s := newServer(t, buildDTS(t), filepath.Join(t.TempDir(), "data"))
	tg := newTarget(t, 1)
	l := newLoad(t, s.client, tg, newRunLog(t))
	l.mayFail.Store(true)
	s.start()
	for try := 0; len(l.refused) < 5; try++ {
		if try == 20 {
			t.Fatalf("only %d of %d requests were refused for good", len(l.refused), try)
		}
		f := fault{calls: "fsync,fdatasync", errno: "EIO", first: 1}
		tracer := exec.Command("strace", append(f.strace(s.data, s.traceLog()), "-p", strconv.Itoa(s.process.Pid))...)
		if err := tracer.Start(); err != nil {
			t.Fatal(err)
		}
		s.eventually(10*time.Second, "strace to hold every thread", s.traced)
		q := l.plain()
		q.Delay = "1h"
		l.trySend(q)
		s.kill()
		tracer.Process.Kill()
		tracer.Wait()
		s.start()
	}
	for task, err := range s.api.AllTasks(t.Context(), dts.TaskFilter{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		if refusal := l.refused[task.Name]; refusal != nil {
			t.Errorf("task %s is there, and its creation was refused with %q", task.ID, refusal)
		}
	}
}

// traced reports whether every thread of the server is traced.
func (s *testServer) traced() bool {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(s.process.Pid) + "/task/*/status")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte("TracerPid:\t0\n")) {
			return false
		}
	}
	return true
}

// fault is which calls on the database's files fail, and how.
type fault struct {
	calls, errno string
	first, step  int // the first call of a thread that fails, and each step-th after it; 0: only the first
	lasts        time.Duration
}

// newFault draws a fault. modernc's SQLite uses pwrite64 and fsync; the others are named so that the test goes on
// to mean something if that changes.
func newFault(rng *rand.Rand) fault {
	calls := []string{"fsync,fdatasync", "pwrite64,write", "fsync,fdatasync,pwrite64,write", "ftruncate,pwrite64,write"}
	return fault{
		calls: calls[rng.IntN(len(calls))], errno: []string{"EIO", "ENOSPC"}[rng.IntN(2)],
		first: 1 + rng.IntN(30), step: rng.IntN(8), lasts: time.Duration(300+rng.IntN(900)) * time.Millisecond,
	}
}

func (f fault) String() string {
	when := strconv.Itoa(f.first)
	if f.step > 0 {
		when += "+" + strconv.Itoa(f.step)
	}
	return f.calls + ":error=" + f.errno + ":when=" + when
}

// strace is its arguments, before -p or a command. What it traces it writes to the file log.
func (f fault) strace(data, log string) []string {
	list := []string{"-f", "-q", "-o", log, "-e", "trace=" + f.calls, "-e", "inject=" + f.String()}
	for _, name := range []string{"dts.db", "dts.db-wal", "dts.db-shm", "dts.db.running"} {
		list = append(list, "-P", filepath.Join(data, name))
	}
	return list
}

// injectFault makes calls fail for a while. Then the server is killed: nothing of what it has just refused may come
// back from the log. Or the calls succeed again, and a server that has not ended by then must go on.
func (c *crash) injectFault(r round) (what string) {
	s := c.server
	c.load.mayFail.Store(true)
	tracer := exec.Command("strace", append(r.fault.strace(s.data, s.traceLog()), "-p", strconv.Itoa(s.process.Pid))...)
	if err := tracer.Start(); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(r.fault.lasts):
	}
	died := false
	select {
	case <-s.exited:
		died = true
	default:
		if !r.mercy {
			c.server.kill()
		}
	}
	// Told to end, strace lets go of the server; when it is slow to, the kernel does so at its death.
	tracer.Process.Signal(syscall.SIGINT)
	slow := time.AfterFunc(time.Second, func() { tracer.Process.Kill() })
	tracer.Wait()
	slow.Stop()
	what = c.injected(r.fault)
	switch {
	case !r.mercy && !died:
		c.bury()
		return what + ", killed"
	case died || !c.awaitWrite():
		c.bury()
		return what + ", it stopped: " + s.state.String()
	}
	time.Sleep(100 * time.Millisecond)
	c.kill()
	return what + ", it went on"
}

// bootWithFault starts a server whose calls fail from the beginning, and kills it.
func (c *crash) bootWithFault(r round) (what string) {
	s := c.server
	// With -D strace is not the server's parent; the filter keeps it from stopping at every call.
	s.wrapper = append([]string{"strace", "-D", "--seccomp-bpf"}, r.fault.strace(s.data, s.traceLog())...)
	c.launch("")
	s.wrapper = nil
	if s.readyOrDead(30 * time.Second) {
		stop := c.work(r)
		time.Sleep(r.fault.lasts)
		c.kill()
		stop()
		return c.injected(r.fault) + ", it started"
	}
	c.bury()
	return c.injected(r.fault) + ", it did not start: " + s.state.String()
}

func (s *testServer) traceLog() string { return filepath.Join(s.home, "strace.log") }

// injected tells what strace has made fail.
func (c *crash) injected(f fault) string {
	b, err := os.ReadFile(c.server.traceLog())
	if err != nil {
		c.t.Fatal(err)
	}
	n := bytes.Count(b, []byte("(INJECTED)"))
	c.counts["failed calls"] += n
	return fmt.Sprintf("%s, %d failed", f, n)
}
