package clitest

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSecondSignal stops a server that waits for a run: the first signal drains, the second ends it at once.
func TestSecondSignal(t *testing.T) {
	dts, err := exec.LookPath("dts")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := append(os.Environ(), "DTS_DATA="+filepath.Join(dir, "data"), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(dts, args...)
		c.Env = env
		return c
	}
	server := command("serve", "--listen", "none", "--drain", "10m", "--log-format", "json")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "is ready") {
		t.Fatalf("%q %v", line, err)
	}
	if out, err := command("add", "--name", "long", "--", "sleep", "300").CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	waitFor(t, "the run", func() bool {
		out, err := command("ls", "--status", "running").Output()
		return err == nil && strings.Contains(string(out), "long")
	})
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the drain", func() bool {
		out, err := command("status").Output()
		return err != nil || strings.Contains(string(out), "stopping")
	})
	started := time.Now()
	enough := signalAgain(server.Process)
	err = server.Wait()
	enough()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 143 || time.Since(started) > 5*time.Second {
		t.Errorf("after the second signal: %v in %s, want exit code 143 at once", err, time.Since(started))
	}
	// The next server kills the orphan.
	again := command("serve", "--listen", "none", "--quiet")
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	defer again.Process.Kill()
	waitFor(t, "the next server", func() bool { return command("status").Run() == nil })
	if out, err := command("cancel", "long").CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
	if err := again.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Errorf("the next server: %v", err)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// signalAgain sends SIGTERM until the process has ended or enough is called: within a second of the first signal another one
// counts as the same.
func signalAgain(p *os.Process) (enough func()) {
	ended := make(chan struct{})
	go func() {
		for p.Signal(syscall.SIGTERM) == nil {
			select {
			case <-ended:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { close(ended) }
}
