package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"dts"
	"dts/web/auth"
	"dts/web/seldom"
)

// Options is what the API needs. Store, Scheduler, Outputs and Tokens must be set.
type Options struct {
	Store     Store
	Scheduler Scheduler
	Outputs   Outputs
	Tokens    auth.Tokens
	Backups   Backups      // nil: there can be none
	Metrics   http.Handler // serves /metrics, for example promhttp.HandlerFor; nil: 404
	Version   string
	Log       *slog.Logger // default: discards

	// LoginURL returns the address that a browser opens to redeem a login link's token, or "" when this
	// server has no pages. Default: none.
	LoginURL func(token string) string
	// Reload reads the server's settings again and says what differs from how it runs. nil: it cannot.
	Reload func() ([]dts.SettingChange, error)
	// PingURL returns the ping URL of a recurring task, for who asks with r. Default: there is none.
	PingURL func(r *http.Request, id string) string
	// MaxStreams limits the event and output streams that are open at once. Default: 256.
	MaxStreams int
	// Stopping is closed when the server stops: all streams end then.
	Stopping <-chan struct{}
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Handler serves the API. Its zero value does not work; see New.
type Handler struct {
	Options
	mux     *http.ServeMux
	huma    huma.API
	streams chan struct{} // one element per open stream
	bulk    chan struct{} // one element per bulk request in memory
	spec    func() ([]byte, error)

	unavailable seldom.Log
}

// maxBulkAtOnce is how many bulk requests are held in memory at once: others wait.
const maxBulkAtOnce = 4

// New returns the handler of every path of the API, each also under /v1.
func New(o Options) (*Handler, error) {
	if o.Store == nil || o.Scheduler == nil || o.Outputs == nil || o.Tokens == nil {
		return nil, errors.New("api: Store, Scheduler, Outputs and Tokens must be set")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = http.NotFoundHandler()
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 256
	}
	if o.LoginURL == nil {
		o.LoginURL = func(string) string { return "" }
	}
	if o.PingURL == nil {
		o.PingURL = func(*http.Request, string) string { return "" }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &Handler{Options: o, mux: http.NewServeMux(),
		streams: make(chan struct{}, o.MaxStreams), bulk: make(chan struct{}, maxBulkAtOnce)}
	h.huma = humago.New(h.mux, documentConfig(o.Version))
	h.spec = sync.OnceValues(func() ([]byte, error) { return json.MarshalIndent(h.huma.OpenAPI(), "", "  ") })
	for _, r := range h.routes() {
		h.handle(r)
	}
	for _, r := range pingRoutes() {
		h.huma.OpenAPI().AddOperation(h.document(&r))
	}
	h.mux.HandleFunc("/", h.noRoute)
	return h, nil
}

// ServeHTTP implements http.Handler. The principal must be in the request's context, see auth.With;
// without one everything but /health and /ready is refused.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "/v1/"); ok {
		r2 := *r
		u := *r.URL
		u.Path, u.RawPath = "/"+path, strings.TrimPrefix(u.RawPath, "/v1")
		r2.URL = &u
		r = &r2
	}
	h.mux.ServeHTTP(w, r)
}

// noRoute answers where no route matches: 405 where another method would, else 404.
func (h *Handler) noRoute(w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		try := *r
		try.Method = m
		if _, pattern := h.mux.Handler(&try); pattern != "/" && pattern != "" {
			allow = append(allow, m)
		}
	}
	if allow == nil {
		WriteProblem(w, dts.Errorf(dts.ErrNotFound, "there is no such path; see /openapi.json for those there are"))
		return
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	WriteProblem(w, WithStatus(http.StatusMethodNotAllowed,
		dts.Errorf(dts.ErrInvalid, "this path takes %s", strings.Join(allow, " and "))))
}
