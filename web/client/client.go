// Package client is the Go client of the dts API, used by the command line.
//
// It promises that an error of the server arrives as the *dts.Error that it was, with its code and fields;
// that no answer, however long, takes more memory than its limit; and that "no server listens there" can be
// told from every other failure: see ErrNoServer.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"dts"
	"dts/web/api"
)

// ErrNoServer is in the chain of an error when nothing listens at the address. Nothing was sent then.
var ErrNoServer = errors.New("no dts server listens there")

// Limits of what is read, in bytes.
const (
	maxAnswer  = 128 << 20
	maxProblem = 1 << 20
)

// Options says which server to talk to: Socket, or Server and Token.
type Options struct {
	Socket  string // path of the Unix socket
	Server  string // URL such as http://127.0.0.1:8420, where Socket is empty
	Token   string // needed with Server
	Version string // of this program, for the User-Agent
	// Timeout limits the wait for an answer to begin, and that for more of a backup. Default: 2 minutes.
	Timeout time.Duration
	// Stale is called, if it is set, for each answer that may be older than what was acknowledged.
	Stale func()
}

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	base  string
	where string // for messages
	token string
	agent string
	stale func()
	wait  time.Duration // Options.Timeout
	http  *http.Client
}

// New checks the options. It does not connect.
func New(o Options) (*Client, error) {
	wait := cmp.Or(o.Timeout, 2*time.Minute)
	tr := &http.Transport{
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       30 * time.Second, // shorter than the server's
		ResponseHeaderTimeout: wait,
		TLSHandshakeTimeout:   10 * time.Second,
		Proxy:                 http.ProxyFromEnvironment,
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	c := &Client{token: o.Token, agent: "dts/" + cmp.Or(o.Version, "unknown"), stale: o.Stale, wait: wait}
	if c.stale == nil {
		c.stale = func() {}
	}
	switch {
	case o.Socket != "" && o.Server != "":
		return nil, errors.New("both a socket and a server's URL are given; keep one")
	case o.Socket != "":
		c.base, c.where = "http://dts", o.Socket
		tr.Proxy = nil
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", o.Socket)
		}
	default:
		u, err := url.Parse(o.Server)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
			return nil, errors.New("the server must be a URL such as http://127.0.0.1:8420")
		}
		c.base, c.where = strings.TrimSuffix(u.String(), "/"), u.Host
		tr.DialContext = dialer.DialContext
	}
	c.http = &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the API does not redirect, and the token must not travel
	}}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do sends a request and decodes the answer into out. in and out may be nil.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, in, out any) (status int, err error) {
	resp, err := c.send(ctx, method, path, query, "application/json", in)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if out == nil {
		return resp.StatusCode, nil
	}
	body := &limitedReader{r: resp.Body, left: maxAnswer}
	if err := json.NewDecoder(body).Decode(out); err != nil {
		return 0, c.broken(method, "the answer to "+method+" "+path+" could not be read", err)
	}
	return resp.StatusCode, nil
}

// send sends a request and returns an answer of success. The caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, accept string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if refused(err) {
			return nil, fmt.Errorf("%w (%s)", ErrNoServer, c.where)
		}
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // the rest of its text only repeats the address
		}
		return nil, c.broken(method, "the server at "+c.where+" did not answer", err)
	}
	if resp.Header.Get(api.HeaderStale) == "true" {
		c.stale()
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, problem(resp)
}

// broken makes the error of an exchange that failed half-way. What became of a change is unknown then.
func (c *Client) broken(method, what string, err error) error {
	code := dts.ErrUnavailable
	if method != http.MethodGet {
		code = dts.ErrUnknown
		what += ", so it is not known whether it was done"
	}
	return &dts.Error{Code: code, Message: what + ": " + err.Error(), Err: err}
}

// refused reports whether nothing listens at the address.
func refused(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist))
}

// codes is the meaning of a status where the answer has no code, for example because a proxy gave it.
var codes = map[int]dts.Code{
	http.StatusBadRequest: dts.ErrInvalid, http.StatusUnprocessableEntity: dts.ErrInvalid,
	http.StatusUnauthorized: dts.ErrUnauthorized, http.StatusForbidden: dts.ErrForbidden, http.StatusNotFound: dts.ErrNotFound,
	http.StatusConflict: dts.ErrConflict, http.StatusRequestEntityTooLarge: dts.ErrTooLarge,
	http.StatusInsufficientStorage: dts.ErrFull, http.StatusServiceUnavailable: dts.ErrUnavailable,
	http.StatusTooManyRequests: dts.ErrUnavailable, http.StatusBadGateway: dts.ErrUnavailable,
	http.StatusGatewayTimeout: dts.ErrUnknown,
}

// problem turns a refusal into the error that it was.
func problem(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	var p api.Problem
	if json.Unmarshal(b, &p) == nil && p.Code != "" {
		return &dts.Error{Code: p.Code, Message: p.Detail, Fields: p.Errors}
	}
	var n notReady
	if resp.StatusCode == http.StatusServiceUnavailable && json.Unmarshal(b, &n.Readiness) == nil && n.Reasons != nil {
		return &n
	}
	text := "the server answered " + resp.Status
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") && len(b) < 1000 {
		text += ": " + strings.TrimSpace(string(b))
	}
	return &dts.Error{Code: cmp.Or(codes[resp.StatusCode], dts.ErrInternal), Message: text}
}

// limitedReader fails, rather than ends, at its limit.
type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("it is longer than this client reads")
	}
	n, err := l.r.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}
