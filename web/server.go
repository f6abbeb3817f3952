// Package web is the HTTP server of dts: one http.Server on TCP and on a Unix socket, in front of the REST
// API (package api) and the pages (package ui).
//
// It promises that nothing is served to whom it is not for. On TCP a request needs a token or the page's
// cookie; on the Unix socket the peer's user, as the kernel tells it, is the credential. A request whose
// Host is not one of this server's names is refused (DNS rebinding), and so is one that changes something
// and comes from another site's page; ping URLs, which are their own credential, are for everybody. Failed sign-ins are limited per address, and every header, body,
// stream and wait has a limit. A panic in a handler is logged and answered with 500.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dts/web/api"
	"dts/web/auth"
	"dts/web/limit"
	"dts/web/pings"
	"dts/web/seldom"
)

// DefaultListen is the TCP address that is used when none is given.
const DefaultListen = "127.0.0.1:8420"

// NoListen, as Options.Listen, means no TCP at all.
const NoListen = "none"

// Options is how a Server is made. API.Store, API.Scheduler, API.Outputs and Tokens must be set.
type Options struct {
	Listen       string   // TCP address; default: DefaultListen
	SocketPath   string   // of the Unix socket, at most MaxSocketPath bytes; "": none
	SocketGroup  bool     // members of the group of the socket's directory may use it too
	AllowedHosts []string // names, beside its own, by which browsers may reach the server

	API    api.Options // Tokens, Log, LoginURL and Stopping are filled in
	Tokens auth.Tokens
	UI     http.Handler // serves /ui/; nil: no pages
	// Peers serves /cluster/ on TCP, where other servers of a cluster call this one; nil: nothing is there. It knows by
	// itself who may call it: neither tokens nor hosts are checked before.
	Peers http.Handler
	Pings *pings.Handler // serves /ping/; nil: nothing is there. It knows by itself who may call it
	Log   *slog.Logger   // default: discards
}

// Limits of the server.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 60 * time.Second
	answerTimeout = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// Server is the HTTP server. Start and Stop are each called once; Stop may come without Start.
type Server struct {
	o       Options
	log     *slog.Logger
	http    *http.Server
	hosts   atomic.Pointer[hostCheck]
	limiter *limit.Limiter[netip.Prefix]
	peers   peerRule

	tcp, unix net.Listener
	serving   sync.WaitGroup
	failed    chan error
	stopping  context.Context // done when Stop is called
	stop      context.CancelFunc
	unchecked seldom.Log
}

// New checks the options and makes a server that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Tokens == nil {
		return nil, errors.New("web: Tokens must be set")
	}
	if len(o.SocketPath) > MaxSocketPath {
		return nil, fmt.Errorf("web: the socket path %s has %d bytes; at most %d are possible", o.SocketPath, len(o.SocketPath), MaxSocketPath)
	}
	o.Listen = cmp.Or(o.Listen, DefaultListen)
	if o.Listen == NoListen && o.SocketPath == "" {
		return nil, errors.New("web: neither a TCP address nor a socket to listen on")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, log: o.Log, limiter: newLimiter(), failed: make(chan error, 2)}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.SetAllowedHosts(o.AllowedHosts)
	a := o.API
	a.Tokens, a.Log, a.LoginURL, a.Stopping = o.Tokens, o.Log, s.loginURL, s.stopping.Done()
	if o.Pings != nil {
		o.Pings.Own, a.PingURL = s.URL, o.Pings.URL
	}
	h, err := api.New(a)
	if err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler:           s.handler(h),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       s.connContext,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // what clients do wrong
	}
	return s, nil
}

// SetAllowedHosts replaces Options.AllowedHosts, from the next request on.
func (s *Server) SetAllowedHosts(names []string) {
	h := newHostCheck(s.o.Listen, names)
	s.hosts.Store(&h)
}

// Start listens and serves in the background.
func (s *Server) Start() error {
	var err error
	if s.o.SocketPath != "" {
		if s.unix, err = listenUnix(s.o.SocketPath, s.o.SocketGroup); err != nil {
			return fmt.Errorf("listen on the socket %s: %w", s.o.SocketPath, err)
		}
		s.peers = newPeerRule(s.o.SocketPath, s.o.SocketGroup)
	}
	if s.o.Listen != NoListen {
		if s.tcp, err = net.Listen("tcp", s.o.Listen); err != nil {
			if s.unix != nil {
				s.unix.Close()
			}
			return fmt.Errorf("listen on %s: %w", s.o.Listen, err)
		}
	}
	for _, l := range []net.Listener{s.unix, s.tcp} {
		if l == nil {
			continue
		}
		s.serving.Go(func() {
			if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				s.log.Error("listener failed", "address", l.Addr().String(), "error", err)
				s.failed <- fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
		})
	}
	return nil
}

// Stop ends all streams, lets other requests finish until ctx is done, and closes the connections.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
		err = fmt.Errorf("stop the HTTP server: %w", err)
	}
	s.serving.Wait()
	return err
}

// Failed delivers the error of a listener that broke. That is rare, and the server does not recover from it.
func (s *Server) Failed() <-chan error { return s.failed }

// Addr is the TCP address that the server listens on, or "" before Start and without TCP.
func (s *Server) Addr() string {
	if s.tcp == nil {
		return ""
	}
	return s.tcp.Addr().String()
}

// URL is the address of the server for a browser on this machine or, when it listens on all addresses, one
// in the network. It is "" before Start and without TCP.
func (s *Server) URL() string {
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
		if name, err := os.Hostname(); err == nil && name != "" {
			host = name
		}
	}
	return "http://" + net.JoinHostPort(host, port)
}

// loginURL is the page that redeems a login link's token.
func (s *Server) loginURL(token string) string {
	base := s.URL()
	if base == "" || s.o.UI == nil {
		return ""
	}
	return base + "/ui/link?code=" + url.QueryEscape(token)
}
