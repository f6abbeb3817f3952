package rqlite

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rqlite/gorqlite"

	"dts/store"
)

// node is the client of one node of the cluster. gorqlite is given no other node, so that it sends a request once
// and to this node only; what happens next is decided here.
type node struct {
	address string // scheme://host:port
	http    *http.Transport
	write   *gorqlite.Connection
	reads   map[store.Level]*gorqlite.Connection
	weak    *gorqlite.Connection // asks the leader, if this node knows one

	version atomic.Pointer[string] // what its last answer said
}

func newNode(u *url.URL, conf *tls.Config) (*node, error) {
	n := &node{address: u.Scheme + "://" + u.Host}
	n.http = &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, TLSClientConfig: conf,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
	}
	client := &http.Client{
		Transport:     &transport{n, u.User, n.http},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	open := func(level string, transaction bool) (*gorqlite.Connection, error) {
		c, err := gorqlite.OpenWithClient(n.address+"/?disableClusterDiscovery=true&level="+level, client)
		if err != nil {
			return nil, err
		}
		return c, c.SetExecutionWithTransaction(transaction)
	}
	stale, err1 := open("none", false)
	fresh, err2 := open("linearizable", false)
	weak, err3 := open("weak", false)
	write, err4 := open("weak", true) // the level means nothing to a write
	n.write, n.weak = write, weak
	// What this process has written may have been acknowledged through another node, so its own reads need
	// no less than anybody's.
	n.reads = map[store.Level]*gorqlite.Connection{store.Stale: stale, store.OwnWrites: fresh, store.Linearizable: fresh}
	return n, errors.Join(err1, err2, err3, err4)
}

func (n *node) close() { n.http.CloseIdleConnections() }

// seenVersion is rqlite's version as the node's last answer gave it; "" before the first.
func (n *node) seenVersion() string {
	if v := n.version.Load(); v != nil {
		return *v
	}
	return ""
}

// checkVersion refuses what is not rqlite, and an rqlite that is too old. A version that is no number belongs to a
// build from source, which is believed.
func (n *node) checkVersion() error {
	v := n.version.Load()
	if v == nil {
		return nil // it has not answered
	}
	if *v == "" {
		return fmt.Errorf("%s is not a node of rqlite: its answers name no version", n.address)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(*v, "v"), ".")
	if m, err := strconv.Atoi(major); err == nil && m < 8 {
		return fmt.Errorf("rqlite at %s has version %s; use version 8 or newer", n.address, *v)
	}
	return nil
}

// call is what became of one HTTP request: gorqlite tells no more than a text.
type call struct {
	node     *node
	sent     atomic.Bool // a connection was there, so something may have been sent
	status   int         // 0 without an answer
	err      error       // why there was no answer
	head     bytes.Buffer
	tooLong  bool
	forwards bool // the node passed the request on to the leader
}

type callKey struct{}

// newCall returns a context for one request to the node, and where its fate can be read afterwards.
func newCall(ctx context.Context, n *node) (context.Context, *call) {
	c := &call{node: n}
	ctx = context.WithValue(ctx, callKey{}, c)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { c.sent.Store(true) }}), c
}

// failure is the error of a call without a usable answer; nil when the node answered 200.
func (c *call) failure() error {
	switch {
	case c.tooLong:
		return fmt.Errorf("rqlite at %s: %w", c.node.address, errTooLong)
	case c.err != nil:
		return fmt.Errorf("rqlite at %s: %w", c.node.address, c.err)
	case c.status == http.StatusUnauthorized || c.status == http.StatusForbidden:
		return fmt.Errorf("rqlite at %s refuses the user and password that it is given", c.node.address)
	case c.status != 0 && c.status != http.StatusOK:
		return fmt.Errorf("rqlite at %s answers %d: %s", c.node.address, c.status, strings.TrimSpace(c.head.String()))
	}
	return nil
}

// transport sends a request with the node's credentials and records its fate in the context's call.
type transport struct {
	n    *node
	user *url.Userinfo
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, _ := r.Context().Value(callKey{}).(*call)
	if c == nil {
		return nil, errors.New("a request without a call") // nothing here sends one
	}
	if t.user != nil {
		r = r.Clone(r.Context())
		password, _ := t.user.Password()
		r.SetBasicAuth(t.user.Username(), password)
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		c.err = err
		return nil, err
	}
	c.status = resp.StatusCode
	c.forwards = resp.Header.Get("X-Rqlite-Served-By") != ""
	if version := resp.Header.Get("X-Rqlite-Version"); version != "" || resp.StatusCode == http.StatusOK {
		t.n.version.Store(&version)
	}
	resp.Body = &answer{body: resp.Body, c: c, left: MaxAnswer}
	return resp, nil
}

var errTooLong = fmt.Errorf("the answer is longer than %d MiB", MaxAnswer>>20)

// headLen is how much of an answer is kept: enough for the text of an error.
const headLen = 512

// answer bounds the body of a response, and keeps its beginning.
type answer struct {
	body io.ReadCloser
	c    *call
	left int
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p[:min(len(p), a.left+1)])
	if room := headLen - a.c.head.Len(); room > 0 {
		a.c.head.Write(p[:min(n, room)])
	}
	if a.left -= n; a.left < 0 {
		a.c.tooLong = true
		return 0, errTooLong
	}
	if err != nil && err != io.EOF {
		a.c.err = err
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error { return a.body.Close() }
