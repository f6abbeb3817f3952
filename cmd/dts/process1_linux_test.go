package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dts"
	"dts/web/api"
)

// becomeInit starts a program as process 1 of a namespace of its own, as a container does.
var becomeInit = []string{"sh", "-c", `mount --make-rprivate / && mount -t proc proc /proc && exec "$@"`, "sh"}

func ownProcesses() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
}

// TestProcess1: as process 1 the program leaves no zombie of what its commands left behind, ends at SIGTERM as always, and
// has the exit code that it has elsewhere.
func TestProcess1(t *testing.T) {
	t.Parallel()
	try := exec.Command("sh", append(becomeInit[1:], "true")...)
	try.SysProcAttr = ownProcesses()
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("DTS AS PROCESS 1 IS NOT TESTED: only root can make namespaces: %v %s", err, out)
	}
	bin := buildDTS(t)
	s := newServer(t, bin, filepath.Join(t.TempDir(), "data"))
	s.wrapper, s.attr = becomeInit, ownProcesses()
	s.start()

	// Each command ends at once, and leaves a process that ends later.
	for i := range 5 {
		spec := commandSpec("sh", "-c", "sleep 0.3 >/dev/null 2>&1 & exit 0")
		spec.Name = fmt.Sprint("parent", i)
		s.runs(spec, dts.Success)
	}
	spec := commandSpec("sh", "-c", "sleep 60 & sleep 60 & wait") // is killed with all that it has started
	spec.TimeoutSeconds, spec.Retry.MaxAttempts = 1, 1
	s.runs(spec, dts.Failed)
	s.eventually(20*time.Second, "all that was left to process 1 to be reaped", func() bool { return len(childrenOf(t, s.process.Pid)) == 1 })

	if code := s.stop(20 * time.Second); code != 0 {
		t.Errorf("at SIGTERM it ends with code %d, want 0", code)
	}
	s.start()
	if err := syscall.Kill(childrenOf(t, s.process.Pid)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := s.exitCode(20 * time.Second); code != 128+int(syscall.SIGKILL) {
		t.Errorf("when the server is killed it ends with code %d, want 137", code)
	}
	s.args = []string{"--drain", "soon"}
	s.launch()
	if code := s.exitCode(20 * time.Second); code != 2 {
		t.Errorf("with a wrong flag it ends with code %d, want 2", code)
	}
}

// runs adds a task that runs now, and waits until it ends as it should.
func (s *testServer) runs(spec dts.Spec, want dts.Status) {
	s.t.Helper()
	created, err := s.api.CreateTask(s.t.Context(), api.TaskRequest{Spec: spec})
	if err != nil {
		s.t.Fatal(err)
	}
	s.eventually(30*time.Second, "a task to be "+string(want), func() bool {
		got, err := s.api.Task(s.t.Context(), created.Item.ID)
		return err == nil && got.Status == want
	})
}

// childrenOf returns the children of a process, zombies included.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // a thread that has ended
		}
		for _, f := range strings.Fields(string(b)) {
			child, err := strconv.Atoi(f)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			list = append(list, child)
		}
	}
	return list
}
