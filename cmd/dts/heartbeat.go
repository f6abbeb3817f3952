package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	heartbeatEvery   = time.Minute
	heartbeatTimeout = 10 * time.Second // of one ping
	heartbeatAnswer  = 4 << 10          // how much of an answer is read, in bytes
)

// heartbeatOptions say who else is told that the server is well. URL is a secret: whoever knows it can tell that, too.
type heartbeatOptions struct {
	URL   string // "": nobody
	Every time.Duration
}

// check reports what is wrong with them, without the URL.
func (o heartbeatOptions) check() error {
	if o.URL == "" {
		return nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return usagef("--heartbeat-url: must be a URL such as https://hc-ping.com/<uuid>")
	}
	return nil
}

// where is the URL as far as it may be seen: without a path, which is the secret.
func (o heartbeatOptions) where() string {
	u, err := url.Parse(o.URL)
	if o.URL == "" || err != nil {
		return cmp.Or(o.URL, "none")
	}
	return u.Scheme + "://" + u.Host + "/…"
}

// heartbeat tells somebody else, over HTTP, that the scheduler is well. When it is not, or the process is gone, the pings stop,
// and whoever waits for them raises the alarm. Nothing of it goes through the scheduler or its database, but for the question
// how they are.
type heartbeat struct {
	well    func() error // nil when the scheduler fires and its writes succeed
	log     *slog.Logger
	client  *http.Client
	agent   string
	results *prometheus.CounterVec

	mu      sync.Mutex
	o       heartbeatOptions
	changed chan struct{} // capacity 1
	giveUp  func()        // ends the ping that is on its way
	trouble string        // what was logged last; "" when all was well
}

func newHeartbeat(well func() error, log *slog.Logger, r prometheus.Registerer) *heartbeat {
	h := &heartbeat{well: well, log: log, agent: "dts/" + thisBuild().Version, changed: make(chan struct{}, 1), giveUp: func() {},
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dts_heartbeats_total",
			Help: "Pings of the heartbeat URL: sent, failed, or withheld because the server was not ready."}, []string{"result"})}
	h.client = &http.Client{
		Timeout:   heartbeatTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: heartbeatTimeout},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the secret in the URL goes nowhere else
		},
	}
	r.MustRegister(h.results)
	return h
}

// set changes who is told, and how often.
func (h *heartbeat) set(o heartbeatOptions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.o == o {
		return
	}
	h.o = o
	h.giveUp() // nobody waits for it any more
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// begin returns what holds now, and a context that ends when it changes.
func (h *heartbeat) begin(ctx context.Context) (heartbeatOptions, context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.giveUp() // the last one has ended; this frees what it took
	select {
	case <-h.changed: // it is known from here on
	default:
	}
	ctx, h.giveUp = context.WithCancel(ctx)
	return h.o, ctx
}

// run pings at once and then again and again, until ctx is done.
func (h *heartbeat) run(ctx context.Context) {
	for {
		o, until := h.begin(ctx)
		var next <-chan time.Time
		if o.URL != "" {
			began := time.Now()
			h.beat(until, o)
			next = time.After(max(o.Every-time.Since(began), 0))
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		case <-h.changed:
		}
	}
}

// beat pings if the scheduler is well. What goes wrong is logged when it begins, changes or ends, not each time.
func (h *heartbeat) beat(ctx context.Context, o heartbeatOptions) {
	if err := h.well(); err != nil {
		h.results.WithLabelValues("withheld").Inc()
		h.say(o, "the heartbeat is withheld: this server is not ready", oneLine(err.Error()))
		return
	}
	if err := h.ping(ctx, o); err != nil {
		if ctx.Err() == nil {
			h.results.WithLabelValues("failed").Inc()
			h.say(o, "the heartbeat did not arrive; it is tried again", err.Error())
		}
		return
	}
	h.results.WithLabelValues("sent").Inc()
	h.say(o, "", "")
}

func (h *heartbeat) say(o heartbeatOptions, trouble, reason string) {
	switch {
	case trouble == h.trouble:
	case trouble == "":
		h.log.Info("the heartbeat arrives again", "to", o.where())
	default:
		h.log.Warn(trouble, "to", o.where(), "reason", reason)
	}
	h.trouble = trouble
}

// ping asks for the URL. Its errors do not hold it.
func (h *heartbeat) ping(ctx context.Context, o heartbeatOptions) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL, nil)
	if err != nil {
		return errors.New("the URL cannot be used")
	}
	req.Header.Set("User-Agent", h.agent)
	resp, err := h.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the rest of its text is the URL
		}
		return errors.New(oneLine(strings.ReplaceAll(err.Error(), o.URL, o.where())))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, heartbeatAnswer)
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("it answered %d, a redirect, which is not followed: set the URL that it leads to", resp.StatusCode)
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}
