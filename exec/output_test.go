package exec

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync"
	"testing"
	"time"

	"dts"
)

// follower is what a run prints, as it comes. Once it is full it takes nothing more until the process has exited.
type follower struct {
	mu     sync.Mutex
	room   *sync.Cond
	text   bytes.Buffer
	limit  int
	exited bool
}

func newFollower(limit int) *follower {
	f := &follower{limit: limit}
	f.room = sync.NewCond(&f.mu)
	return f
}

func (f *follower) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.text.Len() > f.limit && !f.exited {
		f.room.Wait()
	}
	return f.text.Write(p)
}

func (f *follower) exit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exited = true
	f.room.Broadcast()
}

// TestOutputAsItComes: who follows a run gets all of it, more than is kept, also what the process left in the pipe.
func TestOutputAsItComes(t *testing.T) {
	r := newRunner(t, Options{WaitDelay: 300 * time.Millisecond})
	for _, lines := range []int{0, 1, 100_000} {
		f := newFollower(1 << 30)
		job := newJob(t, shell(fmt.Sprintf("seq %d; echo end >&2", lines)), 20*time.Second)
		job.Output, job.Exited = f, f.exit
		out := r.Run(t.Context(), job)
		var want strings.Builder
		for i := range lines {
			fmt.Fprintln(&want, i+1)
		}
		want.WriteString("end\n")
		if f.text.String() != want.String() || out.Output.Total != int64(want.Len()) || !f.exited {
			t.Errorf("%d lines: %d bytes came and %d count, want %d; exited: %t", lines, f.text.Len(), out.Output.Total, want.Len(), f.exited)
		}
	}
	// Held up until the process has exited: what is in the pipe then is not lost.
	f := newFollower(0)
	job := newJob(t, shell("echo one; sleep 0.1; seq 1000; sleep 0.5"), 20*time.Second)
	job.Output, job.Exited = f, f.exit
	r.Run(t.Context(), job)
	if n := strings.Count(f.text.String(), "\n"); n != 1001 {
		t.Errorf("%d lines came, want 1001", n)
	}
	f = newFollower(1 << 30)
	job = newJob(t, dts.CommandTarget{Argv: []string{"no-such-program-x"}}, time.Second)
	job.Output, job.Exited = f, f.exit
	if out := r.Run(t.Context(), job); out.State != dts.AttemptFailed || f.exited {
		t.Errorf("%+v; exited: %t, although nothing ran", out, f.exited)
	}
}

// TestInheritedEnvironment: commands start from what the options say; the task's own variables and those of the run win.
func TestInheritedEnvironment(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=/somewhere", "FRUIT=apple", "ANIMAL=cat", "DTS_ATTEMPT=99"}, Dir: dir})
	script := `echo $FRUIT $ANIMAL $HOME $DTS_ATTEMPT "${LANG-none}"; pwd`
	out := r.Run(t.Context(), newJob(t, dts.CommandTarget{Shell: script, Env: map[string]string{"ANIMAL": "dog"}}, 20*time.Second))
	if got, want := string(out.Output.Head), "apple dog /somewhere 1 none\n"+dir+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out = r.Run(t.Context(), newJob(t, dts.CommandTarget{Argv: []string{"pwd"}, Dir: "/usr"}, 20*time.Second))
	if got := string(out.Output.Head); got != "/usr\n" {
		t.Errorf("in %q, want the task's own directory", got)
	}
	if os.Geteuid() != 0 {
		t.Log("NOT TESTED: what another user's commands start from, because only root can switch users")
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	out = r.Run(t.Context(), newJob(t, dts.CommandTarget{Shell: "echo $FRUIT $USER $HOME", User: "nobody", Dir: "/"}, 20*time.Second))
	if got, want := string(out.Output.Head), "apple nobody "+nobody.HomeDir+"\n"; got != want {
		t.Errorf("as nobody %q, want %q", got, want)
	}
}
