package clitest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realServer is `dts serve`, as a process of its own, and its log.
type realServer struct {
	t   *testing.T
	env []string
	cmd *exec.Cmd
	log syncBuffer
}

func (s *realServer) start(args ...string) {
	s.t.Helper()
	s.cmd = exec.Command("dts", append([]string{"serve", "--listen", "127.0.0.1:0", "--quiet", "--log-level", "debug"}, args...)...)
	s.cmd.Env, s.cmd.Stderr = s.env, &s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		check := exec.Command("dts", "status")
		check.Env = s.env
		if check.Run() == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no server answers within 30 s\n%s", s.log.String())
		}
	}
}

func (s *realServer) stop() {
	s.t.Helper()
	s.cmd.Process.Signal(os.Interrupt)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("the server: %v\n%s", err, s.log.String())
	}
}

// dts runs the program and reads what it prints into v.
func (s *realServer) dts(v any, args ...string) {
	s.t.Helper()
	cmd := exec.Command("dts", args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err == nil && v != nil {
		err = json.Unmarshal(out, v)
	}
	if err != nil {
		s.t.Fatalf("dts %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// newServer makes one with directories of its own.
func newServer(t *testing.T) *realServer {
	dir := t.TempDir()
	return &realServer{t: t, env: append(os.Environ(), "HOME="+dir, "DTS_DATA="+filepath.Join(dir, "data"), "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "TZ=UTC")}
}
