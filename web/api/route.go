package api

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"dts"
	"dts/web/auth"
)

// route is one line of the route table: what it is, for the document, and what serves it.
//
// huma routes and writes the document. Reading and checking a request is done here and in decode.go,
// because every error must name its field, suggest the right one and repeat nothing that was submitted.
type route struct {
	method, path string
	id           string // operation id
	tag          string
	summary      string
	params       []param
	body         any // a value of the body's type; nil when there is none
	bodyOptional bool
	bodyMedia    string // another type that the body may have, beside JSON
	limit        int64  // of the body, in bytes; default: MaxBody
	status       int    // of success; default: 200
	also         int    // another status of success with the same body, or 0
	answer       any    // a value of the answer's type; nil when it is not JSON
	media        string // of an answer that is not JSON
	events       []any  // values of the types that a stream's events carry
	errors       []int  // beside those that every route can answer
	open         bool   // needs no principal

	serve  func(c *call) (any, error)                 // answers with JSON
	stream func(c *call, w http.ResponseWriter) error // answers by itself; an error only before it has
}

// param is a query or header parameter.
type param struct {
	name, in, doc string
	schema        *huma.Schema
}

// call is one request on its way through a route.
type call struct {
	context.Context
	h      *Handler
	r      *http.Request
	p      auth.Principal
	query  url.Values
	body   []byte
	media  string // the type of the body; "" where none was given
	status int    // of success; serve may change it
}

// id is the {id} of the path. What does not look like an id cannot exist, so it is not looked for.
func (c *call) id() (string, error) {
	id := c.r.PathValue("id")
	if !dts.IsID(id) {
		return "", dts.Errorf(dts.ErrNotFound, "%q is not an id; ids are 36 characters long, lower-case hexadecimal with hyphens", clip(strings.ToValidUTF8(id, "\uFFFD")))
	}
	return id, nil
}

// handle adds a route to the router and to the document.
func (h *Handler) handle(r route) {
	if r.limit == 0 {
		r.limit = MaxBody
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	op := h.document(&r)
	h.huma.OpenAPI().AddOperation(op)
	names := make([]string, 0, len(r.params))
	for _, p := range r.params {
		if p.in == "query" {
			names = append(names, p.name)
		}
	}
	h.huma.Adapter().Handle(op, func(ctx huma.Context) {
		req, w := humago.Unwrap(ctx)
		if err := h.run(&r, names, w, req); err != nil {
			h.fail(w, req, r.path, err)
		}
	})
}

// run serves a request. Its error is for the caller, who has not been answered then.
func (h *Handler) run(r *route, queryNames []string, w http.ResponseWriter, req *http.Request) error {
	c := &call{Context: req.Context(), h: h, r: req, status: r.status}
	var ok bool
	if c.p, ok = auth.From(req.Context()); !ok && !r.open {
		return dts.Errorf(dts.ErrUnauthorized, "this needs a token; send it with the header Authorization: Bearer TOKEN")
	}
	if err := c.readQuery(queryNames); err != nil {
		return err
	}
	if len(r.events) > 0 && req.Method == http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		return WithStatus(http.StatusMethodNotAllowed, dts.Errorf(dts.ErrInvalid, "this path takes GET"))
	}
	if r.body != nil {
		if r.limit > MaxBody {
			select {
			case h.bulk <- struct{}{}:
				defer func() { <-h.bulk }()
			case <-c.Done():
				return dts.Errorf(dts.ErrUnavailable, "too many bulk requests are being served; nothing was changed")
			}
		}
		var err error
		if c.media, err = mediaOf(req, r.bodyMedia); err != nil {
			return err
		}
		if c.body, err = readBody(w, req, r.limit); err != nil {
			return err
		}
	}
	if r.stream != nil {
		return r.stream(c, w)
	}
	v, err := r.serve(c)
	if err != nil {
		return err
	}
	return writeJSON(w, c.status, v)
}

// readQuery parses the query and refuses what the route does not know.
func (c *call) readQuery(names []string) error {
	if c.r.URL.RawQuery == "" {
		return nil
	}
	var err error
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return malformed("the query after ? is not well-formed")
	}
	var f fieldErrors
	for name, values := range c.query {
		switch {
		case !slices.Contains(names, name):
			f.add(clip(strings.ToValidUTF8(name, "\uFFFD")), "is not a known query parameter%s", didYouMean(strings.ToLower(name), names))
		case slices.ContainsFunc(values, badText):
			f.add(name, "holds a NUL byte or is not valid UTF-8")
		}
	}
	slices.SortFunc(f.list, func(a, b dts.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return f.err()
}

// writeJSON answers with a value. It is encoded before anything is written, so that a fault can still
// become a problem.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(buf.Bytes()) // a caller who has gone away is not our error
	return nil
}

// fail answers with a problem, and logs what the caller does not get to see.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, path string, err error) {
	status := WriteProblem(w, err)
	if status < http.StatusInternalServerError || r.Context().Err() != nil {
		return
	}
	args := []any{"method", r.Method, "path", path, "status", status, "error", cause(err)}
	if status == http.StatusServiceUnavailable { // for a while, and all of them, as when the database has no leader
		h.unavailable.Write(r.Context(), h.Log, slog.LevelWarn, "request failed", args...)
		return
	}
	h.Log.Error("request failed", args...)
}

// cause returns the innermost error that the log should show: a dts.Error hides its cause from its text.
func cause(err error) error {
	for e := err; e != nil; {
		if d, ok := e.(*dts.Error); ok && d.Err != nil {
			return d.Err
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			break
		}
		e = u.Unwrap()
	}
	return err
}
