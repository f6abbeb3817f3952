package main_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // reads the database that a server has left

	"dts/web/client"
)

// buildDTS builds the program as it is released, but for the tags, and returns its path.
func buildDTS(t *testing.T, tags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "dts")
	cmd := exec.Command("go", "build", "-tags", strings.Join(tags, ","), "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// testServer runs the real program on one data directory, again and again.
type testServer struct {
	t       *testing.T
	bin     string
	data    string
	listen  string   // TCP address
	args    []string // more arguments of dts serve
	home    string
	logPath string // what all its processes wrote to standard error

	failpoint string               // DTS_FAILPOINT of the next process
	wrapper   []string             // the command that starts the next process, and becomes it
	attr      *syscall.SysProcAttr // how the next process is started, where not as usual

	api     *client.Client
	started time.Time // when the newest process was started
	process *os.Process
	exited  chan struct{} // closed when that process has ended
	state   *os.ProcessState
}

// newServer prepares a server; nothing runs yet. When the test ends, what is left of it is killed, its commands
// included, and if the test failed its log is shown.
func newServer(t *testing.T, bin, data string, args ...string) *testServer {
	t.Helper()
	s := &testServer{t: t, bin: bin, data: data, listen: "127.0.0.1:0", args: args, home: t.TempDir(), logPath: filepath.Join(t.TempDir(), "serve.log")}
	api, err := client.New(client.Options{Socket: filepath.Join(data, "dts.sock"), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s.api = api
	t.Cleanup(func() {
		api.Close()
		if s.process != nil {
			s.kill()
		}
		for _, p := range s.processes() {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
		if log := s.log(); t.Failed() {
			t.Logf("the end of the server's log:\n%s", log[max(0, len(log)-8000):])
		}
	})
	return s
}

// launch starts a process.
func (s *testServer) launch() {
	s.t.Helper()
	log, err := os.OpenFile(s.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := s.command(s.wrapper...)
	cmd.Stderr, cmd.SysProcAttr = log, s.attr
	s.started = time.Now()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	s.process, s.exited = cmd.Process, exited
	go func() {
		cmd.Wait()
		s.state = cmd.ProcessState
		close(exited)
	}()
}

// command is dts serve, after a wrapper that becomes it.
func (s *testServer) command(wrapper ...string) *exec.Cmd {
	argv := append(slices.Clone(wrapper), s.bin, "serve", "--data", s.data, "--listen", s.listen, "--quiet")
	argv = append(argv, s.args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home}
	if s.failpoint != "" {
		cmd.Env = append(cmd.Env, "DTS_FAILPOINT="+s.failpoint)
	}
	return cmd
}

// second tries to start another server on the same data directory, and returns what it said and its exit code.
func (s *testServer) second() (string, int) {
	s.t.Helper()
	cmd := s.command()
	timer := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// start launches a process and returns when it is ready.
func (s *testServer) start() {
	s.t.Helper()
	s.launch()
	s.awaitReady()
}

func (s *testServer) awaitReady() {
	s.t.Helper()
	if !s.readyOrDead(20 * time.Second) {
		s.t.Fatalf("the server ended at its start: %s\n%s", s.state, s.log())
	}
}

// readyOrDead waits until the process is ready, and returns true, or has ended.
func (s *testServer) readyOrDead(limit time.Duration) (ready bool) {
	s.t.Helper()
	s.eventually(limit, "the server to be ready", func() bool {
		select {
		case <-s.exited:
			return true
		default:
		}
		r, err := s.api.Ready(s.t.Context())
		ready = err == nil && r.Ready
		return ready
	})
	return ready
}

// kill is kill -9.
func (s *testServer) kill() {
	s.process.Kill()
	<-s.exited
}

// stop sends SIGTERM and returns the exit code.
func (s *testServer) stop(limit time.Duration) int {
	s.t.Helper()
	s.process.Signal(syscall.SIGTERM)
	return s.exitCode(limit)
}

// exitCode waits for the end of the process.
func (s *testServer) exitCode(limit time.Duration) int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(limit):
		s.t.Fatalf("the server did not end within %s", limit)
	}
	return s.state.ExitCode()
}

// eventually polls until ok, and fails the test after limit.
func (s *testServer) eventually(limit time.Duration, what string, ok func() bool) {
	s.t.Helper()
	eventually(s.t, limit, what, ok)
}

func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain for %s", limit, what)
		}
	}
}

// client is how to talk to it.
func (s *testServer) client() *client.Client { return s.api }

func (s *testServer) log() string {
	b, err := os.ReadFile(s.logPath)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// copyDatabase copies the database as the ended process left it, its WAL included, so that looking at it does not
// change what the next process finds. remove removes the copy.
func (s *testServer) copyDatabase() (path string, remove func()) {
	s.t.Helper()
	dir, err := os.MkdirTemp(s.home, "copy")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"dts.db", "dts.db-wal"} {
		b, err := os.ReadFile(filepath.Join(s.data, name))
		if errors.Is(err, fs.ErrNotExist) && name != "dts.db" {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return filepath.Join(dir, "dts.db"), func() { os.RemoveAll(dir) }
}

// openCopy opens such a copy. remove closes it too.
func (s *testServer) openCopy() (db *sql.DB, remove func()) {
	s.t.Helper()
	path, removeFiles := s.copyDatabase()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		s.t.Fatal(err)
	}
	return db, func() { db.Close(); removeFiles() }
}

// database is a copy that lives as long as the test.
func (s *testServer) database() *sql.DB {
	s.t.Helper()
	db, remove := s.openCopy()
	s.t.Cleanup(remove)
	return db
}

// queryAll reads all rows; scan reads one.
func queryAll(t *testing.T, db *sql.DB, query string, scan func(rows *sql.Rows) error) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// checkIntegrity runs SQLite's own check.
func checkIntegrity(t *testing.T, db *sql.DB) {
	t.Helper()
	var said string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Errorf("PRAGMA integrity_check says %q, %v", said, err)
	}
}

// run names an attempt.
type run struct {
	task    string
	attempt int
}

// markedProcess is a process that a command of this data directory is or has started.
type markedProcess struct {
	pid   int
	start string // when it started; with pid it names the process
	run   run
}

// processes finds the processes by the mark in their environment. Where there is no /proc it finds none.
func (s *testServer) processes() []markedProcess {
	id, err := os.ReadFile(filepath.Join(s.data, "node-id"))
	if err != nil {
		return nil
	}
	prefix := []byte("DTS_RUN=" + strings.TrimSpace(string(id)) + "/")
	names, _ := filepath.Glob("/proc/[0-9]*")
	var list []markedProcess
	for _, dir := range names {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			continue
		}
		for entry := range bytes.SplitSeq(environ, []byte{0}) {
			rest, ok := bytes.CutPrefix(entry, prefix)
			if !ok {
				continue
			}
			stat, err := os.ReadFile(filepath.Join(dir, "stat"))
			if err != nil {
				break
			}
			f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // f[0] is the state, field 3 of proc_pid_stat(5)
			task, number, _ := strings.Cut(string(rest), "/")
			attempt, err := strconv.Atoi(number)
			if pid, err2 := strconv.Atoi(filepath.Base(dir)); err == nil && err2 == nil && f[0] != "Z" && f[0] != "X" {
				list = append(list, markedProcess{pid, f[19], run{task, attempt}})
			}
		}
	}
	return list
}

// residentBytes is the memory of the process that a field of /proc/PID/status tells: VmRSS, or VmHWM for the peak.
func (s *testServer) residentBytes(field string) int64 {
	s.t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.process.Pid) + "/status")
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n"+field+":")
	value, _, _ := strings.Cut(rest, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n << 10
}

// runLog is a file to which commands append what they do, and the test when servers start.
type runLog struct {
	path   string
	script string
}

// runScript appends "start TASK ATTEMPT PID NANOSECONDS", sleeps, and appends the same with "end". Its arguments are the
// log, how long to sleep and which process to leave in the background: none, child or session, one that has
// left the process group.
const runScript = `#!/bin/sh
echo "start $DTS_TASK_ID $DTS_ATTEMPT $$ $(date +%s%N)" >>"$1"
case $3 in
child) sleep 300 >/dev/null 2>&1 & ;;
session) setsid sleep 300 >/dev/null 2>&1 & ;;
esac
sleep "$2"
echo "end $DTS_TASK_ID $DTS_ATTEMPT $$ $(date +%s%N)" >>"$1"
`

func newRunLog(t *testing.T) *runLog {
	t.Helper()
	dir := t.TempDir()
	l := &runLog{path: filepath.Join(dir, "runs.log"), script: filepath.Join(dir, "run.sh")}
	if err := errors.Join(os.WriteFile(l.script, []byte(runScript), 0o700), os.WriteFile(l.path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return l
}

// argv is a command that logs its run.
func (l *runLog) argv(seconds, leave string) []string {
	return []string{"/bin/sh", l.script, l.path, seconds, leave}
}

// launched notes that a server process starts now, and returns that moment: what follows was run by it.
func (l *runLog) launched(t *testing.T) time.Time {
	t.Helper()
	at := time.Now().Round(0)
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintln(f, "launch", at.UnixNano())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// runLine is a line of a runLog.
type runLine struct {
	event string // start, end or launch
	run   run
	pid   int
	at    time.Time
	text  string
}

func (l *runLog) read(t *testing.T) []runLine {
	t.Helper()
	b, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	var list []runLine
	var launch time.Time
	for text := range strings.Lines(string(b)) {
		text = strings.TrimSuffix(text, "\n")
		f := strings.Fields(text)
		line := runLine{event: f[0], text: text, at: launch}
		if nanos, err := strconv.ParseInt(f[len(f)-1], 10, 64); err == nil {
			line.at = time.Unix(0, nanos) // not every system's date knows nanoseconds
		}
		if f[0] == "launch" {
			launch = line.at
		} else {
			if len(f) != 5 {
				t.Fatalf("the commands' log has a broken line %q", text)
			}
			line.run.task = f[1]
			line.run.attempt, _ = strconv.Atoi(f[2])
			line.pid, _ = strconv.Atoi(f[3])
		}
		list = append(list, line)
	}
	return list
}
