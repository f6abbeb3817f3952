package exec

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	// maxRedirects is how many redirects one attempt follows.
	maxRedirects = 5
	// maxBody is how much of an answer is read, counted after decompression.
	maxBody = 16 << 20
	// maxAnswerHeader bounds the header of an answer.
	maxAnswerHeader = 256 << 10
	// idleTimeout is how long a connection waits for its next request. It is shorter than the keep-alive
	// timeouts that servers use (2 s and up), so that a request rarely meets a server that is just hanging up.
	idleTimeout = 1500 * time.Millisecond
)

// newTransport makes a transport that keeps enough idle connections for several hundred runs on one host.
// Proxies are taken from HTTP_PROXY, HTTPS_PROXY and NO_PROXY; loopback addresses never go through one.
func newTransport(o *Options) *http.Transport {
	dialer := &net.Dialer{Timeout: o.ConnectTimeout, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(256)},
		TLSHandshakeTimeout:    o.ConnectTimeout,
		ResponseHeaderTimeout:  o.HeaderTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader,
		MaxConnsPerHost:        o.MaxHTTPConnsPerHost,
		MaxIdleConns:           2048,
		MaxIdleConnsPerHost:    1024,
		IdleConnTimeout:        idleTimeout,
		ForceAttemptHTTP2:      true,
		// A connection that has died without a word is found by a ping, not by the timeouts of its runs.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
}

// sendOnce turns t into one that never sends a request a second time: net/http re-sends on connections that
// were used before, and HTTP/2 re-sends what a server says it has not seen.
func sendOnce(t *http.Transport) {
	t.DisableKeepAlives = true
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
}

var errTooManyRedirects = errors.New("too many redirects")

// redirectPolicy returns the client's CheckRedirect for one run.
func redirectPolicy(t *httpTarget, follow bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case !follow || t.expected(req.Response.StatusCode):
			return http.ErrUseLastResponse // the redirect itself is the answer
		case len(via) > maxRedirects:
			return errTooManyRedirects
		}
		req.Header.Del("Referer") // would tell one server another's path and query
		for _, hop := range append(via[1:len(via):len(via)], req) {
			if hop.URL.Scheme != t.url.Scheme || hop.URL.Host != t.url.Host {
				t.dropOwnHeaders(req.Header)
				break
			}
		}
		return nil
	}
}
