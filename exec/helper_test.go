package exec

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dts"
)

// TestMain checks that no goroutine outlives its test's runner, and serves as the command of tests that need
// a program which does something on purpose: the test binary runs itself with TEST_HELPER set.
func TestMain(m *testing.M) {
	if what := os.Getenv("TEST_HELPER"); what != "" {
		helper(what)
		return
	}
	goleak.VerifyTestMain(m)
}

func helper(what string) {
	switch what {
	case "allocate": // TEST_MB megabytes, touched
		mb, _ := strconv.Atoi(os.Getenv("TEST_MB"))
		b := make([]byte, mb<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		os.Stdout.WriteString("allocated\n")
	case "spin": // burns CPU time until it has used 100 ms
		var u syscall.Rusage
		for u.Utime.Usec < 100_000 && u.Utime.Sec == 0 {
			syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		}
	case "server": // a server that runs one command and is then killed
		r := New(Options{DataDirID: os.Getenv("TEST_DATA")})
		job := dts.Job{Task: &dts.Task{ID: os.Getenv("TEST_TASK"), Spec: dts.Spec{
			TargetType: dts.Command, TargetConfig: []byte(os.Getenv("TEST_CONFIG")), TimeoutSeconds: 60,
		}}, Number: 1}
		job.Started = func(p dts.Process) { json.NewEncoder(os.Stdout).Encode(p) }
		r.Run(context.Background(), job)
	}
}

func newRunner(t testing.TB, o Options) *Runner {
	t.Helper()
	if o.DataDirID == "" {
		o.DataDirID = "test-" + dts.NewID(time.Now())
	}
	r := New(o)
	t.Cleanup(r.Close)
	return r
}

// newJob makes the first attempt of a task with this target.
func newJob(t testing.TB, target any, timeout time.Duration) dts.Job {
	t.Helper()
	config, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	task := &dts.Task{Spec: dts.Spec{TargetConfig: config, TimeoutSeconds: timeout.Seconds(), Name: "a test"}}
	switch target.(type) {
	case dts.HTTPTarget:
		task.TargetType = dts.HTTPCallback
	case dts.CommandTarget:
		task.TargetType = dts.Command
	}
	if err := task.Normalize(time.Now()); err != nil {
		t.Fatal(err)
	}
	return dts.Job{Task: task, Number: 1}
}

func shell(line string) dts.CommandTarget { return dts.CommandTarget{Shell: line} }

// readUntil follows a run's output until it holds want, and returns all of it so far.
func readUntil(t *testing.T, r *Runner, job dts.Job, want string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tail, ok := r.Tail(job.Task.ID, job.Number)
	for !ok {
		if !sleep(ctx, time.Millisecond) {
			t.Fatal("the run never began")
		}
		tail, ok = r.Tail(job.Task.ID, job.Number)
	}
	var got strings.Builder
	for offset := int64(0); ; {
		chunk, next, done, err := tail.Read(ctx, offset)
		got.Write(chunk)
		if strings.Contains(got.String(), want) {
			return got.String()
		}
		if err != nil || done {
			t.Fatalf("the output ended without %q: %q, %v", want, got.String(), err)
		}
		offset = next
	}
}

// start runs a job in the background.
func start(ctx context.Context, r *Runner, job dts.Job) <-chan dts.Outcome {
	done := make(chan dts.Outcome, 1)
	go func() { done <- r.Run(ctx, job) }()
	return done
}

func text(o dts.Outcome) string { return string(o.Output.Head) + string(o.Output.Tail) }

// alive reports whether a process is there and not a zombie.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.pid == pid {
			return true
		}
	}
	return false
}

// number returns the number that follows name= in s.
func number(t *testing.T, s, name string) int {
	t.Helper()
	_, rest, ok := strings.Cut(s, name+"=")
	f := strings.Fields(rest)
	if !ok || len(f) == 0 {
		t.Fatalf("no %s= in %q", name, s)
	}
	n, err := strconv.Atoi(f[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
