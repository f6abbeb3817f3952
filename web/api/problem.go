package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"dts"
)

// Problem is the body of every refusal: RFC 9457, as application/problem+json, with two members of our
// own, code and errors. It never repeats what was submitted, which may be a secret, except for short names.
type Problem struct {
	Type   string           `json:"type" doc:"always about:blank: title, status and code say it all"`
	Title  string           `json:"title" doc:"the name of the status"`
	Status int              `json:"status" doc:"the HTTP status"`
	Code   dts.Code         `json:"code" enum:"invalid,unauthorized,forbidden,not_found,conflict,too_large,full,unavailable,unknown,internal" doc:"what the caller can do about it"`
	Detail string           `json:"detail" doc:"what is wrong"`
	Errors []dts.FieldError `json:"errors,omitempty" doc:"what is wrong with which field"`
}

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

// HeaderStale is the header of an answer that may be older than what was acknowledged, because the database cannot tell
// what is newest. Its value is "true".
const HeaderStale = "Dts-Stale"

// statuses is the HTTP status of each code. An error with an unknown code is a fault of ours.
var statuses = map[dts.Code]int{
	dts.ErrInvalid:      http.StatusUnprocessableEntity,
	dts.ErrUnauthorized: http.StatusUnauthorized,
	dts.ErrForbidden:    http.StatusForbidden,
	dts.ErrNotFound:     http.StatusNotFound,
	dts.ErrConflict:     http.StatusConflict,
	dts.ErrTooLarge:     http.StatusRequestEntityTooLarge,
	dts.ErrFull:         http.StatusInsufficientStorage,
	dts.ErrUnavailable:  http.StatusServiceUnavailable,
	dts.ErrUnknown:      http.StatusServiceUnavailable,
	dts.ErrInternal:     http.StatusInternalServerError,
}

// maxProblemFields is how many field errors a problem lists.
const maxProblemFields = 100

// statusError is an error whose status says more than its code does, for example 400 for malformed JSON.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// WithStatus returns err, to be answered with this HTTP status in place of its code's.
func WithStatus(status int, err error) error { return &statusError{status, err} }

// ProblemOf returns what a user may read of an error. Only a *dts.Error has a text for users; of any other
// error, and of one with the code internal, the problem says nothing.
func ProblemOf(err error) *Problem {
	p := &Problem{Type: "about:blank", Status: http.StatusInternalServerError, Code: dts.ErrInternal,
		Detail: "dts could not do this; its log says why"}
	if e, ok := errors.AsType[*dts.Error](err); ok && e.Code != dts.ErrInternal && statuses[e.Code] != 0 {
		p.Code, p.Status, p.Detail, p.Errors = e.Code, statuses[e.Code], e.Message, e.Fields
		if s, ok := errors.AsType[*statusError](err); ok {
			p.Status = s.status
		}
	}
	if n := len(p.Errors); n > maxProblemFields {
		p.Errors = p.Errors[:maxProblemFields:maxProblemFields]
		p.Detail += "; only the first errors are listed"
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// WriteProblem answers with an error. It returns the status. The caller logs err where that is 500 or more.
func WriteProblem(w http.ResponseWriter, err error) int {
	p := ProblemOf(err)
	h := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="dts"`)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if h.Get("Retry-After") == "" {
			h.Set("Retry-After", "1")
		}
	}
	h.Set("Content-Type", ProblemType)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.Encode(p)
	return p.Status
}
