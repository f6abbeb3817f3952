// Package pings is what jobs call that dts does not run: /ping/KEY says that a job has ended well, /ping/KEY/start that it
// begins, /ping/KEY/fail that it has failed, and /ping/KEY/3 that it has ended with exit code 3.
//
// It promises that an answer of 200 means that the report is on the disk, that a key that is nobody's costs no look into the
// database, that a flood of one key writes about a row a second, and that no key gets into a log. The key is the credential:
// no token is needed, and neither the Host nor the origin of a request is looked at, because a page of another site that
// knows a key can do no more than anybody who does.
package pings

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"dts"
	"dts/web/api"
	"dts/web/limit"
	"dts/web/seldom"
)

// Prefix is what the path of every ping begins with.
const Prefix = "/ping/"

// Reports takes reports in.
type Reports interface {
	// Report keeps what a job has reported, and lets the run that it is about be judged if it decides that. It fills in the
	// rest of p. A nil error means that the report is on the disk; dts.ErrNotFound, that nothing expects one.
	Report(ctx context.Context, recurringID string, p *dts.PingRecord) error
}

// Options is what a Handler needs. Reports and Keys must be set.
type Options struct {
	Reports   Reports
	Keys      Keys
	PublicURL string           // with what ping URLs begin; "": with the address by which the server was asked for them
	Log       *slog.Logger     // default: discards
	Now       func() time.Time // default: time.Now
}

// Handler serves everything below Prefix.
type Handler struct {
	Options
	// Own returns the address of this server, "" when it has none. It is set before the first request.
	Own         func() string
	limits      limit.Limiter[string] // of the pings of each key
	unavailable seldom.Log
}

// New returns a handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	return &Handler{Options: o, Own: func() string { return "" }, limits: limit.Limiter[string]{Burst: 20, Refill: time.Second, Keys: 100_000}}
}

// URL returns the ping URL of a recurring task for who asks with r: at the address that was asked, unless there is a public
// one. What comes through the Unix socket has asked none.
func (h *Handler) URL(r *http.Request, id string) string {
	base := h.PublicURL
	if base == "" {
		if _, tcp := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); tcp && r.Host != "" {
			base = "http://" + r.Host
			if r.TLS != nil {
				base = "https://" + r.Host
			}
		}
	}
	return cmp.Or(base, h.Own()) + Prefix + h.Keys.Key(id)
}

// maxRead is how much of a report's body is read: what is longer is cut off there.
const maxRead = 1 << 20

var (
	errNotFound = dts.Errorf(dts.ErrNotFound, "there is no such ping URL; dts show prints that of a recurring task")
	errMethod   = api.WithStatus(http.StatusMethodNotAllowed, dts.Errorf(dts.ErrInvalid, "a ping is a GET, HEAD or POST"))
	errTooMany  = api.WithStatus(http.StatusTooManyRequests, dts.Errorf(dts.ErrUnavailable, "too many pings with this key; report once per run, and try again in a second"))
)

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil {
		if status := api.WriteProblem(w, err); status >= http.StatusInternalServerError && r.Context().Err() == nil {
			h.unavailable.Write(r.Context(), h.Log, slog.LevelError, "a ping could not be kept", "err", err)
		}
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	if r.Method != http.MethodHead {
		io.WriteString(w, "OK\n")
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	key, what, more := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix), "/")
	id, known := h.Keys.ID(key)
	p, is := reportOf(what)
	is = is && more == (what != "") // "$URL/$code" without a code is no success
	switch {
	case !known || !is:
		return errNotFound
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		return errMethod
	case !h.limits.Use(id, h.Now()):
		return errTooMany
	}
	if err := readBody(w, r, p); err != nil {
		return err
	}
	p.Source = source(r.RemoteAddr)
	err := h.Reports.Report(r.Context(), id, p)
	switch dts.CodeOf(err) {
	case dts.ErrNotFound:
		return errNotFound
	case dts.ErrFull: // what curl --retry tries again: the server makes room within seconds, if it can
		return api.WithStatus(http.StatusServiceUnavailable, err)
	}
	return err
}

// reportOf reads what follows the key in the path.
func reportOf(what string) (*dts.PingRecord, bool) {
	switch what {
	case "":
		return &dts.PingRecord{Kind: dts.PingSuccess}, true
	case "start":
		return &dts.PingRecord{Kind: dts.PingStart}, true
	case "fail":
		return &dts.PingRecord{Kind: dts.PingFailure}, true
	}
	code, err := strconv.ParseUint(what, 10, 8)
	if err != nil {
		return nil, false
	}
	n := int(code)
	return &dts.PingRecord{Kind: dts.PingKindOf(n), ExitCode: &n}, true
}

// readBody keeps the beginning of a report's body as text.
func readBody(w http.ResponseWriter, r *http.Request, p *dts.PingRecord) error {
	body := http.MaxBytesReader(w, r.Body, maxRead)
	kept, err := io.ReadAll(io.LimitReader(body, dts.MaxPingBody))
	var rest int64
	if err == nil {
		rest, err = io.Copy(io.Discard, body)
	}
	if tooLong := (*http.MaxBytesError)(nil); err != nil && !errors.As(err, &tooLong) {
		return api.WithStatus(http.StatusBadRequest, dts.Errorf(dts.ErrInvalid, "the body could not be read"))
	}
	p.Body = strings.ReplaceAll(strings.ToValidUTF8(string(kept), "\uFFFD"), "\x00", "\uFFFD")
	if len(p.Body) > dts.MaxPingBody { // what replaces a byte is longer than it
		p.Body = strings.ToValidUTF8(p.Body[:dts.MaxPingBody], "")
	}
	p.BodyBytes = int64(len(kept)) + rest
	return nil
}

// source is the address that a request came from; "" for a Unix socket.
func source(remote string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	return ap.Addr().Unmap().String()
}
