package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dts"
)

// ClientOptions is how a Client is made.
type ClientOptions struct {
	Secret string       // of the cluster
	Log    *slog.Logger // default: discards
}

// Client calls other servers. It calls only servers that it is given as a dts.Node, at the address under which they
// registered. Its methods may be called concurrently.
type Client struct {
	secret    string
	log       *slog.Logger
	transport *http.Transport
	http      *http.Client
	ctx       context.Context // of what goes on in the background
	stop      context.CancelFunc

	mu      sync.Mutex
	closed  bool
	notices map[string]*notice // by the id of the server; one goroutine each delivers them
	running sync.WaitGroup
}

// NewClient makes a Client. Close frees what it holds.
func NewClient(o ClientOptions) *Client {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{secret: o.Secret, log: o.Log, notices: map[string]*notice{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	dialer := net.Dialer{Timeout: dialTime, KeepAlive: 15 * time.Second}
	c.transport = &http.Transport{ // no proxy: the environment's is for the world outside
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    2 * dialTime,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    32,
		MaxConnsPerHost:        2 * maxStreams,
		IdleConnTimeout:        30 * time.Second, // well before the other server closes it
		MaxResponseHeaderBytes: 16 << 10,
		DisableCompression:     true,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1: streams must not share a connection with verbs
	}
	c.http = &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

// Close gives up what is on its way in the background and waits for that. Calls under way end by their contexts.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.running.Wait()
	c.transport.CloseIdleConnections()
}

// noAnswer is the error of a call that the other server has not answered.
type noAnswer struct {
	node  dts.Node
	maybe bool // it may have been carried out all the same
	err   error
}

func (e *noAnswer) Error() string {
	return fmt.Sprintf("call server %s at %s: %v", e.node.ID, e.node.Address, e.err)
}
func (e *noAnswer) Unwrap() error { return e.err }

// refusal is an answer that says that the call was not looked at: why, in a few words.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return fmt.Sprintf("refused with status %d: %s", e.status, e.text) }

// call asks a server and waits for its answer. The error is a *noAnswer, or the one that the other server gave; then
// there is an answer all the same.
func (c *Client) call(ctx context.Context, n dts.Node, method string, q *request, tasks ...*dts.Task) (*answer, error) {
	var body bytes.Buffer
	if err := encode(&body, q, tasks); err != nil {
		return nil, fmt.Errorf("encode the call %s: %w", method, err)
	}
	resp, sent, err := c.post(ctx, n, callPath, method, body.Bytes())
	if err != nil {
		return nil, &noAnswer{n, sent, err}
	}
	defer resp.Body.Close()
	var a answer
	if err := gob.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&a); err != nil {
		return nil, &noAnswer{n, true, fmt.Errorf("read the answer: %w", err)}
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64)) // its end, so that the connection can be used again
	if a.Failure != nil {
		return &a, a.Failure.error(n)
	}
	return &a, nil
}

// post sends a body. With an error, sent reports whether the other server may have got it and acted on it.
func (c *Client) post(ctx context.Context, n dts.Node, path, method string, body []byte) (resp *http.Response, sent bool, err error) {
	base, err := baseOf(n)
	if err != nil {
		return nil, false, err
	}
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The transport tries a POST again by itself only if nothing of it was written.
		GetConn:      func(string) { wrote.Store(false) },
		WroteHeaders: func() { wrote.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	h := req.Header
	h.Set("Authorization", "Bearer "+c.secret)
	h.Set("Content-Type", gobType)
	h.Set("User-Agent", "dts")
	h.Set(headerProtocol, protocol)
	h.Set(headerTo, n.ID)
	if method != "" {
		h.Set(headerMethod, method)
	}
	if resp, err = c.http.Do(req); err != nil {
		return nil, wrote.Load(), hideAddress(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, true, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	err = &refusal{resp.StatusCode, clip(strings.TrimSpace(string(text)), 400)}
	return nil, resp.StatusCode < 300 || resp.StatusCode >= 500, err // what is refused was not looked at
}

// hideAddress takes the URL, which noAnswer names already, out of the error of a http.Client.
func hideAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// baseOf checks a server's address: no more than a scheme and a host is expected there.
func baseOf(n dts.Node) (string, error) {
	u, err := url.Parse(n.Address)
	switch {
	case err != nil:
		return "", fmt.Errorf("its address %q is not a URL", clip(n.Address, 100))
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.User != nil, strings.Trim(u.Path, "/") != "", u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("its address %q is not one like http://host:port", clip(n.Address, 100))
	}
	return u.Scheme + "://" + u.Host, nil
}
