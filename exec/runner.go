package exec

import (
	"context"
	"log/slog"
	"net/http"
	"os/user"
	"runtime/debug"
	"sync"
	"time"

	"dts"
)

// Options configure a Runner. The zero value works.
type Options struct {
	Log                 *slog.Logger  // default: discard
	UserAgent           string        // of HTTP requests; default "dts"
	NodeID              string        // given to commands as DTS_NODE
	DataDirID           string        // names this server's data in the mark of each command; see KillOrphans
	Environ             []string      // what commands start from, as os.Environ returns it; default: a minimal environment
	Dir                 string        // where commands start that name no directory; default: their user's home
	MaxHTTPConnsPerHost int           // connections to one host at a time; default: no limit of its own
	ConnectTimeout      time.Duration // to connect, and as long again for TLS; default 10 s
	HeaderTimeout       time.Duration // from the request to the header of the answer; default: the task's timeout
	KillGrace           time.Duration // from SIGTERM to SIGKILL; default 5 s
	WaitDelay           time.Duration // how long a process that outlives its command may hold the output open; default 2 s
}

func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.UserAgent == "" {
		o.UserAgent = "dts"
	}
	setDefault(&o.ConnectTimeout, 10*time.Second)
	setDefault(&o.KillGrace, 5*time.Second)
	setDefault(&o.WaitDelay, 2*time.Second)
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}

// Runner runs attempts, any number at a time. It is a dts.Runner.
type Runner struct {
	o       Options
	pooled  *http.Transport // keeps connections
	once    *http.Transport // a new connection for each request, HTTP/1.1
	targets targetCache
	table   tableReader
	bufs    sync.Pool // of *[]byte, to read answers with
	self    *user.User
	bootID  string

	mu   sync.Mutex
	runs map[runKey]*capture
}

type runKey struct {
	taskID string
	number int
}

// New returns a Runner. Close it when the last Run has returned.
func New(o Options) *Runner {
	o.setDefaults()
	r := &Runner{
		o:      o,
		pooled: newTransport(&o),
		once:   newTransport(&o),
		bufs:   sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }},
		self:   currentUser(),
		bootID: bootID(),
		runs:   map[runKey]*capture{},
	}
	sendOnce(r.once)
	return r
}

// Run makes one attempt and returns when it has ended. It does not panic. The attempt is stopped when the
// task's timeout has passed or ctx is done; the cause of ctx decides whether it then is CANCELLED
// (dts.ErrRunCancelled) or LOST (any other).
func (r *Runner) Run(ctx context.Context, job dts.Job) (out dts.Outcome) {
	c := &capture{tee: job.Output}
	key := runKey{job.Task.ID, job.Number}
	r.mu.Lock()
	r.runs[key] = c
	r.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			r.o.Log.Error("run panicked", "task_id", key.taskID, "attempt", key.number, "panic", v, "stack", string(debug.Stack()))
			out = failed(true, "a fault in dts; the server's log has the details")
		}
		c.finish()
		out.Output = c.output()
		r.mu.Lock()
		delete(r.runs, key)
		r.mu.Unlock()
	}()
	ctx, limit := withTimeLimit(ctx, job.Task.Timeout())
	defer limit.end()
	if ctx.Err() != nil {
		return stopped(ctx, &job, "not started within %s")
	}
	switch job.Task.TargetType {
	case dts.HTTPCallback:
		return r.runHTTP(ctx, &job, c)
	case dts.Command:
		return r.runCommand(ctx, &job, c, limit)
	default:
		return failed(false, "this server does not know the target type")
	}
}

// Tail returns a reader of the output of an attempt that runs now, and false when there is no such run here.
func (r *Runner) Tail(taskID string, number int) (dts.Tail, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.runs[runKey{taskID, number}]
	if !ok {
		return nil, false
	}
	return c, true
}

// Close closes the idle connections. Runs in progress are ended through their contexts, not by Close.
func (r *Runner) Close() {
	r.pooled.CloseIdleConnections()
	r.once.CloseIdleConnections()
}
