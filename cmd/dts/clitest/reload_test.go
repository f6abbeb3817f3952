package clitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// syncBuffer takes what a process logs while it is read.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestReload changes the configuration file of a server that runs: by signal and by command, rightly and wrongly. Meanwhile
// the heartbeat is watched, which ends when the server stands still.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dts.toml")
	env := append(os.Environ(), "DTS_DATA="+filepath.Join(dir, "data"), "DTS_CONFIG="+file)
	command := func(args ...string) *exec.Cmd {
		c := exec.Command("dts", args...)
		c.Env = env
		return c
	}
	write := func(format string, args ...any) {
		t.Helper()
		if err := os.WriteFile(file, fmt.Appendf(nil, format, args...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var pings atomic.Int64
	watcher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ping/secret" {
			t.Errorf("a heartbeat at %s", r.URL)
		}
		pings.Add(1)
	}))
	defer watcher.Close()
	write("heartbeat_url = %q\nheartbeat_every = '1s'\n", watcher.URL+"/ping/secret")

	var log syncBuffer
	server := command("serve", "--listen", "none", "--quiet", "--drain", "0s")
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	waitFor(t, "heartbeats", func() bool { return pings.Load() >= 2 })

	// It stands still: nobody is told that it is well.
	if err := server.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // one may be on its way
	before := pings.Load()
	time.Sleep(2500 * time.Millisecond)
	if n := pings.Load(); n != before {
		t.Errorf("%d heartbeats of a server that stands still", n-before)
	}
	if err := server.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "heartbeats again", func() bool { return pings.Load() > before })

	// A signal: what can change does, the rest is named.
	write("log_level = 'debug'\nlisten = 'localhost:1'\nkeep = '7d'\ncpu_budget = 1.5\n")
	if err := server.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`msg="a setting was changed" setting=log_level from=info to=debug`,
		`msg="a setting was changed" setting=keep from=30d to=7d`,
		`msg="a setting was changed" setting=heartbeat_url from=` + watcher.URL + `/… to=none`,
		`msg="a setting has changed that needs a restart" setting=cpu_budget`,
	} {
		waitFor(t, line, func() bool { return strings.Contains(log.String(), line) })
	}
	if strings.Contains(log.String(), "setting=listen") {
		t.Error("a flag comes before the file")
	}
	out, err := command("retention").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "kept for 7d") {
		t.Errorf("%s %v", out, err)
	}

	// A file with a mistake changes nothing, by either way.
	write("log_level = 'warn'\nkeep = 'long'\n")
	if err := server.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the refusal", func() bool {
		return strings.Contains(log.String(), `level=ERROR msg="the settings were read again and are wrong: nothing was changed" err="--keep: \"long\" is not a duration`)
	})
	reload := command("reload")
	out, _ = reload.CombinedOutput()
	if code := reload.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), `"long" is not a duration; write it like 30s, 5m, 1h30m or 2d; nothing was changed`) {
		t.Errorf("code %d: %s", code, out)
	}
	write("= nonsense")
	if out, err := command("reload").CombinedOutput(); err == nil || !strings.Contains(string(out), "dts.toml:1: ") {
		t.Errorf("%s", out)
	}

	// What still needs a restart is named each time.
	write("keep = '7d'\ncpu_budget = 1.5\n")
	if out, err := command("reload").CombinedOutput(); err != nil || !strings.Contains(string(out), "log_level   changed          debug  info") ||
		!strings.Contains(string(out), "cpu_budget  needs a restart") || strings.Contains(string(out), "keep") {
		t.Errorf("%s %v", out, err)
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the heartbeat's URL is in the log")
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}
