package dts

import (
	"context"
	"io"
	"time"
)

// AttemptState is the state of one execution of a task.
type AttemptState string

const (
	AttemptRunning   AttemptState = "RUNNING"
	AttemptSuccess   AttemptState = "SUCCESS"
	AttemptFailed    AttemptState = "FAILED"    // the target said no, or could not be reached
	AttemptTimedOut  AttemptState = "TIMED_OUT" // longer than timeout_seconds
	AttemptCancelled AttemptState = "CANCELLED" // someone cancelled the task in mid-run
	AttemptLost      AttemptState = "LOST"      // the node died, or stopped, in mid-run
)

// Attempt is one execution of a task, unique by (TaskID, Number).
type Attempt struct {
	TaskID      string       `json:"task_id"`
	TenantID    string       `json:"tenant_id"`
	Number      int          `json:"number" doc:"1 is the first"`
	State       AttemptState `json:"state" enum:"RUNNING,SUCCESS,FAILED,TIMED_OUT,CANCELLED,LOST"`
	Node        string       `json:"node"`
	PickedAt    time.Time    `json:"picked_at,omitzero"`
	StartedAt   time.Time    `json:"started_at"`
	CompletedAt time.Time    `json:"completed_at,omitzero"`
	DurationUS  int64        `json:"duration_us" doc:"taken monotonically"`
	LatenessUS  int64        `json:"lateness_us" doc:"start minus when it was due, in microseconds"`
	QueuedUS    int64        `json:"queued_us,omitempty" doc:"of that, how long it was ready and waited for a slot or a limit"`
	StoppedUS   int64        `json:"stopped_us,omitempty" doc:"of its duration, how long the command was stopped for others of high priority"`
	HTTPStatus  int          `json:"http_status,omitempty"`
	ExitCode    *int         `json:"exit_code,omitempty" doc:"128 + n for a command ended by signal n"`
	Error       string       `json:"error,omitempty"`
	CPUUS       int64        `json:"cpu_us,omitempty" doc:"user and system time of the command and the children it waited for"`
	MaxRSSBytes int64        `json:"max_rss_bytes,omitempty" doc:"peak resident memory of its largest process"`
	OutputBytes int64        `json:"output_bytes,omitempty" doc:"bytes of output in all, kept or not"`
	Process     *Process     `json:"-"`
}

// Process names a command's process group so that a later start of dts can find and kill an orphan. A
// process id alone may have been given to another process, so its start time and the boot are kept too.
type Process struct {
	PGID      int    // process group, which is the id of its first process
	StartTime uint64 // of that process, in clock ticks since boot: field 22 of /proc/PID/stat, proc(5)
	BootID    string // /proc/sys/kernel/random/boot_id
}

// Output is what an attempt printed or the body a server answered. When it is longer than what is kept,
// Head is its beginning, Tail its end, and Total says how much there was.
type Output struct {
	Head  []byte
	Tail  []byte
	Total int64
}

// Truncated reports whether something between Head and Tail was dropped.
func (o *Output) Truncated() bool { return o.Total > int64(len(o.Head)+len(o.Tail)) }

// OutputKept is how many bytes are kept of the beginning, and as many of the end, of an attempt's output.
const OutputKept = 64 << 10

// Job is one attempt that a runner is asked to make.
type Job struct {
	Task   *Task
	Number int               // attempt number
	Inputs map[string]string // what the tasks have printed that its Inputs name
	// Started is called at most once, by commands only, as soon as the process runs.
	Started func(Process)
	// Exited is called at most once, by commands only, when the process has ended; some of its output may still be on
	// its way. nil where nobody wants to know.
	Exited func()
	// Output, if set, gets all that the run prints, or the body of the answer, as it comes; what is kept of it is in the
	// outcome. Its Write may block, which holds the command up; but what comes after Exited and is not taken within
	// about a second is lost. Its errors are ignored.
	Output io.Writer
	// Controls is called at most once, by commands only, right after Started, with what can hold the run up; nil where
	// nobody wants to.
	Controls func(Controls)
}

// Controls hold a command up for a while. Both methods take microseconds, may be called at any time and from any
// goroutine, and do nothing that was done already.
type Controls interface {
	// Stop halts every process of the command's group where it is (SIGSTOP). The time until Continue does not count
	// as run time for timeout_seconds. An error says that the run has ended, or is being ended, and nothing was halted.
	Stop() error
	// Continue lets them go on (SIGCONT).
	Continue()
}

// Outcome is what became of an attempt. Runners report; the scheduler decides about retries.
type Outcome struct {
	State       AttemptState // any but RUNNING
	Retryable   bool         // whether another attempt could help
	RetryAfter  time.Duration
	Error       string
	HTTPStatus  int
	ExitCode    *int
	CPU         time.Duration
	MaxRSSBytes int64
	Output      Output
	// Began and Ended are when something ran elsewhere, as it has reported; zero: when the runner did.
	Began, Ended time.Time
}

// Causes with which the scheduler cancels a running attempt's context (context.Cause).
var (
	// ErrRunCancelled: a user cancelled the task. The attempt ends CANCELLED.
	ErrRunCancelled = Errorf(ErrConflict, "cancelled")
	// ErrRunReplaced: the next occurrence was due, and overlap_policy CANCEL_RUNNING stops what still runs. The attempt
	// ends CANCELLED.
	ErrRunReplaced = Errorf(ErrConflict, "cancelled by the next run, which was due")
	// ErrRunLost: the node stops and cannot wait any longer. The attempt ends LOST.
	ErrRunLost = Errorf(ErrUnavailable, "the server stopped before the run ended")
)

// Runner runs targets. Run blocks until the attempt has ended and its output is complete. After a timeout or
// a cancel every process of it is gone; after a normal end, what it left in the background may live on. It honours the task's timeout itself; ctx is cancelled with one of the causes above.
type Runner interface {
	Run(ctx context.Context, job Job) Outcome
}
