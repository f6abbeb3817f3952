//go:build linux || darwin

package sqlite

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets a test start this binary again as another process.
func TestMain(m *testing.M) {
	switch os.Getenv("SQLITE_TEST_CHILD") {
	case "lock":
		childLock()
	case "write":
		childWrite()
	default:
		os.Exit(m.Run())
	}
}

// child starts this binary as a role on dir, and returns it with a reader of what it prints.
func child(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SQLITE_TEST_CHILD="+role, "SQLITE_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func childLock() {
	if _, err := LockDir(os.Getenv("SQLITE_TEST_DIR")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	select {}
}

func TestLockDir(t *testing.T) {
	dir := t.TempDir()
	l, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockDir(dir)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("second lock: %v, want ErrLocked with our pid", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd, out := child(t, "lock", dir)
	if !out.Scan() || out.Text() != "locked" {
		t.Fatalf("the child says %q", out.Text())
	}
	_, err = LockDir(dir)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", cmd.Process.Pid)) {
		t.Errorf("lock held by the child: %v, want its pid", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	l, err = LockDir(dir)
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	l.Close()
	if _, err := LockDir(dir + "/missing"); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("missing directory: %v", err)
	}
}
