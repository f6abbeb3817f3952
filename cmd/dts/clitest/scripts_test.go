package clitest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain builds the program and puts it first in PATH.
func TestMain(m *testing.M) { os.Exit(withProgram(m)) }

func withProgram(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dts-clitest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "dts"), "dts/cmd/dts")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build dts:", err)
		return 1
	}
	if err := openSources(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // what is caught here is not ignored there, also below nohup
	return m.Run()
}

// openSources opens the directories that the program is built from. The go tool sees that, and does not
// answer from its cache when something in them has changed.
func openSources() error {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", "dts/cmd/dts").Output()
	if err != nil {
		return fmt.Errorf("list the packages of dts: %w", err)
	}
	for dir := range strings.FieldsSeq(string(out)) {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// TestScripts runs the scripts that need no server.
func TestScripts(t *testing.T) { runScripts(t, "../../../testdata/cli/*.txt") }

// TestServerScripts runs the scripts that start `dts serve`, as a process of its own.
func TestServerScripts(t *testing.T) { runScripts(t, "../../../testdata/cli/server/*.txt") }

func runScripts(t *testing.T, glob string) {
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts %s: %v", glob, err)
	}
	testdata, err := filepath.Abs("../../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("DTS_DATA", filepath.Join(e.WorkDir, "data"))
			e.Setenv("DTS_CONFIG", filepath.Join(e.WorkDir, "dts.toml")) // the machine's own stays out of it
			e.Setenv("XDG_RUNTIME_DIR", e.WorkDir)
			e.Setenv("TZ", "Europe/Berlin")
			e.Setenv("TESTDATA", testdata)
			e.Setenv("CRONTABS", filepath.Join(testdata, "crontabs"))
			return os.WriteFile(filepath.Join(e.WorkDir, "dts.toml"), nil, 0o600)
		},
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("there is no condition %s", name)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"ready": ready, "post": post},
	})
}

// ready waits until the server of $DTS_DATA answers.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: ready")
	}
	deadline := time.Now().Add(30 * time.Second)
	for ts.Exec("dts", "status") != nil {
		if time.Now().After(deadline) {
			ts.Fatalf("no server answers within 30 s")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// post sends a file to the server of $DTS_DATA, as JSON and with the script's directory for @WORK@: post PATH FILE.
func post(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: post PATH FILE")
	}
	socket := filepath.Join(ts.Getenv("DTS_DATA"), "dts.sock")
	if _, err := os.Stat(socket); err != nil { // its path is too long for a socket
		found, _ := filepath.Glob(filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "*.sock"))
		if len(found) != 1 {
			ts.Fatalf("the server's socket is not there: %v", err)
		}
		socket = found[0]
	}
	c := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	answer, err := c.Post("http://localhost"+args[0], "application/json", strings.NewReader(strings.ReplaceAll(ts.ReadFile(args[1]), "@WORK@", ts.Getenv("WORK"))))
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if answer.StatusCode/100 != 2 {
		ts.Fatalf("POST %s: %s: %s", args[0], answer.Status, body)
	}
}
