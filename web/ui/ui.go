// Package ui serves the HTML pages of dts under /ui/.
//
// It promises pages that work without JavaScript and get better with it: every page is complete HTML made
// by the server, every change is a form that posts, and the scripts, which come from this server only,
// refresh tables, follow output and show times in the reader's zone. Nothing that a user or a target wrote
// reaches a page unescaped, and values of headers, variables and parameters whose names look secret are
// never shown.
//
// It reads through Store and changes things through Scheduler. Package web decides who asks, before: see
// package auth. Requests that come from other sites are refused there too.
package ui

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dts"
	"dts/web/auth"
	"dts/web/seldom"
)

// Store is what the pages read, each time within one tenant. Lists are newest first, and what does not
// exist is dts.ErrNotFound.
type Store interface {
	Task(ctx context.Context, tenant, id string) (*dts.Task, error)
	Tasks(ctx context.Context, f dts.TaskFilter) (dts.Page[*dts.Task], error)
	Steps(ctx context.Context, tenant, run string) ([]*dts.Task, error)
	// RunsUnderWay returns runs of workflows that have started and not ended; RunProgress how far runs are, by their ids.
	RunsUnderWay(ctx context.Context, tenant string, limit int) ([]*dts.Task, error)
	RunProgress(ctx context.Context, tenant string, runs []string) (map[string]dts.RunProgress, error)
	Attempts(ctx context.Context, tenant, taskID string) ([]*dts.Attempt, error)
	// Graph returns what a task depends on and what depends on it: the limit tasks that are nearest.
	Graph(ctx context.Context, tenant, id string, limit int) (*dts.Graph, error)
	Output(ctx context.Context, tenant, taskID string, number int) (*dts.Output, error)
	RecurringTask(ctx context.Context, tenant, id string) (*dts.RecurringTask, error)
	RecurringTasks(ctx context.Context, f dts.RecurringFilter) (dts.Page[*dts.RecurringTask], error)
	Upcoming(ctx context.Context, tenant, recurringID string, limit int) ([]*dts.Task, error)
	Occurrences(ctx context.Context, tenant, recurringID, cursor string, limit int) (dts.Page[dts.Occurrence], error)
	Counts(ctx context.Context, tenant string) (dts.Counts, error)
	// Batch counts the tasks of a bulk request.
	Batch(ctx context.Context, tenant, id string) (*dts.Batch, error)
	Calendar(ctx context.Context, tenant, name string) (*dts.Calendar, error)
	Calendars(ctx context.Context, tenant string) ([]*dts.Calendar, error)
	Blackouts(ctx context.Context, tenant string) ([]*dts.Blackout, error)
	// Pings returns what the job of a recurring task has reported.
	Pings(ctx context.Context, tenant, recurringID string, limit int) ([]*dts.PingRecord, error)
}

// Scheduler is how the pages change things, and what they ask about the times of tasks. A nil error of what
// changes something means that the change is on disk.
type Scheduler interface {
	CreateTasks(ctx context.Context, tasks []*dts.Task) ([]dts.Created[*dts.Task], error)
	DoTask(ctx context.Context, tenant, id string, v dts.Verb, actor string) (*dts.Task, error)
	// Bulk does a verb to the tasks that match, or counts them. The change is normalized already.
	Bulk(ctx context.Context, c dts.BulkChange) (dts.BulkResult, error)
	CreateRecurring(ctx context.Context, r *dts.RecurringTask) (dts.Created[*dts.RecurringTask], error)
	PauseRecurring(ctx context.Context, tenant, id string, until time.Time, note, actor string) (*dts.RecurringTask, error)
	ResumeRecurring(ctx context.Context, tenant, id string, catchUp bool, actor string) (*dts.RecurringTask, error)
	CancelRecurring(ctx context.Context, tenant, id, actor string) (*dts.RecurringTask, error)
	TriggerRecurring(ctx context.Context, tenant, id, actor string) (*dts.Task, error)
	BackfillRecurring(ctx context.Context, tenant, id string, q dts.BackfillRequest, actor string) (*dts.BackfillAnswer, error)
	CreateCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error)
	ReplaceCalendar(ctx context.Context, c *dts.Calendar) (*dts.Calendar, error)
	DeleteCalendar(ctx context.Context, tenant, name string) error
	CreateBlackout(ctx context.Context, b *dts.Blackout) (*dts.Blackout, error)
	DeleteBlackout(ctx context.Context, tenant, id string) error
	Queues(ctx context.Context, tenant string) ([]*dts.Queue, error)
	PauseQueue(ctx context.Context, tenant, name, note string) (*dts.Queue, error)
	ResumeQueue(ctx context.Context, tenant, name string) (*dts.Queue, error)
	Preview(ctx context.Context, tenant string, q dts.PreviewRequest) (*dts.Preview, error)
	// Why answers for a task's id, or for a recurring task's with one of its instants.
	Why(ctx context.Context, tenant, id string, at time.Time) (*dts.Why, error)
	Status() dts.SchedulerStatus
}

// Outputs gives access to the output of runs in progress on this node.
type Outputs interface {
	// Tail returns a reader of an attempt's output, and false when the attempt does not run here.
	Tail(taskID string, number int) (dts.Tail, bool)
}

// Options is what the pages need. All fields but PingURL, Log and Version must be set.
type Options struct {
	Store     Store
	Scheduler Scheduler
	Outputs   Outputs
	Tokens    auth.Tokens
	// PingURL returns the ping URL of a recurring task, for who asks with r. Default: there is none.
	PingURL func(r *http.Request, id string) string
	Log     *slog.Logger // default: discards
	Version string       // shown at the foot of each page
}

// New returns the handler of everything under /ui/. Its error means that the files built into the program
// are broken, or that an option is missing.
func New(o Options) (http.Handler, error) {
	h, err := newHandler(o)
	if err != nil {
		return nil, err
	}
	return h.routes(), nil
}

type handler struct {
	Options
	assets *assets
	pages  pages
	now    func() time.Time

	unavailable seldom.Log
}

func newHandler(o Options) (*handler, error) {
	if o.PingURL == nil {
		o.PingURL = func(*http.Request, string) string { return "" }
	}
	if o.Store == nil || o.Scheduler == nil || o.Outputs == nil || o.Tokens == nil {
		return nil, errors.New("ui: Store, Scheduler, Outputs and Tokens must be set")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a, err := loadAssets()
	if err != nil {
		return nil, err
	}
	p, err := parsePages(a)
	if err != nil {
		return nil, err
	}
	return &handler{Options: o, assets: a, pages: p, now: time.Now}, nil
}

// routes is every path that this package serves.
func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+assetPrefix, h.assets)

	mux.Handle("GET /ui/login", h.open(h.loginPage))
	mux.Handle("POST /ui/login", h.open(h.login))
	mux.Handle("GET /ui/link", h.open(h.link))
	mux.Handle("POST /ui/logout", h.open(h.logout))

	mux.Handle("GET /ui/{$}", h.signedIn(h.overview))
	mux.Handle("GET /ui/new", h.signedIn(h.newPage))
	mux.Handle("POST /ui/new", h.signedIn(h.create))
	mux.Handle("POST /ui/preview", h.signedIn(h.preview))
	mux.Handle("GET /ui/tasks/{id}", h.signedIn(h.task))
	mux.Handle("POST /ui/tasks/{id}/{verb}", h.signedIn(h.doTask))
	mux.Handle("GET /ui/dead", h.signedIn(h.dead))
	mux.Handle("POST /ui/dead/{verb}", h.signedIn(h.doDead))
	mux.Handle("GET /ui/batches/{id}", h.signedIn(h.batch))
	mux.Handle("POST /ui/batches/{id}/{verb}", h.signedIn(h.doBatch))
	mux.Handle("GET /ui/recurring/{id}", h.signedIn(h.recurring))
	mux.Handle("POST /ui/recurring/{id}/{verb}", h.signedIn(h.doRecurring))
	mux.Handle("GET /ui/calendars", h.signedIn(h.calendars))
	mux.Handle("GET /ui/new-calendar", h.signedIn(h.newCalendar))
	mux.Handle("POST /ui/new-calendar", h.signedIn(h.addCalendar))
	mux.Handle("GET /ui/calendars/{name}", h.signedIn(h.calendar))
	mux.Handle("POST /ui/calendars/{name}", h.signedIn(h.saveCalendar))
	mux.Handle("POST /ui/calendars/{name}/delete", h.signedIn(h.deleteCalendar))
	mux.Handle("GET /ui/blackouts", h.signedIn(h.blackouts))
	mux.Handle("POST /ui/blackouts", h.signedIn(h.addBlackout))
	mux.Handle("POST /ui/blackouts/{id}/delete", h.signedIn(h.deleteBlackout))
	mux.Handle("GET /ui/queues", h.signedIn(h.queues))
	mux.Handle("POST /ui/queues/{name}/{verb}", h.signedIn(h.doQueue))
	mux.Handle("GET /ui/", h.signedIn(h.notFound))
	return mux
}

// maxForm is how large a posted form may be: a target of the largest size, percent-encoded. The largest calendar
// file is smaller.
const maxForm = 3*dts.MaxTargetBytes + 64<<10

// open serves a page that needs nobody signed in. An error it returns becomes an error page.
func (h *handler) open(f func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := f(w, r); err != nil {
			h.fail(w, r, err)
		}
	})
}

// signedIn serves a page to a principal and sends everyone else to the login page.
func (h *handler) signedIn(f func(http.ResponseWriter, *http.Request, auth.Principal) error) http.Handler {
	return h.open(func(w http.ResponseWriter, r *http.Request) error {
		p, ok := auth.From(r.Context())
		if !ok {
			toLogin(w, r)
			return nil
		}
		return f(w, r, p)
	})
}

// toLogin sends the browser to the login page, and from there back to where it was. A refresh by htmx
// must leave the page as a whole, so it is told by a header: a redirect would be followed by the fetch.
func toLogin(w http.ResponseWriter, r *http.Request) {
	to := "/ui/login"
	if r.Method == http.MethodGet && r.URL.Path != "/ui/" {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Redirect", "/ui/login")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// localPath returns next if it is a path of these pages, else "/ui/". Anything else could lead a user who
// has just signed in to another site.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/ui/") || strings.Contains(next, `\`) {
		return "/ui/"
	}
	return u.RequestURI()
}

func (h *handler) notFound(http.ResponseWriter, *http.Request, auth.Principal) error {
	return dts.Errorf(dts.ErrNotFound, "there is no such page")
}

// statusOf is the HTTP status for each error code.
func statusOf(c dts.Code) int {
	switch c {
	case dts.ErrInvalid:
		return http.StatusUnprocessableEntity
	case dts.ErrUnauthorized:
		return http.StatusUnauthorized
	case dts.ErrForbidden:
		return http.StatusForbidden
	case dts.ErrNotFound:
		return http.StatusNotFound
	case dts.ErrConflict:
		return http.StatusConflict
	case dts.ErrTooLarge:
		return http.StatusRequestEntityTooLarge
	case dts.ErrFull:
		return http.StatusInsufficientStorage
	case dts.ErrUnavailable, dts.ErrUnknown:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// explain returns what a user may read of an error, and logs what only the operator should.
func (h *handler) explain(r *http.Request, err error) (status int, message string) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge, "the form is larger than 3 MB"
	}
	code := dts.CodeOf(err)
	status = statusOf(code)
	if status < http.StatusInternalServerError {
		return status, err.Error()
	}
	switch args := []any{"method", r.Method, "path", r.URL.Path, "error", err}; {
	case r.Context().Err() != nil: // the reader has gone
	case status == http.StatusServiceUnavailable: // for a while, and all pages
		h.unavailable.Write(r.Context(), h.Log, slog.LevelError, "page failed", args...)
	default:
		h.Log.Error("page failed", args...)
	}
	if code == dts.ErrInternal {
		return status, "dts could not do this; its log says why"
	}
	return status, err.Error()
}

// fail answers with an error page.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, message := h.explain(r, err)
	d := errorPage{shared: h.shared(r, ""), Status: status, Message: sentence("", message)}
	if err := h.render(w, status, "error", d); err != nil {
		h.Log.Error("error page failed", "error", err)
		http.Error(w, message, status)
	}
}

type errorPage struct {
	shared
	Status  int
	Message string
}
