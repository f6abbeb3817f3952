package clitest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: what a program draws on it is in shown.
type terminal struct {
	user, program *os.File
	fd            int // of user, which Fd would make one whose Close waits for a Read
	mu            sync.Mutex
	drawn         bytes.Buffer
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	user := os.NewFile(uintptr(fd), "/dev/ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &terminal{user: user, program: program, fd: fd}
	t.Cleanup(func() { user.Close(); program.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := user.Read(b)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.drawn.Write(b[:n])
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *terminal) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drawn.String()
}

func (p *terminal) resize(t *testing.T, columns, rows uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(p.fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
}

func (p *terminal) modes(t *testing.T) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(p.program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

// TestWatch looks at a live screen: it shows what runs, follows the size of the terminal and the fate of the server, and
// leaves the terminal as it was, however it ends.
func TestWatch(t *testing.T) {
	env := append(os.Environ(), "DTS_DATA="+filepath.Join(t.TempDir(), "data"), "DTS_CONFIG="+os.DevNull, "TERM=xterm", "NO_COLOR=1")
	command := func(args ...string) *exec.Cmd {
		c := exec.Command("dts", args...)
		c.Env = env
		return c
	}
	server := command("serve", "--listen", "none", "--quiet", "--drain", "0s")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	waitFor(t, "the server", func() bool { return command("status").Run() == nil })
	if out, err := command("add", "--name", "long", "--", "sleep", "300").CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	for _, end := range []string{"q", "\x03", "signal"} {
		p := openTerminal(t)
		p.resize(t, 80, 24)
		before := p.modes(t)
		screen := command("status", "--watch", "--every", "200ms")
		screen.Stdin, screen.Stdout, screen.Stderr = p.program, p.program, p.program
		screen.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := screen.Start(); err != nil {
			t.Fatal(err)
		}
		defer screen.Process.Kill()
		waitFor(t, "the running task", func() bool { return strings.Contains(p.shown(), "long  default") })
		if p.modes(t) == before {
			t.Error("the keys are not read one by one")
		}
		p.resize(t, 30, 5)
		waitFor(t, "the smaller screen", func() bool {
			all := p.shown()
			return strings.Count(all[strings.LastIndex(all, "\x1b[H"):], "\r\n") == 4
		})
		if end == "signal" {
			p.resize(t, 100, 24)
			if err := server.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "word that it hangs", func() bool { return strings.Contains(p.shown(), "does not answer within 3 s") })
			if err := server.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "its recovery", func() bool {
				all := p.shown()
				return strings.Contains(all[strings.LastIndex(all, "\x1b[H"):], "  ready  up")
			})
			if err := screen.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		} else if _, err := p.user.WriteString(end); err != nil {
			t.Fatal(err)
		}
		if err := screen.Wait(); (err != nil) != (end == "signal") {
			t.Errorf("it ends with %v after %q", err, end)
		}
		if p.modes(t) != before {
			t.Errorf("the terminal is not as it was after %q", end)
		}
		waitFor(t, "the screen of before", func() bool { return strings.HasSuffix(p.shown(), "\x1b[?25h\x1b[?1049l") })
	}
}

// TestStatusOfStopped asks a server that stands still how it is: the answer is that there is none, soon.
func TestStatusOfStopped(t *testing.T) {
	env := append(os.Environ(), "DTS_DATA="+filepath.Join(t.TempDir(), "data"), "DTS_CONFIG="+os.DevNull)
	server := exec.Command("dts", "serve", "--listen", "none", "--quiet")
	server.Env = env
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	status := func() (string, int) {
		c := exec.Command("dts", "status")
		c.Env = env
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
	waitFor(t, "the server", func() bool { _, code := status(); return code == 0 })
	if err := server.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, code := status()
	if took := time.Since(began); code != 3 || !strings.Contains(out, "does not answer within 3 s") || took > 6*time.Second {
		t.Errorf("code %d after %s: %s", code, took, out)
	}
}

// TestTerminalGone closes the terminal in which a server runs: the signal that tells of it ends the server, and does not make
// it read its settings.
func TestTerminalGone(t *testing.T) {
	dir := t.TempDir()
	env := append(os.Environ(), "DTS_DATA="+filepath.Join(dir, "data"), "DTS_CONFIG="+os.DevNull)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p := openTerminal(t)
	server := exec.Command("dts", "serve", "--listen", "none", "--quiet")
	server.Env, server.Stdin, server.Stdout, server.Stderr = env, p.program, p.program, log
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	waitFor(t, "the server", func() bool {
		c := exec.Command("dts", "status")
		c.Env = env
		return c.Run() == nil
	})
	// Here it is still there: as with kill -HUP.
	read := func(line string) func() bool {
		return func() bool {
			b, err := os.ReadFile(log.Name())
			return err == nil && strings.Contains(string(b), line)
		}
	}
	if err := server.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the settings", read("nothing has changed"))
	p.program.Close()
	p.hangUp()
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		if err != nil || !read("stopping: the terminal is gone")() {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on without its terminal")
	}
}

// hangUp closes the user's side, as a terminal does whose window is closed.
func (p *terminal) hangUp() { p.user.Close() }
