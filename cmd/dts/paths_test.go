package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestSharedDir: who has no data directory means the machine's server, if they can see its socket.
func TestSharedDir(t *testing.T) {
	dir, err := os.MkdirTemp("", "dts") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	own, machine := filepath.Join(dir, "own"), filepath.Join(dir, "machine")
	if err := os.Mkdir(machine, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := sharedDir(own, machine); got != own {
		t.Errorf("without a socket: %s", got)
	}
	l, err := net.Listen("unix", socketPath(machine))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := sharedDir(own, machine); got != machine {
		t.Errorf("with a socket: %s", got)
	}
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := sharedDir(own, machine); got != own {
		t.Errorf("with a data directory of their own: %s", got)
	}
}
