package clitest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCIFull runs `dts ci` where its store does not fit: it says so and ends, though a server would wait for room, and what
// it has started goes with it.
func TestCIFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("DTS CI ON A FULL DISK IS NOT TESTED: mounting a tmpfs needs root")
	}
	var text strings.Builder
	text.WriteString("tasks:\n  - {name: daemon, command: \"sleep 300 >/dev/null 2>&1 &\"}\n  - {name: long, command: \"sleep 300\"}\n")
	for i := range 40 {
		fmt.Fprintf(&text, "  - {name: t%d, command: \"seq 20000\"}\n", i)
	}
	r := newCI(t, text.String())
	tmp := filepath.Join(r.dir, "tmp")
	if err := syscall.Mount("tmpfs", tmp, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("DTS CI ON A FULL DISK IS NOT TESTED: mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(tmp, syscall.MNT_DETACH) })
	var stderr bytes.Buffer
	r.Stderr = &stderr
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	defer r.Process.Kill()
	limit := time.AfterFunc(time.Minute, func() { r.Process.Signal(syscall.SIGQUIT) })
	defer limit.Stop()
	if code := r.code(t); code != 125 || !strings.Contains(stderr.String(), "dts: keep results in "+tmp) || !strings.Contains(stderr.String(), "the disk is full") {
		t.Errorf("exit code %d and %q, want 125 and why", code, &stderr)
	}
	if list := r.left(t); len(list) > 0 {
		t.Errorf("left behind: %q", list)
	}
}
