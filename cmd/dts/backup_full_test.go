package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dts/web/api"
)

// TestBackupFull: where a backup does not fit, on the disk that it goes to or on the server's own, it is refused and
// leaves nothing, and the server works on.
func TestBackupFull(t *testing.T) {
	small := t.TempDir()
	if err := mountSmall(t, small, "1m"); err != nil {
		t.Skipf("NO FULL DISK IS TESTED: %v", err)
	}
	tight := t.TempDir() // room for the database, its log and a copy, and for no more
	if err := mountSmall(t, tight, "40m"); err != nil {
		t.Fatal(err)
	}
	b := &backupRounds{bin: buildDTS(t)}
	b.server = newServer(t, b.bin, filepath.Join(tight, "data"))
	b.server.start()
	list := make([]api.TaskRequest, 4000)
	for i := range list {
		list[i].Spec = httpSpec("http://target.test/" + strings.Repeat("x", 1000))
		list[i].Delay = "1h"
	}
	if _, err := b.server.api.CreateTasks(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if out, err := b.dts("backup", filepath.Join(small, "x.db"), "--data", b.server.data); err == nil || !strings.Contains(out, "the backup needs") || !strings.Contains(out, small) {
		t.Errorf("to a disk that is too small: %v, %s", err, out)
	}
	if left, _ := filepath.Glob(small + "/*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if err := os.WriteFile(filepath.Join(tight, "ballast"), make([]byte, 8<<20), 0o600); err != nil {
		t.Logf("the disk is full: %v", err)
	}
	to := filepath.Join(t.TempDir(), "x.db")
	if out, err := b.dts("backup", to, "--data", b.server.data); err == nil || !strings.Contains(out, "the backup needs") || !strings.Contains(out, b.server.data) || !strings.Contains(out, "dts add --backup DIR") {
		t.Errorf("from a server without room: %v, %s", err, out)
	}
	os.Remove(filepath.Join(tight, "ballast"))
	if out, err := b.dts("add", "--data", b.server.data, "--in", "1h", "--", "true"); err != nil {
		t.Errorf("the server takes nothing more: %s", out)
	}
	left, _ := filepath.Glob(filepath.Dir(to) + "/*")
	more, _ := filepath.Glob(b.server.data + "/*.tmp")
	if len(left)+len(more) > 0 {
		t.Errorf("left over: %v, %v", left, more)
	}
}
